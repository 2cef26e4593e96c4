package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/tool"
)

// bench is a hook over the SDK's exporters in memory.
type bench struct {
	agent.Hook
	spans  *tracetest.InMemoryExporter
	tracer *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
}

func newBench(t *testing.T, opts ...Option) bench {
	t.Helper()
	b := bench{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	b.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(b.spans))
	var err error
	b.Hook, err = New(b.tracer, sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader)), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// span is the one that has this name.
func (b bench) span(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	var found []tracetest.SpanStub
	var names []string
	for _, s := range b.spans.GetSpans() {
		names = append(names, s.Name)
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d spans %q among %q", len(found), name, names)
	}
	return found[0]
}

// lines writes attributes, sorted, one a line.
func lines(attrs []attribute.KeyValue) string {
	var all []string
	for _, a := range attrs {
		all = append(all, string(a.Key)+"="+a.Value.Emit())
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func same(t *testing.T, what string, got []attribute.KeyValue, want string) {
	t.Helper()
	rows := strings.Fields(want)
	slices.Sort(rows)
	if g, w := lines(got), strings.Join(rows, "\n"); g != w {
		t.Errorf("%s:\n%s\nwant:\n%s", what, g, w)
	}
}

// measured writes the points of all metrics: name, attributes and what was
// recorded.
func (b bench) measured(t *testing.T) []string {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := b.reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	var all []string
	add := func(name, unit string, attrs attribute.Set, value string) {
		all = append(all, fmt.Sprintf("%s[%s]{%s} %s", name, unit, strings.ReplaceAll(lines(attrs.ToSlice()), "\n", ","), value))
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, m.Unit, p.Attributes, fmt.Sprintf("%d×, %v", p.Count, p.Sum))
				}
			case metricdata.Histogram[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, m.Unit, p.Attributes, fmt.Sprintf("%d×, %v", p.Count, p.Sum))
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, m.Unit, p.Attributes, fmt.Sprint(p.Value))
				}
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, m.Unit, p.Attributes, fmt.Sprint(p.Value))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

const secret = "hunter2"

// play is a turn: a request that is healed, a call, and the end.
func play(b bench) {
	ctx := agent.For(context.Background(), "s1", 3)
	b.Event(ctx, agent.Started{Session: "s1", Turn: 3, Model: "anthropic/claude-sonnet-4-6"})
	b.TurnStart(ctx, nil, "the password is "+secret)

	b.BeforeModel(ctx, agent.PurposeStep, &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("the password is " + secret)}})
	say := func(ev ninelives.Event) {
		b.Stream(ctx, agent.Model{Turn: 3, Step: 1, Purpose: agent.PurposeStep, Event: ev})
	}
	time.Sleep(time.Second)
	overloaded := &ninelives.Fault{Class: ninelives.ClassOverloaded, Status: 529, Message: "overloaded: " + secret}
	say(ninelives.Notice{Kind: ninelives.NoticeFault, Attempt: 1, Candidate: "anthropic/claude-sonnet-4-6", Fault: overloaded, Text: secret})
	say(ninelives.Notice{Kind: ninelives.NoticeFailover, Attempt: 1, Candidate: "anthropic/claude-sonnet-4-6", Next: "gemini/gemini-3.5-flash", Wait: 1500 * time.Millisecond})
	time.Sleep(time.Second)
	say(ninelives.TextDelta{Attempt: 2, Text: "I will look."})
	time.Sleep(250 * time.Millisecond)
	say(ninelives.ToolCallDelta{Attempt: 2, Name: "read_file"})
	time.Sleep(250 * time.Millisecond)
	b.AfterModel(ctx, agent.Answer{
		Turn: 3, Step: 1, Purpose: agent.PurposeStep, Candidate: "gemini/gemini-3.5-flash", IsFallback: true, Attempts: 2, Cost: 0.25,
		Finish:  ninelives.FinishToolCalls,
		Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.Text{Text: secret}, ninelives.ToolCall{ID: "c1", Name: "read_file", Arguments: `{"path":"hunter2"}`}}},
		Usage:   ninelives.Usage{Input: 100, Output: 20, Cached: 80, Reported: ninelives.UsageInput | ninelives.UsageOutput | ninelives.UsageCached},
	}, nil)

	c := &tool.Call{ID: "c1", Session: "s1", Turn: 3, Arguments: []byte(`{"path":"hunter2"}`)}
	b.BeforeTool(ctx, c, tool.Spec{Tool: ninelives.Tool{Name: "read_file"}})
	time.Sleep(2 * time.Second)
	b.AfterTool(ctx, c, agent.Effect{Call: "c1", Name: "read_file", Ran: true, Result: ninelives.ToolResult{Content: []ninelives.Part{ninelives.Text{Text: "Error: no file " + secret}}, IsError: true}})

	b.Event(ctx, agent.Compacted{Compaction: agent.Compaction{Tier: 1, Why: "threshold", Before: 900, After: 500}})
	b.Event(ctx, agent.Guarded{Limit: "file:" + secret, Message: secret, Stop: true})
	b.TurnEnd(ctx, nil, agent.Ended{Session: "s1", End: agent.End{Turn: 3, Reason: agent.ReasonLimit, Limit: "file:" + secret, Message: secret}, Text: secret,
		Steps: 1, Calls: 1, Usage: ninelives.Usage{Input: 100, Output: 20}, Cost: 0.25})
}

func TestATurnIsASpanOverItsRequestsAndCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		play(b)
		turn, chat, call := b.span(t, "invoke_agent ninelives"), b.span(t, "chat claude-sonnet-4-6"), b.span(t, "execute_tool read_file")
		if n := len(b.spans.GetSpans()); n != 3 {
			t.Errorf("%d spans", n)
		}
		for _, s := range []tracetest.SpanStub{chat, call} {
			if s.Parent.SpanID() != turn.SpanContext.SpanID() || s.SpanContext.TraceID() != turn.SpanContext.TraceID() {
				t.Errorf("%s is no child of the turn", s.Name)
			}
		}
		if turn.SpanKind != trace.SpanKindInternal || chat.SpanKind != trace.SpanKindClient || call.SpanKind != trace.SpanKindInternal {
			t.Errorf("kinds %v, %v, %v", turn.SpanKind, chat.SpanKind, call.SpanKind)
		}
		if took := chat.EndTime.Sub(chat.StartTime); took != 2500*time.Millisecond {
			t.Errorf("the request took %v", took)
		}
		same(t, "turn", turn.Attributes, `gen_ai.operation.name=invoke_agent gen_ai.agent.name=ninelives gen_ai.conversation.id=s1 ninelives.turn=3
			gen_ai.request.model=claude-sonnet-4-6 ninelives.turn.reason=limit ninelives.turn.limit=file ninelives.turn.steps=1 ninelives.turn.tool_calls=1
			gen_ai.usage.input_tokens=100 gen_ai.usage.output_tokens=20 ninelives.cost_usd=0.25`)
		same(t, "chat", chat.Attributes, `gen_ai.operation.name=chat gen_ai.conversation.id=s1 ninelives.purpose=step gen_ai.request.model=claude-sonnet-4-6
			gen_ai.provider.name=gcp.gemini gen_ai.response.model=gemini-3.5-flash gen_ai.response.finish_reasons=["tool_calls"]
			gen_ai.response.time_to_first_chunk=2 gen_ai.usage.input_tokens=100 gen_ai.usage.output_tokens=20 gen_ai.usage.cache_read.input_tokens=80
			ninelives.attempts=2 ninelives.is_fallback=true ninelives.cost_usd=0.25`)
		same(t, "call", call.Attributes, `gen_ai.operation.name=execute_tool gen_ai.conversation.id=s1 gen_ai.tool.name=read_file gen_ai.tool.type=function
			gen_ai.tool.call.id=c1 ninelives.tool.ran=true error.type=tool_error`)
		if call.Status.Code != codes.Error || chat.Status.Code != codes.Unset || turn.Status.Code != codes.Unset {
			t.Errorf("statuses %v, %v, %v", call.Status, chat.Status, turn.Status)
		}
	})
}

func TestHealingStepsAreEventsOfTheirRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		play(b)
		chat := b.span(t, "chat claude-sonnet-4-6")
		if len(chat.Events) != 2 || chat.Events[0].Name != "ninelives.healing" || chat.Events[1].Name != "ninelives.healing" {
			t.Fatalf("events %+v", chat.Events)
		}
		same(t, "fault", chat.Events[0].Attributes, `ninelives.healing=fault ninelives.fault=overloaded ninelives.attempt=1
			ninelives.candidate=anthropic/claude-sonnet-4-6 http.response.status_code=529`)
		same(t, "failover", chat.Events[1].Attributes, `ninelives.healing=failover ninelives.attempt=1
			ninelives.candidate=anthropic/claude-sonnet-4-6 ninelives.candidate.next=gemini/gemini-3.5-flash ninelives.wait_seconds=1.5`)
		if at := chat.Events[0].Time.Sub(chat.StartTime); at != time.Second {
			t.Errorf("the first is at %v", at)
		}
		turn := b.span(t, "invoke_agent ninelives")
		if len(turn.Events) != 2 {
			t.Fatalf("events %+v", turn.Events)
		}
		same(t, "compaction", turn.Events[0].Attributes, `ninelives.compaction.tier=1 ninelives.compaction.why=threshold
			ninelives.compaction.before=900 ninelives.compaction.after=500 ninelives.compaction.strike=false`)
		same(t, "guard", turn.Events[1].Attributes, `ninelives.turn.limit=file ninelives.guard.stop=true ninelives.wait_seconds=0`)
	})
}

func TestMetricsHaveTheConventionsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		play(b)
		const model = "gen_ai.operation.name=chat,gen_ai.provider.name=gcp.gemini,gen_ai.request.model=claude-sonnet-4-6,gen_ai.response.model=gemini-3.5-flash"
		want := []string{
			"gen_ai.client.operation.duration[s]{" + model + "} 1×, 2.5",
			"gen_ai.client.operation.time_per_output_chunk[s]{" + model + "} 1×, 0.25",
			"gen_ai.client.operation.time_to_first_chunk[s]{" + model + "} 1×, 2",
			"gen_ai.client.token.usage[{token}]{" + model + ",gen_ai.token.type=input} 1×, 100",
			"gen_ai.client.token.usage[{token}]{" + model + ",gen_ai.token.type=output} 1×, 20",
			"ninelives.cost[{USD}]{" + model + "} 0.25",
			"ninelives.healing[{step}]{ninelives.fault=overloaded,ninelives.healing=fault} 1",
			"ninelives.healing[{step}]{ninelives.healing=failover} 1",
			"ninelives.tool.duration[s]{error.type=tool_error,gen_ai.tool.name=read_file} 1×, 2",
			"ninelives.turns[{turn}]{ninelives.turn.reason=limit} 1",
		}
		if got := b.measured(t); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestContentIsOffByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		play(b)
		if all := fmt.Sprintf("%+v %q", b.spans.GetSpans(), b.measured(t)); strings.Contains(all, secret) {
			t.Error("what was said is in the spans")
		}
	})
}

func TestContentIsRecordedWhereItIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Content())
		play(b)
		for name, want := range map[string]map[attribute.Key]string{
			"invoke_agent ninelives": {
				"gen_ai.input.messages":  `[{"role":"user","parts":[{"type":"text","content":"the password is hunter2"}]}]`,
				"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"hunter2"}]}]`,
			},
			"chat claude-sonnet-4-6": {
				"gen_ai.input.messages":  `[{"role":"user","parts":[{"type":"text","content":"the password is hunter2"}]}]`,
				"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"hunter2"},{"type":"tool_call","id":"c1","name":"read_file","arguments":{"path":"hunter2"}}],"finish_reason":"tool_calls"}]`,
			},
			"execute_tool read_file": {
				"gen_ai.tool.call.arguments": `{"path":"hunter2"}`,
				"gen_ai.tool.call.result":    "Error: no file hunter2",
			},
		} {
			got := map[attribute.Key]string{}
			for _, a := range b.span(t, name).Attributes {
				got[a.Key] = a.Value.AsString()
			}
			for key, text := range want {
				if got[key] != text {
					t.Errorf("%s: %s = %s, want %s", name, key, got[key], text)
				}
			}
		}
	})
}

func TestAFailedRequestHasItsClass(t *testing.T) {
	for want, err := range map[string]error{
		"billing":  fmt.Errorf("wrapped: %w", &ninelives.Fault{Class: ninelives.ClassBilling, Status: 402}),
		"418":      &ninelives.Fault{Class: ninelives.ClassUnknown, Status: 418},
		"unknown":  &ninelives.Fault{Class: ninelives.ClassUnknown},
		"canceled": context.Canceled,
		"_OTHER":   errors.New(secret),
	} {
		b := newBench(t)
		ctx := agent.For(t.Context(), "s1", 1)
		b.BeforeModel(ctx, agent.PurposeStep, &ninelives.Request{Model: "gpt-5.4"})
		b.AfterModel(ctx, agent.Answer{Purpose: agent.PurposeStep}, err)
		s := b.span(t, "chat gpt-5.4")
		same(t, want, s.Attributes, "gen_ai.operation.name=chat gen_ai.conversation.id=s1 ninelives.purpose=step gen_ai.request.model=gpt-5.4 error.type="+want)
		if s.Status.Code != codes.Error || s.Status.Description != want {
			t.Errorf("status %+v", s.Status)
		}
	}
}

func TestAFailedTurnHasItsReason(t *testing.T) {
	for want, end := range map[string]agent.End{
		"interrupted": {Reason: agent.ReasonInterrupted},
		"billing":     {Reason: agent.ReasonFailed, Fault: &ninelives.Fault{Class: ninelives.ClassBilling}},
	} {
		b := newBench(t)
		ctx := agent.For(t.Context(), "s1", 1)
		b.TurnStart(ctx, nil, "")
		b.TurnEnd(ctx, nil, agent.Ended{Session: "s1", End: end})
		if s := b.span(t, "invoke_agent ninelives"); s.Status.Code != codes.Error || s.Status.Description != want {
			t.Errorf("status %+v, want %s", s.Status, want)
		}
	}
}

// Sessions that run together do not get into each other's spans.
func TestSessionsAreKeptApart(t *testing.T) {
	b := newBench(t)
	one, two := agent.For(t.Context(), "one", 1), agent.For(t.Context(), "two", 1)
	b.TurnStart(one, nil, "")
	b.TurnStart(two, nil, "")
	b.BeforeModel(one, agent.PurposeStep, &ninelives.Request{Model: "a"})
	b.BeforeModel(two, agent.PurposeStep, &ninelives.Request{Model: "b"})
	b.Stream(two, agent.Model{Purpose: agent.PurposeStep, Event: ninelives.Notice{Kind: ninelives.NoticeRetry}})
	b.AfterModel(one, agent.Answer{Purpose: agent.PurposeStep}, nil)
	b.TurnEnd(one, nil, agent.Ended{Session: "one"})
	b.AfterModel(two, agent.Answer{Purpose: agent.PurposeStep}, nil)
	b.TurnEnd(two, nil, agent.Ended{Session: "two"})
	a, c := b.span(t, "chat a"), b.span(t, "chat b")
	if len(a.Events) != 0 || len(c.Events) != 1 || a.SpanContext.TraceID() == c.SpanContext.TraceID() {
		t.Errorf("events %d and %d", len(a.Events), len(c.Events))
	}
}

// Whatever was never told to have ended is ended with its turn.
func TestNoSpanStaysOpen(t *testing.T) {
	b := newBench(t)
	ctx := agent.For(t.Context(), "s1", 1)
	b.TurnStart(ctx, nil, "")
	b.BeforeModel(ctx, agent.PurposeStep, &ninelives.Request{})
	b.BeforeTool(ctx, &tool.Call{ID: "c", Session: "s1"}, tool.Spec{Tool: ninelives.Tool{Name: "t"}})
	b.TurnStart(ctx, nil, "") // the turn before ended without a word
	if n := len(b.spans.GetSpans()); n != 3 {
		t.Errorf("%d spans have ended, want 3", n)
	}
	b.TurnEnd(ctx, nil, agent.Ended{Session: "s1"})
	if n := len(b.spans.GetSpans()); n != 4 {
		t.Errorf("%d spans have ended, want 4", n)
	}
	// What belongs to no turn is taken as it comes.
	b.AfterModel(ctx, agent.Answer{}, nil)
	b.AfterTool(ctx, &tool.Call{}, agent.Effect{})
	b.Event(ctx, agent.Guarded{})
	b.TurnEnd(ctx, nil, agent.Ended{Session: "s1"})
	if n := len(b.spans.GetSpans()); n != 4 {
		t.Errorf("%d spans", n)
	}
}

// The caller's span is the parent of a turn's.
func TestATurnBelongsToItsCaller(t *testing.T) {
	b := newBench(t)
	ctx, outer := b.tracer.Tracer("test").Start(t.Context(), "request")
	ctx = agent.For(ctx, "s1", 1)
	b.TurnStart(ctx, nil, "")
	b.TurnEnd(ctx, nil, agent.Ended{Session: "s1"})
	outer.End()
	if got := b.span(t, "invoke_agent ninelives").Parent.SpanID(); got != outer.SpanContext().SpanID() {
		t.Errorf("parent %v", got)
	}
}
