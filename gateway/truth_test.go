package gateway

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// shown is the truth as headers, without the prefix.
func shown(t *truth) map[string]string {
	h := http.Header{}
	t.headers(h)
	m := map[string]string{}
	for name, v := range h {
		m[strings.ToLower(strings.TrimPrefix(name, ourPrefix))] = v[0]
	}
	return m
}

func attempt(n int, candidate string) ninelives.Notice {
	return ninelives.Notice{Kind: ninelives.NoticeAttempt, Attempt: n, Candidate: candidate}
}

func faultNotice(n int, class ninelives.Class) ninelives.Notice {
	return ninelives.Notice{Kind: ninelives.NoticeFault, Attempt: n, Fault: &ninelives.Fault{Class: class}}
}

func TestAPlainCallSaysWhoServedItAndWhatItCostInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTruth(time.Now())
		time.Sleep(700 * time.Microsecond) // the journal
		tr.notice(ninelives.Notice{Kind: ninelives.NoticePlan})
		tr.notice(attempt(1, "up/m"))
		time.Sleep(3 * time.Second)
		if got := shown(&tr)["overhead-us"]; got != "700" {
			t.Errorf("while it is asked: %s", got)
		}
		tr.done(&ninelives.Response{Candidate: "up/m", Model: "m-2026", Attempts: 1})
		time.Sleep(50 * time.Microsecond)
		tr.call, tr.requestID = "01abc", "req_1"
		tr.paid(0.00123456, false)
		want := map[string]string{"candidate": "up/m", "model": "m-2026", "attempts": "1", "reason": "first", "overhead-us": "750",
			"call": "01abc", "request-id": "req_1", "cost-usd": "0.001235"}
		if got := shown(&tr); !reflect.DeepEqual(got, want) {
			t.Errorf("\n got %v\nwant %v", got, want)
		}
	})
}

// Waits and attempts are the providers' time: what lies between them is ours.
func TestOverheadIsWhatLiesBetweenAttemptsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTruth(time.Now())
		overloaded := &ninelives.Fault{Class: ninelives.ClassOverloaded}
		time.Sleep(time.Millisecond)
		tr.notice(attempt(1, "a/m"))
		time.Sleep(time.Second)
		tr.notice(faultNotice(1, ninelives.ClassOverloaded))
		time.Sleep(2 * time.Millisecond)
		tr.notice(ninelives.Notice{Kind: ninelives.NoticeRetry, Candidate: "a/m", Fault: overloaded})
		tr.notice(ninelives.Notice{Kind: ninelives.NoticeWait, Wait: 400 * time.Millisecond, Fault: overloaded})
		time.Sleep(400 * time.Millisecond)
		tr.notice(attempt(2, "a/m"))
		time.Sleep(time.Second)
		tr.notice(faultNotice(2, ninelives.ClassRateLimit))
		time.Sleep(4 * time.Millisecond)
		tr.notice(ninelives.Notice{Kind: ninelives.NoticeFailover, Candidate: "a/m", Next: "b/m", Fault: &ninelives.Fault{Class: ninelives.ClassRateLimit}})
		tr.notice(attempt(3, "b/m"))
		time.Sleep(time.Second)
		tr.notice(ninelives.Notice{Kind: ninelives.NoticeHedge, Candidate: "b/m", Next: "c/m"})
		tr.notice(attempt(4, "c/m"))
		time.Sleep(time.Second)
		tr.notice(faultNotice(4, ninelives.ClassNetwork)) // the other one goes on
		time.Sleep(time.Second)
		tr.done(&ninelives.Response{Candidate: "b/m", Attempts: 4})
		time.Sleep(8 * time.Millisecond)
		if got := tr.overhead(time.Now()); got != 15*time.Millisecond {
			t.Errorf("%v, want 15ms", got)
		}
		got := shown(&tr)
		if got["healed"] != "retry,failover,hedge" || got["attempts"] != "4" || got["candidate"] != "b/m" {
			t.Error(got)
		}
	})
}

func TestAWaitThatIsCutShortIsNoNegativeOverhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTruth(time.Now())
		tr.notice(ninelives.Notice{Kind: ninelives.NoticeWait, Wait: time.Minute})
		time.Sleep(time.Second)
		if got := tr.overhead(time.Now()); got != 0 {
			t.Errorf("%v, want 0", got)
		}
	})
}

func TestTheReasonIsTheLastStepAndItsCause(t *testing.T) {
	f := func(c ninelives.Class) *ninelives.Fault { return &ninelives.Fault{Class: c} }
	for _, tt := range []struct {
		steps          []ninelives.Notice
		reason, healed string
	}{
		{nil, "first", ""},
		{[]ninelives.Notice{{Kind: ninelives.NoticeRetry, Fault: f(ninelives.ClassOverloaded)}}, "retry: overloaded", "retry"},
		{[]ninelives.Notice{{Kind: ninelives.NoticeFailover, Fault: f(ninelives.ClassRateLimit)}}, "failover: rate_limit", "failover"},
		{[]ninelives.Notice{{Kind: ninelives.NoticeRetry, Fault: f(ninelives.ClassEmpty)}, {Kind: ninelives.NoticeNudge, Fault: f(ninelives.ClassEmpty)}}, "nudge: empty", "retry,nudge"},
		{[]ninelives.Notice{{Kind: ninelives.NoticeRepair, Repair: &ninelives.Repair{Name: "drop_parameter"}, Fault: f(ninelives.ClassFormat)}}, "repair: format", "repair"},
		{[]ninelives.Notice{{Kind: ninelives.NoticeFailover, Fault: f(ninelives.ClassStreamBroken)}, {Kind: ninelives.NoticeContinue}}, "continue", "failover,continue"},
		{[]ninelives.Notice{{Kind: ninelives.NoticeRetry, Fault: f(ninelives.ClassUnknown)}, {Kind: ninelives.NoticeRetry, Fault: f(ninelives.ClassUnknown)}}, "retry: unknown", "retry"},
		{[]ninelives.Notice{{Kind: ninelives.NoticeProbe}}, "probe", ""},
		{[]ninelives.Notice{{Kind: ninelives.NoticeWarning, Text: "x"}, {Kind: ninelives.NoticeCooldown, Fault: f(ninelives.ClassUnknown)}}, "first", ""},
	} {
		tr := newTruth(errorTime)
		tr.notice(attempt(1, "a/m"))
		for _, n := range tt.steps {
			tr.notice(n)
		}
		if got := shown(&tr); got["reason"] != tt.reason || got["healed"] != tt.healed {
			t.Errorf("%v: %q, %q, want %q, %q", tt.steps, got["reason"], got["healed"], tt.reason, tt.healed)
		}
	}
}

func TestASubstituteIsNamedAsSuch(t *testing.T) {
	tr := newTruth(errorTime)
	tr.notice(attempt(1, "a/m"))
	tr.notice(ninelives.Notice{Kind: ninelives.NoticeDegraded, Fault: &ninelives.Fault{Class: ninelives.ClassOverloaded}})
	tr.done(&ninelives.Response{Degraded: ninelives.DegradedCanned, Attempts: 1})
	tr.paid(0, true)
	got := shown(&tr)
	if got["degraded"] != "canned" || got["candidate"] != "" || got["reason"] != "degraded: overloaded" || got["cost-usd"] != "0.000000; estimated" {
		t.Error(got)
	}
}

func TestNoNameBreaksOutOfAHeaderOrAComment(t *testing.T) {
	tr := newTruth(errorTime)
	tr.notice(attempt(1, "up/m\r\nSet-Cookie: a=b\u202e\n\ndata: x"+strings.Repeat("y", 400)))
	for name, v := range shown(&tr) {
		if len(v) > 256 || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%s: %q", name, v)
		}
	}
	comment := string(tr.comment(nil))
	if !strings.HasPrefix(comment, ": ninelives {") || strings.Index(comment, "\n") != len(comment)-2 {
		t.Errorf("%q is more than one comment", comment)
	}
}

// The comment says the same as the headers, as JSON.
func TestACommentHoldsTheWholeTruth(t *testing.T) {
	tr := newTruth(time.Now())
	tr.notice(attempt(1, "up/m"))
	tr.done(&ninelives.Response{Candidate: "up/m", Model: "m", Attempts: 1})
	tr.cache, tr.requestID = "miss", "req_1"
	body, ok := strings.CutPrefix(strings.TrimSpace(string(tr.comment([]byte("data: x\n\n")))), "data: x\n\n: ninelives ")
	var got map[string]string
	if err := json.Unmarshal([]byte(body), &got); err != nil || !ok {
		t.Fatal(err, body)
	}
	delete(got, "overhead_us")
	if want := map[string]string{"candidate": "up/m", "model": "m", "attempts": "1", "reason": "first", "cache": "miss", "request_id": "req_1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %v\nwant %v", got, want)
	}
}
