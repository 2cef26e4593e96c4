package journal

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
)

// SessionSummary is a session in a line.
type SessionSummary struct {
	ID string
	Head
	Started time.Time
	// Updated is when something was last added.
	Updated time.Time
	// Entries is how many there are.
	Entries int
	// Running: a living process holds it. Process is that process's number; 0 if
	// there is none.
	Running bool
	Process int
}

// SessionFilter selects sessions.
type SessionFilter struct {
	// Labels are those that a session must have, all of them.
	Labels map[string]string
	// Without are labels that a session must not have, whatever their value.
	Without []string
	// Limit is how many are given at most; 0 means 50, a negative one all.
	Limit int
}

// Sessions lists sessions, the one that was added to last first. What cannot
// be read is reported, and left out as far as it cannot.
func (j *Journal) Sessions(ctx context.Context, f SessionFilter) ([]SessionSummary, []Damage, error) {
	limit := f.Limit
	if limit == 0 {
		limit = 50
	}
	rows, err := j.readers.QueryContext(ctx, selectSession+` WHERE kind = 'session' ORDER BY updated DESC, id DESC`)
	if err != nil {
		return nil, nil, j.trouble(err)
	}
	defer func() { _ = rows.Close() }()
	var list []SessionSummary
	var damaged []Damage
	alive := map[string]bool{}
	for (limit < 0 || len(list) < limit) && rows.Next() {
		s, owner, err := scanSession(rows)
		if err != nil {
			damaged = append(damaged, Damage{Session: s.ID, Err: err})
		}
		if s.ID == "" || !s.has(f.Labels) || s.hasAny(f.Without) {
			continue
		}
		if _, known := alive[owner]; !known {
			alive[owner] = j.owners.alive(owner)
		}
		s.held(alive[owner])
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

// ReadSession reads the session whose id begins so, as it is at this moment,
// whoever holds it: ErrUnknown if there is none, ErrAmbiguous if there are
// several. What is damaged is left out of the entries and reported.
func (j *Journal) ReadSession(ctx context.Context, id string) (SessionSummary, []Entry, []Damage, error) {
	// One transaction, so that what is read is of one moment.
	tx, err := j.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return SessionSummary{}, nil, nil, j.trouble(err)
	}
	defer func() { _ = tx.Rollback() }()
	s, damaged, err := j.sessionSummary(ctx, tx, id)
	if err != nil {
		return s, nil, nil, err
	}
	entries, more, err := j.entries(ctx, tx, s.ID, int64(s.Entries))
	return s, entries, append(damaged, more...), err
}

// entries reads the entries of a session, which has that many.
func (j *Journal) entries(ctx context.Context, q querier, id string, version int64) ([]Entry, []Damage, error) {
	var damaged []Damage
	entries := make([]Entry, 0, min(max(version, 0), 1<<16))
	damage := func(seq int64, err error) {
		damaged = append(damaged, Damage{Session: id, Seq: int(seq), Err: err})
	}
	next, err := j.events(ctx, q, id, damage, func(e event) error {
		entries = append(entries, Entry{Seq: e.seq, At: e.at, Kind: e.kind, Data: e.data})
		return nil
	})
	if err != nil {
		if code(err) != sqliteCorrupt {
			return nil, nil, err
		}
		// Nothing is known of what comes behind.
		damage(0, err)
		return entries, damaged, nil
	}
	missing(next, version+1, damage)
	return entries, damaged, nil
}

const selectSession = `SELECT id, owner, pid, title, state, labels, started, updated, version FROM streams`

// scanSession reads what it can: with an error and an id only the labels are
// missing.
func scanSession(rows *sql.Rows) (s SessionSummary, owner string, err error) {
	var labels string
	var started, updated int64
	if err := rows.Scan(&s.ID, &owner, &s.Process, &s.Title, &s.State, &labels, &started, &updated, &s.Entries); err != nil {
		return SessionSummary{}, "", err
	}
	s.Started, s.Updated = time.UnixMilli(started), time.UnixMilli(updated)
	if err := json.Unmarshal([]byte(labels), &s.Labels, form); err != nil {
		s.Labels = nil
		return s, owner, fmt.Errorf("its labels cannot be read: %w", err)
	}
	return s, owner, nil
}

// held notes whether the owner lives.
func (s *SessionSummary) held(alive bool) {
	s.Running = alive
	if !alive {
		s.Process = 0
	}
}

func (s *SessionSummary) hasAny(labels []string) bool {
	return slices.ContainsFunc(labels, func(name string) bool { _, ok := s.Labels[name]; return ok })
}

func (s *SessionSummary) has(labels map[string]string) bool {
	for k, v := range labels {
		if got, ok := s.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// sessionSummary finds the one session whose id begins so.
func (j *Journal) sessionSummary(ctx context.Context, q querier, id string) (s SessionSummary, damaged []Damage, err error) {
	prefix := tidyID(id)
	if prefix == "" {
		return s, nil, noSession(fmt.Sprintf("%q", id))
	}
	// In ASCII everything that begins so sorts below the prefix and a tilde.
	rows, err := q.QueryContext(ctx, selectSession+` WHERE kind = 'session' AND id >= ? AND id < ? ORDER BY id LIMIT 2`, prefix, prefix+"~")
	if err != nil {
		return s, nil, j.trouble(err)
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return s, nil, j.trouble(err)
		}
		return s, nil, noSession(id)
	}
	s, owner, err := scanSession(rows)
	if err != nil {
		damage := Damage{Session: s.ID, Err: err}
		if s.ID == "" {
			return s, nil, damage
		}
		damaged = append(damaged, damage)
	}
	if s.ID != prefix && rows.Next() {
		return SessionSummary{}, nil, &worded{id + ": several sessions begin like that", ErrAmbiguous}
	}
	if err := rows.Err(); err != nil {
		return s, nil, j.trouble(err)
	}
	s.held(j.owners.alive(owner))
	return s, damaged, nil
}
