// Package provider opens one candidate, such as "anthropic/claude-sonnet-4-6",
// as a [ninelives.Model]. It makes one attempt per call and decides nothing:
// it encodes, sends, watches the clocks, decodes and classifies; healing wraps
// it (package heal).
//
//	open.go       Open: a spec and options to a Model
//	vendors.go    the vendors: base URLs, keys, default models, as data
//	catalogue.go  what is known about models: windows, prices, abilities
//	env.go        Discover: the candidates that the environment offers
//	local.go      servers on this machine: are they there, what do they serve
//	consent.go    whom a chain may ask
//	model.go      Model: the candidate, opened
//	attempt.go    one attempt from encoding to Done
//	watch.go      the clocks and the phase of one attempt
//	transport.go  HTTP as measured: reuse, proxies, certificates, no replays
//
// Nothing here retries, backs off or chooses between candidates.
package provider
