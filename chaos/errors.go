package chaos

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrorKind names an error that providers report.
type ErrorKind string

// The kinds of errors. Statuses and wordings are those that the vendors of
// each protocol document or are seen to send.
const (
	RateLimit        ErrorKind = "rate_limit"
	Billing          ErrorKind = "billing"
	Auth             ErrorKind = "auth"
	ModelNotFound    ErrorKind = "model_not_found"
	ContextLength    ErrorKind = "context_length"
	ContentFilter    ErrorKind = "content_filter"
	Overloaded       ErrorKind = "overloaded"
	ServerError      ErrorKind = "server_error"
	BadGateway       ErrorKind = "bad_gateway" // a proxy's HTML page
	Timeout          ErrorKind = "timeout"
	BadRequest       ErrorKind = "bad_request"
	UnknownParameter ErrorKind = "unknown_parameter"
	PrefillRejected  ErrorKind = "prefill_rejected"
)

// Hint is a form in which a provider asks its clients to wait.
type Hint string

// The forms of a wait hint.
const (
	HintSeconds   Hint = "seconds"        // retry-after: 2
	HintDate      Hint = "date"           // retry-after: an HTTP date
	HintMillis    Hint = "ms"             // retry-after-ms: 1500
	HintText      Hint = "text"           // "Please try again in 1.5s."
	HintRetryInfo Hint = "retry_info"     // Google's details with a retryDelay
	HintDuration  Hint = "reset_duration" // x-ratelimit-reset-requests: 1m2.5s
	HintRFC3339   Hint = "reset_rfc3339"  // anthropic-ratelimit-requests-reset
	HintEpoch     Hint = "reset_epoch"    // x-ratelimit-reset in seconds
	HintEpochMS   Hint = "reset_epoch_ms" // x-ratelimit-reset in milliseconds
	HintEstimated Hint = "estimated_time" // Hugging Face's field in the body
)

var hintWords = []string{string(HintSeconds), string(HintDate), string(HintMillis), string(HintText), string(HintRetryInfo),
	string(HintDuration), string(HintRFC3339), string(HintEpoch), string(HintEpochMS), string(HintEstimated)}

// wording is how one family of protocols reports a kind of error.
type wording struct {
	status  int
	typ     string // for Gemini the status name
	code    string
	message string // %m is the model name, %p the parameter, %n and %w the tokens asked for and the window
}

// errorTable holds the wordings: OpenAI's two protocols, Messages, Gemini.
var errorTable = map[ErrorKind][3]wording{
	RateLimit: {
		{429, "requests", "rate_limit_exceeded", "Rate limit reached for %m on requests per minute (RPM): Limit 60, Used 60, Requested 1."},
		{429, "rate_limit_error", "", "This request would exceed the rate limit of your organization for %m: 60 requests per minute."},
		// The words are those of a spent balance; the quota's id says that it is not.
		{429, "RESOURCE_EXHAUSTED", "GenerateRequestsPerMinutePerProjectPerModel", "You exceeded your current quota, please check your plan and billing details."},
	},
	Billing: {
		{429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details."},
		{400, "invalid_request_error", "", "Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade or purchase credits."},
		{402, "RESOURCE_EXHAUSTED", "", "Your prepaid credit is used up. Please add credit to continue."},
	},
	Auth: {
		{401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."},
		{401, "authentication_error", "", "invalid x-api-key"},
		{400, "INVALID_ARGUMENT", "API_KEY_INVALID", "API key not valid. Please pass a valid API key."},
	},
	ModelNotFound: {
		{404, "invalid_request_error", "model_not_found", "The model `%m` does not exist or you do not have access to it."},
		{404, "not_found_error", "", "model: %m"},
		{404, "NOT_FOUND", "", "models/%m is not found for API version v1beta, or is not supported for generateContent."},
	},
	ContextLength: {
		{400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is %w tokens. However, your messages resulted in %n tokens. Please reduce the length of the messages."},
		{400, "invalid_request_error", "", "prompt is too long: %n tokens > %w maximum"},
		{400, "INVALID_ARGUMENT", "", "The input token count (%n) exceeds the maximum number of tokens allowed (%w)."},
	},
	ContentFilter: {
		{400, "invalid_request_error", "content_policy_violation", "Your request was rejected as a result of our safety system."},
		{400, "invalid_request_error", "", "Output blocked by content filtering policy"},
		{200, "PROHIBITED_CONTENT", "", ""}, // a promptFeedback without candidates
	},
	Overloaded: {
		{503, "server_error", "overloaded", "The engine is currently overloaded. Please try again later."},
		{529, "overloaded_error", "", "Overloaded"},
		{503, "UNAVAILABLE", "", "The model is overloaded. Please try again later."},
	},
	ServerError: {
		{500, "server_error", "", "The server had an error while processing your request."},
		{500, "api_error", "", "Internal server error"},
		{500, "INTERNAL", "", "An internal error has occurred."},
	},
	BadGateway: {{status: 502}, {status: 502}, {status: 502}},
	Timeout: {
		{504, "server_error", "timeout", "The request timed out."},
		{504, "timeout_error", "", "The request timed out."},
		{504, "DEADLINE_EXCEEDED", "", "The request did not finish within its deadline."},
	},
	BadRequest: {
		{400, "invalid_request_error", "", "The request body is invalid."},
		{400, "invalid_request_error", "", "messages: the request body is invalid"},
		{400, "INVALID_ARGUMENT", "", "Request contains an invalid argument."},
	},
	UnknownParameter: {
		{400, "invalid_request_error", "unknown_parameter", "Unknown parameter: '%p'."},
		{400, "invalid_request_error", "", "%p: Extra inputs are not permitted"},
		{400, "INVALID_ARGUMENT", "", "Invalid JSON payload received. Unknown name \"%p\": Cannot find field."},
	},
	PrefillRejected: {
		{400, "invalid_request_error", "invalid_prefill", "This model does not support assistant message prefill. The conversation must end with a user message."},
		{400, "invalid_request_error", "", "This model does not support assistant message prefill. The conversation must end with a user message."},
		{400, "INVALID_ARGUMENT", "", "Please ensure that the last message is from the user."},
	},
}

func errorWords() []string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(errorTable)) {
		words = append(words, string(k))
	}
	return words
}

// htmlPage is what a proxy puts in place of an answer.
func htmlPage(status int) string {
	title := fmt.Sprintf("%d %s", status, http.StatusText(status))
	return "<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" + title + "</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
}

// reported is an error ready to be written.
type reported struct {
	wording
	param   string
	hint    Hint
	wait    time.Duration
	headers map[string]string
}

// report words the error of a step for the request.
func report(kind ErrorKind, step Step, a *ask, now time.Time) reported {
	r := reported{wording: errorTable[kind][a.protocol.family()], param: step.Param, hint: step.Hint, wait: step.Wait, headers: map[string]string{}}
	if step.Message != "" {
		r.message = step.Message
	}
	window, asked := step.Window, a.tokens
	if window == 0 {
		window = 8192
	}
	if asked <= window {
		asked = window + 1439 // always refused: the number has to fit the words
	}
	r.message = strings.NewReplacer("%m", a.model, "%p", step.Param, "%n", strconv.Itoa(asked), "%w", strconv.Itoa(window)).Replace(r.message)
	if step.Status != 0 {
		r.status = step.Status
	}
	r.addHint(now)
	return r
}

func (r *reported) addHint(now time.Time) {
	seconds := strconv.Itoa(int(math.Ceil(r.wait.Seconds())))
	end := now.Add(r.wait)
	switch r.hint {
	case HintSeconds:
		r.headers["Retry-After"] = seconds
	case HintDate: // a date has whole seconds: never earlier than asked for
		r.headers["Retry-After"] = end.Add(time.Second - 1).UTC().Format(http.TimeFormat)
		r.headers["Date"] = now.UTC().Format(http.TimeFormat)
	case HintMillis:
		r.headers["Retry-After-Ms"] = strconv.FormatInt(r.wait.Milliseconds(), 10)
	case HintText:
		r.message += " Please try again in " + r.wait.String() + "."
	case HintDuration: // the other bucket is not empty and must not be waited for
		r.headers["X-Ratelimit-Remaining-Requests"] = "0"
		r.headers["X-Ratelimit-Reset-Requests"] = r.wait.String()
		r.headers["X-Ratelimit-Remaining-Tokens"] = "149000"
		r.headers["X-Ratelimit-Reset-Tokens"] = (r.wait + 6*time.Minute).String()
	case HintRFC3339:
		r.headers["Anthropic-Ratelimit-Requests-Remaining"] = "0"
		r.headers["Anthropic-Ratelimit-Requests-Reset"] = end.UTC().Format(time.RFC3339Nano)
		r.headers["Anthropic-Ratelimit-Tokens-Remaining"] = "39000"
		r.headers["Anthropic-Ratelimit-Tokens-Reset"] = end.Add(6 * time.Minute).UTC().Format(time.RFC3339)
	case HintEpoch:
		r.headers["X-Ratelimit-Remaining"] = "0"
		r.headers["X-Ratelimit-Reset"] = strconv.FormatInt(end.Add(time.Second-1).Unix(), 10)
	case HintEpochMS:
		r.headers["X-Ratelimit-Remaining"] = "0"
		r.headers["X-Ratelimit-Reset"] = strconv.FormatInt(end.UnixMilli(), 10)
	}
}

// body is the error as the body of a whole answer.
func (r reported) body(p protocol, id string) string {
	switch {
	case r.typ == "":
		return htmlPage(r.status)
	case r.hint == HintRetryInfo:
		details := []string{`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":` + quote(strconv.FormatFloat(r.wait.Seconds(), 'f', -1, 64)+"s") + `}`}
		if p == gemini {
			details = append(r.details(), details...)
		}
		return r.google(details...)
	case r.hint == HintEstimated:
		return `{"error":` + quote(r.message) + `,"estimated_time":` + strconv.FormatFloat(r.wait.Seconds(), 'f', -1, 64) + `}`
	case p == messages:
		return `{"type":"error","error":` + r.object(p) + `,"request_id":` + quote(id) + `}`
	case p == gemini && r.status == http.StatusOK:
		return `{"promptFeedback":{"blockReason":` + quote(r.typ) + `},"usageMetadata":{"promptTokenCount":8,"totalTokenCount":8}}`
	case p == gemini:
		return r.google(r.details()...)
	}
	return `{"error":` + r.object(p) + `}`
}

// object is the inner error object of the protocols that have one.
func (r reported) object(p protocol) string {
	if p == messages {
		return `{"type":` + quote(r.typ) + `,"message":` + quote(r.message) + `}`
	}
	return `{"message":` + quote(r.message) + `,"type":` + quote(r.typ) + `,"param":` + quoteOrNull(r.param) + `,"code":` + quoteOrNull(r.code) + `}`
}

// details are what Google adds to an error: which quota, or which reason.
func (r reported) details() []string {
	switch {
	case r.code == "":
		return nil
	case r.status == http.StatusTooManyRequests:
		return []string{`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_requests","quotaId":` + quote(r.code) + `}]}`}
	}
	return []string{`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":` + quote(r.code) + `,"domain":"googleapis.com"}`}
}

// google is the error as Google's interfaces write it.
func (r reported) google(details ...string) string {
	status := r.typ
	if status == strings.ToLower(status) { // a Google error in another protocol's place
		status = "RESOURCE_EXHAUSTED"
	}
	s := `{"error":{"code":` + strconv.Itoa(r.status) + `,"message":` + quote(r.message) + `,"status":` + quote(status)
	if len(details) > 0 {
		s += `,"details":[` + strings.Join(details, ",") + `]`
	}
	return s + `}}`
}
