package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/nearest"
	"github.com/ninelives-ai/ninelives/provider"
)

// Use puts models named on a command line over those of the files: the first
// one, the fallbacks, or both. A name is that of a preset, a provider, or
// provider/model. Empty leaves what is set.
func (c *Config) Use(model string, fallbacks []string) {
	if c.own != nil {
		c.own.Use(model, fallbacks)
	}
	if model != "" {
		c.model = &ref{name: model}
	}
	if len(fallbacks) > 0 {
		c.fallbacks = nil
		for _, f := range fallbacks {
			c.fallbacks = append(c.fallbacks, ref{name: f})
		}
	}
}

// ErrNoModel says that neither the configuration nor the environment names a
// model.
var ErrNoModel = errors.New("no model: set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, start a local server such as Ollama, or name a model")

// Chain opens the models of the configuration: the first one, then the
// fallbacks. Where no first model is set, the candidates that the environment
// offers take its place (see provider.Discover). What consent does not allow
// and what cannot be opened is left out, each with a problem that says so; if
// that is the first model, or nothing is left, it is an error. A model that is
// named twice is asked once.
func (c *Config) Chain(ctx context.Context, env provider.Env) ([]ninelives.Model, []Problem, error) {
	var models []ninelives.Model
	var problems []Problem
	if c.model != nil {
		m, err := c.open(ctx, *c.model, env)
		if err != nil {
			return nil, nil, err
		}
		models = append(models, m)
	} else {
		for _, f := range provider.Discover(ctx, env) {
			m, err := f.Open(c.options()...)
			if err != nil {
				problems = append(problems, Problem{Message: f.Spec() + " skipped: " + plainly(err), Err: err})
				continue
			}
			models = append(models, m)
		}
	}
	for _, r := range c.fallbacks {
		m, err := c.open(ctx, r, env)
		if err != nil {
			var p Problem
			if !errors.As(err, &p) {
				p = Problem{Message: plainly(err), Err: err}
			}
			p.Message = "fallback skipped: " + p.Message
			problems = append(problems, p)
			continue
		}
		models = append(models, m)
	}
	kept, refused := c.consented(models)
	problems = append(problems, refused...)
	switch {
	case len(models) == 0:
		return nil, problems, ErrNoModel
	case len(kept) == 0, c.model != nil && kept[0] != models[0]:
		return nil, problems, refused[0]
	}
	if err := c.leaves(ctx, kept[0], env); err != nil {
		return nil, problems, err
	}
	return kept, problems, nil
}

// consented leaves out what must not be asked, and repetitions.
func (c *Config) consented(models []ninelives.Model) ([]ninelives.Model, []Problem) {
	chain := make([]ninelives.Candidate, len(models))
	for i, m := range models {
		chain[i], _ = ninelives.CandidateOf(m)
	}
	var kept []ninelives.Model
	var problems []Problem
	seen := map[[4]string]bool{}
	for i, reason := range c.Consent.Judge(chain) {
		identity := [4]string{chain[i].Provider, chain[i].Model, chain[i].Host, chain[i].Key}
		switch {
		case seen[identity]:
		case reason != "":
			problems = append(problems, Problem{Message: models[i].Name() + " skipped: " + reason + " (the setting consent)"})
		default:
			kept = append(kept, models[i])
		}
		seen[identity] = true
	}
	return kept, problems
}

// options are what holds for every model.
func (c *Config) options() []provider.Option {
	opts := []provider.Option{provider.CAFile(c.CAFile), provider.Proxy(c.Proxy)}
	if len(c.Catalogue) > 0 {
		opts = append(opts, provider.Describe(func(k *ninelives.Candidate) {
			if entry := c.Catalogue[strings.ToLower(k.Name())]; entry != nil {
				entry.capabilities(&k.Capabilities)
			}
		}))
	}
	if c.Window > 0 {
		opts = append(opts, provider.Window(c.Window))
	}
	return opts
}

// open opens one model.
func (c *Config) open(ctx context.Context, r ref, env provider.Env) (ninelives.Model, error) {
	m, err := c.openRef(ctx, r, env)
	var placed Problem
	if errors.As(err, &placed) {
		return nil, placed // where the mistake is, not where the preset is named
	}
	if err != nil && r.where.Line > 0 {
		p := r.where
		p.Message, p.Err = plainly(err), err
		return nil, p
	}
	return m, err
}

// plainly is an error without the name of the package that it comes from.
func plainly(err error) string { return strings.TrimPrefix(err.Error(), "provider: ") }

func (c *Config) openRef(ctx context.Context, r ref, env provider.Env) (ninelives.Model, error) {
	candidate := r.candidate
	if candidate == nil {
		candidate = c.Presets[r.name]
	}
	if why, broken := c.broken[r.name]; candidate == nil && broken {
		why.Message = fmt.Sprintf("the preset %q is broken: %s", r.name, why.Message)
		return nil, why
	}
	if candidate != nil {
		return c.openCandidate(ctx, *candidate, env)
	}
	if found, ok := provider.Local(ctx, r.name, env); ok {
		return found.Open(c.options()...)
	}
	m, err := provider.Open(r.name, append(c.options(), provider.Environment(env))...)
	if err != nil && !strings.Contains(r.name, "/") && len(c.Presets) > 0 {
		if hint := nearest.Hint(r.name, slices.Sorted(maps.Keys(c.Presets))); hint != "" {
			return nil, fmt.Errorf("there is no preset %q%s", r.name, hint)
		}
	}
	return m, err
}

func (c *Config) openCandidate(ctx context.Context, k Candidate, env provider.Env) (ninelives.Model, error) {
	opts := append(c.options(), provider.Environment(env), provider.Capabilities(k.capabilities))
	if k.BaseURL == "" {
		if found, ok := provider.Local(ctx, strings.TrimSuffix(k.Provider+"/"+k.Model, "/"), env); ok {
			k.Model = found.Model
			opts = append(opts, provider.Learnt(found.Window))
		}
	}
	add := func(set bool, o provider.Option) {
		if set {
			opts = append(opts, o)
		}
	}
	add(k.Provider != "", provider.Provider(k.Provider))
	add(k.BaseURL != "", provider.BaseURL(k.BaseURL))
	add(!k.Key.Empty(), provider.Key(k.Key.Secret))
	add(k.Account != "", provider.Account(k.Account))
	add(k.Protocol != "", provider.Protocol(ninelives.Protocol(k.Protocol)))
	for _, p := range k.Protocols {
		add(true, provider.AlsoSpeaks(ninelives.Protocol(p)))
	}
	add(k.Dialect != "", provider.Dialect(k.Dialect))
	add(k.APIVersion != "", provider.APIVersion(k.APIVersion))
	add(k.Window != 0, provider.Window(k.Window))
	if k.KeyEnv != "" {
		text, _ := lookup(env, k.KeyEnv)
		if text == "" {
			return nil, &provider.KeyError{Provider: k.name(), Variable: k.KeyEnv}
		}
		opts = append(opts, provider.Key(provider.NewSecret(text)))
	}
	for _, name := range slices.Sorted(maps.Keys(k.Headers)) {
		opts = append(opts, provider.Header(name, k.Headers[name]))
	}
	return provider.Open(k.Model, opts...)
}

func (k Candidate) name() string {
	if k.Provider != "" && k.Model != "" {
		return k.Provider + "/" + k.Model
	}
	return k.Provider + k.Model
}

// capabilities writes what is set over what is known.
func (k Candidate) capabilities(c *ninelives.Capabilities) {
	if k.Window != 0 {
		c.Window = k.Window
	}
	if k.MaxOutput != 0 {
		c.MaxOutput = k.MaxOutput
	}
	put(&c.Tools, k.Tools)
	put(&c.Images, k.Images)
	put(&c.Files, k.Files)
	put(&c.Prefill, k.Prefill)
	if k.Schema != "" {
		c.Schema = ninelives.SchemaSupport(k.Schema)
		if k.Schema == "none" {
			c.Schema = ninelives.SchemaNone
		}
	}
	if k.Replay != "" {
		c.Replay = ninelives.ReplayRule(k.Replay)
	}
	if k.ReplayField != "" {
		c.ReplayField = k.ReplayField
	}
	if k.Price != nil {
		c.Price = ninelives.Price(*k.Price)
	}
}
