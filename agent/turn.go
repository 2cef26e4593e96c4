package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/tool"
)

// turn is the driver of one turn: it asks the decider what next, does it, and
// records it. It runs in the goroutine of whoever loops over its events.
type turn struct {
	s      *Session
	a      *Agent
	ctx    context.Context
	cancel context.CancelCauseFunc
	yield  func(Event, error) bool
	left   bool // nobody listens any more

	model ninelives.Model
	tools toolbox
	set   Settings

	stopAt int     // under Session.mu: the last input that a stop covers; -1 without a stop
	after  []Event // told once what was staged is durable
	step   bool    // BeforeIteration was called for the step that comes
	within bool    // an answer's calls are not done yet
	warned bool    // that the window fills up
	told   int     // the last steered input that was told of
}

// drive carries out a turn that begin has begun.
func (s *Session) drive(ctx context.Context, yield func(Event, error) bool, begin func(*turn) error) {
	t := &turn{s: s, a: s.a, yield: yield, stopAt: -1}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	defer t.cancel(nil)
	free, err := s.occupy(t)
	if err != nil {
		yield(nil, err)
		return
	}
	end, err := func() (Ended, error) {
		// A panic of the consumer passes through: the turn is then one that was cut off.
		defer free()
		defer s.working()()
		if err := begin(t); err != nil {
			return Ended{}, err
		}
		return t.run()
	}()
	switch {
	case t.left:
	case err != nil:
		yield(nil, err)
	default:
		yield(end, nil)
	}
}

// start begins a turn that takes up the inputs.
func (t *turn) start(inputs []int) error {
	e := Start{Inputs: inputs}
	t.s.mu.Lock()
	e.Turn = 1
	if n := len(t.s.st.turns); n > 0 {
		e.Turn = t.s.st.turns[n-1].Number + 1
	}
	t.s.mu.Unlock()
	return t.enter(e)
}

// enter records the start of a turn, with the model and the numbers that it has
// from now on.
func (t *turn) enter(e Start, with ...Entry) error {
	model, signature := t.a.current()
	if model == nil {
		return errors.New("the agent has no model")
	}
	t.model, t.set, t.tools = model, t.a.settings, t.a.toolbox(t)
	text, warnings := prompt(t.s.dir, t.set)
	t.s.mu.Lock()
	st := t.s.st
	candidate, _ := ninelives.CandidateOf(model)
	e.Model, e.Signature, e.Mode = model.Name(), signature, t.s.mode()
	if st.model != "" && (st.model != e.Model || st.signature != e.Signature) {
		t.s.stageLocked(ModelChange{Model: e.Model, Signature: e.Signature})
	}
	e.Window, _ = t.set.Compaction.WindowOf(candidate, st.learnt)
	e.Reserve = ReserveOf(candidate, e.Window, 0)
	if t.s.parent != nil {
		e.Shared = t.s.shared
	}
	e.Settings = t.set
	e.Settings.Instructions = ""
	e.System = text
	system := ninelives.SystemText(text)
	e.Overhead = Estimate(system) + heal.FactsOf(&ninelives.Request{Tools: t.tools.list}).Input
	t.s.stageLocked(e)
	t.s.stageLocked(with...)
	n := st.turn().Number
	said := st.turn().Text
	mode := st.mode
	t.told = st.accepted
	warnings = append(t.s.said, warnings...)
	t.s.said = nil
	err := t.s.commitLocked(t.ctx)
	t.s.mu.Unlock()
	if err != nil {
		return err
	}
	t.ctx = For(t.ctx, t.s.ID(), n)
	t.emit(Started{Session: t.s.ID(), Turn: n, Resumes: e.Resumes, Model: e.Model, Mode: mode, Text: said})
	for _, w := range warnings {
		t.emit(Warning{Text: w})
	}
	t.hooked("TurnStart", func(h *Hook) bool { return h.TurnStart != nil }, func(h *Hook) Intervention {
		return h.TurnStart(t.ctx, t.s.State(), said)
	})
	return nil
}

// run does what the decider says until the turn has ended.
func (t *turn) run() (Ended, error) {
	for {
		t.heed()
		if t.within && t.answered() {
			t.within = false
			if err := t.afterIteration(); err != nil {
				return Ended{}, err
			}
			continue
		}
		a := t.decide()
		var err error
		switch a.Do {
		case DoAsk:
			err = t.ask(a)
		case DoRun:
			err = t.runCalls(a.Calls)
		case DoSettle:
			t.settle(a.Calls)
		case DoCompact:
			err = t.compact(a)
		case DoTell:
			t.tell(a)
		case DoEnd:
			var end Ended
			var over bool
			if end, over, err = t.end(a); over && err == nil {
				return end, nil
			}
		default:
			err = errors.New("the turn is not open any more")
		}
		if err != nil {
			return Ended{}, err
		}
	}
}

func (t *turn) decide() Action {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return decide(t.s.st, now())
}

// heed records that the turn is to end, if somebody has said so.
func (t *turn) heed() {
	t.share()
	if t.ctx.Err() == nil {
		return
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	st := t.s.st
	if st.run.stopped != nil {
		return
	}
	e := Stopped{Turn: st.turn().Number, Through: t.stopAt}
	if t.stopAt < 0 {
		e.Through = st.accepted
	}
	if cause := context.Cause(t.ctx); errors.Is(cause, context.DeadlineExceeded) {
		e.Deadline = true
	}
	t.s.stageLocked(e)
}

// share tells those that count with this turn what it has used, and ends it where
// all of them together have used what there is.
func (t *turn) share() {
	if t.s.parent == nil {
		return
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	st := t.s.st
	t.s.pool.set(st.spent())
	others := t.s.pool.others()
	if others.none() || st.run.ruled != nil || st.whole() {
		return
	}
	tally := st.tally(now()).Clone()
	tally.take(&others)
	if rule := st.run.start.Settings.Guard.During(&tally); rule.Verdict == VerdictStop {
		t.s.stageLocked(Ruled{Turn: st.turn().Number, Limit: rule.Limit, Message: rule.Message, Stop: true})
	}
}

// answered reports that every call of the last answer has its result.
func (t *turn) answered() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return len(t.s.st.unanswered()) == 0
}

// tell records what the model is to read with the next request.
func (t *turn) tell(a Action) {
	t.s.mu.Lock()
	if a.Limit != "" {
		t.s.stageLocked(Ruled{Turn: t.s.st.turn().Number, Limit: a.Limit, Message: a.Note})
	}
	t.s.noteLocked(a.Note)
	t.s.mu.Unlock()
	if a.Limit != "" {
		t.after = append(t.after, Guarded{Limit: a.Limit, Message: a.Note})
	}
}

// noteLocked stages a message of the program to the model.
func (s *Session) noteLocked(text string) {
	s.stageLocked(Input{Number: s.st.accepted + 1, Via: ViaSteer, Note: true, Message: ninelives.UserText(notePrefix + text)})
}

// commit makes durable what was staged, and then tells of it.
func (t *turn) commit() error {
	if err := t.s.commit(t.ctx); err != nil {
		return err
	}
	for len(t.after) > 0 {
		e := t.after[0]
		t.after = t.after[1:]
		t.emit(e)
	}
	return nil
}

// emit hands an event to the hooks and to whoever listens.
func (t *turn) emit(e Event) {
	for i := range t.a.hooks {
		h := &t.a.hooks[i]
		switch e := e.(type) {
		case Model:
			if h.Stream != nil {
				t.guard(h, "Stream", func() { h.Stream(t.ctx, e) })
			}
		default:
			if h.Event != nil {
				t.guard(h, "Event", func() { h.Event(t.ctx, e) })
			}
		}
	}
	t.show(e)
}

func (t *turn) show(e Event) {
	if !t.left && !t.yield(e, nil) {
		t.left = true
		t.cancel(errLeft)
	}
}

// guard calls a hook; one that panics is a warning.
func (t *turn) guard(h *Hook, node string, call func()) {
	defer func() {
		if r := recover(); r != nil {
			t.show(Warning{Text: fmt.Sprintf("the hook %q failed at %s: %s", h.Name, node, oneLine(fmt.Sprint(r)))})
		}
	}()
	call()
}

// hooked asks the hooks of a node, and records what they want. What they are
// told of is durable before.
func (t *turn) hooked(node string, has func(*Hook) bool, call func(*Hook) Intervention) (changed bool) {
	for i := range t.a.hooks {
		h := &t.a.hooks[i]
		if !has(h) {
			continue
		}
		if t.commit() != nil {
			return changed // which every later commit says again
		}
		var in Intervention
		t.guard(h, node, func() { in = call(h) })
		t.s.mu.Lock()
		switch {
		case in.Block:
			t.s.stageLocked(Stopped{Turn: t.s.st.turn().Number, Hook: h.name(), Note: in.Note})
			changed = true
		case in.Note != "":
			t.s.noteLocked(in.Note)
			changed = true
		}
		t.s.mu.Unlock()
	}
	return changed
}

func (h *Hook) name() string {
	if h.Name == "" {
		return "a hook"
	}
	return h.Name
}

func (t *turn) afterIteration() error {
	t.hooked("AfterIteration", func(h *Hook) bool { return h.AfterIteration != nil }, func(h *Hook) Intervention {
		return h.AfterIteration(t.ctx, t.s.State())
	})
	return nil
}

// end ends the turn, unless the user grants it more.
func (t *turn) end(a Action) (end Ended, over bool, err error) {
	if a.End.Limit != "" && t.granted(a.End) {
		t.s.stage(Grant{Turn: a.End.Turn, Limit: a.End.Limit})
		return Ended{}, false, nil
	}
	t.s.mu.Lock()
	st := t.s.st
	var left []pendingCall
	for _, id := range a.Calls {
		if c, ok := st.pending(id); ok {
			left = append(left, c)
		}
	}
	t.s.mu.Unlock()
	t.leave(left, a.End)
	t.s.mu.Lock()
	a.End.Took = st.run.before + max(0, now().Sub(st.run.began))
	t.s.stageLocked(a.End)
	if note := endNote(a.End); note != "" {
		t.s.noteLocked(note)
	}
	end = st.ending(t.s.ID(), a.End)
	t.s.mu.Unlock()
	if a.End.Limit != "" {
		t.after = append(t.after, Guarded{Limit: a.End.Limit, Message: a.End.Message, Stop: true})
	}
	if err := t.commit(); err != nil {
		return Ended{}, false, err
	}
	for i := range t.a.hooks {
		h := &t.a.hooks[i]
		if h.TurnEnd != nil {
			t.guard(h, "TurnEnd", func() { h.TurnEnd(context.WithoutCancel(t.ctx), t.s.State(), end) })
		}
		if h.Event != nil {
			t.guard(h, "Event", func() { h.Event(context.WithoutCancel(t.ctx), end) })
		}
	}
	return end, true, nil
}

// granted asks the user for another quota.
func (t *turn) granted(e End) (yes bool) {
	if t.a.grant == nil || t.ctx.Err() != nil || t.commit() != nil {
		return false
	}
	t.s.mu.Lock()
	end := t.s.st.ending(t.s.ID(), e)
	t.s.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			t.show(Warning{Text: "the question for another quota failed: " + oneLine(fmt.Sprint(r))})
		}
	}()
	return t.a.grant(t.ctx, end)
}

// ending is how the last turn ends.
func (s *State) ending(session string, e End) Ended {
	t := s.turn()
	v := Ended{Session: session, End: e, Steps: t.Steps, Calls: t.Calls, Events: t.Events, Usage: t.Usage, Cost: t.Cost}
	if s.run.answer != nil {
		v.Text = s.run.answer.Message.Text()
	}
	seen := map[string]bool{}
	for _, c := range t.Changes {
		if !seen[c.Path] {
			seen[c.Path] = true
			v.Changed = append(v.Changed, c.Path)
		}
	}
	return v
}

// pending finds a call that has no result.
func (s *State) pending(id string) (pendingCall, bool) {
	i := slices.IndexFunc(s.run.calls, func(c pendingCall) bool { return c.ID == id && c.effect == nil })
	if i < 0 {
		return pendingCall{}, false
	}
	return s.run.calls[i], true
}

// bounded is the context of one step: it ends with the turn, at the deadline,
// and when the guard's time is up.
func (t *turn) bounded() (context.Context, context.CancelFunc) {
	t.s.mu.Lock()
	tally := t.s.st.tally(now())
	set := &t.s.st.run.start.Settings
	left := set.Deadline - tally.Elapsed
	if most := set.Guard.Duration * time.Duration(1+tally.Granted[LimitDuration]); most > 0 && (set.Deadline <= 0 || most-tally.Elapsed < left) {
		left = most - tally.Elapsed
	}
	unbounded := set.Deadline <= 0 && set.Guard.Duration <= 0
	t.s.mu.Unlock()
	if unbounded {
		return context.WithCancel(t.ctx)
	}
	// Recorded times have no more than milliseconds: let it have passed by then.
	return context.WithTimeout(t.ctx, max(left, 0)+time.Millisecond)
}

// caught makes an error of a panic of a model, which healing did not stand before.
func caught(what string, r any) error {
	return &ninelives.Fault{
		Class: ninelives.ClassUnknown, Scope: ninelives.ScopeRequest, Final: true,
		Message: fmt.Sprintf("%s panicked: %s", what, oneLine(fmt.Sprint(r))),
		Err:     &heal.PanicError{Value: r, Stack: debug.Stack()},
	}
}

// oneLine makes a line of a text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// changedPaths are the files that needs would write or delete.
func changedPaths(needs []tool.Need) (paths []string) {
	for _, n := range needs {
		if (n.Kind == tool.NeedWrite || n.Kind == tool.NeedDelete) && !slices.Contains(paths, n.Target) {
			paths = append(paths, n.Target)
		}
	}
	return paths
}
