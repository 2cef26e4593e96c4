package gateway

import (
	"context"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	ninelives "github.com/ninelives-ai/ninelives"
)

const (
	clientTrace  = "0af7651916cd43dd8448eb211c80319c"
	clientParent = "00-" + clientTrace + "-b7ad6b7169203331-01"
)

// has compares some attributes of a span.
func has(t *testing.T, s tracetest.SpanStub, want map[attribute.Key]any) {
	t.Helper()
	got := map[attribute.Key]any{}
	for _, a := range s.Attributes {
		got[a.Key] = a.Value.AsInterface()
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s has %s = %v, want %v", s.Name, k, got[k], v)
		}
	}
}

func TestACallIsASpanWithOneForEachAttempt(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tr := newTracing(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), func(c string) string { return map[string]string{"gemini/one": "one.example"}[c] })

	h := http.Header{}
	h.Set("Traceparent", clientParent)
	h.Set("Tracestate", "vendor=1")
	ctx, span := tr.begin(t.Context(), h, operationChat, "fast", "req_1")
	if id := traceID(ctx); id != clientTrace {
		t.Errorf("the trace is %q", id)
	}
	sent := propagation.MapCarrier{}
	inject(ctx, sent)

	fault := &ninelives.Fault{Class: ninelives.ClassOverloaded, Status: 503, Message: "sk-secret"}
	c := callStats{Began: noon, Route: "fast", Operation: operationChat, Outcome: outcomeOK, Status: 200, Key: "alice", FirstToken: time.Second,
		Usage: ninelives.Usage{Input: 100, Output: 20, Reported: ninelives.UsageInput | ninelives.UsageOutput}}
	for _, n := range []ninelives.Notice{
		{Kind: ninelives.NoticePlan, Text: "gemini/one, b/two"},
		{Kind: ninelives.NoticeAttempt, Attempt: 1, Candidate: "gemini/one"},
		{Kind: ninelives.NoticeFault, Attempt: 1, Candidate: "gemini/one", Fault: fault, Text: "sk-secret"},
		{Kind: ninelives.NoticeFailover, Attempt: 2, Candidate: "gemini/one", Next: "b/two", Fault: fault, Text: "sk-secret"},
		{Kind: ninelives.NoticeAttempt, Attempt: 2, Candidate: "b/two"},
		{Kind: ninelives.NoticeAttempt, Attempt: 3, Candidate: "c/three"},
	} {
		span.notice(n)
		c.notice(n, noon)
	}
	c.end(2, noon.Add(3*time.Second))
	span.end(&c, 2)

	got := map[string]tracetest.SpanStub{}
	for _, s := range spans.GetSpans() {
		got[s.Name] = s
	}
	if len(got) != 4 {
		t.Fatalf("the spans are %v", got)
	}
	call := got["chat fast"]
	if call.SpanKind != trace.SpanKindServer || call.Parent.SpanID().String() != "b7ad6b7169203331" || call.Status.Code != codes.Unset {
		t.Errorf("the call is %+v", call)
	}
	if want := "00-" + clientTrace + "-" + call.SpanContext.SpanID().String() + "-01"; sent["traceparent"] != want || sent["tracestate"] != "vendor=1" {
		t.Errorf("upstream is told %v, want %s", sent, want)
	}
	has(t, call, map[attribute.Key]any{keyOperation: "chat", keyRequestModel: "fast", keyResponseModel: "b/two", keyRequestID: "req_1", keyOutcome: "ok",
		keyAttempts: int64(3), keyInputTokens: int64(100), keyOutputTokens: int64(20), keyClient: "alice", keyStatusCode: int64(200), keyFirstChunk: 1.0})
	if len(call.Events) != 1 || call.Events[0].Name != "ninelives.healing" {
		t.Errorf("its events are %+v", call.Events)
	}
	one := got["chat one"]
	has(t, one, map[attribute.Key]any{keyProvider: "gcp.gemini", keyServer: "one.example", keyErrorType: "overloaded", keyStatusCode: int64(503), keyAttempt: int64(1)})
	if one.SpanKind != trace.SpanKindClient || one.Parent.SpanID() != call.SpanContext.SpanID() || one.Status.Code != codes.Error || one.Status.Description != "overloaded" {
		t.Errorf("the first attempt is %+v", one)
	}
	has(t, got["chat two"], map[attribute.Key]any{keyOutputTokens: int64(20), keyLeft: nil, keyErrorType: nil})
	has(t, got["chat three"], map[attribute.Key]any{keyLeft: true, keyOutputTokens: nil})
	for _, s := range got {
		for _, e := range append(s.Events, sdktrace.Event{Attributes: s.Attributes}) {
			for _, a := range e.Attributes {
				if a.Value.Emit() == "sk-secret" {
					t.Errorf("%s tells what a provider wrote", s.Name)
				}
			}
		}
	}
}

func TestAFailedCallIsAFailedSpan(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tr := newTracing(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), nil)
	_, span := tr.begin(t.Context(), http.Header{}, operationChat, "fast", "req_1")
	span.end(&callStats{Outcome: outcomeFailed, Class: ninelives.ClassTimeout, Status: 529, ClientGone: true}, 0)
	got := spans.GetSpans()[0]
	has(t, got, map[attribute.Key]any{keyErrorType: "timeout", keyStatusCode: int64(529), keyGone: true, keyOutcome: "failed"})
	if got.Status.Code != codes.Error {
		t.Errorf("the status is %v", got.Status)
	}
}

func TestWithoutACollectorTheContextIsHandedOnAndNothingElseIsDone(t *testing.T) {
	for _, p := range []trace.TracerProvider{nil, noop.NewTracerProvider()} {
		tr := newTracing(p, nil)
		h := http.Header{"Traceparent": {clientParent}}
		ctx, span := tr.begin(t.Context(), h, operationChat, "fast", "req_1")
		sent := propagation.MapCarrier{}
		inject(ctx, sent)
		if sent["traceparent"] != clientParent {
			t.Errorf("upstream is told %v", sent)
		}
		n := ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: 1, Candidate: "a/one"}
		c := healedCall()
		plain := http.Header{}
		if allocs := testing.AllocsPerRun(100, func() {
			_, span = tr.begin(context.Background(), plain, operationChat, "fast", "req_1")
			span.notice(n)
			span.end(&c, 1)
		}); allocs != 0 {
			t.Errorf("%v allocations", allocs)
		}
	}
}
