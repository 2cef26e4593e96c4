package wire

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
)

// answered is one error answer of a table.
type answered struct {
	status int
	body   string
	header string // "Key: value", several split by |
	want   ninelives.Class
}

func header(s string) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(s, "|") {
		if k, v, ok := strings.Cut(line, ":"); ok {
			h.Add(k, strings.TrimSpace(v))
		}
	}
	return h
}

func checkClasses(t *testing.T, cases []answered) {
	t.Helper()
	for _, c := range cases {
		f := Classify(Answer{Status: c.status, Header: header(c.header), Body: []byte(c.body), InBand: c.status == 200})
		if f.Class != c.want {
			t.Errorf("%d %s %s\n got %s (repairs %v)\nwant %s", c.status, c.header, c.body, f.Class, f.Repairs, c.want)
		}
	}
}

func TestStatusDecidesOnlyWhereTheBodyIsSilent(t *testing.T) {
	for status, want := range map[int]ninelives.Class{
		400: ninelives.ClassFormat, 401: ninelives.ClassAuth, 402: ninelives.ClassBilling, 403: ninelives.ClassAuth,
		404: ninelives.ClassModelNotFound, 405: ninelives.ClassModelNotFound, 408: ninelives.ClassTimeout, 409: ninelives.ClassUnknown,
		413: ninelives.ClassContextLength, 422: ninelives.ClassFormat, 424: ninelives.ClassOverloaded, 429: ninelives.ClassRateLimit,
		498: ninelives.ClassOverloaded, 499: ninelives.ClassTimeout, 500: ninelives.ClassUnknown, 501: ninelives.ClassUnknown,
		502: ninelives.ClassOverloaded, 503: ninelives.ClassOverloaded, 504: ninelives.ClassTimeout, 520: ninelives.ClassOverloaded,
		521: ninelives.ClassOverloaded, 522: ninelives.ClassOverloaded, 523: ninelives.ClassOverloaded, 524: ninelives.ClassTimeout,
		525: ninelives.ClassOverloaded, 526: ninelives.ClassOverloaded, 529: ninelives.ClassOverloaded, 530: ninelives.ClassOverloaded,
	} {
		for _, body := range []string{`{"error":{"message":"It did not work."}}`, `It did not work.`, `<html><head><title>Oh</title></head></html>`} {
			if f := Classify(Answer{Status: status, Body: []byte(body)}); f.Class != want {
				t.Errorf("%d %s: %s, want %s", status, body, f.Class, want)
			}
		}
	}
}

func TestEveryShapeOfBodyIsRead(t *testing.T) {
	checkClasses(t, []answered{
		{500, `{"error":{"message":"m","type":"t","code":"insufficient_quota"}}`, "", ninelives.ClassBilling},
		{500, `{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}`, "", ninelives.ClassOverloaded},
		{500, `{"object":"error","message":"m","type":"rate_limited","param":null,"code":"1300"}`, "", ninelives.ClassRateLimit},
		{400, `[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}]`, "", ninelives.ClassAuth},
		{500, `{"error":"the server is overloaded"}`, "", ninelives.ClassOverloaded},
		{400, `{"code":"Some resource was exhausted","error":"Your credits are exhausted."}`, "", ninelives.ClassBilling},
		{500, `{"detail":"Rate limit exceeded"}`, "", ninelives.ClassRateLimit},
		{400, `{"message":"slow down","__type":"ThrottlingException"}`, "", ninelives.ClassRateLimit},
		{400, `{"message":"m"}`, "X-Amzn-Errortype: ThrottlingException:http://internal/", ninelives.ClassRateLimit},
		{400, `{"error":{"message":{"error":{"message":"prompt is too long: 5 tokens > 4 maximum"}}}}`, "", ninelives.ClassContextLength},
		{400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"{\\\"error\\\":{\\\"code\\\":\\\"context_length_exceeded\\\"}}\"}}"}}}`, "", ninelives.ClassContextLength},
		{400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"{\\\"type\\\":\\\"error\\\",\\\"error\\\":{\\\"type\\\":\\\"overloaded_error\\\",\\\"message\\\":\\\"m\\\"}}\"}}"}}}`, "", ninelives.ClassOverloaded},
		{400, "{\"error\":{\"message\":\"two\nlines\",\"code\":\"invalid_api_key\"}}", "", ninelives.ClassAuth},
		{500, `{"error":{"message":"Error code: 400 - {'error': {'message': 'm', 'param': None, 'code': 'content_filter'}}"}}`, "", ninelives.ClassContentFilter},
		{500, `{"error":{"message":"Error code: 429 - {'error': {'message': 'm', 'param': None}}"}}`, "", ninelives.ClassRateLimit},
		{500, `{"error":{"message":"upstream said {\"error\":{\"type\":\"overloaded_error\",\"mess"}}`, "", ninelives.ClassOverloaded},
		{400, `{"error":{"message":"upstream said: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}"}}`, "", ninelives.ClassOverloaded},
		{200, `{"base_resp":{"status_code":1008,"status_msg":"m"}}`, "", ninelives.ClassBilling},
		{200, `{"error":{"code":503,"message":"m"}}`, "", ninelives.ClassOverloaded},
		{200, `{"error":{"code":"429","message":"m"}}`, "", ninelives.ClassRateLimit},
		{200, `{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"m"},"metadata":{"type":"billing_error"}}}`, "", ninelives.ClassRateLimit},
		{400, "data: {\"error\":{\"type\":\"overloaded_error\"}}\n\n", "", ninelives.ClassOverloaded},
		{400, "event: error\ndata: {\"error\":{\"code\":\"invalid_api_key\"}}\n\n", "", ninelives.ClassAuth},
		{400, "\ufeff  {\"error\":{\"code\":\"invalid_api_key\"}} trailing", "", ninelives.ClassAuth},
		{403, `<?xml version="1.0"?><Error><Code>Throttling</Code><Message>m</Message></Error>`, "", ninelives.ClassRateLimit},
		{400, ``, "", ninelives.ClassContextLength},
		{500, `null`, "", ninelives.ClassUnknown},
		{500, `{"error":null}`, "", ninelives.ClassUnknown},
		{500, `{"error":{`, "", ninelives.ClassUnknown},
		{200, ``, "", ninelives.ClassEmpty},
		{200, `<!doctype html><html><title>Sign in</title></html>`, "", ninelives.ClassFormat},
	})
}

func TestMoneyIsMoneyWhateverTheStatus(t *testing.T) {
	checkClasses(t, []answered{
		{429, `{"error":{"type":"insufficient_quota","code":"credit_balance_exhausted","message":"m"}}`, "", ninelives.ClassBilling},
		{400, `{"error":{"type":"invalid_request_error","message":"You have reached your specified workspace API usage limits."}}`, "", ninelives.ClassBilling},
		{403, `{"error":{"message":"令牌额度已用尽","type":"new_api_error"}}`, "", ninelives.ClassBilling},
		{429, `{"code":"Some resource has been exhausted","error":"Your team has used all available credits."}`, "", ninelives.ClassBilling},
		{429, `{"error":{"type":"insufficient_quota","code":"project_spend_limit_exceeded","message":"m"}}`, "", ninelives.ClassBilling},
		{429, `{"error":{"code":"organization_usage_limit_exceeded","message":"m"}}`, "", ninelives.ClassBilling},
		{400, `{"error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC."}}`, "", ninelives.ClassBilling},
		{400, `{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}`, "", ninelives.ClassBilling},
		{402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, "", ninelives.ClassBilling},
		{403, `{"error":{"code":403,"message":"Key limit exceeded (monthly limit).","metadata":{"limit_source":"openrouter_key_limit","resets_at":"2027-01-01T00:00:00Z"}}}`, "", ninelives.ClassBilling},
		{403, `{"error":"Your team has either used all available credits or reached its monthly spending limit."}`, "", ninelives.ClassBilling},
		{403, `{"error":{"message":"You've reached your usage limit for this billing cycle."}}`, "", ninelives.ClassBilling},
		{500, `{"type":"error","error":{"type":"api_error","message":"insufficient balance (1008)"}}`, "", ninelives.ClassBilling},
		{429, `{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}`, "", ninelives.ClassBilling},
		{429, `{"error":{"message":"Your prepayment credits are depleted.","code":429,"status":"RESOURCE_EXHAUSTED"}}`, "", ninelives.ClassBilling},
		{400, `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`, "", ninelives.ClassBilling},
		{402, `{"error":{"code":402,"message":"m","metadata":{"limit_source":"openrouter_in_flight_budget"}}}`, "", ninelives.ClassBilling},
		{402, `{"error":{"code":402,"message":"m","metadata":{"limit_source":"openrouter_in_flight_budget"}}}`, "Retry-After: 4", ninelives.ClassRateLimit},
		// The same sentence, from two vendors.
		{429, `{"error":{"message":"You have exceeded your current quota. Please check your plan and billing."}}`, "", ninelives.ClassBilling},
		{429, `{"error":{"message":"You have exceeded your current quota. Please check your plan and billing.","status":"RESOURCE_EXHAUSTED"}}`, "", ninelives.ClassRateLimit},
		// An advertisement is no bill.
		{429, `{"error":{"message":"Rate limit reached. Need more? Upgrade at https://x.test/settings/billing","code":"rate_limit_exceeded"}}`, "", ninelives.ClassRateLimit},
		{429, `{"error":{"message":"Add 10 credits to unlock 1000 requests per day","code":429}}`, "", ninelives.ClassRateLimit},
	})
}

func TestKeysRegionsAndRightsAreAuth(t *testing.T) {
	checkClasses(t, []answered{
		{400, `{"error":"Incorrect API key provided: ab***cd."}`, "", ninelives.ClassAuth},
		{400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`, "", ninelives.ClassAuth},
		{400, `{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}`, "", ninelives.ClassAuth},
		{401, `{"error":{"message":"Authentication Fails (no such user)","type":"authentication_error"}}`, "", ninelives.ClassAuth},
		{401, `{"error":{"code":401,"message":"No auth credentials found"}}`, "", ninelives.ClassAuth},
		{403, `{"type":"error","error":{"type":"permission_error","message":"m"}}`, "", ninelives.ClassAuth},
		{403, `{"error":{"code":"unsupported_country_region_territory","message":"m"}}`, "", ninelives.ClassAuth},
		{400, `{"message":"Access is not allowed from unsupported countries or regions."}`, "", ninelives.ClassAuth},
		{400, `{"message":"Signature expired"}`, "X-Amzn-Errortype: RequestExpired", ninelives.ClassAuth},
		{403, `{"message":"You don't have access to the model with the specified model ID."}`, "X-Amzn-Errortype: AccessDeniedException", ninelives.ClassAuth},
		{500, `{"error":{"code":"1002","message":"Authorization Token非法"}}`, "", ninelives.ClassAuth},
		{500, `{"base_resp":{"status_code":1004,"status_msg":"login fail"}}`, "", ninelives.ClassAuth},
		{403, `<html><title>Just a moment...</title></html>`, "Cf-Mitigated: challenge", ninelives.ClassAuth},
		{503, `<html><title>Just a moment...</title></html>`, "", ninelives.ClassAuth},
	})
}

func TestOverflowIsToldInManyWords(t *testing.T) {
	for _, c := range []struct {
		status            int
		text              string
		window, requested int
	}{
		{400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", 8192, 9000},
		{400, "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4100 input tokens.", 4096, 4100},
		{400, "Your input exceeds the context window of this model. Please adjust your input and try again.", 0, 0},
		{400, "prompt is too long: 209,353 tokens > 199,999 maximum", 199999, 209353},
		{400, "The input token count is 1300000 but the model only supports up to 1048576.", 1048576, 1300000},
		{400, "cannot truncate the prompt with n_keep (900) >= n_ctx (512)", 512, 900},
		{400, "The request payload size exceeds the limit: 1000 bytes. Upload a file instead.", 0, 0},
		{400, "input length and `max_tokens` exceed context limit: 195000 + 8000 > 200000", 200000, 195000},
		{400, "The input is too long for the model.", 0, 0},
		{400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).", 1048576, 1196265},
		{400, "The input token count 1196265 exceeds the maximum number of tokens allowed 1048576.", 1048576, 1196265},
		{400, "the request exceeds the available context size, try increasing it", 0, 0},
		{400, "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192, 9000},
		{400, "The number of tokens to keep from the initial prompt is greater than the context length.", 0, 0},
		{400, "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.", 4096, 0},
		{400, "Prompt contains 5000 tokens, too large for a model with 4096 maximum context length", 4096, 5000},
		{400, "Please reduce the length of your messages.", 0, 0},
		{400, "This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 131072, 140000},
		{400, "Input length 9393 exceeds the maximum allowed input length of 9040 tokens.", 9040, 9393},
		{400, "Input length (5330) exceeds the model's maximum context length (4096).", 4096, 5330},
		{400, "Range of input length should be [1, 30720]", 30720, 0},
		{403, "The input (9393 tokens) is longer than this model's context length (8192 tokens).", 8192, 9393},
		{400, "Invalid request: Your request exceeded model token limit: 131072", 131072, 0},
		{400, "bad params: the context window exceeds its limit (2013)", 0, 0},
		{500, "no user query found in messages", 0, 0},
		{400, "Prompt 超长", 0, 0},
		{400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt", 4081, 4292},
		{422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 1111", 1024, 1111},
		{400, "prompt token count of 130000 exceeds the limit of 128000", 128000, 130000},
		{413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce your message size", 6000, 7000},
		{429, "Request too large for gpt-x in organization o on tokens per min (TPM): Limit 30000, Requested 69512.", 30000, 69512},
		{413, "Request Entity Too Large", 0, 0},
	} {
		f := Classify(Answer{Status: c.status, Body: said(c.text)})
		if f.Class != ninelives.ClassContextLength || f.Window != c.window || f.Requested != c.requested {
			t.Errorf("%d %s\n got %s %d %d\nwant context_length %d %d", c.status, c.text, f.Class, f.Window, f.Requested, c.window, c.requested)
		}
	}
	f := Classify(Answer{Status: 400, Body: []byte(`{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`)})
	if f.Class != ninelives.ClassContextLength || f.Window != 8192 || f.Requested != 9000 {
		t.Errorf("%s %d %d", f.Class, f.Window, f.Requested)
	}
}

func TestWhatOnlySoundsLikeAnOverflowIsNone(t *testing.T) {
	checkClasses(t, []answered{
		{429, `{"message":"Too many tokens, please wait a while."}`, "X-Amzn-Errortype: ThrottlingException", ninelives.ClassRateLimit},
		{400, `{"message":"Too many tokens, please wait a while."}`, "", ninelives.ClassRateLimit},
		{429, `{"error":{"message":"Rate limit reached for x on tokens per min (TPM): Limit 500000, Used 442231, Requested 249686."}}`, "", ninelives.ClassRateLimit},
		{429, `{"error":{"message":"Throttling: too many tokens in the context window"}}`, "", ninelives.ClassRateLimit},
		{400, `{"error":{"message":"max_tokens must be at most 4096"}}`, "", ninelives.ClassFormat},
		{429, `{"error":{"message":"m","code":"context_length_exceeded"}}`, "", ninelives.ClassRateLimit},
		{400, `{"error":{"message":"Invalid image: the image is too large"}}`, "", ninelives.ClassFormat},
		{400, `{"error":{"message":"Input file is too large. Maximum 9 MB."}}`, "", ninelives.ClassFormat},
		{400, `{"error":{"message":"Invalid 'tools[0].function.name': string too long, maximum length 64","code":"string_above_max_length"}}`, "", ninelives.ClassFormat},
		{400, `{"error":{"message":"Invalid 'messages[2].tool_calls[1].id': string too long. Expected a string with maximum length 40, but got a string with length 120 instead.","code":"string_above_max_length"}}`, "", ninelives.ClassFormat},
		{400, `{"error":{"message":"string too long. Expected a string with maximum length 40"}}`, "", ninelives.ClassFormat},
		{400, `{"error":{"message":"Invalid 'metadata.trace': string too long. Expected a string with maximum length 512, but got a string with length 900 instead."}}`, "", ninelives.ClassFormat},
		{400, `{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead."}}`, "", ninelives.ClassFormat},
		{400, `{"error":{"message":"The input parameter 'messages.name' is too long: maximum length 64"}}`, "", ninelives.ClassFormat},
		{400, `{"error":{"message":"messages[3].tool_call_id: length exceeds limit (max 40)"}}`, "", ninelives.ClassFormat},
		{400, `{"error":{"message":"input tool name exceeds the maximum allowed length of 64 characters"}}`, "", ninelives.ClassFormat},
		// And what speaks of the prompt is one, whatever else it names.
		{400, `{"error":{"message":"Invalid 'messages[0].content': string too long. Expected a string with maximum length 1048576, but got a string with length 1540820 instead."}}`, "", ninelives.ClassContextLength},
		{400, `{"error":{"message":"The prompt for this model name exceeds the context window: the input is too long"}}`, "", ninelives.ClassContextLength},
	})
}

func TestAnEmptyComplaintIsAnOverflowOnlyNearTheWindow(t *testing.T) {
	near := ninelives.Candidate{Capabilities: ninelives.Capabilities{Window: 8000}}
	for tokens, want := range map[int]ninelives.Class{0: ninelives.ClassContextLength, 7000: ninelives.ClassContextLength, 10: ninelives.ClassFormat} {
		if f := Classify(Answer{Status: 400, Candidate: near, InputTokens: tokens}); f.Class != want {
			t.Errorf("%d tokens: %s, want %s", tokens, f.Class, want)
		}
	}
}

func TestCapacityRatesAndTimeouts(t *testing.T) {
	checkClasses(t, []answered{
		{429, `{"error":{"message":"m","details":[{"reason":"MODEL_CAPACITY_EXHAUSTED"}],"status":"RESOURCE_EXHAUSTED"}}`, "", ninelives.ClassOverloaded},
		{429, `{"error":{"message":"The engine is currently overloaded, please try again later","type":"engine_overloaded_error"}}`, "", ninelives.ClassOverloaded},
		{503, `{"object":"error","message":"The capacity of your service tier is exceeded.","type":"service_tier_capacity_exceeded","code":"3505"}`, "", ninelives.ClassOverloaded},
		{200, `{"error":{"code":"1305","message":"m"}}`, "", ninelives.ClassOverloaded},
		{500, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, "", ninelives.ClassOverloaded},
		{200, `{"error":{"message":"Service Unavailable","type":"ServiceUnavailableError"}}`, "", ninelives.ClassOverloaded},
		{429, `{"message":"m"}`, "X-Amzn-Errortype: ModelNotReadyException", ninelives.ClassOverloaded},
		// A resource that is exhausted is a quota; capacity is said otherwise.
		{429, `[{"error":{"code":429,"message":"Resource has been exhausted (check quota).","status":"RESOURCE_EXHAUSTED"}}]`, "", ninelives.ClassRateLimit},
		{200, `{"error":{"message":"Resource exhausted, please try later"}}`, "", ninelives.ClassRateLimit},
		{429, `{"code":"Some resource has been exhausted","error":"Too many requests"}`, "", ninelives.ClassRateLimit},
		{429, `{"code":"Some resource has been exhausted","error":"The model is at capacity"}`, "", ninelives.ClassOverloaded},
		{500, `{"error":{"message":"insufficient system resources"}}`, "", ninelives.ClassOverloaded},
		{424, `{"message":"m","originalStatusCode":400}`, "X-Amzn-Errortype: ModelErrorException", ninelives.ClassOverloaded},
		{400, `{"message":"m"}`, "X-Amzn-Errortype: ServiceQuotaExceededException", ninelives.ClassRateLimit},
		{429, `{"error":{"code":"1302","message":"m"}}`, "", ninelives.ClassRateLimit},
		{429, `{"error":{"code":"1310","message":"Weekly/Monthly Limit Exhausted. Your limit will reset at 2027-01-14 18:32:10"}}`, "", ninelives.ClassRateLimit},
		{429, `{"code":"Throttling.AllocationQuota","message":"Allocated quota exceeded, please increase your quota limit."}`, "", ninelives.ClassRateLimit},
		{403, `{"error":{"message":"Quota exceeded for quota metric 'x'","errors":[{"reason":"rateLimitExceeded"}]}}`, "", ninelives.ClassRateLimit},
		{500, `{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}`, "", ninelives.ClassRateLimit},
		{408, `{"message":"m"}`, "X-Amzn-Errortype: ModelTimeoutException", ninelives.ClassTimeout},
		{504, `{"type":"error","error":{"type":"timeout_error","message":"m"}}`, "", ninelives.ClassTimeout},
		{200, `{"error":{"message":"Upstream idle timeout exceeded"}}`, "", ninelives.ClassTimeout},
		{200, `{"error":{"status":"DEADLINE_EXCEEDED","message":"m"}}`, "", ninelives.ClassTimeout},
		{200, `{"message":"m"}`, "X-Amzn-Errortype: modelStreamErrorException", ninelives.ClassStreamBroken},
		{200, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, "", ninelives.ClassUnknown},
		{500, `{"error":{"code":500,"message":"An internal error has occurred.","status":"INTERNAL"}}`, "", ninelives.ClassUnknown},
	})
}

func TestPolicyAndModels(t *testing.T) {
	checkClasses(t, []answered{
		{400, `{"error":{"message":"m","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, "", ninelives.ClassContentFilter},
		{400, `{"error":{"message":"Output blocked by content filtering policy","type":"invalid_request_error"}}`, "", ninelives.ClassContentFilter},
		{400, `{"error":{"message":"Content Exists Risk","type":"invalid_request_error"}}`, "", ninelives.ClassContentFilter},
		{400, `{"code":"DataInspectionFailed","message":"Input data may contain inappropriate content."}`, "", ninelives.ClassContentFilter},
		{400, `{"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容"}}`, "", ninelives.ClassContentFilter},
		{403, `{"error":"Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_X"}`, "", ninelives.ClassContentFilter},
		{200, `{"base_resp":{"status_code":1027,"status_msg":"output new_sensitive"}}`, "", ninelives.ClassContentFilter},
		{400, `{"error":{"code":"invalid_prompt","message":"Your prompt was flagged as potentially violating our usage policy."}}`, "", ninelives.ClassContentFilter},
		{404, `{"error":{"message":"No endpoints found matching your data policy.","code":404}}`, "", ninelives.ClassModelNotFound},
		{400, `{"message":"The provided model identifier is invalid."}`, "", ninelives.ClassModelNotFound},
		{501, `{"error":{"code":501,"message":"This server does not do that.","type":"not_supported_error"}}`, "", ninelives.ClassFormat},
		{404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`, "", ninelives.ClassModelNotFound},
		{400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}`, "", ninelives.ClassModelNotFound},
		{400, `{"error":{"message":"x is not a valid model ID","code":400}}`, "", ninelives.ClassModelNotFound},
		{400, `{"error":{"message":"The model 'x-70b' has been decommissioned and is no longer supported.","code":"model_decommissioned"}}`, "", ninelives.ClassModelNotFound},
		{400, `{"object":"error","message":"Invalid model: x","type":"invalid_model","code":"1500"}`, "", ninelives.ClassModelNotFound},
		{404, `{"object":"error","message":"The model 'x' does not exist.","type":"NotFoundError","code":404}`, "", ninelives.ClassModelNotFound},
		{400, `{"error":{"message":"The supported API model names are a-1 or a-2, but you passed b."}}`, "", ninelives.ClassModelNotFound},
		{400, `{"error":{"code":"1211","message":"模型不存在"}}`, "", ninelives.ClassModelNotFound},
	})
}

func TestAFaultTellsWhatIsKnown(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	f := Classify(Answer{
		Status:    429,
		Header:    header("Request-Id: req_1|X-Should-Retry: false|Retry-After: 30"),
		Body:      []byte(`{"type":"error","error":{"type":"rate_limit_error","message":"Too\nmany  requests"}}`),
		Candidate: ninelives.Candidate{Provider: "p", Model: "m"},
		Now:       now,
	})
	if f.Class != ninelives.ClassRateLimit || f.Status != 429 || f.Type != "rate_limit_error" || f.Message != "Too many requests" ||
		f.Candidate != "p/m" || f.RequestID != "req_1" || f.RetryAfter != 30*time.Second || !f.ResetAt.Equal(now.Add(30*time.Second)) ||
		f.ShouldRetry == nil || *f.ShouldRetry || f.Billed != ninelives.BilledNo || f.Phase != ninelives.PhaseHeaders || f.Final {
		t.Errorf("%+v", f)
	}
	f = Classify(Answer{Status: 200, InBand: true, Body: []byte(`{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"went away","provider_name":"Host"}}}`)})
	if f.Class != ninelives.ClassOverloaded || f.Message != "Host: went away" || f.Phase != ninelives.PhaseStream || f.Billed != ninelives.BilledMaybe {
		t.Errorf("%+v", f)
	}
}

func TestAdviceSaysWhatToDo(t *testing.T) {
	local := ninelives.Candidate{Provider: "ollama", Model: "llama3", Local: true}
	for _, c := range []struct {
		a    Answer
		want string
	}{
		{Answer{Status: 404, Candidate: local, Body: []byte(`{"error":{"message":"model 'llama3' not found"}}`)}, "ollama pull llama3"},
		{Answer{Status: 404, Path: "/chat/completions", Body: []byte("404 page not found")}, "/v1 seems to be missing"},
		{Answer{Status: 404, Path: "/v1/v1/chat/completions", Body: []byte("<html><title>404 Not Found</title></html>")}, "/v1 is in it twice"},
		{Answer{Status: 200, Path: "/chat/completions", Body: []byte("<html><title>Welcome</title></html>")}, "/v1 seems to be missing"},
		{Answer{Status: 403, Body: []byte(`{"error":{"code":"unsupported_country_region_territory"}}`)}, "country or region"},
		{Answer{Status: 401, Body: []byte(`{"error":{"code":"invalid_api_key"}}`)}, "check the API key"},
		{Answer{Status: 400, Header: header("X-Amzn-Errortype: RequestExpired"), Body: []byte(`{"message":"m"}`)}, "clock"},
		{Answer{Status: 400, Body: said("prompt is too long: 300 tokens > 200 maximum")}, "300 tokens do not fit 200"},
		{Answer{Status: 413, Body: []byte("<html><title>413 Request Entity Too Large</title></html>")}, "proxy"},
		{Answer{Status: 402, Body: said("Insufficient Balance")}, "add credit"},
	} {
		if f := Classify(c.a); !strings.Contains(f.Hint, c.want) {
			t.Errorf("%d %s: %q, want %q", c.a.Status, c.a.Body, f.Hint, c.want)
		}
	}
}

func TestDailyQuotasAreFinal(t *testing.T) {
	for body, want := range map[string]bool{
		`{"error":{"message":"Rate limit reached on tokens per day (TPD): Limit 9, Used 9, Requested 1. Please try again in 9m38s."}}`: true,
		`{"error":{"message":"Rate limit reached on requests per min (RPM). Please try again in 2s."}}`:                                false,
		`{"error":{"message":"m","metadata":{"limit_source":"openrouter_free_tier_daily"}}}`:                                           true,
		`{"error":{"message":"quota exceeded"}}`:  true,
		`{"error":{"code":"1308","message":"m"}}`: true,
		`{"error":{"message":"m"}}`:               false,
	} {
		if f := Classify(Answer{Status: 429, Body: []byte(body)}); f.Final != want || f.Class != ninelives.ClassRateLimit {
			t.Errorf("%s: %s final %v", body, f.Class, f.Final)
		}
	}
}

func TestNoCredentialEverLeavesAFault(t *testing.T) {
	for _, secret := range []string{
		"sk-proj-Ab12Cd34Ef56Gh78", "sk-ant-api03-abcDEF123456", "AIzaSyA1234567890abcdefghijklmnop", "gsk_abcdefgh12345678", "xai-abcdefgh12345678",
		"Bearer abcdef0123456789abcdef", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "hf_abcdefghijklmnop", "AKIAIOSFODNN7EXAMPLE",
		"0123456789abcdef0123456789abcdef0123456789abcdef", "sk-test*************test",
	} {
		for _, frame := range []string{"Incorrect API key provided: %. Check it.", "key=%&x=1 is wrong", "the key '%' is invalid", "header Authorization: % rejected", "url https://u:%@host/x failed"} {
			f := Classify(Answer{Status: 401, Body: said(strings.Replace(frame, "%", secret, 1))})
			core := strings.TrimPrefix(secret, "Bearer ")
			if strings.Contains(f.Error(), core) || strings.Contains(f.Error(), core[len(core)-4:]) && core != "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc" {
				t.Errorf("%s shows %s: %v", frame, secret, f)
			}
		}
	}
	const plain = "The model gpt-4o-mini-2024-07-18 in organization org-abc does not support max_completion_tokens at https://api.test/v1/x"
	if got := Redact(plain); got != plain {
		t.Errorf("harmless words are hidden: %s", got)
	}
}

// checkShape holds for every fault, whatever was read.
func checkShape(t *testing.T, f *ninelives.Fault) {
	t.Helper()
	if f.Class == "" || f.Scope == "" || f.Billed == "" {
		t.Errorf("incomplete: %+v", f)
	}
	for _, s := range []string{f.Message, f.Code, f.Type, f.RequestID, f.Hint, f.Error()} {
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u2028' }) || !utf8.ValidString(s) {
			t.Errorf("not one clean line: %q", s)
		}
		if len(s) > 4*maxMessage {
			t.Errorf("unbounded: %d bytes", len(s))
		}
	}
	if f.RetryAfter < 0 || f.RetryAfter > maxHint || f.Window < 0 || f.Requested < 0 {
		t.Errorf("senseless numbers: %+v", f)
	}
	for _, r := range f.Repairs {
		if r.Name == "" || r.Param == "model" || r.Param == "messages" {
			t.Errorf("a repair that destroys the request: %+v", r)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, seed := range []string{
		`{"error":{"message":"m","code":429}}`, `[{"error":{"details":[{"retryDelay":"38s"}]}}]`, `{"detail":[{"loc":["body","a",1],"type":"extra_forbidden"}]}`,
		`<html><title>x`, `{"base_resp":{"status_code":1008,"status_msg":"x"}}`, "data: {", `{"error":"{\"error\":\"{}\"}"}`, `"x"`, `{"error":{"message":"unknown name \"$ref\" at 'tools[0]'"}}`,
		`{"error":{"message":"max_tokens must be <= 99999999999999999999"}}`, `{"message":"1 + 2 > 3"}`, "\x00\xff{", `{"error":{"message":"try again in 99999999999999999999h"}}`,
	} {
		f.Add(429, []byte(seed), "Retry-After: 5", false)
		f.Add(400, []byte(seed), "", true)
	}
	f.Fuzz(func(t *testing.T, status int, body []byte, head string, inBand bool) {
		checkShape(t, Classify(Answer{Status: status, Body: body, Header: header(head), InBand: inBand, Now: time.Unix(1.7e9, 0)}))
	})
}

// Every phrase of this package compiles, and knows by its literals alone when
// it cannot match.
func TestPhrasesMatchWithAndWithoutTheirShortcut(t *testing.T) {
	p := texts(`(foo|bar)\d+ baz`, `qux{2,}`, `\d{3}`)
	for text, want := range map[string]bool{"a FOO12 Baz": true, "bar1 ba": false, "QUXX": true, "qu": false, "x 123": true, "": false} {
		if got := p.matches(text); got != want || got != (p.whole().MatchString(text)) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestALongComplaintIsReadAtBothEnds(t *testing.T) {
	filler := strings.Repeat("{{ a line of a template }}\n", 2000)
	for _, text := range []string{
		"prompt is too long: 300 tokens > 200 maximum. " + filler,
		filler + "Error: prompt is too long: 300 tokens > 200 maximum",
	} {
		if f := Classify(Answer{Status: 500, Body: said(text)}); f.Class != ninelives.ClassContextLength || f.Window != 200 {
			t.Errorf("%s, window %d", f.Class, f.Window)
		}
	}
}
