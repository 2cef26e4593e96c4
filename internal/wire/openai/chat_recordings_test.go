package openai_test

import (
	"io"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

// TestRecordings has a subtest for each recorded exchange of both protocols.
func TestRecordings(t *testing.T) {
	t.Run(string(ninelives.OpenAIChat), chatRecordings)
	t.Run(string(ninelives.OpenAIResponses), responsesRecordings)
}

func chatRecordings(t *testing.T) {
	for _, ex := range wiretest.Exchanges(t, ninelives.OpenAIChat) {
		t.Run(ex.Name, func(t *testing.T) {
			o := chatRecordingOptions(ex)
			if ex.Status != 200 {
				wiretest.Compare(t, ex, nil, wire.Classify(wire.Answer{Status: ex.Status, Header: ex.Header, Body: ex.Body, Candidate: o.Candidate}))
				return
			}
			if !ex.Stream {
				resp, err := openai.DecodeChatResponse(ex.Body, o)
				wiretest.Compare(t, ex, resp, err)
				return
			}
			for _, replay := range ex.Replays() {
				t.Run(replay.Name, func(t *testing.T) {
					events, resp, err := chatDecode(replay.Reader(), o)
					wiretest.Compare(t, ex, resp, err)
					if err == nil {
						chatCompareEvents(t, events, resp)
					}
				})
			}
		})
	}
}

// chatRecordingOptions read an exchange in the dialect of its server, as it
// was asked. Recordings count thinking in tags as text.
func chatRecordingOptions(ex wiretest.Exchange) wire.DecodeOptions {
	dialect, _ := wire.DialectFor("https://"+ex.Host+ex.Path, ex.Model)
	dialect.ThinkTags = false
	return wire.DecodeOptions{
		Candidate: ninelives.Candidate{Provider: ex.Provider, Model: ex.Model, Protocol: ninelives.OpenAIChat},
		Dialect:   dialect,
	}
}

// chatDecode reads a stream to its end.
func chatDecode(src io.Reader, o wire.DecodeOptions) ([]ninelives.Event, *ninelives.Response, error) {
	r, d := sse.NewReader(src), openai.NewChatDecoder(o)
	var events []ninelives.Event
	for {
		f, err := r.Next()
		if err != nil {
			if body := r.Body(); body != nil {
				resp, err := openai.DecodeChatResponse(body, o)
				return events, resp, err
			}
			if err == io.EOF {
				err = nil
			}
			resp, err := d.Response(err)
			return events, resp, err
		}
		if err := d.Frame(f, func(ev ninelives.Event) bool { events = append(events, ev); return true }); err != nil {
			return events, nil, err
		}
	}
}

// chatCompareEvents checks that the deltas add up to the message.
func chatCompareEvents(t interface {
	Helper()
	Errorf(format string, args ...any)
}, events []ninelives.Event, resp *ninelives.Response) {
	t.Helper()
	got := map[int]string{}
	var ids, names = map[int]string{}, map[int]string{}
	for _, ev := range events {
		switch e := ev.(type) {
		case ninelives.TextDelta:
			got[e.Part] += e.Text
		case ninelives.ReasoningDelta:
			got[e.Part] += e.Text
		case ninelives.RefusalDelta:
			got[e.Part] += e.Text
		case ninelives.ToolCallDelta:
			got[e.Part] += e.Arguments
			ids[e.Part] += e.ID
			names[e.Part] += e.Name
		}
	}
	for i, part := range resp.Message.Parts {
		want := ""
		switch p := part.(type) {
		case ninelives.Text:
			want = p.Text
		case ninelives.Reasoning:
			want = p.Text
		case ninelives.Refusal:
			want = p.Text
		case ninelives.ToolCall:
			want = p.Arguments
			if ids[i] != p.ID || names[i] != p.Name {
				t.Errorf("part %d: the deltas name call %q %q, it is %q %q", i, ids[i], names[i], p.ID, p.Name)
			}
		}
		if got[i] != want {
			t.Errorf("part %d: the deltas add up to %q, want %q", i, got[i], want)
		}
		delete(got, i)
	}
	for i, text := range got {
		t.Errorf("deltas for a part %d that is not there: %q", i, text)
	}
}
