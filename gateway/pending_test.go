package gateway

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// sends is a client that notes what comes together.
type sends struct {
	list []string
	buf  bytes.Buffer
}

func (s *sends) Start(int, http.Header)      {}
func (s *sends) Write(p []byte) (int, error) { return s.buf.Write(p) }
func (s *sends) Flush() error {
	s.list = append(s.list, s.buf.String())
	s.buf.Reset()
	return nil
}

// words are the texts of each thing that was sent.
func (s *sends) words() (out []string) {
	for _, sent := range s.list {
		var found []string
		for _, w := range []string{"one", "two", "three", "four"} {
			if strings.Contains(sent, `"`+w+`"`) {
				found = append(found, w)
			}
		}
		out = append(out, strings.Join(found, " "))
	}
	return out
}

func TestWhatAProviderSendsTogetherIsSentTogetherAndNeverHeldBackWhileItIsWaitedFor(t *testing.T) {
	type step func(*stream)
	say := func(attempt int, word string) step {
		return func(s *stream) { s.event(ninelives.TextDelta{Attempt: attempt, Text: word}) }
	}
	pause := func(attempt int, waiting bool) step {
		return func(s *stream) { s.pause(attempt, waiting) }
	}
	frame := func(word string, more bool) step {
		return func(s *stream) {
			s.frame(&ninelives.Frame{Attempt: 1, Data: []byte(`data: "` + word + "\"\n\n"), More: more})
		}
	}
	end := func(s *stream) { s.stop() }
	for _, tt := range []struct {
		name  string
		steps []step
		want  []string
	}{
		{"nothing is known of the attempt", []step{say(1, "one"), say(1, "two")}, []string{"one", "two"}},
		{"until it waits", []step{pause(1, false), say(1, "one"), say(1, "two"), pause(1, true), say(1, "three")}, []string{"one two", "three"}},
		{"handed on after it has begun to wait", []step{pause(1, false), pause(1, true), say(1, "one")}, []string{"one"}},
		{"another one runs", []step{pause(1, false), say(1, "one"), pause(2, false), say(1, "two"), pause(2, true), say(1, "three")}, []string{"one two", "three"}},
		{"the one beside it waits", []step{pause(1, false), say(1, "one"), pause(2, true), say(1, "two"), pause(1, true)}, []string{"one", "two"}},
		{"until the end", []step{pause(1, false), say(1, "one"), end}, []string{"one"}},
		{"frames that promise another", []step{frame("one", true), frame("two", true), frame("three", false), frame("four", false)}, []string{"one two three", "four"}},
		{"a promise that is not kept", []step{frame("one", true), end}, []string{"one"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := &sends{}
			s := &stream{codec: chat, out: out, head: func(http.Header) {}, options: wire.EncodeOptions{ID: "c", Created: time.Unix(1, 0)}}
			s.start()
			for _, do := range tt.steps {
				do(s)
			}
			s.stop()
			if got := out.words(); !slices.Equal(got, tt.want) || out.buf.Len() > 0 {
				t.Errorf("sent %q and %q kept, want %q", got, out.buf.String(), tt.want)
			}
		})
	}
}

func TestWhatIsCollectedIsBounded(t *testing.T) {
	out := &sends{}
	s := &stream{codec: chat, out: out, head: func(http.Header) {}}
	s.start()
	defer s.stop()
	piece := bytes.Repeat([]byte("x"), 5000)
	for range 100 {
		s.frame(&ninelives.Frame{Attempt: 1, Data: piece, More: true})
		if len(s.pending) > maxPending {
			t.Fatalf("%d bytes are kept", len(s.pending))
		}
	}
	if out.buf.Len()+len(s.pending) != 500_000 {
		t.Errorf("%d bytes were written, %d are kept", out.buf.Len(), len(s.pending))
	}
}
