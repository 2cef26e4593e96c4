package acp

import (
	"context"
	"slices"

	sdk "github.com/coder/acp-go-sdk"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
)

// replay shows the editor what was said and done in the session so far. Turns
// that the model has forgotten (/rewind, a refusal) are left out: the editor
// shows what the model knows.
func (s *session) replay(ctx context.Context) error {
	if s.History == nil {
		return nil
	}
	entries, err := s.History(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	busy := s.prompt != nil
	if !busy {
		s.calls = map[string]bool{}
	}
	s.mu.Unlock()
	if busy {
		return errBusy
	}
	r := recall{s: s, rewound: forgotten(entries), inputs: map[int]agent.Input{}}
	for _, e := range entries {
		r.show(e)
	}
	r.said(r.waiting()...)
	if tasks := s.Session.State().Todo(); len(tasks) > 0 {
		s.plan(tasks)
	}
	return nil
}

// forgotten are the turns that were rewound.
func forgotten(entries []agent.Entry) map[int]bool {
	gone := map[int]bool{}
	seen := map[int]bool{}
	for _, e := range entries {
		switch e := e.(type) {
		case agent.Start:
			seen[e.Turn] = true
		case agent.Rewind:
			for turn := range seen {
				if turn >= e.Turn {
					gone[turn] = true
				}
			}
		}
	}
	return gone
}

// recall goes through entries, oldest first.
type recall struct {
	s       *session
	rewound map[int]bool
	hidden  bool // the present turn is one of those
	inputs  map[int]agent.Input
	after   bool // the last that was shown is an answer's text
}

func (r *recall) show(e agent.Entry) {
	switch e := e.(type) {
	case agent.Input:
		r.inputs[e.Number] = e
		return
	case agent.Start:
		r.hidden = r.rewound[e.Turn]
		r.said(e.Inputs...)
		return
	case agent.Answer:
		r.said(e.Inputs...)
		if !r.hidden && shows(e.Purpose) {
			r.answer(e.Message)
		}
		return
	case agent.Stopped:
		r.said(slices.DeleteFunc(r.waiting(), func(n int) bool { return n > e.Through })...)
		return
	case agent.Undo:
		r.note(undoText(e))
		return
	}
	if r.hidden {
		return
	}
	switch e := e.(type) {
	case agent.Effect:
		r.s.announce(e.Call, e.Name, nil, nil)
		r.s.finished(e)
		r.after = false
	case agent.Compaction:
		if e.Tier > 0 && e.After < e.Before {
			r.note(compactedText(e))
		}
	case agent.End:
		if e.Message != "" && e.Reason != agent.ReasonComplete {
			r.note(e.Message)
		}
	}
}

func (r *recall) note(text string) {
	r.s.think(text)
	r.after = false
}

// waiting are the inputs that no turn has taken up, in order.
func (r *recall) waiting() (numbers []int) {
	for n := range r.inputs {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

// said shows inputs of the user where they were taken up.
func (r *recall) said(numbers ...int) {
	for _, n := range numbers {
		in, ok := r.inputs[n]
		delete(r.inputs, n)
		if !ok || in.Note || r.hidden {
			continue
		}
		for _, p := range in.Message.Parts {
			if b, ok := block(p); ok {
				r.s.update(sdk.UpdateUserMessage(b))
			}
		}
		r.after = false
	}
}

// answer shows an answer and its calls.
func (r *recall) answer(m ninelives.Message) {
	if text := m.Reasoning(); text != "" {
		r.s.update(sdk.UpdateAgentThoughtText(text))
		r.after = false
	}
	for _, text := range answerTexts(m) {
		if r.after {
			text = "\n\n" + text
		}
		r.s.update(sdk.UpdateAgentMessageText(text))
		r.after = true
	}
	for _, c := range m.ToolCalls() {
		r.s.announce(c.ID, c.Name, []byte(c.Arguments), nil)
		r.after = false
	}
}

// block is a part of the user's message as it was sent.
func block(p ninelives.Part) (sdk.ContentBlock, bool) {
	switch p := p.(type) {
	case ninelives.Text:
		return sdk.TextBlock(p.Text), p.Text != ""
	case ninelives.Image:
		if len(p.Data) == 0 {
			return sdk.TextBlock("[picture " + oneLine(p.URL) + "]"), true
		}
		return sdk.ImageBlock(encoded(p.Data), p.MediaType), true
	case ninelives.File:
		return sdk.TextBlock("[file " + oneLine(p.Name) + "]"), true
	}
	return sdk.ContentBlock{}, false
}
