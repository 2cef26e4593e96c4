package gateway

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	ninelives "github.com/ninelives-ai/ninelives"
)

const traceScope = "github.com/ninelives-ai/ninelives/gateway"

// The names of OpenTelemetry's GenAI conventions, and our own for what those
// have no word for.
const (
	keyOperation     = attribute.Key("gen_ai.operation.name")
	keyProvider      = attribute.Key("gen_ai.provider.name")
	keyRequestModel  = attribute.Key("gen_ai.request.model")
	keyResponseModel = attribute.Key("gen_ai.response.model")
	keyFirstChunk    = attribute.Key("gen_ai.response.time_to_first_chunk")
	keyInputTokens   = attribute.Key("gen_ai.usage.input_tokens")
	keyOutputTokens  = attribute.Key("gen_ai.usage.output_tokens")
	keyCachedTokens  = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	keyServer        = attribute.Key("server.address")
	keyErrorType     = attribute.Key("error.type")
	keyStatusCode    = attribute.Key("http.response.status_code")

	keyRequestID = attribute.Key("ninelives.request_id")
	keyOutcome   = attribute.Key("ninelives.outcome")
	keyAttempt   = attribute.Key("ninelives.attempt")
	keyAttempts  = attribute.Key("ninelives.attempts")
	keyCandidate = attribute.Key("ninelives.candidate")
	keyNext      = attribute.Key("ninelives.candidate.next")
	keyCost      = attribute.Key("ninelives.cost_usd")
	keyEstimated = attribute.Key("ninelives.cost_estimated")
	keyClient    = attribute.Key("ninelives.client_key")
	keyGone      = attribute.Key("ninelives.client_gone")
	keyLeft      = attribute.Key("ninelives.left")
	keyHealing   = attribute.Key("ninelives.healing")
	keyFault     = attribute.Key("ninelives.fault")
	keyWait      = attribute.Key("ninelives.wait_seconds")
)

// conventional are the providers whose name in the conventions is not ours.
var conventional = map[string]string{
	"gemini":  "gcp.gemini",
	"azure":   "azure.ai.openai",
	"bedrock": "aws.bedrock",
	"mistral": "mistral_ai",
	"xai":     "x_ai",
}

// tracing makes a span of each call and one of each attempt. Without a
// collector it only hands the client's trace context on.
type tracing struct {
	tracer trace.Tracer // nil: nobody looks
	// host finds the server of a candidate by the candidate's name; nil knows none.
	host func(candidate string) string
}

func newTracing(p trace.TracerProvider, host func(candidate string) string) *tracing {
	t := &tracing{host: host}
	if _, nobody := p.(noop.TracerProvider); p != nil && !nobody {
		t.tracer = p.Tracer(traceScope)
	}
	return t
}

var w3c propagation.TraceContext

// begin takes a call's trace context from its headers, and begins its span.
// Without a collector the span is nil, which is of use.
func (t *tracing) begin(ctx context.Context, h http.Header, operation, route, id string) (context.Context, *callSpan) {
	if h.Get("Traceparent") != "" {
		ctx = w3c.Extract(ctx, propagation.HeaderCarrier(h))
	}
	if t.tracer == nil {
		return ctx, nil
	}
	route = label(route)
	ctx, span := t.tracer.Start(ctx, operation+" "+route, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		keyOperation.String(operation), keyRequestModel.String(route), keyRequestID.String(label(id))))
	return ctx, &callSpan{t: t, ctx: ctx, span: span, operation: operation}
}

// inject writes the trace context of a call for a provider, as traceparent and
// tracestate. It is that of the call's span: attempts are told of by notices,
// after their requests are made.
func inject(ctx context.Context, to propagation.TextMapCarrier) { w3c.Inject(ctx, to) }

// traceID is the id of the trace that a context belongs to; empty if none.
func traceID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
		return c.TraceID().String()
	}
	return ""
}

// callSpan is the span of a call with those of its attempts. It is used by one
// goroutine. A nil one does nothing.
type callSpan struct {
	t         *tracing
	ctx       context.Context
	span      trace.Span
	operation string
	open      []attemptSpan
}

type attemptSpan struct {
	number int
	span   trace.Span
}

// notice makes a healing step an event of the span, and attempts spans of
// their own. What providers wrote in their errors is left out.
func (s *callSpan) notice(n ninelives.Notice) {
	if s == nil {
		return
	}
	switch n.Kind {
	case ninelives.NoticeAttempt:
		s.begin(n)
		return
	case ninelives.NoticeFault:
		if n.Fault != nil {
			s.fail(n.Attempt, n.Fault)
		}
		return
	case ninelives.NoticePlan:
		return
	}
	if !s.span.IsRecording() {
		return
	}
	attrs := append(make([]attribute.KeyValue, 0, 6), keyHealing.String(string(n.Kind)), keyAttempt.Int(n.Attempt))
	if n.Candidate != "" {
		attrs = append(attrs, keyCandidate.String(n.Candidate))
	}
	if n.Next != "" {
		attrs = append(attrs, keyNext.String(n.Next))
	}
	if n.Wait > 0 {
		attrs = append(attrs, keyWait.Float64(n.Wait.Seconds()))
	}
	if n.Fault != nil {
		attrs = append(attrs, keyFault.String(string(n.Fault.Class)))
	}
	s.span.AddEvent("ninelives.healing", trace.WithAttributes(attrs...))
}

func (s *callSpan) begin(n ninelives.Notice) {
	name, model, _ := strings.Cut(n.Candidate, "/")
	if other, ok := conventional[name]; ok {
		name = other
	}
	attrs := append(make([]attribute.KeyValue, 0, 6), keyOperation.String(s.operation), keyProvider.String(name),
		keyRequestModel.String(model), keyResponseModel.String(model), keyAttempt.Int(n.Attempt))
	if s.t.host != nil {
		if host := s.t.host(n.Candidate); host != "" {
			attrs = append(attrs, keyServer.String(host))
		}
	}
	_, span := s.t.tracer.Start(s.ctx, s.operation+" "+model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	s.open = append(s.open, attemptSpan{n.Attempt, span})
}

func (s *callSpan) fail(number int, f *ninelives.Fault) {
	for i, a := range s.open {
		if a.number != number {
			continue
		}
		if f.Status != 0 {
			a.span.SetAttributes(keyStatusCode.Int(f.Status))
		}
		failed(a.span, string(f.Class))
		a.span.End()
		s.open = append(s.open[:i], s.open[i+1:]...)
		return
	}
}

// end ends the span with what is known of the call; served is the attempt that
// answered, 0 if none did.
func (s *callSpan) end(c *callStats, served int) {
	if s == nil {
		return
	}
	for _, a := range s.open {
		if a.number != served {
			a.span.SetAttributes(keyLeft.Bool(true))
		} else {
			a.span.SetAttributes(usageOf(c)...)
		}
		a.span.End()
	}
	s.open = nil
	sum, estimated := c.cost()
	attrs := append(usageOf(c), keyOutcome.String(c.Outcome), keyAttempts.Int(len(c.Trail)), keyCost.Float64(sum))
	if estimated {
		attrs = append(attrs, keyEstimated.Bool(true))
	}
	if c.Served != "" {
		attrs = append(attrs, keyResponseModel.String(c.Served))
	}
	if c.Status != 0 {
		attrs = append(attrs, keyStatusCode.Int(c.Status))
	}
	if c.Key != "" {
		attrs = append(attrs, keyClient.String(label(c.Key)))
	}
	if c.FirstToken > 0 {
		attrs = append(attrs, keyFirstChunk.Float64(c.FirstToken.Seconds()))
	}
	if c.ClientGone {
		attrs = append(attrs, keyGone.Bool(true))
	}
	s.span.SetAttributes(attrs...)
	if c.Class != "" {
		failed(s.span, string(c.Class))
	}
	s.span.End()
}

func usageOf(c *callStats) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 12)
	if c.Usage.Has(ninelives.UsageInput) {
		attrs = append(attrs, keyInputTokens.Int(c.Usage.TotalInput()))
	}
	if c.Usage.Has(ninelives.UsageOutput) {
		attrs = append(attrs, keyOutputTokens.Int(c.Usage.TotalOutput()))
	}
	if c.Usage.Has(ninelives.UsageCached) {
		attrs = append(attrs, keyCachedTokens.Int(c.Usage.Cached))
	}
	return attrs
}

func failed(span trace.Span, class string) {
	span.SetAttributes(keyErrorType.String(class))
	span.SetStatus(codes.Error, class)
}
