// Package journal keeps the append-only record of what was asked and what
// became of it, in one SQLite file on this machine.
//
// It holds the first promise: no input is ever lost. [Journal.Begin] returns
// when the input is on the disk, and only then is anything else done with it.
// What follows is noted ([Journal.Note]) and ended ([Journal.End]). A call that
// was never ended, because its process was killed, is found again as
// interrupted and can be taken up.
//
// Beside calls it keeps sessions: histories that go on for as long as somebody
// adds to them. A [Session] is held by one living process at a time. Each
// [Session.Append] is one transaction, on the disk when it returns and refused
// whole if anybody else has written meanwhile; what the entries mean is the
// matter of whoever writes them. When the holder dies another takes the session
// over ([Journal.TakeSession]) and finds every entry that it was told of.
// Contents of files, which entries refer to by their hash, are kept in [Blobs].
//
// Writes of many goroutines share one transaction and one fsync (group
// commit), so durability costs a caller about one fsync of waiting, and a busy
// process a small part of one per call. Any number of processes may use the
// same file at once.
//
// Nothing that is recorded is ever rewritten, only removed where that is asked
// for ([Journal.Prune]), and everything is read back as
// it was written: what a disk or a hand has changed is found by its checksum,
// left out and reported. Requests hold no credentials, so none are stored; what
// is said in calls can be encrypted ([Options]).
package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	// The driver, in pure Go.
	_ "modernc.org/sqlite"
)

// Errors that callers tell apart with errors.Is.
var (
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("the journal is closed")
	// ErrUnknown: there is no such call or session.
	ErrUnknown = errors.New("no such call")
	// ErrAmbiguous: several ids begin like that.
	ErrAmbiguous = errors.New("several calls begin like that")
	// ErrEnded: the call has an end already; the first one stands.
	ErrEnded = errors.New("this call has ended")
	// ErrRunning: the call is being carried out by a living process.
	ErrRunning = errors.New("this call is still running")
	// ErrResumed: another call has taken this one up.
	ErrResumed = errors.New("this call was taken up already")
	// ErrComplete: the call was answered; there is nothing to take up.
	ErrComplete = errors.New("this call is complete")
	// ErrFull: there is no space left. What was recorded is safe, and the next
	// write succeeds when there is space again.
	ErrFull = errors.New("the disk is full")
	// ErrTaken: the session is held by a living process.
	ErrTaken = errors.New("it is in use")
	// ErrReplaced: somebody else has taken the session, or added to it; nothing
	// was written.
	ErrReplaced = errors.New("somebody else has taken it over, and nothing was written – open it again to go on")
)

// Journal is an open journal. It is safe for concurrent use.
type Journal struct {
	path    string
	file    os.FileInfo
	owners  *owners
	ids     ids
	readers *sql.DB
	blobs   *Blobs
	keys    *keyring
	sealer  *sealer // nil: contents are not sealed

	mu     sync.RWMutex // held for reading while something is queued
	closed bool
	queue  chan *write
	gone   chan struct{} // closed when the writer has ended
	err    error         // of the writer's end

	lostMu sync.Mutex
	lost   map[string]error // notes that could not be written, by call

	at func(where string) // called at every point of a write: see OpenObserved
}

// Open opens the journal at path, and makes it, with its directories, where it
// does not exist: readable by its owner alone. An error is one line that says
// what is wrong and what to do.
func Open(path string) (*Journal, error) { return OpenWith(path, Options{}) }

// Options say how a journal is opened.
type Options struct {
	// Key encrypts what is asked and answered from now on: 32 bytes in
	// hexadecimal or base64, or a passphrase of 12 characters or more, which
	// takes some 0.2 s to stretch. Empty means that nothing is encrypted. What
	// is written already stays as it is, and is read as before.
	Key string
	// Former are keys that were used before: they are read with.
	Former []string
	// Point is told of every point of a write: see OpenObserved.
	Point func(where string)
}

// OpenObserved is Open for crash tests: point is told of every point of a
// write, of calls, sessions and blobs, before which and after which a process
// may die. It is called by several goroutines.
func OpenObserved(path string, point func(where string)) (*Journal, error) {
	return OpenWith(path, Options{Point: point})
}

// OpenWith is Open with options.
func OpenWith(path string, o Options) (*Journal, error) {
	point := o.Point
	if point == nil {
		point = func(string) {}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, explain(path, err)
	}
	owners, db, err := setUp(path, point)
	if err != nil {
		return nil, explain(path, err)
	}
	file, err := os.Stat(path)
	if err != nil {
		return nil, explain(path, errors.Join(err, db.Close(), owners.leave()))
	}
	w, err := newWriter(db)
	if err != nil {
		return nil, explain(path, errors.Join(err, db.Close(), owners.leave()))
	}
	readers, err := sql.Open("sqlite", source(path, "query_only(1)"))
	if err != nil {
		return nil, explain(path, errors.Join(err, w.close(), owners.leave()))
	}
	readers.SetMaxOpenConns(4)
	j := &Journal{
		path:    path,
		file:    file,
		owners:  owners,
		readers: readers,
		queue:   make(chan *write, maxBatch),
		gone:    make(chan struct{}),
		lost:    map[string]error{},
		at:      point,
	}
	j.blobs = newBlobs(path, owners, point)
	j.keys = &keyring{db: readers, known: map[string]*sealer{}}
	if o.Key != "" {
		j.keys.secrets = []string{o.Key}
		if j.sealer, err = j.keys.own(context.Background(), db); err != nil {
			return nil, explain(path, errors.Join(err, readers.Close(), w.close(), owners.leave()))
		}
	}
	j.keys.secrets = append(j.keys.secrets, o.Former...)
	go func() {
		defer close(j.gone)
		j.write(w)
		j.err = w.close()
	}()
	return j, nil
}

// Close writes what is queued and closes the journal. What is open then is
// listed as interrupted. More calls of Close do nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	// The readers first: the last connection of all empties the log into the
	// file, which one that only reads cannot do.
	read := j.readers.Close()
	close(j.queue)
	j.mu.Unlock()
	<-j.gone
	if err := errors.Join(j.err, read, j.owners.leave()); err != nil {
		return explain(j.path, err)
	}
	return nil
}

// Gone says that the file was removed or replaced since it was opened: writes
// succeed then, and end with the process. nil says that it is there.
func (j *Journal) Gone() error {
	if now, err := os.Stat(j.path); err != nil || !os.SameFile(now, j.file) {
		return fmt.Errorf("the journal %s was removed meanwhile", j.path)
	}
	return nil
}

// enqueue hands a write to the writer.
func (j *Journal) enqueue(ctx context.Context, w *write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.mu.RLock()
	defer j.mu.RUnlock()
	if j.closed {
		return ErrClosed
	}
	select {
	case j.queue <- w:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
