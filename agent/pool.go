package agent

import (
	"slices"
	"sync"
)

// pool counts, while it happens, what the subagents of a turn use of the quotas
// that they share with it. Each of them decides by its own record; what those
// beside it use meanwhile is in no record of its own, and is looked up here.
type pool struct {
	mu     *sync.Mutex // one for all that share
	parent *pool       // of the turn that this one was started for; nil for none
	own    Spent       // by this turn, and by those below it that its record knows
	open   []*pool     // those below it that its record does not know yet
}

func newPool() *pool { return &pool{mu: &sync.Mutex{}} }

// child adds a turn that was started for this one, and has used that much.
func (p *pool) child(used Spent) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &pool{mu: p.mu, parent: p, own: used}
	p.open = append(p.open, c)
	return c
}

// set says what the turn's record has of its use; the children named are in it.
func (p *pool) set(own Spent, children ...*pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own = own
	p.open = slices.DeleteFunc(p.open, func(c *pool) bool { return slices.Contains(children, c) })
}

// event counts one event of a stream.
func (p *pool) event() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own.Events++
}

// begin counts a call that is about to run, unless the guard, which is shown what
// others have used by now, stops it. Nobody else begins one meanwhile.
func (p *pool) begin(name string, files []string, check func(others Spent) Ruling) Ruling {
	p.mu.Lock()
	defer p.mu.Unlock()
	if others := p.beside(); !others.none() {
		if r := check(others); r.Verdict == VerdictStop {
			return r
		}
	}
	p.own.begin(name, files)
	return Ruling{}
}

// others is what was used that the turn's own record does not have.
func (p *pool) others() Spent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beside()
}

func (p *pool) beside() (s Spent) {
	for _, c := range p.open {
		c.sum(&s)
	}
	for q := p; q.parent != nil; q = q.parent {
		for _, c := range q.parent.open {
			if c != q {
				c.sum(&s)
			}
		}
	}
	return s
}

func (p *pool) sum(s *Spent) {
	s.add(&p.own)
	for _, c := range p.open {
		c.sum(s)
	}
}

func (s *Spent) none() bool { return s.Events == 0 && s.Calls == 0 && s.Cost == 0 }

func (s *Spent) add(o *Spent) {
	s.Events += o.Events
	s.Calls += o.Calls
	s.Cost += o.Cost
	s.Usage = total(s.Usage, o.Usage)
	s.PerTool, s.PerFile = plus(s.PerTool, o.PerTool), plus(s.PerFile, o.PerFile)
}

func (s *Spent) begin(name string, files []string) {
	s.Calls++
	s.PerTool = plus(s.PerTool, map[string]int{name: 1})
	for _, file := range files {
		s.PerFile = plus(s.PerFile, map[string]int{file: 1})
	}
}

// plus adds counts to those of sum, which it may change.
func plus(sum, counts map[string]int) map[string]int {
	for name, n := range counts {
		if sum == nil {
			sum = map[string]int{}
		}
		sum[name] += n
	}
	return sum
}

// take counts what a subagent has used.
func (t *Tally) take(s *Spent) {
	t.Events += s.Events
	t.Calls += s.Calls
	t.Cost += s.Cost
	t.PerTool, t.PerFile = plus(t.PerTool, s.PerTool), plus(t.PerFile, s.PerFile)
}

// spent is what a subagent's turn, the first of its session, has used of the
// quotas that it shares.
func (s *State) spent() (u Spent) {
	if len(s.turns) == 0 || s.shared == nil {
		return u
	}
	t := &s.turns[0]
	u = Spent{Events: t.Events, Calls: t.Calls, Usage: t.Usage, Cost: t.Cost}
	if len(s.turns) == 1 { // the tally is that of the last turn
		u.PerTool = minus(s.run.tally.PerTool, s.shared.PerTool)
		u.PerFile = minus(s.run.tally.PerFile, s.shared.PerFile)
	}
	return u
}

// minus is what was counted since then.
func minus(now, then map[string]int) (d map[string]int) {
	for name, n := range now {
		if n -= then[name]; n > 0 {
			d = plus(d, map[string]int{name: n})
		}
	}
	return d
}
