package heal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
)

// seam joins a continuation to the text that it continues: what it repeats of
// the text is swallowed. Models that are asked to go on often begin with the
// last words again, or open the block of code again that they were in, and
// some begin the whole answer again.
type seam struct {
	told    string
	prefill bool // the text was the beginning of the model's own answer

	held string // came, and may yet turn out to be a repetition
	pos  int    // the earliest place in told that held may be a repetition of
	open bool   // the seam is behind us

	// lead is how much of held only leads in a repetition; fenced: it opens a
	// block of code again, and is no part of the answer whatever follows.
	lead   int
	fenced bool
	// again is how far held says the same as told from its beginning on, word
	// for word: up to which places, and by how many letters.
	again struct{ told, held, letters int }
}

// A repetition of sureOverlap bytes proves itself; restartOverlap bytes or
// letters of the beginning make a restart.
const (
	sureOverlap    = 20
	restartOverlap = 24
)

// feed passes a piece of the continuation through the seam: it may keep it
// back, shorten it or give it out together with what was kept back. The fault
// says that the continuation began anew with other words: then the two do not
// make one answer.
func (s *seam) feed(text string) (string, *ninelives.Fault) {
	if s.open {
		return text, nil
	}
	s.held += text
	return s.give(false)
}

// rest gives out what is still kept back when no more of it comes.
func (s *seam) rest() (string, *ninelives.Fault) {
	if s.open {
		return "", nil
	}
	return s.give(true)
}

func (s *seam) give(end bool) (string, *ninelives.Fault) {
	overlap, sure, fault := s.match(end)
	if fault != nil || !sure {
		return "", fault
	}
	text := s.held[overlap:]
	s.open, s.held = true, ""
	return text, nil
}

// match finds how much of what is held repeats what was told. It is not sure
// while more of a repetition may come; at the end nothing more comes.
func (s *seam) match(end bool) (overlap int, sure bool, fault *ninelives.Fault) {
	for {
		came := s.held[s.lead:]
		for ; s.pos < len(s.told); s.pos++ {
			tail := s.told[s.pos:]
			n := min(len(tail), len(came))
			switch {
			case tail[:n] == came[:n]:
				if n == len(tail) && s.significant(n) {
					return s.lead + n, true, nil
				}
				if n < len(tail) && !end {
					return 0, false, nil
				}
			case s.pos == 0 && s.lead == 0:
				if overlap, sure, fault := s.restart(end); overlap > 0 || !sure || fault != nil {
					return overlap, sure, fault
				}
			}
		}
		if s.lead > 0 {
			break
		}
		lead, fenced, sure := s.leadIn(end)
		if !sure {
			return 0, false, nil
		}
		if lead == 0 {
			break
		}
		s.lead, s.fenced, s.pos = lead, fenced, 0
	}
	if s.fenced {
		return s.lead, true, nil
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
	word := strings.IndexFunc(s.told[len(s.told)-n:], inWord)
	before, _ := utf8.DecodeLastRuneInString(s.told[:len(s.told)-n])
	return word == 0 && !inWord(before) || word > 0 && s.lead > 0
}

// restart finds out whether the continuation is the whole answer again, word
// for word if not sign for sign: then it is aligned after its words. The fault
// says that it begins like the answer and goes on with other words.
func (s *seam) restart(end bool) (overlap int, sure bool, fault *ninelives.Fault) {
	at := &s.again
	for {
		told, held := s.told[at.told:], s.held[at.held:]
		toldGap, heldGap := strings.IndexFunc(told, inWord), strings.IndexFunc(held, inWord)
		switch {
		case heldGap < 0 && !end, heldGap >= 0 && !utf8.FullRuneInString(held[heldGap:]) && !end:
			return 0, false, nil // its next word may yet come
		case toldGap < 0 && (told == "" || heldGap != 0):
			if at.letters < restartOverlap {
				return 0, true, nil
			}
			return at.held + common(told, held), true, nil
		case toldGap >= 0 && heldGap >= 0:
			a, n := utf8.DecodeRuneInString(told[toldGap:])
			b, m := utf8.DecodeRuneInString(held[heldGap:])
			if a == b {
				at.told, at.held, at.letters = at.told+toldGap+n, at.held+heldGap+m, at.letters+1
				continue
			}
		case heldGap < 0:
			return 0, true, nil // it is shorter than the answer
		}
		if at.letters >= restartOverlap || commonPrefix(s.told, s.held) >= restartOverlap {
			return 0, true, &ninelives.Fault{Class: ninelives.ClassStreamBroken, Phase: ninelives.PhaseStream,
				Message: "the continuation began the answer anew with other words"}
		}
		return 0, true, nil
	}
}

// leadIn is what a model that is asked to go on may say before it repeats
// something: the fence of the block of code that the text is in, or the dots
// with which the end of the text was quoted.
func (s *seam) leadIn(end bool) (n int, fenced, sure bool) {
	if s.prefill {
		return 0, false, true
	}
	for i, lead := range [...]string{openFence(s.told), "…", "..."} {
		switch {
		case lead == "":
		case strings.HasPrefix(s.held, lead):
			return len(lead), i == 0, true
		case strings.HasPrefix(lead, s.held) && !end:
			return 0, false, false
		}
	}
	return 0, false, true
}

// openFence is the line that opens the block of code in which the text ends;
// empty if it ends in none, or in one that is opened as it would be closed.
func openFence(text string) string {
	open := ""
	for line := range strings.Lines(text) {
		mark := strings.TrimRightFunc(line, unicode.IsSpace)
		switch {
		case !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "~~~"):
		case open == "":
			open = mark
		case strings.HasPrefix(open, mark): // the same marks, and no more
			open = ""
		}
	}
	if strings.Trim(open, "`~") == "" {
		return ""
	}
	return open + "\n"
}

// space is how much of the white space at the end of told the continuation
// repeats: a prefill is sent without it.
func (s *seam) space() int {
	if !s.prefill {
		return 0
	}
	return common(s.told[len(strings.TrimRightFunc(s.told, unicode.IsSpace)):], s.held)
}

// common is how much of what came says again what is there, or the end of it.
func common(there, came string) int {
	n := commonPrefix(there, came)
	for n > 0 && (n < len(there) && !utf8.RuneStart(there[n]) || n < len(came) && !utf8.RuneStart(came[n])) {
		n--
	}
	for k := min(len(there), len(came)); k > n; k-- {
		if strings.HasSuffix(there, came[:k]) {
			return k
		}
	}
	return n
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// overlap is what feed would swallow of a whole continuation.
func overlap(told, text string, prefill bool) (int, *ninelives.Fault) {
	s := seam{told: told, prefill: prefill, held: text}
	n, _, fault := s.match(true)
	return n, fault
}
