package openai_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

// What real servers answered decodes to what they meant, however the bytes
// were cut on the way.
func responsesRecordings(t *testing.T) {
	for _, ex := range wiretest.Exchanges(t, ninelives.OpenAIResponses) {
		t.Run(ex.Name, func(t *testing.T) {
			o := wire.DecodeOptions{Candidate: ninelives.Candidate{Provider: ex.Provider, Model: ex.Model, Protocol: ex.Protocol}}
			if ex.Status < 200 || ex.Status > 299 {
				fault := wire.Classify(wire.Answer{Status: ex.Status, Header: ex.Header, Body: ex.Body, Candidate: o.Candidate})
				wiretest.Compare(t, ex, nil, fault)
				return
			}
			if !isResponsesStream(ex.Body) {
				resp, err := openai.DecodeResponsesResponse(ex.Body, o)
				wiretest.Compare(t, ex, resp, err)
				wiretest.CompareParts(t, ex, resp)
				return
			}
			for _, replay := range ex.Replays() {
				t.Run(replay.Name, func(t *testing.T) {
					resp, err := streamResponses(t, o, replay.Reader())
					wiretest.Compare(t, ex, resp, err)
					wiretest.CompareParts(t, ex, resp)
				})
			}
		})
	}
}

func isResponsesStream(body []byte) bool {
	body = bytes.TrimSpace(body)
	return bytes.HasPrefix(body, []byte("data:")) || bytes.HasPrefix(body, []byte("event:")) || bytes.HasPrefix(body, []byte(":"))
}

// streamResponses reads a stream to its end and checks that the deltas add up
// to the parts of the answer.
func streamResponses(t responsesT, o wire.DecodeOptions, r io.Reader) (*ninelives.Response, error) {
	t.Helper()
	d := openai.NewResponsesDecoder(o)
	var told responsesDeltas
	reader := sse.NewReader(r)
	var cause error
	for {
		f, err := reader.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				cause = err
			}
			break
		}
		if err := d.Frame(f, told.add); err != nil {
			var fault *ninelives.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("the error of a frame is no Fault: %v", err)
			}
		}
	}
	resp, err := d.Response(cause)
	if err == nil {
		told.equal(t, resp.Message)
	}
	return resp, err
}

// responsesT is what a test and a property have in common.
type responsesT interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// responsesDeltas adds up what a stream told, part by part.
type responsesDeltas struct {
	parts []ninelives.Part
}

func (d *responsesDeltas) add(ev ninelives.Event) bool {
	at := func(i int) *ninelives.Part {
		for len(d.parts) <= i {
			d.parts = append(d.parts, nil)
		}
		return &d.parts[i]
	}
	switch ev := ev.(type) {
	case ninelives.TextDelta:
		p, _ := (*at(ev.Part)).(ninelives.Text)
		p.Text += ev.Text
		*at(ev.Part) = p
	case ninelives.RefusalDelta:
		p, _ := (*at(ev.Part)).(ninelives.Refusal)
		p.Text += ev.Text
		*at(ev.Part) = p
	case ninelives.ReasoningDelta:
		p, _ := (*at(ev.Part)).(ninelives.Reasoning)
		p.Text += ev.Text
		*at(ev.Part) = p
	case ninelives.ToolCallDelta:
		p, _ := (*at(ev.Part)).(ninelives.ToolCall)
		p.ID, p.Name, p.Arguments = p.ID+ev.ID, p.Name+ev.Name, p.Arguments+ev.Arguments
		*at(ev.Part) = p
	}
	return true
}

// equal checks the deltas against the whole answer.
func (d *responsesDeltas) equal(t responsesT, m ninelives.Message) {
	t.Helper()
	for i, part := range m.Parts {
		var told ninelives.Part
		if i < len(d.parts) {
			told = d.parts[i]
		}
		switch want := part.(type) {
		case ninelives.Text:
			got, _ := told.(ninelives.Text)
			if got.Text != want.Text {
				t.Errorf("part %d: the deltas make the text %q, the answer has %q", i, got.Text, want.Text)
			}
		case ninelives.Refusal:
			got, _ := told.(ninelives.Refusal)
			if got.Text != want.Text {
				t.Errorf("part %d: the deltas make the refusal %q, the answer has %q", i, got.Text, want.Text)
			}
		case ninelives.Reasoning:
			got, _ := told.(ninelives.Reasoning)
			if got.Text != want.Text {
				t.Errorf("part %d: the deltas make the reasoning %q, the answer has %q", i, got.Text, want.Text)
			}
		case ninelives.ToolCall:
			got, _ := told.(ninelives.ToolCall)
			if got.ID != want.ID || got.Name != want.Name || got.Arguments != want.Arguments && (got.Arguments != "" || want.Arguments != "{}") {
				t.Errorf("part %d: the deltas make the call %+v, the answer has %+v", i, got, want)
			}
		}
	}
}
