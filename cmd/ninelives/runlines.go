package main

import (
	"errors"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// runLines tells a run to programs: one JSON object a line (stream-json), or
// the last of them alone (json). docs/cli.md is the contract; fields are added,
// never renamed.
type runLines struct {
	out    io.Writer
	start  time.Time
	stream bool
}

// runLine is the shape of every line of a run. Which fields are set follows
// from Type.
type runLine struct {
	Type string `json:"type"`
	MS   int64  `json:"ms"` // since the start of the command

	// start
	Session    string   `json:"session,omitzero"`
	Candidates []string `json:"candidates,omitempty"`
	Simulated  bool     `json:"simulated,omitzero"`
	Warnings   []string `json:"warnings,omitempty"`
	Directory  string   `json:"directory,omitzero"`
	Mode       string   `json:"mode,omitzero"`

	// text, reasoning, refusal, discard, notice; answer
	Turn    int    `json:"turn,omitzero"`
	Step    int    `json:"step,omitzero"`
	Purpose string `json:"purpose,omitzero"`
	Attempt int    `json:"attempt,omitzero"`
	Text    string `json:"text,omitzero"`
	*noticeLine
	Finish     string `json:"finish,omitzero"`
	Candidate  string `json:"candidate,omitzero"`
	IsFallback bool   `json:"is_fallback,omitzero"`
	Attempts   int    `json:"attempts,omitzero"`

	// call, output, effect
	Call      string         `json:"call,omitzero"`
	Name      string         `json:"name,omitzero"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
	Needs     []tool.Need    `json:"needs,omitempty"`
	Diff      string         `json:"diff,omitzero"`
	IsError   bool           `json:"is_error,omitzero"`
	Unknown   bool           `json:"unknown,omitzero"`
	Changes   []tool.Change  `json:"changes,omitempty"`

	// guard, compaction
	Limit  string `json:"limit,omitzero"`
	Tier   int    `json:"tier,omitzero"`
	Why    string `json:"why,omitzero"`
	Before int    `json:"before,omitzero"`
	After  int    `json:"after,omitzero"`
	WaitMS int64  `json:"wait_ms,omitzero"`

	// result: the last line
	Reason       string         `json:"reason,omitzero"`
	Message      string         `json:"message,omitzero"`
	FailedTurn   bool           `json:"failedTurn,omitzero"`
	Output       jsontext.Value `json:"output,omitzero"`
	Steps        int            `json:"steps,omitzero"`
	Calls        int            `json:"calls,omitzero"`
	InputTokens  int            `json:"input_tokens,omitzero"`
	OutputTokens int            `json:"output_tokens,omitzero"`
	Cost         float64        `json:"cost,omitzero"`
	Changed      []string       `json:"changed,omitempty"`
	Fault        *faultLine     `json:"fault,omitzero"`
	Exit         *int           `json:"exit,omitempty"`
	Resume       string         `json:"resume,omitzero"` // the session's id
}

// noticeLine is a healing step.
type noticeLine struct {
	Kind   string     `json:"kind,omitzero"`
	Next   string     `json:"next,omitzero"`
	TookMS int64      `json:"took_ms,omitzero"`
	Repair string     `json:"repair,omitzero"`
	Cause  *faultLine `json:"cause,omitzero"`
}

func (l *runLines) write(v runLine) error {
	if !l.stream && v.Type != "result" {
		return nil
	}
	v.MS = time.Since(l.start).Milliseconds()
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	_, err = l.out.Write(append(b, '\n'))
	return err
}

func (l *runLines) begin(session string, s *shop) error {
	return l.write(runLine{Type: "start", Session: session, Candidates: s.chain.names(), Simulated: s.chain.simulated,
		Warnings: s.warnings, Directory: s.directory, Mode: string(s.settings.Permissions.Mode)})
}

func (l *runLines) event(ev agent.Event) error {
	switch ev := ev.(type) {
	case agent.Model:
		return l.model(ev)
	case agent.Answered:
		a := ev.Answer
		return l.write(runLine{Type: "answer", Turn: a.Turn, Step: a.Step, Purpose: string(a.Purpose), Text: a.Message.Text() + a.Message.Refusal(),
			Finish: string(a.Finish), Candidate: a.Candidate, IsFallback: a.IsFallback, Attempts: a.Attempts, Warnings: a.Warnings,
			InputTokens: a.Usage.TotalInput(), OutputTokens: a.Usage.TotalOutput(), Cost: a.Cost})
	case agent.Calling:
		return l.write(runLine{Type: "call", Turn: ev.Turn, Call: ev.Call, Name: ev.Name, Arguments: jsonValue(ev.Arguments), Needs: ev.Needs, Diff: ev.Diff})
	case agent.Output:
		return l.write(runLine{Type: "output", Call: ev.Call, Text: ev.Text})
	case agent.Called:
		e := ev.Effect
		return l.write(runLine{Type: "effect", Call: e.Call, Name: e.Name, Text: e.Result.Text(), IsError: e.Result.IsError,
			Unknown: e.Unknown, Changes: e.Changes, Diff: e.Diff})
	case agent.Steered:
		return l.write(runLine{Type: "steered", Text: ev.Text})
	case agent.Compacted:
		c := ev.Compaction
		return l.write(runLine{Type: "compaction", Turn: c.Turn, Tier: c.Tier, Why: c.Why, Before: c.Before, After: c.After, Text: compactionWords(c)})
	case agent.Guarded:
		return l.write(runLine{Type: "guard", Limit: ev.Limit, Message: ev.Message, WaitMS: ev.Wait.Milliseconds()})
	case agent.Warning:
		return l.write(runLine{Type: "warning", Text: ev.Text})
	}
	return nil
}

func (l *runLines) model(ev agent.Model) error {
	out := runLine{Turn: ev.Turn, Step: ev.Step, Purpose: string(ev.Purpose)}
	switch e := ev.Event.(type) {
	case ninelives.TextDelta:
		out.Type, out.Attempt, out.Text = "text", e.Attempt, e.Text
	case ninelives.ReasoningDelta:
		out.Type, out.Attempt, out.Text = "reasoning", e.Attempt, e.Text
	case ninelives.RefusalDelta:
		out.Type, out.Attempt, out.Text = "refusal", e.Attempt, e.Text
	case ninelives.Discard:
		out.Type, out.Attempt, out.noticeLine = "discard", e.Attempt, &noticeLine{Cause: faultOf(e.Reason)}
	case ninelives.Notice:
		out.Type, out.Attempt, out.Candidate, out.Text, out.WaitMS = "notice", e.Attempt, e.Candidate, e.Text, e.Wait.Milliseconds()
		out.noticeLine = &noticeLine{Kind: string(e.Kind), Next: e.Next, TookMS: e.Took.Milliseconds(), Cause: faultOf(e.Fault)}
		if e.Repair != nil {
			out.Repair = e.Repair.String()
		}
	default:
		return nil
	}
	return l.write(out)
}

func (l *runLines) end(out result) error {
	v := runLine{Type: "result", Session: out.session, Exit: &out.code}
	if out.kept {
		v.Resume = out.session
	}
	if e := out.ended; e != nil {
		v.Session, v.Turn, v.Reason, v.Message, v.FailedTurn = e.Session, e.Turn, string(e.Reason), e.Message, e.FailedTurn
		v.Text, v.Output, v.Steps, v.Calls, v.Cost, v.Changed = e.Text, jsonValue(e.Output), e.Steps, e.Calls, e.Cost, e.Changed
		v.InputTokens, v.OutputTokens, v.Fault = e.Usage.TotalInput(), e.Usage.TotalOutput(), faultOf(e.Fault)
		return l.write(v)
	}
	v.Reason, v.Message = "error", describe(out.err)
	var fault *ninelives.Fault
	if errors.As(out.err, &fault) {
		v.Fault = faultOf(fault)
	}
	return l.write(v)
}

// jsonValue is JSON as it stands; what is none is left out.
func jsonValue(b []byte) jsontext.Value {
	if v := jsontext.Value(b); v.IsValid() {
		return v
	}
	return nil
}
