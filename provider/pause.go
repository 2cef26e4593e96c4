package provider

import "context"

type pauseKey struct{}

// Pausing gives a context whose streams say when they begin to wait for the
// provider, and when they no longer do: an attempt that does not wait has its
// next event at hand, or its end. What is collected until the next wait is
// delayed by nothing. told is called by the attempt itself, by several at once
// where they race, and holds it up. At the end an attempt waits.
func Pausing(ctx context.Context, told func(attempt int, waiting bool)) context.Context {
	return context.WithValue(ctx, pauseKey{}, told)
}

// pausing is what the context wants to be told by this attempt; nil for nothing.
func (a *attempt) pausing() func(waiting bool) {
	told, _ := a.caller.Value(pauseKey{}).(func(attempt int, waiting bool))
	if told == nil || !a.stream {
		return nil
	}
	return func(waiting bool) { told(a.number, waiting) }
}
