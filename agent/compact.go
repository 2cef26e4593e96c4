package agent

import (
	"context"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Keeping the context inside the window, in tiers. docs/compaction.md has the
// picture.
//
//	1  results of tools over 200 characters in older messages are stripped
//	2  older messages are summarised in overlapping chunks, oldest first
//	3  the oldest half is summarised
//	4  a description made without a model, when summarising fails
//	5  older messages are put away, and a line says so
//
// What is planned here is a view: the messages stay in the journal as they are.
// compact_plan.go says what may be touched, compact_strip.go is tier 1,
// compact_summary.go what a model is asked, compact_plain.go what needs none.
//
// Source: design 001, layer 4.

// Why a compaction is made.
const (
	WhyThreshold = "threshold"
	WhyOverflow  = "overflow"       // a provider said that the request does not fit
	WhySmaller   = "smaller_window" // the turn goes on at a smaller model
	WhyAsked     = "asked"          // the user asked for it
)

// settled is the share of the window that summaries aim for, so that the next
// one is not due at once. Source: design 001, whose picture ends at 62 %.
const settled = 0.62

// Summarise asks a model for a summary: instruction is the system prompt of
// that request, messages are all that it says besides. It has no tools. The
// answer's text is the summary; an answer that was cut off is an error.
type Summarise func(ctx context.Context, messages []ninelives.Message, instruction string) (string, error)

// Compact makes the context smaller, tier by tier, until it is under the
// threshold. It gives what was done, and the view that follows from it (see
// [Compaction.Apply]). A Compaction of tier 0 says that nothing could be done;
// any other has After < Before, so that asking again and again comes to an end.
//
// why is told in the Compaction. force does it under the threshold too: for
// WhyOverflow until it is well under what did not fit, else as far as it goes.
// The error is the context's alone: a model that fails is what the higher tiers
// are for.
func (c *CompactionSettings) Compact(ctx context.Context, x Context, why string, force bool, summarise Summarise) (Compaction, []ninelives.Message, error) {
	p := c.plan(x)
	done := Compaction{Why: why, Before: p.tokens(), After: p.tokens()}
	goal := c.goal(p, why, force)
	if !force && p.tokens() < goal.under {
		return done, x.Messages, nil
	}
	if len(x.Messages) >= c.Minimum {
		if p.strip(c.StripOver) {
			done.Tier = 1
		}
		if goal.all || p.tokens() >= goal.under {
			if x.Strikes < c.Strikes {
				tier, strike, err := p.summarise(ctx, goal, summarise)
				if err != nil {
					return Compaction{Why: why, Before: done.Before, After: done.Before}, x.Messages, err
				}
				done.Tier, done.Strike = max(done.Tier, tier), strike
			}
		}
		if p.tokens() >= goal.under && p.plain(goal) {
			done.Tier = 4
		}
		if p.tokens() >= goal.under {
			if removed := p.archive(goal); removed != "" {
				done.Tier, done.Archive = 5, removed
			}
		}
	}
	if p.tokens() > goal.fits && p.cut(goal.fits) {
		done.Tier = 5
	}
	done.After = p.tokens()
	if done.After >= done.Before {
		return Compaction{Why: why, Before: done.Before, After: done.Before, Strike: done.Strike}, x.Messages, nil
	}
	p.tell(&done)
	return done, p.view(), nil
}

// goal is how far a compaction goes, in tokens.
type goal struct {
	under int  // the tiers go on until the context is under it
	aim   int  // summaries go on until it is no larger than this
	fits  int  // more than this does not fit
	all   bool // everything that may be summarised is
}

func (c *CompactionSettings) goal(p *plan, why string, force bool) goal {
	room := p.x.room()
	if force && why == WhyOverflow {
		// The estimate is wrong: what there is did not fit.
		room = min(room, p.tokens()-1)
	}
	g := goal{under: int(c.Act * float64(room)), aim: int(settled * float64(room)), fits: room}
	switch {
	case force && why == WhyOverflow:
		g.fits = g.under // nobody knows by how much it was too large
	case force:
		g.aim, g.all = 0, true
	}
	return g
}
