package agent

import (
	"context"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Summarise asks a model for a summary: instruction is the system prompt of
// that request, messages are all that it says besides. It has no tools. The
// answer's text is the summary; an answer that was cut off is an error.
type Summarise func(ctx context.Context, messages []ninelives.Message, instruction string) (string, error)

// Compact makes the context smaller, tier by tier, until it is under the
// threshold. It gives what was done, and the view that follows from it (see
// [Compaction.Apply]). A Compaction of tier 0 says that nothing could be done;
// any other has After < Before. why is told in the Compaction. force does it
// under the threshold too (the user asked, or a provider said that the estimate
// is wrong). An error is the context's alone: a model that fails is what the
// higher tiers are for.
func (c *CompactionSettings) Compact(ctx context.Context, x Context, why string, force bool, summarise Summarise) (Compaction, []ninelives.Message, error) {
	n := x.tokens()
	return Compaction{Why: why, Before: n, After: n}, x.Messages, nil
}

// Apply gives the view that a compaction makes of another one, and its Through
// (see [Context]). It changes neither.
func (c *Compaction) Apply(view []ninelives.Message, through []int) ([]ninelives.Message, []int) {
	return view, through
}
