package heal

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Situation is one call at one moment: everything that a decision is made
// from, as a value. It holds no clock and no chance of its own.
type Situation struct {
	Now time.Time
	// Deadline ends the call; zero means that nothing does.
	Deadline time.Time
	Facts    Facts
	// Mode is the rescue mode of this call; empty means the policy's.
	Mode Mode
	// Candidates is the chain in its order of preference.
	Candidates []Contender
	// Attempts is the history of the call, in the order in which attempts ended.
	Attempts []Attempt
	// Degraded says that a substitute answer is at hand.
	Degraded bool
	// Draw is a random number from [0, 1), fresh for every decision: the jitter.
	Draw float64
	// Lot is a random number from [0, 1), drawn once per call: who takes part
	// in the gradual return of a candidate.
	Lot float64
}

// Contender is a candidate as it stands for this call.
type Contender struct {
	Candidate ninelives.Candidate
	Standing  Standing
	// Repairs are the changes of its requests that are in force: those learnt
	// from earlier calls and those made in this one.
	Repairs []ninelives.Repair
	// NoRetry says that its retry budget is spent.
	NoRetry bool
	// Unfit says that the request has no form that its window holds.
	Unfit bool
	// OnRefusal says that it is asked only after another one has refused.
	OnRefusal bool
}

// Attempt is one attempt of the call, as it ended.
type Attempt struct {
	// Number counts from 1 within the call.
	Number int
	// Candidate is its index in the chain.
	Candidate int
	Outcome   ninelives.Outcome
	// Fault is the failure; nil for a complete attempt and for a lost race.
	Fault        *ninelives.Fault
	Began, Ended time.Time
	// Change is how the request differed from the caller's.
	Change Change
	// Released: the consumer holds something of it that it cannot unsee (under
	// ModeRestart: that must be voided).
	Released bool
	// Continuable: what it left is text alone, which another attempt can go on with.
	Continuable bool
	// Acceptable: the answer is whole as far as it goes, so that it may be
	// given to the caller with its flag (length, refusal).
	Acceptable bool
	// Probe: it was the probe of a resting candidate. LeastBad: it was asked
	// although all were out of service.
	Probe    bool
	LeastBad bool
	// Returned: it was waited for while all were out of service.
	Returned bool
	// Lost: it lost a race for the first token and says nothing.
	Lost bool
	// Unsent: no request was made (there was no place at the candidate).
	Unsent bool
	Usage  ninelives.Usage
}

// Prompt names what an attempt adds to the conversation.
type Prompt string

// The prompts.
const (
	PromptNone     Prompt = ""
	PromptNudge    Prompt = "nudge"    // asks for the answer that did not come
	PromptExplain  Prompt = "explain"  // says that the attempt before failed, and of what
	PromptContinue Prompt = "continue" // goes on where the text ends
	PromptCorrect  Prompt = "correct"  // shows the answer and what is wrong with its form
)

// Change is how the request of an attempt differs from the caller's.
type Change struct {
	Prompt Prompt
	// NoTools forbids tool calls, so that only an answer is left to give.
	NoTools bool
}

// Action is what a decision says.
type Action string

// The actions.
const (
	ActStart   Action = "start"   // make an attempt
	ActAccept  Action = "accept"  // the last answer is the call's
	ActDegrade Action = "degrade" // serve the substitute
	ActSurface Action = "surface" // end with the failure
)

// Reason says in one word why an attempt is made.
type Reason string

// The reasons of an attempt.
const (
	ReasonFirst    Reason = "first"
	ReasonRetry    Reason = "retry"     // the same candidate, the same request
	ReasonTurn     Reason = "turn"      // the same, once fewer retries are under way
	ReasonFailover Reason = "failover"  // another candidate
	ReasonRepair   Reason = "repair"    // the request was changed as the provider wants it
	ReasonEmpty    Reason = "empty"     // nothing had come
	ReasonCorrect  Reason = "correct"   // the answer's form is to be corrected
	ReasonContinue Reason = "continue"  // the answer was cut
	ReasonReturn   Reason = "return"    // all are out: the first to come back
	ReasonLeastBad Reason = "least_bad" // all are out, and none comes back in time
)

// Decision is what to do next.
type Decision struct {
	Do Action
	// Why says it for a human.
	Why string

	// For ActStart: Candidate is asked after Wait, with Change and with the new
	// Repairs, which hold for it from now on.
	Candidate int
	Reason    Reason
	Wait      time.Duration
	Change    Change
	Repairs   []ninelives.Repair
	// Probe: the probe place of the candidate is taken.
	Probe bool
	// Hedge is the candidate that starts beside this one after HedgeAfter
	// without a token; HedgeAfter is zero if none does.
	Hedge      int
	HedgeAfter time.Duration

	// Flagged: the accepted answer is not a plain success; its finish reason
	// says so. Default: the caller's Output.Default stands in for it.
	Flagged bool
	Default bool

	// Fault is the failure of ActSurface, and the cause of ActDegrade.
	Fault *ninelives.Fault
	// Exhausted: what could be tried has been tried; the failure is told with
	// its whole trail. Otherwise the fault speaks for itself.
	Exhausted bool
	// Back is when the first candidate may answer again; zero if unknown.
	Back time.Time
}

// Decide says what to do next in a call. It is a pure function: the same
// situation gives the same decision.
//
// It goes from the firm to the soft: what ends the call whatever else is true,
// what the consumer already holds, what the content of the answer asks for,
// and then the three questions of every failure: the same candidate again,
// another one, or later?
func Decide(p *Policy, s Situation) Decision {
	if s.Facts.Background && !p.Persistent {
		b := p.Background()
		p = &b
	}
	if s.Mode == "" {
		s.Mode = p.Mode
	}
	d := decider{p: p, s: &s}
	last := d.last()
	switch {
	case last == nil:
		return d.first()
	case last.Outcome == ninelives.OutcomeComplete:
		return Decision{Do: ActAccept, Why: "the answer is complete"}
	}
	return d.after(last)
}

// decider is one decision being made.
type decider struct {
	p *Policy
	s *Situation
}

// last is the attempt that is decided about: a lost race says nothing.
func (d *decider) last() *Attempt {
	for i := len(d.s.Attempts) - 1; i >= 0; i-- {
		if a := &d.s.Attempts[i]; !a.Lost {
			return a
		}
	}
	return nil
}

// after decides what follows a failed attempt.
func (d *decider) after(a *Attempt) Decision {
	f := a.Fault
	rule := d.p.rule(f)
	switch {
	case f.Class == ninelives.ClassCanceled:
		return Decision{Do: ActSurface, Fault: f, Why: "the caller went away"}
	case f.Class == ninelives.ClassGuard:
		return Decision{Do: ActSurface, Fault: f, Why: "the safety guard stopped it: a retry would defeat the guard"}
	case a.Outcome == ninelives.OutcomeRefused && a.Acceptable && d.watched(a):
		return Decision{Do: ActAccept, Flagged: true, Why: "it refused after text had been delivered: the text stays"}
	}
	if why := d.unrescuable(a); why != "" {
		return Decision{Do: ActSurface, Fault: f, Why: why}
	}
	if why := d.spent(a); why != "" {
		return d.end(a, why)
	}
	if repairs := d.news(a); len(repairs) > 0 {
		return d.start(a.Candidate, Decision{Reason: ReasonRepair, Change: d.carried(a, a.Candidate), Repairs: repairs,
			Why: "the provider said what is wrong with the request: " + repairs[0].String()})
	}
	if next, ok := d.content(a); ok {
		return next
	}
	if f.Class == ninelives.ClassEmpty && a.Change.Prompt == PromptContinue && d.kept() {
		return d.end(a, "the model has nothing to add")
	}
	return d.retry(a, rule)
}

// retry asks the three questions: the same again, another one, or later?
func (d *decider) retry(a *Attempt, rule Rule) Decision {
	f := a.Fault
	here := &d.s.Candidates[a.Candidate]
	tried := d.faulted(a.Candidate)
	wait, fits := d.pause(f, rule, tried-1)
	reason := ReasonRetry
	if d.belied(a, rule) {
		reason = ReasonLeastBad
	}
	again := fits && !here.NoRetry && (here.Standing.Healthy() || reason == ReasonLeastBad) && !d.worn(a.Candidate)

	change := d.carried(a, a.Candidate)
	if d.p.Nudges && change.Prompt == PromptNone {
		change.Prompt = PromptExplain
	}
	same := d.same(a, rule)
	if again && same > 0 && tried <= same && !d.longer(f) {
		return d.start(a.Candidate, Decision{Reason: reason, Wait: wait, Change: change,
			Why: "it may pass: " + words(f.Class)})
	}
	if next, probe, ok := d.next(a, rule); ok {
		return d.start(next, Decision{Reason: ReasonFailover, Probe: probe, Change: d.carried(a, next),
			Why: d.whyNext(a, rule, same, tried)})
	}
	if again && a.countsAsFault() && mayAgain(f, rule) {
		if i, ok := d.lastResort(rule); ok && here.Standing.Healthy() {
			return d.start(i, Decision{Reason: ReasonLeastBad, Change: d.carried(a, i),
				Why: "it rests, but the one that does not keeps failing: " + words(f.Class)})
		}
		return d.start(a.Candidate, Decision{Reason: reason, Wait: wait, Change: change,
			Why: "no other candidate is left: " + words(f.Class)})
	}
	if turn, ok := d.turn(a, wait); ok && here.NoRetry && fits && here.Standing.Healthy() && !d.worn(a.Candidate) && a.countsAsFault() && mayAgain(f, rule) {
		return d.start(a.Candidate, Decision{Reason: ReasonTurn, Wait: turn, Change: change,
			Why: "no other candidate is left, and enough retries are under way: it waits its turn"})
	}
	if rule.Next == NextThen || rule.Next == NextAtOnce {
		if later, ok := d.allOut(a); ok {
			return later
		}
	}
	switch {
	case !fits && f.RetryAfter > 0:
		return d.end(a, "the provider's wait does not fit the deadline")
	case here.NoRetry:
		return d.end(a, "the retry budget is spent")
	}
	return d.end(a, "nothing is left to try")
}

// belied says that a candidate that was asked although it rests has shown that
// the reason of its rest holds no longer: it was one of those that time does not
// heal (a bad key, an unknown model), and now it fails for another that may pass;
// or it says itself when to ask again, and what it says now counts for more than
// what it rests for.
func (d *decider) belied(a *Attempt, rule Rule) bool {
	s := &d.s.Candidates[a.Candidate].Standing
	if s.Healthy() || !rule.Again {
		return false
	}
	return a.LeastBad && s.Probe == ProbeNone && s.Class != a.Fault.Class || (a.LeastBad || a.Probe) && d.hint(a.Fault) > 0
}

// start completes the decision to ask a candidate.
func (d *decider) start(i int, dec Decision) Decision {
	dec.Do, dec.Candidate = ActStart, i
	d.hedge(&dec)
	return dec
}

// end is how a call ends that cannot be helped any further: an answer with its
// flag, the caller's default, the substitute, or the failure.
func (d *decider) end(a *Attempt, why string) Decision {
	f := a.Fault
	if d.s.Facts.Output {
		formless := a.Outcome == ninelives.OutcomeInvalidOutput || a.Outcome == ninelives.OutcomeTruncated
		if formless && d.s.Facts.Default {
			return Decision{Do: ActAccept, Default: true, Fault: f, Why: why + ": the caller's default stands in"}
		}
	}
	if a.Acceptable {
		return Decision{Do: ActAccept, Flagged: true, Why: why + ": the answer is given with its flag"}
	}
	if d.kept() {
		return Decision{Do: ActAccept, Flagged: true, Why: why + ": what there is of the answer is given with its flag"}
	}
	if d.ownFault() {
		return Decision{Do: ActSurface, Fault: f, Why: why}
	}
	dec := Decision{Do: ActSurface, Fault: f, Exhausted: true, Back: d.back(), Why: why}
	if d.degradable() {
		dec.Do = ActDegrade
	}
	return dec
}

// degradable says that a substitute is at hand, that it is better than what
// there is, and that nothing was delivered whose place it cannot take.
func (d *decider) degradable() bool {
	return d.s.Degraded && !d.kept() && (d.s.Mode == ModeRestart || d.s.Mode == ModeHold ||
		d.count(func(a *Attempt) bool { return a.Released }) == 0)
}

// kept says that an earlier attempt left a truncated answer that was being
// continued, and that nothing of a broken one has been mixed in.
func (d *decider) kept() bool {
	if d.s.Facts.Output {
		return false
	}
	for i := len(d.s.Attempts) - 1; i >= 0; i-- {
		switch a := &d.s.Attempts[i]; {
		case a.Lost:
		case a.Outcome == ninelives.OutcomeTruncated && a.Acceptable:
			return true
		case a.Change.Prompt != PromptContinue || a.Released && d.s.Mode != ModeRestart:
			return false
		}
	}
	return false
}

// ownFault says that the request itself is what failed, wherever it went: then
// the fault says more than the trail.
func (d *decider) ownFault() bool {
	for i := range d.s.Attempts {
		a := &d.s.Attempts[i]
		if a.Fault == nil {
			continue
		}
		if ofHost(a.Fault) {
			return false
		}
		switch a.Fault.Class {
		case ninelives.ClassContextLength, ninelives.ClassContentFilter, ninelives.ClassFormat,
			ninelives.ClassInvalidOutput, ninelives.ClassTruncated, ninelives.ClassRefusal:
		default:
			return false
		}
	}
	return true
}

// watched says that somebody has read something of the attempt. A caller who
// waits for the whole answer reads nothing before, whatever was released.
func (d *decider) watched(a *Attempt) bool {
	return a.Released && !(d.s.Facts.Buffered && d.s.Mode == ModeRestart)
}

// unrescuable says why an attempt that the consumer cannot unsee ends the
// call; empty means that it does not.
func (d *decider) unrescuable(a *Attempt) string {
	if !a.Released || d.s.Mode == ModeRestart || d.s.Mode == ModeHold || a.Acceptable {
		return ""
	}
	switch {
	case d.s.Mode == ModeFail:
		return "the answer broke after it had begun"
	case !a.Continuable || d.s.Facts.Output || d.s.Facts.N > 1:
		return "the answer broke after it had begun, and only plain text can be continued"
	}
	return ""
}

// carried is the change that a failed attempt hands on to its successor at
// candidate i: a cut answer is continued there, everything else starts afresh.
func (d *decider) carried(a *Attempt, i int) Change {
	switch {
	case a.Change.Prompt == PromptContinue, a.Released && d.s.Mode == ModeContinue:
		return Change{Prompt: PromptContinue}
	case i == a.Candidate:
		return a.Change
	case a.Change.Prompt == PromptCorrect:
		return a.Change
	}
	return Change{}
}
