package acp

import (
	"slices"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/ninelives-ai/ninelives/chaos"
)

func (e *editor) load(id sdk.SessionId) error {
	_, err := e.LoadSession(e.t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: e.stage.dir, McpServers: []sdk.McpServer{}})
	return err
}

// A session that is loaded looks as it did, and goes on.
func TestALoadedSessionIsShownAgain(t *testing.T) {
	s := newStage(t,
		chaos.Step{Text: "I write.", Calls: []chaos.Call{write("a", "a.txt", "one\\n"), {ID: "b", Name: "todo", Arguments: `{"todos":[{"content":"Rest","status":"pending"}]}`}}},
		chaos.Step{Text: "Done."},
		chaos.Step{Text: "This is forgotten."},
		chaos.Step{Echo: true},
	).records()
	e := s.connect().hello()
	id := e.newSession()
	for _, text := range []string{"Write", "Forget me", "/rewind"} {
		if _, err := e.ask(id, text); err != nil {
			t.Fatal(err)
		}
	}
	e.leave()

	e = s.connect().hello()
	if err := e.load(id); err != nil {
		t.Fatal(err)
	}
	e.wait("available_commands_update")
	got := e.updates(id)
	same(t, got[:len(got)-1],
		`{"content":{"text":"Write","type":"text"},"sessionUpdate":"user_message_chunk"}`,
		`{"content":{"text":"I write.","type":"text"},"sessionUpdate":"agent_message_chunk"}`,
		`{"kind":"edit","locations":[{"path":"/w/a.txt"}],"rawInput":{"content":"one\n","path":"a.txt"},"sessionUpdate":"tool_call","status":"pending","title":"Write a.txt","toolCallId":"a"}`,
		`{"kind":"think","rawInput":{"todos":[{"content":"Rest","status":"pending"}]},"sessionUpdate":"tool_call","status":"pending","title":"Update the list of tasks","toolCallId":"b"}`,
		`{"content":[{"newText":"one\n","path":"/w/a.txt","type":"diff"}],"locations":[{"line":1,"path":"/w/a.txt"}],"sessionUpdate":"tool_call_update","status":"completed","toolCallId":"a"}`,
		"{\"content\":[{\"content\":{\"text\":\"```\\n[ ] Rest\\n```\",\"type\":\"text\"},\"type\":\"content\"}],\"sessionUpdate\":\"tool_call_update\",\"status\":\"completed\",\"toolCallId\":\"b\"}",
		`{"content":{"text":"Done.","type":"text"},"sessionUpdate":"agent_message_chunk"}`,
		`{"entries":[{"content":"Rest","priority":"medium","status":"pending"}],"sessionUpdate":"plan"}`,
	)
	if got := e.said(id, "And on"); got != "And on" {
		t.Errorf("%q", got)
	}
	// Loading what is open already shows it once more.
	if err := e.load(id); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(e.updates(id), "\n"); strings.Count(got, `"sessionUpdate":"tool_call"`) != 2 || !strings.Contains(got, "And on") {
		t.Errorf("%s", got)
	}
	e.leave()
}

// A turn that failed says so when the session is loaded, and goes on.
func TestALoadedSessionTellsWhatFailed(t *testing.T) {
	s := newStage(t, chaos.Step{Error: chaos.ModelNotFound}, chaos.Step{Text: "Now."}).records()
	e := s.connect().hello()
	id := e.newSession()
	if _, err := e.ask(id, "Hello"); err == nil {
		t.Fatal("it did not fail")
	}
	e.leave()
	e = s.connect().hello()
	if err := e.load(id); err != nil {
		t.Fatal(err)
	}
	e.wait("available_commands_update")
	got := e.updates(id)
	if len(got) != 3 || got[0] != `{"content":{"text":"Hello","type":"text"},"sessionUpdate":"user_message_chunk"}` ||
		!strings.Contains(got[1], "model_not_found") || !strings.Contains(got[1], "agent_thought_chunk") {
		t.Errorf("%s", got)
	}
	e.leave()
}

func TestASessionIsResumedWithoutItsHistory(t *testing.T) {
	s := newStage(t, chaos.Step{Text: "One."}, chaos.Step{Text: "Two."}).records()
	e := s.connect().hello()
	id := e.newSession()
	e.said(id, "first")
	if _, err := e.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	_, err := e.ask(id, "closed?")
	wantCode(t, err, -32002)
	e.sent(id)
	if _, err := e.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: s.dir}); err != nil {
		t.Fatal(err)
	}
	e.wait("available_commands_update")
	if got := e.updates(id); len(got) != 1 {
		t.Errorf("%s", got)
	}
	if got := e.said(id, "second"); got != "Two." {
		t.Errorf("%q", got)
	}
	if body := string(s.srv.Log()[1].Body); !strings.Contains(body, "first") {
		t.Errorf("the model has forgotten: %s", body)
	}
	e.leave()
}

// A session is found by its whole id, and by one process at a time.
func TestSessionsThatCannotBeLoaded(t *testing.T) {
	s := newStage(t, chaos.Step{Text: "One."}).records()
	e, other := s.connect().hello(), s.connect().hello()
	id := e.newSession()
	if got := wantCode(t, other.load(id), -32603).Message; got == "" || strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
	wantCode(t, other.load("01JNOTHERE"), -32002)
	e.leave()
	wantCode(t, other.load(id[:len(id)-2]), -32002)
	wantCode(t, other.load(""), -32602)
	if err := other.load(id); err != nil {
		t.Error(err)
	}
	other.leave()
}

func TestSessionsAreListedPageByPage(t *testing.T) {
	s := newStage(t, chaos.Step{Text: "One."}).records()
	e := s.connect().hello()
	var ids []sdk.SessionId
	for range page + 2 {
		id := e.newSession()
		if _, err := e.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: id}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	last := e.newSession()
	e.said(last, "The title\nand more")
	first, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &s.dir})
	if err != nil || len(first.Sessions) != page || first.NextCursor == nil {
		t.Fatalf("%d sessions, %v", len(first.Sessions), err)
	}
	if got := first.Sessions[0]; got.SessionId != last || *got.Title != "The title" || got.Cwd != s.dir || got.UpdatedAt == nil {
		t.Errorf("%+v", got)
	}
	second, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &s.dir, Cursor: first.NextCursor})
	if err != nil || len(second.Sessions) != 3 || second.NextCursor != nil {
		t.Fatalf("%d sessions, %v", len(second.Sessions), err)
	}
	var seen []sdk.SessionId
	for _, one := range slices.Concat(first.Sessions, second.Sessions) {
		seen = append(seen, one.SessionId)
	}
	slices.Sort(seen)
	want := append(slices.Clone(ids), last)
	slices.Sort(want)
	if !slices.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
	elsewhere := t.TempDir()
	none, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &elsewhere})
	if err != nil || len(none.Sessions) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
	_, err = e.ListSessions(t.Context(), sdk.ListSessionsRequest{Cursor: sdk.Ptr("gone")})
	wantCode(t, err, -32602)
	relative := "here"
	_, err = e.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &relative})
	wantCode(t, err, -32602)
	e.leave()
}
