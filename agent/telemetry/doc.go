// Package telemetry tells OpenTelemetry of an agent's turns: as spans, span
// events and metrics with the attribute names of the GenAI conventions.
//
//	telemetry.go   the hook: turns and their calls
//	chat.go        requests to models
//	metrics.go     what is measured
//	attributes.go  the names
//	content.go     what was said, where that is wanted
//
// A turn is a span invoke_agent; under it are a span chat for each request to a
// model and a span execute_tool for each call. What was done to heal a request
// is an event of its span. What was said, by users, models and tools, is left
// out unless asked for. Nothing here is global: whoever makes the hook brings
// the providers.
package telemetry
