package heal

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	ninelives "github.com/ninelives-ai/ninelives"
	"pgregory.net/rapid"
)

// schedules is how many random fault schedules a property is tried on:
// NINELIVES_SCHEDULES, or RAPID_CHECKS as any property, 10,000 where CI is set,
// else few enough to wait for.
func schedules() int {
	for _, name := range []string{"NINELIVES_SCHEDULES", "RAPID_CHECKS"} {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
	}
	if os.Getenv("CI") != "" {
		return 10_000
	}
	return 500
}

// world is one random world: candidates that fail in every way, and one call.
type world struct {
	models   []*wild
	opts     []Option
	policy   Policy
	mode     Mode
	deadline time.Duration
	cancelAt time.Duration // zero: never
	req      *ninelives.Request
}

// wild is a model with a random script whose every answer is known: each step
// tells its own text, so that what is accepted can be told from what is not.
type wild struct{ *scripted }

var classes = []ninelives.Class{
	ninelives.ClassRateLimit, ninelives.ClassBilling, ninelives.ClassAuth, ninelives.ClassOverloaded, ninelives.ClassTimeout,
	ninelives.ClassNetwork, ninelives.ClassModelNotFound, ninelives.ClassContextLength, ninelives.ClassContentFilter,
	ninelives.ClassRefusal, ninelives.ClassFormat, ninelives.ClassStreamBroken, ninelives.ClassEmpty, ninelives.ClassUnknown,
}

func drawFault(t *rapid.T) *ninelives.Fault {
	f := fault(rapid.SampledFrom(classes).Draw(t, "class"))
	if rapid.Bool().Draw(t, "hints") {
		f.RetryAfter = time.Duration(rapid.IntRange(1, 90_000).Draw(t, "hint")) * time.Millisecond
	}
	if f.Class == ninelives.ClassFormat && rapid.Bool().Draw(t, "repairable") {
		f.Repairs = []ninelives.Repair{{Name: "drop_parameter", Param: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "param")}}
	}
	f.Final = rapid.IntRange(0, 9).Draw(t, "final") == 0
	return f
}

// draft is an answer being drawn: its parts, and the events that show them,
// numbered as a provider numbers them.
type draft struct {
	t     *rapid.T
	tag   string
	form  bool // the answer should be JSON
	steps step
	parts []ninelives.Part
	words int
}

func (d *draft) chance(one int, name string) bool {
	return rapid.IntRange(0, one-1).Draw(d.t, name) == 0
}

func (d *draft) pause(name string) {
	if rapid.Bool().Draw(d.t, name+" pauses") {
		d.steps = append(d.steps, wait(time.Duration(rapid.IntRange(1, 20_000).Draw(d.t, name))*time.Millisecond))
	}
}

func (d *draft) think() {
	d.steps = append(d.steps, act{ev: ninelives.ReasoningDelta{Part: len(d.parts), Text: "hm"}})
	d.parts = append(d.parts, ninelives.Reasoning{Text: "hm"})
	d.pause("thinking")
}

// write draws a part of text made of the words of one candidate's one request,
// so that no two of them can be mixed up.
func (d *draft) write() {
	words := make([]string, rapid.IntRange(0, 4).Draw(d.t, "words"))
	for i := range words {
		words[i] = fmt.Sprintf("%s-%d ", d.tag, d.words)
		d.words++
		switch {
		case d.form && d.chance(2, "json"):
			words[i] = fmt.Sprintf(`{"tag":%q}`, words[i])
		case d.chance(5, "blank"):
			words[i] = "\n"
		}
		d.steps = append(d.steps, act{ev: ninelives.TextDelta{Part: len(d.parts), Text: words[i]}})
		d.pause("word")
	}
	if len(words) > 0 {
		d.parts = append(d.parts, ninelives.Text{Text: strings.Join(words, "")})
	}
}

func (d *draft) response(f ninelives.FinishReason, more ...ninelives.Part) *ninelives.Response {
	return &ninelives.Response{Message: message(append(d.parts[:len(d.parts):len(d.parts)], more...)...), Finish: f}
}

// drawStep draws what happens to one request.
func drawStep(t *rapid.T, tag string, form bool) step {
	d := draft{t: t, tag: tag, form: form}
	d.pause("first")
	if d.chance(4, "thinks") {
		d.think()
	}
	d.write()
	if d.chance(8, "opaque") {
		d.parts = append(d.parts, ninelives.Opaque{Kind: "search"})
		d.write()
	}
	if d.chance(5, "calls") {
		return d.call()
	}
	switch rapid.IntRange(0, 7).Draw(t, "end") {
	case 0, 1:
		return append(d.steps, end(d.response(ninelives.FinishStop)))
	case 2, 3:
		return append(d.steps, act{err: d.fault()})
	case 4:
		return append(d.steps, end(d.response(ninelives.FinishLength)))
	case 5:
		return append(d.steps, hang())
	case 6:
		no := act{ev: ninelives.RefusalDelta{Part: len(d.parts), Text: "no"}}
		return append(d.steps, no, end(d.response(ninelives.FinishRefusal, ninelives.Refusal{Text: "no"})))
	}
	return d.steps // the stream just ends
}

// fault draws a failure, which may tell what there was of the answer.
func (d *draft) fault() *ninelives.Fault {
	f := drawFault(d.t)
	if rapid.Bool().Draw(d.t, "partial") {
		f.Partial = d.response("")
	}
	return f
}

// call ends a step with a tool call: whole, cut or malformed.
func (d *draft) call() step {
	arguments := fmt.Sprintf(`{"tag":%q}`, d.tag)
	at := rapid.IntRange(1, len(arguments)-1).Draw(d.t, "cut")
	piece := func(s string) {
		d.steps = append(d.steps, act{ev: ninelives.ToolCallDelta{Part: len(d.parts), ID: d.tag, Name: "f", Arguments: s}})
	}
	call := ninelives.ToolCall{ID: d.tag, Name: "f", Arguments: arguments}
	finish := ninelives.FinishToolCalls
	piece(arguments[:at])
	switch rapid.IntRange(0, 3).Draw(d.t, "call ends") {
	case 0:
		return d.steps // the stream just ends
	case 1:
		return append(d.steps, act{err: d.fault()})
	case 2:
		call.Arguments = arguments[:at]
		finish = rapid.SampledFrom([]ninelives.FinishReason{ninelives.FinishToolCalls, ninelives.FinishLength, ninelives.FinishStop}).Draw(d.t, "finish")
	default:
		piece(arguments[at:])
	}
	d.parts = append(d.parts, call)
	if d.chance(4, "talks on") {
		d.write()
		if d.chance(3, "and breaks") {
			return append(d.steps, act{err: d.fault()})
		}
	}
	return append(d.steps, end(d.response(finish)))
}

func drawWorld(t *rapid.T) *world {
	w := &world{req: ninelives.Prompt("hi")}
	if rapid.IntRange(0, 4).Draw(t, "form") == 0 {
		w.req.Output = &ninelives.Output{Schema: []byte(`{"type":"object","required":["tag"]}`)}
		if rapid.Bool().Draw(t, "default") {
			w.req.Output.Default = []byte(`{"tag":""}`)
		}
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "candidates") {
		name := string(rune('a' + i))
		m := &wild{scripted: model(name)}
		m.candidate.Prefill = rapid.Bool().Draw(t, "prefill")
		for k := range rapid.IntRange(1, 5).Draw(t, "steps") {
			m.steps = append(m.steps, drawStep(t, fmt.Sprintf("%s%d", name, k), w.req.Output != nil))
		}
		w.models = append(w.models, m)
	}
	name := rapid.SampledFrom(PresetNames()).Draw(t, "preset")
	w.policy, _ = Preset(name)
	w.mode = rapid.SampledFrom([]Mode{ModeRestart, ModeContinue, ModeHold, ModeFail}).Draw(t, "mode")
	w.deadline = time.Duration(rapid.IntRange(1, 200_000).Draw(t, "deadline")) * time.Millisecond
	w.opts = []Option{With(w.policy), Rescue(w.mode), Deadline(w.deadline)}
	if rapid.IntRange(0, 3).Draw(t, "hedged") == 0 {
		w.opts = append(w.opts, Hedged(time.Duration(rapid.IntRange(1, 15_000).Draw(t, "hedge"))*time.Millisecond))
	}
	if rapid.IntRange(0, 3).Draw(t, "degraded") == 0 {
		w.opts = append(w.opts, Degraded(Canned("canned")))
	}
	if rapid.IntRange(0, 3).Draw(t, "cancels") == 0 {
		w.cancelAt = time.Duration(rapid.IntRange(1, 100_000).Draw(t, "cancel")) * time.Millisecond
	}
	w.req.Background = rapid.IntRange(0, 5).Draw(t, "background") == 0
	if rapid.IntRange(0, 3).Draw(t, "limited") == 0 {
		w.req.MaxTokens = 100
	}
	return w
}

// requests counts the requests of all models.
func (w *world) requests() int {
	n := 0
	for _, m := range w.models {
		m.mu.Lock() // one that lost a race may only be ending
		n += len(m.asked)
		m.mu.Unlock()
	}
	return n
}

// Over any schedule of faults: no call outlives its deadline, no attempt
// exceeds the budget, there is exactly one end, nothing partial is accepted,
// what is shown is what is accepted, and nothing is left running.
func TestAnyScheduleOfFaults(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		t0 := time.Now()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if w.cancelAt > 0 {
			time.AfterFunc(w.cancelAt, cancel)
		}
		var chain []ninelives.Model
		for _, m := range w.models[1:] {
			chain = append(chain, m)
		}
		h := New(w.models[0], append(w.opts, Fallback(chain...))...)
		lot := rapid.Float64Range(0, 0.999).Draw(t, "random")
		h.random = func() float64 { return lot }
		for range rapid.IntRange(1, 3).Draw(t, "calls") {
			w.call(t, ctx, h, t0)
		}
		synctest.Wait()
		for _, m := range w.models {
			if m.running != 0 {
				t.Fatalf("%d requests of %s are still running", m.running, m.Name())
			}
		}
		for _, row := range h.Health().Snapshot(time.Now()) {
			if row.InFlight+row.Queued != 0 {
				t.Fatalf("%s keeps %d places and %d in the queue", row.Candidate.Name(), row.InFlight, row.Queued)
			}
		}
	})
}

// call makes one call and checks it.
func (w *world) call(t *rapid.T, ctx context.Context, h *Healed, t0 time.Time) {
	before, began := w.requests(), time.Now()
	expired := ctx.Err() != nil
	s := watch(ctx, h, w.req)
	took := time.Since(began)
	synctest.Wait() // who lost a race when the call ended may get as far as its model

	if s.ends != 1 {
		t.Fatalf("%d ends", s.ends)
	}
	if took > w.deadline {
		t.Fatalf("it took %s of %s", took, w.deadline)
	}
	if ctx.Err() != nil && !expired {
		if at := time.Since(t0); at != w.cancelAt {
			t.Fatalf("cancelled after %s, ended after %s", w.cancelAt, at)
		}
	}
	if expired && (w.requests() != before || took != 0) {
		t.Fatal("a call that was cancelled before it began went out")
	}
	p := w.policy
	if w.req.Background {
		p = p.Background()
	}
	n := w.requests() - before
	if p.Budget.Requests > 0 && n > p.Budget.Requests {
		t.Fatalf("%d requests", n)
	}
	w.inOrder(t, s, n)
	if s.err != nil {
		var f *ninelives.Fault
		if !errors.As(s.err, &f) {
			t.Fatalf("no fault in %v", s.err)
		}
		if e := (&Exhausted{}); errors.As(s.err, &e) && p.Budget.Faults > 0 {
			faults := 0
			for _, tried := range e.Trail {
				a := Attempt{Fault: tried.Fault}
				if a.countsAsFault() {
					faults++
				}
			}
			if faults > p.Budget.Faults {
				t.Fatalf("%d faulted attempts: %v", faults, s.err)
			}
		}
		return
	}
	w.accepted(t, s)
}

// inOrder checks that the events tell what was done: each request is announced
// under a number of its own, what was voided stays void, and only a consumer
// that can unsee is asked to.
func (w *world) inOrder(t *rapid.T, s seen, requests int) {
	announced, raced, beside, void, ended := 0, 0, 0, map[int]bool{}, false
	piece := func(attempt int) {
		stands := s.resp != nil && (s.resp.Degraded != "" || s.resp.OutputDefaulted) && attempt == announced+1
		if attempt < 1 || attempt > announced && !stands || void[attempt] {
			t.Fatalf("a piece of attempt %d: %d were announced, void are %v", attempt, announced, void)
		}
	}
	for i, ev := range s.events {
		if ended {
			t.Fatalf("%T after the end", ev)
		}
		switch e := ev.(type) {
		case ninelives.Notice:
			if (i == 0) != (e.Kind == ninelives.NoticePlan) {
				t.Fatalf("notice %s is event %d", e.Kind, i)
			}
			if e.Kind == ninelives.NoticeAttempt {
				if announced++; e.Attempt != announced {
					t.Fatalf("attempt %d is announced as %d", announced, e.Attempt)
				}
			}
			switch {
			case e.Kind == ninelives.NoticeHedge:
				raced++
			case e.Kind == ninelives.NoticeProbe && e.Attempt == 0:
				beside++
			}
			if e.Text == "" {
				t.Fatalf("notice %s says nothing", e.Kind)
			}
		case ninelives.TextDelta:
			piece(e.Attempt)
		case ninelives.ReasoningDelta:
			piece(e.Attempt)
		case ninelives.RefusalDelta:
			piece(e.Attempt)
		case ninelives.ToolCallDelta:
			piece(e.Attempt)
		case ninelives.Discard:
			if piece(e.Attempt); w.mode != ModeRestart {
				t.Fatalf("a Discard under mode %s", w.mode)
			}
			void[e.Attempt] = true
		case ninelives.Done:
			ended = true
			if e.Response.Attempts != announced {
				t.Fatalf("%d attempts, %d were announced", e.Response.Attempts, announced)
			}
		}
	}
	// A race may be lost, a probe be overtaken, and the call itself end, before
	// the request is made that was announced.
	if errors.Is(s.err, context.DeadlineExceeded) || errors.Is(s.err, context.Canceled) {
		raced++
	}
	if requests > announced+beside || requests < announced-raced {
		t.Fatalf("%d attempts were announced, %d requests made", announced, requests)
	}
}

// accepted checks an answer: it is one that a model gave as a whole, or several
// that were cut and continued; and the consumer was shown exactly that.
func (w *world) accepted(t *rapid.T, s seen) {
	got := s.resp.Text()
	if s.text != got {
		t.Fatalf("shown %q, accepted %q", s.text, got)
	}
	var whole string
	for _, c := range s.resp.Message.ToolCalls() {
		if !jsontext.Value(c.Arguments).IsValid() || s.resp.Finish == ninelives.FinishLength {
			t.Fatalf("a cut call was handed out: %s", c.Arguments)
		}
		whole += c.Arguments
	}
	if s.calls != whole {
		t.Fatalf("calls shown %q, accepted %q", s.calls, whole)
	}
	if s.resp.Degraded == "" {
		shownPartByPart(t, s)
	}
	if s.resp.Degraded != "" {
		if got != "canned" {
			t.Fatalf("the substitute is %q", got)
		}
		return
	}
	if w.req.Output != nil && len(s.resp.Message.ToolCalls()) == 0 && s.resp.Finish != ninelives.FinishRefusal {
		if !bytes.Contains(s.resp.Output, []byte(`"tag"`)) || !jsontext.Value(s.resp.Output).IsValid() {
			t.Fatalf("the output is %s", s.resp.Output)
		}
		if s.resp.OutputDefaulted {
			return
		}
	}
	if s.resp.Continued > 0 {
		return // made of pieces: that what is shown is what is accepted says enough
	}
	for _, m := range w.models {
		for _, st := range m.steps {
			if d, ok := st.done(); ok && d.Text() == got && d.Finish == s.resp.Finish {
				return
			}
		}
	}
	t.Fatalf("nobody gave the answer %q with finish %q as a whole", got, s.resp.Finish)
}

// shownPartByPart checks that each piece was shown as a part of what it is a
// part of in the answer.
func shownPartByPart(t *rapid.T, s seen) {
	gone := map[int]bool{}
	for _, ev := range s.events {
		if d, ok := ev.(ninelives.Discard); ok {
			gone[d.Attempt] = true
		}
	}
	shown := map[string]string{}
	for _, ev := range s.events {
		switch e := ev.(type) {
		case ninelives.TextDelta:
			if !gone[e.Attempt] {
				shown[fmt.Sprint(e.Part, " text")] += e.Text
			}
		case ninelives.ToolCallDelta:
			if !gone[e.Attempt] {
				shown[fmt.Sprint(e.Part, " call")] += e.Arguments
			}
		}
	}
	want := map[string]string{}
	for i, p := range s.resp.Message.Parts {
		switch p := p.(type) {
		case ninelives.Text:
			if p.Text != "" {
				want[fmt.Sprint(i, " text")] = p.Text
			}
		case ninelives.ToolCall:
			want[fmt.Sprint(i, " call")] = p.Arguments
		}
	}
	if !maps.Equal(shown, want) {
		t.Fatalf("shown %q, accepted %q", shown, want)
	}
}

// done gives the response that a step ends with, if only as a refusal that came
// as an error.
func (s step) done() (*ninelives.Response, bool) {
	if len(s) == 0 {
		return nil, false
	}
	last := s[len(s)-1]
	if f, ok := last.err.(*ninelives.Fault); ok && f.Class == ninelives.ClassRefusal && f.Partial != nil {
		refused := *f.Partial
		refused.Finish = ninelives.FinishRefusal
		return &refused, true
	}
	d, ok := last.ev.(ninelives.Done)
	return d.Response, ok
}

// check tries a property on many random worlds, each in its own virtual time.
func check(t *testing.T, property func(t *rapid.T, w *world)) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	if err := checks.Value.Set(strconv.Itoa(schedules())); err != nil {
		t.Fatal(err)
	}
	defer checks.Value.Set(before)
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) { property(t, drawWorld(t)) })
	})
}

// Over any schedule of faults, with several callers at once who share one
// record of health and too few places: each has its end, in its time.
func TestAnyScheduleOfFaultsUnderLoad(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		p := w.policy
		p.Limit = Limit{
			InFlight: rapid.IntRange(1, 2).Draw(t, "in flight"),
			Queue:    rapid.IntRange(0, 2).Draw(t, "queue"),
			Wait:     time.Duration(rapid.IntRange(1, 8000).Draw(t, "queue wait")) * time.Millisecond,
		}
		health := NewHealth(&p)
		var chain []ninelives.Model
		for _, m := range w.models[1:] {
			chain = append(chain, m)
		}
		lot := rapid.Float64Range(0, 0.999).Draw(t, "random")
		var all sync.WaitGroup
		for i := range rapid.IntRange(2, 6).Draw(t, "callers") {
			opts := append(w.opts[:len(w.opts):len(w.opts)], Fallback(chain...), With(p), SharedHealth(health))
			h := New(w.models[0], opts...)
			h.random = func() float64 { return lot }
			begins := time.Duration(rapid.IntRange(0, 30_000).Draw(t, "begins")) * time.Millisecond
			leaves := rapid.IntRange(0, 40).Draw(t, "leaves") // after so many events; most have an end before
			all.Go(func() {
				time.Sleep(begins)
				began, n, ends := time.Now(), 0, 0
				for ev, err := range h.Stream(context.Background(), w.req) {
					if _, done := ev.(ninelives.Done); done || err != nil {
						ends++
					}
					if n++; n == leaves {
						break
					}
				}
				if took := time.Since(began); took > w.deadline {
					t.Errorf("caller %d: it took %s of %s", i, took, w.deadline)
				}
				if ends != 1 && n != leaves {
					t.Errorf("caller %d: %d ends", i, ends)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		for _, m := range w.models {
			if m.running != 0 {
				t.Fatalf("%d requests of %s are still running", m.running, m.Name())
			}
		}
		for _, row := range health.Snapshot(time.Now()) {
			if row.InFlight+row.Queued != 0 {
				t.Fatalf("%s keeps %d places and %d in the queue", row.Candidate.Name(), row.InFlight, row.Queued)
			}
		}
	})
}
