package agent

import (
	"path/filepath"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestWhatAnEarlierProcessLeftIsRemembered(t *testing.T) {
	dir, j := t.TempDir(), book(t)
	left := New(plays(says("It is called Tom.")), Workspace(dir), Journal(j))
	s, err := left.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	turned(t, s, "What is the cat called?")
	want := len(s.State().Messages()) - 1
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	model := plays(says("project: the cat is called Tom"))
	set := DefaultSettings()
	set.Memory.Idle = 0
	m := NewMemory(func() ninelives.Model { return model }, MemoryDirs{Project: filepath.Join(dir, ".ninelives")}, set.Memory)
	defer func() { _ = m.Close() }()
	next := New(model, Workspace(dir), Journal(j), Remember(m), With(set))
	if err := next.Recollect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, entries, _, err := j.ReadSession(t.Context(), s.ID())
		if err != nil {
			t.Fatal(err)
		}
		e, err := Decode(entries[len(entries)-1])
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := e.(Archive); ok {
			if a.Through != want || a.Raw {
				t.Errorf("archived %+v, want all %d messages", a, want+1)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing was archived: %s", m.Problem())
		}
	}
}
