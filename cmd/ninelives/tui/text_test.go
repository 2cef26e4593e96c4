package tui

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	shown "github.com/ninelives-ai/ninelives/internal/visible"
	"github.com/ninelives-ai/ninelives/tool"
)

// hostile makes text that wants to steer the terminal.
func hostile() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{"\x1b[2J", "\x1b]0;title\a", "\x1b]8;;http://evil\x1b\\", "\x1b_ninelives\x1b\\", "\x9b2J", "\u009b31m", "\r", "\b\b", "\x07",
				"\u202e", "\u2066", "\u2028", "\xff\xfe", "\x00", "```", "```go\n", "\n", "\n\n", "**", "| a | b |\n|---|---|\n", "- x\n", "# ", "> ", "[l](http://x/\x1b[A)",
				"<b>\x1b[1m</b>", "👩‍👩‍👧", "世界", "\t", "&#27;[2J", "&#x1b;]0;t&#7;", "&#155;", strings.Repeat("long", 60), "https://example.com/" + strings.Repeat("a", 90)}),
			rapid.StringN(0, 8, 30),
		), 0, 5).Draw(t, "parts")
		return strings.Join(parts, "")
	})
}

// allowed is what may leave the ui: the sixteen colours, nothing else that a terminal obeys.
var allowed = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func TestUntrustedTextNeverSteersTheTerminalAndEveryLineFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := hostile()
		draw := func(name string) string { return text.Draw(t, name) }
		w, h := rapid.IntRange(40, 120).Draw(t, "width"), rapid.IntRange(10, 50).Draw(t, "height")
		color := rapid.Bool().Draw(t, "color")
		g := &glass{at: time.UnixMilli(0)}
		g.u.w, g.u.h, g.u.paint.on = w, h, color
		g.u.details = rapid.Bool().Draw(t, "details")
		g.u.commands = slashCommands()
		g.do(opened{standing: standing{branch: draw("branch"), queued: []queued{{1, agent.ViaQueue, draw("queued")}},
			Status: agent.Status{Model: draw("model"), Todo: []tool.Task{{Content: draw("todo"), Status: tool.TaskStatus(draw("status"))}}, Failed: &agent.End{FailedTurn: true, Message: draw("message")}}}})
		g.do(listed{[]string{draw("file")}})
		g.u.ed.paste(draw("paste"))
		g.u.begin(goOn{}, draw("typed"))
		var screens []string
		look := func() {
			lines, _ := g.u.view()
			screens = append(screens, lines...)
		}
		look()
		q := &agent.Question{Name: draw("name"), Diff: draw("qdiff"), Verdict: tool.Verdict{Why: draw("why"), Offer: &tool.Rule{Tool: draw("rule")}},
			Needs: []tool.Need{{Kind: tool.NeedExecute, Target: draw("command"), Directory: draw("directory")}}, Arguments: []byte(draw("arguments"))}
		g.do(asked{dialog{id: 1, question: q}})
		look()
		g.after(time.Second)
		look()
		g.u.dialogs = nil
		g.do(chosen{picker{title: draw("title"), items: []item{{text: oneLine(draw("item")), note: oneLine(draw("note"))}}}})
		look()
		g.u.picker = nil
		g.events(agent.Started{Text: draw("text")}, delta(1, draw("delta")), healing(ninelives.ReasoningDelta{Attempt: 1, Text: draw("thought")}),
			healing(ninelives.Notice{Kind: ninelives.NoticeFault, Fault: &ninelives.Fault{Candidate: draw("candidate"), Message: draw("fault")}}),
			healing(ninelives.Notice{Kind: ninelives.NoticeWait, Wait: time.Minute, Text: draw("wait")}),
			agent.Calling{Call: "a", Name: draw("tool"), Arguments: []byte(draw("args")), Diff: draw("diff")}, agent.Output{Call: "a", Text: draw("output")})
		look()
		g.events(answeredWith(ninelives.Text{Text: draw("answer")}, ninelives.Reasoning{Text: draw("reasoning")}),
			agent.Called{Effect: agent.Effect{Call: "a", Name: "t", Summary: draw("summary"), Diff: draw("cdiff"),
				Result: ninelives.ToolResult{IsError: true, Content: []ninelives.Part{ninelives.Text{Text: draw("result")}}}}},
			agent.Steered{Text: draw("steered")}, agent.Warning{Text: draw("warning")}, agent.Guarded{Message: draw("guard")},
			delta(2, draw("void")), agent.Ended{End: agent.End{Reason: agent.ReasonFailed, Message: draw("end")}, Changed: []string{draw("changed")}})
		g.do(turnOver{standing: g.u.standing})
		g.do(shellOver{block{kind: blockShell, head: draw("shell"), body: draw("shellout"), note: draw("shellnote")}, "x"})
		g.press("ctrl+u")
		g.do(told{blocks: []block{{head: draw("told")}}})
		g.u.slash("/" + strings.ReplaceAll(draw("slash"), "/", ""))
		g.u.showStatus("")
		g.do(nil)
		look()
		for _, line := range append(screens, g.lines...) {
			bare := line
			if color {
				bare = allowed.ReplaceAllString(line, "")
			}
			for _, r := range bare {
				if r == '\n' || r == '\t' || shown.Steers(r) {
					t.Fatalf("%U leaves the ui in %q", r, line)
				}
			}
			if ansi.StringWidth(line) > w-1 {
				t.Fatalf("%d columns on a screen of %d: %q", ansi.StringWidth(line), w, line)
			}
		}
		if lines, at := g.u.view(); len(lines) > h || at.y >= max(len(lines), 1) || at.x > w-1 {
			t.Fatalf("%d lines on a screen of %d, the cursor at %v", len(lines), h, at)
		}
	})
}

func TestVisibleHidesNothing(t *testing.T) {
	for in, want := range map[string]string{
		"plain\nlines":     "plain\nlines",
		"a\tb":             "a    b",
		"rm x\r# harmless": "rm x␍# harmless",
		"\x1b[2J":          "␛[2J",
		"\u202eevil":       "\ufffdevil",
		"bad \xff byte":    "bad \ufffd byte",
		"e\u0301 👩‍👩‍👧 世界": "e\u0301 👩‍👩‍👧 世界",
	} {
		if got := visible(in); got != want {
			t.Errorf("visible(%q) = %q, want %q", in, got, want)
		}
	}
	if got := plain("\x1b[31mred\x1b[m\r\n10%\r100%\n"); got != "red\n10%\n100%\n" {
		t.Errorf("plain = %q", got)
	}
}

func TestStreamedBlocksAreRenderedWhenTheyAreWhole(t *testing.T) {
	var md markdown
	s := &stream{}
	add := func(text string) { s.add(text, &md, 40, false) }
	add("# Head")
	if len(s.lines) != 0 {
		t.Errorf("an unfinished block is rendered: %q", s.lines)
	}
	add("ing\n\nText with `co")
	if got := strings.Join(s.tail(10), "\n"); got != "# Heading\n\nText with `co" {
		t.Errorf("%q", got)
	}
	add("de`.\n\n```go\nfunc main() {\n\n}\n")
	if got := strings.Join(s.tail(20), "\n"); got != "# Heading\n\nText with `code`.\n\n```go\nfunc main() {\n\n}" {
		t.Errorf("a blank line ends a fenced block: %q", got)
	}
	add("```\n")
	if got := strings.Join(s.tail(20), "\n"); got != "# Heading\n\nText with `code`.\n\n  func main() {\n\n  }" {
		t.Errorf("%q", got)
	}
	if got := strings.Join(s.tail(2), "\n"); got != "\n  }" {
		t.Errorf("the last two lines are %q", got)
	}
}

// work is what a stream of n paragraphs allocates, looked at after each of them.
func work(n int) uint64 {
	var md markdown
	s := &stream{}
	s.add("warm up\n\n", &md, 79, false)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		for range 5 {
			s.add("some words of an answer ", &md, 79, false)
			s.tail(20)
		}
		s.add("\n\n", &md, 79, false)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestLongAnswerCostsNoMoreThanItsLength(t *testing.T) {
	short, long := work(100), work(1000)
	if long > 15*short {
		t.Errorf("ten times the text takes %.1f times the work", float64(long)/float64(short))
	}
	one, two := &stream{}, time.Now()
	var md markdown
	for range 4000 { // one endless line
		one.add(strings.Repeat("x", 50), &md, 79, false)
		one.tail(20)
	}
	t.Logf("an endless line of 200 kB took %v", time.Since(two))
}

func TestDeepNestingIsShownAsItStands(t *testing.T) {
	var md markdown
	for _, mark := range []string{"> ", ">", "- ", "1. ", "> - "} {
		source := strings.Repeat(mark, 200) + "deep"
		if got := strings.Join(md.render(source, 1000, false), "\n"); got != source {
			t.Errorf("%q is rendered as %.60q", mark, got)
		}
	}
	var list strings.Builder
	for i := range 200 {
		list.WriteString(strings.Repeat("  ", i) + "- item\n")
	}
	began := time.Now()
	md.render(list.String(), 79, true)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a deep list took %v", took)
	}
	if got := nesting("> - a\n  1. b\n    c - d"); got != 2 {
		t.Errorf("nesting = %d", got)
	}
}

func TestAnswerThatWasStreamedIsPrintedAsItWasShown(t *testing.T) {
	text := "# A\n\nSome *text*.\n\n- x\n- y\n\nThe end"
	for _, streamed := range []string{text, "something else"} {
		g := newGlass(t, 80, 24)
		g.begin("go")
		g.lines = nil
		g.events(delta(1, streamed), answeredWith(ninelives.Text{Text: text}))
		if got := strings.Join(g.lines, "\n"); got != "\n# A\n\nSome *text*.\n\n• x\n• y\n\nThe end" {
			t.Errorf("after %q: %q", streamed, got)
		}
	}
}

func TestMarkdownIsRenderedWithoutAndWithColour(t *testing.T) {
	source := "# Title\n\nHello **bold** *it* `code` ~~no~~ [link](http://x.y/z)\n\n- a\n- b\n  - c\n\n1. one\n2. two\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n\n```go\nfunc main() {}\n```\n"
	var md markdown
	got := strings.Join(md.render(source, 40, false), "\n")
	want := `# Title

Hello **bold** *it* ` + "`code`" + ` ~~no~~ link
http://x.y/z

• a
• b
  • c


1. one
2. two

│ quoted

 a                  │ b
────────────────────┼───────────────────
 1                  │ 2

──────

  func main() {}`
	if got != want {
		t.Errorf("without colour:\n%s\nwant\n%s", got, want)
	}
	colored := strings.Join(md.render("**bold** `code`", 40, true), "\n")
	if ansi.Strip(colored) != "bold code" || !strings.Contains(colored, "\x1b[1m") {
		t.Errorf("with colour: %q", colored)
	}
}

func TestCompactionAndUndoSayNoMoreThanTheyDid(t *testing.T) {
	for _, c := range []struct {
		c    agent.Compaction
		want string
	}{
		{agent.Compaction{Why: "asked", Before: 12345, After: 4100}, "the context was made smaller, from 12.3k to 4.1k tokens: you asked for it"},
		{agent.Compaction{Why: "asked", Before: 2690, After: 2651}, "the context was made smaller, from 2,690 to 2,651 tokens: you asked for it"},
		{agent.Compaction{Why: "asked", Before: 2690, After: 2690}, "the context was not made smaller: of its 2,690 tokens nothing can be left out"},
	} {
		if got := compactedBlock(c.c).head; got != c.want {
			t.Errorf("%d to %d: %q, want %q", c.c.Before, c.c.After, got, c.want)
		}
	}
	twice := agent.Undo{Turn: 3, Changes: []tool.Change{{Path: "a.go"}, {Path: "b.go"}, {Path: "a.go"}}}
	if got := undoBlocks(twice, "undone")[0].head; got != "turn 3 is undone: a.go, b.go" {
		t.Errorf("%q", got)
	}
	twice.Unknown = []string{"run_command"}
	if got := undoBlocks(twice, "undone"); len(got) != 2 || got[1].kind != blockWarning ||
		got[1].head != "Nobody knows what was changed by the calls that were cut off (run_command): that stands as it is." {
		t.Errorf("%+v", got)
	}
}
