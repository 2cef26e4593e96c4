package acp

import (
	"context"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/tool"
)

func selects(option string) sdk.RequestPermissionOutcome {
	return sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(option))
}

func write(id, name, text string) chaos.Call {
	return chaos.Call{ID: id, Name: "write_file", Arguments: `{"path":"` + name + `","content":"` + text + `"}`}
}

// A call that is asked for shows what it would do, and runs only then.
func TestTheUserIsAskedForACall(t *testing.T) {
	s := newStage(t,
		chaos.Step{Calls: []chaos.Call{write("a", "new.txt", "one\\n")}},
		chaos.Step{Text: "Done."},
	)
	s.mode = tool.ModeAsk
	e := s.connect().hello()
	id := e.newSession()
	e.sent(id)
	e.permit = func(context.Context, sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
		if got := s.read("new.txt"); !strings.HasPrefix(got, "[") {
			t.Errorf("it was written before anybody said yes: %q", got)
		}
		return selects("once")
	}
	if r, err := e.ask(id, "Write"); err != nil || r.StopReason != sdk.StopReasonEndTurn {
		t.Errorf("%+v, %v", r, err)
	}
	got := e.sent(id)
	for i, l := range got { // why it is asked is not ours to test
		if before, after, ok := strings.Cut(l, `,{"content":{"text":"`); ok && strings.Contains(l, "request_permission") {
			_, after, _ = strings.Cut(after, `","type":"text"},"type":"content"}`)
			got[i] = before + after
		}
	}
	if len(got) == 6 {
		got[5] = got[5][:51]
	}
	const diff = `{"newText":"one\n","path":"/w/new.txt","type":"diff"}`
	const u = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":`
	same(t, got,
		u+`{"kind":"edit","locations":[{"path":"/w/new.txt"}],"rawInput":{"content":"one\n","path":"new.txt"},"sessionUpdate":"tool_call","status":"pending","title":"Write new.txt","toolCallId":"a"}}}`,
		`{"id":1,"jsonrpc":"2.0","method":"session/request_permission","params":{"options":[{"kind":"allow_once","name":"Allow","optionId":"once"},{"kind":"allow_always","name":"Always allow write_file new.txt in this session","optionId":"always"},{"kind":"reject_once","name":"Reject","optionId":"no"}],"sessionId":"S","toolCall":{"content":[`+diff+`],"kind":"edit","locations":[{"line":1,"path":"/w/new.txt"}],"rawInput":{"content":"one\n","path":"new.txt"},"status":"pending","title":"Write new.txt","toolCallId":"a"}}}`,
		u+`{"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"a"}}}`,
		u+`{"content":[`+diff+`],"locations":[{"line":1,"path":"/w/new.txt"}],"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"a"}}}`,
		u+`{"content":{"text":"Done.","type":"text"},"sessionUpdate":"agent_message_chunk"}}}`,
		`{"id":3,"jsonrpc":"2.0","result":{"stopReason":"end`,
	)
	if s.read("new.txt") != "one\n" {
		t.Errorf("%q", s.read("new.txt"))
	}
	e.leave()
}

func TestAlwaysIsAskedOnce(t *testing.T) {
	s := newStage(t,
		chaos.Step{Calls: []chaos.Call{write("a", "a.txt", "a")}},
		chaos.Step{Insist: true, Calls: []chaos.Call{write("b", "a.txt", "b")}},
		chaos.Step{Text: "Done."},
	)
	s.mode = tool.ModeAsk
	e := s.connect().hello()
	id := e.newSession()
	asked := 0
	e.permit = func(context.Context, sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
		asked++
		return selects("always")
	}
	if _, err := e.ask(id, "Write"); err != nil {
		t.Fatal(err)
	}
	if asked != 1 || s.read("a.txt") != "b" {
		t.Errorf("asked %d times: %q", asked, s.read("a.txt"))
	}
	e.leave()
}

// A no, and everything that is no yes, denies the call; the turn goes on.
func TestWhatIsNoYesIsANo(t *testing.T) {
	for name, permit := range map[string]func(context.Context, sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome{
		"no": func(context.Context, sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome { return selects("no") },
		"unknown": func(context.Context, sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
			return selects("yes!")
		},
		"error": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, chaos.Step{Calls: []chaos.Call{write("a", "a.txt", "a")}}, chaos.Step{Text: "Then not."})
			s.mode = tool.ModeAsk
			e := s.connect().hello()
			id := e.newSession()
			e.permit = permit
			e.sent(id)
			if r, err := e.ask(id, "Write"); err != nil || r.StopReason != sdk.StopReasonEndTurn {
				t.Errorf("%+v, %v", r, err)
			}
			got := strings.Join(e.updates(id), "\n")
			if !strings.Contains(got, `"status":"failed","toolCallId":"a"}`) || strings.Contains(got, "in_progress") || !strings.Contains(got, "Then not.") {
				t.Errorf("%s", got)
			}
			if got := s.read("a.txt"); !strings.HasPrefix(got, "[") {
				t.Errorf("it was written: %q", got)
			}
			e.leave()
		})
	}
}

// The question goes with the turn: an editor that cancels answers it so.
func TestACancelEndsAQuestion(t *testing.T) {
	s := newStage(t, chaos.Step{Calls: []chaos.Call{write("a", "a.txt", "a")}})
	s.mode = tool.ModeAsk
	e := s.connect().hello()
	id := e.newSession()
	e.permit = func(context.Context, sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
		return sdk.NewRequestPermissionOutcomeCancelled() // before the cancel itself
	}
	if r, err := e.ask(id, "Write"); err != nil || r.StopReason != sdk.StopReasonCancelled {
		t.Errorf("%+v, %v", r, err)
	}
	asked := make(chan struct{})
	e.permit = func(ctx context.Context, _ sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
		close(asked)
		<-ctx.Done() // never answered
		return sdk.NewRequestPermissionOutcomeCancelled()
	}
	answered := make(chan sdk.PromptResponse, 1)
	go func() { r, _ := e.ask(id, "Write"); answered <- r }()
	within(t, "the question", asked)
	if err := e.Cancel(t.Context(), sdk.CancelNotification{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	if r := <-answered; r.StopReason != sdk.StopReasonCancelled {
		t.Errorf("%+v", r)
	}
	e.leave()
}

func TestRulesInWords(t *testing.T) {
	for want, r := range map[string]tool.Rule{
		"everything":            {},
		"run_command":           {Tool: "run_command"},
		"run_command go test *": {Tool: "run_command", Target: "go\ntest *"},
	} {
		if got := ruleText(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A question of a call that was never shown (a subagent's) has all in it.
func TestAQuestionOfAnotherSessionGoesToTheEditor(t *testing.T) {
	s := newStage(t)
	e := s.connect().hello()
	id := e.newSession()
	e.sent(id)
	e.permit = func(context.Context, sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
		return selects("once")
	}
	q := agent.Question{Session: "a child", Call: "x", Name: "run_command", Arguments: []byte(`{"command":"ls"}`), Verdict: tool.Verdict{Why: "a command"}}
	if d := s.opened[0].Approve(t.Context(), q); d.Reply != agent.ReplyOnce {
		t.Errorf("%+v", d)
	}
	same(t, e.sent(id), `{"id":1,"jsonrpc":"2.0","method":"session/request_permission","params":{"options":[{"kind":"allow_once","name":"Allow","optionId":"once"},{"kind":"reject_once","name":"Reject","optionId":"no"}],"sessionId":"S","toolCall":{"content":[{"content":{"text":"a command","type":"text"},"type":"content"}],"kind":"execute","rawInput":{"command":"ls"},"status":"pending","title":"ls","toolCallId":"x"}}}`)
	e.leave()
}
