package agent

import (
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// framing is what a message costs beside its content. Source: OpenAI's cookbook
// on counting tokens (3 for each message, and its role).
const framing = 4

// Estimate says how many tokens the messages need. It adds up: the estimate of
// two lists is that of one after the other. It is never less than what package
// heal takes them for.
func Estimate(messages ...ninelives.Message) int {
	n := 0
	var one ninelives.Request
	for i := range messages {
		one.Messages = messages[i : i+1]
		n += heal.FactsOf(&one).Input + 1 + framing
	}
	return n
}
