package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Policy says how long calls are kept. Sessions and blobs are never touched.
type Policy struct {
	// Source is the face whose calls are concerned ("gateway").
	Source string
	// Content is how long what was asked and answered is kept after the end of
	// the call; 0 means not at all, a negative one for ever.
	Content time.Duration
	// Interrupted is how long the content of a call is kept after its beginning
	// that was interrupted, to be taken up; 0 means 30 days, a negative one for
	// ever.
	Interrupted time.Duration
	// Account is how long is kept when a call began and ended, what it was
	// answered by and what it cost; 0 means 400 days, a negative one for ever.
	Account time.Duration
}

const (
	defaultInterrupted = 30 * 24 * time.Hour
	defaultAccount     = 400 * 24 * time.Hour
	// pruneBatch is how many calls one transaction cleans: others wait for it.
	pruneBatch = 32
	// vacuumPages is how many free pages one transaction gives back.
	vacuumPages = 256
)

// Pruned is what was removed.
type Pruned struct {
	Contents int // calls whose content was removed
	Calls    int // calls of which nothing is left
}

// Prune removes what the policy does not keep at that time, and gives the room
// back to the disk, in small transactions between which others write. What was
// removed is zeroed in the file and reads back as Record.Removed. It may be
// called at any time, by one goroutine and one process or several; after an
// error what was removed stays removed.
func (j *Journal) Prune(ctx context.Context, now time.Time, p Policy) (Pruned, error) {
	if p.Interrupted == 0 {
		p.Interrupted = defaultInterrupted
	}
	if p.Account == 0 {
		p.Account = defaultAccount
	}
	var done Pruned
	var err error
	if p.Content >= 0 {
		err = j.prune(ctx, &done.Contents, `SELECT id, '' FROM streams INDEXED BY streams_with_content WHERE kind = 'call' AND removed = 0 AND id > ?1 AND source = ?2
			AND ended > 0 AND ended <= ?3 ORDER BY id LIMIT ?4`, p.Source, now.Add(-p.Content), strip(now))
	}
	if err == nil && p.Interrupted > 0 {
		err = j.prune(ctx, &done.Contents, `SELECT id, owner FROM streams INDEXED BY streams_with_content WHERE kind = 'call' AND removed = 0 AND id > ?1 AND source = ?2
			AND ended = 0 AND started <= ?3 ORDER BY id LIMIT ?4`, p.Source, now.Add(-p.Interrupted), strip(now))
	}
	if err == nil && p.Account > 0 {
		err = j.prune(ctx, &done.Calls, `SELECT id, owner FROM streams WHERE +kind = 'call' AND id > ?1 AND source = ?2
			AND started <= ?3 ORDER BY id LIMIT ?4`, p.Source, now.Add(-p.Account), (*writer).drop)
	}
	if err == nil {
		err = j.shrink(ctx)
	}
	return done, err
}

func strip(now time.Time) func(*writer, string) error {
	return func(w *writer, id string) error { return w.strip(id, now) }
}

// Remove removes the content of a call that has ended, as when its client has
// the answer or has deleted it, and its public id. It is ErrRunning if the call
// has not ended.
func (j *Journal) Remove(ctx context.Context, id string) error {
	now := time.Now()
	return j.commit(ctx, &write{call: id, do: func(w *writer) error {
		s, err := w.standing(id)
		if err != nil {
			return err
		}
		if !s.ended {
			return fmt.Errorf("%s: %w", id, ErrRunning)
		}
		if err := w.strip(id, now); err != nil {
			return err
		}
		return w.run(w.hideStream, id)
	}})
}

// Scrub empties the transaction log into the file. Until then what was removed
// can still be read in the log, where SQLite leaves it.
//
// It waits for those who read or write, a few seconds at most; an error says
// that the log was not emptied, and a later call will do it.
func (j *Journal) Scrub(ctx context.Context) error {
	var busy, pages, moved int
	j.at("scrub")
	if err := j.readers.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &moved); err != nil {
		return fmt.Errorf("what was removed is still in the journal's log: %w", err)
	}
	if busy != 0 {
		return errors.New("what was removed is still in the journal's log: it is in use")
	}
	j.at("scrubbed")
	return nil
}

// prune does something to the calls of the query, whose living owner keeps it
// from that, batch by batch.
func (j *Journal) prune(ctx context.Context, count *int, query, source string, before time.Time, do func(*writer, string) error) error {
	last := ""
	alive := map[string]bool{"": false}
	for {
		ids, owners, err := j.batch(ctx, query, last, source, before)
		if err != nil || len(ids) == 0 {
			return err
		}
		last = ids[len(ids)-1]
		n := 0
		err = j.commit(ctx, &write{do: func(w *writer) error {
			n = 0
			for i, id := range ids {
				owner := owners[i]
				if _, known := alive[owner]; !known {
					alive[owner] = j.owners.alive(owner)
				}
				if alive[owner] {
					s, err := w.standing(id)
					if err != nil && !errors.Is(err, ErrUnknown) {
						return err
					}
					if !s.ended {
						continue
					}
				}
				if err := do(w, id); err != nil {
					return err
				}
				n++
			}
			return nil
		}})
		if err != nil {
			return err
		}
		*count += n
	}
}

// batch finds the next calls to clean.
func (j *Journal) batch(ctx context.Context, query, after, source string, before time.Time) (ids, owners []string, err error) {
	rows, err := j.readers.QueryContext(ctx, query, after, source, before.UnixMilli(), pruneBatch)
	if err != nil {
		return nil, nil, j.trouble(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, owner string
		if err := rows.Scan(&id, &owner); err != nil {
			return nil, nil, j.trouble(err)
		}
		ids, owners = append(ids, id), append(owners, owner)
	}
	if err := rows.Err(); err != nil {
		return nil, nil, j.trouble(err)
	}
	return ids, owners, nil
}

// shrink gives free pages back to the disk. A file of an older version has no
// map of its pages for that: there they are used again.
func (j *Journal) shrink(ctx context.Context) error {
	for {
		var mode, free, left int
		if err := j.readers.QueryRowContext(ctx, `SELECT auto_vacuum, freelist_count FROM pragma_auto_vacuum, pragma_freelist_count`).Scan(&mode, &free); err != nil {
			return j.trouble(err)
		}
		if mode != autoVacuum || free == 0 {
			return nil
		}
		err := j.commit(ctx, &write{do: func(w *writer) error {
			rows, err := w.conn.QueryContext(context.Background(), fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, vacuumPages))
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
			}
			return rows.Err()
		}})
		if err != nil {
			return err
		}
		if err := j.readers.QueryRowContext(ctx, `SELECT freelist_count FROM pragma_freelist_count`).Scan(&left); err != nil {
			return j.trouble(err)
		}
		if left >= free {
			return nil // others have freed as much: the next time
		}
	}
}

// strip takes the content out of every event of the call.
func (w *writer) strip(id string, now time.Time) error {
	events, err := w.contents(id)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := w.replace(e.event, e.whole, now); err != nil {
			return err
		}
	}
	return w.run(w.bareStream, id, now.UnixMilli())
}

// replace writes the event without its content.
func (w *writer) replace(e event, whole bool, now time.Time) error {
	bare, err := e.stripped(whole, now)
	if err != nil {
		// Its head cannot be read either.
		if bare, err = e.stripped(false, now); err != nil {
			return err
		}
	}
	return w.run(w.bareEvent, bare.stream, bare.seq, bare.data, bare.checksum())
}

// storedEvent is an event as it is in the file.
type storedEvent struct {
	event
	whole bool
}

// contents reads the events of a call that have a content.
func (w *writer) contents(id string) (all []storedEvent, err error) {
	rows, err := w.listEvents.QueryContext(context.Background(), id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		e := storedEvent{event: event{stream: id}}
		var at, crc int64
		if err := rows.Scan(&e.seq, &at, &e.kind, &e.data, &crc); err != nil {
			return nil, err
		}
		e.at = time.UnixMilli(at)
		e.whole = e.checksum() == crc
		if e.strippable() {
			all = append(all, e)
		}
	}
	return all, rows.Err()
}

// drop removes the call.
func (w *writer) drop(id string) error {
	if err := w.run(w.dropEvents, id); err != nil {
		return err
	}
	return w.run(w.dropStream, id)
}
