package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	ninelives "github.com/ninelives-ai/ninelives"
)

// State is how far a call has come.
type State string

// The states of a call.
const (
	StateRunning     State = "running"     // a living process is at it
	StateInterrupted State = "interrupted" // its process has died
	StateComplete    State = "complete"    // it was answered
	StateFailed      State = "failed"
	StateCanceled    State = "canceled" // by its caller
)

// stateOpen is how a call that has not ended is stored: whether its process
// lives is found out by those who read.
const stateOpen = "open"

// Summary is a call in a line.
type Summary struct {
	ID     string
	Source string
	// Title is the beginning of what the user said last.
	Title   string
	Labels  map[string]string
	Started time.Time
	Ended   time.Time // zero if it has not ended
	State   State
	// Reason is the class of the fault that ended it; empty if none did.
	Reason ninelives.Class
	// Resumes and ResumedBy are the calls before and after this one, where it
	// took one up or was taken up.
	Resumes   string
	ResumedBy string
	// Client, Repeat and Public are those of Call and Outcome.
	Client string
	Repeat string
	Public string
	// Cost (US dollars) and Tokens are those of the whole call, once it has ended.
	Cost   float64
	Tokens int
	// Removed is when its content was removed; zero if it is there.
	Removed time.Time
}

// Resumable says that the call has no answer and that nothing is under way to
// get one.
func (s Summary) Resumable() bool {
	return s.ResumedBy == "" && s.State != StateComplete && s.State != StateRunning
}

// Record is everything that is known of a call.
type Record struct {
	Summary
	// Request and Raw are nil if they were not recorded, or were removed.
	Request *ninelives.Request
	Raw     *RawCall
	Notices []Noted
	// Outcome is nil if the call has not ended.
	Outcome *Outcome
	// Damaged lists what could not be read.
	Damaged []Damage
}

// Noted is a notice with its time.
type Noted struct {
	At time.Time
	ninelives.Notice
}

// Damage is a piece of the journal that cannot be read, or is not what was
// written.
type Damage struct {
	// Call or Session is whose piece it is; both are empty where that cannot be
	// told.
	Call    string
	Session string
	// Seq is the number of the event within the call, or of the entry within the
	// session; 0 if the whole of it is concerned.
	Seq int
	Err error
}

// Error says it in a line.
func (d Damage) Error() string {
	whose, piece := "call "+d.Call, "event"
	switch {
	case d.Session != "":
		whose, piece = "session "+d.Session, "entry"
	case d.Call == "":
		return d.Err.Error()
	}
	if d.Seq == 0 {
		return fmt.Sprintf("%s: %v", whose, d.Err)
	}
	return fmt.Sprintf("%s, %s %d: %v", whose, piece, d.Seq, d.Err)
}

// Filter selects calls.
type Filter struct {
	// Source is the face that took them; empty means any.
	Source string
	// States are those wanted; empty means all.
	States []State
	// Resumable leaves out what needs no taking up (see Summary.Resumable).
	Resumable bool
	// Limit is how many are given at most; 0 means 50, a negative one all.
	Limit int
}

// Calls lists calls, the newest first. What cannot be read is skipped and
// reported.
func (j *Journal) Calls(ctx context.Context, f Filter) ([]Summary, []Damage, error) {
	limit := f.Limit
	if limit == 0 {
		limit = 50
	}
	rows, err := j.readers.QueryContext(ctx, selectStream+` WHERE kind = 'call'
		AND (?1 = '' OR source = ?1) AND (NOT ?2 OR resumed_by = '' AND state <> 'complete') ORDER BY id DESC`, f.Source, f.Resumable)
	if err != nil {
		return nil, nil, j.trouble(err)
	}
	defer func() { _ = rows.Close() }()
	var list []Summary
	var damaged []Damage
	alive := map[string]bool{}
	for (limit < 0 || len(list) < limit) && rows.Next() {
		s, owner, err := scanStream(rows)
		if err != nil {
			damaged = append(damaged, Damage{Call: s.ID, Err: err})
			continue
		}
		if s.State == stateOpen {
			if _, known := alive[owner]; !known {
				alive[owner] = j.owners.alive(owner)
			}
			s.State = living(alive[owner])
		}
		if len(f.States) > 0 && !slices.Contains(f.States, s.State) || f.Resumable && !s.Resumable() {
			continue
		}
		list = append(list, s)
	}
	switch err := rows.Err(); {
	case err == nil:
	case code(err) == sqliteCorrupt:
		damaged = append(damaged, Damage{Err: j.trouble(err)})
	default:
		return list, damaged, j.trouble(err)
	}
	return list, damaged, nil
}

// Call gives the record of the call whose id begins so: ErrUnknown if there is
// none, ErrAmbiguous if there are several.
func (j *Journal) Call(ctx context.Context, id string) (*Record, error) {
	// One transaction, so that the record is of one moment.
	tx, err := j.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, j.trouble(err)
	}
	defer func() { _ = tx.Rollback() }()
	s, err := j.summary(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	r := &Record{Summary: s}
	damage := func(seq int64, err error) {
		r.Damaged = append(r.Damaged, Damage{Call: s.ID, Seq: int(seq), Err: err})
	}
	next, err := j.events(ctx, tx, s.ID, damage, func(e event) error { return r.add(j, e) })
	if err != nil && code(err) != sqliteCorrupt {
		return nil, err
	}
	if ended := !s.Ended.IsZero(); ended && r.Outcome == nil {
		// It did end, whatever is left of the answer.
		r.State, r.Reason, r.Ended = s.State, s.Reason, s.Ended
		if len(r.Damaged) == 0 {
			damage(next, errMissing)
		}
	} else if next == 1 {
		damage(next, errMissing)
	}
	if err != nil {
		damage(0, err)
	}
	return r, nil
}

// events reads the events of a stream in their order: those that are as they
// were written go to each, whose error is damage as well. It gives the number
// that would come next. With an error of SQLite's that says "corrupt", nothing
// is known of those from there on.
func (j *Journal) events(ctx context.Context, q querier, stream string, damage func(seq int64, err error), each func(event) error) (next int64, err error) {
	next = 1
	rows, err := q.QueryContext(ctx, `SELECT seq, at, kind, data, crc FROM events WHERE stream = ? ORDER BY seq`, stream)
	if err != nil {
		return next, j.trouble(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		e := event{stream: stream}
		var at, crc int64
		if err := rows.Scan(&e.seq, &at, &e.kind, &e.data, &crc); err != nil {
			damage(next, err)
			next++
			continue
		}
		e.at = time.UnixMilli(at)
		whole := e.checksum() == crc
		if !whole && e.seq > next+maxGap {
			e.seq = next // its number is not to be believed either
		}
		missing(next, e.seq, damage)
		next = e.seq + 1
		err := errChanged
		if whole {
			err = each(e)
		}
		if err != nil {
			damage(e.seq, err)
		}
	}
	if err := rows.Err(); err != nil {
		return next, j.trouble(err)
	}
	return next, nil
}

// maxGap is how many missing events are reported one by one.
const maxGap = 1000

// missing reports the events from next to before seq.
func missing(next, seq int64, damage func(seq int64, err error)) {
	if seq-next > maxGap {
		damage(next, fmt.Errorf("%w, and so are the %d behind it", errMissing, seq-next-1))
		return
	}
	for ; next < seq; next++ {
		damage(next, errMissing)
	}
}

var (
	errMissing = errors.New("it is missing")
	errChanged = errors.New("it is not what was written (checksum)")
)

// add reads one event into the record: what it says stands above the summary
// that was made of it. Kinds of a later version are left alone.
func (r *Record) add(j *Journal, e event) error {
	if e.kind == eventResumed {
		var by resumed
		if err := json.Unmarshal(e.data, &by, form); err != nil {
			return err
		}
		r.ResumedBy = by.By
		return nil
	}
	if !e.headed() {
		return r.addOld(j, e)
	}
	switch e.kind {
	case eventCall:
		var h callHead
		var c callContent
		raw, err := j.unseal(e, &h, &h.mark, &c)
		if err != nil && !errors.Is(err, ErrSealed) {
			return err
		}
		r.began(j, e, h.Owner, h.mark)
		r.Source, r.Labels, r.Resumes = h.Source, h.Labels, h.Resumes
		r.Client, r.Repeat, r.Public = h.Client, h.Repeat, h.Public
		r.Request, r.Title = c.Request, c.Title
		if c.Raw {
			r.Raw = &RawCall{Protocol: c.Protocol, Path: c.Path, Body: raw, Header: c.Header}
		}
		return err
	case eventNotice:
		var m mark
		var n ninelives.Notice
		if _, err := j.unseal(e, &m, &m, &n); err != nil || !m.Removed.IsZero() {
			return err
		}
		r.Notices = append(r.Notices, Noted{e.at, n})
	case eventEnd:
		var h endHead
		var c endContent
		raw, err := j.unseal(e, &h, &h.mark, &c)
		if err != nil && !errors.Is(err, ErrSealed) {
			return err
		}
		r.State, r.Reason, r.Ended = h.State, h.Reason, e.at
		o := Outcome{
			Response: c.Response, Fault: c.Fault, Error: c.Error, Partial: c.Partial,
			Attempts: told(h.Attempts), Usage: h.Usage, Cost: h.Cost, Estimated: h.Estimated, Status: h.Status, Public: h.Public,
		}
		if c.Raw {
			o.Raw = raw
		}
		if (err != nil || !h.Removed.IsZero()) && h.Reason != "" {
			o.Fault = &ninelives.Fault{Class: h.Reason} // what can still be said
		}
		r.Outcome, r.Cost, r.Tokens = &o, h.Cost, o.tokens()
		if h.Public != "" {
			r.Public = h.Public
		}
		return err
	}
	return nil
}

// began notes what the beginning of a call says in every version.
func (r *Record) began(j *Journal, e event, owner string, m mark) {
	r.Started = e.at
	r.State, r.Reason, r.Ended = living(j.owners.alive(owner)), "", time.Time{}
	r.ResumedBy = ""
	r.Cost, r.Tokens, r.Removed = 0, 0, time.Time{}
	if !m.Removed.IsZero() {
		r.Removed = time.UnixMilli(m.Removed.UnixMilli())
	}
}

// addOld reads an event of the first versions, which is JSON alone.
func (r *Record) addOld(j *Journal, e event) error {
	switch e.kind {
	case eventCall:
		var b begun
		if err := json.Unmarshal(e.data, &b, form); err != nil {
			return err
		}
		r.began(j, e, b.Owner, mark{})
		r.Request, r.Title = b.Request, title(b.Request)
		r.Source, r.Labels, r.Resumes = b.Source, b.Labels, b.Resumes
		r.Client, r.Repeat, r.Public = "", "", ""
	case eventNotice:
		var n ninelives.Notice
		if err := json.Unmarshal(e.data, &n, form); err != nil {
			return err
		}
		r.Notices = append(r.Notices, Noted{e.at, n})
	case eventEnd:
		var o Outcome
		if err := json.Unmarshal(e.data, &o, form); err != nil {
			return err
		}
		r.Outcome, r.Ended = &o, e.at
		r.State, r.Reason = o.state()
	}
	return nil
}

const selectStream = `SELECT id, owner, source, title, labels, started, ended, state, reason, resumes, resumed_by, client, repeat, public, cost, tokens, removed FROM streams`

func scanStream(rows *sql.Rows) (s Summary, owner string, err error) {
	var labels string
	var started, ended, removed int64
	if err := rows.Scan(&s.ID, &owner, &s.Source, &s.Title, &labels, &started, &ended, &s.State, &s.Reason, &s.Resumes, &s.ResumedBy,
		&s.Client, &s.Repeat, &s.Public, &s.Cost, &s.Tokens, &removed); err != nil {
		return s, owner, err
	}
	s.Started = time.UnixMilli(started)
	if ended != 0 {
		s.Ended = time.UnixMilli(ended)
	}
	if removed != 0 {
		s.Removed = time.UnixMilli(removed)
	}
	if !slices.Contains([]State{stateOpen, StateComplete, StateFailed, StateCanceled}, s.State) {
		return s, owner, fmt.Errorf("its state is %q", s.State)
	}
	return s, owner, json.Unmarshal([]byte(labels), &s.Labels, form)
}

func living(alive bool) State {
	if alive {
		return StateRunning
	}
	return StateInterrupted
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// summary finds the one call whose id begins so.
func (j *Journal) summary(ctx context.Context, q querier, id string) (s Summary, err error) {
	prefix := tidyID(id)
	if prefix == "" {
		return s, fmt.Errorf("%q: %w", id, ErrUnknown)
	}
	// In ASCII everything that begins so sorts below the prefix and a tilde.
	rows, err := q.QueryContext(ctx, selectStream+` WHERE kind = 'call' AND id >= ? AND id < ? ORDER BY id LIMIT 2`, prefix, prefix+"~")
	if err != nil {
		return s, j.trouble(err)
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return s, j.trouble(err)
		}
		return s, fmt.Errorf("%s: %w", id, ErrUnknown)
	}
	s, owner, err := scanStream(rows)
	if err != nil {
		return s, Damage{Call: s.ID, Err: err}
	}
	if s.ID != prefix && rows.Next() {
		return Summary{}, fmt.Errorf("%s: %w", id, ErrAmbiguous)
	}
	if err := rows.Err(); err != nil {
		return s, j.trouble(err)
	}
	if s.State == stateOpen {
		s.State = living(j.owners.alive(owner))
	}
	return s, nil
}

// trouble explains an error of a read; a reader who went away is none.
func (j *Journal) trouble(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, sql.ErrConnDone) || err.Error() == "sql: database is closed" {
		return ErrClosed
	}
	return explain(j.path, err)
}
