package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// Resume takes up a session by the beginning of its id; what of its record was
// damaged is left out (see [Session.Damaged]). If a living process holds it, the
// error is journal.ErrTaken and says which.
//
// An input whose turn never began, or a turn that was cut off, is in
// [Session.Status]; Continue goes on with it, Turn closes it and begins anew.
func (a *Agent) Resume(ctx context.Context, id string) (*Session, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	if a.journal == nil {
		return nil, fmt.Errorf("session %s cannot be resumed: there is no journal", id)
	}
	log, entries, damaged, err := a.journal.TakeSession(ctx, id)
	if err != nil {
		return nil, err
	}
	return a.taken(ctx, log, entries, damaged), nil
}

// taken makes a session of its record.
func (a *Agent) taken(ctx context.Context, log recorder, entries []journal.Entry, damaged []journal.Damage) *Session {
	s := &Session{a: a, log: log, st: &State{}, damaged: damaged, pool: newPool()}
	s.head = journal.Head{State: headOpen, Labels: map[string]string{}}
	last := int64(0)
	for i, r := range decodeAll(entries) {
		if entries[i].Seq > last+1 || r.err != nil {
			s.st.lose()
		}
		last = entries[i].Seq
		if r.err != nil {
			s.damaged = append(s.damaged, journal.Damage{Session: log.ID(), Seq: int(last), Err: r.err})
			continue
		}
		s.st.add(entries[i].At, r.entry)
		s.lead(r.entry)
	}
	if slices.ContainsFunc(damaged, func(d journal.Damage) bool { return int64(d.Seq) > last }) {
		s.st.lose()
	}
	s.headNew = false
	if n := s.st.gaps; n > 0 && !s.st.knows(gapsNote(n)) {
		s.noteLocked(gapsNote(n)) // nobody else has the session yet
	}
	s.dir = s.st.opening.Directory
	if s.dir == "" {
		s.dir = a.dir
	}
	opening := s.st.opening
	opening.Directory = s.dir
	maps.Copy(s.head.Labels, opening.labels())
	for _, d := range s.damaged {
		s.said = append(s.said, "a part of the session's record is damaged and was left out: "+oneLine(d.Error()))
	}
	s.started(ctx)
	s.idle(s.st.last)
	return s
}

// StateOf is what a session's record comes to, for those who only look at it.
// What cannot be read is left out.
func StateOf(entries []journal.Entry) *State {
	s, last := &State{}, int64(0)
	for i, r := range decodeAll(entries) {
		if entries[i].Seq > last+1 || r.err != nil {
			s.lose()
		}
		last = entries[i].Seq
		if r.err == nil {
			s.add(entries[i].At, r.entry)
		}
	}
	return s
}

// started and ended tell the hooks of the session's life.
func (s *Session) started(ctx context.Context) {
	for i := range s.a.hooks {
		if h := &s.a.hooks[i]; h.SessionStart != nil {
			s.guard(h, "SessionStart", func() { h.SessionStart(For(ctx, s.ID(), 0), s.ID(), s.dir) })
		}
	}
}

func (s *Session) ended(ctx context.Context) {
	for i := range s.a.hooks {
		if h := &s.a.hooks[i]; h.SessionEnd != nil {
			s.guard(h, "SessionEnd", func() { h.SessionEnd(For(ctx, s.ID(), 0), s.ID()) })
		}
	}
}

// guard calls a hook outside of a turn; that it panicked is told with the next.
func (s *Session) guard(h *Hook, node string, call func()) {
	defer func() {
		if r := recover(); r != nil {
			s.mu.Lock()
			s.said = append(s.said, fmt.Sprintf("the hook %q failed at %s: %s", h.Name, node, oneLine(fmt.Sprint(r))))
			s.mu.Unlock()
		}
	}()
	call()
}

// resume goes on with the last turn, or begins the one whose input was accepted.
func (t *turn) resume() error {
	t.s.mu.Lock()
	st := t.s.st
	var turn Turn
	if len(st.turns) > 0 {
		turn = *st.turn()
	}
	unbegun := false // an input that was to begin a turn waits for it
	for _, in := range st.waiting {
		unbegun = unbegun || in.Via == ViaTurn
	}
	end := st.resumable()
	t.s.mu.Unlock()
	switch {
	case unbegun:
		if err := t.closeInterrupted(); err != nil {
			return err
		}
		return t.start(t.s.missed())
	case end == nil:
		return ErrNothing
	}
	var with []Entry
	if end.Limit != "" {
		with = append(with, Grant{Turn: turn.Number, Limit: end.Limit})
	}
	return t.enter(Start{Turn: turn.Number, Resumes: true}, with...)
}

// closeInterrupted ends a turn whose process died, before another one begins.
func (t *turn) closeInterrupted() error {
	t.s.mu.Lock()
	st := t.s.st
	open := st.open()
	var cut []string
	if open {
		cut = ids(st.unanswered(), func(c pendingCall) bool { return c.intent != nil })
	}
	t.s.mu.Unlock()
	if !open {
		return nil
	}
	t.tools = t.a.toolbox(t)
	t.set = t.a.settings
	t.settle(cut)
	t.s.mu.Lock()
	e := End{Turn: st.turn().Number, Reason: ReasonInterrupted, FailedTurn: true, Message: "the turn was cut off: its process died"}
	left := st.unanswered()
	t.s.mu.Unlock()
	t.leave(left, e)
	t.s.mu.Lock()
	t.s.stageLocked(e)
	t.s.noteLocked(endNote(e))
	t.s.mu.Unlock()
	return t.commit()
}

// settle finds out what became of calls that were cut off. What is done has
// its result, what never began may simply run, and of the rest nobody can say
// more than that it is unknown: it is never made again by the program.
func (t *turn) settle(ids []string) {
	for _, id := range ids {
		t.s.mu.Lock()
		c, ok := t.s.st.pending(id)
		turn := t.s.st.turn().Number
		t.s.mu.Unlock()
		if !ok || c.intent == nil {
			continue
		}
		e, unknown := t.tools.find(c.Name)
		if e == nil {
			t.answer(t.unknown(c, unknown))
			continue
		}
		if sub, ok := e.Tool.(*subagent); ok {
			if got, _, ended := sub.standing(c.ID); ended {
				t.answer(t.effect(c.ToolCall, e.spec, got))
			} else {
				t.s.stage(Settled{Call: c.ID}) // made again, it goes on by its own record
			}
			continue
		}
		standing, r := StandingOf(t.ctx, e.Tool, &tool.Call{ID: c.ID, Arguments: c.intent.Arguments, Session: t.s.ID(), Turn: turn}, c.intent.Mark)
		switch {
		case standing == tool.StandingDone:
			found := t.effect(c.ToolCall, e.spec, outcome{Result: r})
			found.Found = true
			t.answer(found)
		case standing == tool.StandingUnknown:
			r = tool.Limit(r, t.set.ResultLines, t.set.ResultBytes, t.a.save)
			t.answer(t.unknown(c, r.Text()))
		default:
			t.s.stage(Settled{Call: c.ID})
		}
	}
}

// effect is the effect of a call that ran to its end.
func (t *turn) effect(c ninelives.ToolCall, spec tool.Spec, got outcome) Effect {
	r := tool.Limit(got.Result, t.set.ResultLines, t.set.ResultBytes, t.a.save)
	return Effect{
		Call: c.ID, Name: c.Name, Ran: true, Polls: spec.Polls, Result: result(c, r), Changes: r.Changes,
		Summary: r.Summary, Diff: r.Diff, Saved: r.Saved, Unknown: r.Unknown, Spent: got.spent,
	}
}

// leave answers calls that the end of the turn came before. What a subagent had
// done before a crash cut it off is told.
func (t *turn) leave(calls []pendingCall, e End) {
	for _, c := range calls {
		effect := notRun(c.ToolCall, e)
		if tool, _ := t.tools.find(c.Name); tool != nil && c.counted {
			if sub, ok := tool.Tool.(*subagent); ok {
				if got, begun, _ := sub.standing(c.ID); begun {
					effect = t.effect(c.ToolCall, tool.spec, got)
				}
			}
		}
		t.answer(effect)
	}
}

// unknown is the effect of a call of which nobody can say what became of it;
// more is what is known all the same.
func (t *turn) unknown(c pendingCall, more string) Effect {
	text := noTwice
	if more = strings.TrimPrefix(more, tool.ErrorPrefix); more != "" {
		text += ". " + more
	}
	e := failed(c.ToolCall, text)
	e.Unknown = true
	return e
}

// StandingOf says what is known of a call that was cut off: a tool that only
// reads has not been asked, one that can find out is asked, of any other nobody
// can say.
func StandingOf(ctx context.Context, t tool.Tool, c *tool.Call, mark []byte) (s tool.Standing, r tool.Result) {
	if t.Spec().ReadOnly {
		return tool.StandingNotStarted, tool.Result{}
	}
	p, ok := t.(tool.Prober)
	if !ok {
		return tool.StandingUnknown, tool.Result{}
	}
	defer func() {
		if recover() != nil {
			s, r = tool.StandingUnknown, tool.Result{}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return p.Probe(ctx, c, mark)
}
