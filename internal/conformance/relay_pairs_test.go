package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/gateway"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/bedrock"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
	"github.com/ninelives-ai/ninelives/provider"
)

// recorded is a server that gives one recorded answer in its recorded pieces.
type recorded struct{ ex wiretest.Exchange }

func (r recorded) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	header := http.Header{}
	if v := r.ex.Header.Get("Content-Type"); v != "" {
		header.Set("Content-Type", v)
	}
	return &http.Response{StatusCode: r.ex.Status, Status: http.StatusText(r.ex.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: -1, Request: req, Body: io.NopCloser(wiretest.Pieces(wiretest.Cut(r.ex.Body, r.ex.Chunks)))}, nil
}

// model is the candidate that the exchange was recorded of, at its own address:
// its dialect is found as in earnest.
func (r recorded) model(t *testing.T) ninelives.Model {
	t.Helper()
	host, path := r.ex.Host, r.ex.Path
	if host == "" {
		host, path = "recorded.example", ""
	}
	switch r.ex.Protocol {
	case ninelives.Gemini:
		path = ""
	case ninelives.AnthropicMessages:
		path, _, _ = strings.Cut(path, "/v1/messages")
	default:
		if path == "" {
			path = "/v1"
		}
	}
	name := r.ex.Model
	if name == "" {
		name = "served"
	}
	m, err := provider.Open(name, provider.Provider("test"), provider.BaseURL("https://"+host+path), provider.Protocol(r.ex.Protocol),
		provider.Key(provider.NewSecret("k")), provider.Transport(r))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Every recorded answer reaches the clients of the three other protocols,
// streamed and in one piece: what they decode is what the recording says.
func TestRecordingsReachClientsOfEveryProtocol(t *testing.T) {
	compared, left := 0, 0
	for _, p := range []ninelives.Protocol{ninelives.OpenAIChat, ninelives.OpenAIResponses, ninelives.AnthropicMessages, ninelives.Gemini} {
		for _, ex := range wiretest.Exchanges(t, p) {
			if ex.Status != 200 || !ex.Expect.Complete || strings.HasPrefix(ex.Header.Get("Content-Type"), bedrock.ContentType) {
				continue
			}
			if notRelayed(ex) != "" || ex.Has("think_tags_in_text") {
				left++ // healed instead; thinking in tags counts as text in the recordings
				continue
			}
			policy := gateway.DefaultPolicy()
			policy.Budget.Requests = 1
			g := gateway.New(gateway.Settings{Routes: []gateway.Route{{Name: "default", Policy: &policy, Targets: []gateway.Target{{Model: recorded{ex}.model(t)}}}}}, gateway.Options{})
			client := &http.Client{Transport: g.Transport()}
			for _, tongue := range tongues {
				if tongue.protocol == p {
					continue
				}
				for _, streamed := range []bool{true, false} {
					heard, err := askAs(client, tongue, streamed)
					if why := unsaid(ex); why != "" { // an empty answer would not say why
						if err == nil || !strings.Contains(err.Error(), "status 400") || !strings.Contains(err.Error(), why) {
							t.Errorf("%s for %s (streamed %v): %v, which does not say %s", ex.Name, tongue.name, streamed, err, why)
						}
						compared++
						continue
					}
					if err != nil {
						t.Errorf("%s for %s (streamed %v): %v", ex.Name, tongue.name, streamed, err)
						continue
					}
					for _, wrong := range misheard(ex, heard) {
						t.Errorf("%s for %s (streamed %v): %s", ex.Name, tongue.name, streamed, wrong)
					}
					compared++
				}
			}
			g.Close()
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
	t.Logf("%d translated answers compared, %d recordings left out", compared, left)
}

// unsaid is the reason of an answer that a filter has left nothing of.
func unsaid(ex wiretest.Exchange) string {
	e := ex.Expect
	switch {
	case e.BlockReason != nil:
		return *e.BlockReason
	case finishOf(ex) == ninelives.FinishContentFilter && e.Text == "" && (e.Refusal == nil || *e.Refusal == "") && len(e.ToolCalls) == 0:
		return *e.FinishRaw
	}
	return ""
}

// askAs asks the gateway in a protocol and reads the answer as its client does.
func askAs(client *http.Client, g tongue, streamed bool) (*ninelives.Response, error) {
	ex := wiretest.Exchange{Protocol: g.protocol, Stream: streamed}
	ask := askOf(ex)
	if streamed && g.protocol == ninelives.OpenAIChat { // whose clients have to ask for it
		ask = bytes.Replace(ask, []byte(`{`), []byte(`{"stream_options":{"include_usage":true},`), 1)
	}
	resp, err := client.Post("http://gateway"+pathOf(ex), "application/json", bytes.NewReader(ask))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		return nil, fmt.Errorf("status %d, %v: %.300s", resp.StatusCode, err, body)
	}
	view := wire.DecodeOptions{Candidate: g.candidate("gateway")}
	if !streamed {
		return g.decode(body, view)
	}
	return decodeStream(g, body, view)
}

func decodeStream(g tongue, stream []byte, view wire.DecodeOptions) (*ninelives.Response, error) {
	d := g.decoder(view)
	r := sse.NewReader(bytes.NewReader(stream))
	for {
		f, err := r.Next()
		if err != nil {
			break
		}
		if err := d.Frame(f, func(ninelives.Event) bool { return true }); err != nil {
			return nil, err
		}
	}
	return d.Response(nil)
}

// misheard says what a client holds otherwise than the recording says.
func misheard(ex wiretest.Exchange, got *ninelives.Response) (wrong []string) {
	e := ex.Expect
	say := func(what string, got, want any) {
		wrong = append(wrong, fmt.Sprintf("%s %.200q, want %.200q", what, fmt.Sprint(got), fmt.Sprint(want)))
	}
	refusal := ""
	if e.Refusal != nil {
		refusal = *e.Refusal
	}
	if text := got.Message.Text() + got.Message.Refusal(); text != e.Text+refusal {
		say("text", text, e.Text+refusal)
	}
	if thought := got.Message.Reasoning(); thought != e.Reasoning {
		say("thought", thought, e.Reasoning)
	}
	calls := got.Message.ToolCalls()
	if len(calls) != len(e.ToolCalls) {
		say("calls", calls, e.ToolCalls)
	} else {
		for i, c := range calls {
			if c.Name != e.ToolCalls[i].Name || !sameArguments(c.Arguments, e.ToolCalls[i].Raw) {
				say("call", c.Name+c.Arguments, e.ToolCalls[i].Name+e.ToolCalls[i].Raw)
			}
		}
	}
	if finish, want := got.Finish, finishOf(ex); finish != want && !(declined(finish, refusal) && declined(want, refusal)) {
		say("finish", finish, want)
	}
	if u := e.Usage; u != nil {
		// Some report more tokens from the cache than in all, or more of thinking:
		// a protocol that counts them apart has no word for that.
		if u.Input != nil && (count(u.Cached) <= count(u.Input) || ex.Protocol == ninelives.AnthropicMessages) {
			if got.Usage.TotalInput() != totalInput(ex) {
				say("input tokens", got.Usage.TotalInput(), totalInput(ex))
			}
			if u.Cached != nil && got.Usage.Cached != *u.Cached {
				say("cached tokens", got.Usage.Cached, *u.Cached)
			}
		}
		if u.Output != nil && (count(u.Reasoning) <= count(u.Output) || apart(ex)) && got.Usage.TotalOutput() != totalOutput(ex) {
			say("output tokens", got.Usage.TotalOutput(), totalOutput(ex))
		}
	}
	return wrong
}

// declined says that an end is a refusal, by the model or by a filter, which not
// every protocol tells apart. Words of refusal speak for themselves.
func declined(f ninelives.FinishReason, words string) bool {
	return f == ninelives.FinishRefusal || f == ninelives.FinishContentFilter || f == ninelives.FinishStop && words != ""
}

func sameArguments(got, want string) bool {
	if want == "" || want == "null" {
		want = "{}"
	}
	var a, b any
	return json.Unmarshal([]byte(got), &a) == nil && json.Unmarshal([]byte(want), &b) == nil && reflect.DeepEqual(a, b)
}

// finishOf is what every protocol has a word for of the recorded end.
func finishOf(ex wiretest.Exchange) ninelives.FinishReason {
	raw := ""
	if ex.Expect.FinishRaw != nil {
		raw = strings.ToLower(*ex.Expect.FinishRaw)
	}
	switch raw {
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return ninelives.FinishLength
	case "content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii":
		return ninelives.FinishContentFilter
	case "refusal":
		return ninelives.FinishRefusal
	}
	switch {
	case ex.Expect.BlockReason != nil:
		return ninelives.FinishContentFilter
	case ex.Expect.Refusal != nil && *ex.Expect.Refusal != "":
		return ninelives.FinishRefusal
	case len(ex.Expect.ToolCalls) > 0:
		return ninelives.FinishToolCalls
	}
	return ninelives.FinishStop
}

// totalInput and totalOutput count as bills do: every token once.
func totalInput(ex wiretest.Exchange) int {
	u := ex.Expect.Usage
	n := count(u.Input)
	if ex.Protocol == ninelives.AnthropicMessages {
		n += count(u.Cached) + count(u.CacheWrite)
	}
	return n
}

func totalOutput(ex wiretest.Exchange) int {
	u := ex.Expect.Usage
	n := count(u.Output)
	if apart(ex) {
		n += count(u.Reasoning)
	}
	return n
}

// apart says that the provider's count of output is without its thinking.
func apart(ex wiretest.Exchange) bool {
	return ex.Protocol == ninelives.Gemini || ex.Provider == "xai" && ex.Protocol == ninelives.OpenAIChat
}

func count(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}
