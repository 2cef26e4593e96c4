package telemetry

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// meters are the instruments. The bounds of the histograms are those of the
// conventions.
type meters struct {
	duration   metric.Float64Histogram
	firstChunk metric.Float64Histogram
	perChunk   metric.Float64Histogram
	tokens     metric.Int64Histogram
	tool       metric.Float64Histogram
	healing    metric.Int64Counter
	turns      metric.Int64Counter
	cost       metric.Float64Counter
}

var (
	secondBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	chunkBounds  = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	tokenBounds  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

func newMeters(m metric.Meter) (all meters, err error) {
	seconds := func(name, description string, bounds []float64) metric.Float64Histogram {
		h, e := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		err = errors.Join(err, e)
		return h
	}
	all.duration = seconds("gen_ai.client.operation.duration", "How long a request to a model took, with all its healing.", secondBounds)
	all.firstChunk = seconds("gen_ai.client.operation.time_to_first_chunk", "How long the first piece of an answer took.", secondBounds)
	all.perChunk = seconds("gen_ai.client.operation.time_per_output_chunk", "How long each further piece of an answer took.", chunkBounds)
	all.tool = seconds("ninelives.tool.duration", "How long a call of a tool took.", secondBounds)
	var e [4]error
	all.tokens, e[0] = m.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"),
		metric.WithDescription("Tokens of a request and its answer."), metric.WithExplicitBucketBoundaries(tokenBounds...))
	all.healing, e[1] = m.Int64Counter("ninelives.healing", metric.WithUnit("{step}"), metric.WithDescription("Steps that were taken to heal requests."))
	all.turns, e[2] = m.Int64Counter("ninelives.turns", metric.WithUnit("{turn}"), metric.WithDescription("Turns that have ended."))
	all.cost, e[3] = m.Float64Counter("ninelives.cost", metric.WithUnit("{USD}"), metric.WithDescription("What answers cost, as far as prices are known."))
	return all, errors.Join(append(e[:], err)...)
}
