package heal

import (
	"sync"

	ninelives "github.com/ninelives-ai/ninelives"
)

// lessons is what calls have taught about candidates: the repairs that their
// requests need, and the windows that they turned out to have.
type lessons struct {
	mu sync.RWMutex
	of map[lesson]learnt
}

// lesson is what a lesson is about: every credential of one server speaks the
// same dialect.
type lesson struct {
	provider, model, host string
	protocol              ninelives.Protocol
}

type learnt struct {
	repairs []ninelives.Repair
	window  int
}

func newLessons() *lessons { return &lessons{of: map[lesson]learnt{}} }

func lessonOf(c ninelives.Candidate) lesson { return lesson{c.Provider, c.Model, c.Host, c.Protocol} }

// apply gives a contender what was learnt about its candidate.
func (l *lessons) apply(at *Contender) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.of) == 0 {
		return
	}
	of := l.of[lessonOf(at.Candidate)]
	at.Repairs = of.repairs
	tellWindow(&at.Candidate, of.window)
}

// tellWindow fills in or narrows a window by what its provider told: one that
// is set stays, and an error never proves that a window is larger than known.
//
// Source: design 001, layer 4 (setting, exact, family, then the default).
func tellWindow(c *ninelives.Candidate, told int) {
	if told > 0 && c.WindowSource != "setting" && (!windowKnown(c) || told < c.Window) {
		c.Window, c.WindowSource = told, "learnt"
	}
}

// add remembers repairs that have proved themselves; those for one call only
// are not remembered.
func (l *lessons) add(c ninelives.Candidate, repairs []ninelives.Repair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.of[lessonOf(c)]
	for _, r := range repairs {
		if !r.Once && !hasRepair(of.repairs, r) {
			of.repairs = append(of.repairs[:len(of.repairs):len(of.repairs)], r)
		}
	}
	if len(of.repairs) > 0 || of.window > 0 {
		l.of[lessonOf(c)] = of
	}
}

// windowOf remembers a window that the provider named.
func (l *lessons) windowOf(c ninelives.Candidate, window int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.of[lessonOf(c)]
	of.window = window
	l.of[lessonOf(c)] = of
}

// learn takes the lessons of an attempt: its repairs have proved themselves
// once the provider gives an answer.
func (c *call) learn(t *take) {
	at := &c.s.Candidates[t.index]
	f := t.fault
	if f != nil && f.Class == ninelives.ClassContextLength && f.Window > 0 {
		c.h.lessons.windowOf(at.Candidate, f.Window)
		tellWindow(&at.Candidate, f.Window)
	}
	if len(at.Repairs) > 0 && t.resp != nil && t.well() {
		c.h.lessons.add(at.Candidate, at.Repairs)
	}
}
