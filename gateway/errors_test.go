package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
)

var errorTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

var everyProtocol = []ninelives.Protocol{ninelives.AnthropicMessages, ninelives.OpenAIChat, ninelives.OpenAIResponses, ninelives.Gemini}

var everyClient = []clientKind{clientClaudeCode, clientCodex, clientOpencode, clientSDK, clientOther}

var everyClass = []ninelives.Class{
	ninelives.ClassRateLimit, ninelives.ClassBilling, ninelives.ClassAuth, ninelives.ClassOverloaded, ninelives.ClassTimeout,
	ninelives.ClassNetwork, ninelives.ClassModelNotFound, ninelives.ClassContextLength, ninelives.ClassContentFilter,
	ninelives.ClassRefusal, ninelives.ClassFormat, ninelives.ClassStreamBroken, ninelives.ClassEmpty, ninelives.ClassTruncated,
	ninelives.ClassInvalidOutput, ninelives.ClassUnknown, ninelives.ClassCanceled, ninelives.ClassGuard,
}

// spentOn is a call that tried each of the classes once, at a candidate of its own.
func spentOn(back time.Duration, classes ...ninelives.Class) *heal.Exhausted {
	e := &heal.Exhausted{Took: 2 * time.Second}
	if back > 0 {
		e.Back = errorTime.Add(back)
	}
	for i, c := range classes {
		f := &ninelives.Fault{Class: c, Candidate: fmt.Sprintf("up%d/m", i+1), Status: 503}
		if c == ninelives.ClassRateLimit {
			f.RetryAfter = back
		}
		e.Trail = append(e.Trail, heal.Tried{Candidate: f.Candidate, Class: c, Status: f.Status, Took: time.Second, Fault: f})
		e.Fault = f
	}
	return e
}

// guessed is spentOn where no provider has said when to come back.
func guessed(back time.Duration, class ninelives.Class) *heal.Exhausted {
	e := spentOn(back, class)
	e.Fault.RetryAfter = 0
	return e
}

// told is what a client sees of an error, in short.
func toldClient(p ninelives.Protocol, client clientKind, stream bool, err error) string {
	a := answerFor(p, client, stream, err, errorTime)
	s := fmt.Sprint(a.Status)
	if a.Stream != nil {
		return s + " stream " + responseFailed(a.Stream) + headersIn(a.Header)
	}
	return strings.TrimSpace(strings.Join([]string{s, a.Error.Type, a.Error.Code}, " ")) + headersIn(a.Header)
}

func headersIn(h http.Header) string {
	s := ""
	if v := h.Get("Retry-After"); v != "" {
		s += " after " + v
	}
	if v := h.Get("X-Should-Retry"); v != "" {
		s += " retry " + v
	}
	return s
}

// responseFailed gives the code of the response.failed that a fault becomes.
func responseFailed(f *ninelives.Fault) string {
	b := openai.NewResponsesEncoder(wire.EncodeOptions{ID: "resp_1", Model: "m"}).Fail(nil, f)
	_, data, _ := bytes.Cut(b, []byte("event: response.failed\ndata: "))
	var v struct {
		Response struct{ Error struct{ Code string } }
	}
	if err := json.Unmarshal(bytes.TrimSpace(data), &v); err != nil {
		return err.Error()
	}
	return v.Response.Error.Code
}

// The rows are those of notes/clients.md §5. The columns are Messages, chat,
// Responses of Codex as a stream, Responses of others, Gemini.
func TestEveryTroubleIsToldAsTheClientNeedsIt(t *testing.T) {
	const never = " retry false"
	for _, tt := range []struct {
		name                                   string
		err                                    error
		messages, chat, codex, responses, gems string
	}{
		{"everything tried", spentOn(15*time.Second, ninelives.ClassOverloaded, ninelives.ClassRateLimit),
			"529 overloaded_error" + never, "503 service_unavailable_error server_is_overloaded" + never,
			"200 stream server_is_overloaded" + never, "503 service_unavailable_error server_is_overloaded" + never, "503 UNAVAILABLE" + never},
		{"all out of service", &heal.Exhausted{Back: errorTime.Add(time.Minute)},
			"529 overloaded_error" + never, "503 service_unavailable_error server_is_overloaded" + never,
			"200 stream server_is_overloaded" + never, "503 service_unavailable_error server_is_overloaded" + never, "503 UNAVAILABLE" + never},
		{"the gateway's keys refused", spentOn(0, ninelives.ClassAuth, ninelives.ClassAuth),
			"529 overloaded_error" + never, "503 service_unavailable_error server_is_overloaded" + never,
			"200 stream server_is_overloaded" + never, "503 service_unavailable_error server_is_overloaded" + never, "503 UNAVAILABLE" + never},
		{"rate limited for 12.2 s", spentOn(12200*time.Millisecond, ninelives.ClassRateLimit, ninelives.ClassRateLimit),
			"429 rate_limit_error after 13", "429 rate_limit_error rate_limit_exceeded after 13",
			"429 rate_limit_error rate_limit_exceeded after 13", "429 rate_limit_error rate_limit_exceeded after 13", "429 RESOURCE_EXHAUSTED after 13"},
		{"rate limited for 30 s", spentOn(30*time.Second, ninelives.ClassRateLimit),
			"429 rate_limit_error after 30", "429 rate_limit_error rate_limit_exceeded after 30",
			"429 rate_limit_error rate_limit_exceeded after 30", "429 rate_limit_error rate_limit_exceeded after 30", "429 RESOURCE_EXHAUSTED after 30"},
		{"rate limited for longer than clients wait", spentOn(30*time.Second+1, ninelives.ClassRateLimit),
			"529 overloaded_error" + never, "503 service_unavailable_error server_is_overloaded" + never,
			"200 stream server_is_overloaded" + never, "503 service_unavailable_error server_is_overloaded" + never, "503 UNAVAILABLE" + never},
		{"rate limited, nobody knows for how long", spentOn(0, ninelives.ClassRateLimit),
			"529 overloaded_error" + never, "503 service_unavailable_error server_is_overloaded" + never,
			"200 stream server_is_overloaded" + never, "503 service_unavailable_error server_is_overloaded" + never, "503 UNAVAILABLE" + never},
		{"rate limited, and only we guess for how long", guessed(20*time.Second, ninelives.ClassRateLimit),
			"529 overloaded_error" + never, "503 service_unavailable_error server_is_overloaded" + never,
			"200 stream server_is_overloaded" + never, "503 service_unavailable_error server_is_overloaded" + never, "503 UNAVAILABLE" + never},
		{"out of credit", spentOn(10*time.Second, ninelives.ClassBilling, ninelives.ClassBilling),
			"429 billing_error" + never, "429 insufficient_quota insufficient_quota" + never,
			"200 stream insufficient_quota" + never, "429 insufficient_quota insufficient_quota" + never, "429 RESOURCE_EXHAUSTED" + never},
		{"the deadline", &heal.Exhausted{Deadline: true, Trail: spentOn(0, ninelives.ClassTimeout).Trail},
			"504 timeout_error" + never, "504 timeout_error timeout" + never,
			"200 stream server_is_overloaded" + never, "504 timeout_error timeout" + never, "504 DEADLINE_EXCEEDED" + never},
		{"no candidate has the model", spentOn(time.Hour, ninelives.ClassModelNotFound),
			"404 not_found_error" + never, "404 invalid_request_error model_not_found" + never,
			"404 invalid_request_error model_not_found" + never, "404 invalid_request_error model_not_found" + never, "404 NOT_FOUND" + never},
		{"too long", &ninelives.Fault{Class: ninelives.ClassContextLength, Status: 400},
			"400 invalid_request_error" + never, "400 invalid_request_error context_length_exceeded" + never,
			"400 invalid_request_error context_length_exceeded" + never, "400 invalid_request_error context_length_exceeded" + never, "400 INVALID_ARGUMENT" + never},
		{"too long, as 413", &ninelives.Fault{Class: ninelives.ClassContextLength, Status: 413},
			"413 request_too_large" + never, "400 invalid_request_error context_length_exceeded" + never,
			"400 invalid_request_error context_length_exceeded" + never, "400 invalid_request_error context_length_exceeded" + never, "400 INVALID_ARGUMENT" + never},
		{"filtered", &ninelives.Fault{Class: ninelives.ClassContentFilter, Status: 400},
			"400 invalid_request_error" + never, "400 invalid_request_error content_filter" + never,
			"400 invalid_request_error content_filter" + never, "400 invalid_request_error content_filter" + never, "400 INVALID_ARGUMENT" + never},
		{"malformed", &ninelives.Fault{Class: ninelives.ClassFormat, Status: 400},
			"400 invalid_request_error" + never, "400 invalid_request_error invalid_request" + never,
			"400 invalid_request_error invalid_request" + never, "400 invalid_request_error invalid_request" + never, "400 INVALID_ARGUMENT" + never},
		{"malformed, as 422", &ninelives.Fault{Class: ninelives.ClassFormat, Status: 422},
			"400 invalid_request_error" + never, "400 invalid_request_error invalid_request" + never,
			"400 invalid_request_error invalid_request" + never, "400 invalid_request_error invalid_request" + never, "400 INVALID_ARGUMENT" + never},
		{"the client's key", &refused{Trouble: troubleKey},
			"401 authentication_error" + never, "401 invalid_request_error invalid_api_key" + never,
			"401 invalid_request_error invalid_api_key" + never, "401 invalid_request_error invalid_api_key" + never, "401 UNAUTHENTICATED" + never},
		{"a right that the client lacks", &refused{Trouble: troubleForbidden},
			"403 permission_error" + never, "403 permission_error permission_denied" + never,
			"403 permission_error permission_denied" + never, "403 permission_error permission_denied" + never, "403 PERMISSION_DENIED" + never},
		{"the client's rate", &refused{Trouble: troubleLimited, Wait: 1500 * time.Millisecond},
			"429 rate_limit_error after 2", "429 rate_limit_error rate_limit_exceeded after 2",
			"429 rate_limit_error rate_limit_exceeded after 2", "429 rate_limit_error rate_limit_exceeded after 2", "429 RESOURCE_EXHAUSTED after 2"},
		{"the client's rate for longer than clients wait", &refused{Trouble: troubleLimited, Wait: time.Minute},
			"429 rate_limit_error" + never, "429 rate_limit_error rate_limit_exceeded" + never,
			"429 rate_limit_error rate_limit_exceeded" + never, "429 rate_limit_error rate_limit_exceeded" + never, "429 RESOURCE_EXHAUSTED" + never},
		{"the client's budget", &refused{Trouble: troubleQuota},
			"429 billing_error" + never, "429 insufficient_quota insufficient_quota" + never,
			"200 stream insufficient_quota" + never, "429 insufficient_quota insufficient_quota" + never, "429 RESOURCE_EXHAUSTED" + never},
		{"busy", &refused{Trouble: troubleBusy, Wait: 5 * time.Second},
			"503 overloaded_error after 5", "503 service_unavailable_error server_is_overloaded after 5",
			"429 service_unavailable_error server_is_overloaded after 5", "503 service_unavailable_error server_is_overloaded after 5", "503 UNAVAILABLE after 5"},
		{"too many bytes", &refused{Trouble: troubleTooLarge},
			"413 request_too_large" + never, "400 invalid_request_error invalid_request" + never, // opencode
			"400 invalid_request_error request_too_large" + never, "413 invalid_request_error request_too_large" + never, "413 INVALID_ARGUMENT" + never},
		{"a model that no route takes", &refused{Trouble: troubleNoModel},
			"404 not_found_error" + never, "404 invalid_request_error model_not_found" + never,
			"404 invalid_request_error model_not_found" + never, "404 invalid_request_error model_not_found" + never, "404 NOT_FOUND" + never},
		{"the client has left", &ninelives.Fault{Class: ninelives.ClassCanceled, Err: context.Canceled},
			"499 api_error" + never, "499 canceled canceled" + never, "499 canceled canceled" + never, "499 canceled canceled" + never, "499 CANCELLED" + never},
		{"a mistake of ours", errors.New("a map is nil"),
			"500 api_error" + never, "500 server_error internal_error" + never,
			"200 stream server_is_overloaded" + never, "500 server_error internal_error" + never, "500 INTERNAL" + never},
	} {
		for i, want := range []string{tt.messages, tt.chat, tt.codex, tt.responses, tt.gems} {
			p := []ninelives.Protocol{ninelives.AnthropicMessages, ninelives.OpenAIChat, ninelives.OpenAIResponses, ninelives.OpenAIResponses, ninelives.Gemini}[i]
			client := []clientKind{clientClaudeCode, clientOpencode, clientCodex, clientOther, clientOther}[i]
			for _, stream := range []bool{true, false} {
				if client == clientCodex && !stream {
					continue
				}
				if got := toldClient(p, client, stream, tt.err); got != want {
					t.Errorf("%s, %s %s: it is told %q, want %q", tt.name, p, client, got, want)
				}
			}
		}
	}
}

// Every class of fault, by itself or as all that was tried, in every protocol
// and to every client, comes to an answer that nobody multiplies.
func TestNoAnswerMultipliesCalls(t *testing.T) {
	for _, class := range everyClass {
		for _, err := range []error{&ninelives.Fault{Class: class, Status: 422, Candidate: "up/m"}, spentOn(5*time.Second, class, class), spentOn(0, class)} {
			for _, p := range everyProtocol {
				for _, client := range everyClient {
					for _, stream := range []bool{true, false} {
						a := answerFor(p, client, stream, err, errorTime)
						at := fmt.Sprintf("%T %s, %s to %s, stream %v: ", err, class, p, client, stream)
						if (a.Header.Get("Retry-After") == "") == (a.Header.Get("X-Should-Retry") == "") {
							t.Error(at, "it must say either when to ask again or not to:", a.Header)
						}
						if client == clientCodex && p == ninelives.OpenAIResponses && a.Status >= 500 {
							t.Error(at, "Codex asks 30 times for", a.Status)
						}
						if a.Status == 422 && (client != clientSDK || p == ninelives.AnthropicMessages || p == ninelives.Gemini) {
							t.Error(at, "a 422 is asked again for")
						}
						if a.Status == 401 || a.Status == 403 {
							t.Error(at, "an upstream's refusal of our key is passed on as the client's own")
						}
						if (a.Stream != nil) != (a.Status == 200) || a.Stream != nil && !stream {
							t.Error(at, "a status of 200 is for streams alone")
						}
						if a.Error.Message == "" || a.Error.Status != a.Status {
							t.Errorf("%s the error has no message or another status: %+v", at, a.Error)
						}
					}
				}
			}
		}
	}
}

// Programs catch the class that an official SDK makes of the status.
func TestOfficialSDKsSeeTheStatusOfAMalformedRequest(t *testing.T) {
	f := &ninelives.Fault{Class: ninelives.ClassFormat, Status: 422, Candidate: "up/m", Message: "no"}
	for p, want := range map[ninelives.Protocol]int{ninelives.OpenAIChat: 422, ninelives.OpenAIResponses: 422, ninelives.AnthropicMessages: 400, ninelives.Gemini: 400} {
		if got := answerFor(p, clientSDK, false, f, errorTime).Status; got != want {
			t.Errorf("%s: %d, want %d", p, got, want)
		}
	}
}

func TestCodexThatDoesNotStreamIsToldOnce(t *testing.T) {
	if got := toldClient(ninelives.OpenAIResponses, clientCodex, false, spentOn(9*time.Second, ninelives.ClassOverloaded)); got != "429 service_unavailable_error server_is_overloaded retry false" {
		t.Error(got)
	}
}

func TestMessagesSayWhatFailedWhyAndWhatToDo(t *testing.T) {
	twice := spentOn(45*time.Second, ninelives.ClassOverloaded, ninelives.ClassTimeout)
	twice.Trail = append(twice.Trail, twice.Trail[0])
	long := &ninelives.Fault{Class: ninelives.ClassContextLength, Requested: 210000, Window: 200000}
	for _, tt := range []struct {
		name string
		p    ninelives.Protocol
		err  error
		want string
	}{
		{"everything tried", ninelives.OpenAIChat, twice,
			"All candidates failed: up1/m overloaded (HTTP 503); up2/m did not answer in time (HTTP 503). 3 attempts in 2s. " +
				"The first is expected back in 45s (2026-11-30T12:00:45Z). Try again then, or name another model."},
		{"many candidates", ninelives.OpenAIChat, spentOn(0, ninelives.ClassNetwork, ninelives.ClassEmpty, ninelives.ClassUnknown, ninelives.ClassAuth, ninelives.ClassAuth),
			"All candidates failed: up1/m could not be reached (HTTP 503); up2/m answered nothing (HTTP 503); up3/m failed (HTTP 503); and 2 more. " +
				"5 attempts in 2s. Try again later, or name another model."},
		{"all out", ninelives.OpenAIChat, &heal.Exhausted{Back: errorTime.Add(time.Minute)},
			"No candidate can answer now: all of them are out of service. The first is expected back in 1m0s (2026-11-30T12:01:00Z). Try again then, or name another model."},
		{"the key of the gateway", ninelives.OpenAIChat, spentOn(0, ninelives.ClassAuth),
			"All candidates failed: up1/m refused the gateway's key (HTTP 503). It is the gateway's key that was refused, not yours: whoever runs the gateway has to check it."},
		{"a short limit", ninelives.OpenAIChat, spentOn(1500*time.Millisecond, ninelives.ClassRateLimit),
			"Rate limited by up1/m. Please try again in 2s."},
		{"a long limit says the true time", ninelives.OpenAIChat, spentOn(2*time.Minute, ninelives.ClassRateLimit),
			"All candidates failed: up1/m rate limited (HTTP 503). The first is expected back in 2m0s (2026-11-30T12:02:00Z). Try again then, or name another model."},
		{"out of credit", ninelives.OpenAIChat, spentOn(time.Hour, ninelives.ClassBilling),
			"Out of credit or quota at up1/m. Its quota is back in 1h0m0s (2026-11-30T13:00:00Z). " +
				"Whoever runs the gateway has to add credit, raise the limit or add a fallback."},
		{"out of time", ninelives.OpenAIChat, &heal.Exhausted{Deadline: true, Took: 3 * time.Second, Trail: spentOn(0, ninelives.ClassTimeout).Trail},
			"Out of time in 3s. Tried up1/m did not answer in time (HTTP 503). Allow more time (x-ninelives-deadline-ms), or name a faster model."},
		{"too long in Messages", ninelives.AnthropicMessages, long,
			"prompt is too long: 210000 tokens > 200000 maximum. Shorten the conversation, or name a model with a larger window."},
		{"too long in chat", ninelives.OpenAIChat, long,
			"This model's maximum context length is 200000 tokens, but the request has 210000 tokens. Shorten the conversation, or name a model with a larger window."},
		{"too long in Gemini", ninelives.Gemini, long,
			"The input token count (210000) exceeds the maximum number of tokens allowed (200000). Shorten the conversation, or name a model with a larger window."},
		{"filtered", ninelives.OpenAIChat, &ninelives.Fault{Class: ninelives.ClassContentFilter, Candidate: "up/m", Code: "jailbreak", Message: "The prompt was flagged: violence."},
			"The content was refused by the rules of up/m. Its reason: The prompt was flagged: violence (jailbreak). Change the request: it was not sent to anybody else."},
		{"malformed: the reason first, as clients look for it", ninelives.AnthropicMessages,
			&ninelives.Fault{Class: ninelives.ClassFormat, Candidate: "up/m", Message: "Unexpected value(s) `thinking-token-count-2026-05-13` for the `anthropic-beta` header"},
			"Unexpected value(s) `thinking-token-count-2026-05-13` for the `anthropic-beta` header. (up/m says so of the request: correct it.)"},
		{"malformed before anybody was asked", ninelives.OpenAIChat, &ninelives.Fault{Class: ninelives.ClassFormat, Message: "the body is not a JSON object"},
			"the body is not a JSON object"},
	} {
		if got := answerFor(tt.p, clientOther, false, tt.err, errorTime).Error.Message; got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestWordsThatClientsLookForComeInTheirPlace(t *testing.T) {
	err := &refused{Trouble: troubleMalformed, Text: "no threads", Code: "thread_unsupported_request", Param: "thread"}
	a := answerFor(ninelives.AnthropicMessages, clientSDK, true, err, errorTime)
	if a.Error.Details["error_code"] != "thread_unsupported_request" || a.Error.Code != "" || a.Status != 400 {
		t.Errorf("Messages: %+v", a)
	}
	if c := answerFor(ninelives.OpenAIChat, clientSDK, true, err, errorTime).Error; c.Code != "thread_unsupported_request" || c.Param != "thread" {
		t.Errorf("chat: %+v", c)
	}
	for p, want := range map[ninelives.Protocol]string{ninelives.OpenAIChat: "messages", ninelives.OpenAIResponses: "input", ninelives.AnthropicMessages: ""} {
		if got := answerFor(p, clientOther, true, &ninelives.Fault{Class: ninelives.ClassContextLength}, errorTime).Error.Param; got != want {
			t.Errorf("%s: the parameter of an overflow is %q, want %q", p, got, want)
		}
	}
}

func TestAPlainAnswerDoesNotSayTooLong(t *testing.T) {
	for _, p := range everyProtocol {
		for _, err := range []error{&ninelives.Fault{Class: ninelives.ClassContextLength, Requested: 2, Window: 1}, &refused{Trouble: troubleTooLarge, Text: "too large"}} {
			a := answerFor(p, clientOther, true, err, errorTime)
			if !a.overflow() {
				t.Fatalf("%s: %v is an overflow", p, err)
			}
			b := a.plain(p)
			body := strings.ToLower(string(bodyOf(p, b.Error)))
			if b.Status != 400 || strings.Contains(body, "context") || strings.Contains(body, "too_large") || strings.Contains(body, "too long") || strings.Contains(body, "maximum") {
				t.Errorf("%s: %d %s", p, b.Status, body)
			}
			if b.Header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s: %v", p, b.Header)
			}
		}
	}
	if answerFor(ninelives.OpenAIChat, clientOpencode, true, spentOn(0, ninelives.ClassContextLength, ninelives.ClassOverloaded), errorTime).overflow() {
		t.Error("a call that failed for more than its length is no overflow: another try may do")
	}
}

func bodyOf(p ninelives.Protocol, e wire.ClientError) []byte {
	switch p {
	case ninelives.AnthropicMessages:
		return anthropic.EncodeError(e)
	case ninelives.Gemini:
		return gemini.EncodeError(e)
	}
	return openai.EncodeError(e)
}

func TestAStreamEndsWithTheClassAndOurWords(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want ninelives.Class
	}{
		{&ninelives.Fault{Class: ninelives.ClassStreamBroken, Candidate: "up/m"}, ninelives.ClassStreamBroken},
		{&ninelives.Fault{Class: ninelives.ClassOverloaded, Candidate: "up/m"}, ninelives.ClassOverloaded},
		{&ninelives.Fault{Class: ninelives.ClassAuth, Candidate: "up/m"}, ninelives.ClassOverloaded},
		{&ninelives.Fault{Class: ninelives.ClassModelNotFound, Candidate: "up/m"}, ninelives.ClassOverloaded},
		{&ninelives.Fault{Class: ninelives.ClassBilling, Candidate: "up/m"}, ninelives.ClassBilling},
		{&ninelives.Fault{Class: ninelives.ClassContentFilter, Candidate: "up/m"}, ninelives.ClassContentFilter},
		{spentOn(0, ninelives.ClassStreamBroken, ninelives.ClassOverloaded), ninelives.ClassOverloaded},
		{spentOn(time.Second, ninelives.ClassRateLimit), ninelives.ClassRateLimit},
		{&heal.Exhausted{Deadline: true}, ninelives.ClassTimeout},
		{context.DeadlineExceeded, ninelives.ClassTimeout},
		{context.Canceled, ninelives.ClassCanceled},
		{errors.New("sk-secret-of-somebody"), ninelives.ClassUnknown},
	} {
		f := streamFault(tt.err, errorTime)
		if f.Class != tt.want || f.Message == "" || f.Err != nil || f.Partial != nil || f.RequestID != "" {
			t.Errorf("%v: %+v, want the class %s and a message alone", tt.err, f, tt.want)
		}
	}
}

// secretGen makes what looks like credentials.
func secretGen() *rapid.Generator[string] {
	const letters = "[A-Za-z]{1}[0-9]{1}"
	return rapid.OneOf(
		rapid.StringMatching(`sk-[A-Za-z0-9]{20,40}`), rapid.StringMatching(`sk-ant-api03-[A-Za-z0-9_]{20,60}`),
		rapid.StringMatching(`AIza[A-Za-z0-9_-]{35}`), rapid.StringMatching(`gsk_[A-Za-z0-9]{20,52}`),
		rapid.StringMatching(`eyJ[A-Za-z0-9]{20}\.[A-Za-z0-9]{20}\.[A-Za-z0-9_-]{20}`), rapid.StringMatching(letters+`[A-Za-z0-9]{22,60}`),
		rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), rapid.StringMatching(`[0-9a-f]{40,64}`),
		rapid.StringMatching(`https://internal-[a-z]{6}\.corp:8443/v1`), rapid.StringMatching(`10\.[1-9][0-9]\.[1-9][0-9]\.[1-9][0-9]`),
	)
}

// Whatever a fault holds, no secret of a provider's gets into a body, an event
// or a header.
func TestNoSecretReachesAClient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := secretGen().Draw(t, "secret")
		around := rapid.SampledFrom([]string{"%s", "Incorrect API key provided: %s.", "no access for \"%s\" (Bearer %[1]s)", "key=%s\nretry", "<html>%s</html>", "org-%s: messages.0.content: bad"}).Draw(t, "around")
		text := fmt.Sprintf(around, secret)
		f := &ninelives.Fault{
			Class: rapid.SampledFrom(everyClass).Draw(t, "class"), Status: rapid.SampledFrom([]int{0, 400, 401, 413, 422, 429, 500}).Draw(t, "status"),
			Message: text, Code: secret, Type: secret, RequestID: secret, Hint: text, Candidate: "up/m",
			Err: errors.New(text), Partial: &ninelives.Response{Message: ninelives.AssistantText(text)}, Final: rapid.Bool().Draw(t, "final"),
		}
		var err error = f
		if rapid.Bool().Draw(t, "exhausted") {
			err = &heal.Exhausted{Fault: f, Why: text, Back: errorTime.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "back")) * time.Second),
				Trail: []heal.Tried{{Candidate: "up/m", Class: f.Class, Status: f.Status, Fault: f}}}
		}
		if rapid.Bool().Draw(t, "wrapped") {
			err = fmt.Errorf("%s: %w", text, err)
		}
		p, client, stream := rapid.SampledFrom(everyProtocol).Draw(t, "protocol"), rapid.SampledFrom(everyClient).Draw(t, "client"), rapid.Bool().Draw(t, "stream")
		a := answerFor(p, client, stream, err, errorTime)
		out := string(bodyOf(p, a.Error)) + fmt.Sprint(a.Header, a.Error) + string(bodyOf(p, wire.ErrorOf(streamFault(err, errorTime))))
		if a.Stream != nil {
			out += fmt.Sprint(*a.Stream)
		}
		if strings.Contains(out, secret) {
			t.Fatalf("%q is in %s", secret, out)
		}
	})
}

func TestWhatAProviderSaysIsKeptWhereItIsSafe(t *testing.T) {
	for in, want := range map[string]string{
		"messages.3.content.0.type: Input tag 'foo' found":           "messages.3.content.0.type: Input tag 'foo' found",
		"model claude-sonnet-4-5-20250929 does not take temperature": "model claude-sonnet-4-5-20250929 does not take temperature",
		"see https://docs.example.com/errors for more":               "see [address] for more",
		"bad\x1b[31m\u202etext\nnext":                                "bad [31mtext next",
		"the key 9f8e7d6c5b4a39281706 is unknown":                    "the key [redacted] is unknown",
	} {
		if got := safeReason(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestAWebPageInPlaceOfAnAnswerIsNotTheRequestsFault(t *testing.T) {
	f := &ninelives.Fault{Class: ninelives.ClassFormat, Scope: ninelives.ScopeHost, Status: 200, Candidate: "up/m", Message: "a web page instead of an answer"}
	for p, status := range map[ninelives.Protocol]int{ninelives.OpenAIChat: 503, ninelives.OpenAIResponses: 503, ninelives.AnthropicMessages: 529, ninelives.Gemini: 503} {
		if a := answerFor(p, clientSDK, true, f, time.Now()); a.Status != status || a.Trouble != troubleExhausted {
			t.Errorf("%s: status %d, %s", p, a.Status, a.Trouble)
		}
	}
	if got := streamFault(f, time.Now()).Class; got != ninelives.ClassOverloaded {
		t.Errorf("in a stream: %s", got)
	}
}
