package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

// SubagentTool is the name of the tool that starts subagents. An agent has it by
// itself where it has any tool and [Settings.Depth] is not zero.
const SubagentTool = "subagent"

// subagent is the tool that gives a task to an agent of its own: a session with
// an empty history, the same model, tools and permissions, and one budget and
// guard with the turn that started it.
type subagent struct{ t *turn }

// subagentSchema is the schema of its arguments.
const subagentSchema = `{"type":"object","properties":{"task":{"type":"string","minLength":1,"description":"what is to be done, whole: the subagent knows nothing else of this conversation"}},"required":["task"],"additionalProperties":false}`

// Spec implements tool.Tool.
func (s *subagent) Spec() tool.Spec {
	return tool.Spec{
		Tool: ninelives.Tool{
			Name: SubagentTool,
			Description: "Gives a task to a second agent with a fresh context and the same tools, and returns its answer. " +
				"Use it for a search or a piece of work whose details need not be in this conversation.",
			Schema: []byte(subagentSchema),
		},
		Timeout: maxSubagent,
	}
}

// maxSubagent is no limit of its own: the turn's bound it.
const maxSubagent = 1 << 62

// Needs implements tool.Tool: each call of the subagent is judged for itself.
func (s *subagent) Needs([]byte) ([]tool.Need, error) { return nil, nil }

// Run implements tool.Tool.
func (s *subagent) Run(ctx context.Context, c *tool.Call) tool.Result {
	r, _ := s.work(ctx, c)
	return r
}

const subagentBriefing = `You are a subagent: another agent has given you the task below. It sees nothing of your work but your last answer, so put everything into it that it needs, with the names of files and lines. You cannot ask anybody.`

// work carries the task out, and says what that has used of the turn's quotas.
func (s *subagent) work(ctx context.Context, c *tool.Call) (r tool.Result, spent *Spent) {
	var args struct {
		Task string `json:"task"`
	}
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return tool.ErrorResult(err.Error()), nil
	}
	child, err := s.open(ctx)
	if err != nil {
		return tool.ErrorResult("the subagent could not be started: " + oneLine(err.Error())), nil
	}
	defer func() { _ = child.Close() }()
	before := child.shared.Clone()
	var end Ended
	for e, failed := range child.Turn(ctx, ninelives.UserText(args.Task)) {
		switch e := e.(type) {
		case Calling:
			c.Output(fmt.Sprintf("%s %s\n", plain(e.Name), firstTarget(e.Needs)))
		case Ended:
			end = e
		}
		err = failed
	}
	st := child.State()
	usage, cost := st.Usage()
	spent = before.since(st.Tally(), usage, cost)
	if len(st.turns) > 0 {
		r.Changes = slices.Clone(st.turn().Changes)
	}
	text := strings.TrimSpace(end.Text)
	switch {
	case err != nil:
		return withChanges(tool.ErrorResult("the subagent could not go on: "+oneLine(err.Error())), r), spent
	case end.Reason != ReasonComplete:
		why := fmt.Sprintf("the subagent ended before it was done (%s): %s", end.Reason, oneLine(end.Message))
		if text != "" {
			why += "\nIts last words: " + text
		}
		return withChanges(tool.ErrorResult(why), r), spent
	}
	done := tool.TextResult(text)
	done.Summary = fmt.Sprintf("subagent: %d steps, %d calls", end.Steps, end.Calls)
	return withChanges(done, r), spent
}

func withChanges(r, of tool.Result) tool.Result {
	r.Changes = of.Changes
	return r
}

// firstTarget is what a call touches, for people.
func firstTarget(needs []tool.Need) string {
	if len(needs) == 0 {
		return ""
	}
	return plain(needs[0].Target)
}

// open opens the session of a subagent: what its parent may do, it may do, and
// one level of subagents less.
func (s *subagent) open(ctx context.Context) (*Session, error) {
	t := s.t
	t.s.mu.Lock()
	set := t.set
	set.Permissions.Mode = t.s.mode()
	set.Permissions.Rules = append(slices.Clip(set.Permissions.Rules), t.s.st.rules...)
	shared := t.s.st.tally(now()).Clone()
	signature := t.s.st.signature
	t.s.mu.Unlock()
	shared.Recent = nil // loops are each agent's own
	set.Depth--
	set.Output = nil
	set.Instructions = strings.TrimSpace(set.Instructions + "\n\n" + subagentBriefing)
	child := &Agent{
		tools: t.a.tools, sources: t.a.sources, settings: set, hooks: t.a.hooks, journal: t.a.journal,
		dir: t.s.dir, approve: t.a.approve, save: t.a.save, version: t.a.version,
		model: t.model, signature: signature,
	}
	session, err := child.open(context.WithoutCancel(ctx), t.s.ID())
	if err != nil {
		return nil, err
	}
	session.shared = &shared
	return session, nil
}

// since is what was counted after t, which must be of the same turn.
func (t *Tally) since(now Tally, u ninelives.Usage, cost float64) *Spent {
	left := func(now, then map[string]int) map[string]int {
		var d map[string]int
		for name, n := range now {
			if n -= then[name]; n > 0 {
				if d == nil {
					d = map[string]int{}
				}
				d[name] = n
			}
		}
		return d
	}
	return &Spent{
		Events: now.Events - t.Events, Calls: now.Calls - t.Calls, Usage: u, Cost: cost,
		PerTool: left(now.PerTool, t.PerTool), PerFile: left(now.PerFile, t.PerFile),
	}
}

// share counts what a subagent has used; events and cost are counted with the
// turn's own.
func (t *Tally) share(s *Spent) {
	t.Calls += s.Calls
	for name, n := range s.PerTool {
		if t.PerTool == nil {
			t.PerTool = map[string]int{}
		}
		t.PerTool[name] += n
	}
	for file, n := range s.PerFile {
		if t.PerFile == nil {
			t.PerFile = map[string]int{}
		}
		t.PerFile[file] += n
	}
}
