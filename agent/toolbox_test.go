package agent

import (
	"context"
	"slices"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/tool"
)

func TestAToolThatComesLaterIsThereFromTheNextTurnOn(t *testing.T) {
	var come []tool.Tool
	m := plays(
		func(ctx context.Context, req *ninelives.Request, yield func(ninelives.Event, error) bool) {
			come = append(come, reader("late", echo), reader("own", echo))
			calls(call("a", "late", "{}"))(ctx, req, yield)
		},
		says("It is not there."),
		calls(call("b", "late", `{"x":1}`)),
		says("Now it is."),
	)
	s := opened(t, m, Tools(reader("own", echo)), ToolsFrom(func() []tool.Tool { return come }))
	first, second := turned(t, s, "Call it."), turned(t, s, "Again.")
	if e := of[Called](first); len(e) != 1 || e[0].Ran {
		t.Errorf("the turn that had begun before: %+v", e)
	}
	if e := of[Called](second); len(e) != 1 || e[0].Result.Text() != `{"x":1}` {
		t.Errorf("the turn after: %+v", e)
	}
	var names []string
	for _, tool := range m.asked()[3].Tools {
		names = append(names, tool.Name)
	}
	if want := []string{"late", "own", "research", "subagent"}; !slices.Equal(names, want) {
		t.Errorf("the model was told of %v, want %v", names, want)
	}
}
