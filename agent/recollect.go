package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/ninelives-ai/ninelives/journal"
)

// recollected is how many sessions of a workspace are looked through for what
// no memory has taken up: those that were used last.
const recollected = 10

// Recollect hands the memory what earlier sessions of the workspace have left,
// because their process ended before they had been idle for long enough. It
// reads the journal, and is best called in the background, once. What cannot be
// read is left alone.
func (a *Agent) Recollect(ctx context.Context) error {
	if a.memory == nil || a.journal == nil {
		return nil
	}
	dir, err := filepath.Abs(a.dir)
	if err != nil {
		return err
	}
	list, _, err := a.journal.Sessions(ctx, journal.SessionFilter{
		Labels: map[string]string{"directory": dir}, Without: []string{LabelCall}, Limit: recollected,
	})
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Running || ctx.Err() != nil {
			continue
		}
		_, entries, damaged, err := a.journal.ReadSession(ctx, s.ID)
		if err != nil || len(damaged) > 0 {
			continue
		}
		st := &State{}
		for _, raw := range entries {
			e, err := Decode(raw)
			if err != nil {
				st = nil
				break
			}
			st.add(raw.At, e)
		}
		if st == nil || st.opening.Parent != "" || st.open() {
			continue // not ours to tell, or not at its end
		}
		a.memory.OnIdle(History{
			Session: s.ID, Messages: st.Messages(), From: st.archived, Through: len(st.messages) - 1, Since: s.Updated,
			Record: func(e Archive) error { return a.archived(s.ID, len(entries), e) },
		})
	}
	return nil
}

// archived records in a session that nobody holds what the memory has taken up.
// Where somebody has added to the session since, the memory comes back to it.
func (a *Agent) archived(id string, entries int, e Archive) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	log, now, _, err := a.journal.TakeSession(ctx, id)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	for _, raw := range now[min(entries, len(now)):] {
		if raw.Kind != e.Kind() {
			return fmt.Errorf("session %s was gone on with", id)
		}
	}
	written, err := encode(time.Now(), e)
	if err != nil {
		return err
	}
	return log.Append(ctx, nil, written)
}
