package tui

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// scripted is a session whose turns are written down: what the user says names
// the script.
type scripted struct {
	id    string
	asker *Asker

	mu      sync.Mutex
	st      agent.Status
	waiting []agent.Input
	inputs  int
	stop    context.CancelFunc
	steered chan agent.Input
	closed  bool
}

func newScripted(id string, asker *Asker) *scripted {
	return &scripted{id: id, asker: asker, steered: make(chan agent.Input, 16), st: agent.Status{
		Session: id, Directory: "/w", Model: "sim/coder", Mode: tool.ModeAsk, Window: 200000, Tokens: 12300, Cost: 0.042,
	}}
}

func (s *scripted) ID() string          { return s.id }
func (s *scripted) State() *agent.State { return nil }

func (s *scripted) Status() agent.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.st
	st.Waiting = len(s.waiting)
	return st
}

func (s *scripted) Queued() []agent.Input {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]agent.Input(nil), s.waiting...)
}

func (s *scripted) add(msg ninelives.Message, via agent.Via) agent.Input {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inputs++
	in := agent.Input{Number: s.inputs, Via: via, Message: msg}
	if via != agent.ViaTurn {
		s.waiting = append(s.waiting, in)
	}
	return in
}

func (s *scripted) take(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, in := range s.waiting {
		if in.Number == number {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return
		}
	}
}

func (s *scripted) Steer(_ context.Context, msg ninelives.Message) (int, error) {
	in := s.add(msg, agent.ViaSteer)
	s.steered <- in
	return in.Number, nil
}

func (s *scripted) Queue(_ context.Context, msg ninelives.Message) (int, error) {
	return s.add(msg, agent.ViaQueue).Number, nil
}

func (s *scripted) Turn(ctx context.Context, msg ninelives.Message) iter.Seq2[agent.Event, error] {
	s.add(msg, agent.ViaTurn)
	return s.play(ctx, msg.Text(), false)
}

func (s *scripted) Continue(ctx context.Context) iter.Seq2[agent.Event, error] {
	return s.play(ctx, "again", true)
}

func (s *scripted) Next(ctx context.Context) iter.Seq2[agent.Event, error] {
	s.mu.Lock()
	var text string
	if len(s.waiting) > 0 {
		text = s.waiting[0].Message.Text()
		s.waiting = s.waiting[1:]
	}
	s.mu.Unlock()
	return s.play(ctx, text, false)
}

func (s *scripted) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
		s.waiting = nil
	}
}

func (s *scripted) SetMode(_ context.Context, m tool.Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.st.Mode = m
	return nil
}

func (s *scripted) Compact(context.Context) (agent.Compaction, error) {
	return agent.Compaction{Tier: 2, Why: "asked", Before: 12300, After: 4100}, nil
}
func (s *scripted) Undo(context.Context) (agent.Undo, error) {
	return agent.Undo{Turn: 1, Changes: []tool.Change{{Path: "main.go"}}, Conflicts: []string{"go.mod"}}, nil
}
func (s *scripted) Redo(context.Context) (agent.Undo, error) { return agent.Undo{}, agent.ErrNothing }
func (s *scripted) Rewind(context.Context, int) error        { return nil }
func (s *scripted) Close() error                             { s.closed = true; return nil }

const goDiff = "--- a/main.go\n+++ b/main.go\n@@ -1,3 +1,3 @@\n package main\n-func main() { panic(1) }\n+func main() {}\n"

// play yields the events of a script.
func (s *scripted) play(ctx context.Context, text string, resumes bool) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		s.mu.Lock()
		s.stop = cancel
		s.st.Turn++
		turn := s.st.Turn
		s.st.Failed = nil
		s.st.Running = true
		s.mu.Unlock()
		say := func(ev agent.Event) { yield(ev, nil) }
		model := func(ev ninelives.Event) { say(agent.Model{Turn: turn, Step: 1, Purpose: agent.PurposeStep, Event: ev}) }
		answer := func(text string) {
			say(agent.Answered{Answer: agent.Answer{Turn: turn, Step: 1, Purpose: agent.PurposeStep,
				Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.Text{Text: text}}}}})
		}
		end := agent.End{Turn: turn, Reason: agent.ReasonComplete}
		say(agent.Started{Session: s.id, Turn: turn, Resumes: resumes, Text: text})
		switch said(text) {
		case "edit":
			args := []byte(`{"path":"main.go"}`)
			needs := []tool.Need{{Kind: tool.NeedWrite, Target: "main.go"}}
			say(agent.Calling{Turn: turn, Call: "c1", Name: "edit_file", Arguments: args, Needs: needs, Diff: goDiff})
			d := s.asker.Approve(ctx, agent.Question{Session: s.id, Turn: turn, Call: "c1", Name: "edit_file", Arguments: args, Needs: needs,
				Diff: goDiff, Verdict: tool.Verdict{Action: tool.ActionAsk, Why: "it changes a file", Offer: &tool.Rule{Action: tool.ActionAllow, Tool: "edit_file"}}})
			if d.Reply == agent.ReplyOnce || d.Reply == agent.ReplyAlways {
				say(agent.Called{Effect: agent.Effect{Call: "c1", Name: "edit_file", Ran: true, Summary: "changed 1 line of main.go", Diff: goDiff,
					Result: ninelives.ToolResult{CallID: "c1"}}})
				answer("Done: `main` does not panic any more.")
				break
			}
			say(agent.Called{Effect: agent.Effect{Call: "c1", Name: "edit_file", Result: ninelives.ToolResult{CallID: "c1", IsError: true,
				Content: []ninelives.Part{ninelives.Text{Text: "Error: the user said no: " + d.Text}}}}})
			answer("Then not.")
		case "heal", "heal slowly":
			model(ninelives.TextDelta{Attempt: 1, Text: "This half answer will vanish"})
			f := &ninelives.Fault{Class: ninelives.ClassRateLimit, Status: 429, Candidate: "anthropic/claude", Message: "slow down"}
			model(ninelives.Discard{Attempt: 1, Reason: f})
			model(ninelives.Notice{Kind: ninelives.NoticeFault, Attempt: 1, Candidate: "anthropic/claude", Fault: f, Text: f.Error()})
			wait := 2 * time.Second
			over := time.After(wait)
			if said(text) == "heal slowly" { // until the user says something
				wait, over = time.Minute, nil
			}
			model(ninelives.Notice{Kind: ninelives.NoticeWait, Attempt: 2, Candidate: "anthropic/claude", Wait: wait, Text: "waiting " + wait.String()})
			select {
			case <-ctx.Done():
			case <-over:
			case in := <-s.steered:
				s.take(in.Number)
				say(agent.Steered{Number: in.Number, Text: in.Message.Text()})
			}
			model(ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: 2})
			model(ninelives.TextDelta{Attempt: 2, Text: "The whole answer."})
			answer("The whole answer.")
		case "long":
			var b strings.Builder
			for i := 1; i <= 200; i++ {
				line := fmt.Sprintf("Paragraph number %d of the long answer.\n\n", i)
				b.WriteString(line)
				model(ninelives.TextDelta{Attempt: 1, Text: line})
			}
			answer(b.String())
		case "wait":
			model(ninelives.TextDelta{Attempt: 1, Text: "I am waiting"})
			for waiting := true; waiting; {
				select {
				case <-ctx.Done():
					waiting = false
					end.Reason = agent.ReasonCanceled
				case in := <-s.steered:
					s.take(in.Number)
					say(agent.Steered{Number: in.Number, Text: in.Message.Text()})
				}
			}
		case "fail":
			end.Reason, end.FailedTurn = agent.ReasonFailed, true
			end.Message = "no model could answer: sim/coder: overloaded (HTTP 529)"
		default:
			model(ninelives.ReasoningDelta{Attempt: 1, Text: "The user says " + text})
			model(ninelives.TextDelta{Attempt: 1, Text: "You said: **" + text + "**"})
			say(agent.Answered{Answer: agent.Answer{Turn: turn, Step: 1, Purpose: agent.PurposeStep, Message: ninelives.Message{
				Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.Reasoning{Text: "The user says " + text}, ninelives.Text{Text: "You said: **" + text + "**"}}}}})
		}
		s.mu.Lock()
		s.stop = nil
		s.st.Running = false
		if end.FailedTurn {
			s.st.Failed = &end
		}
		s.mu.Unlock()
		say(agent.Ended{Session: s.id, End: end})
	}
}

// TestMain lets the test binary be the program that the tests drive.
func TestMain(m *testing.M) {
	if os.Getenv("TUI_TEST_PROGRAM") != "" {
		os.Exit(program())
	}
	goleak.VerifyTestMain(m, ownClock())
}

// ownClock leaves out the clock of the highlighter's regular expressions, which
// ends by itself.
func ownClock() goleak.Option { return goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock") }

// program runs the terminal over scripted sessions.
func program() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	asker := NewAsker()
	dir, _ := os.Getwd()
	first := newScripted("s-first", asker)
	if end := os.Getenv("TUI_TEST_FAILED"); end != "" {
		first.st.Failed = &agent.End{Turn: 1, Reason: agent.ReasonInterrupted, FailedTurn: true, Message: end}
	}
	left, err := Run(ctx, Config{
		Session: first, Asker: asker, Directory: dir, History: os.Getenv("TUI_TEST_PROGRAM"),
		In: os.Stdin, Out: os.Stdout, Models: []string{"sim/coder", "sim/thinker"}, Notices: []string{"! the built-in simulator answers"},
		New:    func(context.Context) (Session, error) { return newScripted("s-second", asker), nil },
		Resume: func(_ context.Context, id string) (Session, error) { return newScripted(id, asker), nil },
		Sessions: func(context.Context) ([]Listed, error) {
			return []Listed{{ID: "s-old", Title: "an old one", Note: "yesterday"}}, nil
		},
		Switch: func(_ context.Context, name string) (bool, []string, error) {
			if name == "panic" {
				panic("a mistake")
			}
			if !strings.HasPrefix(name, "sim/") {
				return false, nil, errors.New("there is no such model")
			}
			return true, nil, nil
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "tui:", err)
		return 1
	}
	fmt.Println("left " + left + " well")
	return 0
}
