package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	nometrics "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	notraces "go.opentelemetry.io/otel/trace/noop"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/agent/telemetry"
)

// flushTime bounds what a collector may take at the end: one that is not there
// must not keep anybody waiting.
const flushTime = 3 * time.Second

// contentVariable says whether what was said is told too.
const contentVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// telemetry sends spans and metrics of the agent to the collector that the
// environment names; none is no option. What is wrong with it is never an error
// of the work: it is a warning, at the end the first trouble in a line.
func (s *shop) telemetry(ctx context.Context) []agent.Option {
	traces, why := s.p.collects("TRACES")
	metrics, whyNot := s.p.collects("METRICS")
	for _, why := range []string{why, whyNot} {
		if why != "" {
			s.warnings = append(s.warnings, why)
		}
	}
	if !traces && !metrics {
		return nil
	}
	var trouble firstError
	origin := telling(ctx, &trouble)
	var tracers trace.TracerProvider = notraces.NewTracerProvider()
	var meters metric.MeterProvider = nometrics.NewMeterProvider()
	var ends []func(context.Context) error
	if traces {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			trouble.Handle(err)
		} else {
			p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(origin))
			tracers, ends = p, append(ends, p.Shutdown)
		}
	}
	if metrics {
		exporter, err := otlpmetrichttp.New(ctx)
		if err != nil {
			trouble.Handle(err)
		} else {
			p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)), sdkmetric.WithResource(origin))
			meters, ends = p, append(ends, p.Shutdown)
		}
	}
	s.closers = append(s.closers, func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		var all sync.WaitGroup
		for _, end := range ends {
			all.Go(func() { trouble.Handle(end(ctx)) })
		}
		all.Wait()
		if err := trouble.first(); err != nil {
			s.warn("telemetry was not all sent: " + err.Error())
		}
	})
	var options []telemetry.Option
	if s.capturesContent() {
		options = append(options, telemetry.Content())
	}
	hook, err := telemetry.New(tracers, meters, options...)
	if err != nil {
		trouble.Handle(err)
		return nil
	}
	return []agent.Option{agent.Hooks(hook)}
}

// telling sends the library's own troubles to where they are kept, and gives
// what every signal says of where it comes from.
func telling(ctx context.Context, trouble *firstError) *resource.Resource {
	otel.SetErrorHandler(trouble) // else it would be written to the terminal
	otel.SetLogger(funcr.New(func(_, text string) { trouble.Handle(errors.New(text)) }, funcr.Options{}))
	origin, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "ninelives"), attribute.String("service.version", buildVersion())), resource.WithFromEnv())
	if err != nil {
		trouble.Handle(err)
	}
	return origin
}

// tracer makes the spans of a gateway where the environment names a collector;
// nil where it names none. Close sends what is left.
func (p *process) tracer(ctx context.Context, log *slog.Logger) (tracers trace.TracerProvider, close func()) {
	traces, why := p.collects("TRACES")
	if why != "" {
		log.Warn("telemetry", "problem", why)
	}
	if !traces {
		return nil, func() {}
	}
	var trouble firstError
	origin := telling(ctx, &trouble)
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		log.Warn("telemetry", "problem", err.Error())
		return nil, func() {}
	}
	t := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(origin))
	return t, func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		trouble.Handle(t.Shutdown(ctx))
		if err := trouble.first(); err != nil {
			log.Warn("telemetry was not all sent", "problem", err.Error())
		}
	}
}

// collects reports that the environment names a collector for a signal, TRACES
// or METRICS, that is spoken to over HTTP; why tells why one that is named is
// not.
func (p *process) collects(signal string) (collects bool, why string) {
	get := func(name string) string {
		text, _ := p.env(name)
		return strings.TrimSpace(text)
	}
	if cmp.Or(get("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT"), get("OTEL_EXPORTER_OTLP_ENDPOINT")) == "" ||
		strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") || get("OTEL_"+signal+"_EXPORTER") == "none" {
		return false, ""
	}
	if cmp.Or(get("OTEL_EXPORTER_OTLP_"+signal+"_PROTOCOL"), get("OTEL_EXPORTER_OTLP_PROTOCOL")) == "grpc" {
		return false, fmt.Sprintf("%s of telemetry are not sent: OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and only http/protobuf is spoken (port 4318)", strings.ToLower(signal))
	}
	return true, ""
}

func (s *shop) capturesContent() bool {
	text, _ := s.p.env(contentVariable)
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "span_only", "span_and_event":
		return true
	}
	return false
}

// firstError keeps the first of many errors.
type firstError struct {
	mu  sync.Mutex
	err error
}

func (e *firstError) Handle(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
}

func (e *firstError) first() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}
