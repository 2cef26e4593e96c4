package provider

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	ninelives "github.com/ninelives-ai/ninelives"
)

// DefaultWindow is the context window of a model that nothing is known about.
//
// Source: design 001, the last step of its resolution order.
const DefaultWindow = 16_000

// The words of ninelives.Capabilities.WindowSource, in the order in which a
// window is looked for.
const (
	windowSetting = "setting"
	windowExact   = "exact"
	windowFamily  = "family"
	windowLearnt  = "learnt"
	windowDefault = "default"
)

//go:embed catalogue.json
var catalogueJSON []byte

// catalogue is the embedded knowledge about models, as of a day. It is data
// from the vendors' public pages; what a configuration says goes before it.
type catalogue struct {
	AsOf      string            `json:"asOf"`
	Providers []providerEntry   `json:"providers"`
	Families  []catalogueFamily `json:"families"`
	Models    []catalogueModel  `json:"models"`
}

// abilities are what an entry may say; nil and zero mean that it does not.
type abilities struct {
	MaxOutput   int                      `json:"maxOutput"`
	Tools       *bool                    `json:"tools"`
	Images      bool                     `json:"images"`
	Files       bool                     `json:"files"`
	Prefill     bool                     `json:"prefill"`
	Schema      *ninelives.SchemaSupport `json:"schema"`
	Replay      ninelives.ReplayRule     `json:"replay"`
	ReplayField string                   `json:"replayField"`
}

// providerEntry is what a provider's API can do with any model.
type providerEntry struct {
	Name string `json:"name"`
	abilities
}

// catalogueFamily describes models that begin with Prefix and are not listed.
type catalogueFamily struct {
	Prefix string `json:"prefix"`
	// Provider is the maker, who serves a bare name; empty if it serves none itself.
	Provider string `json:"provider"`
	Window   int    `json:"window"`
	abilities
}

// catalogueModel is one model at one provider; prices hold there only.
type catalogueModel struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Window   int    `json:"window"`
	abilities
	Price struct {
		Input      float64 `json:"input"`
		Output     float64 `json:"output"`
		CacheRead  float64 `json:"cacheRead"`
		CacheWrite float64 `json:"cacheWrite"`
	} `json:"price"`
	Note string `json:"note"`
}

var theCatalogue = sync.OnceValue(func() *catalogue {
	var c catalogue
	if err := json.Unmarshal(catalogueJSON, &c, json.RejectUnknownMembers(true)); err != nil {
		panic("provider: the embedded catalogue is broken: " + err.Error())
	}
	return &c
})

// Known gives what the catalogue knows about a model at a provider. The window
// is that of the model itself ("exact"), else that of its family by the
// longest prefix, which also covers a dated variant of a listed model
// ("family"), else DefaultWindow ("default").
//
// Of an unknown model the abilities are assumed that most have: a wrong guess
// costs one repaired request, while leaving out an image silently would change
// the question.
//
// Source: design 001, "Known context windows" and the order below it.
func Known(provider, model string) ninelives.Capabilities {
	c := theCatalogue()
	caps := ninelives.Capabilities{Window: DefaultWindow, WindowSource: windowDefault, Tools: true, Images: true, Replay: ninelives.ReplayIgnore}
	for _, p := range c.Providers {
		if p.Name == provider {
			p.apply(&caps)
		}
	}
	if m, how := c.model(provider, model); m != nil {
		caps.Window, caps.WindowSource = m.Window, how
		caps.Images, caps.Files, caps.Prefill = m.Images, m.Files, m.Prefill
		m.apply(&caps)
		if m.Provider == provider {
			caps.Price = ninelives.Price(m.Price)
		}
		return caps
	}
	if f := c.family(model); f != nil {
		caps.Window, caps.WindowSource = f.Window, windowFamily
		caps.Images, caps.Files, caps.Prefill = f.Images || saysVision.MatchString(plainName(model)), f.Files, f.Prefill
		f.apply(&caps)
	}
	return caps
}

// apply writes what the entry says over what is assumed.
func (a abilities) apply(c *ninelives.Capabilities) {
	if a.MaxOutput != 0 {
		c.MaxOutput = a.MaxOutput
	}
	if a.Tools != nil {
		c.Tools = *a.Tools
	}
	if a.Schema != nil {
		c.Schema = *a.Schema
	}
	if a.Replay != "" {
		c.Replay, c.ReplayField = a.Replay, a.ReplayField
	}
}

// model finds the listed model that a name means: at the provider first, then
// at any, then without the date of its snapshot.
func (c *catalogue) model(provider, name string) (*catalogueModel, string) {
	plain := plainName(name)
	for _, try := range []struct{ name, how string }{
		{strings.ToLower(name), windowExact}, {plain, windowExact}, {undated(plain), windowFamily},
	} {
		var elsewhere *catalogueModel
		for i := range c.Models {
			m := &c.Models[i]
			if listed := strings.ToLower(m.Name); listed != try.name && plainName(listed) != try.name {
				continue
			}
			if m.Provider == provider {
				return m, try.how
			}
			if elsewhere == nil {
				elsewhere = m
			}
		}
		if elsewhere != nil {
			return elsewhere, try.how
		}
	}
	return nil, ""
}

func (c *catalogue) family(name string) *catalogueFamily {
	plain := plainName(name)
	var best *catalogueFamily
	for i := range c.Families {
		f := &c.Families[i]
		if strings.HasPrefix(plain, f.Prefix) && (best == nil || len(f.Prefix) > len(best.Prefix)) {
			best = f
		}
	}
	return best
}

// makers lists who serves a bare model name, the maker before the others.
func (c *catalogue) makers(name string) []string {
	var makers []string
	add := func(p string) {
		if p == "" {
			return
		}
		for _, m := range makers {
			if m == p {
				return
			}
		}
		makers = append(makers, p)
	}
	// A path before the name is a host's, and part of its name for the model.
	if f := c.family(name); f != nil && !strings.Contains(name, "/") {
		add(f.Provider)
	}
	for _, m := range c.Models {
		if strings.EqualFold(m.Name, name) {
			add(m.Provider)
		}
	}
	return makers
}

var (
	snapshotDate = regexp.MustCompile(`-(20\d{6}|20\d\d-\d\d-\d\d|\d\d-\d{4}|\d{4}|latest|preview)$`)
	pForPoint    = regexp.MustCompile(`(\d)p(\d)`)
	saysVision   = regexp.MustCompile(`(^|[-_.]|\d)(vl|vision|omni|v)($|[-_.])`)
	bedrockEnd   = regexp.MustCompile(`-v\d+$`)
)

// plainName takes off what hosts add to a maker's model name: the path before
// it, a region, a tag ("qwen3:8b", "…:free"), a version after "@".
func plainName(name string) string {
	n := strings.ToLower(name)
	if i := strings.LastIndexByte(n, '/'); i >= 0 {
		n = n[i+1:]
	}
	if i := strings.IndexAny(n, ":@"); i >= 0 {
		n = n[:i]
	}
	n = strings.TrimPrefix(n, "zai-")
	n = pForPoint.ReplaceAllString(n, "$1.$2")
	if i := strings.Index(n, "anthropic."); i >= 0 {
		n = bedrockEnd.ReplaceAllString(n[i+len("anthropic."):], "")
	}
	if strings.HasPrefix(n, "claude-") {
		n = strings.ReplaceAll(n, ".", "-")
	}
	return n
}

// undated takes off the date of a snapshot and its like.
func undated(plain string) string {
	for {
		n := snapshotDate.ReplaceAllString(plain, "")
		if n == plain {
			return n
		}
		plain = n
	}
}
