package gemini_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

// What real servers answered decodes to what they meant, however the bytes
// were cut on the way.
func TestRecordings(t *testing.T) {
	for _, ex := range wiretest.Exchanges(t, ninelives.Gemini) {
		t.Run(ex.Name, func(t *testing.T) {
			o := wire.DecodeOptions{Candidate: ninelives.Candidate{Provider: ex.Provider, Model: ex.Model, Protocol: ex.Protocol}}
			if ex.Status < 200 || ex.Status > 299 {
				fault := wire.Classify(wire.Answer{Status: ex.Status, Header: ex.Header, Body: ex.Body, Candidate: o.Candidate})
				wiretest.Compare(t, ex, nil, fault)
				return
			}
			if !bytes.HasPrefix(bytes.TrimSpace(ex.Body), []byte("data:")) {
				resp, err := gemini.DecodeResponse(ex.Body, o)
				wiretest.Compare(t, ex, resp, err)
				if !bytes.HasPrefix(bytes.TrimSpace(ex.Body), []byte("[")) { // the chunks of an array are joined
					wiretest.CompareParts(t, ex, resp)
				}
				if blocked := ex.Expect.BlockReason != nil; blocked != (resp != nil && resp.Finish == ninelives.FinishContentFilter && resp.FinishRaw == "") {
					t.Errorf("blocked is %v, want %v", !blocked, blocked)
				}
				return
			}
			for _, replay := range ex.Replays() {
				t.Run(replay.Name, func(t *testing.T) {
					var told told
					resp, err := read(t, gemini.NewDecoder(o), replay.Reader(), &told)
					wiretest.Compare(t, ex, resp, err)
					// A part of a chunk is a delta here.
					comparePieces(t, "text", told.text, ex.Expect.TextParts)
					comparePieces(t, "reasoning", told.reasoning, ex.Expect.ReasoningParts)
				})
			}
		})
	}
}

func comparePieces(t *testing.T, what string, got, want []string) {
	t.Helper()
	want = slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s == "" })
	if !slices.Equal(got, want) {
		t.Errorf("%s in pieces\n got %q\nwant %q", what, got, want)
	}
}

// told is what the deltas of a stream told: in pieces, and part by part.
type told struct {
	text, reasoning []string
	parts           []ninelives.Part
}

func (d *told) add(ev ninelives.Event) bool {
	at := func(i int) *ninelives.Part {
		for len(d.parts) <= i {
			d.parts = append(d.parts, nil)
		}
		return &d.parts[i]
	}
	switch ev := ev.(type) {
	case ninelives.TextDelta:
		d.text = append(d.text, ev.Text)
		p, _ := (*at(ev.Part)).(ninelives.Text)
		p.Text += ev.Text
		*at(ev.Part) = p
	case ninelives.ReasoningDelta:
		d.reasoning = append(d.reasoning, ev.Text)
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

// tester is what a test and a property have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// read reads a stream to its end and checks that the deltas make the answer.
func read(t tester, d wire.Decoder, r io.Reader, told *told) (*ninelives.Response, error) {
	t.Helper()
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
	if err != nil {
		return resp, err
	}
	for i, part := range resp.Message.Parts {
		var got ninelives.Part
		if i < len(told.parts) {
			got = told.parts[i]
		}
		switch want := part.(type) {
		case ninelives.Text:
			if g, _ := got.(ninelives.Text); g.Text != want.Text {
				t.Errorf("part %d: the deltas make the text %q, the answer has %q", i, g.Text, want.Text)
			}
		case ninelives.Reasoning:
			if g, _ := got.(ninelives.Reasoning); g.Text != want.Text {
				t.Errorf("part %d: the deltas make the thought %q, the answer has %q", i, g.Text, want.Text)
			}
		case ninelives.ToolCall:
			if g, _ := got.(ninelives.ToolCall); g.ID != want.ID || g.Name != want.Name || g.Arguments != want.Arguments {
				t.Errorf("part %d: the deltas make the call %+v, the answer has %+v", i, g, want)
			}
		}
	}
	return resp, nil
}
