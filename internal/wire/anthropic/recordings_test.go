package anthropic_test

import (
	"errors"
	"io"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/bedrock"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

// frames is what both framings offer.
type frames interface{ Next() (wire.Frame, error) }

// decodeStream reads a stream as a provider does. It fails the test if the
// deltas say something else than the answer.
func decodeStream(t testing.TB, r frames, o wire.DecodeOptions) (*ninelives.Response, error) {
	t.Helper()
	d := anthropic.NewDecoder(o)
	text, thoughts := map[int]string{}, map[int]string{}
	var cause error
	for cause == nil {
		f, err := r.Next()
		if err == nil {
			err = d.Frame(f, func(ev ninelives.Event) bool {
				switch v := ev.(type) {
				case ninelives.TextDelta:
					text[v.Part] += v.Text
				case ninelives.ReasoningDelta:
					thoughts[v.Part] += v.Text
				}
				return true
			})
		}
		cause = err
	}
	if errors.Is(cause, io.EOF) {
		cause = nil
	}
	resp, err := d.Response(cause)
	said := resp
	var fault *ninelives.Fault
	if errors.As(err, &fault) {
		said = fault.Partial
	}
	if said == nil {
		return resp, err
	}
	for i, p := range said.Message.Parts {
		switch v := p.(type) {
		case ninelives.Text:
			if text[i] != v.Text {
				t.Errorf("the deltas of part %d say %q, the answer %q", i, text[i], v.Text)
			}
		case ninelives.Reasoning:
			if thoughts[i] != v.Text {
				t.Errorf("the deltas of part %d say %q, the answer %q", i, thoughts[i], v.Text)
			}
		}
	}
	return resp, err
}

func TestRecordings(t *testing.T) {
	for _, ex := range wiretest.Exchanges(t, ninelives.AnthropicMessages) {
		t.Run(ex.Name, func(t *testing.T) {
			o := wire.DecodeOptions{Candidate: ninelives.Candidate{Provider: ex.Provider, Model: ex.Model, Protocol: ex.Protocol}}
			switch {
			case ex.Status != 200:
				wiretest.Compare(t, ex, nil, wire.Classify(wire.Answer{Status: ex.Status, Header: ex.Header, Body: ex.Body, Candidate: o.Candidate}))
			case !ex.Stream:
				resp, err := anthropic.DecodeResponse(ex.Body, o)
				wiretest.Compare(t, ex, resp, err)
				wiretest.CompareParts(t, ex, resp)
			default:
				for _, replay := range ex.Replays() {
					t.Run(replay.Name, func(t *testing.T) {
						var r frames = sse.NewReader(replay.Reader())
						if ex.Header.Get("Content-Type") == bedrock.ContentType {
							r = bedrock.NewReader(replay.Reader(), o.Candidate)
						}
						resp, err := decodeStream(t, r, o)
						wiretest.Compare(t, ex, resp, err)
						wiretest.CompareParts(t, ex, resp)
					})
				}
			}
		})
	}
}

// TestRecordedRequests: what working clients sent must survive the way through
// the vocabulary.
func TestRecordedRequests(t *testing.T) {
	for _, ex := range wiretest.Exchanges(t, ninelives.AnthropicMessages) {
		if ex.Request == nil {
			continue
		}
		t.Run(ex.Name, func(t *testing.T) {
			in, err := anthropic.DecodeRequest(ex.Request)
			if err != nil {
				t.Fatal(err)
			}
			target := generous()
			target.Stream = in.Stream
			target.Candidate.Model = in.Request.Model
			if ex.Provider == "bedrock" || ex.Provider == "vertex" {
				target.Dialect.Drop = []string{"model"}
				target.Dialect.BodyVersion = wiretestVersion(ex.Request)
			}
			out, err := anthropic.EncodeRequest(in.Request, target)
			if err != nil {
				t.Fatal(err)
			}
			if diff := differentJSON(ex.Request, out.Body); diff != "" {
				t.Error(diff)
			}
			if len(out.Notes) > 0 {
				t.Errorf("a request of this protocol was changed: %q", out.Notes)
			}
		})
	}
}
