package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// hearer is a client that keeps when it got which bytes.
type hearer struct {
	bytes.Buffer
	starts int
	at     []time.Time
	gone   error // what writing fails with
}

func (h *hearer) Start(int, http.Header) { h.starts++ }
func (h *hearer) Flush() error           { return h.gone }
func (h *hearer) Write(p []byte) (int, error) {
	if h.gone != nil {
		return 0, h.gone
	}
	h.at = append(h.at, time.Now())
	return h.Buffer.Write(p)
}

type streamCodec struct {
	name    string
	codec   *codec
	decoder func(wire.DecodeOptions) wire.Decoder
}

var streamCodecs = []streamCodec{
	{"chat", chat, openai.NewChatDecoder},
	{"responses", responses, openai.NewResponsesDecoder},
	{"messages", messages, anthropic.NewDecoder},
	{"gemini", generate, gemini.NewDecoder},
}

// eachCodec runs a test in every protocol of a client, in virtual time.
func eachCodec(t *testing.T, test func(t *testing.T, h *hearer, s *stream, read func() *ninelives.Response)) {
	for _, c := range streamCodecs {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hearer{}
				s := &stream{codec: c.codec, out: h, head: func(http.Header) {}, options: wire.EncodeOptions{ID: "answer_1", Model: "m", Usage: true}}
				s.start()
				defer s.stop()
				test(t, h, s, func() *ninelives.Response {
					t.Helper()
					d := c.decoder(wire.DecodeOptions{})
					r := sse.NewReader(bytes.NewReader(h.Bytes()))
					for f, err := r.Next(); err == nil; f, err = r.Next() {
						if err := d.Frame(f, func(ninelives.Event) bool { return true }); err != nil {
							t.Fatalf("%v in\n%s", err, h.Bytes())
						}
					}
					resp, err := d.Response(nil)
					if err != nil {
						t.Fatalf("%v in\n%s", err, h.Bytes())
					}
					return resp
				})
			})
		})
	}
}

// said are the bytes that a provider of the protocol sends for events.
func said(c *codec, events ...ninelives.Event) []byte {
	e := c.encoder(wire.EncodeOptions{ID: "theirs_1", Model: "m", Usage: true})
	var b []byte
	for _, ev := range events {
		b = e.Event(b, ev)
	}
	return b
}

// relayed is what a model yields that reads bytes and relays them: of each frame
// what it says, then its bytes. Without last, the bytes of the last frame are
// missing.
func relayed(t *testing.T, c *codec, attempt int, b []byte, last bool) []ninelives.Event {
	t.Helper()
	i := slices.IndexFunc(streamCodecs, func(e streamCodec) bool { return e.codec == c })
	d := streamCodecs[i].decoder(wire.DecodeOptions{Attempt: attempt})
	list := []ninelives.Event{&ninelives.Frame{Attempt: attempt}}
	r := sse.NewReader(bytes.NewReader(b))
	r.Keep()
	for f, err := r.Next(); err == nil; f, err = r.Next() {
		if err := d.Frame(f, func(ev ninelives.Event) bool { list = append(list, ev); return true }); err != nil {
			t.Fatal(err)
		}
		list = append(list, &ninelives.Frame{Attempt: attempt, Data: bytes.Clone(r.Raw()), End: d.State() != wire.Open})
	}
	if !last {
		list = list[:len(list)-1]
	}
	return list
}

func says(attempt int, text string) ninelives.Event {
	return ninelives.TextDelta{Attempt: attempt, Text: text}
}

func doneWith(attempt int, text string) ninelives.Done {
	return ninelives.Done{Attempt: attempt, Response: &ninelives.Response{Message: ninelives.AssistantText(text), Finish: ninelives.FinishStop,
		Usage: ninelives.Usage{Input: 1, Output: 2, Reported: ninelives.UsageInput | ninelives.UsageOutput}}}
}

// tellAll gives a stream events, none of which may fail.
func tellAll(t *testing.T, s *stream, events ...ninelives.Event) {
	t.Helper()
	for _, ev := range events {
		if err := s.event(ev); err != nil {
			t.Fatalf("%#v: %v", ev, err)
		}
	}
}

func TestWhatIsRelayedIsTheProvidersOwnBytes(t *testing.T) {
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, _ func() *ninelives.Response) {
		b := said(s.codec, says(1, "Hello"), doneWith(1, "Hello"))
		tellAll(t, s, relayed(t, s.codec, 1, b, true)...)
		tellAll(t, s, doneWith(1, "Hello"))
		if h.String() != string(b) || h.starts != 1 {
			t.Errorf("got\n%s\nwant\n%s", h.String(), b)
		}
	})
}

// The client holds all frames but the last, whose text was told: another attempt
// goes on after all that was told, in the same answer.
func TestAnotherAttemptGoesOnWhereRelayedBytesEnded(t *testing.T) {
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, read func() *ninelives.Response) {
		b := said(s.codec, says(1, "One "))
		tellAll(t, s, relayed(t, s.codec, 1, said(s.codec, says(1, "One "), says(1, "two ")), false)...)
		tellAll(t, s, attempt(2, "other/m"), says(2, "three"), doneWith(2, "One two three"))
		if !bytes.HasPrefix(h.Bytes(), b) {
			t.Errorf("the relayed bytes are changed:\n%s", h.String())
		}
		r := read()
		if r.Text() != "One two three" || len(r.Message.Parts) != 1 || r.Finish != ninelives.FinishStop || r.Usage.TotalOutput() != 2 {
			t.Errorf("the client holds %+v of\n%s", r, h.String())
		}
		if bytes.Contains(h.Bytes(), []byte("answer_1")) {
			t.Errorf("the answer has two ids:\n%s", h.String())
		}
	})
}

// The rescuer relays nothing, even if it has the bytes.
func TestNobodyRelaysTwice(t *testing.T) {
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, read func() *ninelives.Response) {
		tellAll(t, s, relayed(t, s.codec, 1, said(s.codec, says(1, "One ")), true)...)
		tellAll(t, s, relayed(t, s.codec, 2, said(s.codec, says(2, "two"), doneWith(2, "two")), true)...)
		tellAll(t, s, doneWith(2, "One two"))
		if r := read(); r.Text() != "One two" || len(r.Message.Parts) != 1 {
			t.Errorf("the client holds %+v of\n%s", r, h.String())
		}
	})
}

// A tool call of the rescuer is written, whole, after the text that was relayed.
func TestACallOfARescuerIsWritten(t *testing.T) {
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, read func() *ninelives.Response) {
		end := doneWith(2, "Wait. ")
		end.Response.Finish = ninelives.FinishToolCalls
		end.Response.Message.Parts = append(end.Response.Message.Parts, ninelives.ToolCall{ID: "call_1", Name: "look", Arguments: `{"q":1}`})
		tellAll(t, s, relayed(t, s.codec, 1, said(s.codec, says(1, "Wait. ")), true)...)
		tellAll(t, s, ninelives.ToolCallDelta{Attempt: 2, Part: 1, ID: "call_1", Name: "look", Arguments: `{"q":1}`}, end)
		r := read()
		calls := r.Message.ToolCalls()
		if r.Text() != "Wait. " || len(calls) != 1 || calls[0].Name != "look" || calls[0].Arguments != `{"q":1}` || r.Finish != ninelives.FinishToolCalls {
			t.Errorf("the client holds %+v of\n%s", r, h.String())
		}
	})
}

// The answer that is accepted has a call that no delta told of: it is written.
func TestAnAnswerWithMoreThanWasRelayedIsCompleted(t *testing.T) {
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, read func() *ninelives.Response) {
		tellAll(t, s, relayed(t, s.codec, 1, said(s.codec, says(1, "Wait. ")), true)...)
		end := doneWith(2, "Wait. ")
		end.Response.Finish = ninelives.FinishToolCalls
		end.Response.Message.Parts = append(end.Response.Message.Parts, ninelives.ToolCall{ID: "call_1", Name: "look", Arguments: `{"q":1}`})
		tellAll(t, s, end)
		if calls := read().Message.ToolCalls(); len(calls) != 1 || calls[0].Arguments != `{"q":1}` {
			t.Errorf("the client holds %+v of\n%s", calls, h.String())
		}
	})
}

func beats(h *hearer, began time.Time) (list []time.Duration) {
	synctest.Wait()
	for _, at := range h.at {
		list = append(list, at.Sub(began))
	}
	return list
}

func TestASilentCallGivesSignsOfLifeAndStillItsAnswer(t *testing.T) {
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, read func() *ninelives.Response) {
		began := time.Now()
		time.Sleep(80 * time.Second)
		if got, want := beats(h, began), []time.Duration{50 * time.Second, 62 * time.Second, 74 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("signs of life at %v, want %v", got, want)
		}
		// What comes now is not relayed: the answer has begun.
		tellAll(t, s, relayed(t, s.codec, 1, said(s.codec, says(1, "Hello"), doneWith(1, "Hello")), true)...)
		tellAll(t, s, doneWith(1, "Hello"))
		if r := read(); r.Text() != "Hello" || len(r.Message.Parts) != 1 || h.starts != 1 {
			t.Errorf("the client holds %+v of\n%s", r, h.String())
		}
	})
}

func TestSilenceWithinARelayedAnswerIsBridged(t *testing.T) {
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, read func() *ninelives.Response) {
		began := time.Now()
		list := relayed(t, s.codec, 1, said(s.codec, says(1, "One "), says(1, "two"), doneWith(1, "One two")), true)
		cut := slices.IndexFunc(list, func(ev ninelives.Event) bool { d, ok := ev.(ninelives.TextDelta); return ok && d.Text == "two" })
		tellAll(t, s, list[:cut]...)
		time.Sleep(45 * time.Second)
		tellAll(t, s, list[cut:cut+2]...)
		time.Sleep(30 * time.Second)
		// 12 s after the last byte, but not before the first 50 s.
		got := slices.Compact(beats(h, began))
		if want := []time.Duration{0, 45 * time.Second, 57 * time.Second, 69 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("bytes at %v, want %v", got, want)
		}
		tellAll(t, s, list[cut+2:]...)
		tellAll(t, s, doneWith(1, "One two"))
		if r := read(); r.Text() != "One two" || len(r.Message.Parts) != 1 || bytes.Contains(h.Bytes(), []byte("answer_1")) {
			t.Errorf("the client holds %+v of\n%s", r, h.String())
		}
	})
}

func TestNoSignOfLifeFollowsTheEnd(t *testing.T) {
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, read func() *ninelives.Response) {
		tellAll(t, s, says(1, "Hello"), doneWith(1, "Hello"))
		s.stop()
		n := h.Len()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if h.Len() != n {
			t.Errorf("after the end: %s", h.Bytes()[n:])
		}
		if r := read(); r.Text() != "Hello" {
			t.Errorf("the client holds %q", r.Text())
		}
	})
}

func TestAClientThatHasGoneIsSaidSoAndLeftAlone(t *testing.T) {
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, _ func() *ninelives.Response) {
		h.gone = errors.New("gone")
		list := relayed(t, s.codec, 1, said(s.codec, says(1, "Hello")), true)
		var err error
		for _, ev := range list {
			err = s.event(ev)
		}
		if !errors.Is(err, h.gone) {
			t.Errorf("the write: %v", err)
		}
		h.gone = nil
		if err := s.event(list[len(list)-1]); err == nil {
			t.Error("the next one was tried")
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if len(h.at) > 0 {
			t.Errorf("%d writes to a client that has gone", len(h.at))
		}
	})
}

// A stream that breaks after bytes were relayed ends in the protocol's error.
func TestABrokenRelayEndsInAnError(t *testing.T) {
	eachCodec(t, func(t *testing.T, h *hearer, s *stream, _ func() *ninelives.Response) {
		b := said(s.codec, says(1, "Hello"))
		tellAll(t, s, relayed(t, s.codec, 1, b, true)...)
		s.fail(&ninelives.Fault{Class: ninelives.ClassOverloaded, Status: 529, Message: "busy"})
		rest := string(h.Bytes()[len(b):])
		if !strings.Contains(rest, "error") || strings.Contains(rest, "[DONE]") || strings.Contains(rest, "message_stop") || strings.Contains(rest, "response.completed") || strings.Contains(rest, `"STOP"`) {
			t.Errorf("it ends in %s", rest)
		}
	})
}

// Gemini's older form of a stream is an array; the provider is asked for events.
func TestAnArrayIsWrittenAndNotRelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hearer{}
		s := &stream{codec: geminiArray, out: h, head: func(http.Header) {}}
		s.start()
		defer s.stop()
		time.Sleep(time.Minute) // white space is no harm to it
		tellAll(t, s, relayed(t, generate, 1, said(generate, says(1, "Hello"), doneWith(1, "Hello")), true)...)
		tellAll(t, s, doneWith(1, "Hello"))
		var chunks []json.RawMessage
		if err := json.Unmarshal(h.Bytes(), &chunks); err != nil || len(chunks) == 0 {
			t.Fatalf("%v: %s", err, h.String())
		}
		if r, err := gemini.DecodeResponse(h.Bytes(), wire.DecodeOptions{}); err != nil || r.Text() != "Hello" {
			t.Errorf("the client holds %+v, %v", r, err)
		}
	})
}
