package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/gateway"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/provider"
)

// kept is the journal as the commands use it. Where it cannot be opened or
// written, calls go on without it and say so.
type kept struct {
	j        *journal.Journal
	err      error // why there is none
	what     string
	warnings []string
	path     string
}

// statePath is the directory of what is kept beside the journal.
func (p *process) statePath() (string, error) {
	path, err := p.journalPath()
	return filepath.Dir(path), err
}

// journalPath is where the journal is: NINELIVES_JOURNAL, else a file among
// the user's state ($XDG_STATE_HOME, ~/.local/state; on Windows the local
// application data).
func (p *process) journalPath() (string, error) {
	if path, _ := p.env("NINELIVES_JOURNAL"); path != "" {
		return path, nil
	}
	if dir, _ := p.env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ninelives", "journal.db"), nil
	}
	if runtime.GOOS == "windows" {
		dir, err := os.UserCacheDir()
		return filepath.Join(dir, "ninelives", "journal.db"), err
	}
	home, _ := p.env("HOME")
	if !filepath.IsAbs(home) {
		return "", errors.New("there is no home directory: set NINELIVES_JOURNAL to a file")
	}
	return filepath.Join(home, ".local", "state", "ninelives", "journal.db"), nil
}

// openJournal opens the journal for a command; what is how the command calls
// what it keeps there.
func (p *process) openJournal(what string) *kept { return p.openSealed(what, provider.Secret{}) }

// openSealed is openJournal with the key that what is kept is encrypted with;
// an empty one encrypts nothing.
func (p *process) openSealed(what string, key provider.Secret) *kept {
	k := &kept{what: what}
	path, err := p.journalPath()
	if err == nil {
		k.path = path
		k.j, err = journal.OpenWith(path, journal.Options{Key: key.Reveal()})
	}
	if err != nil {
		err = movable(err)
		k.err = err
		k.warn(err)
	}
	return k
}

// movable tells how another journal is named.
func movable(err error) error {
	if strings.Contains(err.Error(), "NINELIVES_JOURNAL") {
		return err
	}
	return fmt.Errorf("%w (NINELIVES_JOURNAL=FILE names another)", err)
}

func (k *kept) warn(err error) {
	k.warnings = append(k.warnings, "the "+k.what+" is not kept on disk: "+err.Error())
}

func (k *kept) close() {
	if k.j != nil {
		_ = k.j.Close() // everything that was ended is on the disk already
	}
}

// find gives the call to take up: the one of that id, or the last one that
// took it up already.
func (k *kept) find(ctx context.Context, id string) (*journal.Record, error) {
	if k.j == nil {
		return nil, usagef("--resume %s: %v", id, k.err)
	}
	for {
		r, err := k.record(ctx, id)
		switch {
		case errors.Is(err, journal.ErrUnknown), errors.Is(err, journal.ErrAmbiguous):
			return nil, usagef("--resume: %v: see ninelives calls", err)
		case err != nil:
			return nil, err
		case r.ResumedBy != "":
			id = r.ResumedBy
		case r.Request == nil:
			return nil, usagef("--resume: the question of %s cannot be read any more", r.ID)
		case r.State == journal.StateComplete:
			return nil, usagef("--resume: %s was answered: ninelives calls %s shows the answer", r.ID, r.ID)
		default:
			return r, nil
		}
	}
}

// record is a call with its question, which the gateway keeps in its client's
// own bytes.
func (k *kept) record(ctx context.Context, id string) (*journal.Record, error) {
	r, err := k.j.Call(ctx, id)
	if err == nil && r.Request == nil && r.Raw != nil {
		if r.Request, err = gateway.Asked(r.Raw); err != nil {
			r.Damaged = append(r.Damaged, journal.Damage{Call: r.ID, Err: fmt.Errorf("the question: %w", err)})
		}
		return r, nil
	}
	return r, err
}

// begin records the call; an id of "" says that it could not be.
func (k *kept) begin(ctx context.Context, c *journal.Call) (string, error) {
	if k.j == nil {
		return "", nil
	}
	id, err := k.j.Begin(ctx, *c)
	switch {
	case err == nil:
		return id, nil
	case ctx.Err() != nil, c.Resumes != "":
		return "", err
	}
	k.warn(err)
	return "", nil
}

func (k *kept) note(ctx context.Context, id string, n ninelives.Notice) {
	if id != "" {
		_ = k.j.Note(ctx, id, n) // a note that is lost is told by End
	}
}

// unkeptError says that a call may not be there to be taken up.
type unkeptError struct{ err error }

func (e *unkeptError) Error() string { return e.err.Error() }
func (e *unkeptError) Unwrap() error { return e.err }

// end records the end, even of a call that was stopped. Its error is an
// unkeptError.
func (k *kept) end(id string, o journal.Outcome) error {
	if id == "" {
		return nil
	}
	if err := k.j.End(context.Background(), id, o); err != nil {
		return &unkeptError{fmt.Errorf("the end of the call is not kept: %w", err)}
	}
	if err := k.j.Gone(); err != nil {
		return &unkeptError{fmt.Errorf("the %s is not kept: %w", k.what, err)}
	}
	return nil
}
