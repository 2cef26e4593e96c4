package acp

import (
	"context"
	"errors"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// session is one conversation of the editor's.
type session struct {
	Handle
	server *server
	id     sdk.SessionId
	dir    string

	mu      sync.Mutex // guards what follows
	prompt  *prompt    // the one that is being answered; nil if none is
	closing bool
	closed  chan struct{} // closed when the session is; nil until it is being closed
	failure error         // of closing
	calls   map[string]bool
	model   string
	notices []string
}

// prompt is what the user has sent and waits for.
type prompt struct {
	params    sdk.PromptRequest
	stop      context.CancelFunc // of a command; nil for a turn
	cancelled bool
	over      chan struct{}
}

// errBusy: one prompt at a time.
var errBusy = &sdk.RequestError{Code: -32600, Message: "the session is still at the prompt before: wait for its end, or cancel it"}

// admit takes a prompt up. A cancel that comes after it finds it here, whether
// its turn has begun or not.
func (s *session) admit(params sdk.PromptRequest) (handler, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return nil, nil, agent.ErrClosed
	case s.prompt != nil:
		return nil, nil, errBusy
	}
	p := &prompt{params: params, over: make(chan struct{})}
	s.prompt = p
	return func(ctx context.Context) (result any, then func(), err error) {
		defer s.done(p)
		result, err = s.answer(p)
		return result, nil, err
	}, s.cancel, nil
}

// done lets the next prompt in, before the answer to this one is sent.
func (s *session) done(p *prompt) {
	s.mu.Lock()
	s.prompt = nil
	s.mu.Unlock()
	close(p.over)
}

// cancel stops what the session is at.
func (s *session) cancel() {
	s.mu.Lock()
	p := s.prompt
	if p == nil {
		s.mu.Unlock()
		return
	}
	p.cancelled = true
	stop := p.stop
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	s.Session.Stop() // a turn that has not begun yet is stopped when it has
}

// isCancelled reports that the user wants no more of it.
func (s *session) isCancelled(p *prompt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.cancelled
}

// answer carries a prompt out: a command, or a turn.
func (s *session) answer(p *prompt) (any, error) {
	if c, rest := command(p.params.Prompt); c != nil {
		return s.command(p, c, rest)
	}
	msg, err := message(p.params.Prompt, s.dir)
	if err != nil {
		return nil, err
	}
	return s.turn(p, s.Session.Turn(s.server.base, msg))
}

// close ends the session and what was opened for it, once.
func (s *session) close() error {
	s.mu.Lock()
	if s.closing {
		closed := s.closed
		s.mu.Unlock()
		<-closed
		return s.failure
	}
	s.closing, s.closed = true, make(chan struct{})
	p := s.prompt
	s.mu.Unlock()
	if p != nil {
		s.cancel()
		<-p.over
	}
	s.failure = s.Session.Close()
	if s.Handle.Close != nil {
		s.failure = errors.Join(s.failure, s.Handle.Close())
	}
	close(s.closed)
	return s.failure
}

// offer tells the editor what can be typed.
func (s *session) offer() {
	s.update(sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{AvailableCommands: available()}})
}

// The answers to a question.
const (
	optionOnce   = "once"
	optionAlways = "always"
	optionNo     = "no"
)

// approve asks the user for a call. A question that cannot be asked, or is not
// answered, is a no.
func (s *session) approve(ctx context.Context, q agent.Question) agent.Decision {
	content := diffContent(q.Diff, s.dir)
	call := q.Call
	if q.Agent != "" { // its calls are no calls of this session
		call = q.Session + "/" + q.Call
		content = append(content, textContent("subagent: "+oneLine(q.Agent)))
	}
	if q.Verdict.Why != "" {
		content = append(content, textContent(oneLine(q.Verdict.Why)))
	}
	options := []sdk.PermissionOption{{OptionId: optionOnce, Name: "Allow", Kind: sdk.PermissionOptionKindAllowOnce}}
	if q.Verdict.Offer != nil {
		options = append(options, sdk.PermissionOption{OptionId: optionAlways, Name: "Always allow " + ruleText(*q.Verdict.Offer) + " in this session", Kind: sdk.PermissionOptionKindAllowAlways})
	}
	options = append(options, sdk.PermissionOption{OptionId: optionNo, Name: "Reject", Kind: sdk.PermissionOptionKindRejectOnce})
	var got sdk.RequestPermissionResponse
	err := s.server.conn.call(ctx, sdk.ClientMethodSessionRequestPermission, sdk.RequestPermissionRequest{
		SessionId: s.id,
		Options:   options,
		ToolCall: sdk.ToolCallUpdate{
			ToolCallId: sdk.ToolCallId(call),
			Title:      sdk.Ptr(title(q.Name, q.Arguments)),
			Kind:       sdk.Ptr(kind(q.Name, q.Needs)),
			Status:     sdk.Ptr(sdk.ToolCallStatusPending),
			Content:    content,
			Locations:  locations(s.dir, q.Arguments, q.Needs, q.Diff),
			RawInput:   rawInput(q.Arguments),
		},
	}, &got)
	if err != nil {
		return agent.Decision{Reply: agent.ReplyNo, Text: "the user could not be asked: " + oneLine(err.Error())}
	}
	if got.Outcome.Selected == nil { // which goes with a cancel
		s.cancel()
		return agent.Decision{Reply: agent.ReplyNo}
	}
	reply := agent.ReplyNo
	switch got.Outcome.Selected.OptionId {
	case optionOnce:
		reply = agent.ReplyOnce
	case optionAlways:
		if q.Verdict.Offer != nil {
			reply = agent.ReplyAlways
		}
	}
	s.mu.Lock()
	known := s.calls[call]
	s.mu.Unlock()
	if known && reply != agent.ReplyNo {
		s.update(sdk.UpdateToolCall(sdk.ToolCallId(call), sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
	}
	return agent.Decision{Reply: reply}
}

// ruleText says what a rule covers.
func ruleText(r tool.Rule) string {
	var words []string
	for _, w := range []string{r.Tool, r.Target} {
		if w != "" {
			words = append(words, oneLine(w))
		}
	}
	if len(words) == 0 {
		return "everything"
	}
	return strings.Join(words, " ")
}
