package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/provider"
)

// seen is a JSON object that a path answers.
func seen(t *testing.T, url string, header ...string) (int, map[string]any) {
	t.Helper()
	resp, text := get(t, url, header...)
	var body map[string]any
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatalf("%s: %s", err, text)
	}
	return resp.StatusCode, body
}

func TestModelsAreListedInTheCallersWords(t *testing.T) {
	server := served(t, func(http.ResponseWriter, *http.Request) { t.Error("a provider was asked") }, nil)
	ids := func(list any, name string) (ids []string) {
		for _, m := range list.([]any) {
			ids = append(ids, m.(map[string]any)[name].(string))
		}
		return ids
	}
	if status, body := seen(t, server.URL+"/v1/models"); status != 200 || body["object"] != "list" || strings.Join(ids(body["data"], "id"), " ") != "default m up/m" {
		t.Errorf("OpenAI: %d, %v", status, body)
	}
	// All of them come at once, whatever the limit: has_more would be a lie else.
	status, body := seen(t, server.URL+"/v1/models?limit=1", "anthropic-version", "2023-06-01")
	if status != 200 || body["has_more"] != false || len(body["data"].([]any)) != 3 || body["last_id"] != "up/m" {
		t.Errorf("Anthropic: %d, %v", status, body)
	}
	if _, body = seen(t, server.URL+"/v1/models?after_id=up/m", "anthropic-version", "2023-06-01"); len(body["data"].([]any)) != 0 {
		t.Errorf("after the last one: %v", body)
	}
	if status, body = seen(t, server.URL+"/v1beta/models"); status != 200 || len(body["models"].([]any)) != 3 {
		t.Errorf("Gemini: %d, %v", status, body)
	}
	if status, body = seen(t, server.URL+"/v1/models/up/m"); status != 200 || body["id"] != "up/m" {
		t.Errorf("one of them: %d, %v", status, body)
	}
	if status, body = seen(t, server.URL+"/v1/models/none"); status != 404 || body["error"].(map[string]any)["code"] != "model_not_found" {
		t.Errorf("none of them: %d, %v", status, body)
	}
}

func TestTokensAreCountedWithoutAskingAnybody(t *testing.T) {
	server := served(t, func(http.ResponseWriter, *http.Request) { t.Error("a provider was asked") }, nil)
	words := strings.Repeat("land on their feet ", 100)
	for path, c := range map[string]struct{ body, field string }{
		"/v1/messages/count_tokens":           {`{"model":"x","messages":[{"role":"user","content":"` + words + `"}]}`, "input_tokens"},
		"/v1/responses/input_tokens":          {`{"model":"x","input":"` + words + `"}`, "input_tokens"},
		"/v1beta/models/x:countTokens":        {`{"contents":[{"role":"user","parts":[{"text":"` + words + `"}]}]}`, "totalTokens"},
		"/v1beta/models/gemini/y:countTokens": {`{"generateContentRequest":{"model":"models/x","contents":[{"role":"user","parts":[{"text":"` + words + `"}]}]}}`, "totalTokens"},
	} {
		resp, text := post(t, server.URL+path, c.body)
		var body map[string]any
		if err := json.Unmarshal([]byte(text), &body); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %d, %s", path, resp.StatusCode, text)
		}
		if n, _ := body[c.field].(float64); n < 390 || n > 410 {
			t.Errorf("%s: %s", path, text)
		}
	}
	if resp, text := post(t, server.URL+"/v1/messages/count_tokens", `{"model":"x","messages":3}`); resp.StatusCode != 400 || !strings.Contains(text, "invalid_request_error") {
		t.Errorf("no messages: %d, %s", resp.StatusCode, text)
	}
}

func TestVectorsPassThroughAndAreHealed(t *testing.T) {
	const answer = `{ "object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25,-1]}],"model":"m","usage":{"prompt_tokens":3,"total_tokens":3},"odd":1 }`
	asked, got := 0, ""
	server := served(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		if asked == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}, nil)
	resp, text := post(t, server.URL+"/v1/embeddings", `{"model":"x","input":["cats"],"odd":true}`)
	if resp.StatusCode != 200 || text != answer || asked != 2 || got != `{"model":"m","input":["cats"],"odd":true}` {
		t.Errorf("status %d, %s after %d requests, the last %s", resp.StatusCode, text, asked, got)
	}
	if resp.Header.Get("X-Ninelives-Attempts") != "2" {
		t.Errorf("attempts %q", resp.Header.Get("X-Ninelives-Attempts"))
	}
}

// A model of a protocol without vectors is passed over, or said to make none.
func TestModelsWithoutVectorsAreNotAskedForThem(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer up.Close()
	m, err := provider.Open("claude", provider.Provider("up"), provider.BaseURL(up.URL), provider.Protocol(ninelives.AnthropicMessages), provider.Key(provider.NewSecret("k")))
	if err != nil {
		t.Fatal(err)
	}
	server := served(t, func(http.ResponseWriter, *http.Request) {}, func(s *Settings) { s.Routes[0].Targets = []Target{{Model: m}} })
	if resp, text := post(t, server.URL+"/v1/embeddings", `{"model":"x","input":"cats"}`); resp.StatusCode != 404 || !strings.Contains(text, "makes vectors") {
		t.Errorf("status %d, %s", resp.StatusCode, text)
	}
}

// All that a call has used counts against the budget of its key: what a failed
// attempt had cost as well, and nothing for an answer that was kept.
func TestABudgetCountsEveryAttempt(t *testing.T) {
	k := &call{stats: callStats{Trail: []attemptStats{{Number: 1, Tokens: 70, Cost: 1, Estimated: true}, {Number: 2, Tokens: 30, Cost: 2}}, Usage: ninelives.Usage{Input: 10, Output: 20}}}
	if s := k.spent(); s != (spend{money: 3, tokens: 100, estimated: true}) {
		t.Errorf("it comes to %+v", s)
	}
	if s := (&call{stats: callStats{Usage: ninelives.Usage{Input: 10}}}).spent(); s != (spend{}) {
		t.Errorf("a kept answer comes to %+v", s)
	}
}
