package provider

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

const (
	// linger is how long the end of an answer is waited upon for its usage.
	linger = 2 * time.Second
	// afterglow is how long a connection whose answer is whole is waited upon
	// for its last bytes, so that it can be used again. They are there already
	// unless the server holds the connection open.
	afterglow = 10 * time.Millisecond
)

// The clocks of an attempt that no healing driver has set, and of those that
// it left to the provider.
//
// Source: design section 3, "Clocks"; a test holds them to package heal's.
var defaultClocks = struct {
	dial, headers, first, slope, liveness, progress, whole time.Duration
	localFactor                                            time.Duration
}{
	dial:        10 * time.Second,
	headers:     30 * time.Second,
	first:       60 * time.Second,
	slope:       2 * time.Second, // per 10,000 tokens of input
	liveness:    30 * time.Second,
	progress:    90 * time.Second,
	whole:       2 * time.Minute, // an answer that does not stream
	localFactor: 5,
}

// clocksFor completes the clocks of an attempt. An answer that does not stream
// is not begun before it is done: only its whole time can be bounded, and the
// silence once it comes.
func clocksFor(c ninelives.Candidate, req *ninelives.Request, stream bool) ninelives.Clocks {
	var set ninelives.Clocks
	if req.Attempt != nil {
		set = req.Attempt.Clocks
	}
	d := defaultClocks
	factor := time.Duration(1)
	if c.LocalModel {
		factor = d.localFactor
	}
	slope := time.Duration(inputTokens(req)) * d.slope / 10_000
	fill := func(clock *time.Duration, length time.Duration) {
		if *clock == 0 {
			*clock = length * factor
		}
	}
	fill(&set.Dial, d.dial)
	fill(&set.Headers, d.headers+slope)
	fill(&set.FirstEvent, d.first+slope)
	fill(&set.Liveness, d.liveness)
	fill(&set.Progress, d.progress)
	if !stream {
		fill(&set.Total, d.whole+slope)
		set.Headers, set.FirstEvent, set.Progress, set.MinRate = -1, -1, -1, 0
	}
	return set
}

// inputTokens estimates the size of a request at four bytes to the token.
func inputTokens(req *ninelives.Request) int {
	bytes := 0
	if req.Raw != nil && req.Raw.Decode != nil {
		bytes = req.Raw.Text
	}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			bytes += partBytes(p)
		}
	}
	for _, t := range req.Tools {
		bytes += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return bytes / 4
}

// imageBytes stands for a picture: about a thousand tokens, whatever its size.
const imageBytes = 4_000

func partBytes(p ninelives.Part) int {
	switch p := p.(type) {
	case ninelives.Text:
		return len(p.Text)
	case ninelives.Reasoning:
		return len(p.Text)
	case ninelives.ToolCall:
		return len(p.Name) + len(p.Arguments)
	case ninelives.ToolResult:
		n := 0
		for _, c := range p.Content {
			n += partBytes(c)
		}
		return n
	case ninelives.Image, ninelives.File:
		return imageBytes
	case ninelives.Opaque:
		return len(p.Raw.JSON)
	}
	return 0
}
