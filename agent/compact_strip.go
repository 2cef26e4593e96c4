package agent

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
)

// stripMark begins what stands in the place of a stripped result. It is the
// same for the same result, so that the provider's cache holds.
const stripMark = "[result left out to save room: "

// strip is tier 1.
func (p *plan) strip(over int) bool {
	any := false
	for i := range p.old {
		it := &p.old[i]
		m, ok := stripped(*it.Message, over)
		if !ok {
			continue
		}
		size := Estimate(m)
		p.sum += size - it.size
		it.Message, it.size = &m, size
		any = true
	}
	if any {
		p.strippedN = len(p.old)
	}
	return any
}

// stripped gives the message without what its results are longer than over
// characters, and whether there was any. What it gives is never stripped again.
func stripped(m ninelives.Message, over int) (ninelives.Message, bool) {
	any := false
	for i, part := range m.Parts {
		r, ok := part.(ninelives.ToolResult)
		if !ok {
			continue
		}
		n, other := 0, 0
		for _, c := range r.Content {
			if t, ok := c.(ninelives.Text); ok {
				n += utf8.RuneCountInString(t.Text)
			} else {
				other++
			}
		}
		if other == 0 && n <= over || strings.HasPrefix(r.Text(), stripMark) {
			continue
		}
		note := leftOut(n, other)
		if other == 0 && n <= len(note) {
			continue
		}
		if !any {
			any = true
			m.Parts = slices.Clone(m.Parts)
		}
		r.Content = []ninelives.Part{ninelives.Text{Text: note}}
		m.Parts[i] = r
	}
	return m, any
}

// leftOut says what was left out and how to have it again. Reading is all that
// it suggests: what a call has done must not be done a second time.
func leftOut(characters, other int) string {
	what := strconv.Itoa(characters) + " characters"
	if other > 0 {
		what += ", " + strconv.Itoa(other) + " images or files"
	}
	return stripMark + what + "; if it is needed, read its source again, but do not repeat a call that changes anything]"
}
