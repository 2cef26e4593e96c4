package heal

import (
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"pgregory.net/rapid"
)

// through passes a continuation through a seam in pieces.
func through(s *seam, pieces ...string) (string, *ninelives.Fault) {
	var out strings.Builder
	for _, p := range pieces {
		d := ninelives.TextDelta{Text: p}
		if f := s.feed(&d); f != nil {
			return out.String(), f
		}
		out.WriteString(d.Text)
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
		{"an empty continuation", "one", "", "", false},
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
		words := rapid.StringMatching(`([ab]{1,3}[ ,]?){0,20}`)
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
