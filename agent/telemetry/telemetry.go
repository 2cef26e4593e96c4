package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

const scope = "github.com/ninelives-ai/ninelives/agent/telemetry"

// Option sets one thing of the hook.
type Option func(*recorder)

// Content records what was said: the messages, the arguments of calls and
// their results. It may hold secrets and is off by default.
func Content() Option { return func(r *recorder) { r.content = true } }

// New makes a hook that records to the two providers. The hook may be shared by
// agents. The span of a turn is a child of what the turn's context holds, that
// of a subagent's turn a child of the turn that it was started in.
func New(tracers trace.TracerProvider, meters metric.MeterProvider, opts ...Option) (agent.Hook, error) {
	m, err := newMeters(meters.Meter(scope))
	if err != nil {
		return agent.Hook{}, err
	}
	r := &recorder{tracer: tracers.Tracer(scope), meters: m, turns: map[string]*turn{}, chats: map[chatKey]*chat{}, calls: map[callKey]call{}, started: map[string]agent.Started{}}
	for _, o := range opts {
		o(r)
	}
	return agent.Hook{
		Name:        "telemetry",
		TurnStart:   r.turnStart,
		TurnEnd:     r.turnEnd,
		BeforeModel: r.beforeModel,
		AfterModel:  r.afterModel,
		BeforeTool:  r.beforeTool,
		AfterTool:   r.afterTool,
		Stream:      r.stream,
		Event:       r.event,
	}, nil
}

// recorder holds the spans that are open.
type recorder struct {
	tracer  trace.Tracer
	meters  meters
	content bool

	mu    sync.Mutex
	turns map[string]*turn // by session
	chats map[chatKey]*chat
	calls map[callKey]call
	// started is what was told of a turn before its span begins, by session.
	started map[string]agent.Started
}

type turn struct {
	ctx   context.Context // with the span
	span  trace.Span
	model string // that was asked for
}

type callKey struct{ session, id string }

type call struct {
	span  trace.Span
	began time.Time
}

func (r *recorder) turnStart(ctx context.Context, s *agent.State, input string) agent.Intervention {
	session, number := agent.Whose(ctx)
	attrs := []attribute.KeyValue{
		keyOperation.String(opAgent), keyAgent.String(agentName), keyConversation.String(session), keyTurn.Int(number),
	}
	if r.content {
		attrs = append(attrs, keyInputMessages.String(content("", ninelives.UserText(input))))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s != nil {
		if mode := s.Mode(); mode != "" {
			attrs = append(attrs, keyMode.String(string(mode)))
		}
		if parent := s.Opening().Parent; parent != "" && r.turns[parent] != nil {
			ctx = r.turns[parent].ctx
		}
	}
	begun := r.started[session]
	delete(r.started, session)
	if begun.Resumes {
		attrs = append(attrs, keyResumes.Bool(true))
	}
	_, model := ofCandidate(begun.Model)
	if model != "" {
		attrs = append(attrs, keyRequestModel.String(model))
	}
	r.drop(session)
	ctx, span := r.tracer.Start(ctx, opAgent+" "+agentName, trace.WithAttributes(attrs...))
	r.turns[session] = &turn{ctx: ctx, span: span, model: model}
	return agent.Intervention{}
}

// drop ends what is open of a session and was never told to have ended.
func (r *recorder) drop(session string) {
	for key, c := range r.calls {
		if key.session == session {
			c.span.End()
			delete(r.calls, key)
		}
	}
	for key, c := range r.chats {
		if key.session == session && key.purpose != agent.PurposeRemember { // memory work outlives turns
			c.span.End()
			delete(r.chats, key)
		}
	}
	if t := r.turns[session]; t != nil {
		t.span.End()
		delete(r.turns, session)
	}
}

func (r *recorder) turnEnd(ctx context.Context, _ *agent.State, e agent.Ended) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.meters.turns.Add(ctx, 1, metric.WithAttributes(keyReason.String(string(e.Reason))))
	if t := r.turns[e.Session]; t != nil {
		t.span.SetAttributes(
			keyReason.String(string(e.Reason)), keySteps.Int(e.Steps), keyCalls.Int(e.Calls),
			keyInputTokens.Int(e.Usage.TotalInput()), keyOutputTokens.Int(e.Usage.TotalOutput()), keyCost.Float64(e.Cost))
		if e.Limit != "" {
			t.span.SetAttributes(keyLimit.String(withoutPath(e.Limit)))
		}
		if r.content {
			t.span.SetAttributes(keyOutputMessages.String(content("", ninelives.AssistantText(e.Text))))
		}
		switch {
		case e.Fault != nil:
			fail(t.span, string(e.Fault.Class))
		case e.Reason.Failed():
			fail(t.span, string(e.Reason))
		}
	}
	r.drop(e.Session)
}

func (r *recorder) beforeTool(ctx context.Context, c *tool.Call, spec tool.Spec) agent.Intervention {
	attrs := []attribute.KeyValue{
		keyOperation.String(opTool), keyToolName.String(spec.Name), keyToolType.String("function"),
		keyToolCall.String(c.ID), keyConversation.String(c.Session),
	}
	if r.content {
		attrs = append(attrs, keyToolArguments.String(string(c.Arguments)))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.turns[c.Session]; t != nil {
		ctx = t.ctx
	}
	_, span := r.tracer.Start(ctx, opTool+" "+spec.Name, trace.WithAttributes(attrs...))
	r.calls[callKey{c.Session, c.ID}] = call{span: span, began: time.Now()}
	return agent.Intervention{}
}

func (r *recorder) afterTool(ctx context.Context, c *tool.Call, e agent.Effect) agent.Intervention {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := callKey{c.Session, c.ID}
	open, ok := r.calls[key]
	if !ok {
		return agent.Intervention{}
	}
	delete(r.calls, key)
	measured := []attribute.KeyValue{keyToolName.String(e.Name)}
	open.span.SetAttributes(keyRan.Bool(e.Ran))
	if e.Unknown {
		open.span.SetAttributes(keyUnknown.Bool(true))
	}
	if r.content {
		open.span.SetAttributes(keyToolResult.String(e.Result.Text()))
	}
	if e.Result.IsError {
		fail(open.span, "tool_error")
		measured = append(measured, keyErrorType.String("tool_error"))
	}
	r.meters.tool.Record(ctx, time.Since(open.began).Seconds(), metric.WithAttributes(measured...))
	open.span.End()
	return agent.Intervention{}
}

// event makes what happened to a turn events of its span.
func (r *recorder) event(ctx context.Context, e agent.Event) {
	session, _ := agent.Whose(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := e.(agent.Started); ok {
		r.started[session] = e
		return
	}
	t := r.turns[session]
	if t == nil {
		return
	}
	switch e := e.(type) {
	case agent.Compacted:
		t.span.AddEvent("ninelives.compaction", trace.WithAttributes(
			keyTier.Int(e.Tier), keyWhy.String(e.Why), keyBefore.Int(e.Before), keyAfter.Int(e.After), keyStrike.Bool(e.Strike)))
	case agent.Guarded:
		t.span.AddEvent("ninelives.guard", trace.WithAttributes(
			keyLimit.String(withoutPath(e.Limit)), keyStop.Bool(e.Stop), keyWait.Float64(e.Wait.Seconds())))
	}
}

func fail(span trace.Span, kind string) {
	span.SetAttributes(keyErrorType.String(kind))
	span.SetStatus(codes.Error, kind)
}
