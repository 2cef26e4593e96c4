package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// The bounds of answers that outlive their connection.
const (
	// liveLead is how far an answer may be ahead of its slowest reader.
	liveLead = 256 << 10
	// liveBytes is how much is kept of one answer.
	liveBytes = 8 << 20
	// liveTotal is how much is kept of all of them.
	liveTotal = 256 << 20
	// pieceCost is what a piece takes beside its bytes.
	pieceCost = 64
)

var (
	// errOutputFull ends a call that nobody reads and that has become too long to
	// be kept.
	errOutputFull = &refused{
		Trouble: troubleBusy,
		Text:    "the answer is too long to be kept while no client reads it: stay connected until its end",
	}
	// errPieceGone: the answer has become too long to be kept whole, and its
	// beginning is gone.
	errPieceGone = &refused{
		Trouble: troubleNotFound,
		Text:    "that part of the answer is no longer kept: it was too long to be kept whole",
	}
	// errPosition: a client says that it has had what was not sent.
	errPosition = &refused{
		Trouble: troubleMalformed, Param: "Last-Event-ID",
		Text: "the answer has no event of this id: send the id of the last event that came, or none",
	}
)

// output is one answer as it is sent to clients, in pieces numbered from 1. One
// writer appends to it; any number of readers read it, each from where it
// likes.
//
// Memory is bounded, and no answer loses anything that a reader has yet to
// read. While somebody reads, the writer waits until the slowest reader is at
// most liveLead behind. Pieces that were read are kept as well, for those who
// come later, up to liveBytes; beyond that the oldest ones that every reader has
// had are forgotten, and who wants them gets errPieceGone. While nobody reads,
// the writer goes on without waiting, and gets errOutputFull at that bound.
type output struct {
	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	readers map[*outputReader]struct{}

	status int
	header http.Header
	pieces [][]byte // the first one has the number gone+1
	gone   int
	kept   int   // bytes of pieces, their cost included
	ends   []int // for each piece, what was written up to its end
	size   int   // what was written
	ended  bool
	err    error

	lead, limit int
	pool        *livePool
}

// livePool counts what all answers keep together.
type livePool struct {
	used  atomic.Int64
	limit int64
}

func newOutput(pool *livePool) *output {
	return &output{
		changed: make(chan struct{}), readers: map[*outputReader]struct{}{},
		lead: liveLead, limit: liveBytes, pool: pool,
	}
}

// tell wakes everybody who waits. The lock is held.
func (o *output) tell() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// begin sets the head of the answer; later ones are ignored.
func (o *output) begin(status int, header http.Header) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.status == 0 {
		o.status, o.header = status, header.Clone()
		o.tell()
	}
}

// write appends a piece, which must not change any more. It waits for the
// slowest reader, or until ctx ends.
func (o *output) write(ctx context.Context, piece []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if o.size-o.slowest() <= o.lead {
			break
		}
		if err := o.wait(ctx); err != nil {
			return err
		}
	}
	cost := len(piece) + pieceCost
	if o.over(cost) {
		if len(o.readers) == 0 {
			return errOutputFull
		}
		o.forget(cost)
	}
	o.size += cost
	o.kept += cost
	o.pool.used.Add(int64(cost))
	o.pieces = append(o.pieces, piece)
	o.ends = append(o.ends, o.size)
	o.tell()
	return nil
}

// wait waits for a change. It gives the lock away meanwhile.
func (o *output) wait(ctx context.Context) error {
	changed := o.changed
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// slowest is how much the slowest reader has read; without readers nobody is
// behind.
func (o *output) slowest() int {
	least := o.size
	for r := range o.readers {
		least = min(least, o.upTo(r.had))
	}
	return least
}

// upTo is what was written up to the end of a piece.
func (o *output) upTo(n int) int {
	if n > o.gone {
		return o.ends[n-o.gone-1]
	}
	return o.size - o.kept
}

func (o *output) over(cost int) bool {
	return o.kept+cost > o.limit || o.pool.used.Load()+int64(cost) > o.pool.limit
}

// forget drops the oldest pieces that every reader has had, an eighth of the
// bound more than is needed, so that it is rarely called.
func (o *output) forget(cost int) {
	read := o.gone + len(o.pieces)
	for r := range o.readers {
		read = min(read, r.had)
	}
	n, freed := 0, 0
	for n < read-o.gone && freed < cost+o.limit/8 {
		freed += len(o.pieces[n]) + pieceCost
		n++
	}
	o.pieces, o.ends = slices.Clone(o.pieces[n:]), slices.Clone(o.ends[n:])
	o.gone += n
	o.kept -= freed
	o.pool.used.Add(-int64(freed))
}

// end ends the answer: whole, or broken by err. Later ends are ignored.
func (o *output) end(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.ended, o.err = true, err
		o.tell()
	}
}

// release gives back what it keeps: nobody comes any more. Those who read
// already read on.
func (o *output) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pool.used.Add(-int64(o.kept))
	o.pool = &livePool{limit: o.pool.limit} // what is still to be written counts for itself
	o.pool.used.Store(int64(o.kept))
}

// whole says that the answer has ended well and all of it is there.
func (o *output) whole() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended && o.err == nil && o.gone == 0
}

// good says that the answer is no error.
func (o *output) good() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.status > 0 && o.status < 400
}

// cost is how much is kept of it.
func (o *output) cost() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept
}

// outputReader reads an answer. It counts as reading until it is closed.
type outputReader struct {
	o     *output
	had   int // pieces that were read, those before the start included
	given int // pieces that were handed out
}

// reader gives a reader of what follows piece number after; 0 is the beginning.
func (o *output) reader(after int) (*outputReader, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case after < 0 || after > o.gone+len(o.pieces):
		return nil, errPosition
	case after < o.gone:
		return nil, errPieceGone
	}
	r := &outputReader{o: o, had: after, given: after}
	o.readers[r] = struct{}{}
	return r, nil
}

// close ends the reading.
func (r *outputReader) close() {
	r.o.mu.Lock()
	defer r.o.mu.Unlock()
	delete(r.o.readers, r)
	r.o.tell() // the writer may have waited for it
}

// head waits for the head of the answer. An answer that ended without one is an
// error.
func (r *outputReader) head(ctx context.Context) (int, http.Header, error) {
	o := r.o
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.status == 0 {
		if o.ended {
			return 0, nil, errors.Join(errors.New("the call ended without an answer"), o.err)
		}
		if err := o.wait(ctx); err != nil {
			return 0, nil, err
		}
	}
	return o.status, maps.Clone(o.header), nil
}

// next waits for the next pieces and gives all that are there. Asking for more
// says that the last ones were read. The error is io.EOF after a whole answer,
// what broke it otherwise, or the cause of ctx's end.
func (r *outputReader) next(ctx context.Context) ([][]byte, error) {
	o := r.o
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.had < r.given {
		r.had = r.given
		o.tell()
	}
	for {
		if all := o.gone + len(o.pieces); r.given < all {
			from := r.given - o.gone
			r.given = all
			return slices.Clip(o.pieces[from:]), nil
		}
		if o.ended {
			if o.err != nil {
				return nil, o.err
			}
			return nil, io.EOF
		}
		if err := o.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// eventEnd is where the first event of a stream ends, its blank line included; 0
// if its end is not there yet. A carriage return that is the last byte may be
// half of a line end, so it is none yet.
func eventEnd(b []byte) int {
	empty := true
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\r':
			if i+1 == len(b) {
				return 0
			}
			if b[i+1] == '\n' {
				i++
			}
		case '\n':
		default:
			empty = false
			continue
		}
		if empty {
			return i + 1
		}
		empty = true
	}
	return 0
}

// appendEventID appends an event to dst with a line that names it, so that a
// client can say what it has had (Last-Event-ID). The line comes last: there it
// stands for any id that the event had before, and no mark at the beginning of a
// stream moves. What is no whole event, or holds nothing but comments, stays as
// it is.
func appendEventID(dst, event []byte, id string) []byte {
	eol := "\n"
	switch {
	case bytes.HasSuffix(event, []byte("\r\n")):
		eol = "\r\n"
	case bytes.HasSuffix(event, []byte("\r")):
		eol = "\r"
	}
	lines, ended := bytes.CutSuffix(event, []byte(eol))
	if !ended || !bytes.HasSuffix(lines, []byte("\n")) && !bytes.HasSuffix(lines, []byte("\r")) || !hasField(event) {
		return append(dst, event...)
	}
	dst = append(dst, lines...)
	dst = append(dst, "id: "...)
	dst = append(dst, id...)
	dst = append(dst, eol...)
	return append(dst, eol...)
}

// hasField says that an event has a line that is no comment.
func hasField(event []byte) bool {
	for line := range bytes.FieldsFuncSeq(event, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line[0] != ':' {
			return true
		}
	}
	return false
}
