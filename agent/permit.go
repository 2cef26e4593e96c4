package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ninelives-ai/ninelives/tool"
)

// allow judges a call, and asks the hooks and the user where they have a say. A
// call that is denied is answered with why, and the turn goes on.
func (t *turn) allow(j *job) (bool, error) {
	t.s.mu.Lock()
	turn := t.s.st.turn().Number
	p := t.set.Permissions
	p.Mode = t.s.mode()
	p.Rules = append(slices.Clip(p.Rules), t.s.st.rules...)
	t.s.mu.Unlock()
	j.judged, j.verdict = p, p.Judge(j.tool.spec, j.needs)
	if j.verdict.Action == tool.ActionDeny {
		t.deny(j, "denied: "+j.verdict.Why)
		return false, nil
	}
	if ok, err := t.hooksAllow(j, turn); !ok || err != nil {
		return false, err
	}
	if j.verdict.Action == tool.ActionAllow {
		return true, nil
	}
	if t.a.approve == nil {
		t.deny(j, "denied: "+j.verdict.Why+NobodyToAsk)
		return false, nil
	}
	return t.askPerson(j, turn)
}

// NobodyToAsk ends the result of a call that was denied because it has to be
// asked for, and the agent has no [Approve].
const NobodyToAsk = " needs a person's word, and nobody can be asked here"

// deny answers a call with a no.
func (t *turn) deny(j *job, why string) {
	e := failed(j.ToolCall, why)
	e.Denied = true
	t.answer(e)
}

// hooksAllow asks the hooks.
func (t *turn) hooksAllow(j *job, turn int) (bool, error) {
	for i := range t.a.hooks {
		h := &t.a.hooks[i]
		if h.BeforeTool == nil {
			continue
		}
		if err := t.commit(); err != nil {
			return false, err
		}
		var in Intervention
		t.guard(h, "BeforeTool", func() { in = h.BeforeTool(t.ctx, j.call(t, turn), j.tool.spec) })
		switch {
		case in.Block:
			why := "denied by " + h.name()
			if in.Note != "" {
				why += ": " + in.Note
			}
			t.deny(j, why)
			return false, nil
		case in.Note != "":
			t.s.mu.Lock()
			t.s.noteLocked(in.Note)
			t.s.mu.Unlock()
		}
	}
	return true, nil
}

// askPerson asks for a call, and records the answer.
func (t *turn) askPerson(j *job, turn int) (bool, error) {
	q := Question{
		Session: t.s.ID(), Turn: turn, Call: j.ID, Name: j.Name, Arguments: j.args,
		Needs: j.needs, Verdict: j.verdict, Diff: t.preview(j),
	}
	if err := t.commit(); err != nil {
		return false, err
	}
	t.emit(Calling{Turn: turn, Call: j.ID, Name: j.Name, Arguments: j.args, Needs: j.needs, Diff: q.Diff, Asked: true})
	t.emit(Asking{Question: q})
	if t.ctx.Err() != nil {
		return false, nil
	}
	began := time.Now()
	d := t.word(q)
	e := Permission{Call: j.ID, Verdict: j.verdict, Answer: d.Reply, Waited: time.Since(began)}
	if t.ctx.Err() != nil {
		return false, nil // nobody has answered: the turn was stopped meanwhile
	}
	if d.Reply == ReplyAlways {
		e.Rule = j.verdict.Offer
	}
	t.s.stage(e)
	switch d.Reply {
	case ReplyOnce, ReplyAlways:
		return true, nil
	}
	why := "the user said no to this call"
	if text := strings.TrimSpace(d.Text); text != "" {
		why += ": " + text
	}
	t.deny(j, why)
	return false, nil
}

// word waits for a person; one that cannot be asked has said no.
func (t *turn) word(q Question) (d Decision) {
	defer func() {
		if r := recover(); r != nil {
			t.show(Warning{Text: "the question for a call failed, which counts as a no: " + oneLine(fmt.Sprint(r))})
			d = Decision{Reply: ReplyNo}
		}
	}()
	return t.a.approve(t.ctx, q)
}

// preview shows what a call would do; a tool that cannot say shows nothing.
func (t *turn) preview(j *job) (diff string) {
	p, ok := j.tool.Tool.(tool.Previewer)
	if !ok {
		return ""
	}
	defer func() {
		if r := recover(); r != nil {
			diff = ""
		}
	}()
	ctx, cancel := context.WithTimeout(t.ctx, 5*time.Second)
	defer cancel()
	diff, err := p.Preview(ctx, slices.Clone(j.args))
	if err != nil {
		return ""
	}
	return diff
}
