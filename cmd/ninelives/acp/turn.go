package acp

import (
	"errors"
	"iter"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// turn carries out a turn and tells the editor of it.
func (s *session) turn(p *prompt, events iter.Seq2[agent.Event, error]) (any, error) {
	s.mu.Lock()
	notices := s.notices
	s.notices = nil
	s.mu.Unlock()
	for _, n := range notices {
		s.think(n)
	}
	t := &teller{s: s, outputs: map[string]*output{}}
	defer t.end()
	for ev, err := range events {
		switch {
		case errors.Is(err, agent.ErrNothing):
			return s.say("There is nothing to go on with.")
		case err != nil:
			return nil, err
		}
		if s.isCancelled(p) {
			s.Session.Stop()
		}
		if e, ok := ev.(agent.Ended); ok {
			return s.ended(e)
		}
		t.tell(ev)
	}
	return nil, ninelives.ErrNoEnd
}

// say answers a prompt with a text of the program's.
func (s *session) say(text string) (any, error) {
	s.update(sdk.UpdateAgentMessageText(text))
	return sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}, nil
}

// teller makes updates of the events of one turn.
type teller struct {
	s       *session
	thought bool // something of the present attempt was shown
	after   bool // the last that was shown is an answer's text

	mu      sync.Mutex // guards what follows
	outputs map[string]*output
}

func (t *teller) tell(ev agent.Event) {
	s := t.s
	switch e := ev.(type) {
	case agent.Model:
		t.model(e)
	case agent.Answered:
		t.answered(e.Answer)
	case agent.Calling:
		t.calling(e)
	case agent.Output:
		t.output(e)
	case agent.Called:
		t.called(e.Effect)
	case agent.Steered:
		s.update(sdk.UpdateUserMessageText(e.Text))
		t.after = false
	case agent.Compacted:
		t.note(compactedText(e.Compaction))
	case agent.Guarded:
		if !e.Stop { // a stop is how the turn ends
			t.note(e.Message)
		}
	case agent.Warning:
		t.note(e.Text)
	}
}

// note shows something that the program says.
func (t *teller) note(text string) {
	if text = strings.TrimSpace(text); text != "" {
		t.s.think(text)
		t.after = false
	}
}

// model shows thoughts as they come, and why an answer takes long. Text waits
// until it stands.
func (t *teller) model(e agent.Model) {
	shown := shows(e.Purpose)
	switch m := e.Event.(type) {
	case ninelives.ReasoningDelta:
		if shown && m.Text != "" {
			t.s.update(sdk.UpdateAgentThoughtText(m.Text))
			t.thought, t.after = true, false
		}
	case ninelives.Discard:
		if t.thought {
			t.thought = false
			why := "the attempt failed"
			if m.Reason != nil {
				why = m.Reason.Error()
			}
			t.note("what was thought until here is void: " + why)
		}
	case ninelives.Notice:
		switch m.Kind {
		case ninelives.NoticeWait, ninelives.NoticeFailover, ninelives.NoticeRepair, ninelives.NoticeContinue,
			ninelives.NoticeDegraded, ninelives.NoticeTranslate, ninelives.NoticeWarning:
			t.note(m.Text)
		}
	}
}

// shows reports that what is said to this purpose is for the user.
func shows(p agent.Purpose) bool {
	return p == "" || p == agent.PurposeStep || p == agent.PurposeFinal
}

// answered shows an answer that stands: its text, then its calls.
func (t *teller) answered(a agent.Answer) {
	t.thought = false
	if !shows(a.Purpose) {
		return
	}
	for _, text := range answerTexts(a.Message) {
		if t.after {
			text = "\n\n" + text
		}
		t.s.update(sdk.UpdateAgentMessageText(text))
		t.after = true
	}
	for _, c := range a.Message.ToolCalls() {
		t.s.announce(c.ID, c.Name, []byte(c.Arguments), nil)
		t.after = false
	}
}

// answerTexts are what an answer says to the user.
func answerTexts(m ninelives.Message) (texts []string) {
	if text := m.Text(); strings.TrimSpace(text) != "" {
		texts = append(texts, text)
	}
	if text := m.Refusal(); strings.TrimSpace(text) != "" {
		texts = append(texts, text)
	}
	return texts
}

// announce shows a call that is to be made.
func (s *session) announce(id, name string, args []byte, needs []tool.Need) {
	s.mu.Lock()
	known := s.calls[id]
	s.calls[id] = true
	s.mu.Unlock()
	if known {
		return
	}
	s.update(sdk.SessionUpdate{ToolCall: &sdk.SessionUpdateToolCall{
		ToolCallId: sdk.ToolCallId(id), Title: title(name, args), Kind: kind(name, needs), Status: sdk.ToolCallStatusPending,
		Locations: locations(s.dir, args, needs, ""), RawInput: rawInput(args),
	}})
}

func (t *teller) calling(e agent.Calling) {
	s := t.s
	s.announce(e.Call, e.Name, e.Arguments, e.Needs)
	if e.Asked {
		return // the question shows it
	}
	u := sdk.SessionToolCallUpdate{
		ToolCallId: sdk.ToolCallId(e.Call), Status: sdk.Ptr(sdk.ToolCallStatusInProgress),
		Locations: locations(s.dir, e.Arguments, e.Needs, e.Diff), Content: diffContent(e.Diff, s.dir),
	}
	s.update(sdk.SessionUpdate{ToolCallUpdate: &u})
}

// How what a running call writes is shown: at most every pace, of it no more
// than the last liveOutput bytes, because each update has all that is shown.
const (
	pace       = 100 * time.Millisecond
	liveOutput = 16 << 10
)

// output is what a running call has written.
type output struct {
	text  string
	cut   bool
	timer *time.Timer
}

func (t *teller) output(e agent.Output) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.outputs[e.Call]
	if o == nil {
		o = &output{}
		t.outputs[e.Call] = o
	}
	o.text += e.Text
	if over := len(o.text) - liveOutput; over > 0 {
		for over < len(o.text) && !utf8.RuneStart(o.text[over]) {
			over++
		}
		o.text, o.cut = strings.Clone(o.text[over:]), true
	}
	if o.timer == nil {
		o.timer = time.AfterFunc(pace, func() { t.flush(e.Call, o) })
	}
}

// flush shows what a call has written, if it still runs.
func (t *teller) flush(call string, o *output) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.outputs[call] != o {
		return
	}
	o.timer = nil
	text := o.text
	if o.cut {
		text = "[…]\n" + text
	}
	t.s.update(sdk.UpdateToolCall(sdk.ToolCallId(call), sdk.WithUpdateContent([]sdk.ToolCallContent{fenced(text)})))
}

// quiet ends the showing of a call's output.
func (t *teller) quiet(call string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.outputs[call]; o != nil && o.timer != nil {
		o.timer.Stop()
	}
	delete(t.outputs, call)
}

func (t *teller) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.outputs {
		if o.timer != nil {
			o.timer.Stop()
		}
	}
	clear(t.outputs)
}

func (t *teller) called(e agent.Effect) {
	t.quiet(e.Call)
	t.s.announce(e.Call, e.Name, nil, nil)
	t.s.finished(e)
	if e.Name == "todo" && !e.Result.IsError {
		t.s.plan(t.s.Session.State().Todo())
	}
	t.after = false
}

// finished shows what came of a call.
func (s *session) finished(e agent.Effect) {
	s.update(sdk.UpdateToolCall(sdk.ToolCallId(e.Call), sdk.WithUpdateStatus(status(e)),
		sdk.WithUpdateContent(effectContent(e, s.dir)), sdk.WithUpdateLocations(locations(s.dir, nil, nil, e.Diff))))
}

// plan shows the model's list of tasks.
func (s *session) plan(tasks []tool.Task) {
	entries := []sdk.PlanEntry{}
	for _, t := range tasks {
		entries = append(entries, sdk.PlanEntry{
			Content: oneLine(t.Content), Priority: sdk.PlanEntryPriorityMedium, Status: sdk.PlanEntryStatus(t.Status),
		})
	}
	s.update(sdk.UpdatePlan(entries...))
}
