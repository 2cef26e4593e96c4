package gateway

import (
	"cmp"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/journal"
)

// Options are what a gateway is given once, when it starts.
type Options struct {
	// Journal keeps every call; nil keeps none.
	Journal *journal.Journal
	// Log gets a line per call; nil means none.
	Log *slog.Logger
	// Tracer makes the spans; nil makes none.
	Tracer trace.TracerProvider
	// Listen is the address that the gateway is reached at, for the page and for
	// the rules of loopback (see MayListen). Names are further host names.
	Listen string
	Names  []string
	// Simulated says that the built-in simulator answers, so that the page can.
	Simulated bool
	Version   string
}
