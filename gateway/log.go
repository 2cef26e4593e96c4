package gateway

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// logCall writes the one line of a call. It says what was done and never what
// was said. A call that the gateway or its providers failed is a warning.
func logCall(ctx context.Context, to *slog.Logger, c *callStats) {
	level := slog.LevelInfo
	if c.Outcome == outcomeFailed {
		level = slog.LevelWarn
	}
	if !to.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 24)
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, label(value)))
		}
	}
	number := func(key string, value int) {
		if value != 0 {
			attrs = append(attrs, slog.Int(key, value))
		}
	}
	text("id", c.ID)
	text("trace", c.Trace)
	text("operation", c.Operation)
	text("protocol", string(c.Protocol))
	if c.Stream {
		attrs = append(attrs, slog.Bool("stream", true))
	}
	text("route", c.Route)
	text("key", c.Key)
	text("candidate", c.Served)
	text("outcome", c.Outcome)
	text("class", string(c.Class))
	number("status", c.Status)
	number("client_retry", c.ClientRetry)
	attrs = append(attrs, slog.Int("attempts", len(c.Trail)), slog.Float64("ms", milliseconds(c.Took)))
	if c.FirstToken > 0 {
		attrs = append(attrs, slog.Float64("first_token_ms", milliseconds(c.FirstToken)))
	}
	attrs = append(attrs, slog.Int64("overhead_us", c.Overhead.Microseconds()))
	if c.Usage.Has(ninelives.UsageInput) || c.Usage.Estimated {
		attrs = append(attrs, slog.Int("input_tokens", c.Usage.TotalInput()))
	}
	if c.Usage.Has(ninelives.UsageOutput) || c.Usage.Estimated {
		attrs = append(attrs, slog.Int("output_tokens", c.Usage.TotalOutput()))
	}
	number("cached_tokens", c.Usage.Cached)
	if sum, estimated := c.cost(); sum > 0 {
		attrs = append(attrs, slog.Float64("cost_usd", sum))
		if estimated {
			attrs = append(attrs, slog.Bool("cost_estimated", true))
		}
	}
	if len(c.Healed) > 0 {
		attrs = append(attrs, slog.Any("healed", c.Healed))
	}
	if trail := trailWords(c.Trail); len(trail) > 0 {
		attrs = append(attrs, slog.Any("trail", trail))
	}
	if c.ClientGone {
		attrs = append(attrs, slog.Bool("client_gone", true))
	}
	// Without the place in the source, which nobody wants to know and which takes
	// time to be found out.
	line := slog.NewRecord(time.Now(), level, "call", 0)
	line.AddAttrs(attrs...)
	_ = to.Handler().Handle(ctx, line) // as slog itself: a log that cannot be written stops no call
}

// trailWords says of each attempt how it ended; nothing where there was only
// the one that answered.
func trailWords(trail []attemptStats) []string {
	if len(trail) < 2 && (len(trail) == 0 || trail[0].Class == "") {
		return nil
	}
	words := make([]string, len(trail))
	for i := range trail {
		words[i] = label(trail[i].Candidate) + ": " + trail[i].ending()
	}
	return words
}

// ending is how the attempt ended, in our own words.
func (a *attemptStats) ending() string {
	switch {
	case a.Lost:
		return "left"
	case a.Class == "":
		return "answered"
	case a.Status != 0:
		return label(string(a.Class)) + " (HTTP " + strconv.Itoa(a.Status) + ")"
	}
	return label(string(a.Class))
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
