package gateway

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/visible"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// truth is what a client is told about how its call was answered: in headers,
// as far as it is known when they go out, and again at the end of a stream,
// when all of it is.
//
// A stream that the gateway writes itself says it in a comment before its last
// event, which every client reads over. One that is relayed stays as the
// provider sent it, byte for byte: there it comes in HTTP trailers alone. Both
// kinds have the trailers.
//
// It is not safe for concurrent use.
type truth struct {
	requestID string // what the client knows the call by
	call      string // the id in the journal; empty if it is not there

	candidate string
	model     string
	attempts  int
	reason    string
	healed    []string
	degraded  ninelives.Degraded
	cache     string // what the cache did (cacheLabel); empty where there is none
	cost      float64
	costKnown bool
	estimated bool

	// The overhead is the time that is spent neither within an attempt nor
	// waiting for one: outside is what there is of it until mark, running are the
	// attempts under way, waited is what of the time since mark was a wait.
	outside time.Duration
	mark    time.Time
	running []int
	waited  time.Duration
}

// newTruth begins with a call that came in at began.
func newTruth(began time.Time) truth { return truth{mark: began} }

// notice takes a step of the healing, as it is told.
func (t *truth) notice(n ninelives.Notice) { t.step(n, time.Now()) }

func (t *truth) step(n ninelives.Notice, now time.Time) {
	switch n.Kind {
	case ninelives.NoticeAttempt:
		t.enter(n.Attempt, now)
		t.candidate, t.attempts = n.Candidate, max(t.attempts, n.Attempt)
		if t.reason == "" {
			t.reason = "first"
		}
	case ninelives.NoticeFault:
		t.leave(n.Attempt, now)
	case ninelives.NoticeWait:
		if len(t.running) == 0 {
			t.waited += n.Wait
		}
	case ninelives.NoticeHedge:
		t.heal("hedge", nil)
	case ninelives.NoticeRepair:
		if n.Repair != nil {
			t.heal("repair", n.Fault)
		}
	case ninelives.NoticeRetry, ninelives.NoticeFailover, ninelives.NoticeNudge, ninelives.NoticeContinue:
		t.heal(string(n.Kind), n.Fault)
	case ninelives.NoticeProbe:
		t.reason = because("probe", n.Fault)
	case ninelives.NoticeDegraded:
		t.heal("degraded", n.Fault)
	}
}

// heal notes an action and makes it the reason of what follows.
func (t *truth) heal(action string, why *ninelives.Fault) {
	if !slices.Contains(t.healed, action) {
		t.healed = append(t.healed, action)
	}
	t.reason = because(action, why)
}

func because(action string, why *ninelives.Fault) string {
	if why == nil || why.Class == "" {
		return action
	}
	return action + ": " + string(why.Class)
}

// enter and leave follow what attempts are under way.
func (t *truth) enter(attempt int, now time.Time) {
	if len(t.running) == 0 {
		t.account(now)
	}
	if !slices.Contains(t.running, attempt) {
		t.running = append(t.running, attempt)
	}
}

func (t *truth) leave(attempt int, now time.Time) {
	i := slices.Index(t.running, attempt)
	if i < 0 {
		return
	}
	if t.running = slices.Delete(t.running, i, i+1); len(t.running) == 0 {
		t.mark = now
	}
}

// account closes a time outside of attempts.
func (t *truth) account(now time.Time) {
	t.outside += max(0, now.Sub(t.mark)-t.waited)
	t.mark, t.waited = now, 0
}

// done takes the answer, or nil where there is none. No attempt is under way any
// more: those that lost a race end without a word.
func (t *truth) done(r *ninelives.Response) {
	t.end(time.Now())
	if r == nil {
		return
	}
	t.degraded = r.Degraded
	if r.Candidate != "" {
		t.candidate = r.Candidate
	} else if r.Degraded != "" {
		t.candidate = ""
	}
	if r.Model != "" {
		t.model = r.Model
	}
	t.attempts = r.Attempts
}

// end ends the attempts that are under way.
func (t *truth) end(now time.Time) {
	if len(t.running) > 0 {
		t.running, t.mark = nil, now
	}
}

// paid says what the call cost, in US dollars, as far as it is known.
func (t *truth) paid(dollars float64, estimated bool) {
	t.cost, t.estimated, t.costKnown = dollars, estimated, true
}

// overhead is the time until now that was spent neither within an attempt nor
// waiting for one.
func (t *truth) overhead(now time.Time) time.Duration {
	if len(t.running) > 0 {
		return t.outside
	}
	return t.outside + max(0, now.Sub(t.mark)-t.waited)
}

// The names of the truth, in headers after the prefix, in comments as they are.
var truthNames = []string{"candidate", "model", "attempts", "reason", "healed", "degraded", "cache", "cost-usd", "overhead-us", "call", "request-id"}

// value is one part of the truth; empty if there is none.
func (t *truth) value(name string, now time.Time) string {
	switch name {
	case "candidate":
		return t.candidate
	case "model":
		return t.model
	case "attempts":
		return strconv.Itoa(t.attempts)
	case "reason":
		return t.reason
	case "healed":
		return strings.Join(t.healed, ",")
	case "degraded":
		return string(t.degraded)
	case "cache":
		return t.cache
	case "cost-usd":
		if !t.costKnown {
			return ""
		}
		cost := strconv.FormatFloat(t.cost, 'f', 6, 64)
		if t.estimated {
			cost += "; estimated"
		}
		return cost
	case "overhead-us":
		return strconv.FormatInt(t.overhead(now).Microseconds(), 10)
	case "call":
		return t.call
	case "request-id":
		return t.requestID
	}
	return ""
}

// headers writes what is known by now into the headers of a response, or into
// its trailers.
func (t *truth) headers(h http.Header) {
	now := time.Now()
	for _, name := range truthNames {
		if v := t.value(name, now); v != "" {
			h.Set(ourPrefix+name, headerValue(v))
		}
	}
}

// headerValue makes a value one for a header: visible ASCII alone, of bounded
// length.
func headerValue(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, visible.EscapedLine(s))
	return s[:min(len(s), 256)]
}

// comment appends the whole truth as a comment of a stream: for those that the
// gateway writes itself, before the last event.
func (t *truth) comment(dst []byte) []byte {
	now := time.Now()
	var w rawjson.Writer
	w.Open('{')
	for _, name := range truthNames {
		if v := t.value(name, now); v != "" {
			w.StringMember(strings.ReplaceAll(name, "-", "_"), headerValue(v))
		}
	}
	w.Close('}')
	dst = append(dst, ": ninelives "...)
	dst = append(dst, w.B...)
	return append(dst, "\n\n"...)
}
