package wire

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func TestHintsOfEveryForm(t *testing.T) {
	for _, c := range []struct {
		name, head, body string
		want             time.Duration
	}{
		{"milliseconds win over seconds", "Retry-After-Ms: 1500|Retry-After: 2", "", 1500 * time.Millisecond},
		{"seconds", "Retry-After: 45", "", 45 * time.Second},
		{"seconds of days", "Retry-After: 411480", "", 411480 * time.Second},
		{"fractions are rounded up, never down", "Retry-After: 0.0000000015", "", 2},
		{"white space", "Retry-After:  7 ", "", 7 * time.Second},
		{"date", "Retry-After: Sun, 29 Nov 2026 12:00:07 GMT", "", 7 * time.Second},
		{"date of the second form", "Retry-After: Sunday, 29-Nov-26 12:00:07 GMT", "", 7 * time.Second},
		{"date of the third form", "Retry-After: Sun Nov 29 12:00:07 2026", "", 7 * time.Second},
		{"date by a server whose clock is wrong", "Retry-After: Sun, 29 Nov 2026 15:00:07 GMT|Date: Sun, 29 Nov 2026 15:00:00 GMT", "", 7 * time.Second},
		{"zero", "Retry-After: 0", "", 0},
		{"negative", "Retry-After: -100", "", 0},
		{"empty", "Retry-After:", "", 0},
		{"a word", "Retry-After: soon", "", 0},
		{"not a number", "Retry-After: NaN", "", 0},
		{"infinite", "Retry-After: Inf", "", 0},
		{"hexadecimal", "Retry-After: 0x10", "", 0},
		{"past date", "Retry-After: Sun, 29 Nov 2026 11:00:00 GMT", "", 0},
		{"absurd", "Retry-After: 99999999999999999999", "", maxHint},
		{"a bad header leaves the text", "Retry-After: soon", "Please try again in 3s.", 3 * time.Second},
		{"the header wins over the text", "Retry-After: 579", "Please try again in 9m38.016s.", 579 * time.Second},
		{"text in milliseconds", "", "Please try again in 6ms.", 6 * time.Millisecond},
		{"text in fractions", "", "Please try again in 23.03s. Visit us.", 23030 * time.Millisecond},
		{"text in minutes", "", "please try again in 9m38.016s", 9*time.Minute + 38016*time.Millisecond},
		{"text in hours", "", "Try again in 114h18m0s.", 114*time.Hour + 18*time.Minute},
		{"text in days", "", "Please try again in 1d2h.", 26 * time.Hour},
		{"a bare number before another sentence", "", "Please retry after 20 See the manual.", 20 * time.Second},
		{"text in words", "", "Please retry after 45 seconds.", 45 * time.Second},
		{"text in several words", "", "Please wait about 1 hour and 5 minutes before retrying.", 65 * time.Minute},
		{"text without a unit", "", "Please retry after 20", 20 * time.Second},
		{"text of one second", "", "please try again after 1 seconds", time.Second},
		{"retry in", "", "Please retry in 27.9s.", 27900 * time.Millisecond},
		{"available in", "", "Quota will be available again in 12 minutes", 12 * time.Minute},
		{"resets in", "", "Your limit resets in 2h", 2 * time.Hour},
		{"Chinese", "", "请求过于频繁，请在 30 秒后重试", 30 * time.Second},
		{"Chinese minutes", "", "限流，5分钟后再试", 5 * time.Minute},
		{"text without a number", "", "Please try again in a few seconds.", 0},
		{"numbers that are no delay", "", "Limit 100, Used 99, Requested 5. Please slow down.", 0},
		{"five minutes ago is no delay", "", "If you created it within the last 5 minutes, please wait a moment and try again.", 0},
		{"a model's name is no delay", "", "Please retry with gpt-4", 0},
		{"the empty bucket", "X-Ratelimit-Remaining-Tokens: 0|X-Ratelimit-Reset-Tokens: 1m2.5s|X-Ratelimit-Remaining-Requests: 50|X-Ratelimit-Reset-Requests: 8h", "", 62500 * time.Millisecond},
		{"all empty buckets must refill", "X-Ratelimit-Remaining-Tokens: 0|X-Ratelimit-Reset-Tokens: 2s|X-Ratelimit-Remaining-Requests: 0|X-Ratelimit-Reset-Requests: 2m59.56s", "", 179560 * time.Millisecond},
		{"no bucket is empty", "X-Ratelimit-Remaining-Tokens: 10|X-Ratelimit-Reset-Tokens: 1m", "", 0},
		{"a reset without its bucket", "X-Ratelimit-Reset-Tokens: 1m", "", 0},
		{"RFC 3339 reset", "Anthropic-Ratelimit-Requests-Remaining: 0|Anthropic-Ratelimit-Requests-Reset: 2026-11-29T12:00:30Z|Anthropic-Ratelimit-Tokens-Remaining: 5|Anthropic-Ratelimit-Tokens-Reset: 2026-11-29T13:00:00Z", "", 30 * time.Second},
		{"epoch seconds", fmt.Sprintf("X-Ratelimit-Remaining: 0|X-Ratelimit-Reset: %d", noon.Unix()+90), "", 90 * time.Second},
		{"epoch milliseconds", fmt.Sprintf("X-Ratelimit-Remaining: 0|X-Ratelimit-Reset: %d", noon.UnixMilli()+90500), "", 90500 * time.Millisecond},
		{"seconds from now", "Ratelimit-Remaining: 0|Ratelimit-Reset: 33", "", 33 * time.Second},
		{"a rejected window", fmt.Sprintf("Anthropic-Ratelimit-Unified-5h-Status: rejected|Anthropic-Ratelimit-Unified-5h-Reset: %d", noon.Unix()+600), "", 10 * time.Minute},
		{"the text wins over the bucket", "X-Ratelimit-Remaining-Tokens: 0|X-Ratelimit-Reset-Tokens: 1m", "Please try again in 2s", 2 * time.Second},
	} {
		body := `{"error":{"message":"rate limit reached"}}`
		if c.body != "" {
			body = string(said(c.body))
		}
		f := Classify(Answer{Status: 429, Header: header(c.head), Body: []byte(body), Now: noon})
		if f.RetryAfter != c.want {
			t.Errorf("%s: %v, want %v", c.name, f.RetryAfter, c.want)
		}
		if f.Class != ninelives.ClassRateLimit {
			t.Errorf("%s: %s", c.name, f.Class)
		}
	}
}

func TestHintsInsideTheBody(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       time.Duration
		reset      time.Time
	}{
		{"RetryInfo", `{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38.5s"}]}}`, 38500 * time.Millisecond, noon.Add(38500 * time.Millisecond)},
		{"RetryInfo when the day is spent", `{"error":{"message":"Please retry in 38s.","details":[{"violations":[{"quotaId":"RequestsPerDayPerProject"}]},{"retryDelay":"38s"}]}}`, 0, time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)},
		{"estimated time", `{"error":"Model is loading","estimated_time":20.5}`, 20500 * time.Millisecond, noon.Add(20500 * time.Millisecond)},
		{"an upstream's header", fmt.Sprintf(`{"error":{"code":429,"metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"%d"}}}}`, noon.UnixMilli()+60000), time.Minute, noon.Add(time.Minute)},
		{"the end of a budget is no wait", `{"error":{"code":429,"metadata":{"resets_at":"2026-12-01T00:00:00Z"}}}`, 0, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)},
		{"epoch of the end", fmt.Sprintf(`{"error":{"code":429,"type":"usage_limit_reached","resets_at":%d}}`, noon.Unix()+7200), 0, noon.Add(2 * time.Hour)},
		{"seconds to the end", `{"error":{"type":"usage_limit_reached","resets_in_seconds":3600}}`, time.Hour, noon.Add(time.Hour)},
		{"a date in English", `{"error":{"message":"Usage limit reached. Your limit will reset at 2026-12-14 18:32:10"}}`, 0, time.Date(2026, 12, 14, 18, 32, 10, 0, time.UTC)},
		{"a date with its zone", `{"error":{"message":"You will regain access on 2026-12-01 at 00:00 UTC."}}`, 0, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)},
		{"a date in Chinese", `{"error":{"message":"您的限额将在 2026-12-14 18:32:10 重置。"}}`, 0, time.Date(2026, 12, 14, 10, 32, 10, 0, time.UTC)},
		{"an API version is no date", `{"error":{"message":"operation under API version 2023-05-15 was limited"}}`, 0, time.Time{}},
	} {
		f := Classify(Answer{Status: 429, Body: []byte(c.body), Now: noon})
		if f.RetryAfter != c.want || !f.ResetAt.Equal(c.reset) {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, f.RetryAfter, f.ResetAt, c.want, c.reset)
		}
	}
}

func FuzzHints(f *testing.F) {
	for _, seed := range []string{"1", "0", "-1", "1.5", "1d2h", "9m38.016s", "soon", "Sun, 29 Nov 2026 12:00:07 GMT", "1e9", "99999999999999999999h", "5 分钟", "2026-12-14 18:32:10"} {
		f.Add(seed, "Please try again in "+seed)
	}
	f.Fuzz(func(t *testing.T, value, text string) {
		h := http.Header{}
		for _, key := range []string{"Retry-After", "Retry-After-Ms", "X-Ratelimit-Reset-Tokens", "Anthropic-Ratelimit-Requests-Reset", "Date"} {
			h.Set(key, value)
		}
		h.Set("X-Ratelimit-Remaining-Tokens", "0")
		checkShape(t, Classify(Answer{Status: 429, Header: h, Body: said(text), Now: noon}))
		h = http.Header{"X-Ratelimit-Reset-Tokens": {value}, "X-Ratelimit-Remaining-Tokens": {"0"}}
		checkShape(t, Classify(Answer{Status: 429, Header: h, Body: said(text), Now: noon}))
	})
}
