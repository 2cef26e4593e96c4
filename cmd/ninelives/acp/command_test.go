package acp

import (
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/ninelives-ai/ninelives/chaos"
)

// said is the text of the only update of a command.
func (e *editor) said(id sdk.SessionId, text string) string {
	e.t.Helper()
	e.sent(id)
	r, err := e.ask(id, text)
	if err != nil || r.StopReason != sdk.StopReasonEndTurn {
		e.t.Errorf("%s: %+v, %v", text, r, err)
	}
	got := strings.Join(e.updates(id), "\n")
	got, before := strings.CutPrefix(got, `{"content":{"text":"`)
	got, after := strings.CutSuffix(got, `","type":"text"},"sessionUpdate":"agent_message_chunk"}`)
	if !before || !after {
		e.t.Errorf("%s: %s", text, got)
	}
	return got
}

func TestUndoAndRedoInThePrompt(t *testing.T) {
	s := newStage(t, chaos.Step{Calls: []chaos.Call{write("a", "a.txt", "new")}}, chaos.Step{Text: "Done."}).records()
	e := s.connect().hello()
	id := e.newSession()
	if got := e.said(id, "/undo"); got != "There are no file changes to take back." {
		t.Errorf("%q", got)
	}
	if _, err := e.ask(id, "Write"); err != nil || s.read("a.txt") != "new" {
		t.Fatalf("%q, %v", s.read("a.txt"), err)
	}
	if got := e.said(id, " /undo "); got != "Taken back are the changes of turn 1 to 1 file.\\n- `a.txt`" || !strings.HasPrefix(s.read("a.txt"), "[") {
		t.Errorf("%q, %q", got, s.read("a.txt"))
	}
	if got := e.said(id, "/redo"); got != "Made again are the changes of turn 1 to 1 file.\\n- `a.txt`" || s.read("a.txt") != "new" {
		t.Errorf("%q, %q", got, s.read("a.txt"))
	}
	if got := e.said(id, "/redo"); got != "There are no file changes to make again." {
		t.Errorf("%q", got)
	}
	s.write("a.txt", "somebody else's")
	if got := e.said(id, "/undo"); got != "Nothing of turn 1 could be restored.\\n\\nLeft alone:\\n- a.txt: it was changed since by somebody else; it was left alone" {
		t.Errorf("%q", got)
	}
	e.leave()
}

func TestRewindAndStatusInThePrompt(t *testing.T) {
	s := newStage(t, chaos.Step{Text: "One."}, chaos.Step{Text: "Two."}, chaos.Step{Text: "Three."})
	e := s.connect().hello()
	id := e.newSession()
	e.said(id, "zebra")
	e.said(id, "walrus")
	if got := e.said(id, "/rewind"); got != "The model has forgotten everything from turn 2 on. Files are as they were: /undo takes changes back." {
		t.Errorf("%q", got)
	}
	if got := e.said(id, "/rewind 9"); got != "There is no such turn to forget." {
		t.Errorf("%q", got)
	}
	_, err := e.ask(id, "/rewind all")
	if got := wantCode(t, err, -32602).Message; got != `/rewind takes the number of a turn, which "all" is not` {
		t.Errorf("%q", got)
	}
	if got := e.said(id, "/status"); !strings.HasPrefix(got, "- session: `S`\\n- directory: `/w`\\n- model: `") || !strings.Contains(got, "\\n- mode: full\\n- context: about ") {
		t.Errorf("%q", got)
	}
	e.said(id, "badger")
	log := s.srv.Log()
	if last := string(log[len(log)-1].Body); strings.Contains(last, "walrus") || !strings.Contains(last, "zebra") || !strings.Contains(last, "badger") {
		t.Errorf("%s", last)
	}
	if got := e.said(id, "/compact"); got != "There is nothing to make smaller." && got != "The conversation could not be made smaller." {
		t.Errorf("%q", got)
	}
	e.leave()
}

// Only the names that are offered are commands.
func TestWhatIsNoCommandIsForTheModel(t *testing.T) {
	e := newStage(t, chaos.Step{Echo: true}).connect().hello()
	id := e.newSession()
	for _, text := range []string{"/usr/bin/cc is missing", "/undoing", "/", "please /undo"} {
		if got := e.said(id, text); got != text {
			t.Errorf("%q was answered with %q", text, got)
		}
	}
	e.leave()
}
