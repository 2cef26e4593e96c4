package main

import (
	"errors"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// lines tells a call to programs: one JSON object a line. docs/cli.md is the
// contract; fields are added, never renamed.
type lines struct {
	out   io.Writer
	start time.Time
	id    string
}

// line is the shape of every line. Which fields are set follows from Type.
type line struct {
	Type string `json:"type"`
	MS   int64  `json:"ms"` // since the start of the command

	// start
	ID         string   `json:"id,omitzero"`
	Candidates []string `json:"candidates,omitempty"`
	Simulated  bool     `json:"simulated,omitzero"`
	Warnings   []string `json:"warnings,omitempty"`

	// text, reasoning, refusal, discard, notice
	Attempt   int    `json:"attempt,omitzero"`
	Text      string `json:"text,omitzero"`
	Kind      string `json:"kind,omitzero"`
	Candidate string `json:"candidate,omitzero"`
	Next      string `json:"next,omitzero"`
	WaitMS    int64  `json:"wait_ms,omitzero"`
	TookMS    int64  `json:"took_ms,omitzero"`
	Repair    string `json:"repair,omitzero"`
	*faultLine

	// done
	Output       jsontext.Value `json:"output,omitzero"`
	Finish       string         `json:"finish,omitzero"`
	Model        string         `json:"model,omitzero"`
	IsFallback   bool           `json:"is_fallback,omitzero"`
	Attempts     int            `json:"attempts,omitzero"`
	Continued    int            `json:"continued,omitzero"`
	Degraded     string         `json:"degraded,omitzero"`
	InputTokens  int            `json:"input_tokens,omitzero"`
	OutputTokens int            `json:"output_tokens,omitzero"`

	// error
	Message string      `json:"message,omitzero"`
	Trail   []triedLine `json:"trail,omitempty"`

	// done and error: the last line
	Exit   *int   `json:"exit,omitempty"`
	Resume string `json:"resume,omitzero"`
}

// faultLine is the cause of a discard, a notice or an error.
type faultLine struct {
	Class     string `json:"class"`
	Status    int    `json:"status,omitzero"`
	Code      string `json:"code,omitzero"`
	Cause     string `json:"cause,omitzero"`
	RequestID string `json:"request_id,omitzero"`
}

type triedLine struct {
	Candidate string `json:"candidate"`
	Class     string `json:"class,omitzero"`
	Outcome   string `json:"outcome"`
	Status    int    `json:"status,omitzero"`
	TookMS    int64  `json:"took_ms"`
}

func faultOf(f *ninelives.Fault) *faultLine {
	if f == nil {
		return nil
	}
	return &faultLine{Class: string(f.Class), Status: f.Status, Code: f.Code, Cause: f.Message, RequestID: f.RequestID}
}

func (l *lines) write(v line) error {
	v.MS = time.Since(l.start).Milliseconds()
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	_, err = l.out.Write(append(b, '\n'))
	return err
}

func (l *lines) begin(id string, c *chain) error {
	l.id = id
	return l.write(line{Type: "start", ID: id, Candidates: c.names(), Simulated: c.simulated, Warnings: c.warnings})
}

func (l *lines) event(ev ninelives.Event) error {
	switch ev := ev.(type) {
	case ninelives.TextDelta:
		return l.write(line{Type: "text", Attempt: ev.Attempt, Text: ev.Text})
	case ninelives.ReasoningDelta:
		return l.write(line{Type: "reasoning", Attempt: ev.Attempt, Text: ev.Text})
	case ninelives.RefusalDelta:
		return l.write(line{Type: "refusal", Attempt: ev.Attempt, Text: ev.Text})
	case ninelives.Discard:
		return l.write(line{Type: "discard", Attempt: ev.Attempt, faultLine: faultOf(ev.Reason)})
	case ninelives.Notice:
		out := line{Type: "notice", Kind: string(ev.Kind), Attempt: ev.Attempt, Candidate: ev.Candidate, Next: ev.Next, Text: ev.Text,
			WaitMS: ev.Wait.Milliseconds(), TookMS: ev.Took.Milliseconds(), faultLine: faultOf(ev.Fault)}
		if ev.Repair != nil {
			out.Repair = ev.Repair.String()
		}
		return l.write(out)
	}
	return nil
}

func (l *lines) answer(r *ninelives.Response) error {
	code := answerCode(r)
	out := line{Type: "done", ID: l.id, Text: r.Text() + r.Message.Refusal(), Output: r.Output, Finish: string(r.Finish), Model: r.Model, Candidate: r.Candidate,
		IsFallback: r.IsFallback, Attempts: r.Attempts, Continued: r.Continued, Degraded: string(r.Degraded), Warnings: r.Warnings,
		InputTokens: r.Usage.TotalInput(), OutputTokens: r.Usage.TotalOutput(), Exit: &code}
	return l.write(out)
}

func (l *lines) failure(id string, err error, code int) error {
	out := line{Type: "error", ID: id, Message: describe(err), Exit: &code, Resume: id}
	var fault *ninelives.Fault
	if errors.As(err, &fault) {
		out.faultLine = faultOf(fault)
	}
	var exhausted *heal.Exhausted
	if errors.As(err, &exhausted) {
		for _, t := range exhausted.Trail {
			out.Trail = append(out.Trail, triedLine{t.Candidate, string(t.Class), string(t.Outcome), t.Status, t.Took.Milliseconds()})
		}
	}
	return l.write(out)
}
