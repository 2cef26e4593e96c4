package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ninelives-ai/ninelives/tool"
)

// Undo takes back the file changes of the last turn that has some and was not
// undone; where none has, the error is ErrNothing. What somebody else has changed since is left alone and listed. The
// conversation stays, and the model is told. With an error it has stopped on
// the way, and the next Undo goes on with the same turn.
func (s *Session) Undo(ctx context.Context) (Undo, error) {
	return s.restore(ctx, false, func(st *State) *Turn {
		for i := len(st.turns) - 1; i >= 0; i-- {
			if t := &st.turns[i]; len(t.Changes) > 0 && !t.Undone {
				return t
			}
		}
		return nil
	})
}

// Redo makes the changes again that Undo took back last.
func (s *Session) Redo(ctx context.Context) (Undo, error) {
	return s.restore(ctx, true, func(st *State) *Turn {
		if len(st.undone) == 0 {
			return nil
		}
		for i := range st.turns {
			if t := &st.turns[i]; t.Number == st.undone[len(st.undone)-1] {
				return t
			}
		}
		return nil
	})
}

func (s *Session) restore(ctx context.Context, redo bool, find func(*State) *Turn) (Undo, error) {
	if s.a.restorer == nil {
		return Undo{}, errors.New("file changes cannot be taken back here: no workspace keeps them")
	}
	free, err := s.occupy(nil)
	if err != nil {
		return Undo{}, err
	}
	defer free()
	st := s.State()
	t := find(st)
	if t == nil {
		u := Undo{Redo: redo}
		if !redo {
			u.Unknown = st.unknownSince(0)
		}
		return u, ErrNothing
	}
	restored, conflicts, err := s.a.restorer.Restore(ctx, t.Changes, redo)
	if err != nil && len(restored) == 0 {
		return Undo{}, err
	}
	u := Undo{Turn: t.Number, Redo: redo, Changes: restored, Conflicts: conflicts}
	if !redo {
		u.Unknown = st.unknownSince(t.Number)
	}
	s.mu.Lock()
	if err == nil {
		s.stageLocked(u)
		s.noteLocked(undoNote(u))
	} else { // the turn is not undone: the next try finishes it
		s.noteLocked("Not finished, because it was stopped on the way: " + undoNote(u))
	}
	failed := s.commitLocked(ctx)
	s.mu.Unlock()
	return u, errors.Join(err, failed)
}

// unknownSince are the tools whose calls were cut off in a turn or after it.
func (s *State) unknownSince(turn int) (tools []string) {
	for i := range s.turns {
		if t := &s.turns[i]; t.Number >= turn {
			tools = append(tools, t.Unknown...)
		}
	}
	slices.Sort(tools)
	return slices.Compact(tools)
}

// undoNote tells the model what its files are like now.
func undoNote(u Undo) string {
	what := "taken back"
	if u.Redo {
		what = "made again"
	}
	paths := func(changes []tool.Change) string {
		var list []string
		for _, c := range changes {
			list = append(list, c.Path)
		}
		return strings.Join(list, ", ")
	}
	text := fmt.Sprintf("The user has %s the file changes of turn %d: %s.", what, u.Turn, paths(u.Changes))
	if len(u.Changes) == 0 {
		text = fmt.Sprintf("The user wanted the file changes of turn %d %s; nothing could be done.", u.Turn, what)
	}
	if len(u.Conflicts) > 0 {
		text += " These were left as they are: " + strings.Join(u.Conflicts, "; ") + "."
	}
	if left := u.Left(); left != "" {
		text += " " + left
	}
	return text
}

// Left says what was cut off and may have changed files that nobody knows of;
// empty where nothing was.
func (u Undo) Left() string {
	if len(u.Unknown) == 0 {
		return ""
	}
	return "Nobody knows what was changed by the calls that were cut off (" + strings.Join(u.Unknown, ", ") + "): that stands as it is."
}

// Rewind makes the model forget the turns from number turn on. Files are left
// alone: see Undo. An input that waits stays.
func (s *Session) Rewind(ctx context.Context, turn int) error {
	free, err := s.occupy(nil)
	if err != nil {
		return err
	}
	defer free()
	st := s.State()
	known := false
	for i := range st.turns {
		known = known || st.turns[i].Number >= turn && !st.turns[i].Rewound
	}
	if !known || turn < 1 {
		return ErrNothing
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.st.open() { // its process died
		e := End{Turn: s.st.turn().Number, Reason: ReasonInterrupted, FailedTurn: true}
		for _, c := range s.st.unanswered() {
			effect := notRun(c.ToolCall, e)
			if c.intent != nil {
				effect = failed(c.ToolCall, noTwice)
				effect.Unknown = true
			}
			s.stageLocked(effect)
		}
		s.stageLocked(e)
	}
	s.stageLocked(Rewind{Turn: turn})
	return s.commitLocked(ctx)
}
