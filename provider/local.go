package provider

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// probeTime bounds the question whether a server is there. A server on this
// machine answers within milliseconds.
const probeTime = 400 * time.Millisecond

// served is one model of a local server.
type served struct {
	name   string
	window int
	loaded bool
	// newest first, where the server tells
	modified string
}

// Local asks the local server that a spec names what it serves: "ollama" gives
// the model that it would answer with (one that is loaded, else the newest),
// "ollama/qwen3:8b" that model, with the context size that the server tells.
// It reports false for a provider that is none of this machine's, and where no
// such server or model is found.
func Local(ctx context.Context, spec string, env Env) (Found, bool) {
	name, model, _ := strings.Cut(spec, "/")
	v, ok := vendorNamed(name)
	if !ok || !v.local || env.alone() {
		return Found{}, false
	}
	f := probe(ctx, v, model, env)
	if f == nil {
		return Found{}, false
	}
	return *f, true
}

// probe asks a local server what it serves and picks the model of that name,
// or the best one; nil if the server is not there, is not the one that it is
// taken for, or serves no such model. The ports are used by many programs, so
// that its answer has to have the server's own form.
func probe(ctx context.Context, v vendor, model string, env Env) *Found {
	base, _ := v.baseURL(env)
	u, err := parseBase(base)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	// Own connections: these servers are asked once, and never over a proxy.
	transport := &http.Transport{DisableKeepAlives: true}
	key, _ := v.key(env)
	ask := asker{ctx: ctx, transport: transport, root: strings.TrimSuffix(u.String(), "/v1"), key: key}
	models := localServers[v.name](ask)
	models = slices.DeleteFunc(models, func(m served) bool {
		return m.name == "" || model == "" && noChat.MatchString(m.name) || model != "" && m.name != model && m.name != model+":latest"
	})
	if len(models) == 0 {
		return nil
	}
	best := slices.MaxFunc(models, func(a, b served) int {
		if a.loaded != b.loaded {
			if a.loaded {
				return 1
			}
			return -1
		}
		return strings.Compare(a.modified, b.modified)
	})
	if v.windowEnv != "" && best.window == 0 {
		best.window, _ = strconv.Atoi(env.get(v.windowEnv))
	}
	return &Found{Provider: v.name, Model: best.name, Source: u.Redacted(), Local: endpoint{base: u}.local(), Window: max(best.window, 0), base: u.String(), env: env}
}

// noChat are models that cannot hold a conversation.
var noChat = regexp.MustCompile(`(?i)embed|rerank|bge-|minilm|whisper|clip\b`)

// localServers ask one kind of server each.
var localServers = map[string]func(asker) []served{
	"ollama":   askOllama,
	"lmstudio": askLMStudio,
	"llamacpp": askLlamaCpp,
	"vllm":     askVLLM,
}

// askOllama: /api/tags lists what is installed, /api/ps what is loaded and
// with how large a context. Of a model that is not loaded the context is not
// known: it is not that of the model itself.
func askOllama(ask asker) []served {
	var tags, running struct {
		Models []struct {
			Name       string `json:"name"`
			ModifiedAt string `json:"modified_at"`
			Context    int    `json:"context_length"`
		} `json:"models"`
	}
	if !ask.get("/api/tags", &tags) || tags.Models == nil {
		return nil
	}
	ask.get("/api/ps", &running)
	var models []served
	for _, m := range tags.Models {
		s := served{name: m.Name, modified: m.ModifiedAt}
		for _, r := range running.Models {
			if r.Name == m.Name {
				s.loaded, s.window = true, r.Context
			}
		}
		models = append(models, s)
	}
	return models
}

// askLMStudio: its own list tells kinds, states and windows; the compatible
// one of older versions only names.
func askLMStudio(ask asker) []served {
	var own struct {
		Data []struct {
			ID     string `json:"id"`
			Type   string `json:"type"`
			State  string `json:"state"`
			Loaded int    `json:"loaded_context_length"`
		} `json:"data"`
	}
	var models []served
	if ask.get("/api/v0/models", &own) && own.Data != nil {
		for _, m := range own.Data {
			if m.Type == "llm" || m.Type == "vlm" {
				models = append(models, served{name: m.ID, window: m.Loaded, loaded: m.State == "loaded"})
			}
		}
		return models
	}
	list := ask.list()
	for _, m := range list {
		models = append(models, served{name: m.ID})
	}
	return models
}

// askLlamaCpp: it signs its list, and /props tells the context of a slot.
func askLlamaCpp(ask asker) []served {
	var models []served
	for _, m := range ask.list() {
		if m.OwnedBy == "llamacpp" {
			models = append(models, served{name: m.ID, window: m.Meta.Context})
		}
	}
	if len(models) == 0 {
		return nil
	}
	var props struct {
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if ask.get("/props", &props) && props.Settings.Context > 0 {
		for i := range models {
			models[i].window = props.Settings.Context
		}
	}
	return models
}

// askVLLM: its list is signed and tells the window that it was started with.
func askVLLM(ask asker) []served {
	var models []served
	for _, m := range ask.list() {
		if m.OwnedBy == "vllm" || m.OwnedBy == "sglang" {
			models = append(models, served{name: m.ID, window: m.MaxModelLen})
		}
	}
	return models
}

// listed is an entry of the compatible list of models.
type listed struct {
	ID          string `json:"id"`
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len"`
	Meta        struct {
		Context int `json:"n_ctx"`
	} `json:"meta"`
}

// asker asks one server.
type asker struct {
	ctx       context.Context
	transport http.RoundTripper
	root      string
	key       Secret
}

func (a asker) list() []listed {
	var list struct {
		Object string   `json:"object"`
		Data   []listed `json:"data"`
	}
	if !a.get("/v1/models", &list) || list.Object != "list" {
		return nil
	}
	return list.Data
}

func (a asker) get(path string, into any) bool {
	r, err := http.NewRequestWithContext(a.ctx, http.MethodGet, a.root+path, nil)
	if err != nil {
		return false
	}
	if key := a.key.Reveal(); key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := a.transport.RoundTrip(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
	return err == nil && json.Unmarshal(text, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) == nil
}
