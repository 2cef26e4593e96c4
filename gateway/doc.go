// Package gateway is the HTTP face: clients of OpenAI's chat and Responses
// protocols, Anthropic's Messages and Gemini point their base URL at it, and
// every call is healed as in the library.
//
// A request goes: accept (who is it, may he, what does he want) → journal →
// route → heal → write. What decides is pure and lies in files of its own: the
// route (route.go), the order of its candidates (order.go), what a client's
// headers ask for (control.go), limits (quota.go), what an error looks like to
// a client (errors.go), what is refused as a repetition (repeat.go). call.go
// carries a call out; write.go relays or writes its answer.
//
// Same protocol in and out: the client's bytes go on with the model's name
// exchanged, and the provider's bytes come back as they are, scanned on the way
// ([ninelives.Raw], [ninelives.Frame]). Everything else is translated.
package gateway
