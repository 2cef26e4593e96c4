package heal

import (
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Policy is everything that the decider goes by, as data. It is a value:
// copy, change, hand over. The zero value is not useful; start from
// DefaultPolicy, or from a preset.
type Policy struct {
	// Name is shown in the plan ("default", "catbuddy", …).
	Name string
	// Rules says what is done for each fault class. A class that is missing is
	// treated as unknown.
	Rules map[ninelives.Class]Rule
	// Budget bounds one call over all its candidates.
	Budget Budget
	// Backoff spaces retries that carry no hint.
	Backoff Backoff
	// HintJitter is added on top of a provider's hint: up to this share of it.
	// A hint is never shortened.
	HintJitter float64
	// MaxHint is the longest hint that is slept on; a longer one becomes the
	// cooldown. Zero means: whatever fits the deadline.
	MaxHint time.Duration

	// Buffered and Streamed are the total deadlines of a call.
	Buffered time.Duration
	Streamed time.Duration
	Clocks   ClockPolicy

	Breaker  Breaker
	Probe    ProbePolicy
	Ramp     Ramp
	Retry    RetryBudget
	Limit    Limit
	Content  Content
	Mode     Mode
	Hold     Hold
	Hedge    Hedge
	Nudges   bool // a retry tells the model what went wrong (preset codebuddy)
	Failover bool // false: only the first candidate is ever asked
	// Persistent says that the policy already is one for work that nobody waits
	// for; a Request.Background under any other gets its Background form.
	Persistent bool
}

// Rule is what is done for one fault class.
type Rule struct {
	// Same is how many times the same candidate is asked again after such a
	// fault, while another candidate could take over.
	Same int
	// AtOnce: the retry needs no backoff (when nothing had been answered).
	AtOnce bool
	// Next says whether another candidate may be asked.
	Next Next
	// Again: the last or only candidate is asked again within the budget.
	Again bool
	// Cooldown rests the candidate when a call gives it up; zero means never.
	// A provider's hint or reset time replaces it.
	Cooldown time.Duration
	// CooldownCap lets the cooldown double each time up to the cap; zero: no doubling.
	CooldownCap time.Duration
	// Scope is what is rested: the model at this route, the key, the account, the host.
	Scope ninelives.Scope
	// Breaks: the fault counts for the breaker.
	Breaks bool
	// Probe says how a resting candidate is tried again.
	Probe ProbeKind
}

// Rule is what is done for the class: a class without a rule of its own is
// treated as unknown.
func (p *Policy) Rule(class ninelives.Class) Rule {
	if r, ok := p.Rules[class]; ok {
		return r
	}
	return p.Rules[ninelives.ClassUnknown]
}

// rule is what is done for a fault. What a host answers that is nobody's answer (a
// web page, a redirect) says nothing of the request, whatever its class: it is
// treated as an answer that broke.
func (p *Policy) rule(f *ninelives.Fault) Rule {
	if ofHost(f) {
		return p.Rule(ninelives.ClassStreamBroken)
	}
	return p.Rule(f.Class)
}

// ofHost says that the form that is wrong is the host's and not the request's.
func ofHost(f *ninelives.Fault) bool {
	return f.Class == ninelives.ClassFormat && f.Scope == ninelives.ScopeHost
}

// Next says when another candidate may be asked.
type Next string

// The failover rules.
const (
	NextNever  Next = "never"
	NextThen   Next = "then"    // when the retries on this one are spent
	NextAtOnce Next = "at_once" // without a retry on this one
	NextOnce   Next = "once"    // like then, but only one other candidate
	NextLarger Next = "larger"  // only one with a larger window
	NextOther  Next = "other"   // only one of another provider
)

// ProbeKind says how a resting candidate is tried again.
type ProbeKind string

// The kinds of probes.
const (
	ProbeNone      ProbeKind = "none"      // only a changed key or config, or the reset time, clears it
	ProbeTraffic   ProbeKind = "traffic"   // one user call at a time
	ProbeSynthetic ProbeKind = "synthetic" // a one-token call beside the traffic
)

// Budget bounds one call over all its candidates.
type Budget struct {
	// Faults is the number of faulted attempts that end the call; 0 means no cap.
	Faults int
	// Tries is the number of faulted attempts that one candidate gets; 0 means no cap.
	Tries int
	// Others is the number of candidates besides the first; 0 means all of them.
	Others int
	// Requests is the number of requests in all; 0 means no cap.
	Requests int
	// Same ends a call after so many identical faults of one candidate in a row;
	// 0 means never.
	Same int
	// Wait is the longest single wait; 0 means what the deadline allows.
	Wait time.Duration
	// Returns is how many times a call waits for a candidate to come back while
	// all of them are out of service; 0 means no cap.
	Returns int
	// Tokens and Money (US dollars) end the healing of a call; 0 means no cap.
	Tokens int
	Money  float64
}

// Backoff spaces retries that carry no hint: rand(0, min(Cap, Base·2^n)), or
// exactly Delays[n] (the last one repeated) where Delays is set.
type Backoff struct {
	Base   time.Duration
	Cap    time.Duration
	Delays []time.Duration
}

// ClockPolicy gives the clocks of one attempt.
type ClockPolicy struct {
	Dial         time.Duration
	Headers      time.Duration
	HeadersSlope time.Duration // per 10,000 input tokens
	FirstEvent   time.Duration
	FirstSlope   time.Duration // per 10,000 input tokens
	Liveness     time.Duration
	Progress     time.Duration
	MinRate      float64
	RateWindow   time.Duration
	Attempt      time.Duration // the whole attempt; 0 means no limit of its own
	// SoftFirst starts the next candidate beside a silent one; zero means off.
	SoftFirst time.Duration
	// LocalFactor multiplies all of them for a model that runs on this machine.
	LocalFactor float64
}

// Breaker opens a candidate's circuit after Consecutive failures, or when at
// least Ratio of at least MinCalls attempts within Window failed.
type Breaker struct {
	Consecutive int
	Ratio       float64
	MinCalls    int
	Window      time.Duration
	Open        time.Duration
	// HalfOpen: only a probe that succeeds closes it; otherwise time does.
	HalfOpen bool
}

// ProbePolicy says when a resting candidate may be tried.
type ProbePolicy struct {
	// From is the share of the cooldown after which probing starts.
	From float64
	// Before, if set, starts probing so long before the end instead.
	Before time.Duration
	// Every is the least time between probes while there is traffic.
	Every time.Duration
}

// Ramp returns traffic to a recovered candidate in Steps over Over, but only
// where there are more than Above calls per second.
type Ramp struct {
	Steps []float64
	Over  time.Duration
	Above float64
}

// RetryBudget keeps a fleet from stampeding: retries may be at most Share of
// the calls of the last Window, and Min at a time are always allowed.
type RetryBudget struct {
	Share  float64
	Min    int
	Window time.Duration
}

// Limit bounds the concurrent attempts per candidate; Queue more may wait for
// at most Wait, by priority. Zero InFlight means no limit. Calls below priority
// 0 get three quarters of both at most.
type Limit struct {
	InFlight int
	Queue    int
	Wait     time.Duration
}

// Content caps the steps that heal the content of an answer.
type Content struct {
	Empty         int // plain retry, nudge, no-tools finalisation, in this order
	EmptyPlain    int // how many of them are plain retries
	EmptyNudges   int // how many after those are nudges
	Continuations int
	// ContinueAlways continues a truncated answer even under a caller's limit.
	ContinueAlways bool
	Repairs        int // rounds of structured repair
	NudgePrompt    string
	ContinuePrompt string
}

// Mode is what happens to a stream that breaks after something was released.
type Mode string

// The rescue modes.
const (
	ModeRestart  Mode = "restart"  // Discard and start over
	ModeContinue Mode = "continue" // go on where it broke, for consumers that cannot unsee
	ModeHold     Mode = "hold"     // deliver only what is complete
	ModeFail     Mode = "fail"     // end with the fault
)

func (m Mode) known() bool {
	switch m {
	case ModeRestart, ModeContinue, ModeHold, ModeFail:
		return true
	}
	return false
}

// Hold bounds how long events are held back before they are released. It is
// looked at when an event comes: what is held while a provider pauses says
// nothing yet that anybody waits for.
type Hold struct {
	Events  int
	Bytes   int
	For     time.Duration
	Refusal int // bytes of refusal text
}

// Hedge starts the next candidate beside a slow one (opt-in): after After
// without a first event; zero means off.
type Hedge struct {
	After time.Duration
}

// The prompts that pull a model back. Source: design 000 §3.2, §3.3.
const (
	NudgePrompt    = "Please provide your response to the user based on the conversation above."
	ContinuePrompt = "Output limit reached. Continue exactly where you left off — no recap, no apology."
)

// AllFailed begins the message of a call whose candidates all failed. Source:
// design 000 §2.2.
const AllFailed = "All providers failed. Please check your API keys and network connection."

// DefaultPolicy is the policy of the design's table.
func DefaultPolicy() Policy {
	return Policy{
		Name: "default",
		Rules: map[ninelives.Class]Rule{
			ninelives.ClassRateLimit:     {Same: 2, Next: NextThen, Again: true, Cooldown: time.Minute, Scope: ninelives.ScopeModel, Probe: ProbeTraffic},
			ninelives.ClassBilling:       {Next: NextAtOnce, Cooldown: 30 * time.Minute, Scope: ninelives.ScopeAccount, Probe: ProbeNone},
			ninelives.ClassAuth:          {Next: NextAtOnce, Cooldown: 10 * time.Minute, Scope: ninelives.ScopeKey, Probe: ProbeNone},
			ninelives.ClassOverloaded:    {Same: 1, Next: NextThen, Again: true, Cooldown: 15 * time.Second, CooldownCap: 2 * time.Minute, Scope: ninelives.ScopeModel, Breaks: true, Probe: ProbeTraffic},
			ninelives.ClassTimeout:       {Next: NextAtOnce, Again: true, Cooldown: 30 * time.Second, Scope: ninelives.ScopeModel, Breaks: true, Probe: ProbeSynthetic},
			ninelives.ClassNetwork:       {Same: 1, AtOnce: true, Next: NextThen, Again: true, Cooldown: 30 * time.Second, Scope: ninelives.ScopeHost, Breaks: true, Probe: ProbeTraffic},
			ninelives.ClassModelNotFound: {Next: NextAtOnce, Cooldown: time.Hour, Scope: ninelives.ScopeModel, Probe: ProbeNone},
			ninelives.ClassContextLength: {Next: NextLarger},
			ninelives.ClassContentFilter: {Next: NextNever},
			ninelives.ClassRefusal:       {Next: NextOnce},
			ninelives.ClassFormat:        {Next: NextOther},
			ninelives.ClassStreamBroken:  {Same: 1, Next: NextThen, Again: true, Scope: ninelives.ScopeModel, Breaks: true},
			ninelives.ClassEmpty:         {Next: NextThen, Again: true},
			ninelives.ClassTruncated:     {Next: NextNever},
			ninelives.ClassInvalidOutput: {Next: NextNever},
			ninelives.ClassUnknown:       {Same: 1, Next: NextThen, Again: true, Cooldown: 30 * time.Second, Scope: ninelives.ScopeModel, Breaks: true, Probe: ProbeTraffic},
			ninelives.ClassCanceled:      {Next: NextNever},
			ninelives.ClassGuard:         {Next: NextNever},
		},
		Budget:     Budget{Faults: 4, Others: 2, Requests: 10},
		Backoff:    Backoff{Base: 500 * time.Millisecond, Cap: 8 * time.Second},
		HintJitter: 0.2,
		Buffered:   2 * time.Minute,
		Streamed:   10 * time.Minute,
		Clocks: ClockPolicy{
			Dial:    10 * time.Second,
			Headers: 30 * time.Second, HeadersSlope: 2 * time.Second,
			FirstEvent: time.Minute, FirstSlope: 2 * time.Second,
			Liveness: 30 * time.Second, Progress: 90 * time.Second,
			LocalFactor: 5,
		},
		Breaker:  Breaker{Consecutive: 5, Ratio: 0.5, MinCalls: 20, Window: 30 * time.Second, Open: 30 * time.Second},
		Probe:    ProbePolicy{From: 0.5, Every: 15 * time.Second},
		Ramp:     Ramp{Steps: []float64{0.1, 0.5, 1}, Over: 20 * time.Second, Above: 10},
		Retry:    RetryBudget{Share: 0.2, Min: 3, Window: 30 * time.Second},
		Limit:    Limit{InFlight: 64, Queue: 64, Wait: 5 * time.Second},
		Content:  Content{Empty: 3, EmptyPlain: 1, EmptyNudges: 1, Continuations: 3, Repairs: 1, NudgePrompt: NudgePrompt, ContinuePrompt: ContinuePrompt},
		Mode:     ModeRestart,
		Hold:     Hold{Events: 64, Bytes: 256 << 10, For: 10 * time.Second, Refusal: 16 << 10},
		Failover: true,
	}
}
