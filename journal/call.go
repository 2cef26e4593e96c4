package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Call is what is recorded of a call before anything else happens.
type Call struct {
	// Source names the face that took the input ("ask", "gateway").
	Source string `json:"source,omitzero"`
	// Request is the input.
	Request *ninelives.Request `json:"request,omitzero"`
	// Labels are what the face needs to take the call up again (preset, model
	// names, directory), as it likes. They must hold no credentials.
	Labels map[string]string `json:"labels,omitzero"`
	// Resumes is the id of the call that this one takes up; empty if none. The
	// other must have failed or been interrupted, and be taken up only once.
	Resumes string `json:"resumes,omitzero"`
}

// Outcome is how a call ended.
type Outcome struct {
	// Response is the accepted answer; nil if there is none.
	Response *ninelives.Response `json:"response,omitzero"`
	// Fault is the last failure, and Error the whole story in a line; both are
	// zero if there is a Response.
	Fault *ninelives.Fault `json:"fault,omitzero"`
	Error string           `json:"error,omitzero"`
}

// OutcomeOf is the outcome of a call that returned so.
func OutcomeOf(resp *ninelives.Response, err error) Outcome {
	if err == nil {
		return Outcome{Response: resp}
	}
	o := Outcome{Error: err.Error()}
	errors.As(err, &o.Fault)
	if o.Fault == nil && errors.Is(err, context.Canceled) {
		o.Fault = &ninelives.Fault{Class: ninelives.ClassCanceled, Message: err.Error()}
	}
	return o
}

// state is the state of a call that ended so.
func (o Outcome) state() (State, ninelives.Class) {
	switch {
	case o.Response != nil:
		return StateComplete, ""
	case o.Fault == nil:
		return StateFailed, ninelives.ClassUnknown
	case o.Fault.Class == ninelives.ClassCanceled:
		return StateCanceled, o.Fault.Class
	}
	return StateFailed, o.Fault.Class
}

// The kinds of events of a call.
const (
	eventCall    = "call"    // Call
	eventNotice  = "notice"  // ninelives.Notice
	eventResumed = "resumed" // resumed
	eventEnd     = "end"     // Outcome
)

type (
	begun struct {
		Call
		Owner string `json:"owner"`
	}
	resumed struct {
		By string `json:"by"`
	}
)

// form is how events are written: any text is taken.
var form = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true), json.Deterministic(true))

// Begin records a call and returns its id when the record is on the disk. It
// waits for about one fsync, which it shares with others. If ctx ends before
// the record is written there is none, and the error is the context's.
func (j *Journal) Begin(ctx context.Context, c Call) (id string, err error) {
	if c.Resumes != "" {
		s, err := j.summary(ctx, j.readers, c.Resumes)
		if err != nil {
			return "", err
		}
		if s.State == StateRunning {
			return "", fmt.Errorf("%s: %w", s.ID, ErrRunning)
		}
		c.Resumes = s.ID
	}
	data, err := json.Marshal(begun{c, j.owners.self}, form)
	if err != nil {
		return "", fmt.Errorf("the call cannot be recorded: %w", err)
	}
	labels, err := json.Marshal(c.Labels, form)
	if err != nil {
		return "", fmt.Errorf("the labels of the call cannot be recorded: %w", err)
	}
	title := title(c.Request)
	now := time.Now()
	id = j.ids.next(now)
	err = j.commit(ctx, &write{call: id, do: func(w *writer) error {
		if c.Resumes != "" {
			if err := w.resume(c.Resumes, id, now); err != nil {
				return err
			}
		}
		if err := w.run(w.insertStream, id, j.owners.self, c.Source, title, string(labels), now.UnixMilli(), c.Resumes); err != nil {
			return err
		}
		return w.append(event{stream: id, seq: 1, at: now, kind: eventCall, data: data})
	}})
	if err != nil {
		return "", err
	}
	j.at("begun")
	return id, nil
}

// resume marks a call as taken up, which happens once.
func (w *writer) resume(id, by string, now time.Time) error {
	s, err := w.standing(id)
	switch {
	case err != nil:
		return err
	case s.state == StateComplete:
		return fmt.Errorf("%s: %w", id, ErrComplete)
	case s.resumedBy != "":
		return fmt.Errorf("%s: %w, by %s", id, ErrResumed, s.resumedBy)
	}
	data, err := json.Marshal(resumed{By: by}, form)
	if err != nil {
		return err
	}
	if err := w.append(event{stream: id, at: now, kind: eventResumed, data: data}); err != nil {
		return err
	}
	return w.run(w.resumeStream, id, by)
}

// Note records a healing step of a call that has not ended. It does not wait
// for the disk: the note is written with what else is being written, before
// the end of its call. If it cannot be written, End says so; one that comes
// after the end is dropped.
func (j *Journal) Note(ctx context.Context, id string, n ninelives.Notice) error {
	data, err := json.Marshal(n, form)
	if err != nil {
		return fmt.Errorf("the notice cannot be recorded: %w", err)
	}
	now := time.Now()
	return j.enqueue(ctx, &write{call: id, do: func(w *writer) error {
		if err := w.open(id); err != nil {
			return err
		}
		return w.append(event{stream: id, at: now, kind: eventNotice, data: data})
	}})
}

// End records how a call ended and returns when that is on the disk. A call
// ends once: a second end is ErrEnded. If a note of the call was lost the end
// is recorded all the same, and the error tells.
//
// An end is worth recording although the caller has gone: give a context that
// outlives it.
func (j *Journal) End(ctx context.Context, id string, o Outcome) error {
	data, err := json.Marshal(o, form)
	if err != nil {
		return fmt.Errorf("the outcome cannot be recorded: %w", err)
	}
	state, reason := o.state()
	now := time.Now()
	err = j.commit(ctx, &write{call: id, do: func(w *writer) error {
		if err := w.open(id); err != nil {
			return err
		}
		if err := w.append(event{stream: id, at: now, kind: eventEnd, data: data}); err != nil {
			return err
		}
		return w.run(w.endStream, id, now.UnixMilli(), string(state), string(reason))
	}})
	if err != nil {
		return err
	}
	j.at("ended")
	j.lostMu.Lock()
	lost := j.lost[id]
	delete(j.lost, id)
	j.lostMu.Unlock()
	if lost != nil {
		return fmt.Errorf("the end of %s is recorded, but not every step before it: %w", id, lost)
	}
	return nil
}

// maxTitle is the length of a title in characters.
const maxTitle = 120

// title is the first line of the last thing that the user said.
func title(r *ninelives.Request) string {
	if r == nil {
		return ""
	}
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := r.Messages[i]; m.Role == ninelives.RoleUser {
			return oneLine(m.Text())
		}
	}
	return ""
}

// oneLine is the first line of a text, as long as a title may be.
func oneLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")), "\n")
	if chars := []rune(line); len(chars) > maxTitle {
		line = string(chars[:maxTitle-1]) + "…"
	}
	return strings.TrimSpace(line)
}
