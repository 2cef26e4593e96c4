package heal

import (
	"strings"
	"testing"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
	"pgregory.net/rapid"
)

// through passes a continuation through a seam in pieces.
func through(s *seam, pieces ...string) (string, *ninelives.Fault) {
	var out strings.Builder
	for _, p := range pieces {
		text, f := s.feed(p)
		if f != nil {
			return out.String(), f
		}
		out.WriteString(text)
	}
	rest, f := s.rest()
	out.WriteString(rest)
	return out.String(), f
}

func TestSeam(t *testing.T) {
	for _, tc := range []struct {
		name, told, came, want string
		prefill                bool
	}{
		{"nothing repeated", "The cat sat ", "on the mat.", "on the mat.", false},
		{"in the middle of a word", "The cat s", "at on the mat.", "at on the mat.", false},
		{"the cut word again", "It is unbeliev", "unbelievable.", "able.", false},
		{"the last word again", "The cat sat", "sat on the mat.", " on the mat.", false},
		{"the last clause again", "He came, he saw, and he", "he saw, and he conquered.", " conquered.", false},
		{"all of it again", "The cat sat on", "The cat sat on the mat.", " the mat.", false},
		{"all of it and no more", "The cat sat.", "The cat sat.", "", false},
		{"the last number again", "1, 2, 3", "3, 4", ", 4", false},
		{"a bracket is meant", "f(", "(a)", "(a)", false},
		{"a likeness inside a word is kept", "scatter", "terrible", "terrible", false},
		{"an early likeness that ends elsewhere", "a cat and a cat", "a catalogue", "alogue", false},
		{"prefill: a repeated word is meant", "very very", " very good", " very good", true},
		{"prefill: a clause again", "He came, he saw, and he did so", "he saw, and he did so conquer", " conquer", true},
		{"prefill: the blank that was not sent", "one ", " two", "two", true},
		{"prefill: no blank came", "one ", "two", "two", true},
		{"prefill: a blank line that was not sent", "one\n\n", "\n\ntwo", "two", true},
		{"prefill: a line end that comes as another one", "one\r\n", "\ntwo", "two", true},
		{"prefill: a blank of which half came", "one \n", "\ntwo", "two", true},
		{"prefill: blanks of which the first byte alone is the same", "one\u00a0", "\u0085two", "\u0085two", true},
		{"an empty continuation", "one", "", "", false},
		{"the tail as it was quoted", "He came and he saw", "… and he saw it.", " it.", false},
		{"the tail as it was quoted, in dots", "He came and he saw", "...he saw it.", " it.", false},
		{"dots that are meant", "He came", "... and went", "... and went", false},
		{"the fence of the code again", "Look:\n```go\nfunc main() {\n", "```go\n\tprintln()\n}\n```", "\tprintln()\n}\n```", false},
		{"the fence and the line again", "Look:\n```go\nfunc main() {\n\tprint", "```go\n\tprintln()\n}\n```", "ln()\n}\n```", false},
		{"the fence that had just been opened", "Look:\n```go\n", "```go\none\n```", "one\n```", false},
		{"a fence that closes", "Look:\n```\none\n", "```\ntwo", "```\ntwo", false},
		{"a fence after a closed one", "```go\none\n```\n", "```go\ntwo\n```", "```go\ntwo\n```", false},
		{"another fence", "```go\none\n", "```sh\ntwo\n```", "```sh\ntwo\n```", false},
		{"prefill: a fence is the model's own", "```go\none\n", "```go\ntwo\n```", "```go\ntwo\n```", true},
		{"all of it again, set otherwise", "# Cats\n\nCats land on **their feet**, because ", "Cats\n====\nCats land on their feet, because they turn.", "they turn.", false},
		{"all of it again, broken otherwise", "Cats land on their feet;\nthey are unbeliev", "Cats land on their feet; they are unbelievably", "ably", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, pieces := range map[string][]string{"whole": {tc.came}, "by byte": strings.Split(tc.came, "")} {
				got, f := through(&seam{told: tc.told, prefill: tc.prefill}, pieces...)
				if f != nil || got != tc.want {
					t.Errorf("%s: got %q (%v), want %q", name, got, f, tc.want)
				}
			}
			n, f := overlap(tc.told, tc.came, tc.prefill)
			if f != nil || tc.came[n:] != tc.want {
				t.Errorf("of the whole: got %q (%v), want %q", tc.came[n:], f, tc.want)
			}
		})
	}
}

// However a continuation is cut into pieces, what comes out is the same as for
// the whole of it: the text in the deltas is the text of the answer.
func TestSeamIsTheSameForAnyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.OneOf(rapid.StringMatching(`([ab]{1,3}[ ,]?){0,20}`),
			rapid.StringMatching("((ab|b|ü|\u00a0|\u0085|\r?\n|\n```go\n|\n```\n| |\\.\\.\\.|…|abba abba){1,3}){0,20}"))
		told := words.Draw(t, "told")
		came := words.Draw(t, "came")
		if rapid.Bool().Draw(t, "repeats") && len(told) > 0 {
			came = told[rapid.IntRange(0, len(told)-1).Draw(t, "from"):] + came
		}
		prefill := rapid.Bool().Draw(t, "prefill")
		var pieces []string
		for rest := came; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		n, wantFault := overlap(told, came, prefill)
		got, gotFault := through(&seam{told: told, prefill: prefill}, pieces...)
		if (gotFault == nil) != (wantFault == nil) {
			t.Fatalf("in pieces %v, whole %v", gotFault, wantFault)
		}
		if wantFault == nil && got != came[n:] {
			t.Fatalf("in pieces %q, whole %q", got, came[n:])
		}
		if wantFault == nil && utf8.ValidString(came) && !utf8.ValidString(got) {
			t.Fatalf("a rune was cut: %q", got)
		}
	})
}

func TestTailBeginsWithAWordAndIsValid(t *testing.T) {
	got := tail(strings.Repeat("ütz katzen ", 100))
	if len(got) > tailBytes+len("…") || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "katzen ") {
		t.Errorf("got %q", got)
	}
	if got := tail(strings.Repeat("ü", 500)); strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("cut inside a rune: %q", got)
	}
	equal(t, "a short text", tail("short"), "short")
}

func TestContinuationThatBeginsAnewWithOtherWordsIsNone(t *testing.T) {
	for _, came := range []string{
		"Cats land on their feet because of a reflex.",
		"Cats land on\ntheir **feet** because they turn and turn",
	} {
		for name, pieces := range map[string][]string{"whole": {came}, "by byte": strings.Split(came, "")} {
			got, f := through(&seam{told: "Cats land on their feet because they turn in the "}, pieces...)
			if f == nil || f.Class != ninelives.ClassStreamBroken || got != "" {
				t.Errorf("%s: got %q, %v", name, got, f)
			}
		}
	}
}
