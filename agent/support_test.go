package agent

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// scene is what a scripted model does with one request.
type scene func(ctx context.Context, req *ninelives.Request, yield func(ninelives.Event, error) bool)

// script is a model that plays its scenes one after the other, and the last one
// for ever.
type script struct {
	name   string
	scenes []scene

	mu       sync.Mutex
	requests []*ninelives.Request
}

func plays(scenes ...scene) *script { return &script{name: "test/scripted", scenes: scenes} }

func (m *script) Name() string { return m.name }

func (m *script) Stream(ctx context.Context, req *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		m.mu.Lock()
		n := len(m.requests)
		m.requests = append(m.requests, req.Clone())
		m.mu.Unlock()
		m.scenes[min(n, len(m.scenes)-1)](ctx, req, yield)
	}
}

func (m *script) asked() []*ninelives.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests
}

// says answers with text.
func says(text string) scene { return ends(ninelives.FinishStop, ninelives.Text{Text: text}) }

// calls answers with calls.
func calls(calls ...ninelives.ToolCall) scene {
	var parts []ninelives.Part
	for _, c := range calls {
		parts = append(parts, c)
	}
	return ends(ninelives.FinishToolCalls, parts...)
}

func call(id, name, args string) ninelives.ToolCall {
	return ninelives.ToolCall{ID: id, Name: name, Arguments: args}
}

// ends answers with parts and a finish.
func ends(finish ninelives.FinishReason, parts ...ninelives.Part) scene {
	return func(_ context.Context, _ *ninelives.Request, yield func(ninelives.Event, error) bool) {
		for i, p := range parts {
			if text, ok := p.(ninelives.Text); ok && !yield(ninelives.TextDelta{Part: i, Text: text.Text}, nil) {
				return
			}
		}
		yield(ninelives.Done{Response: &ninelives.Response{
			Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: parts},
			Finish:  finish,
			Usage:   ninelives.Usage{Input: 100, Output: 10, Reported: ninelives.UsageInput | ninelives.UsageOutput},
		}}, nil)
	}
}

// fails ends the request with a fault.
func fails(class ninelives.Class, message string) scene {
	return func(_ context.Context, _ *ninelives.Request, yield func(ninelives.Event, error) bool) {
		yield(nil, &ninelives.Fault{Class: class, Message: message})
	}
}

// hangs says something and then nothing more until it is stopped.
func hangs(text string) scene {
	return func(ctx context.Context, _ *ninelives.Request, yield func(ninelives.Event, error) bool) {
		if !yield(ninelives.TextDelta{Text: text}, nil) {
			return
		}
		<-ctx.Done()
		yield(nil, &ninelives.Fault{Class: ninelives.ClassCanceled, Message: "stopped", Err: context.Cause(ctx)})
	}
}

// gadget is a tool of a test.
type gadget struct {
	spec  tool.Spec
	needs []tool.Need
	run   func(ctx context.Context, c *tool.Call) tool.Result
}

func (g *gadget) Spec() tool.Spec                   { return g.spec }
func (g *gadget) Needs([]byte) ([]tool.Need, error) { return g.needs, nil }
func (g *gadget) Run(ctx context.Context, c *tool.Call) tool.Result {
	return g.run(ctx, c)
}

const anyObject = `{"type":"object"}`

// reader is a tool that only reads, writer one that does not.
func reader(name string, run func(ctx context.Context, c *tool.Call) tool.Result) *gadget {
	return &gadget{spec: tool.Spec{Tool: ninelives.Tool{Name: name, Schema: []byte(anyObject)}, ReadOnly: true}, run: run}
}

func writer(name string, run func(ctx context.Context, c *tool.Call) tool.Result) *gadget {
	return &gadget{spec: tool.Spec{Tool: ninelives.Tool{Name: name, Schema: []byte(anyObject)}}, run: run}
}

// echo gives the arguments back.
func echo(_ context.Context, c *tool.Call) tool.Result { return tool.TextResult(string(c.Arguments)) }

// book opens a journal in a directory of the test.
func book(t testing.TB) *journal.Journal {
	t.Helper()
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// opened opens a session that is closed with the test.
func opened(t testing.TB, m ninelives.Model, opts ...Option) *Session {
	t.Helper()
	a := New(m, append([]Option{Workspace(t.TempDir())}, opts...)...)
	s, err := a.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

type seq = iter.Seq2[Event, error]
type seq2 = iter.Seq2[ninelives.Event, error]

// played is what a turn has told.
type played struct {
	events []Event
	end    Ended
	err    error
}

func play(seq iter.Seq2[Event, error]) (p played) {
	for e, err := range seq {
		if err != nil {
			p.err = err
			return p
		}
		if end, ok := e.(Ended); ok {
			p.end = end
		} else if p.end.Reason != "" {
			p.err = fmt.Errorf("%T came after the end", e)
		}
		p.events = append(p.events, e)
	}
	return p
}

// of gives the events of one type.
func of[E Event](p played) (list []E) {
	for _, e := range p.events {
		if e, ok := e.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

// turned plays a turn that must not fail.
func turned(t testing.TB, s *Session, text string) played {
	t.Helper()
	p := play(s.Turn(t.Context(), ninelives.UserText(text)))
	if p.err != nil {
		t.Fatalf("the turn failed: %v", p.err)
	}
	checked(t, s.State())
	return p
}

// checked says what is wrong with the history of a session.
func checked(t testing.TB, s *State) {
	t.Helper()
	for what, messages := range map[string][]ninelives.Message{"history": s.Messages(), "view": s.View()} {
		if err := valid(messages); err != nil {
			t.Fatalf("the %s is not valid: %v\n%s", what, err, transcribed(messages))
		}
	}
}

// valid holds a history against what all providers want: every call has exactly
// one result, right after the answer that made it and in the order of the
// calls; no id comes twice; nothing is empty.
func valid(messages []ninelives.Message) error {
	seen := map[string]bool{}
	var due []ninelives.ToolCall
	for i, m := range messages {
		if len(m.Parts) == 0 {
			return fmt.Errorf("message %d (%s) is empty", i, m.Role)
		}
		switch m.Role {
		case ninelives.RoleTool:
			for _, p := range m.Parts {
				r, ok := p.(ninelives.ToolResult)
				switch {
				case !ok:
					return fmt.Errorf("message %d holds a %T among its results", i, p)
				case len(due) == 0:
					return fmt.Errorf("message %d answers %q, which nobody asked", i, r.CallID)
				case due[0].ID != r.CallID:
					return fmt.Errorf("message %d answers %q before %q", i, r.CallID, due[0].ID)
				case r.Text() == "":
					return fmt.Errorf("the result of %q is empty", r.CallID)
				}
				due = due[1:]
			}
		default:
			if len(due) > 0 {
				return fmt.Errorf("message %d (%s) stands before the result of %q", i, m.Role, due[0].ID)
			}
			due = nil
			if m.Role != ninelives.RoleAssistant {
				continue
			}
			for _, c := range m.ToolCalls() {
				switch {
				case c.ID == "":
					return fmt.Errorf("a call of %s in message %d has no id", c.Name, i)
				case seen[c.ID]:
					return fmt.Errorf("the id %q comes twice", c.ID)
				case wellFormed(c.Arguments) != nil:
					return fmt.Errorf("the arguments of %q are no JSON", c.ID)
				}
				seen[c.ID] = true
				due = append(due, c)
			}
		}
	}
	if len(due) > 0 {
		return fmt.Errorf("the call %q has no result", due[0].ID)
	}
	return nil
}

// shown writes a history for a person.
func transcribed(messages []ninelives.Message) string {
	var b strings.Builder
	for i, m := range messages {
		fmt.Fprintf(&b, "%2d %-9s", i, m.Role)
		for _, p := range m.Parts {
			switch p := p.(type) {
			case ninelives.Text:
				fmt.Fprintf(&b, " %q", p.Text)
			case ninelives.ToolCall:
				fmt.Fprintf(&b, " %s=%s(%s)", p.ID, p.Name, p.Arguments)
			case ninelives.ToolResult:
				fmt.Fprintf(&b, " %s→%q", p.CallID, p.Text())
			default:
				fmt.Fprintf(&b, " %T", p)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// spokenBy gives the texts of the messages of a role.
func spokenBy(messages []ninelives.Message, role ninelives.Role) (list []string) {
	for _, m := range messages {
		if m.Role != role {
			continue
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case ninelives.Text:
				list = append(list, p.Text)
			case ninelives.ToolResult:
				list = append(list, p.Text())
			}
		}
	}
	return list
}

// recorded is a recorder that remembers what was written, and fails where it is
// to: from the failAt-th write on.
type recorded struct {
	recorder
	failAt int
	err    error

	mu     sync.Mutex
	writes [][]string
	tried  int
}

func (r *recorded) Append(ctx context.Context, h *journal.Head, entries ...journal.Entry) error {
	r.mu.Lock()
	r.tried++
	fails := r.failAt > 0 && r.tried >= r.failAt
	r.mu.Unlock()
	if fails {
		return r.err
	}
	err := r.recorder.Append(ctx, h, entries...)
	r.mu.Lock()
	defer r.mu.Unlock()
	var kinds []string
	for _, e := range entries {
		kinds = append(kinds, e.Kind)
	}
	r.writes = append(r.writes, kinds)
	return err
}

func (r *recorded) transactions() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kinds := range r.writes {
		list = append(list, strings.Join(kinds, " "))
	}
	return list
}

func (r *recorded) kinds() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kinds := range r.writes {
		list = append(list, kinds...)
	}
	return list
}

// stateText writes all of a state that anybody can ask it for, for comparison.
func stateText(t testing.TB, s *State) string {
	t.Helper()
	usage, cost := s.Usage()
	tally := s.Tally()
	text, err := json.Marshal([]any{
		s.Messages(), s.View(), s.Turns(), s.Waiting(), s.Opening(), s.Mode(), s.Rules(), usage, cost, tally, s.Todo(),
		s.through, s.tokens, s.window, s.overhead, s.strikes, s.accepted, s.undone, decide(s, s.last), len(s.run.calls),
	}, form, jsontext.Multiline(true))
	if err != nil {
		t.Fatal(err)
	}
	return zone.ReplaceAllString(string(text), `"time"`) // instants, in whatever zone
}

var zone = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`)

func withoutSystem(messages []ninelives.Message) []ninelives.Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m ninelives.Message) bool { return m.Role == ninelives.RoleSystem })
}
