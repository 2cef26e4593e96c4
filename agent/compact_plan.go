package agent

import (
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// plan is a view under way: what may be touched of a context, and what has
// become of it so far.
type plan struct {
	c *CompactionSettings
	x *Context
	// old are the messages that may be touched, or what takes their place. What
	// takes a place stands before all that stands as it is.
	old []item
	// protected are the last messages, which are never summarised.
	protected []ninelives.Message
	// replaced counts the messages of x that something took the place of.
	replaced  int
	strippedN int // how many of the messages of x are stripped
	overhead  int
	sum       int // tokens of all
}

// item is one message of the older part.
type item struct {
	*ninelives.Message
	told   *ninelives.Message // what a summary is made of: as it was before it was stripped
	size   int
	from   int  // its index in x; -1: it was made here
	cut    bool // the history may be cut before it
	keep   bool // the user's word, kept as it is
	digest bool // a summary or a description
}

func (c *CompactionSettings) plan(x Context) *plan {
	p := &plan{c: c, x: &x, overhead: x.Overhead}
	n := len(x.Messages)
	cuts := cuts(x.Messages)
	first := max(n-max(c.Protected, 0), 0)
	for first > 0 && !cuts[first] {
		first--
	}
	p.protected = x.Messages[first:]
	p.sum = x.Overhead + Estimate(p.protected...)
	budget := min(c.KeepUser, x.room()/4)
	for i := range p.protected {
		if spoken(&p.protected[i]) {
			budget -= Estimate(p.protected[i])
		}
	}
	p.old = make([]item, first)
	for i := first - 1; i >= 0; i-- {
		m := &x.Messages[i]
		it := item{Message: m, told: m, size: Estimate(x.Messages[i]), from: i, cut: cuts[i], digest: digested(m)}
		switch {
		case m.Role == ninelives.RoleSystem, m.Role == ninelives.RoleDeveloper:
			it.keep = true
		case spoken(m) && it.size <= budget:
			it.keep = true
			budget -= it.size
		}
		p.sum += it.size
		p.old[i] = it
	}
	return p
}

// cuts says before which messages a history may be cut: nowhere between a call
// and its result. It has one more element than there are messages.
func cuts(messages []ninelives.Message) []bool {
	free := make([]bool, len(messages)+1)
	calls := make(map[string]int, len(messages)/2)
	// last is the last message that a call of an earlier one reaches into.
	reach := make([]int, len(messages))
	for i := range messages {
		for _, part := range messages[i].Parts {
			switch part := part.(type) {
			case ninelives.ToolCall:
				calls[part.ID] = i
			case ninelives.ToolResult:
				if from, ok := calls[part.CallID]; ok {
					reach[from] = i
				}
			}
		}
	}
	last := -1
	for i := range messages {
		free[i] = last < i
		last = max(last, reach[i])
	}
	free[len(messages)] = true
	return free
}

// spoken says that the user said it, and no program.
func spoken(m *ninelives.Message) bool { return m.Role == ninelives.RoleUser && !digested(m) }

// digested says that a compaction made the message.
func digested(m *ninelives.Message) bool {
	if m.Role != ninelives.RoleUser || len(m.Parts) != 1 {
		return false
	}
	t, ok := m.Parts[0].(ninelives.Text)
	return ok && strings.HasPrefix(t.Text, digestMark)
}

func (p *plan) tokens() int { return p.sum }

// digest makes an item of a summary or a description.
func digest(text string) item {
	m := ninelives.UserText(text)
	return item{Message: &m, told: &m, size: Estimate(m), from: -1, cut: true, digest: true}
}

// replace puts a digest, and before it the user's words, in the place of the
// older messages from a up to b.
func (p *plan) replace(a, b int, with ...item) {
	var kept []item
	for i := a; i < b; i++ {
		it := p.old[i]
		p.replaced = max(p.replaced, it.from+1)
		if it.keep {
			it.cut = true
			kept = append(kept, it)
			continue
		}
		p.sum -= it.size
	}
	for i := range with {
		p.sum += with[i].size
	}
	p.old = slices.Concat(p.old[:a], kept, with, p.old[b:])
}

// gone is what replacing the messages from a up to b would take away.
func (p *plan) gone(a, b int) int {
	n := 0
	for i := a; i < b; i++ {
		if !p.old[i].keep {
			n += p.old[i].size
		}
	}
	return n
}

// mark and back undo what was tried.
func (p *plan) mark() plan     { return *p }
func (p *plan) back(made plan) { *p = made }

func (p *plan) view() []ninelives.Message {
	view := make([]ninelives.Message, 0, len(p.old)+len(p.protected))
	for i := range p.old {
		view = append(view, *p.old[i].Message)
	}
	return append(view, p.protected...)
}

// tell writes down what has become of the context.
func (p *plan) tell(done *Compaction) {
	// What an earlier compaction put there has one place in the history: it is
	// taken over as a whole, or not at all.
	through := p.x.Through
	inOne := func(k int) bool { return k > 0 && k < len(through) && through[k] == through[k-1] }
	end := p.replaced
	if inOne(p.strippedN) {
		end = max(end, p.strippedN)
	}
	for inOne(end) {
		end++
	}
	if p.strippedN > end {
		done.StripOver, done.Strip = p.c.StripOver, through[p.strippedN-1]
	}
	if end == 0 {
		return
	}
	done.Through = through[end-1]
	for i := range p.old {
		if it := &p.old[i]; it.from < end {
			done.View = append(done.View, *it.Message)
		}
	}
	if first := len(p.x.Messages) - len(p.protected); end > first {
		done.View = append(done.View, p.protected[:end-first]...)
	}
}

// Apply gives the view that a compaction makes of another one, and its Through
// (see [Context]). It changes neither.
func (c *Compaction) Apply(view []ninelives.Message, through []int) ([]ninelives.Message, []int) {
	if len(c.View) > 0 {
		k, _ := slices.BinarySearch(through, c.Through+1)
		places := make([]int, len(c.View), len(c.View)+len(through)-k)
		for i := range places {
			places[i] = c.Through
		}
		view = slices.Concat(c.View, view[k:])
		through = append(places, through[k:]...)
	}
	if c.StripOver > 0 {
		view = slices.Clone(view)
		for i := range view {
			if through[i] > c.Strip {
				break
			}
			if m, ok := stripped(view[i], c.StripOver); ok {
				view[i] = m
			}
		}
	}
	return view, through
}
