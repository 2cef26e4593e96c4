package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// tape is a recorder in memory that dies when it is told to: at its n-th write
// from now, before it or after it.
type tape struct {
	mu      sync.Mutex
	entries []journal.Entry
	dies    int
	after   bool
}

func (*tape) ID() string   { return "tape" }
func (*tape) Close() error { return nil }

func (r *tape) Append(_ context.Context, _ *journal.Head, entries ...journal.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dies > 0 {
		if r.dies--; r.dies == 0 {
			if r.after {
				r.write(entries)
			}
			return errDied
		}
	}
	r.write(entries)
	return nil
}

func (r *tape) write(entries []journal.Entry) {
	for _, e := range entries {
		e.Seq = int64(len(r.entries) + 1)
		r.entries = append(r.entries, e)
	}
}

// TestAnyScheduleLeavesAValidHistory plays random answers, failing tools, stops,
// steers and deaths, and holds what is left against the promises.
func TestAnyScheduleLeavesAValidHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ran := map[string]int{}
		var mu sync.Mutex
		var s *Session
		said := 0
		say := func() ninelives.Message {
			said++
			return ninelives.UserText(fmt.Sprint("input ", said))
		}
		accepted := map[string]bool{}
		effect := writer("write", func(ctx context.Context, c *tool.Call) tool.Result {
			mu.Lock()
			ran[c.ID]++
			mu.Unlock()
			switch string(c.Arguments) {
			case `{"n":1}`:
				return tool.ErrorResult("no space left")
			case `{"n":2}`:
				panic("writer")
			case `{"n":3}`:
				s.Stop()
				<-ctx.Done()
				return tool.ErrorResult("half")
			}
			return tool.TextResult("written")
		})
		steer := writer("steer", func(ctx context.Context, c *tool.Call) tool.Result {
			mu.Lock()
			ran[c.ID]++
			m := say()
			mu.Unlock()
			if _, err := s.Steer(ctx, m); err == nil {
				mu.Lock()
				accepted[m.Text()] = true
				mu.Unlock()
			}
			return tool.TextResult("steered")
		})
		id := rapid.SampledFrom([]string{"", "a", "b"})
		name := rapid.SampledFrom([]string{"look", "look", "write", "write", "steer", "lost"})
		args := rapid.SampledFrom([]string{`{}`, `{}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `[]`})
		sane := false
		m := plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
			if err := valid(withoutSystem(r.Messages)); err != nil {
				rt.Errorf("the model is sent what no provider takes: %v\n%s", err, transcribed(r.Messages))
			}
			if sane {
				says("done")(ctx, r, yield)
				return
			}
			switch rapid.IntRange(0, 11).Draw(rt, "answer") {
			default:
				var list []ninelives.ToolCall
				for range rapid.IntRange(1, 4).Draw(rt, "calls") {
					list = append(list, call(id.Draw(rt, "id"), name.Draw(rt, "tool"), args.Draw(rt, "args")))
				}
				calls(list...)(ctx, r, yield)
			case 6, 7:
				says("an answer")(ctx, r, yield)
			case 8:
				ends(ninelives.FinishLength, ninelives.Text{Text: "cut"})(ctx, r, yield)
			case 9:
				ends(ninelives.FinishLength, call("a", "write", `{"n":`))(ctx, r, yield)
			case 10:
				class := rapid.SampledFrom([]ninelives.Class{ninelives.ClassNetwork, ninelives.ClassContextLength, ninelives.ClassRefusal, ninelives.ClassEmpty}).Draw(rt, "fault")
				fails(class, "a fault")(ctx, r, yield)
			case 11:
				s.Stop()
				hangs("half")(ctx, r, yield)
			}
		})
		set := DefaultSettings()
		set.Iterations = 4
		set.Guard.Calls = 6
		set.Permissions.Mode = tool.ModeFull
		a := New(m, With(set), Tools(reader("look", echo), effect, steer))
		log := &tape{}
		s = a.taken(context.Background(), log, nil, nil)
		opening, err := encode(now(), Opening{Directory: "/"})
		if err != nil {
			rt.Fatal(err)
		}
		log.write([]journal.Entry{opening})
		resume := func() {
			log.dies = 0
			s = a.taken(context.Background(), log, slices.Clone(log.entries), nil)
			if len(s.damaged) > 0 {
				rt.Fatalf("damaged: %v", s.damaged)
			}
		}
		resume()
		over := func(p played, m ninelives.Message) {
			switch {
			case errors.Is(p.err, errDied):
				resume()
				for _, in := range append(s.Queued(), inputsOf(s.State())...) {
					accepted[in.Message.Text()] = true // a write that was the last has counted
				}
			case errors.Is(p.err, ErrNothing):
			case p.err != nil:
				rt.Fatalf("a turn failed: %v", p.err)
			}
			if p.err == nil && len(m.Parts) > 0 {
				accepted[m.Text()] = true
			}
		}
		ctx := context.Background()
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			if rapid.IntRange(0, 2).Draw(rt, "dies") == 0 {
				log.dies, log.after = rapid.IntRange(1, 9).Draw(rt, "at"), rapid.Bool().Draw(rt, "after")
			}
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0, 1:
				m := say()
				over(play(s.Turn(ctx, m)), m)
			case 2:
				over(play(s.Continue(ctx)), ninelives.Message{})
			case 3:
				over(play(s.Next(ctx)), ninelives.Message{})
			case 4:
				m := say()
				_, err := s.Queue(ctx, m)
				over(played{err: err}, m)
			case 5:
				m := say()
				_, err := s.Steer(ctx, m)
				over(played{err: err}, m)
			}
		}
		resume()
		sane = true
		last := say()
		over(play(s.Turn(ctx, last)), last)

		st := s.State()
		if err := valid(st.Messages()); err != nil {
			rt.Errorf("the history is not valid: %v\n%s", err, transcribed(st.Messages()))
		}
		for id, n := range ran {
			if n > 1 {
				rt.Errorf("the call %s ran %d times", id, n)
			}
		}
		known := map[string]int{}
		for _, text := range spokenBy(st.Messages(), ninelives.RoleUser) {
			known[text]++
		}
		for _, in := range s.Queued() {
			known[in.Message.Text()]++
		}
		for text := range accepted {
			if known[text] != 1 {
				rt.Errorf("%q is there %d times:\n%s", text, known[text], transcribed(st.Messages()))
			}
		}
		endsOnce(rt, log.entries)
		replay, err := Replay(log.entries)
		if err != nil {
			rt.Error(err)
		}
		for _, r := range replay {
			if !r.Agrees {
				rt.Errorf("entry %d: %s was done, %s is decided", r.Seq, r.Recorded, r.Decided)
			}
		}
		again := a.taken(ctx, log, log.entries, nil).State()
		if got, want := stateText(t, again), stateText(t, st); got != want {
			rt.Errorf("read back it is\n%s\nand was\n%s", got, want)
		}
	})
}

// inputsOf are the inputs that stand in the history.
func inputsOf(s *State) (list []Input) {
	for _, m := range s.Messages() {
		if strings.HasPrefix(m.Text(), "input ") {
			list = append(list, Input{Message: m})
		}
	}
	return list
}

// endsOnce checks that every turn that began has ended, and once for each time
// that it began or went on after an end.
func endsOnce(t interface{ Errorf(string, ...any) }, entries []journal.Entry) {
	open := 0
	for _, e := range entries {
		entry, err := Decode(e)
		if err != nil {
			t.Errorf("%v", err)
		}
		switch e := entry.(type) {
		case Start:
			if open != 0 && (open != e.Turn || !e.Resumes) {
				t.Errorf("turn %d began while turn %d was open", e.Turn, open)
			}
			open = e.Turn
		case End:
			if open != e.Turn {
				t.Errorf("turn %d ended while turn %d was open", e.Turn, open)
			}
			open = 0
		}
	}
	if open != 0 {
		t.Errorf("turn %d has no end", open)
	}
}
