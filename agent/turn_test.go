package agent

import (
	"slices"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

func TestATurnRunsTheCallsOfItsModelAndEndsWithItsAnswer(t *testing.T) {
	m := plays(calls(call("a", "look", `{"x":1}`)), says("done"))
	s := opened(t, m, Journal(book(t)), Tools(reader("look", echo)))
	p := turned(t, s, "do it")
	if p.end.Reason != ReasonComplete || p.end.Text != "done" || p.end.Steps != 2 || p.end.Calls != 1 {
		t.Fatalf("the turn ended as %+v", p.end)
	}
	messages := s.State().Messages()
	if got := spokenBy(messages, ninelives.RoleTool); !slices.Equal(got, []string{`{"x":1}`}) {
		t.Errorf("the results are %q", got)
	}
	if len(messages) != 4 {
		t.Errorf("the history is\n%s", transcribed(messages))
	}
}
