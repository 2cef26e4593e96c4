package main

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/ninelives-ai/ninelives/chaos"
)

// collector is an OTLP collector over HTTP. It keeps the names of what it got,
// and all of it as text.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []string
	metrics []string
	service []string
	text    string
	token   string
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var from io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			from = unzipped
		}
		body, err := io.ReadAll(from)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.token = r.Header.Get("X-Token")
		keep := func(m proto.Message) {
			if err := proto.Unmarshal(body, m); err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
				t.Errorf("%s: %v", r.Header.Get("Content-Type"), err)
			}
			c.text += protojson.Format(m)
		}
		switch r.URL.Path {
		case "/v1/traces":
			var got traces.ExportTraceServiceRequest
			keep(&got)
			for _, rs := range got.ResourceSpans {
				for _, a := range rs.Resource.Attributes {
					if a.Key == "service.name" {
						c.service = append(c.service, a.Value.GetStringValue())
					}
				}
				for _, ss := range rs.ScopeSpans {
					for _, s := range ss.Spans {
						c.spans = append(c.spans, s.Name)
					}
				}
			}
		case "/v1/metrics":
			var got metrics.ExportMetricsServiceRequest
			keep(&got)
			for _, rm := range got.ResourceMetrics {
				for _, sm := range rm.ScopeMetrics {
					for _, m := range sm.Metrics {
						c.metrics = append(c.metrics, m.Name)
					}
				}
			}
		default:
			t.Errorf("it is asked for %s", r.URL.Path)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// observed runs the command with an environment of its own, and gives what it
// said on standard error.
func observed(t *testing.T, env ...string) string {
	t.Helper()
	srv := chaos.New(chaos.Scenario{Name: "m", Steps: []chaos.Step{
		{Calls: []chaos.Call{{ID: "call_1", Name: "read_file", Arguments: `{"path":"a.txt"}`}}},
		{Text: "It says: nine lives."},
	}})
	defer srv.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("the-secret-word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ninelives", "run", "--model", "openai/m", "What does a.txt say?")
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "OTEL_") })
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "NINELIVES_LOCAL=off", "OPENAI_API_KEY=k", "OPENAI_BASE_URL="+srv.URL()+"/v1")
	cmd.Env = append(cmd.Env, env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || string(out) != "It says: nine lives.\n" {
		t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
	}
	return stderr.String()
}

func TestTheCollectorOfTheEnvironmentIsToldOfTheTurn(t *testing.T) {
	c := newCollector(t)
	said := observed(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=X-Token=t", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test")
	if strings.Contains(said, "telemetry") {
		t.Error(said)
	}
	if want := []string{"chat m", "execute_tool read_file", "chat m", "invoke_agent ninelives"}; !slices.Equal(c.spans, want) {
		t.Errorf("spans %q, want %q", c.spans, want)
	}
	for _, want := range []string{"gen_ai.client.operation.duration", "gen_ai.client.token.usage", "ninelives.tool.duration", "ninelives.turns"} {
		if !slices.Contains(c.metrics, want) {
			t.Errorf("%s is not among %q", want, c.metrics)
		}
	}
	if c.token != "t" || !slices.Equal(c.service, []string{"ninelives"}) || !strings.Contains(c.text, "deployment.environment.name") {
		t.Errorf("token %q, service %q", c.token, c.service)
	}
	for _, private := range []string{"the-secret-word", "What does a.txt say", "nine lives."} {
		if strings.Contains(c.text, private) {
			t.Errorf("%q was told", private)
		}
	}
}

func TestWhatWasSaidIsToldWhereThatIsWanted(t *testing.T) {
	c := newCollector(t)
	observed(t, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+c.URL+"/v1/traces", contentVariable+"=true", "OTEL_SERVICE_NAME=mine")
	for _, told := range []string{"the-secret-word", "What does a.txt say", "nine lives."} {
		if !strings.Contains(c.text, told) {
			t.Errorf("%q was not told", told)
		}
	}
	if len(c.metrics) > 0 || !slices.Equal(c.service, []string{"mine"}) {
		t.Errorf("metrics %q, service %q", c.metrics, c.service)
	}
}

func TestTelemetryIsOffUnlessACollectorIsNamed(t *testing.T) {
	c := newCollector(t)
	for _, env := range [][]string{
		{"OTEL_SERVICE_NAME=mine"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_SDK_DISABLED=True"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_TRACES_EXPORTER=none", "OTEL_METRICS_EXPORTER=none"},
	} {
		if said := observed(t, env...); strings.Contains(said, "telemetry") || c.text != "" {
			t.Errorf("%q: %s%s", env, said, c.text)
		}
	}
	said := observed(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
	if !strings.Contains(said, "traces of telemetry are not sent: OTEL_EXPORTER_OTLP_PROTOCOL is grpc") || c.text != "" {
		t.Errorf("%s%s", said, c.text)
	}
}

// The turn is done and its answer is out: what becomes of telemetry is no more
// than a line.
func TestABadCollectorFailsNoTurn(t *testing.T) {
	silent := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	defer hangs.Close()
	defer close(silent)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no \x1b[31mroom\nhere", http.StatusBadRequest)
	}))
	defer refuses.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct{ name, endpoint string }{{"hangs", hangs.URL}, {"refuses", refuses.URL}, {"is gone", gone.URL}, {"is no URL", "::no url"}} {
		began := time.Now()
		said := observed(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT=60000")
		// Left to itself, the exporter waits a minute for each answer, and asks again for a minute.
		if took := time.Since(began); took > 50*time.Second {
			t.Errorf("one that %s: the command took %v", c.name, took)
		}
		if strings.Count(said, "ninelives: telemetry was not all sent: ") != 1 || strings.Contains(said, "\x1b[31m") {
			t.Errorf("one that %s: %s", c.name, said)
		}
	}
}
