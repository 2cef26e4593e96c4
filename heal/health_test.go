package heal

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// noonPlus is so many seconds after noon.
func noonPlus(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

var patient = ninelives.Candidate{Provider: "anthropic", Model: "claude", Key: "k1", Host: "api.anthropic.test:443"}

// clinic is a record under test.
type clinic struct {
	*Health
	t *testing.T
}

func newClinic(t *testing.T, change ...func(*Policy)) clinic {
	p := DefaultPolicy()
	for _, f := range change {
		f(&p)
	}
	return clinic{NewHealth(&p), t}
}

// try makes an attempt that ends with the verdict at once.
func (c clinic) try(who ninelives.Candidate, probe bool, v Verdict) {
	c.t.Helper()
	leave, err := c.Enter(context.Background(), who, v.Now, probe)
	if err != nil {
		c.t.Fatalf("at %v: Enter(probe %v): %v", v.Now.Sub(noon), probe, err)
	}
	leave(v)
}

// begin starts an attempt.
func (c clinic) begin(who ninelives.Candidate, now time.Time, probe bool) func(Verdict) {
	c.t.Helper()
	leave, err := c.Enter(context.Background(), who, now, probe)
	if err != nil {
		c.t.Fatalf("at %v: Enter(probe %v): %v", now.Sub(noon), probe, err)
	}
	return leave
}

func okAt(now time.Time) Verdict       { return Verdict{Kind: VerdictOK, Now: now} }
func canceledAt(now time.Time) Verdict { return Verdict{Kind: VerdictCanceled, Now: now} }
func failedAt(class ninelives.Class, now time.Time) Verdict {
	return Verdict{Kind: VerdictFailed, Fault: &ninelives.Fault{Class: class}, Now: now}
}
func gaveUpAt(class ninelives.Class, now time.Time) Verdict {
	v := failedAt(class, now)
	v.GaveUp = true
	return v
}

// want compares what matters of a standing; times are in seconds after noon,
// and 0 means the zero time.
func (c clinic) want(who ninelives.Candidate, now time.Time, state State, since, until, probeAt float64) {
	c.t.Helper()
	s := c.Standing(who, now)
	seconds := func(t time.Time) float64 {
		if t.IsZero() {
			return 0
		}
		return t.Sub(noon).Seconds()
	}
	if s.State != state || seconds(s.Since) != since || seconds(s.Until) != until || seconds(s.ProbeAt) != probeAt {
		c.t.Fatalf("at %v it is %s since %v until %v, probed from %v;\nwant %s since %v until %v, probed from %v",
			now.Sub(noon), s.State, seconds(s.Since), seconds(s.Until), seconds(s.ProbeAt), state, since, until, probeAt)
	}
}

func (c clinic) wantHealthy(who ninelives.Candidate, now time.Time) {
	c.t.Helper()
	c.want(who, now, StateHealthy, 0, 0, 0)
}

func TestARestLastsAsLongAsHintResetTimeOrTableSay(t *testing.T) {
	for _, test := range []struct {
		name    string
		fault   ninelives.Fault
		until   float64
		probeAt float64 // 0: never
		kind    ProbeKind
		scope   ninelives.Scope
	}{
		{"rate limit, table", ninelives.Fault{Class: ninelives.ClassRateLimit}, 60, 30, ProbeTraffic, ninelives.ScopeModel},
		{"rate limit, hint is never probed before", ninelives.Fault{Class: ninelives.ClassRateLimit, RetryAfter: 7 * time.Second}, 7, 7, ProbeTraffic, ninelives.ScopeModel},
		{"rate limit, long hint", ninelives.Fault{Class: ninelives.ClassRateLimit, RetryAfter: 24 * time.Hour}, 86400, 86400, ProbeTraffic, ninelives.ScopeModel},
		{"rate limit, reset time", ninelives.Fault{Class: ninelives.ClassRateLimit, ResetAt: noonPlus(90)}, 90, 90, ProbeTraffic, ninelives.ScopeModel},
		{"a hint beats a reset time", ninelives.Fault{Class: ninelives.ClassRateLimit, RetryAfter: 5 * time.Second, ResetAt: noonPlus(90)}, 5, 5, ProbeTraffic, ninelives.ScopeModel},
		{"a reset time in the past is none", ninelives.Fault{Class: ninelives.ClassRateLimit, ResetAt: noonPlus(-1)}, 60, 30, ProbeTraffic, ninelives.ScopeModel},
		{"the fault's own scope wins", ninelives.Fault{Class: ninelives.ClassRateLimit, Scope: ninelives.ScopeAccount}, 60, 30, ProbeTraffic, ninelives.ScopeAccount},
		{"billing", ninelives.Fault{Class: ninelives.ClassBilling}, 1800, 0, ProbeNone, ninelives.ScopeAccount},
		{"billing, reset time", ninelives.Fault{Class: ninelives.ClassBilling, ResetAt: noonPlus(7200)}, 7200, 0, ProbeNone, ninelives.ScopeAccount},
		{"auth", ninelives.Fault{Class: ninelives.ClassAuth}, 600, 0, ProbeNone, ninelives.ScopeKey},
		{"overloaded", ninelives.Fault{Class: ninelives.ClassOverloaded}, 15, 7.5, ProbeTraffic, ninelives.ScopeModel},
		{"timeout", ninelives.Fault{Class: ninelives.ClassTimeout}, 30, 15, ProbeSynthetic, ninelives.ScopeModel},
		{"network", ninelives.Fault{Class: ninelives.ClassNetwork}, 30, 15, ProbeTraffic, ninelives.ScopeHost},
		{"model not found", ninelives.Fault{Class: ninelives.ClassModelNotFound}, 3600, 0, ProbeNone, ninelives.ScopeModel},
		{"unknown", ninelives.Fault{Class: ninelives.ClassUnknown}, 30, 15, ProbeTraffic, ninelives.ScopeModel},
		{"a class without a rule is unknown", ninelives.Fault{Class: "sunspots"}, 30, 15, ProbeTraffic, ninelives.ScopeModel},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newClinic(t)
			test.fault.Message = "told so"
			c.try(patient, false, Verdict{Kind: VerdictFailed, Fault: &test.fault, GaveUp: true, Now: noon})
			c.want(patient, noon, StateCooling, 0, test.until, test.probeAt)
			s := c.Standing(patient, noon)
			if s.Probe != test.kind || s.Scope != test.scope || s.Class != test.fault.Class || !strings.Contains(s.Reason, "told so") {
				t.Errorf("probe %q, scope %q, class %q, reason %q", s.Probe, s.Scope, s.Class, s.Reason)
			}
			if s.Available() || s.Takes(0) {
				t.Error("a resting candidate is available")
			}
			c.want(patient, noonPlus(test.until-0.001), StateCooling, 0, test.until, test.probeAt)
			c.wantHealthy(patient, noonPlus(test.until))
		})
	}
}

func TestACallThatGoesOnRestsNothing(t *testing.T) {
	c := newClinic(t)
	c.try(patient, false, failedAt(ninelives.ClassRateLimit, noon))
	c.wantHealthy(patient, noon)
}

func TestFaultsOfTheRequestAndItsAnswerRestNothing(t *testing.T) {
	policy := DefaultPolicy()
	harmless := []ninelives.Class{
		ninelives.ClassContextLength, ninelives.ClassContentFilter, ninelives.ClassRefusal, ninelives.ClassFormat,
		ninelives.ClassEmpty, ninelives.ClassTruncated, ninelives.ClassInvalidOutput, ninelives.ClassCanceled, ninelives.ClassGuard,
	}
	for class, rule := range policy.Rules {
		if harm := rule.Cooldown > 0 || rule.Breaks; harm == slices.Contains(harmless, class) {
			t.Errorf("class %s: harms its candidate: %v", class, harm)
		}
	}
	for _, class := range harmless {
		c := newClinic(t)
		for i := range 100 {
			c.try(patient, false, gaveUpAt(class, noonPlus(float64(i)/10)))
		}
		c.wantHealthy(patient, noonPlus(10))
	}
	// Nor does any fault that the wire lays at the request's door.
	c := newClinic(t)
	for class := range policy.Rules {
		for range 10 {
			v := gaveUpAt(class, noon)
			v.Fault.Scope = ninelives.ScopeRequest
			c.try(patient, false, v)
		}
	}
	c.wantHealthy(patient, noon)
}

func TestACallersCancelSaysNothing(t *testing.T) {
	c := newClinic(t)
	for range 100 {
		c.try(patient, false, canceledAt(noon))
		c.try(patient, false, gaveUpAt(ninelives.ClassCanceled, noon))
	}
	c.wantHealthy(patient, noon)
	if row := c.Snapshot(noon)[0]; row.Calls != 0 || row.InFlight != 0 {
		t.Errorf("%+v", row)
	}
}

func TestWhatSharesAPlaceRestsTogether(t *testing.T) {
	cand := func(model, key, account, host string) ninelives.Candidate {
		return ninelives.Candidate{Provider: "p", Model: model, Key: key, Account: account, Host: host}
	}
	me := cand("m1", "k1", "a1", "h1")
	others := map[string]ninelives.Candidate{
		"same model":          me,
		"other model":         cand("m2", "k1", "a1", "h1"),
		"other key":           cand("m1", "k2", "a1", "h1"),
		"other account":       cand("m1", "k3", "a2", "h1"),
		"other host":          cand("m1", "k1", "a1", "h2"),
		"nothing in common":   cand("m9", "k9", "a9", "h9"),
		"other provider":      {Provider: "q", Model: "m1", Key: "k1", Account: "a1", Host: "h9"},
		"other provider here": {Provider: "q", Model: "m1", Key: "k1", Account: "a1", Host: "h1"},
	}
	for scope, resting := range map[ninelives.Scope][]string{
		ninelives.ScopeModel:   {"same model"},
		ninelives.ScopeKey:     {"same model", "other model", "other host"},
		ninelives.ScopeAccount: {"same model", "other model", "other host", "other key"},
		ninelives.ScopeHost:    {"same model", "other model", "other key", "other account", "other provider here"},
	} {
		c := newClinic(t)
		v := gaveUpAt(ninelives.ClassRateLimit, noon)
		v.Fault.Scope = scope
		c.try(me, false, v)
		for name, other := range others {
			if got, want := !c.Standing(other, noon).Healthy(), slices.Contains(resting, name); got != want {
				t.Errorf("a fault of scope %s: %s rests: %v, want %v", scope, name, got, want)
			}
		}
	}
}

func TestServersWithoutKeysShareNone(t *testing.T) {
	c := newClinic(t)
	one := ninelives.Candidate{Provider: "ollama", Model: "m", Host: "one:11434"}
	two := ninelives.Candidate{Provider: "ollama", Model: "m", Host: "two:11434"}
	c.try(one, false, gaveUpAt(ninelives.ClassAuth, noon))
	c.try(one, false, gaveUpAt(ninelives.ClassBilling, noon))
	c.wantHealthy(two, noon)
}

func TestRoutesShareKeysAndHostsButNotModels(t *testing.T) {
	c := newClinic(t)
	chat := clinic{c.Route("chat"), t}
	batch := clinic{c.Route("batch"), t}
	batch.try(patient, false, gaveUpAt(ninelives.ClassOverloaded, noon))
	chat.wantHealthy(patient, noon)
	batch.try(patient, false, gaveUpAt(ninelives.ClassAuth, noon))
	chat.want(patient, noon, StateCooling, 0, 600, 0)
	if got := len(c.Snapshot(noon)); got != 1 {
		t.Errorf("%d rows: only the route batch was entered", got)
	}
	again := c.Route("batch").Standing(patient, noon)
	if again.Healthy() {
		t.Error("a second view of a route does not see the first one's record")
	}
}

func TestOverloadDoublesItsRestUpToTheCapUntilASuccess(t *testing.T) {
	c := newClinic(t)
	now := 0.0
	c.try(patient, false, gaveUpAt(ninelives.ClassOverloaded, noonPlus(now)))
	for _, rest := range []float64{15, 30, 60, 120, 120} {
		s := c.Standing(patient, noonPlus(now))
		if got := s.Until.Sub(noonPlus(now)).Seconds(); got != rest {
			t.Fatalf("rests %v s, want %v s", got, rest)
		}
		now = s.Until.Sub(noon).Seconds()
		c.try(patient, false, gaveUpAt(ninelives.ClassOverloaded, noonPlus(now)))
	}
	now += 120
	c.try(patient, false, okAt(noonPlus(now)))
	c.try(patient, false, gaveUpAt(ninelives.ClassOverloaded, noonPlus(now)))
	c.want(patient, noonPlus(now), StateCooling, now, now+15, now+7.5)
}

func TestOneOutageIsCountedOnceHoweverManyCallsItHits(t *testing.T) {
	c := newClinic(t)
	var leave []func(Verdict)
	for range 10 {
		leave = append(leave, c.begin(patient, noon, false))
	}
	for i := range leave {
		leave[i](gaveUpAt(ninelives.ClassOverloaded, noonPlus(1)))
	}
	// The breaker trips at none of them: the place rested when they failed.
	c.want(patient, noonPlus(1), StateCooling, 1, 16, 8.5)
}

func TestCoolingAgainNeverShortens(t *testing.T) {
	c := newClinic(t)
	v := gaveUpAt(ninelives.ClassRateLimit, noon)
	v.Fault.RetryAfter = 100 * time.Second
	c.try(patient, false, v)
	c.try(patient, false, gaveUpAt(ninelives.ClassOverloaded, noonPlus(1)))
	c.want(patient, noonPlus(1), StateCooling, 0, 100, 100)
	if s := c.Standing(patient, noonPlus(1)); s.Class != ninelives.ClassRateLimit {
		t.Errorf("the shorter rest (%s) took the longer one's place", s.Class)
	}
	// A longer one takes over, with the first hint still in force.
	c.try(patient, false, gaveUpAt(ninelives.ClassModelNotFound, noonPlus(2)))
	c.want(patient, noonPlus(2), StateCooling, 0, 3602, 0)
}

func TestAHintOutlivesALongerRest(t *testing.T) {
	c := newClinic(t, func(p *Policy) {
		p.Rules[ninelives.ClassOverloaded] = Rule{Cooldown: 2 * time.Minute, Scope: ninelives.ScopeModel}
	})
	v := gaveUpAt(ninelives.ClassRateLimit, noon)
	v.Fault.RetryAfter = 100 * time.Second
	c.try(patient, false, v)
	c.try(patient, false, gaveUpAt(ninelives.ClassOverloaded, noon))
	c.want(patient, noon, StateCooling, 0, 120, 100)
}

func TestBackIsTheFirstChance(t *testing.T) {
	c := newClinic(t)
	back := func(now float64) float64 {
		return c.Standing(patient, noonPlus(now)).Back(noonPlus(now)).Sub(noon).Seconds()
	}
	if got := back(1); got != 1 {
		t.Errorf("healthy: back after %v s", got)
	}
	c.try(patient, false, gaveUpAt(ninelives.ClassRateLimit, noon))
	if got := back(1); got != 30 {
		t.Errorf("cooling: back after %v s", got)
	}
	if got := back(40); got != 40 {
		t.Errorf("probe due: back after %v s", got)
	}
	c.begin(patient, noonPlus(40), true)
	if got := back(41); got != 60 {
		t.Errorf("while another probes: back after %v s", got)
	}
	c.Clear(patient, noonPlus(42))
	c.try(patient, false, gaveUpAt(ninelives.ClassTimeout, noonPlus(50)))
	if got := back(70); got != 80 {
		t.Errorf("synthetic probe: back after %v s", got)
	}
}

func TestThePresetsNumbersAreOnlyPolicy(t *testing.T) {
	c := newClinic(t, func(p *Policy) {
		p.Probe = ProbePolicy{Before: 30 * time.Second}
		rule := p.Rules[ninelives.ClassOverloaded]
		rule.Cooldown, rule.CooldownCap = 2*time.Minute, 0
		p.Rules[ninelives.ClassOverloaded] = rule
		rule.Cooldown = 20 * time.Second
		p.Rules[ninelives.ClassUnknown] = rule
	})
	c.try(patient, false, gaveUpAt(ninelives.ClassOverloaded, noon))
	c.want(patient, noon, StateCooling, 0, 120, 90)
	c.try(patient, true, failedAt(ninelives.ClassOverloaded, noonPlus(90)))
	c.want(patient, noonPlus(90), StateCooling, 0, 210, 180) // no doubling
	// A rest that is shorter than that is probed from its start.
	c.Clear(patient, noonPlus(200))
	c.try(patient, false, gaveUpAt(ninelives.ClassUnknown, noonPlus(300)))
	c.want(patient, noonPlus(300), StateCooling, 300, 320, 300)
}

func TestChangesAreToldInOrder(t *testing.T) {
	c := newClinic(t)
	var told []string
	c.OnChange(func(ch HealthChange) {
		told = append(told, string(ch.From)+">"+string(ch.To)+" "+string(ch.Scope)+" "+string(ch.Class)+" "+ch.Until.Format("05"))
		c.Snapshot(ch.Now) // no lock is held
	})
	c.try(patient, false, okAt(noon))
	c.try(patient, false, gaveUpAt(ninelives.ClassRateLimit, noon))
	c.try(patient, false, gaveUpAt(ninelives.ClassRateLimit, noonPlus(10)))
	c.begin(patient, noonPlus(40), true)(canceledAt(noonPlus(41)))
	c.begin(patient, noonPlus(41), true)(okAt(noonPlus(42)))
	c.try(patient, false, okAt(noonPlus(43)))
	want := []string{
		"healthy>cooling model rate_limit 00",
		"cooling>cooling model rate_limit 10",
		"cooling>probing model rate_limit 10",
		"probing>cooling model rate_limit 10",
		"cooling>probing model rate_limit 10",
		"probing>healthy model  00",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

func TestASnapshotListsWhatWasEntered(t *testing.T) {
	c := newClinic(t)
	gpt := ninelives.Candidate{Provider: "openai", Model: "gpt", Key: "k2", Host: "api.openai.test:443"}
	c.begin(gpt, noon, false)
	c.try(patient, false, okAt(noon))
	c.try(patient, false, gaveUpAt(ninelives.ClassOverloaded, noon))
	c.Standing(ninelives.Candidate{Provider: "only", Model: "looked-at"}, noon)
	rows := c.Snapshot(noon)
	if len(rows) != 2 || rows[0].Candidate != patient || rows[1].Candidate != gpt {
		t.Fatalf("%+v", rows)
	}
	if r := rows[0]; r.Calls != 2 || r.Failures != 1 || r.InFlight != 0 || r.Standing != c.Health.Standing(patient, noon) {
		t.Errorf("%+v", r)
	}
	if r := rows[1]; r.Calls != 0 || r.InFlight != 1 || !r.Standing.Available() {
		t.Errorf("%+v", r)
	}
}

func TestManyCallersAtOnceLeaveAQuietRecord(t *testing.T) {
	c := newClinic(t, func(p *Policy) { p.Limit = Limit{InFlight: 3, Queue: 8, Wait: time.Minute} })
	c.OnChange(func(HealthChange) {})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			who := patient
			who.Model = []string{"a", "b"}[g%2]
			for i := range 300 {
				now := noonPlus(float64(i))
				probe := !c.Standing(who, now).Healthy()
				leave, err := c.Enter(context.Background(), who, now, probe)
				if err != nil {
					continue
				}
				c.MayRetry(who, now)
				c.Snapshot(now)
				switch i % 5 {
				case 0:
					leave(gaveUpAt(ninelives.ClassOverloaded, now))
				case 1:
					leave(canceledAt(now))
				case 2:
					leave(gaveUpAt(ninelives.ClassNetwork, now))
				default:
					leave(okAt(now))
				}
			}
		})
	}
	wg.Wait()
	for _, row := range c.Snapshot(noonPlus(400)) {
		if row.InFlight != 0 || row.Queued != 0 || row.Standing.State == StateProbing {
			t.Errorf("something was left behind: %+v", row)
		}
	}
}

func TestAHealthyStayCostsAtMostTwoAllocations(t *testing.T) {
	h := NewHealth(nil)
	ctx := context.Background()
	got := testing.AllocsPerRun(100, func() {
		h.Standing(patient, noon)
		leave, _ := h.Enter(ctx, patient, noon, false)
		leave(okAt(noon))
	})
	if got > 2 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkHealthyStay(b *testing.B) {
	h := NewHealth(nil)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		now := time.Now()
		if !h.Standing(patient, now).Available() {
			b.Fatal("not available")
		}
		leave, err := h.Enter(ctx, patient, now, false)
		if err != nil {
			b.Fatal(err)
		}
		leave(okAt(now))
	}
}
