// Package chaos is a provider that misbehaves on purpose: an HTTP server that
// speaks OpenAI chat/completions, OpenAI Responses, Anthropic Messages and
// Gemini generateContent, answers with a fixed text, and limits, stalls, cuts,
// garbles or refuses exactly as a scenario says. Point any client, SDK or
// gateway at it to see what becomes of a fault.
//
// In a test it is three lines:
//
//	srv := chaos.New(chaos.Scenario{Steps: []chaos.Step{{Error: chaos.RateLimit, Hint: chaos.HintSeconds, Wait: 2 * time.Second}, {}}})
//	t.Cleanup(srv.Close)
//	model, err := provider.Open("openai/any-name", provider.BaseURL(srv.URL()))
//
// The first request gets a 429 that asks for two seconds, every later one the
// answer. Inside a testing/synctest bubble, where a real socket would stop the
// clock, [Server.Dial] and [Server.Client] connect to the same server through
// memory, so that minutes of stalling take no time at all.
//
// Which scenario a request meets is told by its x-chaos header or by its model
// name; [Catalogue] lists those that every server knows, and [Load] reads more
// from a file. [Server.Log] tells what arrived, when, and whether the client
// hung up.
//
// Every byte of an answer or a fault is written by hand here. The package uses
// neither the decoders nor the encoders of this module, so that it cannot
// share their mistakes. Every answer says that it comes from a simulator: its
// model name begins with "sim/", and the header x-simulator is set.
package chaos
