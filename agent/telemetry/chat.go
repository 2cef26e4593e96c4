package telemetry

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
)

// chatKey tells the requests apart that may be under way together: a session
// has one for each purpose.
type chatKey struct {
	session string
	purpose agent.Purpose
}

type chat struct {
	span    trace.Span
	request string // the model that was asked for
	began   time.Time
	last    time.Time       // of the last piece; zero before the first
	waits   []time.Duration // for each piece; their model is known at the end
}

// maxWaits bounds what is kept of a stream: more than its events may be.
const maxWaits = 20_000

func (r *recorder) beforeModel(ctx context.Context, p agent.Purpose, req *ninelives.Request) {
	session, _ := agent.Whose(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := req.Model
	if t := r.turns[session]; t != nil {
		ctx = t.ctx
		if asked == "" {
			asked = t.model
		}
	}
	name := opChat
	attrs := []attribute.KeyValue{keyOperation.String(opChat), keyPurpose.String(string(p)), keyConversation.String(session)}
	if asked != "" {
		name += " " + asked
		attrs = append(attrs, keyRequestModel.String(asked))
	}
	if r.content {
		attrs = append(attrs, keyInputMessages.String(content("", req.Messages...)))
	}
	key := chatKey{session, p}
	if old := r.chats[key]; old != nil {
		old.span.End() // its end was never told
	}
	_, span := r.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	r.chats[key] = &chat{span: span, request: asked, began: time.Now()}
}

func (r *recorder) afterModel(ctx context.Context, a agent.Answer, err error) {
	session, _ := agent.Whose(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	key := chatKey{session, a.Purpose}
	c := r.chats[key]
	if c == nil {
		return
	}
	delete(r.chats, key)
	common := []attribute.KeyValue{keyOperation.String(opChat)}
	add := func(k attribute.Key, value string) {
		if value != "" {
			common = append(common, k.String(value))
		}
	}
	provider, model := ofCandidate(a.Candidate)
	add(keyRequestModel, c.request)
	add(keyProvider, provider)
	add(keyResponseModel, model)
	c.span.SetAttributes(common...)
	if c.request == "" && model != "" {
		c.span.SetName(opChat + " " + model)
	}
	of := metric.WithAttributes(common...)
	for i, wait := range c.waits {
		if i == 0 {
			r.meters.firstChunk.Record(ctx, wait.Seconds(), of)
			continue
		}
		r.meters.perChunk.Record(ctx, wait.Seconds(), of)
	}
	if err == nil {
		r.answered(ctx, c.span, a, common)
	} else {
		kind := errorType(err)
		fail(c.span, kind)
		add(keyErrorType, kind)
	}
	r.meters.duration.Record(ctx, time.Since(c.began).Seconds(), metric.WithAttributes(common...))
	c.span.End()
}

// answered records an accepted answer.
func (r *recorder) answered(ctx context.Context, span trace.Span, a agent.Answer, common []attribute.KeyValue) {
	span.SetAttributes(keyFinishReasons.StringSlice([]string{string(a.Finish)}), keyAttempts.Int(a.Attempts))
	if a.IsFallback {
		span.SetAttributes(keyFallback.Bool(true))
	}
	if a.Cost > 0 {
		span.SetAttributes(keyCost.Float64(a.Cost))
		r.meters.cost.Add(ctx, a.Cost, metric.WithAttributes(common...))
	}
	tokens := func(field ninelives.UsageField, n int, kind string, key attribute.Key) {
		if !a.Usage.Has(field) {
			return // a count that was not given is not zero
		}
		span.SetAttributes(key.Int(n))
		if kind != "" {
			of := append(common[:len(common):len(common)], keyTokenType.String(kind))
			r.meters.tokens.Record(ctx, int64(n), metric.WithAttributes(of...))
		}
	}
	tokens(ninelives.UsageInput, a.Usage.TotalInput(), "input", keyInputTokens)
	tokens(ninelives.UsageOutput, a.Usage.TotalOutput(), "output", keyOutputTokens)
	tokens(ninelives.UsageCached, a.Usage.Cached, "", keyCachedTokens)
	tokens(ninelives.UsageReasoning, a.Usage.Reasoning, "", keyReasoningTokens)
	if r.content {
		span.SetAttributes(keyOutputMessages.String(content(a.Finish, a.Message)))
	}
}

// stream takes the time of pieces, and makes healing steps events of the span.
func (r *recorder) stream(ctx context.Context, m agent.Model) {
	session, _ := agent.Whose(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.chats[chatKey{session, m.Purpose}]
	if c == nil {
		return
	}
	switch ev := m.Event.(type) {
	case ninelives.TextDelta, ninelives.ReasoningDelta, ninelives.RefusalDelta, ninelives.ToolCallDelta:
		c.piece(time.Now())
	case ninelives.Notice:
		r.meters.healing.Add(ctx, 1, metric.WithAttributes(stepOf(ev)...))
		c.span.AddEvent("ninelives.healing", trace.WithAttributes(healingOf(ev)...))
	case ninelives.Discard:
		c.span.AddEvent("ninelives.discard", trace.WithAttributes(keyAttempt.Int(ev.Attempt)))
	}
}

func (c *chat) piece(now time.Time) {
	since := c.last
	if since.IsZero() {
		since = c.began
		c.span.SetAttributes(keyFirstChunk.Float64(now.Sub(since).Seconds()))
	}
	c.last = now
	if len(c.waits) < maxWaits {
		c.waits = append(c.waits, now.Sub(since))
	}
}

// stepOf is what kind of step it was, and why.
func stepOf(n ninelives.Notice) []attribute.KeyValue {
	attrs := []attribute.KeyValue{keyHealing.String(string(n.Kind))}
	if n.Fault != nil {
		attrs = append(attrs, keyFault.String(string(n.Fault.Class)))
	}
	return attrs
}

// healingOf describes a step. What providers wrote is left out: it may quote
// what was said.
func healingOf(n ninelives.Notice) []attribute.KeyValue {
	attrs := stepOf(n)
	if n.Attempt > 0 {
		attrs = append(attrs, keyAttempt.Int(n.Attempt))
	}
	if n.Candidate != "" {
		attrs = append(attrs, keyCandidate.String(n.Candidate))
	}
	if n.Next != "" {
		attrs = append(attrs, keyNext.String(n.Next))
	}
	if n.Wait > 0 {
		attrs = append(attrs, keyWait.Float64(n.Wait.Seconds()))
	}
	if n.Fault != nil && n.Fault.Status > 0 {
		attrs = append(attrs, keyStatusCode.Int(n.Fault.Status))
	}
	return attrs
}

// errorType is error.type: the class of a fault, its status where the class is
// not known, or the conventions' word for neither.
func errorType(err error) string {
	var fault *ninelives.Fault
	switch {
	case errors.As(err, &fault) && fault.Class == ninelives.ClassUnknown && fault.Status > 0:
		return strconv.Itoa(fault.Status)
	case fault != nil:
		return string(fault.Class)
	case errors.Is(err, context.Canceled):
		return string(ninelives.ClassCanceled)
	}
	return "_OTHER"
}
