package heal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
)

// seam joins a continuation to the text that it continues: what it repeats of
// the text is swallowed. Models that are asked to go on often begin with the
// last words again, and some begin the whole answer again.
type seam struct {
	told    string
	prefill bool // the text was the beginning of the model's own answer

	// first is the index of the part that the text continues; parts maps the
	// continuation's other parts, in the order of their coming, behind it.
	first int
	parts []int

	held string // came, and may yet turn out to be a repetition
	pos  int    // the earliest place in told that held may be a repetition of
	open bool   // the seam is behind us
}

// A repetition of sureOverlap bytes proves itself; restartOverlap bytes of the
// beginning make a restart.
const (
	sureOverlap    = 20
	restartOverlap = 24
)

// feed passes a piece of the continuation through the seam: it may keep it
// back, shorten it or give it out together with what was kept back. The fault
// says that the continuation began anew with other words: then the two do not
// make one answer.
func (s *seam) feed(d *ninelives.TextDelta) *ninelives.Fault {
	d.Part = s.part(d.Part)
	if s.open {
		return nil
	}
	s.held += d.Text
	d.Text = ""
	overlap, sure, fault := s.match(false)
	if fault != nil || !sure {
		return fault
	}
	s.open = true
	d.Text, s.held = s.held[overlap:], ""
	return nil
}

// rest gives out what is still kept back when the continuation has ended.
func (s *seam) rest() (string, *ninelives.Fault) {
	if s.open {
		return "", nil
	}
	overlap, _, fault := s.match(true)
	if fault != nil {
		return "", fault
	}
	s.open = true
	return s.held[overlap:], nil
}

// match finds how much of what is held repeats the end of told. It is not sure
// while more of a repetition may come; at the end nothing more comes.
func (s *seam) match(end bool) (overlap int, sure bool, fault *ninelives.Fault) {
	for ; s.pos < len(s.told); s.pos++ {
		tail := s.told[s.pos:]
		n := min(len(tail), len(s.held))
		if tail[:n] == s.held[:n] {
			switch {
			case n == len(tail):
				if s.significant(n) {
					return n, true, nil
				}
				return s.space(), true, nil
			case !end:
				return 0, false, nil
			}
			continue
		}
		if s.pos == 0 && commonPrefix(s.told, s.held) >= min(restartOverlap, len(s.told)) {
			return 0, true, &ninelives.Fault{Class: ninelives.ClassStreamBroken, Phase: ninelives.PhaseStream,
				Message: "the continuation began the answer anew with other words"}
		}
	}
	return s.space(), true, nil
}

// significant says that an overlap of n bytes is a repetition. A model that is
// asked to go on is not in the middle of its own text: if it begins with the
// word that the text ends with, it says it again, or two words would be glued
// together. A model that continues a prefill may well repeat a word on purpose.
func (s *seam) significant(n int) bool {
	if n >= sureOverlap || n == len(s.told) {
		return true
	}
	if s.prefill {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s.told[:len(s.told)-n])
	first, _ := utf8.DecodeRuneInString(s.told[len(s.told)-n:])
	return inWord(first) && !inWord(before)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// space is how much of the white space at the end of told the continuation
// repeats: a prefill is sent without it.
func (s *seam) space() int {
	trimmed := strings.TrimRightFunc(s.told, unicode.IsSpace)
	if !s.prefill {
		return 0
	}
	return commonPrefix(s.told[len(trimmed):], s.held)
}

// part maps a part of the continuation to the part of the whole answer.
func (s *seam) part(p int) int {
	for i, have := range s.parts {
		if have == p {
			return s.first + i
		}
	}
	s.parts = append(s.parts, p)
	return s.first + len(s.parts) - 1
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// overlap is what feed would swallow of a whole continuation.
func overlap(told, text string, prefill bool) (int, *ninelives.Fault) {
	s := seam{told: told, prefill: prefill}
	s.held = text
	n, _, fault := s.match(true)
	return n, fault
}
