package provider

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// Open opens one candidate as a Model. The spec is "provider/model" (the model
// may contain slashes: "openrouter/anthropic/claude-sonnet-4.6"), a provider
// alone (its default model), or a model name alone, which the catalogue
// resolves. With a BaseURL and a name that is no provider's, the whole spec is
// the model of a server of your own.
//
// Nothing is sent. A missing key, an unknown provider or a bad URL is an error
// of one line that says what to do. An unknown model is none: it may be newer
// than the catalogue; see Model.Warnings.
func Open(spec string, opts ...Option) (ninelives.Model, error) {
	var s settings
	for _, o := range opts {
		if err := o(&s); err != nil {
			return nil, err
		}
	}
	v, model, err := s.resolve(spec)
	if err != nil {
		return nil, err
	}
	m, err := s.open(v, model)
	if err != nil {
		return nil, err
	}
	also := s.also
	if len(also) == 0 && m.endpoint.hostPort() == v.ownHost() {
		also = v.also
	}
	for _, p := range also {
		if p == m.candidate.Protocol {
			continue
		}
		other := s
		other.protocol = p
		speaking, err := other.open(v, model)
		if err != nil {
			return nil, err
		}
		m.also = append(m.also, speaking)
	}
	return m, nil
}

// open opens the model in one protocol.
func (s *settings) open(v vendor, model string) (*Model, error) {
	m := &Model{headers: maps.Clone(s.headers)}
	if m.headers == nil {
		m.headers = make(map[string]string)
	}
	if err := m.place(s, v, model); err != nil {
		return nil, err
	}
	if err := m.authorize(s, v); err != nil {
		return nil, err
	}
	if err := m.connect(s); err != nil {
		return nil, err
	}
	m.describe(s, v, model)
	return m, nil
}

// resolve finds out who is meant by a spec.
func (s *settings) resolve(spec string) (vendor, string, error) {
	spec = strings.TrimSpace(spec)
	if s.provider != "" {
		v, ok := vendorNamed(s.provider)
		if !ok && s.base == "" {
			return v, "", unknownProvider(s.provider)
		}
		if !ok {
			v = vendor{name: s.provider}
		}
		return s.withModel(v, spec)
	}
	name, model, slash := strings.Cut(spec, "/")
	// At a server of your own "Qwen/…" and "mistralai/…" are models of those
	// makers as they name them; only a provider's very own name is one there.
	if v, ok := vendorNamed(name); ok && (s.base == "" || v.name == name) {
		return s.withModel(v, model)
	}
	if spec == "" {
		return vendor{}, "", fmt.Errorf(`provider: no model is named: write it as provider/model, such as "anthropic/claude-sonnet-4-6"`)
	}
	if s.base != "" {
		return vendor{name: "custom"}, spec, nil
	}
	if makers := theCatalogue().makers(spec); len(makers) > 0 {
		// The maker, unless only another one's key is there.
		v, _ := vendorNamed(makers[0])
		if !s.hasKey(v) {
			for _, maker := range makers[1:] {
				if other, ok := vendorNamed(maker); ok && s.hasKey(other) {
					v = other
					break
				}
			}
		}
		return v, spec, nil
	}
	if !slash && strings.Contains(spec, ":") { // "qwen3:8b" is how Ollama names models
		v, _ := vendorNamed("ollama")
		return v, spec, nil
	}
	if slash {
		return vendor{}, "", unknownProvider(name)
	}
	return vendor{}, "", fmt.Errorf("provider: unknown model %q%s: write it as provider/model, such as %q", spec, nearestVendor(spec), "openai/"+spec)
}

func unknownProvider(name string) error {
	if hint := nearestVendor(name); hint != "" {
		return fmt.Errorf("provider: unknown provider %q%s", name, hint)
	}
	return fmt.Errorf("provider: unknown provider %q: use one of %s, or give the base URL of a server of your own", name, strings.Join(Providers(), ", "))
}

func (s *settings) withModel(v vendor, model string) (vendor, string, error) {
	if model == "" {
		model = v.defaultModel(s.env)
	}
	if model == "" {
		return v, "", fmt.Errorf("provider: which model of %s? write %s/MODEL", v.name, v.name)
	}
	return v, model, nil
}

func (v vendor) defaultModel(env Env) string {
	for _, name := range v.deployment {
		if d := env.get(name); d != "" {
			return d
		}
	}
	return v.model
}

func (s *settings) hasKey(v vendor) bool {
	key, _ := v.key(s.env)
	return s.key != nil || v.local || !key.Empty()
}

// place finds the endpoint, its protocol and its dialect.
func (m *Model) place(s *settings, v vendor, model string) error {
	base, from := s.base, ""
	if base == "" {
		base, from = v.baseURL(s.env)
	}
	if base == "" {
		return fmt.Errorf("provider: no endpoint for %s: set %s", v.name, v.baseEnv[0])
	}
	u, err := parseBase(base)
	if err != nil {
		if from != "" {
			return fmt.Errorf("%w (from %s)", err, from)
		}
		return err
	}
	m.endpoint = endpoint{base: u, model: model}
	dialect, protocol := wire.DialectFor(u.String(), model)
	if dialect.Name == "" {
		dialect = v.dialect(model)
	}
	if s.dialect != "" {
		named, ok := dialectNamed(s.dialect, model)
		if !ok {
			return fmt.Errorf("provider: unknown dialect %q", s.dialect)
		}
		dialect = named
	}
	// A vendor's own protocol goes before a guess from the URL, but not
	// before a URL that says otherwise (…/openai, …/anthropic).
	if v.protocol != "" && !tellsProtocol(u) {
		protocol = v.protocol
	}
	if s.protocol != "" {
		protocol = s.protocol
	}
	if _, ok := codecs[protocol]; !ok {
		return fmt.Errorf("provider: %s speaks %s, in which requests are not written: use its OpenAI-compatible base URL (…/v1)", u.Redacted(), protocol)
	}
	m.dialect, m.endpoint.protocol = dialect, protocol
	if v.auth == authAzure {
		m.placeAzure(s, u)
	}
	return nil
}

// dialect is that of the vendor's own server, for a base URL that does not
// tell (a proxy before it, a test).
func (v vendor) dialect(model string) wire.Dialect {
	if v.ownModels {
		if f := theCatalogue().family(model); f == nil || f.Provider != v.name {
			return wire.Dialect{}
		}
	}
	base := v.base
	if v.dialectBase != "" {
		base = v.dialectBase
	}
	d, _ := wire.DialectFor(base, model)
	return d
}

// runsModels says that a server is one that runs models itself, as Ollama does:
// it was opened as such a one, or its dialect, which follows from the port as
// well, is that of one. Anything else on this machine is taken for a proxy,
// whose models are as fast as anywhere.
func (v vendor) runsModels(d wire.Dialect) bool {
	if v.local || d.Name == "sglang" {
		return true
	}
	server, known := vendorNamed(strings.TrimSuffix(d.Name, "-anthropic"))
	return known && server.local
}

// dialectNamed is the dialect of that name for a model.
func dialectNamed(name, model string) (wire.Dialect, bool) {
	if v, ok := vendorNamed(name); ok {
		if d := v.dialect(model); d.Name != "" {
			return d, true
		}
	}
	return wire.DialectNamed(name)
}

// tellsProtocol reports whether a base URL names a protocol that is not its
// vendor's own: the compatible endpoints of Gemini and DeepSeek do.
func tellsProtocol(u *url.URL) bool {
	return strings.Contains(u.Path, "openai") || strings.Contains(u.Path, "anthropic")
}

// placeAzure chooses between Azure's two forms: the deployment in the path and
// a dated api-version, or the v1 API with the deployment as the model.
func (m *Model) placeAzure(s *settings, u *url.URL) {
	version := s.version
	for _, name := range []string{"AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"} {
		if version == "" {
			version = s.env.get(name)
		}
	}
	q := u.Query()
	if version == "" {
		version = q.Get("api-version")
	}
	if strings.HasSuffix(u.Path, "/v1") || strings.Contains(u.Path, "/deployments/") && version != "" {
		m.endpoint.deployment = strings.Contains(u.Path, "/deployments/")
	} else if version == "" {
		u.Path = strings.TrimSuffix(u.Path, "/openai") + "/openai/v1"
	} else {
		m.endpoint.deployment = true
	}
	if m.endpoint.deployment {
		q.Set("api-version", version)
		u.RawQuery = q.Encode()
	}
}

// authorize finds the key and how it is sent.
func (m *Model) authorize(s *settings, v vendor) error {
	m.auth = v.auth
	if !slices.ContainsFunc(vendors, func(known vendor) bool { return known.name == v.name }) || v.auth == authXAPIKey || v.auth == authGoogle {
		m.auth = authOf(m.endpoint.protocol)
	}
	if s.key != nil {
		m.key = *s.key
	} else {
		var from string
		m.key, from = v.key(s.env)
		if from != "" && from == v.bearerEnv {
			m.auth = authBearer
		}
	}
	if m.key.Empty() && s.key == nil && len(v.keyEnv) > 0 && !v.local && !m.endpoint.local() {
		return &KeyError{Provider: v.name, Variable: v.keyEnv[0]}
	}
	for _, r := range m.key.Reveal() {
		if r < ' ' || r > '~' {
			return fmt.Errorf("provider: the key for %s holds a character that no key has: was it copied whole?", v.name)
		}
	}
	for header, variable := range v.headers {
		if value := s.env.get(variable); value != "" && m.headers[header] == "" {
			m.headers[header] = value
		}
	}
	return nil
}

// KeyError says that there is no key for a provider.
type KeyError struct {
	Provider string
	// Variable is the environment variable that would hold the key.
	Variable string
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("provider: no key for %s: set %s", e.Provider, e.Variable)
}

// authOf is how a protocol's own servers want the key.
func authOf(p ninelives.Protocol) auth {
	switch p {
	case ninelives.AnthropicMessages:
		return authXAPIKey
	case ninelives.Gemini:
		return authGoogle
	}
	return authBearer
}

// connect finds the way to the endpoint.
func (m *Model) connect(s *settings) error {
	if s.roundTripper != nil {
		m.transport = s.roundTripper
		return nil
	}
	n := s.network
	if n.caFile == "" {
		n.caFile, n.caFrom = s.env.get("NINELIVES_CA_FILE"), " (from NINELIVES_CA_FILE)"
	}
	var t *http.Transport
	var err error
	if s.dial != nil {
		t, err = n.newTransport(s.dial)
	} else {
		t, err = n.transport()
	}
	m.transport = t
	return err
}

// describe writes down what is known about the candidate.
func (m *Model) describe(s *settings, v vendor, model string) {
	c := ninelives.Candidate{
		Provider:     v.name,
		Model:        model,
		Key:          m.key.Fingerprint(),
		Account:      s.account,
		Host:         m.endpoint.hostPort(),
		Local:        m.endpoint.local(),
		LocalModel:   m.endpoint.local() && v.runsModels(m.dialect),
		Protocol:     m.endpoint.protocol,
		Capabilities: Known(v.name, model),
	}
	for _, change := range s.describe {
		changed := c
		change(&changed)
		if changed.Window != c.Window {
			changed.WindowSource = windowSetting
		}
		c.Capabilities = changed.Capabilities
	}
	if s.window > 0 {
		c.Window, c.WindowSource = s.window, windowSetting
	}
	m.candidate = c
	m.learn(s.learnt)
}
