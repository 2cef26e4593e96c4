package conformance_test

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
)

// The faults that other gateways were measured with, row by row: whatever a
// provider can still answer is answered, nothing that is half is passed off as
// whole, and nobody waits for ever.
func TestMeasuredFaultsThroughTheGateway(t *testing.T) { playActs(t, measuredActs) }

var measuredActs = []act{
	{
		name: "F1", does: "429 three times, with `Retry-After: 2`, then well",
		script: script{primary: []chaos.Step{limited(3, chaos.HintSeconds, hint), {}}},
		stream: course{1, [2]int{3, 1}, 2 * hint, 2 * hinted},
	},
	{
		name: "F1n", does: "the same, without a second provider; in one piece", only: "piece",
		script: script{primary: []chaos.Step{limited(3, chaos.HintSeconds, hint), {}}, alone: true},
		stream: course{0, [2]int{4, 0}, 3 * hint, 3 * hinted},
	},
	{
		name: "F1s", does: "the same, streamed", only: "stream",
		script: script{primary: []chaos.Step{limited(3, chaos.HintSeconds, hint), {}}, alone: true},
		stream: course{0, [2]int{4, 0}, 3 * hint, 3 * hinted},
		then: func(s *show, _ heard) {
			at := s.arrivals(s.primary)
			for i := 1; i < len(at); i++ {
				between(s, "asked again after", at[i]-at[i-1], hint, hinted)
			}
		},
	},
	{
		name: "F1d", does: "429 twice, with `Retry-After` as a date 3 s ahead; no second provider",
		script: script{primary: []chaos.Step{limited(2, chaos.HintDate, 3*time.Second), {}}, alone: true},
		stream: course{0, [2]int{3, 0}, 6 * time.Second, 8400 * time.Millisecond},
		then: func(s *show, _ heard) {
			at := s.arrivals(s.primary)
			between(s, "asked again after", at[1], 3*time.Second, 3600*time.Millisecond)
		},
	},
	{
		name: "F1l", does: "429 for good, with `Retry-After: 120`",
		script: script{primary: one(limited(1, chaos.HintSeconds, 2*time.Minute))},
		stream: course{1, [2]int{1, 1}, 0, 0},
	},
	{
		name: "F1h", does: "one 429 without a hint to each of 40 calls that come at once; no second provider", only: "stream", few: true,
		script: script{primary: []chaos.Step{limited(40, "", 0), {}}, alone: true},
		test:   herd, sees: "the whole answer, all 40", after: "up to 12 s: they are asked again in turns", calls: "80 in all",
	},
	{
		name: "F1o", does: "529 twice; no second provider",
		script: script{primary: []chaos.Step{{Times: 2, Error: chaos.Overloaded, Status: 529}, {}}, alone: true},
		stream: course{0, [2]int{3, 0}, 0, backoff + 2*backoff},
	},
	{
		name: "F1i", does: "500 twice; no second provider",
		script: script{primary: []chaos.Step{{Times: 2, Error: chaos.ServerError}, {}}, alone: true},
		stream: course{0, [2]int{3, 0}, 0, backoff + 2*backoff},
	},
	{
		name: "F2", does: "gives no byte; in one piece", only: "piece", script: script{primaryModel: "hang"},
		stream: course{1, [2]int{1, 1}, race, raced},
	},
	{
		name: "F2s", does: "gives no byte; streamed", only: "stream", script: script{primaryModel: "hang"},
		stream: course{1, [2]int{1, 1}, race, raced},
	},
	{
		name: "F3", does: "400", script: script{primary: one(chaos.Step{Error: chaos.BadRequest})},
		stream: course{1, [2]int{1, 1}, 0, 0},
	},
	{
		name: "F4", does: "200 with JSON that is cut short", script: script{primary: one(chaos.Step{Body: &cutJSON})},
		stream: course{1, [2]int{2, 1}, 0, backoff},
	},
	{
		name: "F4s", does: "a stream whose third event is no JSON, and then its end", only: "stream",
		script: script{primary: one(chaos.Step{After: 2, Malformed: true, End: chaos.CleanEnd})}, begun: true, spent: true,
		stream: course{1, [2]int{2, 1}, -2 * pace, -2*pace + backoff}, // what was said is not said again
	},
	{
		name: "F4h", does: "200 with a web page", script: script{primaryModel: "html-200"},
		stream: course{1, [2]int{1, 1}, 0, 0},
	},
	{
		name: "F5", does: "its filter stops the answer; in one piece", only: "piece", script: script{primaryModel: "filtered"},
		test: filtered, sees: "what was said, with the reason: `content_filter`, `refusal`, `SAFETY`; after a `refusal` of Messages the answer of the second provider", after: "at once", calls: "1, 0",
	},
	{
		name: "F5s", does: "its filter stops the answer; streamed", only: "stream", script: script{primaryModel: "filtered"},
		test: filtered, sees: "what was said, with the reason: `content_filter`, `refusal`, `SAFETY`", after: "at once", calls: "1, 0",
	},
	{
		name: "F5t", does: "the answer is cut off at the limit of tokens", script: script{primaryModel: "truncated"},
		test: truncated, sees: "what was said, with the reason: `length`, `max_tokens`, `MAX_TOKENS`", after: "at once", calls: "1, 0",
	},
	{
		name: "F6", does: "drops the connection after 2 tokens of a stream", only: "stream",
		script: script{primary: one(chaos.Step{After: 2, End: chaos.Cut})}, begun: true, spent: true,
		stream: course{1, [2]int{2, 1}, -2 * pace, -2*pace + backoff}, // what was said is not said again
	},
	{
		name: "F6w", does: "drops the connection in the middle of an answer in one piece", only: "piece",
		script: script{primary: one(chaos.Step{After: 2, End: chaos.Cut})},
		stream: course{1, [2]int{2, 1}, 2 * 60 * pace, 2*60*pace + backoff},
		again:  course{1, [2]int{2, 1}, 2 * pace, 2*pace + backoff},
	},
	{
		name: "F6z", does: "drops the connection before the first token of a stream", only: "stream",
		script: script{primary: one(chaos.Step{End: chaos.Cut})},
		stream: course{1, [2]int{2, 1}, 0, backoff},
	},
	{
		name: "F6b", does: "stalls after 2 tokens of a stream", only: "stream",
		script: script{primary: one(chaos.Step{After: 2, End: chaos.Stall})}, begun: true, spent: true,
		stream: course{1, [2]int{1, 1}, 30*time.Second - pace, 30*time.Second - pace},
	},
	{
		name: "F6c", does: "sends an error event after 2 tokens", only: "stream",
		script: script{primary: one(chaos.Step{After: 2, Error: chaos.Overloaded, End: chaos.ErrorEvent})}, begun: true, spent: true,
		stream: course{1, [2]int{2, 1}, -2 * pace, -2*pace + backoff}, // what was said is not said again
	},
	{
		name: "F6e", does: "sends an error as the first event of a stream", only: "stream",
		script: script{primaryModel: "error-first"},
		stream: course{1, [2]int{2, 1}, 0, backoff},
	},
	{
		name: "F7", does: "503 for 60 s, while 200 calls come, then well",
		script: script{primary: []chaos.Step{{For: time.Minute, Error: chaos.Overloaded, Status: 503}, short}, fallback: one(short)},
		few:    true, test: outage, sees: "the whole answer, every time; from the first provider again within 30 s", after: "at once; the first call up to 0.5 s", calls: "at most 10 in vain",
	},
	{
		name: "F7r", does: "resets connections for 60 s, while 200 calls come, then well",
		script: script{primary: []chaos.Step{{For: time.Minute, Drop: chaos.RST}, short}, fallback: one(short)},
		few:    true, test: outage, sees: "the whole answer, every time; from the first provider again within 30 s", after: "at once", calls: "at most 10 in vain",
	},
	{
		name: "F7h", does: "gives no byte, while 20 calls come one after another", script: script{primaryModel: "hang"},
		test: hanging, sees: "the whole answer, every time", after: "10 s for the first call, then at once; in one piece 10 s for the first five", calls: "1 in vain and up to 3 of one token; in one piece 5",
	},
	{
		name: "F7x", does: "503, and so does the second provider", script: script{primaryModel: "503-always", fallbackModel: "503-always"}, fails: true,
		stream: course{1, [2]int{2, 2}, 0, 2 * backoff},
	},
	{
		name: "F9", does: "drops the connection after all text and the reason of its end", only: "stream", of: spoiled(""),
		stream: course{0, [2]int{1, 0}, 0, 0}, uncounted: true,
	},
	{
		name: "F9e", does: "sends an error event after all text and the reason of its end", only: "stream", of: spoiled("error"),
		stream: course{0, [2]int{1, 0}, 0, 0}, uncounted: true,
	},
	{
		name: "F10", does: "streams, and the client leaves after 3 tokens", only: "stream",
		test: leaves, sees: "–", after: "the provider is left at once", calls: "1, 0",
	},
	{
		name: "F10w", does: "works on an answer in one piece, and the client leaves", only: "piece",
		test: leaves, sees: "–", after: "the provider is left at once", calls: "1, 0",
	},
	{
		name: "F11", does: "200 with an error object; in one piece", only: "piece",
		of:     errorIn200,
		stream: course{1, [2]int{2, 1}, 0, backoff},
	},
	{
		name: "F11s", does: "200 with an error object, to a call for a stream", only: "stream",
		of:     errorIn200,
		stream: course{1, [2]int{2, 1}, 0, backoff},
	},
	{
		name: "F12", does: "401, to three calls", script: script{primaryModel: "bad-key"},
		test: badKey, sees: "the whole answer, every time; never the 401", after: "at once", calls: "1 in vain for all three",
	},
	{
		name: "F13", does: "an answer with nothing in it; in one piece", only: "piece",
		script: script{primary: one(chaos.Step{Empty: chaos.EmptyWhitespace})},
		stream: course{1, [2]int{4, 1}, 6 * pace, 6 * pace},
		again:  course{1, [2]int{4, 1}, 4 * pace, 4 * pace},
	},
	{
		name: "F13s", does: "an answer with nothing in it; streamed", only: "stream",
		script: script{primary: one(chaos.Step{Empty: chaos.EmptyWhitespace})},
		stream: course{1, [2]int{4, 1}, 4 * pace, 4 * pace},
	},
}

var cutJSON = `{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","cont`

// short is an answer of three words, for many calls.
var short = chaos.Step{Text: "On my feet."}

func limited(times int, form chaos.Hint, wait time.Duration) chaos.Step {
	return chaos.Step{Times: times, Error: chaos.RateLimit, Hint: form, Wait: wait}
}

// herd holds that calls which were limited together do not come back together.
func herd(s *show) {
	answers := make([]heard, 40)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = s.ask() })
	}
	all.Wait()
	s.settle()
	for _, h := range answers {
		s.answered(h, 0, false)
		between(s, "took", h.took, s.alone(), 12*time.Second)
	}
	s.asked(80, 0)
	at := s.arrivals(s.primary)[40:]
	most := 0 // that came within a tenth of a second
	for i, from := range at {
		n := 0
		for _, t := range at[i:] {
			if t-from < 100*time.Millisecond {
				n++
			}
		}
		most = max(most, n)
	}
	if most > 8+3 { // a fifth of the calls, and three that may always be under way
		s.Errorf("%d retries within 100 ms", most)
	}
}

// filtered and truncated hold that an answer which its provider has ended is
// what it is: no plain success, and nobody else's.
func filtered(s *show) {
	if s.protocol == ninelives.AnthropicMessages && !s.streamed {
		// There it is a refusal, by the model or by a filter: another one is asked,
		// unless the client has read of it.
		h := s.ask()
		s.settle()
		s.asked(1, 1)
		s.answered(h, 1, false)
		return
	}
	s.ended(s.face.filtered)
}

func truncated(s *show) { s.ended(s.face.length) }

func (s *show) ended(reason string) {
	h := s.ask()
	s.settle()
	s.asked(1, 0)
	equal(s, "text", h.text, words(30))
	equal(s, "reason", h.finish, reason)
	took := 29 * pace
	if s.pieced() {
		took = 30 * pace
	}
	equal(s, "took", h.took, took)
}

// outage holds that an outage of a minute costs nobody's call, and few in vain.
func outage(s *show) {
	const every = time.Minute / 200
	calls := 300 // the last hundred come in the 30 s after it
	answers := make([]heard, calls)
	var all sync.WaitGroup
	for i := range calls {
		time.Sleep(time.Until(s.began.Add(time.Duration(i) * every)))
		all.Go(func() { answers[i] = s.ask() })
	}
	all.Wait()
	s.settle()
	for i, h := range answers {
		if h.status != 200 || h.text != short.Text {
			s.Errorf("call %d: status %d, %q", i, h.status, h.text)
		}
		between(s, "took", h.took, 2*pace, 3*pace+backoff)
	}
	doomed, back := 0, time.Duration(0)
	for _, e := range s.primary.Log() {
		if e.Status != 200 {
			doomed++
		} else if back == 0 {
			back = e.At.Sub(s.began)
		}
	}
	if doomed < 1 || doomed > 10 {
		s.Errorf("%d doomed calls", doomed)
	}
	between(s, "used again", back, time.Minute, 90*time.Second)
	equal(s, "served in the end", s.told(answers[calls-1], "Candidate"), s.names[0])
}

// hanging holds that a silence is waited for once, not by every call.
func hanging(s *show) {
	for i := range 20 {
		h := s.ask()
		s.answered(h, 1, false)
		waited := time.Duration(0)
		if i == 0 || s.pieced() && i < 5 {
			waited = race
		}
		between(s, "what it cost", h.took-s.alone(), waited, waited+10*time.Millisecond)
	}
	s.fallback.Wait()
	// The first, and requests of one token that ask whether it is back, each for
	// as long as the call that it runs beside.
	least, most := 2, 4
	if s.pieced() {
		least, most = 5, 5
	}
	if n := len(s.primary.Log()); n < least || n > most || len(s.fallback.Log()) != 20 {
		s.Errorf("%d calls in vain, %d to the other", n, len(s.fallback.Log()))
	}
}

// badKey holds that a dead key is not tried again by each call.
func badKey(s *show) {
	for range 3 {
		h := s.ask()
		s.answered(h, 1, false)
		equal(s, "took", h.took, s.alone())
	}
	s.settle()
	s.asked(1, 3)
}

// leaves holds that a client that leaves is not worked for any longer.
func leaves(s *show) {
	ctx, leave := context.WithCancel(s.Context())
	defer leave()
	at := 2*pace + pace/2
	time.AfterFunc(at, leave)
	s.send(ctx, prompt, "")
	time.Sleep(time.Minute)
	s.settle()
	s.asked(1, 0)
	e := s.primary.Log()[0]
	equal(s, "the provider hears of it", []any{e.Left, e.LeftAfter}, []any{true, at})
}

// errorIn200 is a provider that says in a good answer that it has none.
func errorIn200(p ninelives.Protocol) script {
	step := chaos.Step{Error: chaos.Overloaded, Status: 200}
	if p == ninelives.Gemini { // for which the simulator words another kind of 200
		body := `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`
		step = chaos.Step{Body: &body}
	}
	return script{primary: one(step)}
}

// spoiled is a provider that says all, and why it ends; and then its connection
// drops, or an error follows.
func spoiled(how string) func(ninelives.Protocol) script {
	return func(p ninelives.Protocol) script {
		return script{spoil: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(&spoiler{ResponseWriter: w, protocol: p, how: how}, r)
			})
		}}
	}
}

// spoiler lets the bytes of a stream through up to the reason of its end.
type spoiler struct {
	http.ResponseWriter
	protocol ninelives.Protocol
	how      string
	over     bool
}

func (w *spoiler) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *spoiler) Write(p []byte) (int, error) {
	if w.over {
		return len(p), nil
	}
	n, err := w.ResponseWriter.Write(p)
	last := map[ninelives.Protocol]string{ninelives.OpenAIChat: `"finish_reason":"stop"`, ninelives.OpenAIResponses: `event: response.completed`,
		ninelives.AnthropicMessages: `"stop_reason":"end_turn"`, ninelives.Gemini: `"finishReason":"STOP"`}[w.protocol]
	if !bytes.Contains(p, []byte(last)) {
		return n, err
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	if w.how == "" {
		panic(http.ErrAbortHandler)
	}
	w.over = true
	failed := map[ninelives.Protocol]string{
		ninelives.OpenAIChat:        "data: {\"error\":{\"message\":\"The server had an error\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n",
		ninelives.OpenAIResponses:   "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"The server had an error\",\"param\":null,\"sequence_number\":999}\n\n",
		ninelives.AnthropicMessages: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"Internal server error\"}}\n\n",
		ninelives.Gemini:            "data: {\"error\":{\"code\":500,\"message\":\"An internal error has occurred\",\"status\":\"INTERNAL\"}}\n\n",
	}[w.protocol]
	_, err = w.ResponseWriter.Write([]byte(failed))
	return n, err
}
