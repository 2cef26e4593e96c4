package tui

import (
	"reflect"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

func ask(id int, offer *tool.Rule) asked {
	return asked{dialog{id: id, question: &agent.Question{Name: "run_command",
		Needs: []tool.Need{{Kind: tool.NeedExecute, Target: "rm -r build"}}, Verdict: tool.Verdict{Why: "it deletes", Offer: offer}}}}
}

func TestEnterSteersAndTabQueuesWhileATurnRuns(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("work")
	g.wantEffects(g.press("'use tabs", "enter"), remember{"use tabs"}, send{text: "use tabs", via: agent.ViaSteer})
	g.wantEffects(g.press("'then test", "tab"), remember{"then test"}, send{text: "then test", via: agent.ViaQueue})
	if g.u.unsent() != "use tabs\nthen test" {
		t.Errorf("unsent is %q before either is durable", g.u.unsent())
	}
	st := g.u.standing
	st.queued = []queued{{1, agent.ViaSteer, "use tabs"}, {2, agent.ViaQueue, "then test"}}
	st.Waiting = 2
	g.do(accepted{text: "use tabs", standing: st})
	g.do(accepted{text: "then test", standing: st})
	g.want(`
› work
⠋ waiting for the model · 0s · Esc interrupts
▸ goes into the turn: use tabs
▸ queued: then test
` + rule + `
› 
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
	if g.u.unsent() != "" {
		t.Errorf("unsent is %q when both are durable", g.u.unsent())
	}
	g.events(agent.Steered{Number: 1, Text: "use tabs"})
	if !strings.Contains(strings.Join(g.lines, "\n"), "› use tabs") {
		t.Error("what was steered is not in the transcript")
	}
	st.queued = st.queued[1:]
	st.Waiting = 1
	g.events(agent.Ended{End: agent.End{Reason: agent.ReasonComplete}})
	g.wantEffects(g.do(turnOver{standing: st}), next{}, list{})
	if g.u.turn == nil {
		t.Error("the queued input begins no turn")
	}
}

func TestWhatCouldNotBeSentIsInTheInputAgain(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.press("'first", "enter")
	g.do(turnOver{err: agent.ErrClosed, standing: g.u.standing})
	if g.u.ed.text() != "first" || g.u.turn != nil {
		t.Errorf("the input is %q", g.u.ed.text())
	}
	g.press("ctrl+c")
	g.begin("work")
	g.press("'second", "enter", "'third")
	g.do(accepted{text: "second", err: agent.ErrClosed, standing: g.u.standing})
	if g.u.ed.text() != "second\nthird" {
		t.Errorf("the input is %q", g.u.ed.text())
	}
}

func TestInputThatMissesTheEndOfItsTurnBeginsOne(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("work")
	g.press("'more", "enter")
	g.end(agent.End{Reason: agent.ReasonComplete})
	st := g.u.standing
	st.Waiting = 1
	g.wantEffects(g.do(accepted{text: "more", standing: st}), next{})
}

func TestNothingQueuedBeginsAfterAnInterrupt(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("work")
	g.wantEffects(g.press("'draft", "esc"), stop{})
	g.u.standing.Waiting = 1 // not covered by the stop, for whatever reason
	g.wantEffects(g.end(agent.End{Reason: agent.ReasonCanceled}), list{})
	if g.u.ed.text() != "draft" {
		t.Errorf("the input is %q after the interrupt", g.u.ed.text())
	}
}

func TestCtrlCClearsThenInterruptsThenQuits(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("work")
	g.wantEffects(g.press("'oops", "ctrl+c"), remember{"oops"})
	if !g.u.ed.empty() || g.u.turn.stopping {
		t.Error("the first one does not only clear the input")
	}
	g.press("up")
	if g.u.ed.text() != "oops" {
		t.Errorf("what was cleared is not one key away: %q", g.u.ed.text())
	}
	g.press("ctrl+c")
	g.wantEffects(g.press("ctrl+c"), stop{})
	g.end(agent.End{Reason: agent.ReasonCanceled})
	g.after(time.Minute)
	g.wantEffects(g.press("ctrl+c"))
	if !strings.Contains(g.screen(), "Ctrl-C again quits") {
		t.Error("nothing says that the next one quits")
	}
	g.after(time.Minute)
	g.wantEffects(g.press("ctrl+c")) // too late for the second one
	g.wantEffects(g.press("ctrl+c"), quit{})
}

func TestCtrlDQuitsOnlyWithAnEmptyInput(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.press("'ab", "home")
	g.wantEffects(g.press("ctrl+d"))
	if g.u.ed.text() != "b" {
		t.Errorf("the input is %q", g.u.ed.text())
	}
	g.press("ctrl+d")
	g.wantEffects(g.press("ctrl+d"), quit{})
}

func TestEscTwiceGoesBackToAnEarlierMessage(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.wantEffects(g.press("esc"))
	g.wantEffects(g.after(time.Second).press("esc"), do{name: "rewind"})
	g.wantEffects(g.press("esc"))
	g.wantEffects(g.after(2 * time.Second).press("esc")) // that is no second one
	g.do(chosen{picker{title: "Back to before which message?", choose: func(_ *ui, v string) []any { return []any{do{"rewind", v}} },
		items: []item{{text: "second", note: "turn 2", value: "2"}, {text: "first", note: "turn 1", value: "1"}}}})
	g.after(5 * time.Second)
	g.want(`
Back to before which message? 
› second  turn 2
  first  turn 1
1 of 2 · type to narrow · Enter chooses · Esc closes
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
	g.wantEffects(g.press("down", "enter"), do{"rewind", "1"})
	g.do(typed{"first"})
	if g.u.ed.text() != "first" || g.u.picker != nil {
		t.Errorf("the message is not in the input again: %q", g.u.ed.text())
	}
}

func TestApprovalIsAnsweredByAKeyAndTheDefaultIsNo(t *testing.T) {
	offer := &tool.Rule{Action: tool.ActionAllow, Tool: "run_command", Target: "rm -r build"}
	for _, c := range []struct {
		keys  []string
		offer *tool.Rule
		want  []any
	}{
		{[]string{"'y"}, offer, []any{answer{id: 7, decision: agent.Decision{Reply: agent.ReplyOnce}}}},
		{[]string{"'a"}, offer, []any{answer{id: 7, decision: agent.Decision{Reply: agent.ReplyAlways}}}},
		{[]string{"'a"}, nil, nil}, // not offered
		{[]string{"'s"}, offer, []any{answer{id: 7, decision: agent.Decision{Reply: agent.ReplyStop}}}},
		{[]string{"esc"}, offer, []any{answer{id: 7, decision: agent.Decision{Reply: agent.ReplyStop}}}},
		{[]string{"enter"}, offer, []any{answer{id: 7, decision: agent.Decision{Reply: agent.ReplyNo}}}},
		{[]string{"'n", "enter"}, offer, []any{answer{id: 7, decision: agent.Decision{Reply: agent.ReplyNo}}}},
		{[]string{"'nuse make clean", "enter"}, offer, []any{answer{id: 7, decision: agent.Decision{Reply: agent.ReplyNo, Text: "use make clean"}}}},
		{[]string{"'n", "esc", "'y"}, offer, []any{answer{id: 7, decision: agent.Decision{Reply: agent.ReplyOnce}}}},
		{[]string{"'x"}, offer, nil},
	} {
		g := newGlass(t, 80, 24)
		g.begin("work")
		g.do(ask(7, c.offer))
		g.after(time.Second)
		var got []any
		for _, k := range c.keys {
			got = append(got, g.press(k)...)
			g.after(time.Second)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %#v, want %#v", c.keys, got, c.want)
		}
	}
}

func TestApprovalShowsTheWholeCommand(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("work")
	g.do(asked{dialog{id: 1, question: &agent.Question{Name: "run_command", Verdict: tool.Verdict{Why: "it deletes"},
		Needs: []tool.Need{{Kind: tool.NeedExecute, Target: "echo ok\nrm -r build\x1b[2K\r# harmless\u202e", Directory: "sub"}}}}})
	g.after(time.Second)
	g.want(`
› work
⠼ waiting for you · 1s · Esc interrupts
? Allow run_command? it deletes
  $ echo ok
  rm -r build␛[2K␍# harmless` + "\ufffd" + `  (in sub)
[y] once  [n] no  [s] stop  Enter: no
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
}

func TestKeysThatWereMeantForTheInputAnswerNothing(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("work")
	g.press("'why ")
	g.do(ask(1, nil))
	g.wantEffects(g.press("'yes"))
	if g.u.ed.text() != "why yes" || len(g.u.dialogs) != 1 {
		t.Errorf("the input is %q, %d dialogs", g.u.ed.text(), len(g.u.dialogs))
	}
	if !strings.Contains(g.screen(), "› why yes") || strings.Contains(g.screen(), "[y]") {
		t.Errorf("the screen does not say where keys go:\n%s", g.screen())
	}
	g.after(settle)
	g.wantEffects(g.press("'y"), answer{id: 1, decision: agent.Decision{Reply: agent.ReplyOnce}})
}

func TestWhatIsNoAnswerToAQuestionGoesToTheInput(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("work")
	g.do(ask(1, nil))
	g.after(time.Second)
	g.wantEffects(g.press("'/"))
	g.after(time.Second)
	if !strings.Contains(g.screen(), "[s] stop  Enter sends the line\n› /") {
		t.Errorf("the screen does not say what Enter does:\n%s", g.screen())
	}
	g.press("'permissions plan")
	g.after(time.Second)
	g.wantEffects(g.press("enter"), remember{"/permissions plan"}, do{"permissions", "plan"})
	if len(g.u.dialogs) != 1 {
		t.Errorf("the question was answered")
	}
	g.press("ctrl+r")
	if g.u.picker != nil {
		t.Errorf("a list has opened behind the question")
	}
	g.after(time.Second)
	g.wantEffects(g.press("enter"), answer{id: 1, decision: agent.Decision{Reply: agent.ReplyNo}})
}

func TestQuestionsAreAskedOneAfterTheOther(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("work")
	g.do(ask(1, nil))
	g.do(ask(2, nil))
	g.do(ask(3, nil))
	g.after(time.Second)
	g.do(withdrawn{2})
	g.wantEffects(g.press("'y"), answer{id: 1, decision: agent.Decision{Reply: agent.ReplyOnce}})
	g.wantEffects(g.press("'y")) // the same key does not answer the next one
	g.after(time.Second)
	g.wantEffects(g.press("'s"), answer{id: 3, decision: agent.Decision{Reply: agent.ReplyStop}})
}

func TestGuardStopIsGrantedOnlyByAYes(t *testing.T) {
	for key, granted := range map[string]bool{"'y": true, "'n": false, "enter": false, "esc": false} {
		g := newGlass(t, 80, 24)
		g.begin("work")
		g.do(asked{dialog{id: 4, grant: &agent.Ended{End: agent.End{Reason: agent.ReasonLimit, Message: "edit_file was called 75 times (limit 75)"}}}})
		g.after(time.Second)
		if !strings.Contains(g.screen(), "edit_file was called 75 times (limit 75)") {
			t.Errorf("the reason is not on the screen:\n%s", g.screen())
		}
		g.wantEffects(g.press(key), answer{id: 4, granted: granted})
	}
}

func TestShiftTabAsksForTheNextMode(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.wantEffects(g.press("shift+tab"), cycle{})
}

func TestHistoryIsSearchedAndSteppedThrough(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.u.hist = history{items: []string{"make test", "explain the parser", "make\nlint"}, at: 3}
	g.press("'dra", "up")
	if g.u.ed.text() != "make\nlint" {
		t.Errorf("one back is %q", g.u.ed.text())
	}
	g.press("up", "up", "up", "up")
	if g.u.ed.text() != "make test" {
		t.Errorf("the first is %q", g.u.ed.text())
	}
	g.press("down", "down", "down", "down")
	if g.u.ed.text() != "dra" {
		t.Errorf("what was typed before is %q", g.u.ed.text())
	}
	g.press("ctrl+u", "ctrl+r", "'make")
	g.want(`
History make
› make lint
  make test
1 of 2 · type to narrow · Enter chooses · Esc closes
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
	g.press("down", "enter")
	if g.u.ed.text() != "make test" {
		t.Errorf("chosen is %q", g.u.ed.text())
	}
}

func TestSlashCommandsAreCompletedAndCarriedOut(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.press("'/re")
	g.want(rule + `
› /re
› /resume  take up an earlier session
  /redo  make them again
  /rewind  go back to an earlier message
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
	g.wantEffects(g.press("down", "enter"), remember{"/redo"}, do{name: "redo"})
	g.u.models = []string{"sim/coder", "sim/thinker"}
	g.wantEffects(g.press("'/model ", "enter"), remember{"/model "}, do{name: "model"})
	g.wantEffects(g.press("'/model ", "down", "down", "enter"), remember{"/model sim/thinker"}, do{"model", "sim/thinker"})
	g.wantEffects(g.press("'/model thi", "tab"))
	g.wantEffects(g.press("enter"), remember{"/model sim/thinker"}, do{"model", "sim/thinker"})
	g.wantEffects(g.press("'/rewnid", "enter"), remember{"/rewnid"})
	if !strings.Contains(g.screen(), "there is no command /rewnid (did you mean /rewind?): /help lists them") {
		t.Errorf("an unknown command is answered so:\n%s", g.screen())
	}
	g.wantEffects(g.press("'/etc/passwd is what?", "enter"), remember{"/etc/passwd is what?"}, send{text: "/etc/passwd is what?", via: agent.ViaTurn})
}

func TestEveryCommandOfTheIssueIsThere(t *testing.T) {
	var names []string
	for _, c := range slashCommands() {
		names = append(names, "/"+c.name)
	}
	want := "/help /model /new /resume /sessions /compact /undo /redo /rewind /status /cost /stop /permissions /memory /mcp /init /export /diff /quit"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the commands are %s", got)
	}
}

func TestCommandsThatNeedRestSaySoDuringATurn(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("work")
	for _, c := range slashCommands() {
		if !c.idle {
			continue
		}
		g.lines = nil
		g.wantEffects(g.press("'/"+c.name+" ", "enter"), remember{"/" + c.name + " "})
		if got := strings.TrimSpace(strings.Join(g.lines, "\n")); got != "! /"+c.name+" cannot be done while a turn runs: Esc stops it" {
			t.Errorf("/%s: %q", c.name, got)
		}
	}
	g.wantEffects(g.press("'/stop ", "enter"), remember{"/stop "}, stop{})
}

func TestFilesAreCompletedBehindAnAt(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.wantEffects(g.press("'see @m"), list{})
	g.do(listed{[]string{"cmd/main.go", "docs/my notes.md", "amen.txt", "zoom/x"}})
	g.want(rule + `
› see @m
› cmd/main.go
  docs/my notes.md
  amen.txt
  zoom/x
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
	g.press("down", "enter")
	if got := g.u.ed.text(); got != `see @"docs/my notes.md" ` {
		t.Errorf("the input is %q", got)
	}
	g.press("ctrl+u", "'see @amen.txt")
	g.wantEffects(g.press("enter"), remember{"see @amen.txt"}, send{text: "see @amen.txt", via: agent.ViaTurn})
	g.end(agent.End{Reason: agent.ReasonComplete})
	g.press("'and @zo", "esc", "enter")
	if g.u.turn == nil {
		t.Error("Esc does not close the offers, or Enter does not send")
	}
}

func TestShellCommandsAreTheUsersOwnAndGoWithTheNextMessage(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.wantEffects(g.press("'!ls -l", "enter"), remember{"!ls -l"}, shell{"ls -l"})
	g.do(shellOver{block{kind: blockShell, head: "ls -l", body: "total 0\n"}, "$ ls -l\ntotal 0\n(exit status 0)"})
	g.want(`
! ls -l
  │ total 0
▸ with the next message: the output of 1 command
` + rule + `
› 
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
	g.wantEffects(g.press("'so?", "enter"), remember{"so?"}, send{text: "so?", via: agent.ViaTurn, context: []string{"$ ls -l\ntotal 0\n(exit status 0)"}})
	if len(g.u.context) != 0 {
		t.Error("it would go with the message after, too")
	}
}

func TestLongPasteIsOneChip(t *testing.T) {
	g := newGlass(t, 80, 24)
	text := strings.Repeat("line\r\n", 120)
	g.press("'look: ")
	g.do(tea.PasteMsg{Content: text})
	g.do(tea.PasteMsg{Content: "short\n"})
	g.want(rule + `
› look: [paste 1: 120 lines]short
  
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
	want := "look: " + strings.Repeat("line\n", 120) + "short\n"
	if g.u.ed.text() != want {
		t.Errorf("the text is %q", g.u.ed.text())
	}
	g.press("backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace")
	if g.u.ed.text() != "look: " {
		t.Errorf("the chip does not go at once: %q", g.u.ed.text())
	}
}

func TestCtrlJAndABackslashBeginALine(t *testing.T) {
	for _, keys := range [][]string{{"'a", "ctrl+j", "'b"}, {"'a", "alt+enter", "'b"}, {"'a", "shift+enter", "'b"}, {"'a\\", "enter", "'b"}} {
		g := newGlass(t, 80, 24)
		g.wantEffects(g.press(keys...))
		if g.u.ed.text() != "a\nb" {
			t.Errorf("%v: %q", keys, g.u.ed.text())
		}
	}
}

func TestLongAnswerIsScrolledWhileItComes(t *testing.T) {
	g := newGlass(t, 80, 12)
	g.begin("tell")
	var b strings.Builder
	for i := range 40 {
		b.WriteString("Paragraph " + string(rune('A'+i%26)) + ".\n\n")
	}
	g.events(delta(1, b.String()))
	if !strings.Contains(g.screen(), "Paragraph N.") || strings.Contains(g.screen(), "Paragraph H.") {
		t.Errorf("the end is not in view:\n%s", g.screen())
	}
	g.press("pgup", "pgup")
	if strings.Contains(g.screen(), "Paragraph N.") || !strings.Contains(g.screen(), "Paragraph H.") {
		t.Errorf("PgUp does not scroll:\n%s", g.screen())
	}
	g.press("pgdown", "pgdown", "pgdown")
	if !strings.Contains(g.screen(), "Paragraph N.") {
		t.Errorf("PgDn does not scroll back:\n%s", g.screen())
	}
	g.events(answeredWith(ninelives.Text{Text: b.String()}))
	g.end(agent.End{Reason: agent.ReasonComplete})
	all := strings.Join(g.lines, "\n")
	if n := strings.Count(all, "Paragraph"); n != 40 {
		t.Errorf("%d paragraphs of 40 are in the scrollback", n)
	}
}

func TestSecondKeyOfTwoIsTheNextOne(t *testing.T) {
	for key, effect := range map[string]any{"ctrl+c": quit{}, "esc": do{name: "rewind"}} {
		g := newGlass(t, 80, 24)
		g.wantEffects(g.press(key))
		if !strings.Contains(g.screen(), " again ") {
			t.Errorf("after one %s the screen is\n%s", key, g.screen())
		}
		g.press("left")
		if strings.Contains(g.screen(), " again ") {
			t.Errorf("after %s and another key the screen is\n%s", key, g.screen())
		}
		g.wantEffects(g.press(key))
		g.wantEffects(g.press(key), effect)
	}
}

func TestWhatWaitsBehindAStoppedTurnIsNotSaidToGoIntoIt(t *testing.T) {
	g := newGlass(t, 140, 24)
	g.begin("work")
	st := g.u.standing
	st.queued, st.Waiting = []queued{{1, agent.ViaSteer, "use tabs"}, {2, agent.ViaQueue, "then test"}}, 2
	g.do(accepted{standing: st})
	g.press("esc")
	g.end(agent.End{Reason: agent.ReasonCanceled})
	if s := g.screen(); !strings.Contains(s, "▸ waits for a turn: use tabs\n▸ waits for a turn: then test\n") ||
		!strings.Contains(s, "2 messages that waited begin no turn, but the model will read them") {
		t.Errorf("the screen is\n%s", s)
	}
}
