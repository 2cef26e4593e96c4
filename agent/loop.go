package agent

import "fmt"

// The loop guard looks at calls together with their results, so that it takes
// no work for a loop: the same command whose output changes is work, and so is
// a check that says the same again after each of many different edits.
//
// Source: the design, section 6.

// same reports that a call was made again and gave the same.
func (a Trace) same(b Trace) bool { return a.again(b) && a.Result == b.Result }

// again reports that a call was made again.
func (a Trace) again(b Trace) bool { return a.Name == b.Name && a.Call == b.Call }

// traced reports that the last step has left a trace: of one that only polled
// there is nothing to say that was not said before.
func (t *Tally) traced() bool {
	return len(t.Recent) > 0 && t.Recent[len(t.Recent)-1].Step == t.Step
}

// loop looks for a call of the last step that keeps giving the same result.
func (g *GuardSettings) loop(t *Tally) Ruling {
	if g.LoopWindow <= 0 || !t.traced() {
		return Ruling{}
	}
	window := t.Recent[max(0, len(t.Recent)-g.LoopWindow):]
	step := t.Step
	var worst Trace
	most, stop := 0, false
	for last := len(window) - 1; last >= 0; last-- {
		if step == 0 && last < len(window)-1 || window[last].Step != step {
			break
		}
		n, heard := repeats(window[:last+1])
		if n > most {
			most, worst = n, window[last]
		}
		// A model that makes one call many times in one answer has not yet seen
		// that it leads nowhere.
		if g.LoopStop > 0 && n >= g.LoopStop && heard {
			worst, most, stop = window[last], n, true
			break
		}
	}
	switch {
	case stop:
		return t.stop(LimitLoop, fmt.Sprintf("loop detected: %s was called %d times with the same arguments and the same result",
			plain(worst.Name), most))
	case g.LoopNotice > 0 && most >= g.LoopNotice:
		return Ruling{Verdict: VerdictNotice, Limit: LimitLoop, Message: fmt.Sprintf(
			"%s has now given the same result for the same arguments %d times in the last %d calls. Asking again will not change it: use what it gave, try another way, or say what stands in the way.",
			plain(worst.Name), most, len(window))}
	}
	return Ruling{}
}

// repeats counts how often the last call of the window gave the same result,
// back to where it gave another or where another call changed a file. Heard:
// they came from more than one answer.
func repeats(window []Trace) (n int, heard bool) {
	last := window[len(window)-1]
	for i := len(window) - 1; i >= 0; i-- {
		c := window[i]
		switch {
		case c.same(last):
			n++
			heard = heard || c.Step != last.Step || c.Step == 0
		case c.again(last), c.Changed:
			return n, heard
		}
	}
	return n, heard
}

// cycle looks for a series of two to CycleLength calls, with their results,
// that makes up all of the last calls.
func (g *GuardSettings) cycle(t *Tally) Ruling {
	if g.CycleRepeats <= 1 || !t.traced() {
		return Ruling{}
	}
	for length := 2; length <= g.CycleLength; length++ {
		tail := len(t.Recent) - length*g.CycleRepeats
		if tail < 0 {
			break
		}
		if calls := t.Recent[tail:]; periodic(calls, length) && !periodic(calls, 1) {
			return t.stop(LimitCycle, fmt.Sprintf("loop detected: the same %d tool invocations with the same results came %d times in a row",
				length, g.CycleRepeats))
		}
	}
	return Ruling{}
}

// periodic reports that each call is the same as the one length before it.
func periodic(calls []Trace, length int) bool {
	for i := length; i < len(calls); i++ {
		if !calls[i].same(calls[i-length]) {
			return false
		}
	}
	return true
}
