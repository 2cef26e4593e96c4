package agent

import (
	"fmt"
	"slices"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Do is what a driver can do next.
type Do string

// What can be done.
const (
	DoNothing Do = ""        // no turn is open
	DoAsk     Do = "ask"     // ask the model: Purpose, Inputs
	DoRun     Do = "run"     // run Calls
	DoSettle  Do = "settle"  // find out what became of Calls, which were cut off
	DoCompact Do = "compact" // make the context smaller: Why
	DoTell    Do = "tell"    // tell the model Note
	DoEnd     Do = "end"     // end the turn: End, once Calls have been answered as not run
)

// Action is what the decider wants done.
type Action struct {
	Do      Do
	Purpose Purpose
	// Inputs are the numbers of the inputs that the request takes up.
	Inputs []int
	// Calls are the ids of calls of the last answer that have no result.
	Calls []string
	// Why is the reason of a compaction; Force: under the threshold too.
	Why   string
	Force bool
	// Limit and Note are what the model is told, and which limit says so.
	Limit string
	Note  string
	End   End
}

// maxCuts is how many answers in a row may be cut off in a call. Source: design
// 000 §3.3 (three continuations).
const maxCuts = 3

// decide says what next. It is a pure function of what is recorded and of the
// time: no clock, no network, nothing remembered.
//
//	idle ──Start──► ask ──Answer──► run ⇄ tell ──► ask … ──► end
//	                 │ ▲             ▲
//	            Failure └─compact    settle (after a crash)
//
// docs/agent.md has the whole picture.
func decide(s *State, at time.Time) Action {
	if !s.open() {
		return Action{}
	}
	r := &s.run
	pending := s.unanswered()
	if cut := ids(pending, func(c pendingCall) bool { return c.intent != nil }); len(cut) > 0 {
		return Action{Do: DoSettle, Calls: cut}
	}
	if end, over := s.over(at, len(pending) == 0); over {
		return s.end(end, pending)
	}
	if len(pending) > 0 {
		return Action{Do: DoRun, Calls: ids(pending, func(pendingCall) bool { return true })}
	}
	if a, done := s.afterFailure(); done {
		return a
	}
	if r.failed == nil && r.answer != nil {
		if end, done := s.afterAnswer(); done {
			return s.end(end, nil)
		}
	}
	if r.effects > r.noticed {
		if rule := r.start.Settings.Guard.AfterCalls(s.tally(at)); rule.Verdict == VerdictNotice {
			return Action{Do: DoTell, Limit: rule.Limit, Note: rule.Message}
		}
	}
	if r.failed != nil && r.failed.Cut && !r.told {
		return Action{Do: DoTell, Note: cutOffNote(r.failed)}
	}
	if s.exhausted() && !r.lastWord {
		return Action{Do: DoTell, Limit: LimitIterations, Note: lastWordNote(r.start.Settings.Iterations)}
	}
	return s.ask()
}

// ask asks the model, once the context has room for it.
func (s *State) ask() Action {
	r := &s.run
	if !r.compacted {
		if _, level := s.pressure(); level == LevelAct {
			return Action{Do: DoCompact, Why: WhyThreshold}
		}
	}
	a := Action{Do: DoAsk, Purpose: PurposeStep}
	if s.exhausted() {
		a.Purpose = PurposeFinal
	}
	for _, in := range s.waiting {
		if in.Note || in.Via != ViaQueue {
			a.Inputs = append(a.Inputs, in.Number)
		}
	}
	return a
}

// exhausted reports that the turn has had as many answers as it may.
func (s *State) exhausted() bool {
	most := s.run.start.Settings.Iterations
	return most > 0 && s.run.steps >= most
}

// over says whether somebody or something outside the conversation ends the
// turn. answered: all calls of the last answer have their results.
func (s *State) over(at time.Time, answered bool) (End, bool) {
	r := &s.run
	set := &r.start.Settings
	t := s.tally(at)
	switch {
	case r.stopped != nil && r.stopped.Deadline:
		return End{Reason: ReasonDeadline, Message: "the time that was given has passed"}, true
	case r.stopped != nil && r.stopped.Hook == "":
		return End{Reason: ReasonCanceled, Message: "stopped by the user"}, true
	case r.stopped != nil:
		return End{Reason: ReasonDenied, Message: blocked(r.stopped)}, true
	case r.denied:
		return End{Reason: ReasonDenied, Message: "the user said no to a call and ended the turn"}, true
	case set.Deadline > 0 && t.Elapsed >= set.Deadline && !s.whole():
		return End{Reason: ReasonDeadline, Message: "the deadline of the turn has passed"}, true
	case r.ruled != nil:
		return limited(r.ruled.Limit, r.ruled.Message), true
	}
	rule := set.Guard.During(t)
	if rule.Verdict != VerdictStop && answered && r.effects > r.noticed {
		rule = set.Guard.AfterCalls(t)
	}
	// A whole answer stands, whatever the counters say once it is there.
	if rule.Verdict == VerdictStop && !s.whole() {
		return limited(rule.Limit, rule.Message), true
	}
	if r.capped && s.exhausted() {
		return s.capEnd(t), true
	}
	return End{}, false
}

// capEnd is the end of a turn that has had as many answers as it may.
func (s *State) capEnd(t *Tally) End {
	why := fmt.Sprintf("reached maximum of %d iterations", s.run.start.Settings.Iterations)
	return limited(LimitIterations, t.StopMessage(why))
}

// whole reports that the last answer ends the turn by itself.
func (s *State) whole() bool {
	r := &s.run
	return r.answer != nil && r.failed == nil && len(r.calls) == 0 && !r.capped && !s.called()
}

// limited is the end that a guard puts to a turn.
func limited(limit, message string) End {
	e := End{Reason: ReasonLimit, Limit: limit, Message: message}
	switch limit {
	case LimitLoop, LimitCycle, LimitChant:
		e.Reason = ReasonLoop
	case LimitDenials:
		e.Reason = ReasonDenied
	}
	return e
}

// afterAnswer ends the turn where the model has said its last word.
func (s *State) afterAnswer() (End, bool) {
	r := &s.run
	if len(r.calls) > 0 || s.called() {
		return End{}, false
	}
	switch r.answer.Finish {
	case ninelives.FinishLength:
		return End{Reason: ReasonTruncated, Message: "the answer was cut off at the limit of its length; what there is of it was kept"}, true
	case ninelives.FinishRefusal:
		return End{Reason: ReasonRefused, Message: "the model declined"}, true
	}
	return End{Reason: ReasonComplete, Output: r.answer.Output}, true
}

// called reports that something waits that the running turn is to take up.
func (s *State) called() bool {
	return slices.ContainsFunc(s.waiting, func(in Input) bool { return in.Note || in.Via != ViaQueue })
}

// afterFailure says what follows on a request that gave no answer: nothing, if
// it simply goes again.
func (s *State) afterFailure() (Action, bool) {
	r := &s.run
	f := r.failed
	if f == nil {
		return Action{}, false
	}
	fail := func(reason Reason, message string) (Action, bool) {
		if r.start.Settings.Iterations > 0 && s.exhausted() && reason != ReasonOverflow {
			// The last word that was asked for did not come; the cap is why it ends.
			end := s.capEnd(s.tally(s.last))
			end.Fault = f.Fault
			return s.end(end, nil), true
		}
		return s.end(End{Reason: reason, Message: message, Fault: f.Fault}, nil), true
	}
	class := ninelives.ClassUnknown
	if f.Fault != nil {
		class = f.Fault.Class
	}
	switch {
	case f.Canceled: // and whatever stopped it has been lifted
		return Action{}, false
	case f.Cut && r.cuts <= maxCuts:
		return Action{}, false
	case f.Cut && f.Broken != "":
		return fail(ReasonFailed, fmt.Sprintf("%d answers in a row held a call that is no JSON: %s", r.cuts, f.Text))
	case f.Cut:
		return fail(ReasonTruncated, fmt.Sprintf("%d answers in a row were cut off in a call: %s", r.cuts, f.Text))
	case class == ninelives.ClassContextLength && (r.overflows > 1 || r.stuck):
		return fail(ReasonOverflow, "the context is too long for the model, also after it was made smaller: "+f.Text)
	case class == ninelives.ClassContextLength && r.compacted:
		return Action{}, false
	case class == ninelives.ClassContextLength:
		return Action{Do: DoCompact, Why: WhyOverflow, Force: true}, true
	}
	switch class {
	case ninelives.ClassRefusal, ninelives.ClassContentFilter:
		return fail(ReasonRefused, f.Text)
	case ninelives.ClassTruncated:
		return fail(ReasonTruncated, f.Text)
	case ninelives.ClassEmpty:
		return fail(ReasonEmpty, f.Text)
	}
	return fail(ReasonFailed, f.Text)
}

// end ends the turn after its open calls were answered.
func (s *State) end(e End, pending []pendingCall) Action {
	e.Turn = s.turn().Number
	e.FailedTurn = e.Reason.Failed()
	return Action{Do: DoEnd, End: e, Calls: ids(pending, func(pendingCall) bool { return true })}
}

func ids(calls []pendingCall, chosen func(pendingCall) bool) (list []string) {
	for _, c := range calls {
		if chosen(c) {
			list = append(list, c.ID)
		}
	}
	return list
}
