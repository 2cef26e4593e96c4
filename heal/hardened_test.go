package heal

import (
	"errors"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// The nine verifications at the end of source design 003, under its preset.

func TestHardened1RateLimitStormHonoursTheHintExactly(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		storm := hinted(ninelives.ClassRateLimit, 2*time.Second)
		a := model("a", storm, storm, storm, says("hello"))
		s := ask(t, healed(a, preset(t, "hardened")))
		equal(t, "asked", a.since(t0), []time.Duration{0, 2 * time.Second, 4 * time.Second, 6 * time.Second})
		equal(t, "text", s.text, "hello")
		equal(t, "under the deadline", time.Since(t0) < 30*time.Second, true)
	})
}

func TestHardened2AttemptEndsAtItsOwnClockAndTheCallNeverHangs(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		var gone []time.Duration
		a := model("a", step{hang()})
		obedient := clocked{a, func() { gone = append(gone, time.Since(t0)) }}
		s := ask(t, healed(obedient, preset(t, "hardened")))
		equal(t, "asked", a.since(t0), []time.Duration{0, ms(12250), ms(24750)})
		equal(t, "aborted", gone, []time.Duration{12 * time.Second, ms(24250), 30 * time.Second})
		equal(t, "took", time.Since(t0), 30*time.Second)
		var e *Exhausted
		equal(t, "typed end", errors.As(s.err, &e) && e.Deadline, true)
	})
}

func TestHardened3BadRequestIsNotRetried(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		f := fault(ninelives.ClassFormat)
		f.Status = 400
		a, b := model("a", with(f)), model("b", says("hello"))
		s := ask(t, healed(a, Fallback(b), preset(t, "hardened")))
		equal(t, "asked", []int{len(a.asked), len(b.asked)}, []int{1, 0})
		equal(t, "took", time.Since(t0), 0)
		var got *ninelives.Fault
		equal(t, "the fault itself", errors.As(s.err, &got) && got.Status == 400, true)
	})
}

func TestHardened4MalformedOutputIsRepairedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("no JSON at all"), says(`{"n": 1}`))
		req := ninelives.Prompt("a number")
		req.Output = &ninelives.Output{Name: "n", Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
		s := watch(t.Context(), healed(a, preset(t, "hardened")), req)
		equal(t, "requests", len(a.asked), 2)
		equal(t, "output", string(s.resp.Output), `{"n": 1}`)
		equal(t, "shown", s.text, `{"n": 1}`)
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", says("no JSON at all"))
		req := ninelives.Prompt("a number")
		req.Output = &ninelives.Output{Schema: []byte(`{"type":"object","required":["n"]}`), Default: []byte(`{"status":"unavailable"}`)}
		s := watch(t.Context(), healed(a, preset(t, "hardened")), req)
		equal(t, "requests", len(a.asked), 2)
		if s.err != nil {
			t.Fatal(s.err)
		}
		equal(t, "default", string(s.resp.Output), `{"status":"unavailable"}`)
		equal(t, "marked", s.resp.OutputDefaulted, true)
		equal(t, "a consumer of the text gets it as well", []string{s.text, s.resp.Text()}, []string{`{"status":"unavailable"}`, `{"status":"unavailable"}`})
	})
}

func TestHardened5RefusalGoesToTheFallbackAndACutoffIsFlagged(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		refused := &ninelives.Response{Finish: ninelives.FinishRefusal, Message: ninelives.Message{Role: ninelives.RoleAssistant,
			Parts: []ninelives.Part{ninelives.Refusal{Text: "I will not"}}}}
		a, b := model("a", step{declines("I will not"), end(refused)}), model("b", says("hello"))
		s := ask(t, healed(a, Fallback(b), preset(t, "hardened")))
		equal(t, "asked", []int{len(a.asked), len(b.asked)}, []int{1, 1})
		equal(t, "text", s.text, "hello")
		for _, ev := range s.events {
			if _, ok := ev.(ninelives.RefusalDelta); ok {
				t.Error("the refusal was shown although it was not the answer")
			}
		}
	})
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("half"), end(cut("half"))})
		req := ninelives.Prompt("hi")
		req.MaxTokens = 10
		s := watch(t.Context(), healed(a, preset(t, "hardened")), req)
		equal(t, "requests", len(a.asked), 1)
		equal(t, "flag", s.resp.Finish, ninelives.FinishLength)
	})
}

func TestHardened6DropInMidStreamIsDiscardedAndRetried(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("one "), text("two "), {err: fault(ninelives.ClassStreamBroken)}}, says("one two three"))
		s := ask(t, healed(a, preset(t, "hardened")))
		equal(t, "asked", a.since(t0), []time.Duration{0, ms(250)})
		equal(t, "shown in the end", s.text, "one two three")
		var discards []ninelives.Discard
		for _, ev := range s.events {
			if d, ok := ev.(ninelives.Discard); ok {
				discards = append(discards, d)
			}
		}
		if len(discards) != 1 || discards[0].Attempt != 1 || discards[0].Reason.Class != ninelives.ClassStreamBroken {
			t.Errorf("discards: %+v", discards)
		}
	})
}

func TestHardened7OpenCircuitServesDegradedAtOnceAndAProbeClosesIt(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded),
			fails(ninelives.ClassOverloaded), fails(ninelives.ClassOverloaded), says("hello"))
		h := healed(a, preset(t, "hardened"), Degraded(Canned("Please try again in a minute.")))
		equal(t, "first", ask(t, h).resp.Degraded, ninelives.DegradedCanned) // four tries
		equal(t, "second", ask(t, h).resp.Degraded, ninelives.DegradedCanned)
		equal(t, "requests until it opened", len(a.asked), 5)
		opened := time.Now()

		s := ask(t, h)
		equal(t, "served at once", time.Since(opened), 0)
		equal(t, "text", s.resp.Text(), "Please try again in a minute.")
		equal(t, "requests while open", len(a.asked), 5)

		time.Sleep(30 * time.Second)
		s = ask(t, h)
		equal(t, "fresh", s.resp.Degraded, ninelives.Degraded(""))
		equal(t, "text", s.text, "hello")
		equal(t, "closed", h.Health().Standing(a.candidate, time.Now()).State, StateHealthy)
	})
}

// Half-open is one probe, and not everybody at once when the time is up.
func TestHardened7OneCallAloneFindsOutWhetherACircuitMayClose(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		steps := []step{}
		for range 5 {
			steps = append(steps, fails(ninelives.ClassOverloaded))
		}
		a := model("a", append(steps, step{wait(2 * time.Second), {err: fault(ninelives.ClassOverloaded)}}, slow(2*time.Second, "hello"))...)
		h := healed(a, preset(t, "hardened"), Degraded(Canned("later")))
		ask(t, h)
		ask(t, h) // the fifth failure opens it
		for round, want := range []string{"later", "hello"} {
			time.Sleep(40 * time.Second) // well after the 30 s
			asked := len(a.asked)
			probe := make(chan seen)
			go func() { probe <- ask(t, h) }()
			time.Sleep(time.Second)
			for range 3 {
				began := time.Now()
				equal(t, "beside the probe", ask(t, h).text, "later")
				equal(t, "at once", time.Since(began), 0)
			}
			equal(t, "what the probe got", (<-probe).text, want)
			equal(t, "requests", len(a.asked)-asked, 1)
			state := StateOpen
			if round == 1 {
				state = StateHealthy
			}
			equal(t, "state", h.Health().Standing(a.candidate, time.Now()).State, state)
		}
		equal(t, "closed", ask(t, h).text, "hello")
	})
}

func TestHardened8TotalFailureKeepsTheInput(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a, b := model("a", fails(ninelives.ClassOverloaded)), model("b", fails(ninelives.ClassUnknown))
		req := ninelives.Prompt("a long and precious prompt")
		s := watch(t.Context(), healed(a, Fallback(b), preset(t, "hardened")), req)
		var e *Exhausted
		if !errors.As(s.err, &e) {
			t.Fatal(s.err)
		}
		equal(t, "request", e.Request, req)
		equal(t, "input", e.Request.Messages[0].Text(), "a long and precious prompt")
		equal(t, "untouched", e.Request.Attempt == nil, true)
		equal(t, "begins", strings.HasPrefix(e.Error(), AllFailed), true)
		equal(t, "attempts", []int{len(a.asked), len(b.asked)}, []int{4, 4})
	})
}

func TestHardened9WholeAnswerThatBreaksAfterItsEndIsNotPaidTwice(t *testing.T) {
	bubble(t, func(t *testing.T, t0 time.Time) {
		a := model("a", step{text("hello"), end(answer("hello")), {err: fault(ninelives.ClassStreamBroken)}})
		s := ask(t, healed(a, preset(t, "hardened")))
		equal(t, "requests", len(a.asked), 1)
		equal(t, "text", s.text, "hello")
		equal(t, "ends", s.ends, 1)
	})
}

// clocked enforces the first-token clock that the driver set, as a provider does.
type clocked struct {
	*scripted
	aborted func()
}

func TestClocksGrowWithThePromptAndForLocalModels(t *testing.T) {
	p := DefaultPolicy()
	c := ninelives.Candidate{}
	got := p.ClocksFor(c, Facts{Input: 50_000})
	equal(t, "headers", got.Headers, 40*time.Second)
	equal(t, "first event", got.FirstEvent, 70*time.Second)
	equal(t, "dial", got.Dial, 10*time.Second)
	equal(t, "liveness", got.Liveness, 30*time.Second)
	equal(t, "progress", got.Progress, 90*time.Second)
	c.Local = true
	equal(t, "a proxy on this machine", p.ClocksFor(c, Facts{Input: 50_000}), got)
	c.LocalModel = true
	got = p.ClocksFor(c, Facts{})
	equal(t, "local headers", got.Headers, 150*time.Second)
	equal(t, "local first event", got.FirstEvent, 5*time.Minute)
	equal(t, "no limit of the attempt", got.Total, 0)
}
