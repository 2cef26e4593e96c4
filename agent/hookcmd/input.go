package hookcmd

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// input is what a command reads: one JSON object, documented in docs/hooks.md.
type input struct {
	Event     agent.HookPoint `json:"event"`
	Session   string          `json:"session,omitzero"`
	Turn      int             `json:"turn,omitzero"`
	Directory string          `json:"directory"`
	Mode      tool.Mode       `json:"mode,omitzero"`

	Input string `json:"input,omitzero"` // turn_start

	Tool      string         `json:"tool,omitzero"` // before_tool, after_tool
	Call      string         `json:"call,omitzero"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
	Result    *result        `json:"result,omitzero"` // after_tool

	Purpose  agent.Purpose `json:"purpose,omitzero"`  // before_model, after_model
	Messages int           `json:"messages,omitzero"` // before_model
	Answer   *answer       `json:"answer,omitzero"`   // after_model

	Why        string      `json:"why,omitzero"`        // before_compaction, after_compaction
	Compaction *compaction `json:"compaction,omitzero"` // after_compaction

	End *end `json:"end,omitzero"` // turn_end
}

type result struct {
	Text    string   `json:"text"`
	IsError bool     `json:"is_error"`
	Ran     bool     `json:"ran"`
	Unknown bool     `json:"unknown,omitzero"`
	Changes []string `json:"changes,omitzero"`
	Saved   string   `json:"saved,omitzero"`
}

type answer struct {
	Text       string   `json:"text"`
	Calls      []string `json:"calls,omitzero"`
	Finish     string   `json:"finish,omitzero"`
	Candidate  string   `json:"candidate,omitzero"`
	IsFallback bool     `json:"is_fallback,omitzero"`
	Attempts   int      `json:"attempts,omitzero"`
	Input      int      `json:"input_tokens,omitzero"`
	Output     int      `json:"output_tokens,omitzero"`
	Cost       float64  `json:"cost,omitzero"`
	Error      string   `json:"error,omitzero"`
}

type compaction struct {
	Tier   int  `json:"tier"`
	Before int  `json:"before"`
	After  int  `json:"after"`
	Strike bool `json:"strike,omitzero"`
}

type end struct {
	Reason     agent.Reason `json:"reason"`
	Message    string       `json:"message,omitzero"`
	FailedTurn bool         `json:"failedTurn,omitzero"`
	Text       string       `json:"text,omitzero"`
	Steps      int          `json:"steps"`
	Calls      int          `json:"calls"`
	Cost       float64      `json:"cost,omitzero"`
	Changed    []string     `json:"changed,omitzero"`
}

// of is what every command of a turn is told.
func of(ctx context.Context, p agent.HookPoint) input {
	in := input{Event: p}
	in.Session, in.Turn = agent.Whose(ctx)
	return in
}

func ofState(ctx context.Context, p agent.HookPoint, s *agent.State) input {
	in := of(ctx, p)
	if s != nil {
		in.Directory, in.Mode = s.Opening().Directory, s.Mode()
	}
	return in
}

func ofCall(ctx context.Context, p agent.HookPoint, c *tool.Call, name string) input {
	in := of(ctx, p)
	in.Session, in.Turn = c.Session, c.Turn
	in.Tool, in.Call = name, c.ID
	if v := jsontext.Value(c.Arguments); v.IsValid() {
		in.Arguments = v
	}
	return in
}

func resultOf(e agent.Effect) *result {
	r := &result{Text: e.Result.Text(), IsError: e.Result.IsError, Ran: e.Ran, Unknown: e.Unknown, Saved: e.Saved}
	for _, c := range e.Changes {
		r.Changes = append(r.Changes, c.Path)
	}
	return r
}

func answerOf(a agent.Answer, err error) *answer {
	if err != nil {
		return &answer{Error: err.Error()}
	}
	out := &answer{
		Text: a.Message.Text(), Finish: string(a.Finish), Candidate: a.Candidate, IsFallback: a.IsFallback, Attempts: a.Attempts,
		Input: a.Usage.TotalInput(), Output: a.Usage.TotalOutput(), Cost: a.Cost,
	}
	for _, c := range a.Message.ToolCalls() {
		out.Calls = append(out.Calls, c.Name)
	}
	return out
}

func endOf(e agent.Ended) *end {
	return &end{
		Reason: e.Reason, Message: e.Message, FailedTurn: e.FailedTurn, Text: e.Text,
		Steps: e.Steps, Calls: e.Calls, Cost: e.Cost, Changed: e.Changed,
	}
}

// encode writes the input in one line. Text that is no UTF-8 gets its
// replacement characters.
func (in input) encode() ([]byte, error) {
	out, err := json.Marshal(in, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return append(out, '\n'), err
}
