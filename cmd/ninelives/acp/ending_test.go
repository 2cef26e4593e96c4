package acp

import (
	"strings"
	"testing"
	"testing/synctest"

	sdk "github.com/coder/acp-go-sdk"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
)

// Only what is done ends as done. What failed, or was stopped by a guard, is an
// error with its one line and the way on.
func TestStopReasonsAreHonest(t *testing.T) {
	limit := func(l string) agent.End { return agent.End{Reason: agent.ReasonLimit, Limit: l, Message: "enough"} }
	for name, c := range map[string]struct {
		end  agent.End
		want sdk.StopReason
		line string
	}{
		"complete":    {agent.End{Reason: agent.ReasonComplete}, sdk.StopReasonEndTurn, ""},
		"truncated":   {agent.End{Reason: agent.ReasonTruncated}, sdk.StopReasonMaxTokens, ""},
		"refused":     {agent.End{Reason: agent.ReasonRefused}, sdk.StopReasonRefusal, ""},
		"canceled":    {agent.End{Reason: agent.ReasonCanceled}, sdk.StopReasonCancelled, ""},
		"iterations":  {limit(agent.LimitIterations), sdk.StopReasonMaxTurnRequests, ""},
		"cost":        {limit(agent.LimitCost), "", "enough"},
		"loop":        {agent.End{Reason: agent.ReasonLoop, Limit: agent.LimitLoop, Message: "round\nand round"}, "", "round and round"},
		"denied":      {agent.End{Reason: agent.ReasonDenied, Message: "denied by a hook"}, "", "denied by a hook"},
		"overflow":    {agent.End{Reason: agent.ReasonOverflow, Message: "too long"}, "", "too long"},
		"deadline":    {agent.End{Reason: agent.ReasonDeadline, Message: "late"}, "", "late"},
		"empty":       {agent.End{Reason: agent.ReasonEmpty}, "", "the turn ended: empty"},
		"interrupted": {agent.End{Reason: agent.ReasonInterrupted, Message: "cut off"}, "", "cut off"},
		"failed":      {agent.End{Reason: agent.ReasonFailed, Fault: &ninelives.Fault{Class: ninelives.ClassAuth, Status: 401, Candidate: "a/b", Message: "wrong key"}}, "", "a/b: auth (HTTP 401): wrong key"},
		"another":     {agent.End{Reason: "new"}, "", "the turn ended: new"},
	} {
		got, err := ending(agent.Ended{End: c.end})
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if c.line == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if e := wantCode(t, err, -32603); e.Message != c.line+" – what was done is kept; send /continue to go on" {
			t.Errorf("%s: %q", name, e.Message)
		}
	}
}

func TestACutAnswerEndsAsCut(t *testing.T) {
	e := newStage(t, chaos.Step{Text: "One two three four five six.", Truncate: 1}).connect().hello()
	id := e.newSession()
	if r, err := e.ask(id, "Count"); err != nil || r.StopReason != sdk.StopReasonMaxTokens {
		t.Errorf("%+v, %v", r, err)
	}
	e.leave()
}

// The protocol says of a refusal that the next prompt knows nothing of it.
func TestARefusedTurnIsForgotten(t *testing.T) {
	s := newStage(t, chaos.Step{Refusal: "I will not."}, chaos.Step{Text: "Gladly."})
	e := s.connect().hello()
	id := e.newSession()
	e.sent(id)
	if r, err := e.ask(id, "Do something terrible"); err != nil || r.StopReason != sdk.StopReasonRefusal {
		t.Errorf("%+v, %v", r, err)
	}
	if got := strings.Join(e.updates(id), "\n"); !strings.Contains(got, "I will not.") {
		t.Errorf("%s", got)
	}
	if r, err := e.ask(id, "Do something nice"); err != nil || r.StopReason != sdk.StopReasonEndTurn {
		t.Errorf("%+v, %v", r, err)
	}
	log := s.srv.Log()
	if last := string(log[len(log)-1].Body); strings.Contains(last, "terrible") || !strings.Contains(last, "nice") {
		t.Errorf("the next request: %s", last)
	}
	e.leave()
}

func TestTheCapOfRequestsIsNamed(t *testing.T) {
	s := newStage(t, chaos.Step{Insist: true, Calls: []chaos.Call{{Name: "list_dir", Arguments: "{}"}}}, chaos.Step{Text: "Much remains."})
	s.change = func(set *agent.Settings) { set.Iterations = 1 }
	e := s.connect().hello()
	id := e.newSession()
	e.sent(id)
	if r, err := e.ask(id, "Work"); err != nil || r.StopReason != sdk.StopReasonMaxTurnRequests {
		t.Errorf("%+v, %v", r, err)
	}
	if got := strings.Join(e.updates(id), "\n"); !strings.Contains(got, "Much remains.") {
		t.Errorf("%s", got)
	}
	e.leave()
}

// A turn that failed is an error, and /continue goes on with it.
func TestAFailedTurnIsAnErrorAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, chaos.Step{Error: chaos.Auth}, chaos.Step{Text: "Here I am."})
		e := s.connect().hello()
		id := e.newSession()
		e.sent(id)
		_, err := e.ask(id, "Hello")
		got := wantCode(t, err, -32603)
		if !strings.Contains(got.Message, "auth (HTTP 401") || !strings.HasSuffix(got.Message, " – what was done is kept; send /continue to go on") || strings.Contains(got.Message, "\n") {
			t.Errorf("%q", got.Message)
		}
		data, _ := got.Data.(map[string]any)
		if data["reason"] != "failed" || data["class"] != "auth" || data["session"] != string(id) || data["turn"] != 1.0 || data["resume"] != "/continue" {
			t.Errorf("%v", got.Data)
		}
		if u := e.updates(id); strings.Contains(strings.Join(u, ""), "agent_message_chunk") {
			t.Errorf("%s", u)
		}
		if r, err := e.ask(id, "/continue"); err != nil || r.StopReason != sdk.StopReasonEndTurn {
			t.Errorf("%+v, %v", r, err)
		}
		same(t, e.updates(id), `{"content":{"text":"Here I am.","type":"text"},"sessionUpdate":"agent_message_chunk"}`)
		if r, err := e.ask(id, "/continue"); err != nil || r.StopReason != sdk.StopReasonEndTurn {
			t.Errorf("%+v, %v", r, err)
		}
		same(t, e.updates(id), `{"content":{"text":"There is nothing to go on with.","type":"text"},"sessionUpdate":"agent_message_chunk"}`)
		e.leave()
	})
}

// Cancelling stops the stream of the model and the commands that run.
func TestCancelStopsWhatRuns(t *testing.T) {
	needsShell(t)
	s := newStage(t,
		chaos.Step{Text: "I begin.", Calls: []chaos.Call{{ID: "a", Name: "run_command", Arguments: `{"command":"echo $$ > pid.tmp; mv pid.tmp pid; sleep 1000"}`}}},
		chaos.Step{Reasoning: "Hm.", Text: "A word and then nothing", After: 3, End: chaos.Stall},
		chaos.Step{Text: "Whole again."},
	)
	e := s.connect().hello()
	id := e.newSession()
	answered := make(chan sdk.PromptResponse, 1)
	ask := func(text string) { r, _ := e.ask(id, text); answered <- r }
	go ask("Sleep")
	pid := s.pid()
	if _, err := e.ask(id, "And this?"); wantCode(t, err, -32600) != nil && !strings.Contains(err.Error(), "still at the prompt before") {
		t.Errorf("%v", err)
	}
	e.Cancel(t.Context(), sdk.CancelNotification{SessionId: id})
	if r := <-answered; r.StopReason != sdk.StopReasonCancelled || alive(pid) {
		t.Errorf("%+v, alive %v", r, alive(pid))
	}
	e.sent(id)
	go ask("Now speak")
	e.wait(`"Hm."`)
	e.Cancel(t.Context(), sdk.CancelNotification{SessionId: id})
	if r := <-answered; r.StopReason != sdk.StopReasonCancelled {
		t.Errorf("%+v", r)
	}
	same(t, e.updates(id), `{"content":{"text":"Hm.","type":"text"},"sessionUpdate":"agent_thought_chunk"}`) // and no half of an answer
	if r, err := e.ask(id, "Again"); err != nil || r.StopReason != sdk.StopReasonEndTurn {
		t.Errorf("%+v, %v", r, err)
	}
	same(t, e.updates(id), `{"content":{"text":"Whole again.","type":"text"},"sessionUpdate":"agent_message_chunk"}`)
	e.Cancel(t.Context(), sdk.CancelNotification{SessionId: id}) // of nothing
	e.leave()
}
