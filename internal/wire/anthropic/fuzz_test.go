package anthropic_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// FuzzAnthropicDecoder: whatever comes, the decoder ends in an answer or a
// Fault, the deltas are those of the answer, and what it accepted can be
// written and read again.
func FuzzAnthropicDecoder(f *testing.F) {
	seed := func(data ...string) {
		var stream []byte
		for _, d := range data {
			stream = sse.Append(stream, wire.Frame{Data: []byte(d)})
		}
		f.Add(stream)
	}
	seed(start, textStart, hello, blockStop, end, stop)
	seed(start, callStart, input(0, `{"a"`), input(0, `:1}`), blockStop, toolEnd, stop, "[DONE]")
	seed(start, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`, end)
	seed(start, `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","input":{}}}`, input(0, `{}`), end)
	seed(start, start, `{"type":"error","error":{"type":"overloaded_error"}}`)
	f.Fuzz(func(t *testing.T, stream []byte) {
		d := anthropic.NewDecoder(decodeOptions())
		r := sse.NewReader(bytes.NewReader(stream))
		text := map[int]string{}
		var cause error
		for cause == nil {
			frame, err := r.Next()
			if err == nil {
				err = d.Frame(frame, func(ev ninelives.Event) bool {
					if v, ok := ev.(ninelives.TextDelta); ok {
						text[v.Part] += v.Text
					}
					return true
				})
			}
			cause = err
		}
		if cause == io.EOF {
			cause = nil
		}
		state := d.State()
		resp, err := d.Response(cause)
		if err != nil {
			var fault *ninelives.Fault
			if resp != nil || !errors.As(err, &fault) || fault.Class == "" {
				t.Fatalf("neither an answer nor a fault: %+v, %v", resp, err)
			}
			return
		}
		if state == wire.Open {
			t.Fatalf("an answer without an end: %+v", resp)
		}
		for i, p := range resp.Message.Parts {
			if v, ok := p.(ninelives.Text); ok && v.Text != text[i] {
				t.Fatalf("part %d says %q, its deltas %q", i, v.Text, text[i])
			}
		}
		body, err := anthropic.EncodeResponse(resp)
		if err != nil {
			return // a call that is no JSON object
		}
		again, err := anthropic.DecodeResponse(body, decodeOptions())
		if err != nil {
			var fault *ninelives.Fault
			if errors.As(err, &fault) && fault.Class == ninelives.ClassContextLength {
				return
			}
			t.Fatalf("what was written cannot be read: %v\n%s", err, body)
		}
		if again.Text() != resp.Text() || again.Message.Reasoning() != resp.Message.Reasoning() {
			t.Fatalf("%q became %q\n%s", resp.Text(), again.Text(), body)
		}
	})
}

// FuzzAnthropicRequest: what a client sends is read or refused, and what was
// read can be written.
func FuzzAnthropicRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","max_tokens":1,"system":"x","messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","input_schema":{}}],"thinking":{"type":"enabled","budget_tokens":2000}}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"url","url":"u"}}]}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := anthropic.DecodeRequest(body)
		if err != nil {
			return
		}
		out, err := anthropic.EncodeRequest(in.Request, generous())
		if err != nil {
			return
		}
		again, err := anthropic.DecodeRequest(out.Body)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out.Body)
		}
		if _, err := anthropic.EncodeRequest(again.Request, generous()); err != nil {
			t.Fatalf("what was read cannot be written: %v\n%s", err, out.Body)
		}
	})
}
