package agent

// Sizes of what a Chant remembers. They are powers of two, so that a position
// becomes an index by masking.
const (
	chantText  = 2048 // runes of the text
	chantMarks = 2048 // places where a window of the text was seen
	// chantPeriod is the longest piece whose repetition is found: a repetition
	// and the window that gives it away must fit into the text.
	chantPeriod = 1000
	// chantBase is the base of the rolling hash: odd and large.
	chantBase = 0x9E3779B97F4A7C15
)

// Chant finds text that goes round in circles: the same piece, of any length up
// to 1,000 characters, that comes ChantRepeats times one after the other; where
// the piece is shorter than ChantLength, the repetitions must be as long
// together as those of a piece of ChantLength.
//
// What is alike by nature is not compared across its borders: a heading, a list
// item, the row of a table, a rule and an indented line each begin anew, and
// code between fences is not looked at.
//
// A Chant belongs to one stream. It takes a few nanoseconds for a character and
// never more memory than at the beginning.
//
// Source: the design, section 6 (50 characters, 10 times).
type Chant struct {
	length, repeats int

	line markdownLine

	// pos counts the runes that were compared; begin is where the present
	// stretch of comparable text began.
	pos, begin int
	text       [chantText]rune
	// hash is that of the last length runes, out what the rune that leaves them
	// is multiplied by.
	hash, out uint64
	marks     [chantMarks]mark
	// period is how far back the text is the same as now, for the last run
	// runes; zero means that it is not known to repeat itself.
	period, run int
}

// mark is where a window with this hash ended last.
type mark struct {
	hash uint64
	end  int
}

// Chant makes a finder for one stream.
func (g *GuardSettings) Chant() *Chant {
	c := &Chant{length: min(g.ChantLength, chantPeriod), repeats: g.ChantRepeats, out: 1}
	for range c.length {
		c.out *= chantBase
	}
	return c
}

// Add takes the next piece of the text and reports that it chants. Texts may be
// cut into pieces anywhere.
func (c *Chant) Add(text string) bool {
	if c.length <= 0 || c.repeats <= 1 {
		return false
	}
	for _, r := range text {
		anew := c.line.next(r)
		if c.line.fence != 0 {
			continue
		}
		if anew {
			c.begin, c.hash, c.period, c.run = c.pos, 0, 0, 0
		}
		if c.next(r) {
			return true
		}
	}
	return false
}

func (c *Chant) next(r rune) bool {
	if c.period > 0 && r == c.text[(c.pos-c.period)&(chantText-1)] {
		c.run++
	} else {
		c.period, c.run = 0, 0
	}
	// The hash of the last length runes: the new one enters, the oldest leaves.
	c.hash = c.hash*chantBase + uint64(r) + 1
	if c.pos-c.begin >= c.length {
		c.hash -= c.out * (uint64(c.text[(c.pos-c.length)&(chantText-1)]) + 1)
	}
	c.text[c.pos&(chantText-1)] = r
	c.pos++
	if c.pos-c.begin < c.length {
		return false
	}
	m := &c.marks[(c.hash>>32)&(chantMarks-1)]
	if c.period == 0 && m.hash == c.hash && m.end-c.length >= c.begin && c.pos-m.end <= chantPeriod {
		c.repeat(c.pos - m.end)
	}
	*m = mark{hash: c.hash, end: c.pos}
	return c.period > 0 && c.run+c.period >= c.repeats*max(c.period, c.length)
}

// repeat takes up a period, if at least a window of the text has it, and counts
// back how long it has held.
func (c *Chant) repeat(period int) {
	oldest := max(c.begin, c.pos-chantText)
	run := 0
	for i := c.pos - 1; i-period >= oldest; i-- {
		if c.text[i&(chantText-1)] != c.text[(i-period)&(chantText-1)] {
			break
		}
		run++
	}
	if run >= c.length {
		c.period, c.run = period, run
	}
}
