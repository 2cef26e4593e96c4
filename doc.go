// Package ninelives is the vocabulary and the front door of Nine Lives: LLM
// calls that land on their feet.
//
// Everything is made of one interface, [Model]. A provider opens one
// (package provider), healing wraps one and is one again (package heal), and
// [Generate], [GenerateAs] and a plain range over Model.Stream use one:
//
//	claude, err := provider.Open("anthropic/claude-sonnet-4-6")
//	gpt, err := provider.Open("openai/gpt-5.4")
//	model := heal.New(claude, heal.Fallback(gpt), heal.Deadline(30*time.Second))
//	resp, err := ninelives.Generate(ctx, model, ninelives.Prompt("Why do cats land on their feet?"))
//
// The types here are provider-neutral. What a provider sends that has no word
// here rides along in [Extra] and survives the round trip to the same protocol
// byte for byte. A failure is always a typed [Fault], found with errors.As.
package ninelives
