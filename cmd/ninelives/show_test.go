package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestTerminalsAreNotSteered(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext – é 猫":      "plain\n\ttext – é 猫",
		"\x1b[2J\x1b]0;title\x07":  "␛[2J␛]0;title␇",
		"a\r\nb":                   "a\nb",
		"\x00\x7f":                 "␀␡",
		"\u009b31m \u202eabc":      "\uFFFD31m \uFFFDabc",
		"\u200e\u200f\u061c\u2067": "\uFFFD\uFFFD\uFFFD\uFFFD",
		"a\u2028b\U000e0041c":      "a\uFFFDb\uFFFDc",
	} {
		if got := visible(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	if got := oneLine(" a\n\tb\r\nc "); got != "a b c" {
		t.Errorf("one line: %q", got)
	}
}

// pieces are pieces of an answer.
var pieces = rapid.SampledFrom([]string{"a", " cat", "\n", "lands ", "\x1b[31m", "é", ""})

// Whatever attempts say before they are voided, a pipe gets the accepted
// answer and nothing else, and a terminal ends with it.
func TestOnlyTheAcceptedAnswerStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, live := range []bool{true, false} {
			var out, log bytes.Buffer
			s := &show{out: &out, log: &log, live: live, sameTTY: live}
			attempts := rapid.IntRange(1, 4).Draw(t, "attempts")
			said := ""
			for n := 1; n <= attempts; n++ {
				said = ""
				for range rapid.IntRange(0, 5).Draw(t, "pieces") {
					p := pieces.Draw(t, "piece")
					said += p
					s.event(ninelives.TextDelta{Attempt: n, Text: p})
				}
				if n < attempts {
					s.event(ninelives.Notice{Kind: ninelives.NoticeFault, Attempt: n, Fault: &ninelives.Fault{Class: ninelives.ClassStreamBroken}})
					s.event(ninelives.Discard{Attempt: n})
				}
			}
			// The answer may be another one than the deltas told (a stale one).
			if rapid.Bool().Draw(t, "other") {
				said = "another answer"
			}
			if err := s.answer(&ninelives.Response{Message: ninelives.AssistantText(said), Finish: ninelives.FinishStop}); err != nil {
				t.Fatal(err)
			}
			want := said
			if !strings.HasSuffix(want, "\n") {
				want += "\n"
			}
			if !live {
				if out.String() != want {
					t.Fatalf("the pipe got %q, want %q", out.String(), want)
				}
				continue
			}
			got := out.String()
			if i := strings.LastIndex(got, "──\n"); i >= 0 {
				got = got[i+len("──\n"):]
			}
			if strings.TrimSuffix(got, "\n") != strings.TrimSuffix(visible(want), "\n") {
				t.Fatalf("the terminal ends with %q, want %q; all of it: %q", got, visible(want), out.String())
			}
		}
	})
}

func TestWhatDidNotBecomeWholeIsMarked(t *testing.T) {
	var out, log bytes.Buffer
	s := &show{out: &out, log: &log, live: true, sameTTY: true}
	s.event(ninelives.TextDelta{Attempt: 1, Text: "half an"})
	s.failure("0123456789abcdef", errors.New("nobody\nanswered"), exitUnavailable)
	if want := "half an\n── the text above is void: the answer did not become whole ──\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if want := "ninelives: nobody; answered\nThe question is kept; take it up with: ninelives ask --resume 0123456789abcdef\n"; log.String() != want {
		t.Errorf("got %q, want %q", log.String(), want)
	}
}

// brokenWriter is a reader that has gone.
type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestAReaderThatHasGoneIsTold(t *testing.T) {
	for _, tell := range []teller{&show{out: brokenWriter{errGone}, log: new(bytes.Buffer), live: true}, &lines{out: brokenWriter{errGone}}} {
		if err := tell.event(ninelives.TextDelta{Text: "a"}); !errors.Is(err, errGone) {
			t.Errorf("%T: %v", tell, err)
		}
	}
}

var errGone = fmt.Errorf("gone")
