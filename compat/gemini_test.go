package compat

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	sdk "google.golang.org/genai"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

func geminiClient(t *testing.T, srv *httptest.Server) *sdk.Client {
	client, err := sdk.NewClient(context.Background(), &sdk.ClientConfig{APIKey: "none", Backend: sdk.BackendGeminiAPI,
		HTTPClient: srv.Client(), HTTPOptions: sdk.HTTPOptions{BaseURL: srv.URL}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// askGemini asks as a user of the SDK would, and joins what a stream brings.
func askGemini(client *sdk.Client, stream bool) (answer, error) {
	var a answer
	add := func(r *sdk.GenerateContentResponse) {
		if len(r.Candidates) == 0 || r.Candidates[0].Content == nil {
			return
		}
		for _, p := range r.Candidates[0].Content.Parts {
			switch {
			case p.FunctionCall != nil:
				args, _ := json.Marshal(p.FunctionCall.Args)
				a.Calls = append(a.Calls, newCall("", p.FunctionCall.Name, string(args)))
			case !p.Thought:
				a.Text += p.Text
			}
		}
	}
	ctx, question := context.Background(), sdk.Text("Why?")
	if !stream {
		r, err := client.Models.GenerateContent(ctx, "m", question, nil)
		if err != nil {
			return answer{}, err
		}
		add(r)
		return a, nil
	}
	for r, err := range client.Models.GenerateContentStream(ctx, "m", question, nil) {
		if err != nil {
			return answer{}, err
		}
		add(r)
	}
	return a, nil
}

// nameless leaves out the ids of calls: most of Gemini's have none of their own.
func nameless(a answer) answer {
	for i := range a.Calls {
		a.Calls[i].ID = ""
	}
	return a
}

func TestRecordedGeminiAnswersReadAsTheOfficialSDKReadsThem(t *testing.T) {
	var v verdicts
	for _, ex := range wiretest.Exchanges(t, ninelives.Gemini) {
		if !readable(ex) {
			continue
		}
		t.Run(ex.Name, func(t *testing.T) {
			resp, err := read(ex, gemini.NewDecoder, gemini.DecodeResponse)
			if err != nil {
				t.Fatalf("the recording holds a whole answer: %v", err)
			}
			for i := range resp.Message.Parts {
				if c, ok := resp.Message.Parts[i].(ninelives.ToolCall); ok {
					c.ID = ""
					resp.Message.Parts[i] = c
				}
			}
			for i := range ex.Expect.ToolCalls {
				ex.Expect.ToolCalls[i].ID = nil
			}
			got, err := askGemini(geminiClient(t, upstream(t, ex)), ex.Stream)
			v.compare(t, ex, got, err, resp)
		})
	}
	v.enough(t)
}

// What the SDK would send for our request, read back from its own types, has
// the same contents: it knows every member that we write.
func TestGeminiRequestsPassTheOfficialTypesWhole(t *testing.T) {
	for name, req := range requests() {
		t.Run(name, func(t *testing.T) {
			enc, err := gemini.EncodeRequest(req, target(ninelives.Gemini, "gemini", "gemini-3-pro", false))
			if err != nil {
				t.Fatal(err)
			}
			var body struct {
				Contents          []*sdk.Content  `json:"contents"`
				SystemInstruction *sdk.Content    `json:"systemInstruction,omitempty"`
				Tools             []*sdk.Tool     `json:"tools,omitempty"`
				ToolConfig        *sdk.ToolConfig `json:"toolConfig,omitempty"`
				GenerationConfig  map[string]any  `json:"generationConfig,omitempty"`
			}
			in := json.NewDecoder(strings.NewReader(string(enc.Body)))
			in.DisallowUnknownFields()
			if err := in.Decode(&body); err != nil {
				t.Fatalf("the SDK's types cannot hold what we write: %v\n%s", err, enc.Body)
			}
			again, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			sameRequest(t, again, enc.Body)
		})
	}
}

func TestOfficialGeminiClientReadsOurAnswers(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		in, err := gemini.DecodeRequest("m", body)
		if err != nil {
			t.Errorf("we cannot read what the SDK writes: %v\n%s", err, body)
			return
		}
		if got := in.Messages[len(in.Messages)-1].Text(); got != "Why?" {
			t.Errorf("the question arrives as %q", got)
		}
		if !strings.Contains(r.URL.Path, "stream") {
			w.Header().Set("Content-Type", "application/json")
			w.Write(gemini.EncodeResponse(reply()))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		enc := gemini.NewEncoder(wire.EncodeOptions{ID: "answer_1", Model: "sim-1"})
		for _, ev := range events(reply()) {
			w.Write(enc.Event(nil, ev))
		}
	}))
	t.Cleanup(srv.Close)
	want := nameless(ours(reply()))
	for _, stream := range []bool{false, true} {
		got, err := askGemini(geminiClient(t, srv), stream)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("stream %v: %+v, error %v; want %+v", stream, got, err, want)
		}
	}
}
