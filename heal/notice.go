package heal

import (
	"fmt"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// told is a notice and the event that it is in a stream.
type told struct {
	notice ninelives.Notice
	event  ninelives.Event
}

func tell(n ninelives.Notice) told { return told{n, n} }

// tell tells the observer and the consumer of a step and reports whether the
// consumer is still there.
func (c *call) tell(n told) bool {
	if c.h.observe != nil {
		c.outside = true
		c.h.observe(n.notice)
		c.outside = false
	}
	return c.hand(n.event, nil)
}

func (c *call) notice(n ninelives.Notice) bool { return c.tell(tell(n)) }

// announce tells what is done next and why, before it is done. The first
// attempt at a healthy candidate needs no word.
func (c *call) announce(d Decision) {
	to := c.links[d.Candidate].name
	last := c.lastAttempt()
	n := ninelives.Notice{Candidate: to, Attempt: c.requests() + 1, Text: d.Why}
	if last != nil {
		n.Fault = last.Fault
	}
	switch d.Reason {
	case ReasonRetry:
		n.Kind = ninelives.NoticeRetry
	case ReasonFailover:
		n.Kind = ninelives.NoticeFailover
		n.Candidate, n.Next = c.links[last.Candidate].name, to
	case ReasonRepair:
		n.Kind = ninelives.NoticeRepair
		for i := range d.Repairs[1:] {
			more := n
			more.Repair = &d.Repairs[i+1]
			c.notice(more)
		}
		n.Repair = &d.Repairs[0]
	case ReasonEmpty:
		n.Kind = ninelives.NoticeRetry
		if d.Change.Prompt == PromptNudge {
			n.Kind = ninelives.NoticeNudge
		}
	case ReasonCorrect:
		n.Kind = ninelives.NoticeNudge
	case ReasonContinue:
		n.Kind = ninelives.NoticeContinue
	case ReasonReturn, ReasonTurn:
		n.Kind = ninelives.NoticeWait
		n.Wait = d.Wait
	case ReasonLeastBad:
		n.Kind = ninelives.NoticeProbe
	case ReasonFirst:
		if !d.Probe {
			return
		}
		n.Kind = ninelives.NoticeProbe
	}
	c.notice(n)
	if d.Change.Prompt == PromptContinue && d.Reason != ReasonContinue {
		c.notice(ninelives.Notice{Kind: ninelives.NoticeContinue, Attempt: n.Attempt, Candidate: to,
			Text: "what was delivered stays, and is gone on with"})
	}
	if d.Wait > 0 && d.Reason != ReasonReturn && d.Reason != ReasonTurn {
		c.notice(ninelives.Notice{Kind: ninelives.NoticeWait, Attempt: n.Attempt, Candidate: to, Wait: d.Wait,
			Text: "waiting " + short(d.Wait)})
	}
}

// tellFault tells that an attempt failed and, if that rests its candidate, for
// how long.
func (c *call) tellFault(t *take, gaveUp bool) {
	name := c.links[t.index].name
	c.notice(ninelives.Notice{Kind: ninelives.NoticeFault, Attempt: t.number, Candidate: name, Fault: t.fault,
		Took: time.Since(t.began), Text: t.fault.Error()})
	if gaveUp {
		c.tellRest(t, t.fault)
	}
}

// tellRest tells that the candidate of an attempt rests, if it does.
func (c *call) tellRest(t *take, why *ninelives.Fault) {
	name := c.links[t.index].name
	s := &c.s.Candidates[t.index].Standing
	if !s.Healthy() && s.Until.After(time.Now()) {
		wait := time.Until(s.Until)
		c.notice(ninelives.Notice{Kind: ninelives.NoticeCooldown, Attempt: t.number, Candidate: name, Fault: why,
			Wait: wait, Text: fmt.Sprintf("%s rests for %s", name, short(wait))})
	}
}

// tellSwitch tells that another candidate than the first one asked has taken
// over, now that it has succeeded.
//
// Source: design 000 §2.2.
func (c *call) tellSwitch(a *Attempt) {
	if a.Candidate == 0 {
		return
	}
	name := c.links[a.Candidate].name
	c.notice(ninelives.Notice{Kind: ninelives.NoticeSwitch, Attempt: a.Number, Candidate: c.links[0].name, Next: name,
		Took: a.Ended.Sub(a.Began), Text: fmt.Sprintf("switched to fallback #%d: %s", a.Candidate, name)})
}

func (c *call) lastAttempt() *Attempt {
	for i := len(c.s.Attempts) - 1; i >= 0; i-- {
		if a := &c.s.Attempts[i]; !a.Lost {
			return a
		}
	}
	return nil
}

// short writes a duration for a human.
func short(d time.Duration) string {
	switch {
	case d >= time.Minute:
		s := d.Round(time.Second).String()
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		return s
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
