package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// A process dies at any entry, and any entry before it is lost too: what may
// have begun is not begun again, the model is told of it, and the history is
// one that providers take.
func TestAHoleInTheRecordRepeatsNoEffect(t *testing.T) {
	var ran []string
	write := writer("write", func(_ context.Context, c *tool.Call) tool.Result {
		ran = append(ran, string(c.Arguments))
		return tool.TextResult("written")
	})
	log := &tape{}
	n := func(i int) ninelives.ToolCall { return call("", "write", fmt.Sprintf(`{"n":%d}`, i)) }
	turned(t, New(plays(calls(n(1), n(2), n(3)), calls(n(4)), says("done")), Tools(write), Workspace(t.TempDir())).taken(t.Context(), log, nil, nil), "go")
	if len(ran) != 4 {
		t.Fatalf("ran %q", ran)
	}
	for end := 2; end < len(log.entries); end++ {
		for hole := range end {
			ran = nil
			entries := slices.Delete(slices.Clone(log.entries[:end]), hole, hole+1)
			damaged := []journal.Damage{{Session: "tape", Seq: hole + 1}}
			m := plays(says("seen"), says("seen"))
			s := New(m, Tools(write), Workspace(t.TempDir())).taken(t.Context(), &tape{entries: slices.Clone(log.entries[:end])}, entries, damaged)
			for range s.Continue(t.Context()) { // whatever was left
			}
			p := turned(t, s, "and now?")
			for _, e := range log.entries[:end] {
				if i, err := Decode(e); err != nil {
					t.Fatal(err)
				} else if i, is := i.(Intent); is && slices.Contains(ran, string(i.Arguments)) {
					t.Errorf("dead at %d, without %d (%s): %s was done again", end, hole, log.entries[hole].Kind, i.Arguments)
				}
			}
			told := 0
			for _, text := range spokenBy(m.asked()[0].Messages, ninelives.RoleUser) {
				told += strings.Count(text, gapsNote(1))
			}
			if p.end.Reason != ReasonComplete || told != 1 {
				t.Errorf("dead at %d, without %d: %s, told %d times", end, hole, p.end.Reason, told)
			}
		}
	}
}
