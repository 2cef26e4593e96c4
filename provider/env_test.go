package provider

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

func specs(found []Found) []string {
	var list []string
	for _, f := range found {
		list = append(list, f.Spec()+" by "+f.Source)
	}
	return list
}

func TestKeysBecomeCandidatesInASensibleOrder(t *testing.T) {
	env := environ(LocalVariable, "off",
		"GROQ_API_KEY", "k", "OPENAI_API_KEY", "k", "ANTHROPIC_API_KEY", " k\n", "ZHIPUAI_API_KEY", "k", "GOOGLE_API_KEY", "k",
		"MISTRAL_API_KEY", "", "OPENROUTER_API_KEY", "k", "HF_TOKEN", "k")
	want := []string{
		"anthropic/claude-sonnet-4-6 by ANTHROPIC_API_KEY",
		"openai/gpt-5.4 by OPENAI_API_KEY",
		"gemini/gemini-3.5-flash by GOOGLE_API_KEY",
		"zai/glm-5.1 by ZHIPUAI_API_KEY",
		"groq/openai/gpt-oss-120b by GROQ_API_KEY",
		"openrouter/anthropic/claude-sonnet-4.6 by OPENROUTER_API_KEY",
	}
	if got := specs(Discover(context.Background(), env)); !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAzureNeedsKeyEndpointAndDeployment(t *testing.T) {
	pairs := []string{LocalVariable, "off", "AZURE_OPENAI_API_KEY", "k", "AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com", "AZURE_OPENAI_DEPLOYMENT", "prod", "AZURE_OPENAI_API_VERSION", "2024-10-21"}
	found := Discover(context.Background(), environ(pairs...))
	if want := []string{"azure/prod by AZURE_OPENAI_API_KEY"}; !slices.Equal(specs(found), want) {
		t.Fatalf("found %q, want %q", specs(found), want)
	}
	m, err := found[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.(*Model).endpoint.url(true).String(), "https://r.openai.azure.com/openai/deployments/prod/chat/completions?api-version=2024-10-21"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i := 2; i < len(pairs)-2; i += 2 {
		less := append(slices.Clone(pairs[:i]), pairs[i+2:]...)
		if got := specs(Discover(context.Background(), environ(less...))); len(got) != 0 {
			t.Errorf("without %s: %q", pairs[i], got)
		}
	}
}

// answers serves fixed bodies by path; anything else is not found.
func answers(t *testing.T, bodies map[string]string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := bodies[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// nowhere are variables that lead every local server to a closed port.
var nowhere = []string{"OLLAMA_HOST", "127.0.0.1:1", "LMSTUDIO_BASE_URL", "http://127.0.0.1:1", "LLAMACPP_BASE_URL", "http://127.0.0.1:1", "VLLM_BASE_URL", "http://127.0.0.1:1"}

func TestServersOnThisMachineAreFoundByTheirOwnAnswers(t *testing.T) {
	for _, c := range []struct {
		name, variable string
		bodies         map[string]string
		want           string
		window         int
	}{
		{"Ollama, newest", "OLLAMA_HOST", map[string]string{
			"/api/tags": `{"models":[{"name":"old:1b","modified_at":"2026-01-01T00:00:00Z"},{"name":"new:8b","modified_at":"2026-11-01T00:00:00Z"},{"name":"nomic-embed-text:latest","modified_at":"2026-11-20T00:00:00Z"}]}`,
		}, "ollama/new:8b", 0},
		{"Ollama, loaded", "OLLAMA_HOST", map[string]string{
			"/api/tags": `{"models":[{"name":"old:1b","modified_at":"2026-01-01T00:00:00Z"},{"name":"new:8b","modified_at":"2026-11-01T00:00:00Z"}]}`,
			"/api/ps":   `{"models":[{"name":"old:1b","context_length":4096}]}`,
		}, "ollama/old:1b", 4096},
		{"Ollama without models", "OLLAMA_HOST", map[string]string{"/api/tags": `{"models":[]}`}, "", 0},
		{"Ollama with an embedding model only", "OLLAMA_HOST", map[string]string{"/api/tags": `{"models":[{"name":"bge-m3"}]}`}, "", 0},
		{"something else at Ollama's port", "OLLAMA_HOST", map[string]string{"/": "hello", "/api/tags": `<html>`}, "", 0},
		{"LM Studio", "LMSTUDIO_BASE_URL", map[string]string{
			"/api/v0/models": `{"data":[{"id":"e","type":"embeddings","state":"loaded"},{"id":"a","type":"llm","state":"not-loaded","max_context_length":131072},{"id":"b","type":"vlm","state":"loaded","loaded_context_length":8192}]}`,
		}, "lmstudio/b", 8192},
		{"LM Studio, older", "LMSTUDIO_BASE_URL", map[string]string{"/v1/models": `{"object":"list","data":[{"id":"a","owned_by":"organization_owner"}]}`}, "lmstudio/a", 0},
		{"llama.cpp", "LLAMACPP_BASE_URL", map[string]string{
			"/v1/models": `{"object":"list","data":[{"id":"qwen.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":40960}}]}`,
			"/props":     `{"default_generation_settings":{"n_ctx":8192}}`,
		}, "llamacpp/qwen.gguf", 8192},
		{"another server at llama.cpp's port", "LLAMACPP_BASE_URL", map[string]string{"/v1/models": `{"object":"list","data":[{"id":"x","owned_by":"someone"}]}`}, "", 0},
		{"vLLM", "VLLM_BASE_URL", map[string]string{"/v1/models": `{"object":"list","data":[{"id":"Qwen/Qwen3-0.6B","owned_by":"vllm","max_model_len":2048}]}`}, "vllm/Qwen/Qwen3-0.6B", 2048},
		{"a web site at vLLM's port", "VLLM_BASE_URL", map[string]string{"/": "hello"}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := answers(t, c.bodies)
			env := environ(append([]string{c.variable, url}, nowhere...)...)
			found := Discover(context.Background(), env)
			if c.want == "" {
				if len(found) != 0 {
					t.Errorf("found %q", specs(found))
				}
				return
			}
			if want := []string{c.want + " by " + url + "/v1"}; !slices.Equal(specs(found), want) {
				t.Fatalf("found %q, want %q", specs(found), want)
			}
			if !found[0].Local || found[0].Window != c.window {
				t.Errorf("%+v", found[0])
			}
			m, err := found[0].Open()
			if err != nil {
				t.Fatal(err)
			}
			k, _ := ninelives.CandidateOf(m)
			if k.Name() != c.want || !k.Local || c.window != 0 && (k.Window != c.window || k.WindowSource != "learnt") {
				t.Errorf("%+v", k)
			}
			name, _, _ := strings.Cut(c.want, "/")
			if one, ok := Local(context.Background(), name, env); !ok || one.Spec() != c.want {
				t.Errorf("Local(%s) = %v, %v", name, one.Spec(), ok)
			}
		})
	}
}

func TestALocalModelIsAskedForByName(t *testing.T) {
	url := answers(t, map[string]string{
		"/api/tags": `{"models":[{"name":"old:1b"},{"name":"new:latest"},{"name":"bge-m3:latest"}]}`,
		"/api/ps":   `{"models":[{"name":"old:1b","context_length":4096}]}`,
	})
	env := environ("OLLAMA_HOST", url, "OLLAMA_CONTEXT_LENGTH", "32768")
	for spec, window := range map[string]int{"ollama/old:1b": 4096, "ollama/new": 32768, "ollama/bge-m3": 32768, "ollama/none": -1, "openai/old:1b": -1, "none": -1} {
		f, ok := Local(context.Background(), spec, env)
		if ok != (window >= 0) || ok && f.Window != window {
			t.Errorf("Local(%s) = %+v, %v; want window %d", spec, f, ok, window)
		}
	}
}

func TestAServerThatHangsDoesNotHoldUpTheStart(t *testing.T) {
	hang := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(hang)
	env := environ(append([]string{"VLLM_BASE_URL", srv.URL, "OPENAI_API_KEY", "k"}, nowhere...)...)
	if got := specs(Discover(context.Background(), env)); !slices.Equal(got, []string{"openai/gpt-5.4 by OPENAI_API_KEY"}) {
		t.Errorf("found %q", got)
	}
}

func TestOllamasHostIsWrittenAsItsUsersWriteIt(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1":                "http://127.0.0.1:11434/v1",
		"0.0.0.0":                  "http://127.0.0.1:11434/v1",
		"0.0.0.0:8888":             "http://127.0.0.1:8888/v1",
		":8888":                    "http://127.0.0.1:8888/v1",
		"gpu.lan":                  "http://gpu.lan:11434/v1",
		"http://gpu.lan:1234":      "http://gpu.lan:1234/v1",
		"http://gpu.lan:1234/":     "http://gpu.lan:1234/v1",
		"https://ollama.example":   "https://ollama.example/v1",
		"http://gpu.lan/ollama/v1": "http://gpu.lan/ollama/v1",
		"[::1]:8888":               "http://[::1]:8888/v1",
		"::1":                      "http://[::1]:11434/v1",
	} {
		_, m := candidateOf(t, "ollama/x", Environment(environ("OLLAMA_HOST", host)))
		if got := m.endpoint.base.String(); got != want {
			t.Errorf("OLLAMA_HOST=%s: %s, want %s", host, got, want)
		}
	}
}

func TestConsent(t *testing.T) {
	local, remote, other := ninelives.Candidate{Provider: "ollama", Local: true}, ninelives.Candidate{Provider: "openai"}, ninelives.Candidate{Provider: "groq"}
	for _, c := range []struct {
		name    string
		consent Consent
		chain   []ninelives.Candidate
		kept    []bool
	}{
		{"what begins here stays here", Consent{}, []ninelives.Candidate{local, remote, local, other}, []bool{true, false, true, false}},
		{"unless it may leave", Consent{RemoteFallback: true}, []ninelives.Candidate{local, remote}, []bool{true, true}},
		{"what begins elsewhere may come here", Consent{}, []ninelives.Candidate{remote, local, other}, []bool{true, true, true}},
		{"only allowed vendors", Consent{Vendors: []string{"OpenAI"}}, []ninelives.Candidate{remote, other, local}, []bool{true, false, false}},
		{"the chain begins with the first that is allowed", Consent{Vendors: []string{"groq", "openai"}}, []ninelives.Candidate{local, remote, other}, []bool{false, true, true}},
		{"an alias is as good", Consent{Vendors: []string{"kimi"}}, []ninelives.Candidate{{Provider: "moonshot"}}, []bool{true}},
	} {
		for i, reason := range c.consent.Judge(c.chain) {
			if (reason == "") != c.kept[i] {
				t.Errorf("%s: candidate %d: %q, want kept %v", c.name, i, reason, c.kept[i])
			}
		}
	}
}
