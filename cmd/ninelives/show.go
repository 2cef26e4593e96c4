package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// teller tells a call while it happens. An error is one of writing: the reader
// has gone, or the disk is full.
type teller interface {
	begin(id string, c *chain) error
	event(ninelives.Event) error
	answer(*ninelives.Response) error
	failure(id string, err error, code int) error
}

// show tells a call to people: the answer to stdout, the healing to stderr. On
// a terminal the answer is shown while it comes, and what a failed attempt
// said is marked as void; anywhere else only the accepted answer is written,
// so that a pipe never gets what is taken back.
type show struct {
	out, log io.Writer
	live     bool // out is a terminal and the answer is plain text
	sameTTY  bool // out and log share a screen
	paint    style
	start    time.Time

	shown    strings.Builder // of the attempt that is not voided
	column   bool            // the cursor is not at the head of a line
	thinking bool
	healed   bool
}

// begin shows who is asked before anybody is.
func (s *show) begin(_ string, c *chain) error {
	for _, w := range c.warnings {
		s.line(s.paint.amber("! " + oneLine(w)))
	}
	if c.simulated {
		for line := range strings.SplitSeq(demoWords, "\n") {
			s.line(s.paint.amber(line))
		}
	}
	s.line(s.paint.dim("asking " + oneLine(c.plan())))
	return nil
}

func (s *show) event(ev ninelives.Event) error {
	switch ev := ev.(type) {
	case ninelives.TextDelta:
		return s.text(ev.Text)
	case ninelives.RefusalDelta:
		return s.text(ev.Text)
	case ninelives.ReasoningDelta:
		if s.live && !s.thinking {
			s.thinking = true
			s.step("…", "thinking")
		}
	case ninelives.Discard:
		s.healed = true
		return s.void("the text above is void")
	case ninelives.Notice:
		s.notice(ev)
	}
	return nil
}

// text shows a piece of the answer.
func (s *show) text(t string) error {
	if !s.live || t == "" {
		return nil
	}
	s.shown.WriteString(t)
	t = visible(t)
	s.column = !strings.HasSuffix(t, "\n")
	_, err := io.WriteString(s.out, t)
	return err
}

// void marks what was shown as taken back.
func (s *show) void(why string) error {
	if s.shown.Len() == 0 {
		return nil
	}
	s.shown.Reset()
	if s.column {
		s.column = false
		if _, err := io.WriteString(s.out, "\n"); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(s.out, s.paint.dim("── "+why+" ──"))
	return err
}

var symbols = map[ninelives.NoticeKind]string{
	ninelives.NoticeFault: "✗", ninelives.NoticeWait: "…", ninelives.NoticeRetry: "↻", ninelives.NoticeSwitch: "→",
	ninelives.NoticeFailover: "→", ninelives.NoticeRepair: "⚒", ninelives.NoticeNudge: "»", ninelives.NoticeContinue: "»",
	ninelives.NoticeHedge: "∥", ninelives.NoticeProbe: "?", ninelives.NoticeCooldown: "z", ninelives.NoticeDegraded: "≈",
	ninelives.NoticeTranslate: "~", ninelives.NoticeWarning: "!",
}

// notice shows a healing step: when, what, why, how long.
func (s *show) notice(n ninelives.Notice) {
	symbol, ok := symbols[n.Kind]
	if !ok { // the plan was shown before the call, an attempt shows itself
		return
	}
	text := n.Text
	switch n.Kind {
	case ninelives.NoticeFault:
		s.healed = true
		symbol = s.paint.red(symbol)
		text = faultWords(n.Candidate, n.Fault) + " [after " + brief(n.Took) + "]"
	case ninelives.NoticeWarning:
		symbol = s.paint.amber(symbol)
	case ninelives.NoticeFailover:
		text = "asking " + n.Next + " next: " + text
	case ninelives.NoticeRetry:
		text = "asking " + n.Candidate + " again: " + text
	case ninelives.NoticeRepair:
		if n.Repair != nil {
			text = "changing the request (" + n.Repair.String() + "): " + text
		}
	}
	s.step(symbol, text)
}

// classWords say a class in words.
var classWords = map[ninelives.Class]string{
	ninelives.ClassRateLimit: "rate limited", ninelives.ClassBilling: "no credit", ninelives.ClassAuth: "the key is refused",
	ninelives.ClassOverloaded: "overloaded", ninelives.ClassTimeout: "too slow", ninelives.ClassNetwork: "not reached",
	ninelives.ClassModelNotFound: "not found", ninelives.ClassContextLength: "too long for its window",
	ninelives.ClassContentFilter: "stopped by a content filter", ninelives.ClassRefusal: "declined",
	ninelives.ClassFormat: "does not take the request as it is", ninelives.ClassStreamBroken: "the answer broke off",
	ninelives.ClassEmpty: "an empty answer", ninelives.ClassTruncated: "the answer is cut at its length limit",
	ninelives.ClassInvalidOutput: "the answer does not satisfy the schema", ninelives.ClassUnknown: "failed",
}

// faultWords says a fault: who, what, and the provider's own words.
func faultWords(candidate string, f *ninelives.Fault) string {
	if f == nil {
		return candidate + " failed"
	}
	if f.Class == ninelives.ClassInvalidOutput && f.Message != "" {
		return candidate + ": " + f.Message // which says all of it
	}
	text := candidate + ": " + cmp.Or(classWords[f.Class], string(f.Class))
	if f.Status != 0 {
		text += fmt.Sprintf(" (HTTP %d)", f.Status)
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	return text
}

// step is a line of the healing log.
func (s *show) step(symbol, text string) {
	s.line(s.paint.dim(fmt.Sprintf("%6s", brief(time.Since(s.start)))) + " " + symbol + " " + oneLine(text))
}

// line writes a line of the log, at the head of a line of the screen.
func (s *show) line(text string) {
	if s.column && s.sameTTY {
		s.column = false
		io.WriteString(s.out, "\n")
	}
	fmt.Fprintln(s.log, text) // nobody reading the log is no reason to stop
}

// answer shows what has not been shown yet, and who gave it.
func (s *show) answer(r *ninelives.Response) error {
	whole := r.Text() + r.Message.Refusal()
	if r.Output != nil {
		whole = string(r.Output)
	}
	if err := s.rest(whole); err != nil {
		return err
	}
	if s.healed || r.IsFallback || r.Finish == ninelives.FinishLength {
		s.step(s.paint.green("✓"), fmt.Sprintf("%s answered: %s, %d tokens", r.Candidate, plural(r.Attempts, "request"), r.Usage.TotalOutput()))
	}
	switch {
	case r.Finish == ninelives.FinishLength:
		s.step(s.paint.amber("!"), "the answer is cut at its length limit: it is not whole")
	case answerCode(r) == exitRefused:
		s.step(s.paint.amber("!"), "the model declined")
	}
	return nil
}

// rest completes the answer on the screen. If what is there is not its
// beginning, it is taken back.
func (s *show) rest(whole string) error {
	rest, ok := strings.CutPrefix(whole, s.shown.String())
	if !ok {
		if err := s.void("the text above is void, this is the answer"); err != nil {
			return err
		}
		rest = whole
	}
	if s.live || isTerminal(s.out) {
		rest = visible(rest)
	}
	if rest != "" {
		s.column = !strings.HasSuffix(rest, "\n")
	}
	if s.column || rest == "" && whole == "" {
		rest += "\n"
		s.column = false
	}
	_, err := io.WriteString(s.out, rest)
	return err
}

// failure tells the end of a call that could not be helped.
func (s *show) failure(id string, err error, code int) error {
	if voided := s.void("the text above is void: the answer did not become whole"); voided != nil && !brokenPipe(voided) {
		return voided
	}
	if s.column {
		s.line("")
	}
	s.line("ninelives: " + describe(err))
	switch {
	case id == "":
	case code == exitUsage || code == exitAuth || code == exitBilling:
		s.line("The question is kept; when that is mended: ninelives ask --resume " + id)
	default:
		s.line("The question is kept; take it up with: ninelives ask --resume " + id)
	}
	return nil
}

// brief writes a duration for a human.
func brief(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= 100*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Millisecond).String()
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
