package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// job is one call that is about to run.
type job struct {
	ninelives.ToolCall
	tool    *equipped
	args    []byte
	needs   []tool.Need
	judged  tool.Permissions // what it was judged under
	verdict tool.Verdict
	mark    []byte
	counted bool  // by the guard, before a crash
	child   *pool // of the subagent that it started
}

func (j *job) call(t *turn, turn int) *tool.Call {
	return &tool.Call{
		ID: j.ID, Arguments: slices.Clone(j.args), Session: t.s.ID(), Turn: turn,
		Mode: j.judged.Mode, Profile: j.judged.Profile,
	}
}

// runCalls runs the first batch of the calls: as many that only read as follow
// each other, or one that does not. Before a call runs, its intent is durable;
// what it gave is staged, and becomes durable with what follows it.
func (t *turn) runCalls(ids []string) error {
	batch, err := t.batch(ids)
	if err != nil || len(batch) == 0 {
		return err
	}
	t.s.mu.Lock()
	turn := t.s.st.turn().Number
	t.s.mu.Unlock()
	var intents []Entry
	for _, j := range batch {
		if p, ok := j.tool.Tool.(tool.Prober); ok && !j.tool.spec.ReadOnly {
			mark, err := marked(t.ctx, p, j.call(t, turn))
			if err != nil {
				t.answer(failed(j.ToolCall, "the call was not made, because its state before could not be noted: "+oneLine(err.Error())))
				return nil // a batch with a prober in it has no other call
			}
			j.mark = mark
		}
		intents = append(intents, Intent{Call: j.ID, Name: j.Name, Arguments: j.args, Mark: j.mark, Files: changedPaths(j.needs)})
		if j.verdict.Action != tool.ActionAsk {
			t.after = append(t.after, Calling{Turn: turn, Call: j.ID, Name: j.Name, Arguments: j.args, Needs: j.needs})
		}
	}
	t.s.stage(intents...)
	if err := t.commit(); err != nil {
		return err
	}
	effects := t.runBatch(batch, turn)
	for _, e := range effects {
		t.answer(e)
	}
	for i, e := range effects {
		t.recorded(batch[i])
		t.afterTool(batch[i], e, turn)
	}
	return nil
}

// recorded notes that the turn's own record has what a subagent has used.
func (t *turn) recorded(j *job) {
	if j.child == nil {
		return
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.pool.set(t.s.st.spent(), j.child)
}

// answer stages the result of a call.
func (t *turn) answer(e Effect) {
	t.s.stage(e)
	t.after = append(t.after, Called{e})
}

func (t *turn) afterTool(j *job, e Effect, turn int) {
	t.hooked("AfterTool", func(h *Hook) bool { return h.AfterTool != nil }, func(h *Hook) Intervention {
		return h.AfterTool(t.ctx, j.call(t, turn), e)
	})
}

// batch prepares the calls in order until one must not run beside those before
// it. Calls that cannot be made are answered at once.
func (t *turn) batch(ids []string) (batch []*job, err error) {
	t.s.mu.Lock()
	st := t.s.st
	tally := st.tally(now()).fork()
	var calls []pendingCall
	for _, id := range ids {
		if c, ok := st.pending(id); ok {
			calls = append(calls, c)
		}
	}
	t.s.mu.Unlock()
	for _, c := range calls {
		e, unknown := t.tools.find(c.Name)
		if len(batch) > 0 && (e == nil || !e.spec.ReadOnly) {
			return batch, nil
		}
		j, refused := t.prepare(c.ToolCall, e, unknown)
		if refused != nil {
			t.answer(*refused)
			continue
		}
		j.counted = c.counted
		rule := t.before(&tally, j)
		for rule.Verdict == VerdictWait && len(batch) == 0 {
			if over, err := t.wait(rule); over || err != nil {
				return nil, err
			}
			rule = t.before(&tally, j)
		}
		switch rule.Verdict {
		case VerdictWait:
			return batch, nil // those before it need not wait with it
		case VerdictStop:
			if len(batch) == 0 {
				t.rule(rule)
			}
			return batch, nil
		case VerdictRefuse:
			t.after = append(t.after, Guarded{Limit: rule.Limit, Message: rule.Message})
			t.answer(failed(c.ToolCall, rule.Message))
			continue
		}
		allowed, err := t.allow(j)
		if err != nil || t.ended() {
			return nil, err
		}
		if !allowed {
			continue
		}
		if rule = t.begin(&tally, j); rule.Verdict == VerdictStop {
			if len(batch) == 0 {
				t.rule(rule)
			}
			return batch, nil
		}
		batch = append(batch, j)
		if !e.spec.ReadOnly {
			return batch, nil
		}
	}
	return batch, nil
}

// before is the guard's word on a call that is about to run. One that was counted
// before a crash cut it off is not counted twice.
func (t *turn) before(tally *Tally, j *job) Ruling {
	if j.counted {
		return Ruling{}
	}
	return t.beside(tally, j, t.s.pool.others())
}

// beside is before with what others have used of the same quotas.
func (t *turn) beside(tally *Tally, j *job, others Spent) Ruling {
	if !others.none() {
		with := tally.Clone()
		with.take(&others)
		tally = &with
	}
	return t.set.Guard.BeforeCall(tally, j.Name, changedPaths(j.needs), now())
}

// begin counts a call, unless others have used meanwhile what was left.
func (t *turn) begin(tally *Tally, j *job) Ruling {
	if j.counted {
		return Ruling{}
	}
	files := changedPaths(j.needs)
	rule := t.s.pool.begin(j.Name, files, func(others Spent) Ruling { return t.beside(tally, j, others) })
	if rule.Verdict != VerdictStop {
		tally.Begin(j.Name, files, now())
	}
	return rule
}

// rule records that the guard ends the turn.
func (t *turn) rule(r Ruling) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.stageLocked(Ruled{Turn: t.s.st.turn().Number, Limit: r.Limit, Message: r.Message, Stop: true})
}

// ended reports that somebody has said that the turn is to end.
func (t *turn) ended() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	r := &t.s.st.run
	return t.ctx.Err() != nil || r.denied || r.stopped != nil
}

// prepare reads a call; refused is its result if it makes no sense.
func (t *turn) prepare(c ninelives.ToolCall, e *equipped, unknown string) (j *job, refused *Effect) {
	refuse := func(text string) (*job, *Effect) {
		f := failed(c, text)
		return nil, &f
	}
	if e == nil {
		return refuse(unknown)
	}
	args, err := e.check(c.Arguments)
	if err != nil {
		return refuse(err.Error())
	}
	needs, err := e.needs(args)
	if err != nil {
		return refuse(err.Error())
	}
	return &job{ToolCall: c, tool: e, args: args, needs: needs}, nil
}

// wait waits for the rate limiter; over says that the turn's end came first.
func (t *turn) wait(rule Ruling) (over bool, err error) {
	if err := t.commit(); err != nil {
		return false, err
	}
	t.emit(Guarded{Limit: rule.Limit, Message: rule.Message, Wait: rule.Wait})
	ctx, cancel := t.bounded()
	defer cancel()
	timer := time.NewTimer(rule.Wait + time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return true, nil
	}
}

// runBatch runs calls beside each other and gives their effects in order.
func (t *turn) runBatch(batch []*job, turn int) []Effect {
	ctx, cancel := t.bounded()
	defer cancel()
	effects := make([]Effect, len(batch))
	type news struct {
		index  int
		text   string
		effect *Effect
	}
	told := make(chan news)
	gone := make(chan struct{}) // whoever listens has panicked: nobody waits any more
	defer close(gone)
	tell := func(n news) {
		select {
		case told <- n:
		case <-gone:
		}
	}
	places := make(chan struct{}, max(1, t.set.ParallelCalls))
	for i, j := range batch {
		go func() {
			places <- struct{}{}
			ctx := ctx
			if j.delegates() {
				ctx = t.ctx // its own guard counts the time, without what people take to answer
			}
			e := t.runOne(ctx, j, turn, func(text string) { tell(news{index: i, text: text}) })
			<-places
			tell(news{index: i, effect: &e})
		}()
	}
	// Every call ends: a tool that does not is given up (see runOne).
	for left := len(batch); left > 0; {
		n := <-told
		if n.effect != nil {
			effects[n.index] = *n.effect
			left--
			continue
		}
		t.emit(Output{Call: batch[n.index].ID, Text: n.text})
	}
	return effects
}

// grace is how long a tool has to end that was told to.
const grace = 10 * time.Second

// runOne runs a call. A tool that panics has failed; one that does not end when
// it is told to is left behind, and nobody knows what it does.
func (t *turn) runOne(ctx context.Context, j *job, turn int, output func(string)) Effect {
	spec := j.tool.spec
	e := Effect{Call: j.ID, Name: j.Name, Polls: spec.Polls}
	if ctx.Err() != nil {
		e.Result = result(j.ToolCall, tool.ErrorResult("not started: it was "+stopWord(ctx)+" before it began; it had no effect"))
		return e
	}
	limit := spec.Timeout
	if limit <= 0 {
		limit = t.set.ToolTimeout
	}
	ctx, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, limit, &timedOut{limit})
	}
	defer cancel()
	began := time.Now()
	got, ended := t.carryOut(ctx, j, turn, output)
	r := got.Result
	e.Took = time.Since(began)
	if ctx.Err() != nil && (!ended || r.IsError) && !j.delegates() {
		r = stoppedEarly(spec, r, stopWord(ctx))
	}
	r = tool.Limit(r, t.set.ResultLines, t.set.ResultBytes, t.a.save)
	e.Ran, e.Spent, j.child = ended, got.spent, got.child
	e.Result = result(j.ToolCall, r)
	e.Unknown, e.Changes, e.Summary, e.Diff, e.Saved = r.Unknown, r.Changes, r.Summary, r.Diff, r.Saved
	return e
}

// outcome is what a call gives, and what a subagent has used of the turn's quotas.
type outcome struct {
	tool.Result
	spent *Spent
	child *pool
}

// delegates reports that a subagent carries the call out.
func (j *job) delegates() bool {
	_, ok := j.tool.Tool.(*subagent)
	return ok
}

func (t *turn) carryOut(ctx context.Context, j *job, turn int, output func(string)) (got outcome, ended bool) {
	call := j.call(t, turn)
	var mu sync.Mutex
	open := true
	call.Output = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if open {
			output(text)
		}
	}
	shut := func() {
		mu.Lock()
		open = false
		mu.Unlock()
	}
	defer shut()
	done := make(chan outcome, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				e := tool.ErrorResult("the tool panicked: " + oneLine(fmt.Sprint(p)))
				if !j.tool.spec.ReadOnly {
					e = tool.ErrorResult("the tool panicked, and may have had a part of its effect: " + oneLine(fmt.Sprint(p)))
					e.Unknown = true
				}
				done <- outcome{Result: e}
			}
		}()
		if sub, ok := j.tool.Tool.(*subagent); ok {
			done <- sub.work(ctx, call)
			return
		}
		done <- outcome{Result: j.tool.Run(ctx, call)}
	}()
	select {
	case got = <-done:
		return got, true
	case <-ctx.Done():
	}
	if j.delegates() {
		return <-done, true // it ends as a turn does, and says how far it came
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case got = <-done:
		return got, true
	case <-timer.C:
		return outcome{Result: tool.ErrorResult("it did not end when it was told to, and was left behind")}, false
	}
}

// timedOut is why the context of a call ends that took too long.
type timedOut struct{ after time.Duration }

func (e *timedOut) Error() string { return "it took longer than " + duration(e.after) }

// stopWord says who stopped a call.
func stopWord(ctx context.Context) string {
	cause := context.Cause(ctx)
	var late *timedOut
	switch {
	case errors.As(cause, &late):
		return "stopped after " + duration(late.after) + ", which is its limit,"
	case errors.Is(cause, context.DeadlineExceeded):
		return "stopped, because the time of the turn was up,"
	}
	return "stopped by the user"
}

// marked takes the mark of a call; a panic is an error.
func marked(ctx context.Context, p tool.Prober, c *tool.Call) (mark []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the tool panicked: %v", r)
		}
	}()
	return p.Mark(ctx, c)
}
