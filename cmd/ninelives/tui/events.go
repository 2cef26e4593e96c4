package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// running is what is shown of a turn while it runs.
type running struct {
	began    time.Time
	stopping bool
	dropped  int  // inputs that waited when it was stopped
	started  bool // its input is durable
	// typed is what the user sent to begin it, until it is durable.
	typed string
	// text and thought are of the attempt that is not voided.
	pieces []piece
	calls  []liveCall
	// until and cause say why nothing comes now.
	until   time.Time
	attempt int
	cause   string
	fault   *ninelives.Fault
	healing []string
	ended   *agent.Ended
}

// piece is what one attempt has streamed in one go.
type piece struct {
	attempt int
	thought bool
	stream  *stream
}

// liveCall is a call that runs.
type liveCall struct {
	id     string
	line   string
	began  time.Time
	diff   string
	output string
}

// liveOutput is how much of a running call's output is kept to be shown.
const liveOutput = 8 << 10

// event takes an event of the turn in.
func (u *ui) event(ev agent.Event) {
	t := u.turn
	if t == nil {
		return
	}
	switch ev := ev.(type) {
	case agent.Started:
		t.started = true
		text := said(ev.Text)
		if text != "" && !ev.Resumes {
			u.print(block{kind: blockUser, head: text})
		}
		if t.typed != "" && t.typed != text { // an earlier input begins the turn with it
			u.print(block{kind: blockUser, head: t.typed})
		}
		t.typed = ""
	case agent.Model:
		u.modelEvent(ev)
	case agent.Answered:
		u.answered(ev.Answer)
	case agent.Calling:
		t.calls = append(t.calls, liveCall{id: ev.Call, line: callLine(ev.Name, ev.Arguments, ev.Needs), began: u.now, diff: ev.Diff})
	case agent.Output:
		if i := t.call(ev.Call); i >= 0 {
			c := &t.calls[i]
			c.output += ev.Text
			if len(c.output) > 2*liveOutput {
				c.output = strings.ToValidUTF8(c.output[len(c.output)-liveOutput:], "")
			}
		}
	case agent.Called:
		u.called(ev.Effect)
	case agent.Steered:
		u.print(block{kind: blockUser, head: said(ev.Text)})
	case agent.Compacted:
		u.print(compactedBlock(ev.Compaction))
	case agent.Guarded:
		kind := blockWarning
		if ev.Stop {
			kind = blockError
		}
		if ev.Wait > 0 {
			t.until, t.attempt, t.cause = u.now.Add(ev.Wait), 0, cmp.Or(oneLine(ev.Message), "waiting for the rate limiter")
			return
		}
		u.print(block{kind: kind, head: ev.Message})
	case agent.Warning:
		u.print(block{kind: blockWarning, head: ev.Text})
	case agent.Ended:
		t.ended = &ev
	}
}

func (t *running) call(id string) int {
	return slices.IndexFunc(t.calls, func(c liveCall) bool { return c.id == id })
}

// modelEvent takes an event of the model's stream in.
func (u *ui) modelEvent(ev agent.Model) {
	t := u.turn
	shown := ev.Purpose == agent.PurposeStep || ev.Purpose == agent.PurposeFinal || ev.Purpose == ""
	switch e := ev.Event.(type) {
	case ninelives.TextDelta:
		if shown {
			u.stream(e.Attempt, false, e.Text)
		}
	case ninelives.RefusalDelta:
		if shown {
			u.stream(e.Attempt, false, e.Text)
		}
	case ninelives.ReasoningDelta:
		if shown {
			u.stream(e.Attempt, true, e.Text)
		}
	case ninelives.ToolCallDelta:
		t.until = time.Time{}
	case ninelives.Discard:
		t.pieces = slices.DeleteFunc(t.pieces, func(p piece) bool { return p.attempt == e.Attempt })
	case ninelives.Notice:
		u.notice(e)
	}
}

// stream takes a piece of text in.
func (u *ui) stream(attempt int, thought bool, text string) {
	t := u.turn
	t.until = time.Time{}
	if text == "" {
		return
	}
	last := len(t.pieces) - 1
	if last < 0 || t.pieces[last].attempt != attempt || t.pieces[last].thought != thought {
		t.pieces = append(t.pieces, piece{attempt, thought, &stream{}})
		last++
	}
	if thought {
		t.pieces[last].stream.source.WriteString(text)
		return
	}
	t.pieces[last].stream.add(text, &u.md, u.columns(), u.paint.on)
}

// notice takes a healing step in: what is waited for goes into the status
// line, all of them are folded into the transcript with the answer.
func (u *ui) notice(n ninelives.Notice) {
	t := u.turn
	switch n.Kind {
	case ninelives.NoticePlan, ninelives.NoticeAttempt:
		if n.Kind == ninelives.NoticeAttempt {
			t.until = time.Time{}
		}
		return
	case ninelives.NoticeFault:
		t.fault = n.Fault
	case ninelives.NoticeWait:
		t.until, t.attempt = u.now.Add(n.Wait), n.Attempt
		t.cause = cmp.Or(faultCause(cmp.Or(n.Fault, t.fault), n.Candidate), oneLine(n.Text))
	}
	t.healing = append(t.healing, oneLine(noticeLine(n)))
	if len(t.healing) > 200 {
		t.healing = append(t.healing[:100:100], t.healing[101:]...)
	}
}

// causes say a class of faults in words, before "by" or "from" a provider.
var causes = map[ninelives.Class]string{
	ninelives.ClassRateLimit:     "rate limited by",
	ninelives.ClassBilling:       "no credit left at",
	ninelives.ClassAuth:          "key refused by",
	ninelives.ClassOverloaded:    "overloaded:",
	ninelives.ClassTimeout:       "too slow:",
	ninelives.ClassNetwork:       "no connection to",
	ninelives.ClassModelNotFound: "no such model at",
	ninelives.ClassContextLength: "context too long for",
	ninelives.ClassContentFilter: "filtered by",
	ninelives.ClassRefusal:       "declined by",
	ninelives.ClassFormat:        "request refused by",
	ninelives.ClassStreamBroken:  "broken answer from",
	ninelives.ClassEmpty:         "empty answer from",
	ninelives.ClassTruncated:     "cut answer from",
	ninelives.ClassInvalidOutput: "malformed answer from",
	ninelives.ClassUnknown:       "failed:",
}

// faultCause says in a few words whose fault it is: "rate limited by anthropic".
func faultCause(f *ninelives.Fault, candidate string) string {
	if f == nil {
		return ""
	}
	who, _, _ := strings.Cut(cmp.Or(f.Candidate, candidate), "/")
	if who == "" {
		return strings.ReplaceAll(string(f.Class), "_", " ")
	}
	return cmp.Or(causes[f.Class], string(f.Class)+":") + " " + oneLine(who)
}

// noticeLine says a healing step in a line.
func noticeLine(n ninelives.Notice) string {
	switch n.Kind {
	case ninelives.NoticeFault:
		if n.Fault != nil {
			return "✗ " + n.Fault.Error()
		}
	case ninelives.NoticeFailover:
		return "→ asking " + n.Next + " next: " + n.Text
	case ninelives.NoticeRetry:
		return "↻ asking " + n.Candidate + " again: " + n.Text
	case ninelives.NoticeRepair:
		if n.Repair != nil {
			return "⚒ changing the request (" + n.Repair.String() + "): " + n.Text
		}
	}
	return "· " + cmp.Or(n.Text, string(n.Kind))
}

// answered takes an accepted answer in: it takes the place of what was streamed.
func (u *ui) answered(a agent.Answer) {
	t := u.turn
	t.until = time.Time{}
	if a.Purpose == agent.PurposeCompact || a.Purpose == agent.PurposeRemember {
		return
	}
	pieces := t.pieces
	t.pieces = nil
	u.printHealing()
	if text := a.Message.Reasoning(); strings.TrimSpace(text) != "" {
		u.print(thought(text))
	}
	if text := a.Message.Text() + a.Message.Refusal(); strings.TrimSpace(text) != "" {
		b := block{kind: blockAnswer, head: text}
		if s := streamed(pieces, text); s != nil && s.width == u.columns() {
			u.printed(b, s.whole(&u.md)) // most of it is rendered already
		} else {
			u.print(b)
		}
	}
	if a.Finish == ninelives.FinishLength {
		u.print(block{kind: blockWarning, head: "the answer is cut at its length limit: it is not whole"})
	}
	for _, w := range a.Warnings {
		u.print(block{kind: blockWarning, head: w})
	}
}

// streamed finds the piece that is this text.
func streamed(pieces []piece, text string) *stream {
	for _, p := range pieces {
		if !p.thought && p.stream.source.String() == text {
			return p.stream
		}
	}
	return nil
}

func (u *ui) printHealing() {
	t := u.turn
	if len(t.healing) == 0 {
		return
	}
	first := strings.TrimLeft(t.healing[0], "✗→↻⚒· ")
	head := first
	if n := len(t.healing); n > 1 {
		head = fmt.Sprintf("%s (Ctrl-O): %s", plural(n, "healing step"), first)
	}
	u.print(block{kind: blockHealing, head: head, body: strings.Join(t.healing, "\n")})
	t.healing, t.fault = nil, nil
}

// thought is a block of reasoning.
func thought(text string) block {
	return block{kind: blockThought, head: plural(len(strings.Fields(text)), "word") + " of reasoning (Ctrl-O)", body: clip(text)}
}

// called takes the end of a call in.
func (u *ui) called(e agent.Effect) {
	t := u.turn
	b := block{kind: blockCall, head: callLine(e.Name, nil, nil), diff: clip(e.Diff), failed: e.Result.IsError || e.Unknown}
	if i := t.call(e.Call); i >= 0 {
		c := t.calls[i]
		t.calls = slices.Delete(t.calls, i, i+1)
		b.head = c.line
		if b.diff == "" && !b.failed && e.Ran {
			b.diff = clip(c.diff)
		}
	}
	text := e.Result.Text()
	var notes []string
	if e.Summary != "" {
		notes = append(notes, oneLine(e.Summary))
	}
	switch {
	case e.Unknown:
		notes = append(notes, "cut off: nobody can say whether it had its effect")
	case !e.Ran && e.Result.IsError:
		notes = append(notes, "did not run")
	case e.Took >= 100*time.Millisecond:
		notes = append(notes, brief(e.Took))
	}
	b.note = strings.Join(notes, ", ")
	if b.diff == "" || b.failed {
		b.body = clip(text)
	}
	if !b.failed && strings.TrimSpace(text) == strings.TrimSpace(e.Summary) {
		b.body = ""
	}
	u.print(b)
}

// callLine says a call in a line: the tool and what it touches.
func callLine(name string, args []byte, needs []tool.Need) string {
	var targets []string
	for _, n := range needs {
		if t := oneLine(n.Target); t != "" && !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	if len(targets) == 0 {
		targets = argument(args)
	}
	return strings.TrimSpace(oneLine(name) + " " + cut(strings.Join(targets, ", "), 400))
}

// argument finds the argument that says most of a call.
func argument(args []byte) []string {
	var values map[string]any
	if json.Unmarshal(args, &values) != nil {
		return nil
	}
	for _, name := range []string{"command", "path", "file", "pattern", "query", "url", "prompt", "task", "name"} {
		if s, ok := values[name].(string); ok && s != "" {
			return []string{oneLine(s)}
		}
	}
	return nil
}

func compactedBlock(c agent.Compaction) block {
	why := map[string]string{"threshold": "the window is nearly full", "overflow": "the provider said it is too long",
		"smaller_window": "the next model's window is smaller", "asked": "you asked for it"}[c.Why]
	why = cmp.Or(why, oneLine(c.Why))
	if c.Strike {
		return block{kind: blockNote, head: fmt.Sprintf("the context was not made smaller: a summary would have saved too little (%s tokens)", count(c.Before))}
	}
	before, after := tokens(c.Before), tokens(c.After)
	if before == after {
		before, after = count(c.Before), count(c.After)
	}
	if c.After >= c.Before {
		return block{kind: blockNote, head: fmt.Sprintf("the context was not made smaller: of its %s tokens nothing can be left out", before)}
	}
	return block{kind: blockNote, head: fmt.Sprintf("the context was made smaller, from %s to %s tokens: %s", before, after, why)}
}

// finished takes the end of a turn in. An error is for what no turn ends in.
func (u *ui) finished(err error) {
	t := u.turn
	u.turn = nil
	u.scroll = 0
	u.voidPieces(t)
	u.turn = t
	u.printHealing()
	u.turn = nil
	switch {
	case err != nil:
		u.print(block{kind: blockError, head: err.Error()})
		if !t.started && t.typed != "" {
			u.putBack(t.typed)
		}
		return
	case t.ended == nil:
		u.print(block{kind: blockError, head: "the turn ended without saying how"})
		return
	}
	e := t.ended
	switch {
	case e.Reason == agent.ReasonComplete:
	case e.Reason == agent.ReasonCanceled:
		word := "you stopped the turn; what was done stays done"
		if t.dropped > 0 {
			verb, it := "begins", "it"
			if t.dropped > 1 {
				verb, it = "begin", "them"
			}
			word += fmt.Sprintf("; %s that waited %s no turn, but the model will read %s", plural(t.dropped, "message"), verb, it)
		}
		u.print(block{kind: blockWarning, head: word})
	case e.Reason == agent.ReasonRefused:
		u.print(block{kind: blockWarning, head: cmp.Or(e.Message, "the model declined")})
	case u.standing.Failed == nil: // else the offer to go on says it
		u.print(block{kind: blockError, head: endLine(&e.End)})
	}
	if len(e.Changed) > 0 {
		u.print(block{kind: blockNote, head: fmt.Sprintf("%s changed: %s (/undo takes it back)", plural(len(e.Changed), "file"), cut(oneLine(strings.Join(e.Changed, ", ")), 200))})
	}
}

// voidPieces shows what was streamed and never accepted as what it is.
func (u *ui) voidPieces(t *running) {
	for _, p := range t.pieces {
		if text := strings.TrimSpace(p.stream.source.String()); !p.thought && text != "" {
			text, _ = lastLines(text, 40)
			u.print(block{kind: blockVoid, head: text, note: "the text above did not become whole: it is not part of the conversation"})
		}
	}
	for _, c := range t.calls {
		u.print(block{kind: blockCall, head: c.line, note: "cut off", failed: true})
	}
}

// endLine says how a turn ended that did not complete.
func endLine(e *agent.End) string {
	text := oneLine(e.Message)
	if text == "" && e.Fault != nil {
		text = oneLine(e.Fault.Error())
	}
	return cmp.Or(text, "the turn ended: "+strings.ReplaceAll(string(e.Reason), "_", " "))
}
