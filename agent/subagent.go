package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/nearest"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// LabelCall is the label of a session that a call began (a subagent's): the id
// of that call. The label "parent" beside it names the session of the call. Lists
// of what the user said leave such sessions out.
const LabelCall = "call"

// The tools that start subagents: one that may do what its parent may, and one
// that only reads. An agent has them by itself where it has any tool that they
// could use, and [Settings.Depth] is not zero.
const (
	SubagentTool = "subagent"
	ResearchTool = "research"
)

// subagent is a tool that gives a task to an agent of its own: a session with an
// empty history, the same model and permissions, and one budget and guard with
// the turn that started it. There are two: one that may do what its parent may,
// and one that only reads, of which several run beside each other.
type subagent struct {
	t     *turn
	reads bool
	asks  chan struct{} // held by the one who asks the user
}

// subagents are those of a turn that has these tools; none where they would have
// nothing to work with.
func (a *Agent) subagents(t *turn, have map[string]*equipped) (list []tool.Tool) {
	asks := make(chan struct{}, 1)
	if len(have) > 0 && !a.reads {
		list = append(list, &subagent{t: t, asks: asks})
	}
	for _, e := range have {
		if e.spec.ReadOnly {
			return append(list, &subagent{t: t, reads: true, asks: asks})
		}
	}
	return list
}

// subagentSchema is the schema of the arguments.
const subagentSchema = `{"type":"object","properties":{` +
	`"task":{"type":"string","minLength":1,"description":"what is to be done, whole: the subagent knows nothing else of this conversation"},` +
	`"description":{"type":"string","description":"the task in three to five words, for people who watch"},` +
	`"tools":{"type":"array","items":{"type":"string"},"description":"names of the tools that it may use; default: all that it can"}},` +
	`"required":["task"],"additionalProperties":false}`

// Spec implements tool.Tool.
func (s *subagent) Spec() tool.Spec {
	spec := tool.Spec{
		Tool: ninelives.Tool{
			Name: SubagentTool,
			Description: "Gives a task to a second agent with a fresh context and the same tools, and returns its answer. " +
				"Use it for a piece of work whose details need not be in this conversation.",
			Schema: []byte(subagentSchema),
		},
		Timeout: unlimited,
	}
	if s.reads {
		spec.Name, spec.ReadOnly = ResearchTool, true
		spec.Description = "Gives a question to a second agent with a fresh context and the tools that only read, and returns its answer. " +
			"Use it for searches that would fill this conversation; several made together run at the same time."
	}
	return spec
}

// unlimited is the time of a call that is bounded by its turn alone.
const unlimited time.Duration = 1 << 62

// Needs implements tool.Tool: each call of the subagent is judged for itself.
func (s *subagent) Needs([]byte) ([]tool.Need, error) { return nil, nil }

// Run implements tool.Tool.
func (s *subagent) Run(ctx context.Context, c *tool.Call) tool.Result { return s.work(ctx, c).Result }

const subagentBriefing = `You are a subagent: another agent has given you the task below. It sees nothing of your work but your last answer, so put everything into it that it needs, with the names of files and lines. You cannot ask anybody.`

// errand is what a subagent is told.
type errand struct {
	Task        string   `json:"task"`
	Description string   `json:"description"`
	Tools       []string `json:"tools"`
}

// name is what people see of it.
func (e *errand) name() string {
	if text := oneLine(e.Description); text != "" {
		return brief(text)
	}
	return brief(title(e.Task))
}

// brief makes a short line of a text.
func brief(text string) string {
	text = oneLine(text)
	if r := []rune(text); len(r) > 120 {
		text = string(r[:119]) + "…"
	}
	return plain(text)
}

// work carries the task out, or goes on with it where a crash cut it off: by
// the subagent's own record, so that nothing is done twice.
func (s *subagent) work(ctx context.Context, c *tool.Call) outcome {
	var e errand
	if err := json.Unmarshal(c.Arguments, &e); err != nil {
		return outcome{Result: tool.ErrorResult(err.Error())}
	}
	tools, err := s.choose(e.Tools)
	if err != nil {
		return outcome{Result: tool.ErrorResult(err.Error())}
	}
	child, err := s.open(ctx, c.ID, &e, tools)
	if err != nil {
		r := tool.ErrorResult("the subagent could not be started: " + oneLine(err.Error()))
		var l *lost
		r.Unknown = errors.As(err, &l)
		return outcome{Result: r}
	}
	defer func() { _ = child.Close() }() // what is recorded is recorded
	st := child.State()
	switch {
	case len(st.turns) > 0 && st.turns[0].End != nil: // there is nothing left to do
	case st.accepted > 0:
		err = s.watch(c, child.Continue(ctx))
	default:
		err = s.watch(c, child.Turn(ctx, ninelives.UserText(e.Task)))
	}
	got := report(child.ID(), child.State(), err)
	got.child = child.pool
	return got
}

// choose gives the tools that a subagent works with: those of the turn, or of
// them those that are named.
func (s *subagent) choose(wanted []string) (tools []tool.Tool, err error) {
	var known []string
	for _, name := range names(s.t.tools.byName) {
		e := s.t.tools.byName[name]
		if _, ours := e.Tool.(*subagent); !ours && (e.spec.ReadOnly || !s.reads) {
			known = append(known, name)
		}
	}
	if wanted == nil {
		wanted = known
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(wanted))) {
		switch {
		case slices.Contains(known, name):
			tools = append(tools, s.t.tools.byName[name].Tool)
		case s.t.set.Depth > 1 && (name == ResearchTool || name == SubagentTool && !s.reads):
			// they come by themselves
		default:
			return nil, fmt.Errorf("a subagent cannot have the tool %s%s. Nothing was done. It can have: %s", plain(name), nearest.Hint(name, known), strings.Join(known, ", "))
		}
	}
	return tools, nil
}

// open opens the subagent's session, or takes up the one that the call began
// before a crash. It may do what its parent may, and start subagents one level
// less deep.
func (s *subagent) open(ctx context.Context, call string, e *errand, tools []tool.Tool) (*Session, error) {
	ctx = context.WithoutCancel(ctx)
	t := s.t
	t.s.mu.Lock()
	set := t.set
	set.Permissions.Rules = append(slices.Clip(set.Permissions.Rules), t.s.st.rules...)
	shared := t.s.st.tally(now()).Clone()
	signature := t.s.st.signature
	resumed := t.s.st.run.start.Resumes
	t.s.mu.Unlock()
	shared.Recent, shared.Step, shared.Denied = nil, 0, 0 // loops and denials are each one's own
	set.Depth--
	set.Output = nil
	set.Instructions = strings.TrimSpace(set.Instructions + "\n\n" + subagentBriefing)
	a := &Agent{
		tools: tools, settings: set, hooks: t.a.hooks, journal: t.a.journal, dir: t.s.dir, save: t.a.save, version: t.a.version,
		model: t.model, signature: signature, reads: s.reads,
	}
	if t.a.approve != nil {
		a.approve = s.approve(call, e.name())
	}
	var child *Session
	var err error
	id := ""
	if resumed {
		if id, err = s.find(ctx, call); err != nil {
			return nil, err
		}
	}
	if id == "" {
		child, err = a.open(ctx, Opening{Parent: t.s.ID(), Call: call})
	} else if child, err = a.Resume(ctx, id); err != nil {
		err = &lost{fmt.Errorf("session %s, in which it had begun, cannot be gone on with: %w", id, err)}
	}
	if err != nil {
		return nil, err
	}
	child.parent, child.shared = t.s, &shared
	child.pool = t.s.pool.child(child.st.spent())
	return child, nil
}

// lost says that a subagent had begun, and nobody can say what it did.
type lost struct{ error }

func (l *lost) Unwrap() error { return l.error }

// find gives the session that a call has begun; "" for none.
func (s *subagent) find(ctx context.Context, call string) (id string, err error) {
	if s.t.a.journal == nil {
		return "", nil
	}
	labels := map[string]string{"parent": s.t.s.ID(), LabelCall: call}
	list, damaged, err := s.t.a.journal.Sessions(ctx, journal.SessionFilter{Labels: labels, Limit: 1})
	if err != nil {
		return "", &lost{err}
	}
	for _, s := range list {
		return s.ID, nil
	}
	// One whose labels cannot be read says by its first entry whose it is.
	for _, d := range damaged {
		if d.Session == "" {
			return "", &lost{d}
		}
		_, entries, _, err := s.t.a.journal.ReadSession(ctx, d.Session)
		if err != nil || len(entries) == 0 {
			return "", &lost{d}
		}
		first, _ := Decode(entries[0])
		if o, ok := first.(Opening); ok && o.Parent == s.t.s.ID() && o.Call == call {
			return d.Session, nil
		}
	}
	return "", nil
}

// standing is what came of a call of which the process died: whether the
// subagent had begun, and whether it had ended.
func (s *subagent) standing(call string) (got outcome, begun, ended bool) {
	ctx := context.WithoutCancel(s.t.ctx)
	id, err := s.find(ctx, call)
	if err == nil && id == "" {
		return outcome{}, false, false
	}
	st := &State{}
	var entries []journal.Entry
	if err == nil {
		_, entries, _, err = s.t.a.journal.ReadSession(ctx, id)
	}
	if err != nil {
		r := tool.ErrorResult("nobody can say what the subagent did: " + oneLine(err.Error()))
		r.Unknown = true
		return outcome{Result: r}, true, true
	}
	for _, raw := range entries {
		if e, err := Decode(raw); err == nil {
			st.add(raw.At, e)
		}
	}
	if len(st.turns) == 0 {
		return outcome{}, false, false
	}
	return report(id, st, nil), true, st.turns[0].End != nil
}

// approve asks the user in the name of the subagent, one question after the
// other. What the user grants holds for the parent's session too, the time that
// the user takes is not counted, and a stop is a stop of the parent's turn.
func (s *subagent) approve(call, name string) func(context.Context, Question) Decision {
	return func(ctx context.Context, q Question) Decision {
		select {
		case s.asks <- struct{}{}:
			defer func() { <-s.asks }()
		case <-ctx.Done():
			return Decision{Reply: ReplyNo}
		}
		if q.Agent == "" {
			q.Agent = name
		} else {
			q.Agent = name + " › " + q.Agent
		}
		began := time.Now()
		d := s.t.a.approve(ctx, q)
		e := Permission{Call: call, Verdict: q.Verdict, Answer: d.Reply, Waited: time.Since(began)}
		if d.Reply == ReplyAlways {
			e.Rule = q.Verdict.Offer
		}
		if ctx.Err() == nil {
			s.t.s.stage(e)
		}
		return d
	}
}

// watch shows people what the subagent does, a line for each step.
func (s *subagent) watch(c *tool.Call, turn func(func(Event, error) bool)) (err error) {
	say := func(format string, args ...any) {
		if c.Output != nil {
			c.Output(fmt.Sprintf(format, args...) + "\n")
		}
	}
	for e, failed := range turn {
		if failed != nil {
			return failed
		}
		switch e := e.(type) {
		case Calling:
			say("%s", strings.TrimSpace(plain(e.Name)+" "+firstTarget(e.Needs)))
		case Called:
			if e.Result.IsError {
				say("%s: %s", plain(e.Name), brief(e.Result.Text()))
			}
		case Asking:
			say("asks the user for %s", plain(e.Name))
		case Compacted:
			say("made its context smaller: %d tokens, from %d", e.After, e.Before)
		case Guarded:
			say("%s", oneLine(e.Message))
		case Warning:
			say("%s", brief(e.Text))
		case Ended:
			say("ended (%s) after %s and %s", e.Reason, count(e.Steps, "step"), count(e.Calls, "call"))
		}
	}
	return nil
}

// firstTarget is what a call touches, for people.
func firstTarget(needs []tool.Need) string {
	if len(needs) == 0 {
		return ""
	}
	return plain(needs[0].Target)
}

// report is what came of a subagent by its record: its answer, or why there is
// none and how far it came. Err is why its turn could not go on.
func report(id string, st *State, err error) outcome {
	got := outcome{}
	if len(st.turns) == 0 {
		why := "the subagent could not begin"
		if err != nil {
			why += ": " + oneLine(err.Error())
		}
		got.Result = tool.ErrorResult(why)
		return got
	}
	t := &st.turns[0]
	said := st.lastText(0)
	spent := st.spent()
	got.spent = &spent
	far := fmt.Sprintf("%s, %s", count(t.Steps, "step"), count(t.Calls, "call"))
	switch {
	case t.End != nil && t.End.Reason == ReasonComplete:
		got.Result = tool.TextResult(said)
		got.Summary = fmt.Sprintf("%s, session %s", far, id)
	default:
		why := "it was cut off, because its process died"
		if t.End != nil {
			why = fmt.Sprintf("it ended before it was done (%s): %s", t.End.Reason, t.End.Message)
		} else if err != nil {
			why = "it could not go on: " + oneLine(err.Error())
		}
		text := fmt.Sprintf("the subagent gave no answer: %s\nHow far it came: %s; its session is %s.", why, far, id)
		if paths := changed(t.Changes); len(paths) > 0 {
			text += " It changed " + strings.Join(paths, ", ") + ", which stays so."
		}
		if said != "" {
			text += "\nIts last words: " + said
		}
		got.Result = tool.ErrorResult(text)
		got.Summary = fmt.Sprintf("no answer after %s, session %s", far, id)
	}
	got.Changes = slices.Clone(t.Changes)
	for _, c := range st.run.calls {
		if len(st.turns) == 1 && (c.effect != nil && c.effect.Unknown || c.effect == nil && c.intent != nil) {
			got.Unknown = true
		}
	}
	return got
}

// lastText is the last text that the model said in a turn.
func (s *State) lastText(turn int) string {
	end := len(s.messages)
	if turn+1 < len(s.turns) {
		end = s.turns[turn+1].First
	}
	for i := end - 1; i >= s.turns[turn].First; i-- {
		if m := s.messages[i]; m.Role == ninelives.RoleAssistant {
			if text := strings.TrimSpace(m.Text() + m.Refusal()); text != "" {
				return text
			}
		}
	}
	return ""
}

// changed lists the paths of changes, each once.
func changed(changes []tool.Change) []string {
	set := map[string]bool{}
	for _, c := range changes {
		set[plain(c.Path)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// count says a number of things.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
