package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// runShow tells a run to people: the answer to stdout, everything else to
// stderr. On a terminal every answer is shown while it comes; anywhere else
// only the last one is written, when it is whole, so that a pipe gets the
// result and nothing that was taken back.
type runShow struct {
	*show
	text string   // of the answer on the screen
	want []string // tools that somebody would have had to allow
}

func newRunShow(p *process, start time.Time) *runShow {
	return &runShow{show: &show{out: p.stdout, log: p.stderr, start: start,
		live:    isTerminal(p.stdout),
		sameTTY: isTerminal(p.stdout) && isTerminal(p.stderr),
		paint:   styleFor(p.stderr, p.env),
	}}
}

func (s *runShow) begin(session string, shop *shop) error {
	for _, w := range shop.warnings {
		s.line(s.paint.amber("! " + oneLine(w)))
	}
	if shop.chain.simulated {
		for line := range strings.SplitSeq(simulatedCoder, "\n") {
			s.line(s.paint.amber(line))
		}
	}
	s.line(s.paint.dim(fmt.Sprintf("session %s · asking %s · mode %s", session, oneLine(shop.chain.plan()), shop.settings.Permissions.Mode)))
	return nil
}

func (s *runShow) event(ev agent.Event) error {
	switch ev := ev.(type) {
	case agent.Model:
		if ev.Purpose != agent.PurposeStep && ev.Purpose != agent.PurposeFinal {
			if n, is := ev.Event.(ninelives.Notice); is {
				s.notice(n)
			}
			return nil
		}
		return s.show.event(ev.Event)
	case agent.Answered:
		return s.answered(ev.Answer)
	case agent.Calling:
		s.step("→", callWords(ev.Name, ev.Needs))
	case agent.Called:
		s.called(ev.Effect)
	case agent.Steered:
		s.step("»", "taken up: "+ev.Text)
	case agent.Compacted:
		s.step("~", compactionWords(ev.Compaction))
	case agent.Guarded:
		if !ev.Stop { // the end says it
			s.step(s.paint.amber("!"), ev.Message)
		}
	case agent.Warning:
		s.step(s.paint.amber("!"), ev.Text)
	}
	return nil
}

// answered completes on the screen what was not streamed, and goes to the head
// of a line.
func (s *runShow) answered(a agent.Answer) error {
	if a.Purpose != agent.PurposeStep && a.Purpose != agent.PurposeFinal {
		return nil
	}
	s.text = a.Message.Text() + a.Message.Refusal()
	defer s.shown.Reset()
	if !s.live || s.text == "" {
		return nil
	}
	return s.rest(s.text)
}

// called tells what came of a call in a line.
func (s *runShow) called(e agent.Effect) {
	switch {
	case e.Unknown:
		s.step(s.paint.amber("?"), e.Name+": nobody can say whether it had its effect")
	case e.Result.IsError:
		if e.Denied && strings.HasSuffix(e.Result.Text(), agent.NobodyToAsk) && !slices.Contains(s.want, e.Name) {
			s.want = append(s.want, e.Name)
		}
		s.step(s.paint.red("✗"), e.Name+": "+clip(e.Result.Text(), 200))
	case e.Summary != "":
		s.step(s.paint.green("✓"), e.Summary)
	}
}

// end writes the result and says how to go on; the session's id is in the
// last line.
func (s *runShow) end(out result) error {
	if s.column {
		s.line("")
	}
	if out.ended == nil {
		if err := s.void("the text above is void: the answer did not become whole"); err != nil && !brokenPipe(err) {
			return err
		}
		if text := describe(out.err); text != "" {
			s.line("ninelives: " + text)
		}
		s.goOn(out)
		return nil
	}
	e := out.ended
	if !s.live {
		text := cmp.Or(string(e.Output), e.Text)
		if isTerminal(s.out) {
			text = visible(text)
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := io.WriteString(s.out, text); err != nil {
			return err
		}
	} else if e.Output != nil {
		if _, err := fmt.Fprintln(s.out, visible(string(e.Output))); err != nil {
			return err
		}
	}
	if e.Reason != agent.ReasonComplete {
		s.line("ninelives: " + oneLine(endWords(e.End)))
	}
	if len(s.want) > 0 {
		s.line(s.paint.amber("! " + wantWords(s.want)))
	}
	s.step("·", endFigures(e))
	s.goOn(out)
	return nil
}

func (s *runShow) goOn(out result) {
	if words := resumeWords(out); words != "" {
		s.line(s.paint.dim("go on with: " + words))
	}
}

// wantWords say what would have let the tools run that nobody was there to allow.
func wantWords(names []string) string {
	words := "not done, because nobody could be asked: " + oneLine(strings.Join(names, ", ")) + "; to allow it:"
	for _, name := range names {
		if name == "run_command" {
			name = `"run_command(COMMAND *)"`
		}
		words += " --allow " + oneLine(name)
	}
	return words
}

// endWords say why a turn ended.
func endWords(e agent.End) string {
	if e.Message != "" {
		return e.Message
	}
	if e.Fault != nil {
		return e.Fault.Error()
	}
	return "the turn ended: " + strings.ReplaceAll(string(e.Reason), "_", " ")
}

// endFigures are what a turn took.
func endFigures(e *agent.Ended) string {
	words := []string{plural(e.Steps, "step"), plural(e.Calls, "tool call"), fmt.Sprintf("%d tokens", e.Usage.TotalInput()+e.Usage.TotalOutput())}
	if e.Cost > 0 {
		words = append(words, fmt.Sprintf("$%.4f", e.Cost))
	}
	words = append(words, brief(e.Took))
	if n := len(e.Changed); n > 0 {
		words = append(words, plural(n, "file")+" changed: "+oneLine(few(e.Changed, ", ")))
	}
	return strings.Join(words, " · ")
}

// callWords say what is about to be done.
func callWords(name string, needs []tool.Need) string {
	words := name
	for i, n := range needs {
		if i == 3 {
			return words + fmt.Sprintf(" and %d more", len(needs)-i)
		}
		words += " " + clip(n.Target, 120)
	}
	return words
}

func compactionWords(c agent.Compaction) string {
	switch {
	case c.Tier == 0 || c.After >= c.Before && !c.Strike:
		return fmt.Sprintf("the conversation cannot be made smaller (%d tokens): there is nothing in it to leave out", c.Before)
	case c.Strike:
		return fmt.Sprintf("a summary of the conversation did not make it smaller (%d tokens): it stays as it was", c.Before)
	}
	return fmt.Sprintf("the conversation was made smaller for the model: %d tokens, were %d (tier %d, %s); nothing of it is lost", c.After, c.Before, c.Tier, strings.ReplaceAll(c.Why, "_", " "))
}

// clip cuts a text to so many characters, in one line.
func clip(s string, most int) string {
	s = oneLine(s)
	if chars := []rune(s); len(chars) > most {
		return string(chars[:most-1]) + "…"
	}
	return s
}
