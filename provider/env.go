package provider

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Env looks up an environment variable; nil is the process's environment.
type Env func(name string) (string, bool)

func (e Env) get(name string) string {
	lookup := os.LookupEnv
	if e != nil {
		lookup = e
	}
	text, _ := lookup(name)
	return strings.TrimSpace(text)
}

// LocalVariable switches the search for servers on this machine off when it
// is set to "off".
const LocalVariable = "NINELIVES_LOCAL"

// alone reports that servers on this machine are not to be asked.
func (e Env) alone() bool { return strings.EqualFold(e.get(LocalVariable), "off") }

// Found is a candidate that the environment offers.
type Found struct {
	Provider string
	Model    string
	// Source is what offers it: the variable of its key, or the server's URL.
	Source string
	// Local says that requests do not leave this machine.
	Local bool
	// Window is what the server tells about its context window, in tokens; 0
	// if it tells nothing.
	Window int

	base string
	env  Env
}

// Spec is "provider/model", as Open takes it.
func (f Found) Spec() string { return f.Provider + "/" + f.Model }

// Candidate is what consent is judged by.
func (f Found) Candidate() ninelives.Candidate {
	return ninelives.Candidate{Provider: f.Provider, Model: f.Model, Local: f.Local}
}

// Open opens the candidate; opts go before what was found.
func (f Found) Open(opts ...Option) (ninelives.Model, error) {
	found := []Option{Provider(f.Provider), Environment(f.env), Learnt(f.Window)}
	if f.base != "" {
		found = append(found, BaseURL(f.base))
	}
	return Open(f.Model, append(found, opts...)...)
}

// Discover finds the candidates that the environment offers, each with its
// provider's default model: the vendors whose keys are set, then the servers
// that answer on this machine (Ollama, LM Studio, llama.cpp, vLLM at their
// usual ports or where their variables say). Only those servers are asked, at
// most for the time of one probe; nothing is sent to a vendor.
func Discover(ctx context.Context, env Env) []Found {
	var found []Found
	for _, v := range vendors {
		if f, ok := v.found(env); ok {
			found = append(found, f)
		}
	}
	if env.alone() {
		return found
	}
	var local []vendor
	for _, v := range vendors {
		if v.local {
			local = append(local, v)
		}
	}
	servers := make([]*Found, len(local))
	var wg sync.WaitGroup
	for i, v := range local {
		wg.Go(func() { servers[i] = probe(ctx, v, "", env) })
	}
	wg.Wait()
	for _, s := range servers {
		if s != nil {
			found = append(found, *s)
		}
	}
	return found
}

// found is the vendor's candidate, if its key is set.
func (v vendor) found(env Env) (Found, bool) {
	if v.local || v.named {
		return Found{}, false
	}
	key, variable := v.key(env)
	model := v.defaultModel(env)
	base, _ := v.baseURL(env)
	if key.Empty() || model == "" || base == "" {
		return Found{}, false
	}
	f := Found{Provider: v.name, Model: model, Source: variable, env: env}
	if u, err := parseBase(base); err == nil {
		f.Local = endpoint{base: u}.local()
	}
	return f, true
}

// KeyVariables are the environment variables that may hold a provider's key.
func KeyVariables() []string {
	var names []string
	for _, v := range vendors {
		names = append(names, v.keyEnv...)
	}
	return names
}

// WithoutKeys is an environment, in the form of os.Environ, without the keys of
// providers and without the further variables that are named: for programs that
// have no business with them.
func WithoutKeys(environ []string, further ...string) []string {
	hidden := append(KeyVariables(), further...)
	var bare []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		// Windows takes a variable's name in any case.
		if !slices.ContainsFunc(hidden, func(h string) bool { return strings.EqualFold(h, name) }) {
			bare = append(bare, variable)
		}
	}
	return bare
}
