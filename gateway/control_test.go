package gateway

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

func headersOf(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestWhatAClientAsksForIsRead(t *testing.T) {
	got, bad := parseControl(headersOf(
		"x-ninelives-deadline-ms", "30000", "x-ninelives-first-token-ms", "2500", "x-ninelives-idle-ms", " 9000 ",
		"x-ninelives-route", "fast", "x-ninelives-fallbacks", "openai/gpt-5.4, local/llama ,,fast", "x-ninelives-fallbacks", "fast",
		"x-ninelives-mode", "hold", "x-ninelives-attempts", "3", "x-ninelives-priority", "-5", "x-ninelives-session", "run-7",
		"x-ninelives-cache", "refresh", "idempotency-key", "order 66",
		"x-stainless-retry-count", "1", "user-agent", "OpenAI/JS 7.59.0", "x-request-id", "req_42",
	), "from the body")
	if bad != nil {
		t.Fatal(bad)
	}
	want := control{
		Deadline: 30 * time.Second, FirstToken: 2500 * time.Millisecond, Idle: 9 * time.Second,
		Route: "fast", Fallbacks: []string{"openai/gpt-5.4", "local/llama", "fast"}, Mode: heal.ModeHold, Attempts: 3, Priority: -5,
		Session: "run-7", Cache: cacheRefresh, Idempotency: "order 66", Retry: 1, Client: clientSDK,
		RequestID: "req_42",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	if got, bad := parseControl(http.Header{}, ""); bad != nil || !reflect.DeepEqual(got, control{Client: clientOther}) {
		t.Errorf("nothing asked: %+v, %v", got, bad)
	}
}

func TestAHeaderThatIsNotUnderstoodIsRefusedByName(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"x-ninelives-deadline-ms", "30s", `The header x-ninelives-deadline-ms cannot be understood: "30s" was sent, whole milliseconds from 1 to 86400000 are allowed.`},
		{"x-ninelives-deadline-ms", "0", `The header x-ninelives-deadline-ms cannot be understood: "0" was sent, whole milliseconds from 1 to 86400000 are allowed.`},
		{"x-ninelives-idle-ms", "99999999999999999999", `The header x-ninelives-idle-ms cannot be understood: "99999999999999999999" was sent, whole milliseconds from 1 to 86400000 are allowed.`},
		{"x-ninelives-mode", "restart", `The header x-ninelives-mode cannot be understood: "restart" was sent, continue, hold, fail are allowed.`},
		{"x-ninelives-cache", "on", `The header x-ninelives-cache cannot be understood: "on" was sent, use, refresh, off are allowed.`},
		{"x-ninelives-attempts", "11", `The header x-ninelives-attempts cannot be understood: "11" was sent, a whole number from 1 to 10 is allowed.`},
		{"x-ninelives-priority", "1", `The header x-ninelives-priority cannot be understood: "1" was sent, a whole number from -100 to 0 is allowed.`},
		{"x-ninelives-fallbacks", "a,b,c,d,e,f,g,h,i", `The header x-ninelives-fallbacks cannot be understood: "a,b,c,d,e,f,g,h,i" was sent, at most 8 names are allowed.`},
		{"x-ninelives-route", "fa\x1b[2Jst", `The header x-ninelives-route cannot be understood: "fa\\x1b[2Jst" was sent, at most 200 visible ASCII characters are allowed.`},
		{"x-ninelives-deadline", "5", `There is no header x-ninelives-deadline. Did you mean x-ninelives-deadline-ms?`},
		{"x-ninelives-zzz", "5", `There is no header x-ninelives-zzz. There are x-ninelives-attempts, -cache, -deadline-ms, -fallbacks, -first-token-ms, -idle-ms, -mode, -priority, -route, -session.`},
		{"idempotency-key", "a\nb", `The header idempotency-key cannot be understood: "a\\nb" was sent, at most 255 visible ASCII characters are allowed.`},
	} {
		_, bad := parseControl(headersOf(tt.name, tt.value), "")
		if bad == nil || bad.Text != tt.want || bad.Param != tt.name || bad.Trouble != troubleMalformed {
			t.Errorf("%s: %q:\n got %+v\nwant %s", tt.name, tt.value, bad, tt.want)
		}
	}
	if _, bad := parseControl(headersOf("x-ninelives-route", "a", "x-ninelives-route", "b"), ""); bad == nil ||
		!strings.Contains(bad.Text, `"a, b" was sent, it may stand only once`) {
		t.Errorf("a header that stands twice: %v", bad)
	}
}

func hashed(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s)))[:32] }

func TestTheSessionIsWhatTheClientSaysMostSurely(t *testing.T) {
	for _, tt := range []struct {
		name string
		h    http.Header
		body string
		want string
	}{
		{"ours first", headersOf("x-ninelives-session", "own", "x-claude-code-session-id", "cc"), "b", "own"},
		{"Claude Code", headersOf("x-claude-code-session-id", "cc", "session-id", "cx"), "b", "cc"},
		{"Codex", headersOf("session-id", "cx", "thread-id", "th"), "b", "cx"},
		{"Codex, the thread alone", headersOf("thread-id", "th", "x-session-id", "oc"), "b", "th"},
		{"opencode", headersOf("x-session-id", "oc"), "b", "oc"},
		{"pi", http.Header{"Session_id": {"pi"}}, "b", "pi"},
		{"pi, as a proxy spells it", http.Header{"session_id": {"pi"}}, "b", "pi"},
		{"the body", headersOf(), "b", "b"},
		{"nothing", headersOf(), "", ""},
		{"a long one is kept as its hash", headersOf("x-session-id", strings.Repeat("x", 129)), "", hashed(strings.Repeat("x", 129))},
		{"an odd one too", headersOf(), "käse", hashed("käse")},
	} {
		c, bad := parseControl(tt.h, tt.body)
		if bad != nil || c.Session != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.name, c.Session, bad, tt.want)
		}
	}
}

func TestClientsAreKnownByWhatTheySayOfThemselves(t *testing.T) {
	for _, tt := range []struct {
		h    http.Header
		want clientKind
	}{
		{headersOf("user-agent", "claude-cli/2.1.332 (external, sdk-cli)"), clientClaudeCode},
		{headersOf("user-agent", "claude-code/2.1.332"), clientClaudeCode},
		{headersOf("originator", "codex_exec", "user-agent", "whatever"), clientCodex},
		{headersOf("user-agent", "codex_cli_rs/0.171.0 (Debian)"), clientCodex},
		{headersOf("user-agent", "opencode/1.18.33 ai-sdk/5"), clientOpencode},
		{headersOf("user-agent", "OpenAI/JS 7.59.0"), clientSDK},
		{headersOf("user-agent", "Anthropic/Go 2.15.0"), clientSDK},
		{headersOf("user-agent", "langchainjs-openai/1.0.0", "x-stainless-lang", "js"), clientOther},
		{headersOf(), clientOther},
	} {
		if got := clientOf(tt.h); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.h, got, tt.want)
		}
	}
}

func TestOnlyASaneRequestIDIsTakenOver(t *testing.T) {
	for v, want := range map[string]string{
		"req-42_a.b:c": "req-42_a.b:c", "has blank": "", "<script>": "", strings.Repeat("a", 128): strings.Repeat("a", 128), strings.Repeat("a", 129): "",
	} {
		if c, bad := parseControl(headersOf("x-request-id", v), ""); bad != nil || c.RequestID != want {
			t.Errorf("%q: %q, %v", v, c.RequestID, bad)
		}
	}
}

func TestOnlyHeadersOfTheRequestItselfAreSentOn(t *testing.T) {
	h := headersOf("authorization", "Bearer sk-1", "x-api-key", "sk-2", "cookie", "a=b", "x-ninelives-route", "fast", "connection", "close",
		"x-forwarded-for", "10.0.0.1", "forwarded", "for=10.0.0.1", "x-stainless-lang", "js", "proxy-authorization", "x", "openai-organization", "org",
		"x-goog-api-key", "k", "user-agent", "curl", "te", "trailers", "x-app", "cli",
		"anthropic-version", "2023-06-01", "anthropic-beta", "a-1,b-2", "anthropic-beta", "c-3", "openai-beta", "responses=v1", "x-codex-beta-features", "f")
	for p, want := range map[ninelives.Protocol]map[string]string{
		ninelives.AnthropicMessages: {"anthropic-version": "2023-06-01", "anthropic-beta": "a-1,b-2, c-3"},
		ninelives.OpenAIChat:        {"openai-beta": "responses=v1"},
		ninelives.OpenAIResponses:   {"openai-beta": "responses=v1", "x-codex-beta-features": "f"},
		ninelives.Gemini:            nil,
	} {
		if got := forUpstream(h, p); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", p, got, want)
		}
	}
	odd := headersOf("anthropic-beta", "a\x00b", "anthropic-version", strings.Repeat("x", maxForwarded+1))
	if got := forUpstream(odd, ninelives.AnthropicMessages); got != nil {
		t.Errorf("values that are no header's: %v", got)
	}
}

// No header makes the parser fail or lets a value through that is out of bounds.
func TestHeadersNeverAskForMoreThanIsAllowed(t *testing.T) {
	names := []string{"Deadline-Ms", "First-Token-Ms", "Idle-Ms", "Route", "Fallbacks", "Mode", "Attempts", "Session", "Cache", "Priority", "Other"}
	rapid.Check(t, func(t *rapid.T) {
		h := http.Header{}
		for range rapid.IntRange(0, 4).Draw(t, "headers") {
			h.Add(ourPrefix+rapid.SampledFrom(names).Draw(t, "name"), rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"1", "-1", "continue", "off", "a,b"}),
				rapid.Map(rapid.Int64(), func(n int64) string { return fmt.Sprint(n) })).Draw(t, "value"))
		}
		c, bad := parseControl(h, rapid.String().Draw(t, "body"))
		if bad != nil {
			if strings.ContainsFunc(bad.Text, func(r rune) bool { return r < ' ' }) || len(bad.Text) > 600 {
				t.Fatalf("the text is no line to show: %q", bad.Text)
			}
			return
		}
		for _, d := range []time.Duration{c.Deadline, c.FirstToken, c.Idle} {
			if d < 0 || d > maxAsked {
				t.Fatalf("%v is asked for", d)
			}
		}
		if c.Attempts < 0 || c.Attempts > maxAttempts || c.Priority > 0 || len(c.Fallbacks) > maxFallbacks || c.Session != "" && !safeID(c.Session) {
			t.Fatalf("%+v", c)
		}
	})
}
