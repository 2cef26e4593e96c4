package compat

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

// answer is what matters of an answer, in a form that both sides have.
type answer struct {
	Text  string
	Calls []call
}

type call struct {
	ID, Name string
	// Arguments is the value, or the text where it is no JSON.
	Arguments any
}

func newCall(id, name, arguments string) call {
	var v any
	if err := json.Unmarshal([]byte(arguments), &v); err != nil && arguments != "" {
		v = arguments
	}
	if v == nil { // nothing and null are a call without arguments
		v = map[string]any{}
	}
	return call{ID: id, Name: name, Arguments: v}
}

// ours is an answer as this project reads it.
func ours(resp *ninelives.Response) answer {
	a := answer{Text: resp.Text()}
	for _, c := range resp.Message.ToolCalls() {
		a.Calls = append(a.Calls, newCall(c.ID, c.Name, c.Arguments))
	}
	return a
}

// expected is an answer as the recording says that it is to be read.
func expected(e wiretest.Expect) answer {
	a := answer{Text: e.Text}
	for _, c := range e.ToolCalls {
		id := ""
		if c.ID != nil {
			id = *c.ID
		}
		a.Calls = append(a.Calls, newCall(id, c.Name, c.Raw))
	}
	return a
}

// read decodes a recorded answer with our decoders.
func read(ex wiretest.Exchange, decoder func(wire.DecodeOptions) wire.Decoder, whole func([]byte, wire.DecodeOptions) (*ninelives.Response, error)) (*ninelives.Response, error) {
	if !ex.Stream {
		return whole(ex.Body, wire.DecodeOptions{})
	}
	d, frames := decoder(wire.DecodeOptions{}), sse.NewReader(bytes.NewReader(ex.Body))
	for {
		f, err := frames.Next()
		if err == io.EOF {
			return d.Response(nil)
		}
		if err != nil {
			return d.Response(err)
		}
		if err := d.Frame(f, func(ninelives.Event) bool { return true }); err != nil {
			return nil, err
		}
	}
}

// upstream serves one recorded answer to whoever asks.
func upstream(t *testing.T, ex wiretest.Exchange) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for name, values := range ex.Header {
			w.Header()[http.CanonicalHeaderKey(name)] = values
		}
		if ex.Stream {
			w.Header().Set("Content-Type", "text/event-stream")
		} else {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(ex.Status)
		w.Write(ex.Body)
	}))
	t.Cleanup(srv.Close)
	return srv
}

// verdicts counts how often an SDK and we agreed.
type verdicts struct{ agreed, sdkWrong int }

// compare judges one recording: where the SDK reads something else than we do,
// the recording decides, and we must be the ones who are right.
func (v *verdicts) compare(t *testing.T, ex wiretest.Exchange, sdk answer, sdkErr error, resp *ninelives.Response) {
	t.Helper()
	we := ours(resp)
	for i, c := range ex.Expect.ToolCalls {
		if (c.ID == nil || *c.ID == "") && i < len(we.Calls) {
			we.Calls[i].ID = "" // a call needs an id to be answered: we make one
		}
	}
	if sdkErr == nil && reflect.DeepEqual(sdk, we) {
		v.agreed++
		return
	}
	want := expected(ex.Expect)
	if !reflect.DeepEqual(we, want) {
		t.Errorf("the SDK reads %+v (error %v)\nwe read %+v\nand the recording says %+v", sdk, sdkErr, we, want)
		return
	}
	v.sdkWrong++
	t.Logf("the SDK is wrong here: error %v", sdkErr)
}

// enough fails a run in which the comparison proved too little.
func (v *verdicts) enough(t *testing.T) {
	t.Helper()
	t.Logf("%d agree, in %d the SDK reads something else than the recording says", v.agreed, v.sdkWrong)
	if v.agreed < 3*v.sdkWrong {
		t.Errorf("only %d of %d agree: this is no oracle any more, or something else is wrong", v.agreed, v.agreed+v.sdkWrong)
	}
}

// readable says that an exchange holds an answer that a client is to accept.
func readable(ex wiretest.Exchange) bool {
	return ex.Status == http.StatusOK && ex.Expect.Error == nil && ex.Expect.StreamError == nil && ex.Expect.BlockReason == nil &&
		(ex.Expect.Complete || !ex.Stream)
}

// dropped are members that an SDK's types lose although its provider documents
// them, by name at the top.
var dropped = map[string]string{
	"temperature": "the Messages types no longer have it; models before Opus 4.7 take it",
	"top_p":       "the Messages types no longer have it; models before Opus 4.7 take it",
	"tool_choice": "the OpenAI types read every choice of a tool as the first variant of their union and lose its name",
}

// sameRequest compares what became of a request in the SDK's types with what
// we wrote: by value, a text and a list of one text block being the same.
func sameRequest(t *testing.T, got, want []byte) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("the SDK writes no JSON: %v\n%s", err, got)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatalf("we write no JSON: %v\n%s", err, want)
	}
	for name, why := range dropped {
		g, w := g.(map[string]any), w.(map[string]any)
		if !reflect.DeepEqual(g[name], w[name]) {
			t.Logf("the SDK loses %s: %s", name, why)
			delete(g, name)
			delete(w, name)
		}
	}
	if g, w := blocks(g), blocks(w); !reflect.DeepEqual(g, w) {
		t.Errorf("through the SDK's types the request becomes\n%s\nwe wrote\n%s", got, want)
	}
}

// blocks writes each text that may be a list of blocks as such a list.
func blocks(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = blocks(v[i])
		}
	case map[string]any:
		for name, x := range v {
			if text, ok := x.(string); ok && (name == "content" || name == "system") {
				x = []any{map[string]any{"type": "text", "text": text}}
			}
			v[name] = blocks(x)
		}
	}
	return v
}
