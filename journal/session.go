package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
)

// Entry is one entry of a session.
type Entry struct {
	// Seq is its number: 1, 2, 3, … within the session. The journal gives it.
	Seq int64
	// At is when it happened, kept to the millisecond; zero means when it is
	// written.
	At time.Time
	// Kind says what Data is, in a word of whoever writes it.
	Kind string
	// Data is JSON; nothing is read back as nil. What is larger than 256 MiB belongs into a blob.
	Data []byte
}

// Head is what lists show of a session. It is replaced as a whole, together
// with the entries that change it.
type Head struct {
	// Title is a line; what goes beyond 120 characters is cut off.
	Title string
	// State is a word of whoever writes the session.
	State string
	// Labels are what lists are filtered by ("directory"). They must hold no
	// credentials.
	Labels map[string]string
}

// Session is a session that this process holds: nobody else can add to it
// until it is closed or the process ends. It is safe for concurrent use.
type Session struct {
	j    *Journal
	id   string
	term int64 // which of its holders this one is

	// turn is held by the one who appends; the others wait in order.
	turn    chan struct{}
	closed  bool  // under turn
	replace error // under turn: why nothing can be appended any more
	version atomic.Int64
}

// maxEntry is the size of the data of one entry. SQLite's own limit is 1 GB;
// what is this large is a file, not a word.
const maxEntry = 256 << 20

// NewSession begins a session with these entries, and returns when they are on
// the disk. This process holds it.
func (j *Journal) NewSession(ctx context.Context, h Head, first ...Entry) (*Session, error) {
	now := time.Now()
	id := j.ids.next(now)
	labels, err := h.labels()
	if err != nil {
		return nil, err
	}
	if err := fit(id, first); err != nil {
		return nil, err
	}
	err = j.commit(ctx, &write{do: func(w *writer) error {
		err := w.run(w.insertSession, id, j.owners.self, oneLine(h.Title), labels, now.UnixMilli(), h.State, os.Getpid(), len(first))
		if err != nil {
			return err
		}
		return w.entries(id, 0, now, first)
	}})
	if err != nil {
		return nil, err
	}
	j.at("session begun")
	return j.session(id, 1, int64(len(first))), nil
}

// TakeSession takes hold of the session whose id begins so, and gives its
// entries. It is ErrTaken while another process, or this one, holds it; one
// whose holder has died is simply taken over. It is ErrUnknown if there is no
// such session, and ErrAmbiguous if there are several. What is damaged is left
// out of the entries and reported.
func (j *Journal) TakeSession(ctx context.Context, id string) (*Session, []Entry, []Damage, error) {
	sum, damaged, err := j.sessionSummary(ctx, j.readers, id)
	if err != nil {
		return nil, nil, nil, err
	}
	var s *Session
	err = j.commit(ctx, &write{do: func(w *writer) error {
		term, version, err := w.take(sum.ID, j.owners)
		s = j.session(sum.ID, term, version)
		return err
	}})
	if err != nil {
		return nil, nil, nil, err
	}
	j.at("session taken")
	// Nobody else can write it now, so this is all of it.
	entries, more, err := j.entries(ctx, j.readers, s.id, s.Version())
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.Close())
	}
	return s, entries, append(damaged, more...), nil
}

func (j *Journal) session(id string, term, version int64) *Session {
	s := &Session{j: j, id: id, term: term, turn: make(chan struct{}, 1)}
	s.version.Store(version)
	return s
}

// ID is the id of the session: 16 characters that sort by the time of its
// beginning.
func (s *Session) ID() string { return s.id }

// Version is the number of the last entry.
func (s *Session) Version() int64 { return s.version.Load() }

// Append adds the entries in one transaction, numbered on from Version, and
// replaces the head unless it is nil. It returns when they are on the disk;
// with an error nothing was written. Of several at once each waits for the one
// before. It is ErrReplaced, then and ever after, if somebody else has taken
// the session, and ErrClosed if it was closed. If ctx ends before the writing
// has begun nothing is written, and the error is the context's.
func (s *Session) Append(ctx context.Context, h *Head, entries ...Entry) error {
	var labels string
	if h != nil {
		var err error
		if labels, err = h.labels(); err != nil {
			return err
		}
	}
	if err := fit(s.id, entries); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	switch {
	case s.closed:
		return &worded{fmt.Sprintf("session %s is closed", s.id), ErrClosed}
	case s.replace != nil:
		return s.replace
	}
	now, last := time.Now(), s.Version()
	next := last + int64(len(entries))
	err := s.j.commit(ctx, &write{do: func(w *writer) error {
		// The row is the fence: it is changed only while it is still ours.
		ours, err := w.changes(w.advanceSession, s.id, s.j.owners.self, s.term, last, next, now.UnixMilli())
		if err != nil {
			return err
		}
		if !ours {
			return fmt.Errorf("session %s: %w", s.id, ErrReplaced)
		}
		if h != nil {
			if err := w.run(w.headSession, s.id, oneLine(h.Title), h.State, labels); err != nil {
				return err
			}
		}
		return w.entries(s.id, last, now, entries)
	}})
	if errors.Is(err, ErrReplaced) {
		s.replace = err
	}
	if err != nil {
		return err
	}
	s.version.Store(next)
	s.j.at("appended")
	return nil
}

// Close lets go of the session: others may take it. It waits for an Append
// that is under way; later ones are ErrClosed. More calls of Close do nothing.
func (s *Session) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.j.commit(context.Background(), &write{do: func(w *writer) error {
		return w.run(w.releaseSession, s.id, s.j.owners.self, s.term)
	}})
	if errors.Is(err, ErrClosed) {
		return nil // with the journal everything was let go of
	}
	return err
}

func (h Head) labels() (string, error) {
	labels, err := json.Marshal(h.Labels, form)
	if err != nil {
		return "", fmt.Errorf("the labels of the session cannot be recorded: %w", err)
	}
	return string(labels), nil
}

// fit refuses entries that SQLite would choke on.
func fit(id string, entries []Entry) error {
	for _, e := range entries {
		if len(e.Data) > maxEntry {
			return fmt.Errorf("session %s: an entry %q of %d MiB is too large for the journal, which takes %d – keep its content in a blob", id, e.Kind, len(e.Data)>>20, maxEntry>>20)
		}
	}
	return nil
}

// entries writes the entries after the one of that number.
func (w *writer) entries(id string, last int64, now time.Time, entries []Entry) error {
	for i, e := range entries {
		if e.At.IsZero() {
			e.At = now
		}
		if e.Data == nil {
			e.Data = []byte{}
		}
		if err := w.append(event{stream: id, seq: last + int64(i) + 1, at: e.At, kind: e.Kind, data: e.Data}); err != nil {
			return err
		}
	}
	return nil
}

// take makes this process the holder of the session, unless a living one is.
func (w *writer) take(id string, o *owners) (term, version int64, err error) {
	ctx := context.Background()
	var owner string
	var pid int
	err = w.lookSession.QueryRowContext(ctx, id).Scan(&owner, &pid, &term, &version)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, 0, noSession(id)
	case err != nil:
		return 0, 0, err
	case o.alive(owner):
		who := fmt.Sprintf("process %d", pid)
		if pid == os.Getpid() {
			who = "this process itself"
		}
		return 0, 0, fmt.Errorf("session %s: %w by %s – close it there or end that process, or begin another session; reading it is possible all the same", id, ErrTaken, who)
	}
	// The entries are the record, and the row only sums them up.
	var last int64
	if err := w.lastSeq.QueryRowContext(ctx, id).Scan(&last); err != nil && code(err) != sqliteCorrupt {
		return 0, 0, err
	}
	term, version = term+1, max(version, last)
	return term, version, w.run(w.takeSession, id, o.self, os.Getpid(), term, version)
}

// worded is an error that callers know under another one's name.
type worded struct {
	text string
	is   error
}

func (e *worded) Error() string { return e.text }
func (e *worded) Unwrap() error { return e.is }

func noSession(id string) error { return &worded{id + ": no such session", ErrUnknown} }
