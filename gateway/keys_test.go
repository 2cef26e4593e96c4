package gateway

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

func keyed(names ...string) *clients {
	var keys []Key
	for _, n := range names {
		keys = append(keys, Key{Name: n, Hash: HashKey("key-of-" + n)})
	}
	return newClients(keys)
}

func TestAClientIsKnownByItsKeyWhereverItIs(t *testing.T) {
	c := keyed("a", "b", "c")
	for _, h := range []http.Header{
		{"Authorization": {"Bearer key-of-b"}},
		{"Authorization": {"bearer  key-of-b"}},
		{"X-Api-Key": {"key-of-b"}},
		{"X-Goog-Api-Key": {"key-of-b"}},
		{"Authorization": {"Bearer left-over"}, "X-Api-Key": {"key-of-b"}},
		{"Authorization": {"Basic eDp5"}, "X-Api-Key": {"key-of-b"}},
	} {
		if who, err := c.who(h, nil); err != nil || who.Name != "b" {
			t.Errorf("%v: %v, %v", h, who, err)
		}
	}
	if who, err := c.who(http.Header{}, url.Values{"key": {"key-of-c"}}); err != nil || who.Name != "c" {
		t.Errorf("by the query: %v, %v", who, err)
	}
	for _, h := range []http.Header{{}, {"Authorization": {"Bearer key-of-d"}}, {"X-Api-Key": {"KEY-OF-A"}}, {"Authorization": {"Bearer"}}, {"X-Api-Key": {" "}}} {
		var no *refused
		if _, err := c.who(h, nil); !errors.As(err, &no) || no.Trouble != troubleKey {
			t.Errorf("%v: %v", h, err)
		}
	}
	if who, err := newClients(nil).who(http.Header{"Authorization": {"Bearer any"}}, nil); err != nil || who.Name != "" {
		t.Errorf("without keys: %v, %v", who, err)
	}
}

// named is a model that is only ever named.
type namedModel struct {
	ninelives.Model
	c ninelives.Candidate
}

func (m namedModel) Name() string                   { return m.c.Name() }
func (m namedModel) Candidate() ninelives.Candidate { return m.c }

func priced(provider, model string, price float64) Target {
	return Target{Model: namedModel{c: ninelives.Candidate{Provider: provider, Model: model,
		Capabilities: ninelives.Capabilities{Price: ninelives.Price{Input: price, Output: price}}}}}
}

func TestTheRouteThatACallTakes(t *testing.T) {
	routes := []Route{
		{Name: "default", Targets: []Target{priced("anthropic", "claude-x", 3), priced("openai", "gpt-y", 2)}},
		{Name: "fast", Targets: []Target{priced("openai", "gpt-mini", 1)}, Match: []string{"gpt-*", "o*-mini"}},
		{Name: "gpt-4o", Targets: []Target{priced("openai", "gpt-y", 1)}, Match: []string{"gpt-4*"}},
	}
	for _, c := range []struct {
		model, forced, route string
		first                int
		by                   chosenBy
	}{
		{"", "", "default", -1, byDefault},
		{"fast", "", "fast", -1, byRoute},
		{"gpt-4o", "", "gpt-4o", -1, byRoute},
		{"openai/gpt-y", "", "default", 1, byTarget},
		{"gpt-y", "", "default", 1, byTarget},
		{"gpt-mini", "", "fast", 0, byTarget},
		{"gpt-5", "", "fast", -1, byPattern},
		{"gpt-4-turbo", "", "gpt-4o", -1, byPattern},
		{"o3-mini", "", "fast", -1, byPattern},
		{"llama", "", "default", -1, byOpen},
		{"claude-x", "fast", "fast", -1, byRoute},
		{"gpt-y", "gpt-4o", "gpt-4o", 0, byRoute},
		{"route:fast", "", "fast", -1, byRoute},
	} {
		ch, ok := find(routes, c.model, c.forced)
		if !ok || ch.route.Name != c.route || ch.first != c.first || ch.by != c.by {
			t.Errorf("%q (forced %q): %+v, %v", c.model, c.forced, ch, ok)
		}
	}
	for _, c := range [][2]string{{"route:none", ""}, {"x", "none"}} {
		if _, ok := find(routes, c[0], c[1]); ok {
			t.Errorf("%v goes somewhere", c)
		}
	}
	// A key that may use one route may not reach another by a name that nobody knows.
	only := &client{Key{Name: "k", Routes: []string{"fast", "gpt-4*"}}}
	for model, may := range map[string]bool{"fast": true, "gpt-5": true, "gpt-4o": true, "gpt-y": false, "llama": false, "": false, "gpt-mini": true} {
		ch, _ := find(routes, model, "")
		if only.mayUse(ch) != may {
			t.Errorf("%q: may %v, want %v", model, !may, may)
		}
	}
}
