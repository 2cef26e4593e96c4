package conformance_test

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

// protocols are those that every scenario is played in.
var protocols = []ninelives.Protocol{ninelives.OpenAIChat, ninelives.OpenAIResponses, ninelives.AnthropicMessages, ninelives.Gemini}

// The simulator's plain answer: a token every 15 ms, the first at once. The
// prompt is of 8 tokens by the estimate that clocks grow with, and of 11 by
// the simulator's count.
const (
	pace      = 15 * time.Millisecond
	healthy   = 59 * pace
	prompt    = "Why do cats land on their feet?"
	slope     = 8 * 2 * time.Second / 10_000
	softFirst = 10*time.Second + slope // when interactive starts the next candidate beside a silent one
)

// script is what the two providers of a stage do.
type script struct {
	// primary and fallback are steps of one's own; without any the model of
	// that name in the simulator's catalogue is played ("ok" by default).
	primary, fallback           []chaos.Step
	primaryModel, fallbackModel string
	// preset is interactive by default; policy changes it.
	preset string
	policy func(*heal.Policy)
	// alone leaves the fallback out.
	alone bool
	// inside puts the gateway into the client's own process: nothing listens.
	inside bool
	// spoil, if set, comes between the primary and its clients.
	spoil func(http.Handler) http.Handler
	// describe changes what is known of both candidates.
	describe func(*ninelives.Capabilities)
	options  []heal.Option
}

// stage is a chain of two providers in memory, each a real HTTP server that a
// real HTTP client talks to, in virtual time.
type stage struct {
	*testing.T
	protocol          ninelives.Protocol
	began             time.Time
	primary, fallback *chaos.Server
	model             *heal.Healed
	names             [2]string
}

// play plays a script in each protocol.
func play(t *testing.T, s script, test func(*stage)) {
	t.Helper()
	for _, p := range protocols {
		playIn(t, p, s, test)
	}
}

// playIn plays a script in one protocol.
func playIn(t *testing.T, p ninelives.Protocol, s script, test func(*stage)) {
	t.Helper()
	t.Run(string(p), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			st := &stage{T: t, protocol: p}
			policy, first, second := st.set(s)
			options := append([]heal.Option{heal.With(policy)}, s.options...)
			if !s.alone {
				options = append(options, heal.Fallback(second))
			}
			st.model = heal.New(first, options...)
			st.began = time.Now()
			test(st)
		})
	})
}

// set starts the two providers of a script and gives the policy to heal by.
func (s *stage) set(sc script) (policy heal.Policy, first, second ninelives.Model) {
	s.Helper()
	first = s.open(&s.primary, s.protocol, "primary", sc.primaryModel, sc.primary, sc.describe, sc.spoil)
	second = s.open(&s.fallback, s.protocol, "fallback", sc.fallbackModel, sc.fallback, sc.describe, nil)
	s.names = [2]string{first.Name(), second.Name()}
	policy, err := heal.Preset(cmp.Or(sc.preset, "interactive"))
	if err != nil {
		s.Fatal(err)
	}
	if sc.policy != nil {
		sc.policy(&policy)
	}
	return policy, first, second
}

// open starts a provider and opens its model.
func (s *stage) open(srv **chaos.Server, p ninelives.Protocol, name, model string, steps []chaos.Step, describe func(*ninelives.Capabilities), spoil func(http.Handler) http.Handler) ninelives.Model {
	s.Helper()
	if model == "" {
		model = "ok"
	}
	if steps != nil {
		steps = slices.Clone(steps)
		for i := range steps {
			if steps[i].Interval == 0 {
				steps[i].Interval = pace
			}
		}
		model = "scripted"
		*srv = chaos.New(chaos.Scenario{Name: model, Steps: steps})
	} else {
		*srv = chaos.New()
	}
	if describe == nil {
		describe = func(*ninelives.Capabilities) {}
	}
	dial := (*srv).Dial
	if spoil != nil {
		listener := newPipes()
		apart := &http.Server{Handler: spoil(*srv)}
		go func() { _ = apart.Serve(listener) }()
		s.Cleanup(func() { _ = apart.Close() })
		dial = listener.dial
	}
	m, err := provider.Open(model, provider.Provider(name), provider.BaseURL("http://"+name+".sim/v1"), provider.Protocol(p),
		provider.Dial(dial), provider.Key(provider.NewSecret("sk-not-for-anyone")), provider.Capabilities(describe))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup((*srv).Close)
	s.Cleanup(m.(*provider.Model).CloseIdleConnections)
	return m
}

// told is one call as its caller saw it.
type told struct {
	resp *ninelives.Response
	err  error
	// held is the text that a caller holds in the end who keeps to Discard.
	held string
	// voided are the texts that were taken back.
	voided  []string
	notices []ninelives.Notice
	took    time.Duration
}

// ask makes the usual call and watches it to its end.
func (s *stage) ask() told { s.Helper(); return s.call(s.Context(), ninelives.Prompt(prompt)) }

func (s *stage) call(ctx context.Context, req *ninelives.Request) told {
	s.Helper()
	start := time.Now()
	var r told
	byAttempt := map[int]string{}
	ends := 0
	for ev, err := range s.model.Stream(ctx, req) {
		if err != nil {
			r.err, ends = err, ends+1
			continue
		}
		switch e := ev.(type) {
		case ninelives.TextDelta:
			byAttempt[e.Attempt] += e.Text
		case ninelives.Discard:
			r.voided = append(r.voided, byAttempt[e.Attempt])
			delete(byAttempt, e.Attempt)
		case ninelives.Notice:
			r.notices = append(r.notices, e)
		case ninelives.Done:
			r.resp, ends = e.Response, ends+1
		}
	}
	r.took = time.Since(start)
	if ends != 1 {
		s.Errorf("the call has %d ends", ends)
	}
	var b strings.Builder
	for n := 0; n < 99; n++ {
		b.WriteString(byAttempt[n])
	}
	r.held = b.String()
	if r.resp != nil && r.resp.Degraded == "" && !r.resp.OutputDefaulted && r.held != r.resp.Text() {
		s.Errorf("the caller holds another text than the response has:\n%q\n%q", r.held, r.resp.Text())
	}
	s.primary.Wait()
	s.fallback.Wait()
	return r
}

// waits are the waits that were announced, in order.
func (r told) waits() []time.Duration {
	var list []time.Duration
	for _, n := range r.notices {
		if n.Kind == ninelives.NoticeWait {
			list = append(list, n.Wait)
		}
	}
	return list
}

// waited is all that was announced.
func (r told) waited() (sum time.Duration) {
	for _, w := range r.waits() {
		sum += w
	}
	return sum
}

// kinds are the kinds of the notices, in order.
func (r told) kinds() string {
	var list []string
	for _, n := range r.notices {
		list = append(list, string(n.Kind))
	}
	return strings.Join(list, " ")
}

// arrivals are the times at which a provider was asked, from the start.
func (s *stage) arrivals(srv *chaos.Server) []time.Duration {
	list := []time.Duration{}
	for _, e := range srv.Log() {
		list = append(list, e.At.Sub(s.began))
	}
	return list
}

// asked holds how many requests each provider got.
func (s *stage) asked(primary, fallback int) {
	s.Helper()
	equal(s, "requests at the primary and the fallback", []int{len(s.primary.Log()), len(s.fallback.Log())}, []int{primary, fallback})
}

// whole holds that a call gave the sixty words as a plain success, served by
// the candidate with that index, after that time and the announced waits.
func (s *stage) whole(r told, served int, took time.Duration) {
	s.Helper()
	if r.err != nil || r.resp == nil {
		s.Fatalf("no answer: %v\n%s", r.err, r.kinds())
	}
	equal(s, "text", r.resp.Text(), chaos.Answer)
	equal(s, "held", r.held, chaos.Answer)
	equal(s, "finish", r.resp.Finish, ninelives.FinishStop)
	equal(s, "served by", r.resp.Candidate, s.names[served])
	equal(s, "is fallback", r.resp.IsFallback, served != 0)
	model := s.names[served]
	equal(s, "model as reported", r.resp.Model, "sim/"+model[strings.IndexByte(model, '/')+1:])
	equal(s, "took, waits aside", r.took-r.waited(), took)
}

// usage holds what the answer cost by the provider's count.
func (s *stage) usage(r told, input, output int) {
	s.Helper()
	if r.resp != nil {
		equal(s, "usage", []int{r.resp.Usage.TotalInput(), r.resp.Usage.TotalOutput()}, []int{input, output})
	}
}

// between holds that a wait is within its bounds, both included.
func between(t testing.TB, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %s, not within %s and %s", what, got, least, most)
	}
}

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
