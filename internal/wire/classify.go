package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Answer is what a provider answered instead of a result, as far as it was read.
type Answer struct {
	// Status is the HTTP status; 200 for an error inside a good answer.
	Status int
	// Header is the HTTP header; may be nil.
	Header http.Header
	// Body is the body, or the data of the frame that holds the error.
	Body []byte
	// Type is an error type that was told outside of the body, such as the
	// ":exception-type" of an AWS frame; usually empty.
	Type string
	// Candidate is who was asked.
	Candidate ninelives.Candidate
	// Path is the path of the request's URL; empty means unknown. It only
	// sharpens the advice about a wrong base URL.
	Path string
	// InBand says that the error came inside a 200 stream or body.
	InBand bool
	// InputTokens is our own estimate of the request's size; 0 means unknown.
	// It decides what an error without a word means.
	InputTokens int
	// Applied are the repairs that were in force, so that a second complaint
	// about the same thing leads to the next weaker form.
	Applied []ninelives.Repair
	// Now is the time of the answer, for dates in hints.
	Now time.Time
}

// verdict is what the deciding steps agree on.
type verdict struct {
	class   ninelives.Class
	scope   ninelives.Scope
	final   bool
	repairs []ninelives.Repair
}

// Classify turns an error answer into a Fault. It decides by what the body
// says, then by the codes in it, and only then by the status: a third of all
// error answers carry a status that says something else, and as many hide
// behind a 200.
func Classify(a Answer) *ninelives.Fault {
	c := readComplaint(a)
	v := judge(a, c)
	f := &ninelives.Fault{
		Class:     v.class,
		Scope:     v.scope,
		Phase:     ninelives.PhaseHeaders,
		Status:    a.Status,
		Code:      bounded(c.code, 80),
		Type:      bounded(c.kind, 80),
		Message:   c.message(a),
		Candidate: candidateName(a.Candidate),
		RequestID: requestID(a.Header, c),
		Final:     v.final,
		Repairs:   v.repairs,
		Billed:    billed(a),
	}
	if f.Scope == "" {
		f.Scope = scopeOf(v.class)
	}
	if a.InBand {
		f.Phase = ninelives.PhaseStream
	}
	if b, err := strconv.ParseBool(strings.TrimSpace(a.Header.Get("X-Should-Retry"))); err == nil {
		f.ShouldRetry = &b
	}
	if v.class == ninelives.ClassContextLength {
		f.Window, f.Requested = overflowNumbers(c)
	}
	h := readHints(a, c, v.class)
	f.RetryAfter, f.ResetAt = h.after, h.reset
	if v.class == ninelives.ClassRateLimit && (c.daily() || c.barequota() && h.after == 0) {
		f.Final = true
	}
	f.Hint = advice(a, c, f)
	return f
}

// judge walks the steps in their order; the first that knows an answer wins.
func judge(a Answer, c *complaint) verdict {
	status := c.status(a)
	for _, step := range []func(Answer, *complaint, int) (verdict, bool){
		byVendorCode, // a number that a vendor's table explains
		saysPolicy,
		saysMoney,
		saysKey,
		saysTooLong,
		saysCapacity,
		saysRate,
		saysDefect,
		saysModel,
		byStatus,
	} {
		if v, ok := step(a, c, status); ok {
			return v
		}
	}
	return verdict{class: ninelives.ClassUnknown}
}

// status is the HTTP status that counts: the one told in the body, because a
// proxy in between may have chosen its own, else that of the answer; 0 if it
// says nothing (an error inside a 200).
func (c *complaint) status(a Answer) int {
	switch {
	case c.told != 0:
		return c.told
	case a.Status >= 400:
		return a.Status
	}
	return 0
}

func saysPolicy(a Answer, c *complaint, status int) (verdict, bool) {
	if c.word(policyWords) || c.flagged || c.says(policyTexts) {
		return verdict{class: ninelives.ClassContentFilter}, true
	}
	return verdict{}, false
}

func saysMoney(a Answer, c *complaint, status int) (verdict, bool) {
	if c.word(inFlightWords) && a.Header.Get("Retry-After") != "" {
		return verdict{class: ninelives.ClassRateLimit, scope: ninelives.ScopeKey}, true
	}
	v := verdict{class: ninelives.ClassBilling, repairs: affordable(c)}
	switch {
	case c.word(moneyWords), c.says(moneyTexts), len(v.repairs) > 0:
	case c.word(preconditionWords) && status == http.StatusBadRequest:
	case c.says(planTexts) && !c.google():
		// Google uses OpenAI's sentence about plan and billing for a rate limit.
	default:
		return verdict{}, false
	}
	if c.word(keyBudgetWords) {
		v.scope = ninelives.ScopeKey
	}
	return v, true
}

func saysKey(a Answer, c *complaint, status int) (verdict, bool) {
	v := verdict{class: ninelives.ClassAuth}
	switch {
	case c.word(regionWords) || c.says(regionTexts):
		v.scope = ninelives.ScopeHost
	case c.word(keyWords) || c.says(keyTexts):
	case c.challenge:
		v.scope = ninelives.ScopeHost
	default:
		return verdict{}, false
	}
	return v, true
}

func saysCapacity(a Answer, c *complaint, status int) (verdict, bool) {
	if c.word(streamErrorWords) && a.InBand {
		return verdict{class: ninelives.ClassStreamBroken}, true
	}
	// What a 400 calls unavailable may be a parameter.
	asked := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
	if c.word(capacityWords) || c.says(capacityTexts) && !(asked && len(findRepairs(a, c)) > 0) {
		return verdict{class: ninelives.ClassOverloaded}, true
	}
	return verdict{}, false
}

func saysRate(a Answer, c *complaint, status int) (verdict, bool) {
	if !c.word(rateWords) && !c.says(rateTexts) {
		return verdict{}, false
	}
	if status == http.StatusPaymentRequired {
		return verdict{class: ninelives.ClassBilling}, true
	}
	return verdict{class: ninelives.ClassRateLimit, scope: rateScope(a, c)}, true
}

// saysDefect finds a request that this provider does not take. Statuses that
// mean something else for certain are left to their own steps.
func saysDefect(a Answer, c *complaint, status int) (verdict, bool) {
	switch status {
	case 0, 400, 405, 409, 415, 422, 424, 500, 501, 502:
	default:
		return verdict{}, false
	}
	if c.word(modelWords) {
		return verdict{}, false
	}
	if r := findRepairs(a, c); len(r) > 0 {
		return verdict{class: ninelives.ClassFormat, repairs: r}, true
	}
	if c.word(defectWords) && !c.says(modelTexts) {
		return verdict{class: ninelives.ClassFormat}, true
	}
	return verdict{}, false
}

func saysModel(a Answer, c *complaint, status int) (verdict, bool) {
	switch {
	case c.word(modelWords):
	case c.says(modelTexts) && (status == 0 || status == 400 || status == 403 || status == 404 || status == 422 || status == 500 || status == 503):
	default:
		return verdict{}, false
	}
	return verdict{class: ninelives.ClassModelNotFound}, true
}

func byStatus(a Answer, c *complaint, status int) (verdict, bool) {
	if c.word(timeoutWords) && (status == 0 || status >= 500) {
		return verdict{class: ninelives.ClassTimeout}, true
	}
	if status == 0 {
		return withoutStatus(a, c), true
	}
	v := verdict{class: ninelives.ClassUnknown}
	switch {
	case status == 400 && c.empty:
		v.class = wordless(a)
	case status == 401, status == 403, status == 407:
		v.class = ninelives.ClassAuth
	case status == 402:
		v.class = ninelives.ClassBilling
	case status == 404, status == 405, status == 410:
		v.class = ninelives.ClassModelNotFound
		if c.html || c.misrouted() {
			v.scope = ninelives.ScopeHost
		}
	case status == 408, status == 499, status == 504, status == 524:
		v.class = ninelives.ClassTimeout
	case status == 413:
		v.class = ninelives.ClassContextLength
	case status == 429:
		v.class, v.scope = ninelives.ClassRateLimit, rateScope(a, c)
	case status == 424, status == 498, status == 502, status == 503,
		status >= 520 && status <= 523, status >= 525 && status <= 530:
		v.class = ninelives.ClassOverloaded
		v.final = status == 525 || status == 526
	case status == 409, status == 425, status >= 500:
	case status >= 400:
		v.class = ninelives.ClassFormat
	}
	return v, true
}

// withoutStatus judges an error inside a 200 that carries no number at all.
func withoutStatus(a Answer, c *complaint) verdict {
	switch {
	case c.html:
		return verdict{class: ninelives.ClassFormat, scope: ninelives.ScopeHost, final: true}
	case c.empty:
		return verdict{class: ninelives.ClassEmpty}
	case c.says(timeoutTexts):
		return verdict{class: ninelives.ClassTimeout}
	case c.word(weakDefectWords):
		return verdict{class: ninelives.ClassFormat}
	}
	return verdict{class: ninelives.ClassUnknown}
}

// wordless judges a 400 without a body: some servers answer an overflow so. A
// request that is far from the window cannot be one.
func wordless(a Answer) ninelives.Class {
	if a.InputTokens > 0 && a.Candidate.Window > 0 && a.InputTokens < a.Candidate.Window/4 {
		return ninelives.ClassFormat
	}
	return ninelives.ClassContextLength
}

// rateScope tells whose limit it is, where the answer says so.
func rateScope(a Answer, c *complaint) ninelives.Scope {
	switch {
	case a.Header.Get("Anthropic-Ratelimit-Unified-Status") != "", a.Header.Get("Anthropic-Ratelimit-Unified-5h-Status") != "",
		a.Header.Get("Anthropic-Ratelimit-Unified-7d-Status") != "":
		return ninelives.ScopeAccount
	case c.word(ownPoolWords):
		return ninelives.ScopeKey
	}
	return ninelives.ScopeModel
}

func scopeOf(c ninelives.Class) ninelives.Scope {
	switch c {
	case ninelives.ClassBilling:
		return ninelives.ScopeAccount
	case ninelives.ClassAuth:
		return ninelives.ScopeKey
	case ninelives.ClassNetwork:
		return ninelives.ScopeHost
	case ninelives.ClassContextLength, ninelives.ClassContentFilter, ninelives.ClassRefusal,
		ninelives.ClassFormat, ninelives.ClassEmpty, ninelives.ClassTruncated, ninelives.ClassCanceled:
		return ninelives.ScopeRequest
	}
	return ninelives.ScopeModel
}

// billed: nothing is charged for a request that was turned away; a server
// that broke while working, or after it had begun to answer, may charge.
func billed(a Answer) ninelives.Billed {
	switch {
	case a.InBand || a.Status < 400:
		return ninelives.BilledMaybe
	case a.Status == 408, a.Status == 499, a.Status >= 500 && a.Status != 503 && a.Status != 529:
		return ninelives.BilledMaybe
	}
	return ninelives.BilledNo
}

func candidateName(c ninelives.Candidate) string {
	if c.Provider == "" && c.Model == "" {
		return ""
	}
	return c.Name()
}
