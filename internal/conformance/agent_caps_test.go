package conformance_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/tool"
)

// The caps of source design 001, layer 3, where they meet the tools themselves.

// packs answers with so many calls, some at a time, and then one that is one
// too many.
func packs(most int, call func(i int) chaos.Call) (steps []chaos.Step) {
	const together = 25
	var calls []chaos.Call
	for i := range most + 1 {
		calls = append(calls, call(i))
		if len(calls) == together || i >= most-1 {
			steps = append(steps, uses(calls...))
			calls = nil
		}
	}
	return append(steps, chaos.Step{Text: "never asked for"})
}

// stopped plays steps to the stop of the guard.
func (d *desk) stopped(steps []chaos.Step, tools ...tool.Tool) acted {
	d.Helper()
	m, srv := simulated(d.T, "openai/gpt-4o", ninelives.OpenAIChat, steps)
	set := full()
	set.Guard.Rate, set.Guard.RatePerTool = 0, 0
	p := d.turn(d.opens(d.agent(heal.New(m), set, tools...)), "Go.")
	d.ended(p, agent.ReasonLimit, "")
	accepted(d, srv)
	equal(d, "nothing is asked after a stop", len(srv.Log()), len(steps)-1)
	return p
}

// Each tool of the table is stopped at its own number; the calls before it ran.
func TestEachToolIsStoppedAtItsOwnCap(t *testing.T) {
	counted := func(name string) (tool.Tool, func(i int) chaos.Call) {
		return gadget{name, false, func(_ context.Context, c *tool.Call) tool.Result {
				return tool.TextResult("did " + string(c.Arguments))
			}},
			func(i int) chaos.Call { return use(name, `{"n":%d}`, i) }
	}
	for name, most := range map[string]int{"edit_file": 75, "delete_file": 30, "run_command": 100, "run_terminal_command": 500, "web_search": 60} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				d := sits(t, home)
				var tools []tool.Tool
				var call func(i int) chaos.Call
				switch name {
				case "edit_file", "delete_file":
					for i := range most + 1 {
						if err := os.WriteFile(filepath.Join(d.dir, fmt.Sprintf("%d.txt", i)), []byte("old\n"), 0o644); err != nil {
							t.Fatal(err)
						}
					}
					call = func(i int) chaos.Call {
						if name == "delete_file" {
							return use(name, `{"path":"%d.txt"}`, i)
						}
						return use(name, `{"path":"%d.txt","old_string":"old","new_string":"new"}`, i)
					}
				default:
					var g tool.Tool
					g, call = counted(name)
					tools = append(tools, g)
				}
				p := d.stopped(packs(most, call), tools...)
				equal(t, "limit", p.end.Limit, agent.LimitOfTool(name))
				first, _, _ := strings.Cut(p.end.Message, "\n")
				equal(t, "message", first, fmt.Sprintf("Forced stop: reached maximum of %d %s invocations.", most, name))
				ran, failed := 0, 0
				for _, c := range of[agent.Called](p) {
					if c.Ran {
						ran++
						if c.Result.IsError {
							failed++
							t.Log(c.Result.Text())
						}
					}
				}
				equal(t, "calls that ran", ran, most)
				equal(t, "calls that failed", failed, 0)
			})
		})
	}
}

// One file is one file, however its name is written and by whichever tool it is
// changed: the change after the twentieth stops the turn.
func TestAFileLoopIsFoundHoweverTheFileIsNamed(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		if err := os.MkdirAll(filepath.Join(d.dir, "dir"), 0o755); err != nil {
			t.Fatal(err)
		}
		names := []string{"dir/a.txt", "./dir/a.txt", "dir/../dir/a.txt", "dir//a.txt", filepath.Join(d.files.Dir(), "dir", "a.txt")}
		p := d.stopped(packs(20, func(i int) chaos.Call {
			name := names[i%len(names)]
			if i%2 == 0 {
				return writes(name, fmt.Sprintf("text %d\n", i))
			}
			return use("edit_file", `{"path":%q,"old_string":"text %d","new_string":"edited %d"}`, name, i-1, i)
		}))
		equal(t, "limit", p.end.Limit, agent.LimitOfFile("dir/a.txt"))
		first, _, _ := strings.Cut(p.end.Message, "\n")
		equal(t, "message", first, "Forced stop: file loop: reached maximum of 20 edits of dir/a.txt.")
		for _, c := range of[agent.Called](p) {
			if c.Ran && c.Result.IsError {
				t.Error(c.Result.Text())
			}
		}
		equal(t, "its last content", d.file("dir/a.txt"), "edited 19\n")
	})
}

// A model that reads the same files after each compaction goes round in a
// circle, and is stopped although it cannot see that itself.
func TestReadingTheSameFilesAfterEachCompactionIsStopped(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		for i := range 4 {
			if err := os.WriteFile(filepath.Join(d.dir, fmt.Sprintf("%d.txt", i)), []byte(story(150)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var steps []chaos.Step
		for i := range 4 {
			steps = append(steps, uses(use("read_file", `{"path":"%d.txt"}`, i)))
		}
		for range 3 {
			steps = append(steps, steps...)
		}
		m, srv := simulated(t, "openai/gpt-4o", ninelives.OpenAIChat, steps)
		set := full()
		set.Compaction.Window = 9000
		set.Compaction.Strikes = 0 // no summaries: each request is a step
		s := d.opens(d.agent(heal.New(m), set))
		p := d.turn(s, "Read on.")
		d.ended(p, agent.ReasonLoop, "")
		equal(t, "limit", p.end.Limit, agent.LimitCycle)
		equal(t, "calls", p.end.Calls, 20)
		if n := len(of[agent.Compacted](p)); n < 2 {
			t.Errorf("%d compactions", n)
		}
		accepted(t, srv)
	})
}
