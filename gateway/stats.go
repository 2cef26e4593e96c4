package gateway

import (
	"slices"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/visible"
)

// callStats is what is told of a call once it has ended: the same in the log,
// in metrics, in its span and on the page. It holds numbers, our own words and
// names of the configuration; nothing of what was said.
type callStats struct {
	ID    string // of the request, as the client was told
	Trace string // id of the trace, if there is one
	Began time.Time
	Took  time.Duration
	// FirstToken is when the first text, reasoning or call went out, from Began;
	// 0 if none did or the answer came in one piece.
	FirstToken time.Duration
	// Overhead is what the gateway itself took before the first attempt.
	Overhead time.Duration

	Operation string // gen_ai.operation.name: operationChat or operationEmbeddings
	Protocol  ninelives.Protocol
	Stream    bool
	Route     string
	Key       string // the name of the client's key
	Served    string // the candidate that answered; empty if none did

	Outcome string // see the constants
	Class   ninelives.Class
	Status  int // that the client saw
	Usage   ninelives.Usage
	// ClientRetry is how often the client says that it has sent the request before.
	ClientRetry int
	// ClientGone says that nobody was there to take the rest of the answer.
	ClientGone bool

	// Healed are the steps that it took, each kind once, in order.
	Healed []string
	Trail  []attemptStats
}

// What calls ask for.
const (
	operationChat       = "chat"
	operationEmbeddings = "embeddings"
)

// How calls end.
const (
	outcomeOK       = "ok"       // a whole answer
	outcomeCut      = "cut"      // an answer that ended at its limit of tokens
	outcomeRefused  = "refused"  // the model or a filter declined
	outcomeDegraded = "degraded" // a substitute
	outcomeFailed   = "failed"   // an error, as no candidate could answer
	outcomeRejected = "rejected" // the gateway said no: key, limit, malformed, stopping
	outcomeGone     = "gone"     // the client left first
)

// attemptStats is one request to a provider.
type attemptStats struct {
	Number    int
	Candidate string
	// Class is empty for the attempt that answered.
	Class  ninelives.Class
	Status int
	Took   time.Duration
	// Lost says that it was beaten by another one, or abandoned.
	Lost bool
	// Cost is in US dollars; Estimated says that the provider did not report what
	// it is made of.
	Cost      float64
	Estimated bool
	// Tokens are those of input and output, as far as they are known or guessed.
	Tokens int
}

// cost is what the call cost in all, and whether any of that is an estimate.
func (c *callStats) cost() (sum float64, estimated bool) {
	for i := range c.Trail {
		sum += c.Trail[i].Cost
		estimated = estimated || c.Trail[i].Estimated
	}
	return sum, estimated
}

// healing names the step that a notice tells of, as it is counted; empty for
// those that heal nothing.
func healing(k ninelives.NoticeKind) string {
	switch k {
	case ninelives.NoticeRetry, ninelives.NoticeFailover, ninelives.NoticeRepair, ninelives.NoticeNudge,
		ninelives.NoticeContinue, ninelives.NoticeHedge, ninelives.NoticeDegraded:
		return string(k)
	}
	return ""
}

// The steps that no notice tells of: an answer from the cache, and one that an
// equal call under way has shared.
const (
	healedCache  = "cache"
	healedJoined = "joined"
)

// heal adds a step.
func (c *callStats) heal(step string) {
	if step != "" && !slices.Contains(c.Healed, step) {
		c.Healed = append(c.Healed, step)
	}
}

// notice takes a healing step into the account.
func (c *callStats) notice(n ninelives.Notice, now time.Time) {
	c.heal(healing(n.Kind))
	switch n.Kind {
	case ninelives.NoticeAttempt:
		// Took is when it began until it has ended.
		c.Trail = append(c.Trail, attemptStats{Number: n.Attempt, Candidate: n.Candidate, Took: -now.Sub(c.Began), Lost: true})
	case ninelives.NoticeFault:
		a := c.attempt(n.Attempt)
		if a == nil { // one that was never sent
			c.Trail = append(c.Trail, attemptStats{Number: n.Attempt, Candidate: n.Candidate})
			a = &c.Trail[len(c.Trail)-1]
		}
		a.Lost, a.Took = false, n.Took
		if n.Fault != nil {
			a.Class, a.Status = n.Fault.Class, n.Fault.Status
		}
	}
}

// end closes the account: served is the attempt that answered, 0 if none did.
func (c *callStats) end(served int, now time.Time) {
	c.Took = now.Sub(c.Began)
	for i := range c.Trail {
		a := &c.Trail[i]
		if a.Lost {
			a.Took += c.Took
			if a.Number == served {
				a.Lost = false
				c.Served = a.Candidate
			}
		}
	}
}

func (c *callStats) attempt(number int) *attemptStats {
	for i := range c.Trail {
		if c.Trail[i].Number == number {
			return &c.Trail[i]
		}
	}
	return nil
}

// label makes a name safe for logs, pages and labels, and bounds it.
func label(s string) string {
	const most = 128
	if len(s) > most {
		s = s[:most] + "…"
	}
	return visible.EscapedLine(s)
}
