package journal

import (
	"context"
	"fmt"
	"slices"
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
	// Request is the input, and Raw the input in a client's own bytes. Either
	// may be nil.
	Request *ninelives.Request `json:"request,omitzero"`
	Raw     *RawCall           `json:"-"`
	// Title is a line for lists; empty means the beginning of what the user of
	// Request said last. It goes when the content goes.
	Title string `json:"-"`
	// Labels are what the face needs to take the call up again (preset, model
	// names, directory), as it likes. They must hold no credentials. They are no
	// content: they are neither encrypted nor removed with it.
	Labels map[string]string `json:"labels,omitzero"`
	// Client is the name of the client's key, Repeat the client's own key
	// against repetitions (Idempotency-Key), Public the id of the answer that it
	// is going to see; each is empty if there is none.
	Client string `json:"-"`
	Repeat string `json:"-"`
	Public string `json:"-"`
	// Resumes is the id of the call that this one takes up; empty if none. The
	// other must have failed or been interrupted, and be taken up only once.
	Resumes string `json:"resumes,omitzero"`
}

// The kinds of events of a call.
const (
	eventCall    = "call"    // callHead, callContent
	eventNotice  = "notice"  // mark, ninelives.Notice
	eventResumed = "resumed" // resumed, as JSON alone
	eventEnd     = "end"     // endHead, endContent
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
	labels, err := json.Marshal(c.Labels, form)
	if err != nil {
		return "", fmt.Errorf("the labels of the call cannot be recorded: %w", err)
	}
	now := time.Now()
	id = j.ids.next(now)
	e, err := j.asked(id, now, &c)
	if err != nil {
		return "", fmt.Errorf("the call cannot be recorded: %w", err)
	}
	title := c.Title
	if j.sealer != nil {
		title = ""
	}
	err = j.commit(ctx, &write{call: id, do: func(w *writer) error {
		if c.Resumes != "" {
			if err := w.resume(c.Resumes, id, now); err != nil {
				return err
			}
		}
		if err := w.run(w.insertStream, id, j.owners.self, c.Source, title, string(labels), now.UnixMilli(), c.Resumes, c.Client, c.Repeat, c.Public); err != nil {
			return err
		}
		if err := w.append(e); err != nil {
			return err
		}
		w.opened(e)
		return nil
	}})
	if err != nil {
		return "", err
	}
	j.at("begun")
	return id, nil
}

// asked is the first event of a call. It completes the call by its title.
func (j *Journal) asked(id string, now time.Time, c *Call) (event, error) {
	if c.Title == "" {
		c.Title = title(c.Request)
	}
	c.Title = oneLine(c.Title)
	head := callHead{Source: c.Source, Labels: c.Labels, Client: c.Client, Repeat: c.Repeat, Public: c.Public, Resumes: c.Resumes, Owner: j.owners.self}
	content := callContent{Title: c.Title, Request: c.Request}
	var body []byte
	if r := c.Raw; r != nil {
		content.Raw, content.Protocol, content.Path, content.Header = true, r.Protocol, r.Path, public(r.Header)
		body = r.Body
	}
	e, err := j.seal(id, eventCall, now, &head, &head.mark, &content, body)
	e.seq = 1
	return e, err
}

// public leaves out the header fields that may hold a credential.
func public(header map[string]string) map[string]string {
	kept := make(map[string]string, len(header))
	for name, value := range header {
		low := strings.ToLower(name)
		if !slices.ContainsFunc([]string{"auth", "cookie", "key", "token", "secret", "password", "credential"}, func(s string) bool { return strings.Contains(low, s) }) {
			kept[name] = value
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
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
	now := time.Now()
	var m mark
	e, err := j.seal(id, eventNotice, now, &m, &m, n, nil)
	if err != nil {
		return fmt.Errorf("the notice cannot be recorded: %w", err)
	}
	return j.enqueue(ctx, &write{call: id, do: func(w *writer) error {
		if err := w.open(id); err != nil {
			return err
		}
		return w.append(e)
	}})
}

// End records how a call ended and returns when that is on the disk. A call
// ends once: a second end is ErrEnded. If a note of the call was lost the end
// is recorded all the same, and the error tells.
//
// An end is worth recording although the caller has gone: give a context that
// outlives it.
func (j *Journal) End(ctx context.Context, id string, o Outcome) error {
	w, err := j.over(id, o)
	if err != nil {
		return err
	}
	if err := j.commit(ctx, w); err != nil {
		return err
	}
	return j.ended(id)
}

// EndLater is End for those who do not wait for the disk: it returns when the
// end is queued, which takes a moment only where hundreds of writes are, and it
// is written with the next transaction. Then told, unless nil, is called with
// what End would have returned; it must return at once. Close writes what is
// queued.
func (j *Journal) EndLater(ctx context.Context, id string, o Outcome, told func(error)) error {
	w, err := j.over(id, o)
	if err != nil {
		return err
	}
	w.told = func(err error) {
		if err == nil {
			err = j.ended(id)
		}
		if told != nil {
			told(err)
		}
	}
	return j.enqueue(ctx, w)
}

// ended says after the end which notes were lost.
func (j *Journal) ended(id string) error {
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

// over is the write that ends a call.
func (j *Journal) over(id string, o Outcome) (*write, error) {
	now := time.Now()
	head := endHead{Status: o.Status, Public: o.Public, Attempts: stored(o.Attempts), Usage: o.Usage, Cost: o.Cost, Estimated: o.Estimated}
	head.State, head.Reason = o.state()
	content := endContent{Response: o.Response, Fault: o.Fault, Error: o.Error, Partial: o.Partial, Raw: o.Raw != nil}
	if o.Forget {
		content, o.Raw = endContent{}, nil
	}
	e, err := j.seal(id, eventEnd, now, &head, &head.mark, &content, o.Raw)
	if err == nil && o.Forget {
		e, err = e.stripped(true, now)
	}
	if err != nil {
		return nil, fmt.Errorf("the outcome cannot be recorded: %w", err)
	}
	return &write{call: id, do: func(w *writer) error {
		ours, err := w.changes(w.endStream, id, now.UnixMilli(), string(head.State), string(head.Reason), o.Cost, o.tokens(), o.Public)
		if err != nil {
			return err
		}
		if !ours {
			if err := w.open(id); err != nil {
				return err
			}
		}
		first, only := w.first(id)
		if err := w.append(e); err != nil {
			return err
		}
		w.over(id)
		switch {
		case !o.Forget:
			return nil
		case !only:
			return w.strip(id, now)
		}
		if err := w.replace(first, true, now); err != nil {
			return err
		}
		return w.run(w.bareStream, id, now.UnixMilli())
	}}, nil
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
