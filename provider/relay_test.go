package provider_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/provider"
)

// relayed sends a client's bytes to a server that answers so, and gives what
// the server got and what came back, as bytes and as events.
func relayed(t *testing.T, body, contentType string, answer []string) (got []byte, frames []byte, events []ninelives.Event, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", contentType)
		for _, piece := range answer {
			_, _ = io.WriteString(w, piece)
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	m, err := provider.Open("served", provider.Provider("test"), provider.BaseURL(server.URL+"/v1"), provider.Key(provider.NewSecret("k")))
	if err != nil {
		t.Fatal(err)
	}
	defer m.(*provider.Model).CloseIdleConnections()
	head, err := wire.Peek(ninelives.OpenAIChat, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	req := &ninelives.Request{Raw: &ninelives.Raw{Protocol: ninelives.OpenAIChat, Body: []byte(body), Model: head.ModelAt, Stream: head.Stream,
		Decode: func() (*ninelives.Request, error) {
			t.Error("the request was read in full")
			return &ninelives.Request{}, nil
		}}}
	for ev, failure := range m.Stream(t.Context(), req) {
		if failure != nil {
			return got, frames, events, failure
		}
		if f, ok := ev.(*ninelives.Frame); ok {
			frames = append(frames, f.Data...)
			kept := *f
			kept.Data = bytes.Clone(f.Data)
			ev = &kept
		}
		events = append(events, ev)
	}
	return got, frames, events, nil
}

func TestBytesOfTheSameProtocolAreRelayed(t *testing.T) {
	const ask = `{"model" : "asked", "stream":true,"messages":[{"role":"user","content":"x"}],"unknown":{"kept":[1,2]}}`
	const first = "\xEF\xBB\xBF: hello\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"He\"}}],\"odd\":1}\r\n\r\n: in between\n\n"
	const second = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"llo\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	const third = "data: [DONE]\n\n: the end"
	whole := first + second + third
	for name, pieces := range map[string][]string{
		"whole": {whole}, "pieces": {first, second, third}, "bytes": strings.Split(whole, ""),
	} {
		got, frames, events, err := relayed(t, ask, "text/event-stream", pieces)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want := strings.Replace(ask, `"asked"`, `"served"`, 1); string(got) != want {
			t.Errorf("%s: sent %s, want %s", name, got, want)
		}
		if want := strings.TrimSuffix(whole, "the end"); !bytes.HasPrefix(frames, []byte(strings.TrimSuffix(want, ": "))) || !strings.HasPrefix(whole, string(frames)) {
			t.Errorf("%s: relayed %q, want %q", name, frames, whole)
		}
		text := ""
		for _, ev := range events {
			if d, ok := ev.(ninelives.TextDelta); ok {
				text += d.Text
			}
		}
		if text != "Hello" {
			t.Errorf("%s: read %q", name, text)
		}
	}
}

func TestAWholeAnswerIsRelayedAsItIs(t *testing.T) {
	const ask = `{"messages":[{"role":"user","content":"x"}],"model":"asked"}`
	const answer = "{ \"id\":\"1\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hello\"},\"finish_reason\":\"stop\"}], \"odd\" : 1 }\n"
	got, frames, _, err := relayed(t, ask, "application/json", []string{answer})
	if err != nil || string(frames) != answer || !bytes.Contains(got, []byte(`"model":"served"`)) {
		t.Errorf("sent %s, relayed %q, %v", got, frames, err)
	}
}

// An answer in another form than the client asked for cannot be relayed.
func TestAnAnswerInTheWrongFormIsNotRelayed(t *testing.T) {
	const ask = `{"messages":[{"role":"user","content":"x"}],"model":"asked","stream":true}`
	const answer = `{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}`
	_, frames, events, err := relayed(t, ask, "application/json", []string{answer})
	if err != nil || len(frames) > 0 || len(events) != 3 {
		t.Errorf("relayed %q, events %v, %v", frames, events, err)
	}
}

// Bytes of events that give text may come together, and never before what was
// read from them, nor after anything else that comes behind them.
func TestBytesKeepTheirPlaceAmongEvents(t *testing.T) {
	const ask = `{"model":"asked","stream":true,"messages":[{"role":"user","content":"x"}]}`
	delta := func(members string) string {
		return `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{` + members + `},"finish_reason":null}]}` + "\n\n"
	}
	kinds := []string{delta(`"content":"ab"`), delta(`"content":"ab"`), delta(`"content":"ab"`), delta(`"content":" "`), delta(`"content":"a\"b"`),
		delta(`"reasoning_content":"hm"`), delta(`"role":"assistant"`), delta(`"refusal":"no"`),
		delta(`"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]`),
		": alive\n\n", strings.ReplaceAll(delta(`"content":"cr"`), "\n", "\r\n"), "event: ping\ndata: {}\n\n"}
	const end = `data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	rapid.Check(t, func(rt *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 12).Draw(rt, "events")
		whole := strings.Join(pieces, "") + end
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(whole)), 0, 4).Draw(rt, "cuts")
		slices.Sort(cuts)
		var writes []string
		from := 0
		for _, at := range append(cuts, len(whole)) {
			if at > from {
				writes, from = append(writes, whole[from:at]), at
			}
		}
		_, frames, events, err := relayed(t, ask, "text/event-stream", writes)
		if err != nil || !strings.HasPrefix(whole, string(frames)) || !strings.Contains(string(frames), `"finish_reason":"stop"`) {
			rt.Fatalf("relayed %q, %v", frames, err)
		}
		var sent []byte
		given, counted := 0, 0 // pieces of text; events in frames
		called := false
		for _, ev := range events {
			behind := bytes.Count(sent, []byte(`"content":`))
			switch e := ev.(type) {
			case *ninelives.Frame:
				sent = append(sent, e.Data...)
				counted += e.Events
				continue
			case ninelives.TextDelta:
				if given++; behind >= given {
					rt.Fatalf("bytes come before their text: %q", sent)
				}
			default:
				_, call := ev.(ninelives.ToolCallDelta)
				if called = called || call; called {
					continue // from the first call on all bytes wait for the end
				}
				if behind != given {
					rt.Fatalf("%T comes before the bytes of the %d texts before it: %q", ev, given, sent)
				}
			}
		}
		if want := strings.Count(whole, "data: "); counted != want && counted != want-1 { // [DONE] may be read in the rest
			rt.Fatalf("%d events counted, %d sent", counted, want)
		}
	})
}

// What follows the event that ends an answer is relayed wherever a read ends in it.
func TestWhatFollowsTheEndIsRelayedHoweverItIsCut(t *testing.T) {
	const ask = `{"model":"asked","stream":true,"input":"x"}`
	const answer = `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"i","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`
	const head = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"i\",\"output_index\":0,\"content_index\":0,\"delta\":\"Hello\",\"sequence_number\":0}\n\n" +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":" + answer + ",\"sequence_number\":1}\n\n"
	for tail, relays := range map[string]bool{"data: [DONE]\n\n": true, ": bye\n\n": true, "event: error\ndata: {\"error\":{\"message\":\"late\"}}\n\n": false} {
		for cut := range len(tail) {
			pieces := reads{head + tail[:cut], tail[cut:]}
			m, err := provider.Open("served", provider.Provider("test"), provider.BaseURL("http://up/v1"), provider.Protocol(ninelives.OpenAIResponses),
				provider.Key(provider.NewSecret("k")), provider.Transport(&pieces))
			if err != nil {
				t.Fatal(err)
			}
			peeked, err := wire.Peek(ninelives.OpenAIResponses, []byte(ask))
			if err != nil {
				t.Fatal(err)
			}
			req := &ninelives.Request{Raw: &ninelives.Raw{Protocol: ninelives.OpenAIResponses, Body: []byte(ask), Model: peeked.ModelAt, Stream: true,
				Decode: func() (*ninelives.Request, error) { return nil, errors.New("read in full") }}}
			var got []byte
			for ev, err := range m.Stream(t.Context(), req) {
				if err != nil {
					t.Fatal(err)
				}
				if f, ok := ev.(*ninelives.Frame); ok {
					got = append(got, f.Data...)
				}
			}
			want := head
			if relays {
				want += tail
			}
			if string(got) != want {
				t.Errorf("cut at %d of %q: relayed %q", cut, tail, got[min(len(got), len(head)):])
			}
		}
	}
}

// reads answers with a stream of which each read gives one piece.
type reads []string

func (r *reads) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: r, ContentLength: -1, Request: req}, nil
}

func (r *reads) Read(p []byte) (int, error) {
	if len(*r) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*r)[0])
	if (*r)[0] = (*r)[0][n:]; (*r)[0] == "" {
		*r = (*r)[1:]
	}
	return n, nil
}

func (r *reads) Close() error { return nil }
