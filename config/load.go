package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/internal/nearest"
	"github.com/ninelives-ai/ninelives/provider"
)

// Config is what the files come to.
type Config struct {
	// Files are those that were read, the one that wins first.
	Files []string
	// Presets are the candidates by name.
	Presets map[string]*Candidate
	// Catalogue is what is known about models otherwise, by provider/model.
	Catalogue map[string]*Candidate
	// Window is the context window of models that do not set their own; 0 if
	// it is not set.
	Window  int
	Policy  heal.Policy
	Consent provider.Consent
	// CAFile and Proxy are the way to the providers; empty means the default.
	CAFile string
	Proxy  string

	model     *ref
	fallbacks []ref
	broken    map[string]Problem // why a preset was skipped
	agent     Agent
	keys      []string // the variables that hold keys
	layered   policy   // what the files set of the policy
	gateway   gatewaySet
	origins   map[string]Problem // where a setting was set, by its name
	own       *Config            // what holds without a file that is not trusted; nil if there is none
}

// Default is the configuration without a file.
func Default() *Config {
	return &Config{
		Policy: heal.DefaultPolicy(), Presets: map[string]*Candidate{}, Catalogue: map[string]*Candidate{}, broken: map[string]Problem{},
		agent: Agent{Settings: agent.DefaultSettings()}, origins: map[string]Problem{},
	}
}

// setAt notes where a setting was set last.
func (c *Config) setAt(setting string, where Problem) { c.origins[setting] = where }

// Origin says where a setting was set, as file:line: "model", "policy",
// "gateway.listen", "gateway.routes.NAME". It is empty where the default holds.
func (c *Config) Origin(setting string) string {
	where, ok := c.origins[setting]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d", where.File, where.Line)
}

// projectFile is looked for in the working directory only: a file further up
// would steer requests from a place that one does not look at.
const projectFile = "ninelives.yaml"

// Paths are the places where a configuration may be, the one that wins first:
// ninelives.yaml in dir, then config.yaml in the user's own directory
// ($XDG_CONFIG_HOME/ninelives, else ~/.config/ninelives).
func Paths(dir string, env provider.Env) []string {
	paths := []string{filepath.Join(dir, projectFile)}
	if own := UserDir(env); own != "" {
		paths = append(paths, filepath.Join(own, "config.yaml"))
	}
	return paths
}

// userDir is the user's own directory; empty if there is none.
func UserDir(env provider.Env) string {
	home, _ := lookup(env, "XDG_CONFIG_HOME")
	if home == "" {
		if user, _ := lookup(env, "HOME"); filepath.IsAbs(user) {
			home = filepath.Join(user, ".config")
		}
	}
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, "ninelives")
}

func lookup(env provider.Env, name string) (string, bool) {
	if env == nil {
		return os.LookupEnv(name)
	}
	return env(name)
}

// Load reads the files that exist, each over the ones after it: presets by
// name, settings of the policy and the agent one by one, everything else as a
// whole. The problems cost only the preset, fallback or setting that they are
// about; the error tells all that is wrong otherwise, a line each.
//
// Of a project's file (IsProject) that its user has not trusted (Trust), what
// would lift the agent's bounds, run programs, or send requests, keys or
// variables where the user's own settings do not, is left out, with a problem
// whose cause is ErrUntrusted.
func Load(paths []string, env provider.Env) (*Config, []Problem, error) {
	return loadAll(paths, env, func(path string, text []byte) bool { return !IsProject(path) || IsTrusted(path, text, env) })
}

// LoadNamed is Load for one file that its user has named himself, which says
// that he trusts it, whatever its name.
func LoadNamed(path string, env provider.Env) (*Config, []Problem, error) {
	return loadAll([]string{path}, env, func(string, []byte) bool { return true })
}

func loadAll(paths []string, env provider.Env, trusted func(path string, text []byte) bool) (*Config, []Problem, error) {
	c := Default()
	var problems, fatal []Problem
	for _, path := range slices.Backward(paths) {
		text, err := readText(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		c.Files = append([]string{path}, c.Files...)
		s, err := parse(path, text, env)
		if err != nil {
			fatal = append(fatal, err.(Problem))
			continue
		}
		if s.root == nil {
			continue
		}
		if s.trusted = trusted(path, text); !s.trusted && c.own == nil {
			own := *c
			own.Presets, own.broken, own.origins = maps.Clone(c.Presets), maps.Clone(c.broken), maps.Clone(c.origins)
			c.own = &own
		}
		c.keys = append(c.keys, keysIn(s.root)...)
		p, f := c.layer(s)
		problems, fatal = append(problems, p...), append(fatal, f...)
	}
	if len(fatal) == 0 {
		p, err := c.layered.policy()
		if err != nil {
			fatal = append(fatal, Problem{Message: "policy: " + err.Error()})
		}
		c.Policy = p
	}
	if len(fatal) > 0 {
		var lines []error
		for _, p := range fatal {
			lines = append(lines, p)
		}
		return nil, problems, errors.Join(lines...)
	}
	return c, problems, nil
}

// layer puts a file over what is there.
func (c *Config) layer(s *source) (problems, fatal []Problem) {
	for _, pair := range s.root.Values {
		p, f := c.layerSetting(s, pair)
		if s.trusted || len(p) == 0 {
			c.setAt(pair.Key.GetToken().Value, s.at(pair.Key, ""))
		}
		problems, fatal = append(problems, p...), append(fatal, f...)
	}
	return problems, fatal
}

func (c *Config) layerSetting(s *source, pair *ast.MappingValueNode) (problems, fatal []Problem) {
	name := pair.Key.GetToken().Value
	if !s.trusted && !slices.Contains(judgedApart, name) {
		if refers(pair.Value) {
			problems = append(problems, s.untrusted(pair.Value, "${…} is"+onlyTrusted))
			return problems, fatal
		}
		problems = append(problems, s.unfilled(pair.Value)...)
	}
	switch name {
	case "model":
		if p := s.withheld(pair.Value); p != nil {
			problems = append(problems, *p)
			return problems, fatal
		}
		r, p := s.ref(pair.Value)
		if p != nil {
			fatal = append(fatal, p...)
			return problems, fatal
		}
		c.model = &r
	case "fallbackModels":
		p, f := c.layerFallbacks(s, pair.Value)
		problems, fatal = append(problems, p...), append(fatal, f...)
	case "modelPresets":
		p, f := c.layerPresets(s, pair.Value)
		problems, fatal = append(problems, p...), append(fatal, f...)
	case "catalogue":
		fatal = append(fatal, c.layerCatalogue(s, pair.Value)...)
	case "window":
		fatal = append(fatal, s.decode(pair.Value, &c.Window)...)
		fatal = append(fatal, negatives(s, pair.Value)...)
	case "policy":
		was := c.layered
		fatal = append(fatal, s.decode(pair.Value, &c.layered)...)
		fatal = append(fatal, c.layered.check(s, pair.Value)...)
		if !s.trusted {
			problems = append(problems, c.layered.tame(s, pair.Value, was)...)
		}
	case "agent":
		p, f := c.layerAgent(s, pair.Value)
		problems, fatal = append(problems, p...), append(fatal, f...)
	case "gateway":
		if !s.trusted {
			problems = append(problems, s.untrusted(pair.Key, "the settings of gateway are"+onlyTrusted))
			return problems, fatal
		}
		c.layerGateway(s, pair.Value)
	case "consent":
		var set consent
		fatal = append(fatal, s.decode(pair.Value, &set)...)
		if !s.trusted {
			problems = append(problems, set.tame(s, pair.Value, c.Consent)...)
		}
		if set.RemoteFallback != nil {
			c.Consent.RemoteFallback = *set.RemoteFallback
		}
		if set.Vendors != nil {
			c.Consent.Vendors = *set.Vendors
			fatal = append(fatal, s.checkVendors(pair.Value, c)...)
		}
	case "network":
		if !s.trusted {
			problems = append(problems, s.untrusted(pair.Key, "the settings of network are"+onlyTrusted))
			return problems, fatal
		}
		var set network
		fatal = append(fatal, s.decode(pair.Value, &set)...)
		if set.CAFile != "" {
			c.CAFile = s.beside(set.CAFile)
			fatal = append(fatal, s.checkNetwork(valueOf(pair.Value, "ca_file"), provider.CAFile(c.CAFile))...)
		}
		if set.Proxy != "" {
			c.Proxy = set.Proxy
			fatal = append(fatal, s.checkNetwork(valueOf(pair.Value, "proxy"), provider.Proxy(c.Proxy))...)
		}
	default:
		fatal = append(fatal, s.at(pair.Key, "there is no setting %q%s", written(pair.Key), nearest.Hint(name, fieldNames(fileType))))
	}
	return problems, fatal
}

// judgedApart are the settings that are looked at for references to the
// environment where they are read.
var judgedApart = []string{"model", "fallbackModels", "modelPresets", "agent", "gateway", "network"}

// beside makes a path relative to the file that it stands in.
func (s *source) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(s.name), path)
}

func (c *Config) layerFallbacks(s *source, n ast.Node) (problems, fatal []Problem) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		if _, null := n.(*ast.NullNode); null {
			c.fallbacks = nil
			return nil, nil
		}
		return nil, []Problem{s.at(n, "expected a list of models, like [fast, openai/gpt-5.4]")}
	}
	c.fallbacks = nil
	for _, v := range list.Values {
		if p := s.withheld(v); p != nil {
			problems = append(problems, *p)
			continue
		}
		r, p := s.ref(v)
		if p != nil {
			problems = append(problems, skipped("fallback", p)...)
			continue
		}
		c.fallbacks = append(c.fallbacks, r)
	}
	return problems, nil
}

func (c *Config) layerPresets(s *source, n ast.Node) (problems, fatal []Problem) {
	presets, ok := n.(*ast.MappingNode)
	if !ok {
		return nil, []Problem{s.at(n, "expected presets by name")}
	}
	for _, pair := range presets.Values {
		name := pair.Key.GetToken().Value
		if p := s.withheld(pair.Value); p != nil {
			problems = append(problems, *p)
			if c.Presets[name] == nil { // else the user's own stays
				c.broken[name] = *p
			}
			continue
		}
		r, p := s.ref(pair.Value)
		if p == nil && r.candidate == nil {
			r.candidate = &Candidate{Model: r.name} // name: provider/model
		}
		delete(c.Presets, name)
		delete(c.broken, name)
		if p != nil {
			c.broken[name] = p[0]
			problems = append(problems, skipped(fmt.Sprintf("preset %q", name), p)...)
			continue
		}
		c.Presets[name] = r.candidate
	}
	return problems, nil
}

func (c *Config) layerCatalogue(s *source, n ast.Node) (fatal []Problem) {
	entries, ok := n.(*ast.MappingNode)
	if !ok {
		return []Problem{s.at(n, "expected models by name, like openai/gpt-5.4: {window: 100000}")}
	}
	for _, pair := range entries.Values {
		entry := new(Candidate)
		if p := s.decode(pair.Value, entry); p != nil {
			fatal = append(fatal, p...)
			continue
		}
		if m, ok := pair.Value.(*ast.MappingNode); ok {
			for _, setting := range m.Values {
				if name := setting.Key.GetToken().Value; !slices.Contains(abilities, name) {
					fatal = append(fatal, s.at(setting.Key, "%s says how a model is reached, not what it can do: set it in a preset", name))
				}
			}
		}
		entry.Provider = "" // what is left to check are words and numbers
		entry.Model = pair.Key.GetToken().Value
		fatal = append(fatal, entry.check(s, pair.Value)...)
		c.Catalogue[strings.ToLower(entry.Model)] = entry
	}
	return fatal
}

// abilities are the settings of a candidate that say what it can do.
var abilities = []string{"window", "max_output", "tools", "images", "files", "prefill", "schema", "replay", "replay_field", "price"}

func skipped(what string, problems []Problem) []Problem {
	for i := range problems {
		problems[i].Message = what + " skipped: " + problems[i].Message
	}
	return problems
}

// ref reads a model: its name, or a candidate written out.
func (s *source) ref(n ast.Node) (ref, []Problem) {
	r := ref{where: s.at(n, "")}
	if _, ok := n.(*ast.MappingNode); ok {
		r.candidate = new(Candidate)
		problems := s.twice(n)
		if problems == nil {
			problems = s.decode(n, r.candidate)
		}
		if problems == nil {
			problems = r.candidate.check(s, n)
		}
		return r, problems
	}
	problems := s.decode(n, &r.name)
	switch {
	case problems != nil:
	case r.name == "":
		problems = []Problem{s.at(n, "expected a model: the name of a preset, provider/model, or a candidate")}
	case len(r.name) > maxName:
		problems = []Problem{s.at(n, "no model has a name of %d characters", len(r.name))}
	}
	return r, problems
}

// maxName bounds the name of a model.
const maxName = 200

// checkNetwork tries an option out on a model that is not asked.
func (s *source) checkNetwork(n ast.Node, option provider.Option) []Problem {
	_, err := provider.Open("checked", provider.Provider("checked"), provider.BaseURL("http://127.0.0.1/v1"), provider.Key(provider.Secret{}), option)
	if err != nil {
		return []Problem{s.at(n, "%s", plainly(err))}
	}
	return nil
}

func (s *source) checkVendors(n ast.Node, c *Config) []Problem {
	known := provider.Providers()
	var problems []Problem
	for _, v := range c.Consent.Vendors {
		if !provider.IsProvider(v) && !c.names(v) {
			if hint := nearest.Hint(v, known); hint != "" {
				problems = append(problems, s.at(n, "vendors: there is no provider %q%s", v, hint))
			}
		}
	}
	return problems
}

// names reports whether a preset has a provider of this name.
func (c *Config) names(providerName string) bool {
	for _, p := range c.Presets {
		if p.Provider == providerName {
			return true
		}
	}
	return false
}
