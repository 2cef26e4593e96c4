package config

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/gateway"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/internal/nearest"
	"github.com/ninelives-ai/ninelives/provider"
)

// Serving is what the files say of the process around a gateway. It does not
// change while the process runs.
type Serving struct {
	// Listen are the addresses, "host:port" or "unix:/path". There is at least
	// one; default 127.0.0.1:9009.
	Listen []string
	// Cert and Key are the PEM files of the certificate; empty means plain HTTP.
	Cert string
	Key  string
	// Insecure lets other machines in without client keys and TLS.
	Insecure bool
	// JournalKey encrypts what the journal keeps; empty means that it does not.
	JournalKey provider.Secret
}

// UseListen puts what a command line says of where to listen over the files:
// addresses as the setting gateway.listen takes them, or none to leave what is
// set, and whether other machines may do without client keys and TLS.
func (c *Config) UseListen(listen []string, insecure bool) error {
	var addresses addresses
	for _, text := range listen {
		address, err := parseListen(text, func(path string) string { return path })
		if err != nil {
			return err
		}
		addresses = append(addresses, address)
	}
	if len(addresses) > 0 {
		c.gateway.file.Listen = addresses
		delete(c.origins, "gateway.listen")
	}
	if insecure {
		c.gateway.file.Insecure = &insecure
	}
	return nil
}

// Gateway is the gateway's part of the configuration, and the process's around
// it. The first route is the default one; its candidates are those of Chain,
// unless a route of the name default has its own. A candidate that cannot be
// opened, or that consent does not allow, is left out with a problem.
//
// The error tells all that is wrong otherwise, a line each; what was right is
// in the settings, for looking at. Where it is ErrNoModel alone, nothing is
// wrong: nothing names a model, and the default route has no targets.
func (c *Config) Gateway(ctx context.Context, env provider.Env) (gateway.Settings, Serving, []Problem, error) {
	g := &gatewayMaker{Config: c, ctx: ctx, env: env, wrong: slices.Clone(c.gateway.wrong), problems: slices.Clone(c.gateway.warnings)}
	set := gateway.Settings{
		Routes:  g.routes(),
		Limits:  c.gateway.file.Limits.limits(),
		Journal: c.gateway.file.Journal.settings(),
		Open:    c.opener(env),
	}
	set.Keys = g.keys()
	if d := c.gateway.file.Grace; d != nil {
		set.Grace = time.Duration(*d)
	}
	serving := g.serving()
	if len(g.wrong) == 0 && g.noModel {
		return set, serving, g.problems, ErrNoModel
	}
	var lines []error
	for _, p := range g.wrong {
		lines = append(lines, p)
	}
	return set, serving, g.problems, errors.Join(lines...)
}

// gatewayMaker makes the settings of a gateway and notes what is wrong.
type gatewayMaker struct {
	*Config
	ctx      context.Context
	env      provider.Env
	problems []Problem // what costs only itself
	wrong    []Problem
	noModel  bool
}

func (g *gatewayMaker) fail(where Problem, format string, args ...any) {
	where.Message = fmt.Sprintf(format, args...)
	g.wrong = append(g.wrong, where)
}

// routes are the routes, the default one first.
func (g *gatewayMaker) routes() []gateway.Route {
	sets := slices.Clone(g.gateway.routes)
	i := slices.IndexFunc(sets, func(r routeSet) bool { return r.name == defaultRoute })
	if i < 0 {
		sets = append([]routeSet{{name: defaultRoute}}, sets...)
	} else {
		first := sets[i]
		sets = append([]routeSet{first}, slices.Delete(sets, i, i+1)...)
	}
	taken := map[string]string{}
	for _, r := range sets {
		taken[r.name] = r.name
	}
	for _, r := range sets {
		for i, pattern := range r.Match {
			switch other, twice := taken[pattern]; {
			case twice && i < len(r.match):
				g.fail(r.match[i], "route %q: the route %q takes %q already: keep one of them", r.name, other, pattern)
			default:
				taken[pattern] = r.name
			}
		}
	}
	routes := make([]gateway.Route, len(sets))
	for i, r := range sets {
		routes[i] = g.route(r)
	}
	return routes
}

func (g *gatewayMaker) route(r routeSet) gateway.Route {
	out := gateway.Route{
		Name: r.name, Match: r.Match, Policy: g.policyOf(r), Mode: heal.Mode(r.Mode),
		Order: gateway.Order(r.Order), Sticky: r.Sticky == nil || *r.Sticky,
		Continue: r.Continue, Cache: gateway.CacheSettings{Entries: r.Cache.Entries}, Priority: r.Priority,
	}
	set(&out.Deadline, r.Deadline)
	set(&out.Hedge, r.Hedge)
	set(&out.Cache.TTL, r.Cache.TTL)
	for _, d := range r.degraded {
		out.Degraded = append(out.Degraded, d.substitute())
	}
	if len(r.targets) == 0 && r.name == defaultRoute {
		out.Targets = g.chain(r.where)
	} else {
		out.Targets = g.targets(r)
	}
	return out
}

// chain is the default route's candidates.
func (g *gatewayMaker) chain(where Problem) []gateway.Target {
	models, problems, err := g.Chain(g.ctx, g.env)
	g.problems = append(g.problems, problems...)
	var placed Problem
	switch {
	case errors.Is(err, ErrNoModel):
		g.noModel = true
	case errors.As(err, &placed):
		g.wrong = append(g.wrong, placed)
	case err != nil:
		where.Err = err
		g.fail(where, "%s", plainly(err))
	}
	var targets []gateway.Target
	for _, m := range models {
		targets = append(targets, gateway.Target{Model: m})
	}
	return targets
}

// targets opens a route's own candidates.
func (g *gatewayMaker) targets(r routeSet) []gateway.Target {
	var models []ninelives.Model
	weights := map[ninelives.Model]float64{}
	note := func(p Problem) {
		p.Message = fmt.Sprintf("route %q: %s", r.name, p.Message)
		g.problems = append(g.problems, p)
	}
	for _, t := range r.targets {
		m, err := g.open(g.ctx, t.ref, g.env)
		if err != nil {
			p := t.where
			p.Err = err
			errors.As(err, &p)
			p.Message = "model skipped: " + plainly(errors.New(p.Message))
			note(p)
			continue
		}
		models = append(models, m)
		weights[m] = t.weight
	}
	kept, refused := g.consented(models)
	for _, p := range refused {
		p.File, p.Line, p.Column = r.where.File, r.where.Line, r.where.Column
		note(p)
	}
	if len(kept) == 0 && len(r.targets) > 0 {
		g.fail(r.where, "route %q: none of its models can be asked", r.name)
	}
	targets := make([]gateway.Target, len(kept))
	for i, m := range kept {
		targets[i] = gateway.Target{Model: m, Weight: weights[m]}
	}
	return targets
}

// policyOf is how a route heals; nil where nothing says otherwise than the
// gateway's default.
func (g *gatewayMaker) policyOf(r routeSet) *heal.Policy {
	set := g.layered
	set.layer(r.Policy)
	if set == (policy{}) {
		return nil
	}
	base, err := GatewayPreset(set.Preset)
	if err != nil { // a word that is none, and told where it stands
		return nil
	}
	p := set.over(base)
	if p.Mode == heal.ModeRestart {
		p.Mode = heal.ModeContinue // no client can take back what it has seen
	}
	return &p
}

// GatewayPreset is a preset as a gateway begins with it, whose callers are many
// and cannot take back what they have seen. Empty is the default.
func GatewayPreset(name string) (heal.Policy, error) {
	own := gateway.DefaultPolicy()
	if name == "" || name == own.Name {
		return own, nil
	}
	p, err := heal.Preset(name)
	library := heal.DefaultPolicy()
	p.Limit = own.Limit
	if p.Mode == heal.ModeRestart {
		p.Mode = own.Mode
	}
	// What a preset leaves as it is in the library is the gateway's own.
	if p.Buffered == library.Buffered {
		p.Buffered = own.Buffered
	}
	if p.Budget == library.Budget {
		p.Budget = own.Budget
	}
	return gateway.ForClients(p), err
}

func (d degradedFile) substitute() heal.Substitute {
	switch {
	case d.Stale != nil:
		entries := d.Stale.Entries
		if entries == 0 {
			entries = 1000
		}
		var age time.Duration
		set(&age, d.Stale.MaxAge)
		return heal.Stale(entries, age)
	case d.Canned != "":
		return heal.Canned(d.Canned)
	}
	return heal.Unavailable()
}

// keys are the clients.
func (g *gatewayMaker) keys() []gateway.Key {
	var keys []gateway.Key
	for _, k := range g.gateway.keys {
		for i, name := range k.Routes {
			if hint, known := g.servable(name); !known {
				g.fail(k.routes[i], "keys: %q may use %q, but there is no such route or model%s", k.Name, name, hint)
			}
		}
		keys = append(keys, gateway.Key{
			Name: k.Name, Hash: k.hash, Routes: k.Routes, Priority: k.Priority,
			Budget: gateway.Budget(k.Budget), Rate: gateway.Rate(k.Rate),
		})
	}
	return keys
}

// servable reports that a key's route or model is one that there is, or may be;
// if not, what was probably meant.
func (g *gatewayMaker) servable(name string) (hint string, known bool) {
	names := []string{defaultRoute}
	for _, r := range g.gateway.routes {
		names = append(names, r.name)
		for _, pattern := range r.Match {
			if ok, err := path.Match(pattern, name); pattern == name || ok && err == nil {
				return "", true
			}
		}
	}
	vendor, _, slash := strings.Cut(name, "/")
	switch {
	case strings.Contains(name, "*"), slices.Contains(names, name), g.Presets[name] != nil:
		return "", true
	case slash && (provider.IsProvider(vendor) || g.Config.names(vendor)):
		return "", true
	case !slash && isModel(name):
		return "", true
	}
	return nearest.Hint(name, append(names, slices.Sorted(maps.Keys(g.Presets))...)), false
}

// isModel reports that a bare name is that of a model whose vendor is known.
func isModel(name string) bool {
	if provider.IsProvider(name) || reasoner.MatchString(name) {
		return true
	}
	nothing := func(string) (string, bool) { return "", false }
	_, err := provider.Open(name, provider.Environment(nothing), provider.Key(provider.NewSecret("none")))
	return err == nil && !strings.Contains(name, ":") // "qwen3:8b" may be any server's
}

// serving is what concerns the process.
func (g *gatewayMaker) serving() Serving {
	f := g.gateway.file
	s := Serving{Listen: slices.Clone(f.Listen), Cert: f.TLS.Cert, Key: f.TLS.Key, JournalKey: f.Journal.Key.Secret}
	put(&s.Insecure, f.Insecure)
	if len(s.Listen) == 0 {
		s.Listen = []string{DefaultListen}
	}
	if s.Cert != "" && s.Key != "" {
		if _, err := tls.LoadX509KeyPair(s.Cert, s.Key); err != nil {
			where := g.origins["gateway.tls"]
			where.Err = err
			g.fail(where, "tls: %s", strings.TrimPrefix(err.Error(), "tls: "))
		}
	}
	for _, listen := range s.Listen {
		where := g.origins["gateway.listen"]
		if err := gateway.MayListen(listen, len(g.gateway.keys) > 0, s.Cert != "", s.Insecure); err != nil {
			g.fail(where, "listen: %s", err)
			continue
		}
		if len(g.gateway.keys) == 0 && gateway.Exposed(listen) && !s.Insecure {
			where.Message = fmt.Sprintf("listen: everybody who reaches %s can ask at your cost: add keys (ninelives keys new), or insecure: true if that is meant", listen)
			g.problems = append(g.problems, where)
		}
	}
	return s
}

func (l gatewayLimits) limits() gateway.Limits {
	var out gateway.Limits
	put(&out.Body, (*int64)(l.Body))
	put(&out.Memory, (*int64)(l.Memory))
	if l.Headers != nil {
		out.Headers = int(*l.Headers)
	}
	put(&out.Connections, l.Connections)
	put(&out.InFlight, l.InFlight)
	set(&out.ReadTimeout, l.ReadTimeout)
	set(&out.Write, l.Write)
	return out
}

func (j gatewayJournal) settings() gateway.JournalSettings {
	var out gateway.JournalSettings
	word, days, _ := parseRetention(j.Retention) // told where it stands
	out.Retention, out.Days = gateway.Retention(word), days
	put(&out.Refuse, j.Refuse)
	put(&out.Off, j.Off)
	return out
}

// reasoner is how OpenAI names a family of models that has no common prefix.
var reasoner = regexp.MustCompile(`^o[0-9]`)

// maxOpened bounds the models that clients have opened by their names.
const maxOpened = 1024

// opener gives what opens a model that is in no route: a preset, provider/model,
// or a bare name whose maker is known. A server on this machine is asked whether
// it has the model where the name does not say whose it is.
func (c *Config) opener(env provider.Env) func(name string) (ninelives.Model, error) {
	var mu sync.Mutex
	opened := map[string]ninelives.Model{}
	return func(name string) (ninelives.Model, error) {
		mu.Lock()
		m := opened[name]
		mu.Unlock()
		if m != nil {
			return m, nil
		}
		m, err := c.openNamed(name, env)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		if other := opened[name]; other != nil {
			return other, nil
		}
		if len(opened) >= maxOpened {
			clear(opened)
		}
		opened[name] = m
		return m, nil
	}
}

func (c *Config) openNamed(name string, env provider.Env) (ninelives.Model, error) {
	ctx := context.Background() // a search on this machine has a limit of its own
	if !isName(name) {
		return nil, errors.New("this is no name of a model")
	}
	r := ref{name: name}
	if !strings.Contains(name, "/") && strings.Contains(name, ":") && c.Presets[name] == nil {
		r.name = "ollama/" + name
		if _, ok := provider.Local(ctx, r.name, env); !ok {
			return nil, fmt.Errorf("there is no model %q: Ollama on this machine does not have it", name)
		}
	}
	m, err := c.open(ctx, r, env)
	if err != nil && reasoner.MatchString(name) && !strings.Contains(name, "/") {
		r.name = "openai/" + name // newer than the catalogue
		m, err = c.open(ctx, r, env)
	}
	if err != nil {
		return nil, err
	}
	if _, refused := c.consented([]ninelives.Model{m}); len(refused) > 0 {
		return nil, refused[0]
	}
	return m, nil
}
