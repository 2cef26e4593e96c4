package chaos

import (
	"regexp"
	"strings"
	"time"
)

// public are the public failover scenarios S01 to S16, under the model names
// of Failover Bench (methodology v0.1, MIT), whose numbers they have. A name
// is known by its beginning: fb-s01 is enough.
var public = []Scenario{
	always("fb-ok", "healthy; the usual fallback of the public scenarios", Step{}),
	always("fb-ok-noprefill", "healthy, but refuses prefill; the fallback of S14", Step{Reject: []Check{Prefill}}),
	once("fb-s01-429-retry-after", "S01: one 429 with Retry-After: 2", Step{Error: RateLimit, Hint: HintSeconds, Wait: 2 * time.Second}),
	always("fb-s02-429-persistent", "S02: 429 without a hint, for good", Step{Error: RateLimit}),
	once("fb-s03-500-then-200", "S03: one 500", Step{Error: ServerError}),
	always("fb-s04-503-persistent", "S04: 503, for good", Step{Error: Overloaded, Status: 503}),
	once("fb-s05-reset", "S05: the first connection is reset before the headers", Step{Drop: RST}),
	always("fb-s06-no-response", "S06: no answer for 120 seconds, then the connection closes", Step{Drop: Hang, Pause: 120 * time.Second}),
	always("fb-s07-slow-ttft", "S07: headers at once, the first token after 20 seconds", Step{First: 20 * time.Second}),
	always("fb-s08-stream-cut", "S08: the stream is cut after 40 tokens", Step{After: 40, End: Cut}),
	always("fb-s09-stream-stall", "S09: silence for 30 seconds after 20 tokens, then the connection closes", Step{After: 20, Pause: 30 * time.Second, End: Cut}),
	always("fb-s10-malformed-chunk", "S10: an event that is no JSON after 10 tokens, then the rest", Step{After: 10, Malformed: true}),
	always("fb-s11-no-done", "S11: a whole answer without [DONE]", Step{Omit: []string{omitDone}}),
	always("fb-s12-context-length", "S12: every request is too long", Step{Error: ContextLength}),
	always("fb-s13-content-filter", "S13: the prompt is rejected", Step{Error: ContentFilter}),
	always("fb-s14-stream-cut", "S14: the stream is cut after 40 tokens; fb-ok-noprefill is the fallback", Step{After: 40, End: Cut}),
	{Name: "fb-s15-flap", About: "S15: 503 for the first 60 seconds, then well", Steps: []Step{{For: time.Minute, Error: Overloaded, Status: 503}, {Interval: pace}}},
	always("fb-s16-503-persistent", "S16: 503, for good; who answers is what counts", Step{Error: Overloaded, Status: 503}),
}

var publicNumber = regexp.MustCompile(`^(?i)(?:fb-)?(s\d\d)(?:-|$)`)

// publicName gives the full name of the public scenario whose number a name
// begins with, or "".
func publicName(name string) string {
	m := publicNumber.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	for _, sc := range public {
		if n := publicNumber.FindStringSubmatch(sc.Name); n != nil && strings.EqualFold(n[1], m[1]) {
			return sc.Name
		}
	}
	return ""
}
