package agent

import (
	"fmt"

	ninelives "github.com/ninelives-ai/ninelives"
)

// fitHead stands in the place of what Fit leaves out. It does not say how much,
// so that it stays the same from request to request.
const fitHead = digestMark + "They do not fit the context window of this model and are not shown to it. What is not told here is not known: read files again before relying on them.]"

// Fit gives a view of x that needs at most so many tokens, Overhead included,
// for a candidate whose window is smaller than the one that x was planned for
// ([ninelives.Request.Fit]). It asks no model and has no memory: the same x
// gives the same view. An error says that what must be kept does not fit.
//
// Results are stripped first, then the oldest messages left out, calls together
// with their results; then summaries, and the words of the user last. More is left out at once
// than must be, so that the next requests of the turn leave out the same, and
// the candidate's cache holds.
func (c *CompactionSettings) Fit(x Context, tokens int) ([]ninelives.Message, error) {
	x.Window, x.Reserve = tokens, 0
	p := c.plan(x)
	if p.tokens() <= tokens {
		return x.Messages, nil
	}
	p.strip(c.StripOver)
	if p.tokens() <= tokens {
		return p.view(), nil
	}
	note := digest(fitHead)
	step := max(tokens/4, 1)
	excess := p.tokens() + note.size - tokens
	goal := p.tokens() - (excess+step-1)/step*step
	left := make([]bool, len(p.old))
	for rank := range 3 {
		if rank == 2 {
			goal = tokens - note.size // of the user's words no more than must be
		}
		for a := 0; a < len(p.old) && p.tokens() > goal; {
			b := a + 1
			for b < len(p.old) && !p.old[b].cut {
				b++
			}
			for i := a; i < b; i++ {
				if fitRank(&p.old[i]) == rank {
					left[i] = true
					p.sum -= p.old[i].size
				}
			}
			a = b
		}
	}
	if p.sum += note.size; p.tokens() > tokens {
		return nil, fmt.Errorf("the last %d messages with the system prompt and the tools need about %d tokens and there is room for %d: compact the session, or use a model with a larger window",
			len(p.protected), p.tokens(), tokens)
	}
	view := make([]ninelives.Message, 0, len(x.Messages))
	told := false
	for i := range p.old {
		if !left[i] {
			view = append(view, *p.old[i].Message)
		} else if !told {
			told = true
			view = append(view, *note.Message)
		}
	}
	return append(view, p.protected...), nil
}

// fitRank orders what is left out: 3 never is.
func fitRank(it *item) int {
	switch {
	case it.Role == ninelives.RoleSystem, it.Role == ninelives.RoleDeveloper:
		return 3
	case it.keep:
		return 2
	case it.digest:
		return 1
	}
	return 0
}
