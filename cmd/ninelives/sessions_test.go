package main

import (
	"path/filepath"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/journal"
)

// Whoever opens the agent and quits leaves nothing to go on with: the session
// before is still the last one.
func TestASessionWithoutWordsIsNotTheLast(t *testing.T) {
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	dir := t.TempDir()
	clerk := agent.New(nil, agent.Journal(j), agent.Workspace(dir))
	open := func(say string) string {
		t.Helper()
		s, err := clerk.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if say != "" {
			if _, err := s.Accept(t.Context(), ninelives.UserText(say)); err != nil {
				t.Fatal(err)
			}
		}
		return s.ID()
	}
	last := func() string {
		t.Helper()
		id, err := lastSession(t.Context(), &kept{j: j}, dir)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	open("")
	if id := last(); id != "" {
		t.Errorf("the last of nothing said is %q", id)
	}
	want := open("hello")
	for range 25 {
		open("")
	}
	if id := last(); id != want {
		t.Errorf("the last is %q, want %q", id, want)
	}
	if got := stateWords(journal.SessionSummary{Head: journal.Head{State: "running"}}); got != "interrupted" {
		t.Errorf("a session whose process died is %q", got)
	}
}
