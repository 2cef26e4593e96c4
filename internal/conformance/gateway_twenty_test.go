package conformance_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
)

// The twenty further faults as a client of the gateway meets them: each is
// rescued, or told in the client's own words for what it is.
func TestTwentyFaultsThroughTheGateway(t *testing.T) { playActs(t, twentyActs) }

var talkative = []ninelives.Protocol{ninelives.OpenAIChat, ninelives.OpenAIResponses, ninelives.AnthropicMessages}

var twentyActs = []act{
	{
		name: "01", does: "200, and an error as the first event",
		script: script{primary: one(chaos.Step{Error: chaos.Overloaded, End: chaos.ErrorEvent, Omit: []string{"start"}})},
		stream: course{1, [2]int{2, 1}, 0, backoff},
		piece:  course{1, [2]int{2, 1}, 2 * 60 * pace, 2*60*pace + backoff}, // an error in place of the answer
	},
	{
		name: "02", does: "an error after `response.created` or `message_start`", servers: talkative[1:], only: "stream",
		script: script{primary: one(chaos.Step{Error: chaos.Overloaded, End: chaos.ErrorEvent})},
		stream: course{1, [2]int{2, 1}, 0, backoff},
	},
	{
		name: "03", does: "an error after the delta with the role", servers: talkative[:1], only: "stream",
		script: script{primary: one(chaos.Step{Error: chaos.Overloaded, End: chaos.ErrorEvent})},
		stream: course{1, [2]int{2, 1}, 0, backoff},
	},
	{
		name: "03 later", does: "an error after 20 tokens", only: "stream", begun: true, spent: true,
		script: script{primary: one(chaos.Step{Error: chaos.Overloaded, End: chaos.ErrorEvent, After: 20})},
		stream: course{1, [2]int{2, 1}, -2 * pace, -2*pace + backoff},
	},
	{
		name: "04", does: "429, because the balance is spent", script: script{primary: one(chaos.Step{Error: chaos.Billing})},
		stream: course{1, [2]int{1, 1}, 0, 0},
		then: func(s *show, _ heard) { // and is not asked by the next call
			s.answered(s.ask(), 1, false)
			s.asked(1, 2)
		},
	},
	{
		name: "05", does: "one token a second", script: script{primaryModel: "trickle"},
		stream: course{0, [2]int{1, 0}, 59*time.Second - healthy, 59*time.Second - healthy}, // slow is not broken
		piece:  course{1, [2]int{1, 1}, race, raced},
	},
	{
		name: "06", does: "ends politely after 40 of 60 tokens, without a reason", begun: true, spent: true, only: "stream",
		script: script{primary: one(chaos.Step{After: 40, End: chaos.CleanEnd})},
		stream: course{1, [2]int{2, 1}, 39*pace + 19*pace, 39*pace + 19*pace + backoff},
	},
	{
		name: "06 late", does: "ends politely after the last word, without a reason", begun: true, spent: true, only: "stream",
		script: script{primaryModel: "no-marker"},
		stream: course{1, [2]int{2, 1}, 2 * healthy, 2*healthy + backoff},
	},
	{
		name: "07 blank", does: "200 without a byte", script: script{primary: one(chaos.Step{Empty: chaos.EmptyBlank})},
		stream: course{1, [2]int{4, 1}, 0, 0},
	},
	{
		name: "07 none", does: "200 without a choice", script: script{primary: one(chaos.Step{Empty: chaos.EmptyNone})},
		stream: course{1, [2]int{4, 1}, 0, 0},
	},
	{
		name: "07 null", does: "200, and the choices are `null`", script: script{primary: one(chaos.Step{Empty: chaos.EmptyNull})},
		stream: course{1, [2]int{4, 1}, 0, 0},
	},
	{
		name: "07 done", does: "200, and nothing but the end marker", script: script{primary: one(chaos.Step{Empty: chaos.EmptyDone})},
		stream: course{1, [2]int{4, 1}, 0, 0},
	},
	{
		name: "07 whitespace", does: "200, and blanks", script: script{primary: one(chaos.Step{Empty: chaos.EmptyWhitespace})},
		stream: course{1, [2]int{4, 1}, 4 * pace, 4 * pace},
		piece:  course{1, [2]int{4, 1}, 6 * pace, 6 * pace},
	},
	{
		name: "08", does: "thinks, and says nothing", script: script{primary: one(chaos.Step{Empty: chaos.EmptyReasoning})},
		stream: course{1, [2]int{4, 1}, 4 * 7 * pace, 4 * 7 * pace},
		piece:  course{1, [2]int{4, 1}, 30 * pace, 30 * pace},
		begun:  true, // with its thoughts
		sees:   "the whole answer, from the second; a stream shows the first one's thoughts before",
	},
	{
		name: "09", does: "200 with the body `null`", script: script{primaryModel: "null-body"},
		stream: course{1, [2]int{4, 1}, 0, 0},
	},
	{
		name: "10", does: "200 with a web page", script: script{primaryModel: "html-200"},
		stream: course{1, [2]int{1, 1}, 0, 0},
	},
	{
		name: "11", does: "cuts the stream in the arguments of a call",
		script: script{primary: one(chaos.Step{Calls: aCall, After: 2, End: chaos.Cut}), fallback: one(chaos.Step{Calls: aCall})},
		test:   cutCall, sees: "the whole call, from the second provider; no part of the cut one", after: "up to 0.5 s", calls: "2, 1",
	},
	{
		name: "11 claimed", does: "ends a call in the middle of its arguments, and says that it is whole",
		script: script{primary: one(chaos.Step{Calls: aCall, ToolFault: chaos.Unclosed}), fallback: one(chaos.Step{Calls: aCall})},
		test:   unclosedCall, sees: "`length`, and no call; the whole call from the second provider where the first one says itself that it is malformed (Gemini)", after: "at once", calls: "1, 0",
	},
	{
		name: "12 same", does: "gives two calls the same index",
		script: script{primary: one(chaos.Step{Calls: twoCalls, ToolFault: chaos.DuplicateIndex})},
		test:   bothCalls, sees: "both calls, whole and apart", after: "at once", calls: "1, 0",
	},
	{
		name: "12 missing", does: "gives two calls no index",
		script: script{primary: one(chaos.Step{Calls: twoCalls, ToolFault: chaos.MissingIndex})},
		test:   bothCalls, sees: "both calls, whole and apart", after: "at once", calls: "1, 0",
	},
	{
		name: "13", does: "the model declines", script: script{primary: one(declining)}, servers: talkative,
		test: declined, sees: "the second provider's answer; what was streamed of a `refusal` of Messages stays, with that reason", after: "at once", calls: "1, 1",
	},
	{
		name: "13 both", does: "the model declines, and so does the second", script: script{primary: one(declining), fallback: one(declining)}, servers: talkative,
		test: declinedTwice, sees: "the refusal, as the protocol says one; no error", after: "at once", calls: "1, 1",
	},
	{
		name: "14", does: "the answer is cut off at the limit of tokens", script: script{primaryModel: "truncated"},
		test: truncated, sees: "what was said, with the reason: `length`, `max_tokens`, `MAX_TOKENS`", after: "at once", calls: "1, 0",
	},
	{
		name: "15", does: "429 once, with `Retry-After` as a date 2 s ahead", script: script{primaryModel: "429-date"},
		stream: course{0, [2]int{2, 0}, hint, hinted},
	},
	{
		name: "15 huge", does: "429, with `Retry-After: 3600`", script: script{primaryModel: "429-hour"},
		stream: course{1, [2]int{1, 1}, 0, 0},
		then: func(s *show, _ heard) { // which is obeyed to the second
			time.Sleep(time.Until(s.began.Add(time.Hour - 1)))
			s.answered(s.ask(), 1, false)
			s.asked(1, 2)
			s.answered(s.ask(), 1, false)
			s.asked(2, 3)
		},
	},
	{
		name: "16", does: "sends signs of life, and no token", script: script{primaryModel: "only-alive"},
		stream: course{1, [2]int{1, 1}, race, raced},
	},
	{
		name: "16 alone", does: "the same, and there is no second provider", script: script{primaryModel: "only-alive", alone: true}, only: "stream",
		test: onlyAlive, sees: "signs of life from the 50th second on, then the protocol's error event and a cut connection; no answer", after: "4 min", calls: "4, 0",
	},
	{
		name: "17", does: "gives no byte, and the client leaves after 3 s", script: script{primaryModel: "hang"},
		test: leavingAfter(3 * time.Second), sees: "–", after: "the provider is left at once", calls: "1, 0",
	},
	{
		name: "17 thinking", does: "sends headers and no token, and the client leaves after 3 s", script: script{primary: one(chaos.Step{First: time.Minute})},
		test: leavingAfter(3 * time.Second), sees: "–", after: "the provider is left at once", calls: "1, 0",
	},
	{
		name: "17 answering", does: "answers, and the client leaves in the middle", script: script{},
		test: leavingAfter(307 * time.Millisecond), sees: "–", after: "the provider is left at once", calls: "1, 0",
	},
	{
		name: "17 racing", does: "gives no byte, as the second one, and the client leaves after 12 s", script: script{primaryModel: "hang", fallbackModel: "hang"},
		test: leavingARace, sees: "–", after: "both providers are left at once", calls: "1, 1",
	},
	{
		name: "17 waiting", does: "429 with `Retry-After: 20`, and the client leaves after 3 s",
		script: script{primary: one(limited(1, chaos.HintSeconds, 20*time.Second)), alone: true},
		test:   leavingAWait, sees: "–", after: "nothing is asked any more", calls: "1, 0",
	},
	{
		name: "18", does: "resets the connection; the request has more than a MiB",
		script: script{primary: []chaos.Step{{Drop: chaos.RST}, {}}},
		test:   largeBody, sees: "the whole answer", after: "at once", calls: "2, 0, each with the whole request",
	},
	{
		name: "19", does: "503, and so does the second provider", script: script{primaryModel: "503-always", fallbackModel: "503-always"}, fails: true,
		stream: course{1, [2]int{2, 2}, 0, 2 * backoff},
	},
	{
		name: "20 late", does: "429 once, with a date 2 s ahead, and its clock is three hours late", script: skewed(-3 * time.Hour),
		stream: course{0, [2]int{2, 0}, hint, hinted},
	},
	{
		name: "20 early", does: "the same, and its clock is three hours early", script: skewed(3 * time.Hour),
		stream: course{0, [2]int{2, 0}, hint, hinted},
	},
}

var (
	aCall     = []chaos.Call{{Name: "*", Arguments: `{"content":"lives","path":"/tmp/nine"}`}}
	twoCalls  = []chaos.Call{{Name: "*", Arguments: `{"content":"a","path":"/tmp/one"}`}, {Name: "*", Arguments: `{"content":"b","path":"/tmp/two"}`}}
	declining = chaos.Step{Refusal: "I cannot help with that."}
)

// skewed is a provider whose clock differs from ours.
func skewed(by time.Duration) script {
	// Bubbles begin at this time.
	theirs := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(by)
	return script{primary: []chaos.Step{{Error: chaos.RateLimit, Headers: map[string]string{
		"Date":        theirs.Format(http.TimeFormat),
		"Retry-After": theirs.Add(2 * time.Second).Format(http.TimeFormat),
	}}, {}}}
}

// called holds that a client has these calls and nothing else, each whole.
func (s *show) called(h heard, calls []chaos.Call) {
	s.Helper()
	var got, want []string
	ids := map[string]bool{}
	for _, c := range h.calls {
		got = append(got, c.Name+" "+c.Arguments)
		ids[c.ID] = true
	}
	for _, c := range calls {
		want = append(want, "write_file "+c.Arguments)
	}
	equal(s, "calls", got, want)
	if s.face.protocol != ninelives.Gemini { // which tells calls apart by their order
		equal(s, "ids", len(ids), len(calls))
	}
	equal(s, "finish", h.finish, s.face.called)
	equal(s, "text", h.text, "")
}

func cutCall(s *show) {
	h := s.send(s.Context(), "Write the file.", s.face.tools)
	s.settle()
	s.asked(2, 1)
	s.called(h, aCall)
}

func unclosedCall(s *show) {
	h := s.send(s.Context(), "Write the file.", s.face.tools)
	s.settle()
	if s.protocol == ninelives.Gemini { // which says itself that the call is malformed
		s.asked(2, 1)
		s.called(h, aCall)
		return
	}
	s.asked(1, 0)
	equal(s, "calls", len(h.calls), 0)
	equal(s, "finish", h.finish, s.face.length)
}

func bothCalls(s *show) {
	h := s.send(s.Context(), "Write the files.", s.face.tools)
	s.settle()
	s.asked(1, 0)
	s.called(h, twoCalls)
}

func declined(s *show) {
	h := s.ask()
	s.settle()
	if s.protocol == ninelives.AnthropicMessages && s.streamed {
		// Its refusals are text until the end says otherwise: what was shown stays.
		s.asked(1, 0)
		equal(s, "words and reason", []string{h.text + h.refusal, h.finish}, []string{declining.Refusal, s.face.filtered})
		return
	}
	s.asked(1, 1)
	s.answered(h, 1, false)
}

func declinedTwice(s *show) {
	h := s.ask()
	s.settle()
	if s.protocol == ninelives.AnthropicMessages && s.streamed {
		s.asked(1, 0)
	} else {
		s.asked(1, 1)
	}
	equal(s, "status and words", []any{h.status, h.text + h.refusal}, []any{200, declining.Refusal})
	if h.refusal == "" && h.finish == s.face.stop && s.face.protocol != ninelives.Gemini { // which has no word for it
		s.Errorf("it looks like a plain answer: %s", h.body)
	}
}

// onlyAlive holds that a silence that never ends does, and is told as it is.
func onlyAlive(s *show) {
	h := s.ask()
	s.settle()
	s.asked(4, 0)
	for _, e := range s.primary.Log() {
		between(s, "each is hung up on", e.LeftAfter, time.Minute, time.Minute+10*time.Millisecond)
	}
	between(s, "took", h.took, 4*time.Minute, 4*time.Minute+5*time.Second)
	equal(s, "status", h.status, http.StatusOK) // it was given signs of life
	equal(s, "text", h.text, "")
	if h.failure == "" || h.message == "" {
		s.Errorf("it does not say what is wrong: %s", h.body)
	}
}

// leavingAfter holds that a provider hears at once that the client has left, and
// that nothing is asked for it any more.
func leavingAfter(at time.Duration) func(*show) {
	return func(s *show) {
		ctx, leave := context.WithCancel(s.Context())
		defer leave()
		time.AfterFunc(at, leave)
		s.send(ctx, prompt, "")
		time.Sleep(time.Hour)
		s.settle()
		s.asked(1, 0)
		equal(s, "the provider hears of it", s.primary.Log()[0].LeftAfter, at)
	}
}

func leavingARace(s *show) {
	ctx, leave := context.WithCancel(s.Context())
	defer leave()
	time.AfterFunc(12*time.Second, leave)
	s.send(ctx, prompt, "")
	time.Sleep(time.Hour)
	s.settle()
	s.asked(1, 1)
	equal(s, "the first hears of it", s.primary.Log()[0].LeftAfter, 12*time.Second)
	between(s, "so does the second", s.fallback.Log()[0].LeftAfter, 12*time.Second-raced, 12*time.Second-race)
}

func leavingAWait(s *show) {
	ctx, leave := context.WithCancel(s.Context())
	defer leave()
	time.AfterFunc(3*time.Second, leave)
	h := s.send(ctx, prompt, "")
	equal(s, "took", h.took, 3*time.Second)
	time.Sleep(time.Hour)
	s.settle()
	s.asked(1, 0)
}

// largeBody holds that a large request is sent again whole.
func largeBody(s *show) {
	large := strings.Repeat("All the cats of the town came by. ", 32_000)
	h := s.send(s.Context(), large, "")
	s.settle()
	s.asked(2, 0)
	s.answered(h, 0, false)
	for _, e := range s.primary.Log() {
		if len(e.Body) <= 1<<20 || !strings.Contains(string(e.Body), large) {
			s.Errorf("a request of %d bytes", len(e.Body))
		}
	}
}
