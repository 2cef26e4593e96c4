package tui

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// glass is a screen without a terminal: messages and keys in, lines out. Its
// clock stands still unless it is moved.
type glass struct {
	t     *testing.T
	u     ui
	at    time.Time
	lines []string // the scrollback
}

func newGlass(t *testing.T, w, h int) *glass {
	g := &glass{t: t, at: time.UnixMilli(1_000_000_000_000)}
	g.u.commands = slashCommands()
	g.do(tea.WindowSizeMsg{Width: w, Height: h})
	g.do(opened{standing: standing{branch: "main", Status: agent.Status{
		Session: "s1", Model: "sim/coder", Mode: tool.ModeAsk, Window: 200000, Tokens: 12300, Cost: 0.042}}})
	return g
}

// do gives a message to the ui and takes what it prints.
func (g *glass) do(msg any) []any {
	effects := g.u.update(g.at, msg)
	if g.u.redraw {
		g.lines, g.u.redraw = nil, false
	}
	g.lines = append(g.lines, g.u.out...)
	g.u.out = nil
	return effects
}

// events gives events of the running turn to the ui.
func (g *glass) events(list ...agent.Event) {
	g.do(events{list: list, standing: g.u.standing})
}

// after moves the clock.
func (g *glass) after(d time.Duration) *glass {
	g.at = g.at.Add(d)
	g.do(tick{})
	return g
}

// press presses keys, by their names; a text in quotes is typed.
func (g *glass) press(keys ...string) (effects []any) {
	for _, name := range keys {
		if text, ok := strings.CutPrefix(name, "'"); ok {
			for _, r := range text {
				effects = append(effects, g.do(tea.KeyPressMsg{Code: r, Text: string(r)})...)
			}
			continue
		}
		effects = append(effects, g.do(keyNamed(g.t, name))...)
	}
	return effects
}

func keyNamed(t *testing.T, name string) tea.KeyPressMsg {
	var k tea.KeyPressMsg
	rest := name
	for {
		before, after, ok := strings.Cut(rest, "+")
		if !ok {
			break
		}
		k.Mod |= map[string]tea.KeyMod{"ctrl": tea.ModCtrl, "alt": tea.ModAlt, "shift": tea.ModShift}[before]
		rest = after
	}
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown,
		"left": tea.KeyLeft, "right": tea.KeyRight, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete, "home": tea.KeyHome, "end": tea.KeyEnd,
		"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown}
	if c, ok := special[rest]; ok {
		k.Code = c
	} else {
		k.Code = []rune(rest)[0]
		if k.Mod == 0 {
			k.Text = rest
		}
	}
	if k.String() != name {
		t.Fatalf("the key %q is %q to the terminal", name, k.String())
	}
	return k
}

// screen is what a terminal of the height shows: the end of the scrollback and
// the live part.
func (g *glass) screen() string {
	lines, _ := g.u.view()
	lines = append(append([]string(nil), g.lines...), lines...)
	return strings.Join(lines[max(0, len(lines)-g.u.h):], "\n")
}

// want compares the screen, exactly.
func (g *glass) want(want string) {
	g.t.Helper()
	want = strings.Trim(want, "\n")
	if got := strings.Trim(g.screen(), "\n"); got != want {
		g.t.Errorf("the screen is\n%s\nand should be\n%s", got, want)
	}
}

func (g *glass) wantEffects(got []any, want ...any) {
	g.t.Helper()
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if !reflect.DeepEqual(got, want) {
		g.t.Errorf("effects %#v, want %#v", got, want)
	}
}

// begin sends a text as a turn that has begun.
func (g *glass) begin(text string) {
	g.t.Helper()
	g.wantEffects(g.press("'"+text, "enter"), remember{text}, send{text: text, via: agent.ViaTurn})
	g.events(agent.Started{Session: "s1", Turn: 1, Text: text})
}

func (g *glass) end(e agent.End) []any {
	g.events(agent.Ended{Session: "s1", End: e})
	return g.do(turnOver{standing: g.u.standing})
}

func delta(attempt int, text string) agent.Event {
	return agent.Model{Purpose: agent.PurposeStep, Event: ninelives.TextDelta{Attempt: attempt, Text: text}}
}

func healing(n ninelives.Event) agent.Event { return agent.Model{Purpose: agent.PurposeStep, Event: n} }

func answeredWith(parts ...ninelives.Part) agent.Event {
	return agent.Answered{Answer: agent.Answer{Purpose: agent.PurposeStep, Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: parts}}}
}

func called(id, name, summary string) agent.Event {
	return agent.Called{Effect: agent.Effect{Call: id, Name: name, Ran: true, Summary: summary,
		Result: ninelives.ToolResult{CallID: id, Content: []ninelives.Part{ninelives.Text{Text: "one\ntwo\nthree\n"}}}}}
}

const rule = "───────────────────────────────────────────────────────────────────────────────"

func TestTurnIsShownWhileItHappensAndStaysInTheScrollback(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.want(rule + `
› 
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)

	g.press("'fix it", "enter")
	g.want(`
› fix it
⠋ waiting for the model · 0s · Esc interrupts
` + rule + `
› 
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)

	g.events(agent.Started{Turn: 1, Text: "fix it"},
		healing(ninelives.ReasoningDelta{Attempt: 1, Text: "Where may it be?"}),
		delta(1, "I will **look**.\n\nThen"))
	g.after(61 * time.Second)
	g.want(`
› fix it

I will **look**.

Then
⠼ answering · 1m01s · Esc interrupts
` + rule + `
› 
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)

	g.events(answeredWith(ninelives.Reasoning{Text: "Where may it be?"}, ninelives.Text{Text: "I will **look**.\n\nThen *fix* it."}),
		agent.Calling{Call: "c1", Name: "grep", Needs: []tool.Need{{Kind: tool.NeedRead, Target: "src"}}},
		agent.Calling{Call: "c2", Name: "run_command", Arguments: []byte(`{"command":"go test ./..."}`)},
		agent.Output{Call: "c2", Text: "ok  one\nok  two\n"})
	g.after(2 * time.Second)
	g.want(`
› fix it

∴ 4 words of reasoning (Ctrl-O)

I will **look**.

Then *fix* it.
○ grep src 2s
○ run_command go test ./... 2s
  │ ok  one
  │ ok  two
⠹ running 2 calls · 1m03s · Esc interrupts
` + rule + `
› 
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)

	g.events(called("c1", "grep", "3 matches"), called("c2", "run_command", ""))
	g.end(agent.End{Turn: 1, Reason: agent.ReasonComplete})
	g.want(`
› fix it

∴ 4 words of reasoning (Ctrl-O)

I will **look**.

Then *fix* it.

● grep src – 3 matches
  └ 3 lines of output (Ctrl-O)
● run_command go test ./...
  └ 3 lines of output (Ctrl-O)
` + rule + `
› 
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)

	g.press("ctrl+o")
	g.want(`
› fix it

∴ 4 words of reasoning (Ctrl-O)
  Where may it be?

I will **look**.

Then *fix* it.

● grep src – 3 matches
  │ one
  │ two
  │ three
● run_command go test ./...
  │ one
  │ two
  │ three
` + rule + `
› 
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
}

func TestDiscardedAttemptVanishesFromTheScreen(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("hi")
	g.events(delta(1, "Half an ans"), healing(ninelives.ReasoningDelta{Attempt: 2, Text: "hm"}))
	if !strings.Contains(g.screen(), "Half an ans") {
		t.Fatal("the streamed text is not on the screen")
	}
	f := &ninelives.Fault{Class: ninelives.ClassStreamBroken, Candidate: "sim/coder", Message: "connection reset"}
	g.events(healing(ninelives.Discard{Attempt: 1, Reason: f}), healing(ninelives.Notice{Kind: ninelives.NoticeFault, Attempt: 1, Fault: f}), delta(2, "Whole."))
	g.want(`
› hi

Whole.
⠋ answering · 0s · Esc interrupts
` + rule + `
› 
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
	g.events(answeredWith(ninelives.Text{Text: "Whole."}))
	g.end(agent.End{Reason: agent.ReasonComplete})
	g.want(`
› hi

↻ sim/coder: stream_broken: connection reset

Whole.
` + rule + `
› 
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
}

func TestWaitIsCountedDownWithItsCause(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("hi")
	f := &ninelives.Fault{Class: ninelives.ClassRateLimit, Candidate: "anthropic/claude-sonnet-4-6", Status: 429}
	g.events(healing(ninelives.Notice{Kind: ninelives.NoticeFault, Attempt: 1, Candidate: f.Candidate, Fault: f}),
		healing(ninelives.Notice{Kind: ninelives.NoticeWait, Attempt: 2, Candidate: f.Candidate, Wait: 4 * time.Second}))
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "⠋ rate limited by anthropic, again in 4s (attempt 2) · 0s · Esc interrupts"},
		{1500 * time.Millisecond, "⠦ rate limited by anthropic, again in 3s (attempt 2) · 1s · Esc interrupts"},
		{2 * time.Second, "⠼ rate limited by anthropic, again in 1s (attempt 2) · 3s · Esc interrupts"},
		{time.Second, "⠇ waiting for the model · 4s · Esc interrupts"},
	} {
		g.after(step.after)
		if got := g.u.activity(); got != step.want {
			t.Errorf("after %v more: %q, want %q", step.after, got, step.want)
		}
	}
	g.u.w = 40
	g.events(healing(ninelives.Notice{Kind: ninelives.NoticeWait, Attempt: 3, Candidate: f.Candidate, Wait: 4 * time.Second}))
	if got, want := g.u.activity(), "⠇ rate limited by anthropic, agai… · 4s"; got != want {
		t.Errorf("on a narrow screen: %q, want %q", got, want)
	}
}

func TestTextThatNeverBecameWholeIsMarked(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("hi")
	g.events(delta(1, "Half an ans"))
	g.wantEffects(g.press("esc"), stop{})
	g.wantEffects(g.press("esc"), stop{hard: true})
	g.end(agent.End{Reason: agent.ReasonCanceled})
	g.want(`
› hi

  Half an ans
── the text above did not become whole: it is not part of the conversation ──

! you stopped the turn; what was done stays done
` + rule + `
› 
sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main`)
}

func TestFailedTurnIsShownAndOneKeyResumesIt(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.do(opened{standing: standing{Status: agent.Status{Model: "sim/coder", Failed: &agent.End{Reason: agent.ReasonInterrupted, FailedTurn: true,
		Message: "its process died while edit_file ran: nobody can say whether it had its effect"}}}})
	g.want(`
✗ failed turn: its process died while edit_file ran: nobody can say whether it
  had its effect – press r to resume
` + rule + `
› 
sim/coder`)
	g.wantEffects(g.press("'r"))
	g.at = g.at.Add(alone)
	g.wantEffects(g.do(tick{}), goOn{})
	if g.u.turn == nil || !g.u.ed.empty() {
		t.Error("no turn is shown as running")
	}
	g.press("'r") // and now it is a letter
	g.at = g.at.Add(alone)
	g.wantEffects(g.do(tick{}))
	if g.u.ed.text() != "r" {
		t.Errorf("the input is %q", g.u.ed.text())
	}
}

func TestSentenceThatBeginsWithRResumesNothing(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.u.standing.Failed = &agent.End{Reason: agent.ReasonFailed, FailedTurn: true}
	g.press("'r")
	g.at = g.at.Add(alone / 2)
	g.press("'ename it")
	g.at = g.at.Add(alone)
	g.wantEffects(g.do(tick{}))
	g.wantEffects(g.press("enter"), remember{"rename it"}, send{text: "rename it", via: agent.ViaTurn})
	g.end(agent.End{})
	g.wantEffects(g.press("'r", "enter"), goOn{}) // without waiting
}

func TestOfferSaysWhyTheTurnStoppedAndHowItGoesOn(t *testing.T) {
	for _, c := range []struct {
		end  agent.End
		want string
	}{
		{agent.End{Reason: agent.ReasonLimit, Limit: "calls", Message: "2000 calls of tools (limit 2000)"}, "! 2000 calls of tools (limit 2000) – press r to go on with another full quota"},
		{agent.End{Reason: agent.ReasonCanceled}, "  press r to go on with the turn that you stopped"},
		{agent.End{Reason: agent.ReasonLoop, Message: "the same call 5 times"}, "! the same call 5 times – press r to go on"},
		{agent.End{Reason: agent.ReasonFailed, FailedTurn: true, Fault: &ninelives.Fault{Class: ninelives.ClassBilling, Candidate: "a/b", Message: "no credit"}},
			"✗ failed turn: a/b: billing: no credit – press r to resume"},
	} {
		g := newGlass(t, 120, 24)
		g.u.standing.Failed = &c.end
		g.u.offer()
		g.do(nil)
		if got := strings.Join(g.lines, "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", c.end.Reason, got, c.want)
		}
	}
	g := newGlass(t, 80, 24)
	g.begin("work")
	e := agent.End{Reason: agent.ReasonLimit, Limit: "calls", Message: "2000 calls of tools (limit 2000).\nPlease review."}
	g.events(agent.Guarded{Limit: "calls", Message: e.Message, Stop: true})
	g.u.standing.Failed = &e
	g.end(e)
	if n := strings.Count(strings.Join(g.lines, "\n"), "2000 calls of tools"); n != 1 {
		t.Errorf("the reason is said %d times", n)
	}
}

func TestWorksOnAScreenOf40By10(t *testing.T) {
	g := newGlass(t, 40, 10)
	g.begin("please")
	g.events(agent.Calling{Call: "c1", Name: "edit_file", Needs: []tool.Need{{Kind: tool.NeedWrite, Target: "main.go"}}, Diff: goDiff})
	g.do(asked{dialog{id: 1, question: &agent.Question{Call: "c1", Name: "edit_file", Diff: goDiff,
		Verdict: tool.Verdict{Why: "it changes a file", Offer: &tool.Rule{Tool: "edit_file"}}}}})
	g.after(time.Second)
	g.want(`
› please
⠼ waiting for you · 1s · Esc interrupts
? Allow edit_file? it changes a file
  --- a/main.go
  +++ b/main.go
  … lines 1–2 of 6 (PgUp, PgDn)
[y] once  [a] always edit_file  [n] no
[s] stop  Enter: no
sim/coder · ask · 12.3k (6% of 200k)`)
	g.press("pgdown")
	if !strings.Contains(g.screen(), "lines 5–6 of 6") {
		t.Errorf("PgDn does not scroll:\n%s", g.screen())
	}
	for _, line := range strings.Split(g.screen(), "\n") {
		if w := ansi.StringWidth(line); w > 39 {
			t.Errorf("%d columns: %q", w, line)
		}
	}
}

func TestResizeInTheMiddleDrawsAgain(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("a question that is longer than thirty columns")
	g.events(delta(1, "The first paragraph, which is longer than thirty columns.\n\nThe second one is being writ"))
	g.do(tea.WindowSizeMsg{Width: 31, Height: 16})
	g.want(`
› a question that is longer
  than thirty columns

The first paragraph, which is
longer than thirty columns.

The second one is being writ
⠋ answering · 0s
──────────────────────────────
› 
sim/coder · ask · $0.042`)
}

func TestWideCharactersAndEmojiKeepTheirColumns(t *testing.T) {
	g := newGlass(t, 24, 12)
	g.press("'你好世界你好世界你好世界👩‍👩‍👧x")
	g.want(`
───────────────────────
› 你好世界你好世界你好
  世界👩‍👩‍👧x
sim/coder · ask · main`)
	_, at := g.u.view()
	if at != (position{x: 9, y: 2}) {
		t.Errorf("the cursor is at %v", at)
	}
}

func TestStatusLeavesOutWhatDoesNotFit(t *testing.T) {
	g := newGlass(t, 80, 24)
	for w, want := range map[int]string{
		80: "sim/coder · ask · 12.3k (6% of 200k) · $0.042 · main",
		45: "sim/coder · ask · 12.3k (6% of 200k) · main",
		38: "sim/coder · ask · 12.3k (6% of 200k)",
		30: "sim/coder · ask · $0.042",
		16: "sim/cod… · ask",
	} {
		g.u.w = w
		if got := g.u.status(); got != want {
			t.Errorf("%d columns: %q, want %q", w, got, want)
		}
	}
}

func TestMemoryStaysFlatOverATurnOfTwoThousandCalls(t *testing.T) {
	g := newGlass(t, 80, 24)
	g.begin("work")
	output := strings.Repeat("a line of output\n", 2000) // 34 kB
	for i := range 2000 {
		id := fmt.Sprint("c", i)
		g.events(agent.Calling{Call: id, Name: "run_command", Arguments: []byte(`{"command":"make"}`)},
			agent.Output{Call: id, Text: output},
			agent.Called{Effect: agent.Effect{Call: id, Name: "run_command", Ran: true,
				Result: ninelives.ToolResult{CallID: id, Content: []ninelives.Part{ninelives.Text{Text: output}}}}})
		g.lines = nil // the terminal has them
	}
	if n := len(g.u.said.blocks); n > keptBlocks {
		t.Errorf("%d blocks are kept", n)
	}
	sum := 0
	for i := range g.u.said.blocks {
		sum += g.u.said.blocks[i].size()
	}
	if sum != g.u.said.bytes || sum > keptBytes {
		t.Errorf("%d bytes are kept, %d are counted, %d are allowed", sum, g.u.said.bytes, keptBytes)
	}
	if len(g.u.turn.calls) != 0 || len(g.u.turn.pieces) != 0 {
		t.Error("ended calls are still held")
	}
}
