package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync/atomic"
	"time"
)

// maxBatch is how many writes share a transaction at most: enough that an
// fsync is a small part of each, few enough that nobody waits long behind them.
const maxBatch = 256

// write is one change of the journal, all of it or nothing.
type write struct {
	call string
	do   func(*writer) error
	// done gets the result once it is on the disk, or told does; both are nil
	// where nobody waits.
	done chan error
	told func(error)
	// state keeps a caller who goes away and the writer apart.
	state atomic.Int32
}

const (
	queued  int32 = iota
	taken         // by the writer
	dropped       // by its caller
)

// commit queues the write and waits until it is on the disk. A caller who goes
// away before the writer has taken it up leaves no trace; one who goes away
// later is told what became of it all the same.
func (j *Journal) commit(ctx context.Context, w *write) error {
	w.done = make(chan error, 1)
	if err := j.enqueue(ctx, w); err != nil {
		return err
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		if w.state.CompareAndSwap(queued, dropped) {
			return ctx.Err()
		}
		return <-w.done
	}
}

// write is the one goroutine that writes: it takes what has queued up while
// the last transaction was being synced, and writes it in one.
func (j *Journal) write(w *writer) {
	batch := make([]*write, 0, maxBatch)
	for first := range j.queue {
		batch = append(batch[:0], first)
	more:
		for len(batch) < maxBatch {
			select {
			case next, open := <-j.queue:
				if !open {
					break more
				}
				batch = append(batch, next)
			default:
				break more
			}
		}
		live := batch[:0]
		for _, b := range batch {
			if b.state.CompareAndSwap(queued, taken) {
				live = append(live, b)
			}
		}
		j.writeAll(w, live)
	}
}

// writeAll writes a batch in one transaction. If one of them cannot be written
// for a reason of its own, each is tried in a transaction of its own.
func (j *Journal) writeAll(w *writer, batch []*write) {
	err := j.transact(w, batch)
	if code(err) == sqliteConstraint && len(batch) == 1 {
		// Somebody else has added to the call: now the file was asked how far it
		// has come.
		err = j.transact(w, batch)
	}
	if err != nil && len(batch) > 1 && !hopeless(err) {
		for _, b := range batch {
			j.writeAll(w, []*write{b})
		}
		return
	}
	for _, b := range batch {
		j.settle(b, err)
	}
}

func (j *Journal) settle(b *write, err error) {
	if err != nil {
		err = explain(j.path, err)
	}
	switch {
	case b.done != nil:
		b.done <- err
	case b.told != nil:
		b.told(err)
	case err == nil, errors.Is(err, ErrUnknown), errors.Is(err, ErrEnded):
		// A note that came too late has nobody left to tell.
	default:
		j.lostMu.Lock()
		j.lost[b.call] = err
		j.lostMu.Unlock()
	}
}

func (j *Journal) transact(w *writer, batch []*write) error {
	if len(batch) == 0 {
		return nil
	}
	j.at("begin")
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, b := range batch {
		if err := b.do(w); err != nil {
			w.rollback()
			return err
		}
		j.at("written")
	}
	j.at("commit")
	if err := w.exec("COMMIT"); err != nil {
		// A transaction that could not be committed is mostly gone already.
		w.rollback()
		return err
	}
	j.at("committed")
	return nil
}

// writer is the one connection that writes.
type writer struct {
	db   *sql.DB
	conn *sql.Conn

	insertStream, insertEvent, nextSeq *sql.Stmt
	endStream, resumeStream, look      *sql.Stmt

	insertSession, advanceSession, headSession *sql.Stmt
	lookSession, takeSession, releaseSession   *sql.Stmt
	lastSeq                                    *sql.Stmt

	bareEvent, bareStream, hideStream  *sql.Stmt
	listEvents, dropEvents, dropStream *sql.Stmt

	// calls are those that this process has begun and not ended: nobody else
	// writes them, so the file need not be asked how far they have come.
	calls map[string]*progress

	prepared []*sql.Stmt // all of them
}

// progress is how far a call has come.
type progress struct {
	next  int64 // the number of its next event
	first event // without its content
}

func newWriter(db *sql.DB) (*writer, error) {
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{db: db, conn: conn, calls: map[string]*progress{}}
	for _, s := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&w.insertStream, `INSERT INTO streams (id, kind, owner, source, title, labels, started, resumes, client, repeat, public) VALUES (?, 'call', ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
		{&w.insertEvent, `INSERT INTO events (stream, seq, at, kind, data, crc) VALUES (?, ?, ?, ?, ?, ?)`},
		{&w.nextSeq, `SELECT max(seq) + 1 FROM events WHERE stream = ?`},
		{&w.endStream, `UPDATE streams SET ended = ?2, state = ?3, reason = ?4, cost = ?5, tokens = ?6, public = coalesce(nullif(?7, ''), public) WHERE id = ?1 AND kind = 'call' AND ended = 0`},
		{&w.resumeStream, `UPDATE streams SET resumed_by = ?2 WHERE id = ?1`},
		{&w.look, `SELECT ended, state, resumed_by FROM streams WHERE id = ? AND kind = 'call'`},

		{&w.insertSession, `INSERT INTO streams (id, kind, owner, source, title, labels, started, state, pid, term, version, updated) VALUES (?1, 'session', ?2, '', ?3, ?4, ?5, ?6, ?7, 1, ?8, ?5)`},
		{&w.advanceSession, `UPDATE streams SET version = ?5, updated = ?6 WHERE id = ?1 AND owner = ?2 AND term = ?3 AND version = ?4`},
		{&w.headSession, `UPDATE streams SET title = ?2, state = ?3, labels = ?4 WHERE id = ?1`},
		{&w.lookSession, `SELECT owner, pid, term, version FROM streams WHERE id = ? AND kind = 'session'`},
		{&w.lastSeq, `SELECT coalesce(max(seq), 0) FROM events WHERE stream = ?`},
		{&w.takeSession, `UPDATE streams SET owner = ?2, pid = ?3, term = ?4, version = ?5 WHERE id = ?1`},
		{&w.releaseSession, `UPDATE streams SET owner = '', pid = 0 WHERE id = ?1 AND owner = ?2 AND term = ?3`},
		{&w.bareEvent, `UPDATE events SET data = ?3, crc = ?4 WHERE stream = ?1 AND seq = ?2`},
		{&w.bareStream, `UPDATE streams SET removed = ?2, title = '' WHERE id = ?1 AND kind = 'call'`},
		{&w.hideStream, `UPDATE streams SET public = '' WHERE id = ?1 AND kind = 'call'`},
		{&w.listEvents, `SELECT seq, at, kind, data, crc FROM events WHERE stream = ? ORDER BY seq`},
		{&w.dropEvents, `DELETE FROM events WHERE stream = ?`},
		{&w.dropStream, `DELETE FROM streams WHERE id = ? AND kind = 'call'`},
	} {
		if *s.to, err = conn.PrepareContext(ctx, s.sql); err != nil {
			return nil, errors.Join(err, w.closeConn())
		}
		w.prepared = append(w.prepared, *s.to)
	}
	return w, nil
}

// close ends the connection; the last one of all processes empties the log.
func (w *writer) close() error { return errors.Join(w.closeConn(), w.db.Close()) }

// closeConn gives the connection back. SQLite keeps one open that has
// statements, and the pool does not close those of a connection that was taken
// out of it.
func (w *writer) closeConn() error {
	var errs []error
	for _, s := range w.prepared {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

func (w *writer) exec(query string) error {
	_, err := w.conn.ExecContext(context.Background(), query)
	return err
}

// run executes a statement.
func (w *writer) run(s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(context.Background(), args...)
	return err
}

// changes executes a statement and says whether there was a row to change.
func (w *writer) changes(s *sql.Stmt, args ...any) (bool, error) {
	result, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// standing is what decides whether a call may be changed.
type standing struct {
	ended     bool
	state     State
	resumedBy string
}

func (w *writer) standing(id string) (s standing, err error) {
	var ended int64
	err = w.look.QueryRowContext(context.Background(), id).Scan(&ended, &s.state, &s.resumedBy)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%s: %w", id, ErrUnknown)
	}
	s.ended = ended != 0
	return s, err
}

// open says why nothing can be added to the call; nil if something can.
func (w *writer) open(id string) error {
	if _, ours := w.calls[id]; ours {
		return nil
	}
	s, err := w.standing(id)
	if err == nil && s.ended {
		err = fmt.Errorf("%s: %w", id, ErrEnded)
	}
	return err
}

// opened notes that a call has begun with this event, over that it has ended.
func (w *writer) opened(first event) {
	if h, _, err := cut(first.data[1:]); err == nil {
		first.data = part([]byte{formHeaded}, h)
		w.calls[first.stream] = &progress{next: first.seq + 1, first: first}
	}
}

func (w *writer) over(id string) { delete(w.calls, id) }

// first gives the first event of a call without its content, if that is known
// and there is no other.
func (w *writer) first(id string) (e event, only bool) {
	c, ours := w.calls[id]
	if !ours || c.next != 2 {
		return event{}, false
	}
	return c.first, true
}

// rollback takes the transaction back. What was counted meanwhile does not hold.
func (w *writer) rollback() {
	// After some errors SQLite has done so itself; if neither has, the next
	// BEGIN tells.
	_ = w.exec("ROLLBACK")
	clear(w.calls)
}

// event is one entry of a stream.
type event struct {
	stream string
	seq    int64 // 0: the next one
	at     time.Time
	kind   string
	data   []byte
}

// append writes the event at the end of its stream.
func (w *writer) append(e event) error {
	if c, ours := w.calls[e.stream]; ours && e.seq == 0 {
		e.seq = c.next
		c.next++
	}
	if e.seq == 0 {
		if err := w.nextSeq.QueryRowContext(context.Background(), e.stream).Scan(&e.seq); err != nil {
			return err
		}
	}
	return w.run(w.insertEvent, e.stream, e.seq, e.at.UnixMilli(), e.kind, e.data, e.checksum())
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers everything that the event says.
func (e event) checksum() int64 {
	head := append(make([]byte, 0, 64), e.stream...)
	head = strconv.AppendInt(append(head, ' '), e.seq, 10)
	head = strconv.AppendInt(append(head, ' '), e.at.UnixMilli(), 10)
	head = append(append(append(head, ' '), e.kind...), '\n')
	return int64(crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, e.data))
}
