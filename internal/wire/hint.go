package wire

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// hints are what a provider says about when to come back.
type hints struct {
	after time.Duration // 0 means none
	reset time.Time     // zero means unknown
}

// maxHint bounds a hint that is no sensible number any more.
const maxHint = 10 * 365 * 24 * time.Hour

// readHints reads the hint that is trusted most: retry-after-ms, then
// Retry-After, then the message's own words or its delay field, then the reset
// of a bucket that is empty. A hint that is zero, negative, empty or no number
// is none. Nothing is ever shortened here.
func readHints(a Answer, c *complaint, class ninelives.Class) hints {
	var h hints
	now := a.Now
	clock := serverClock(a.Header, now)
	h.reset = resetTime(c, clock, now)
	switch {
	case take(&h.after, headerMillis(a.Header.Get("Retry-After-Ms"))):
	case take(&h.after, retryAfter(a.Header.Get("Retry-After"), clock)):
	case c.perDay():
		// Google's delay speaks of the minute although the day is spent.
		if h.reset.IsZero() {
			h.reset = nextPacificMidnight(now)
		}
		return h
	case take(&h.after, headerMillis(c.headers.Get("Retry-After-Ms"))):
	case take(&h.after, retryAfter(c.headers.Get("Retry-After"), clock)):
	case take(&h.after, durationOf(c.retryDelay)):
	case take(&h.after, seconds(c.delaySecs)):
	case take(&h.after, textDelay(c.all)):
	case class == ninelives.ClassRateLimit && take(&h.after, bucketReset(a.Header, clock)):
	case class == ninelives.ClassRateLimit && take(&h.after, bucketReset(c.headers, now)):
	}
	if h.after > 0 && h.reset.IsZero() && !now.IsZero() {
		h.reset = now.Add(h.after)
	}
	return h
}

func take(to *time.Duration, d time.Duration) bool {
	*to = d
	return d > 0
}

// serverClock is the time at the server when it answered, so that its dates
// mean what it meant even where our clock is wrong.
func serverClock(h http.Header, now time.Time) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return now
}

func headerMillis(s string) time.Duration {
	if n, ok := number(s); ok {
		return seconds(n / 1000)
	}
	return 0
}

// retryAfter reads the two legal forms, and a duration with units, which some
// servers send.
func retryAfter(s string, clock time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if n, ok := number(s); ok {
		return seconds(n)
	}
	if t, err := http.ParseTime(s); err == nil {
		return until(t, clock)
	}
	return durationOf(s)
}

// number reads a plain decimal number; signs, exponents and words are none.
func number(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil
}

func seconds(n float64) time.Duration {
	switch {
	case math.IsNaN(n) || n <= 0:
		return 0
	case n >= maxHint.Seconds():
		return maxHint
	}
	return time.Duration(math.Ceil(n * float64(time.Second)))
}

func until(t, now time.Time) time.Duration {
	if now.IsZero() {
		return 0
	}
	d := t.Sub(now)
	if d <= 0 {
		return 0
	}
	return min(d, maxHint)
}

// durationRE is one piece of a duration: a number and its unit.
var durationRE = texts(`^[\s,]*(?:and\s+)?(\d+(?:\.\d+)?)\s*(milliseconds?|millis|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w|毫秒|秒钟|秒|分钟|分|小时|个小时|时|天|日)?`)

func first(places [][]int) []int {
	if len(places) == 0 {
		return nil
	}
	return places[0]
}

var units = map[string]time.Duration{
	"mi": time.Millisecond, "ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
	"毫": time.Millisecond, "秒": time.Second, "分": time.Minute, "小": time.Hour, "个": time.Hour, "时": time.Hour, "天": 24 * time.Hour, "日": 24 * time.Hour,
}

func unitOf(s string) time.Duration {
	s = strings.ToLower(s)
	switch {
	case strings.HasPrefix(s, "milli"), strings.HasPrefix(s, "ms"):
		return time.Millisecond
	case s == "":
		return 0
	}
	for _, r := range s {
		return units[string(r)]
	}
	return 0
}

// leadingDuration reads the duration at the head of s: "6ms", "1m2.5s",
// "114h18m0s", "1d2h", "1 hour and 5 minutes", "20" (seconds).
func leadingDuration(s string) time.Duration {
	var total float64
	for n := 0; n < 8; n++ {
		m := first(durationRE.places(s, 1))
		if m == nil {
			break
		}
		value, err := strconv.ParseFloat(s[m[2]:m[3]], 64)
		if err != nil {
			break
		}
		rest := s[m[1]:]
		var unit time.Duration
		if m[4] >= 0 {
			// The unit must end here: in "20 samples" there is none, and in "20 See
			// the manual" the number stands bare before another sentence.
			word := s[m[4]:m[5]]
			if next := strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"); len(next) == len(rest) {
				unit = unitOf(word)
			} else if word[0] < 'A' || word[0] > 'Z' {
				break
			}
		}
		if unit == 0 {
			if n == 0 && !strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, "%") {
				return seconds(value)
			}
			break
		}
		total += value * unit.Seconds()
		s = rest
	}
	return seconds(total)
}

// durationOf reads a text that is a duration as a whole.
func durationOf(s string) time.Duration {
	s = strings.TrimSpace(s)
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0
	}
	return leadingDuration(s)
}

// triggerRE leads up to a delay in a sentence.
var triggerRE = texts(`(?:(?:try|retry|retrying|again|request|wait|come back|available|resets?|reset|refresh\w*|replenish\w*|recover\w*|later)\s*(?:your request |the request |this request |it |again |for |will be |be )*(?:in|after|for|within)?\s*(?:at least |about |approximately |around |another |~ ?|up to )?|请(?:在|等待|于)?\s*|等待\s*|(?:重试|恢复)[^\d]{0,6})(\d)`)

// afterRE is the other order: the delay, then what to do.
var afterRE = texts(`(?:after|in|wait)\s+(\d[\d.]*\s*(?:ms|s|m|h|d|seconds?|secs?|minutes?|mins?|hours?|days?))\b[^.]{0,30}(?:retry|again)|(\d[\d.]*\s*(?:毫秒|秒钟|秒|分钟|分|个小时|小时|天))\s*(?:之?后)(?:再|重)?`)

// textDelay reads the delay that a sentence tells.
func textDelay(s string) time.Duration {
	for _, m := range triggerRE.places(s, 8) {
		rest := s[m[2]:]
		if dateRE.matches(rest[:min(len(rest), 12)]) {
			continue
		}
		if d := leadingDuration(rest); d > 0 {
			return d
		}
	}
	if m := afterRE.find(s); m != nil {
		return leadingDuration(m[1] + m[2])
	}
	return 0
}

// dateRE is a date with a time of day and perhaps a zone.
var (
	dateRE    = exact(`\d{4}-\d{1,2}-\d{1,2}`)
	momentRE  = texts(`(\d{4}-\d{2}-\d{2})(?:(?:[T ]| at |,? )(\d{2}:\d{2}(?::\d{2})?)(?:\.\d+)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?`)
	resetWord = texts(`reset|regain|available|until|renew|refresh|resum|retry|again|expire|重置|恢复|刷新|解除|后`)
	hanRE     = exact(`\p{Han}`)
)

// resetTime reads when a quota comes back.
func resetTime(c *complaint, clock, now time.Time) time.Time {
	switch v := c.resetsAt.(type) {
	case float64:
		if t, ok := epoch(v); ok {
			return t
		}
	case string:
		if n, ok := number(v); ok {
			if t, ok := epoch(n); ok {
				return t
			}
		}
		if t, err := time.Parse(time.RFC3339, v); err == nil {
			return t
		}
		if t, ok := moment(v); ok {
			return t
		}
	}
	for _, m := range momentRE.places(c.all, 4) {
		near := c.all[max(0, m[0]-60):min(len(c.all), m[1]+24)]
		if !resetWord.matches(near) {
			continue
		}
		if t, ok := moment(c.all[m[0]:m[1]]); ok {
			if !zoned(c.all[m[0]:m[1]]) && hanRE.matches(c.all) {
				t = t.Add(-8 * time.Hour) // a Chinese text tells the time of China
			}
			return t
		}
	}
	return time.Time{}
}

func zoned(s string) bool {
	m := momentRE.find(s)
	return m != nil && m[3] != ""
}

// moment reads a date, as UTC where it names no zone: of the readings that are
// likely it is the latest, and a hint must not be shortened.
func moment(s string) (time.Time, bool) {
	m := momentRE.find(s)
	if m == nil {
		return time.Time{}, false
	}
	clock := m[2]
	switch len(clock) {
	case 0:
		clock = "00:00:00"
	case 5:
		clock += ":00"
	}
	zone := "Z"
	if z := m[3]; strings.HasPrefix(z, "+") || strings.HasPrefix(z, "-") {
		zone = z
		if len(z) == 5 {
			zone = z[:3] + ":" + z[3:]
		}
	}
	t, err := time.Parse(time.RFC3339, m[1]+"T"+clock+zone)
	return t, err == nil
}

// epoch reads a stamp: above 10^12 it counts milliseconds, above 10^9 seconds;
// anything smaller is no stamp.
func epoch(n float64) (time.Time, bool) {
	switch {
	case n > 1e15:
		return time.Time{}, false
	case n > 1e12:
		return time.UnixMilli(int64(n)), true
	case n > 1e9:
		return time.Unix(0, int64(n*1e3)*1e6), true
	}
	return time.Time{}, false
}

// bucketReset reads the reset headers of the buckets that are empty; with
// several empty ones all must refill.
func bucketReset(h http.Header, clock time.Time) time.Duration {
	var longest time.Duration
	for key, values := range h {
		lower := strings.ToLower(key)
		if !strings.Contains(lower, "ratelimit") && !strings.Contains(lower, "rate-limit") || !strings.Contains(lower, "reset") || len(values) == 0 {
			continue
		}
		remaining := strings.TrimSpace(h.Get(strings.Replace(lower, "reset", "remaining", 1)))
		status := strings.TrimSpace(h.Get(strings.Replace(lower, "reset", "status", 1)))
		left, err := strconv.ParseFloat(remaining, 64)
		if !(err == nil && left <= 0) && status != "rejected" {
			continue
		}
		longest = max(longest, resetValue(values[0], clock))
	}
	return longest
}

// resetValue reads a reset header: a stamp, a date, a duration, seconds.
func resetValue(s string, clock time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if n, ok := number(s); ok {
		if t, ok := epoch(n); ok {
			return until(t, clock)
		}
		return seconds(n)
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return until(t, clock)
	}
	if t, err := http.ParseTime(s); err == nil {
		return until(t, clock)
	}
	return durationOf(s)
}

// nextPacificMidnight is when Google's daily quotas come back. Standard time
// is taken all year: an hour late in summer, never early.
func nextPacificMidnight(now time.Time) time.Time {
	if now.IsZero() {
		return time.Time{}
	}
	u := now.UTC()
	t := time.Date(u.Year(), u.Month(), u.Day(), 8, 0, 0, 0, time.UTC)
	if !t.After(u) {
		t = t.AddDate(0, 0, 1)
	}
	return t
}
