package chaos

import (
	"slices"
	"time"
)

// Catalogue lists the scenarios that every server knows, by topic.
func Catalogue() []Scenario { return slices.Clone(catalogue) }

// pace is the time between two tokens of the scenarios of the catalogue.
const pace = 15 * time.Millisecond

// thinking is what the simulator thinks where a scenario lets it.
const thinking = "The user wants an answer. I know sixty words by heart, so I shall say those."

// always is a scenario of one step.
func always(name, about string, step Step) Scenario {
	step.Interval = max(step.Interval, pace)
	return Scenario{Name: name, About: about, Steps: []Step{step}}
}

// once is a scenario whose first request meets the step and whose later ones
// are answered.
func once(name, about string, step Step) Scenario {
	step.Interval = max(step.Interval, pace)
	return Scenario{Name: name, About: about, Steps: []Step{step, {Interval: pace}}}
}

// body makes a scripted body.
func body(s string) *string { return &s }

var catalogue = slices.Concat(healthy, hints, failures, silences, broken, hollow, cutCalls, strict, public)

var healthy = []Scenario{
	always("ok", "the sixty words, one every 15 ms", Step{}),
	{Name: "instant", About: "the sixty words, as fast as they can be written"},
	always("echo", "what the user said last", Step{Echo: true}),
	always("thinking", "some reasoning, then the answer", Step{Reasoning: thinking}),
	always("tool-call", "a call of the first tool of the request, then the answer", Step{Calls: []Call{{Name: "*"}}}),
	{Name: "coder", About: "a scripted coder: works through plain sentences such as replace \"a\" with \"b\" in FILE, with the tools of the request", Steps: []Step{{Coder: true}}},
	always("refusal", "the model declines", Step{Refusal: "I'm sorry, but I can't help with that."}),
	always("truncated", "stops after 30 tokens with the reason length; goes on when asked to", Step{Truncate: 30}),
	always("truncated-as-stop", "stops after 30 tokens and claims to have finished; asked for at most 30 tokens it cannot be told apart otherwise", Step{Truncate: 30, Finish: "stop"}),
	always("filtered", "the answer is cut after 30 tokens by a content filter", Step{Truncate: 30, Finish: "content_filter"}),
	always("split", "a good answer, one byte a write", Step{Split: 1}),
	always("crlf", "a good answer with CR LF line ends", Step{CRLF: true}),
	always("trickle", "one token a second", Step{Interval: time.Second}),
}

var hints = []Scenario{
	once("flaky-429", "one 429 that asks for a second", Step{Error: RateLimit, Hint: HintSeconds, Wait: time.Second}),
	once("429-seconds", "one 429 with retry-after: 2", Step{Error: RateLimit, Hint: HintSeconds, Wait: 2 * time.Second}),
	once("429-date", "one 429 with retry-after as a date, two seconds ahead", Step{Error: RateLimit, Hint: HintDate, Wait: 2 * time.Second}),
	once("429-ms", "one 429 with retry-after-ms: 1500", Step{Error: RateLimit, Hint: HintMillis, Wait: 1500 * time.Millisecond}),
	once("429-text", "one 429 whose message names the wait", Step{Error: RateLimit, Hint: HintText, Wait: 1500 * time.Millisecond}),
	once("429-retry-info", "one 429 with Google's RetryInfo", Step{Error: RateLimit, Hint: HintRetryInfo, Wait: 2 * time.Second}),
	once("429-reset-duration", "one 429 with x-ratelimit-reset-requests: 2s and a full token bucket that resets later", Step{Error: RateLimit, Hint: HintDuration, Wait: 2 * time.Second}),
	once("429-reset-rfc3339", "one 429 with anthropic-ratelimit-requests-reset, two seconds ahead", Step{Error: RateLimit, Hint: HintRFC3339, Wait: 2 * time.Second}),
	once("429-reset-epoch", "one 429 with x-ratelimit-reset in seconds", Step{Error: RateLimit, Hint: HintEpoch, Wait: 2 * time.Second}),
	once("429-reset-epoch-ms", "one 429 with x-ratelimit-reset in milliseconds", Step{Error: RateLimit, Hint: HintEpochMS, Wait: 2 * time.Second}),
	always("429-always", "429 without a hint, for good", Step{Error: RateLimit}),
	always("429-hour", "429 that asks for an hour, for good", Step{Error: RateLimit, Hint: HintSeconds, Wait: time.Hour}),
	once("loading", "one 503 of a model that is being loaded, with estimated_time", Step{Error: Overloaded, Hint: HintEstimated, Wait: 2 * time.Second, Status: 503, Message: "Model %m is currently loading"}),
}

var failures = []Scenario{
	once("flaky-500", "one 500", Step{Error: ServerError}),
	once("flaky-503", "one overloaded error", Step{Error: Overloaded}),
	always("503-always", "overloaded, for good", Step{Error: Overloaded}),
	always("500-always", "500, for good", Step{Error: ServerError}),
	always("bad-gateway", "a proxy's 502 page, for good", Step{Error: BadGateway}),
	always("timeout", "504, for good", Step{Error: Timeout}),
	always("billing", "no credit", Step{Error: Billing}),
	always("bad-key", "the key is refused", Step{Error: Auth}),
	always("no-model", "the model does not exist", Step{Error: ModelNotFound}),
	always("context-length", "every request is too long", Step{Error: ContextLength}),
	always("small-window", "a window of 1000 tokens", Step{Window: 1000}),
	always("content-filter", "the prompt is rejected by a content filter", Step{Error: ContentFilter}),
	always("wrong-path", "404 with a web server's page, as at a wrong base URL", Step{Status: 404, Body: body(htmlPage(404))}),
	always("html-200", "a web page with 200, as of a login or a wrong address", Step{Body: body("<!doctype html>\n<html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>\n")}),
	always("null-body", "200 with the body null", Step{Body: body("null")}),
	always("not-json", "200 with a body that is no JSON", Step{Malformed: true, End: CleanEnd}),
	{Name: "flap", About: "down (503) for the first 60 seconds, then well", Steps: []Step{{For: time.Minute, Error: Overloaded}, {Interval: pace}}},
	{Name: "flapping", About: "down for 10 seconds, well for 10 seconds, and so on", Loop: true, Steps: []Step{{For: 10 * time.Second, Error: Overloaded}, {For: 10 * time.Second, Interval: pace}}},
}

var silences = []Scenario{
	always("hang", "no headers, ever", Step{Drop: Hang}),
	once("hang-once", "no headers for the first request", Step{Drop: Hang}),
	always("slow-headers", "headers after 20 seconds", Step{Delay: 20 * time.Second}),
	always("slow-first", "headers at once, the first token after 20 seconds", Step{First: 20 * time.Second}),
	always("slow-first-alive", "the same with a sign of life every 5 seconds", Step{First: 20 * time.Second, KeepAlive: 5 * time.Second}),
	always("stall", "silence after 20 tokens", Step{After: 20, End: Stall}),
	once("stall-once", "silence after 20 tokens, the first time", Step{After: 20, End: Stall}),
	always("stall-alive", "after 20 tokens nothing but signs of life, every 5 seconds", Step{After: 20, End: Stall, KeepAlive: 5 * time.Second}),
	always("pause", "20 seconds of silence after 20 tokens, then the rest", Step{After: 20, Pause: 20 * time.Second}),
	always("only-alive", "signs of life every 5 seconds and never a token", Step{End: Stall, KeepAlive: 5 * time.Second}),
}

var broken = []Scenario{
	once("reset-once", "the first connection is reset before the headers", Step{Drop: RST}),
	always("reset", "every connection is reset before the headers", Step{Drop: RST}),
	once("close-once", "the first connection is closed before the headers", Step{Drop: Close}),
	always("garbage", "bytes that are no HTTP", Step{Drop: Garbage}),
	always("cut", "the connection closes after 40 tokens", Step{After: 40, End: Cut}),
	once("cut-once", "the connection closes after 40 tokens, the first time", Step{After: 40, End: Cut}),
	always("cut-inside", "the connection closes in the middle of an event", Step{After: 40, End: CutInside}),
	always("cut-reset", "the connection is reset after 40 tokens", Step{After: 40, End: Reset}),
	always("clean-end", "the stream ends politely after 40 tokens, without an end marker", Step{After: 40, End: CleanEnd}),
	always("no-marker", "the whole text, but no reason and no end marker", Step{Omit: []string{omitFinish, omitDone}}),
	always("no-done", "a whole answer without the last end marker", Step{Omit: []string{omitDone}}),
	always("no-event-lines", "events without their event: lines", Step{Omit: []string{omitEvents}}),
	always("malformed", "an event that is no JSON after 10 tokens, then the rest", Step{After: 10, Malformed: true}),
	always("error-first", "an overloaded error as the first event of a 200", Step{Error: Overloaded, End: ErrorEvent, Omit: []string{omitStart}}),
	always("error-started", "the same after the opening events", Step{Error: Overloaded, End: ErrorEvent}),
	always("error-inside", "the same after 20 tokens", Step{Error: Overloaded, End: ErrorEvent, After: 20}),
	once("error-once", "the same after 20 tokens, the first time", Step{Error: Overloaded, End: ErrorEvent, After: 20}),
}

var hollow = []Scenario{
	always("empty-null", "the list of choices is null", Step{Empty: EmptyNull}),
	always("empty-none", "the list of choices is empty", Step{Empty: EmptyNone}),
	always("empty-done", "nothing but the end marker", Step{Empty: EmptyDone}),
	always("empty-blank", "200 without a body", Step{Empty: EmptyBlank}),
	always("empty-whitespace", "blanks and a line feed", Step{Empty: EmptyWhitespace}),
	always("empty-reasoning", "thought, but nothing said", Step{Empty: EmptyReasoning}),
	once("empty-once", "an empty answer, the first time", Step{Empty: EmptyNone}),
	always("json-fenced", "JSON in a fence, with words around it", Step{Text: "Here it is:\n```json\n{\"number\": \"A-9\", \"total\": 9.5}\n```\nAnything else?"}),
	once("json-once-wrong", "JSON that no schema asked for, the first time", Step{Text: `{"unasked":true}`}),
	once("json-once-broken", "JSON that lacks a quote and a brace, the first time", Step{Text: `{"number": "A-9, "total": `}),
}

var cutCalls = []Scenario{
	always("call-unclosed", "the arguments of a tool call end in mid-JSON", Step{Calls: []Call{{Name: "*", Arguments: `{"path":"/tmp/nine","content":"lives"}`}}, ToolFault: Unclosed}),
	always("call-duplicate-index", "two calls with the same index", Step{Calls: []Call{{Name: "*"}, {Name: "*"}}, ToolFault: DuplicateIndex}),
	always("call-missing-index", "calls without an index", Step{Calls: []Call{{Name: "*"}, {Name: "*"}}, ToolFault: MissingIndex}),
	always("call-missing-id", "a call without an id", Step{Calls: []Call{{Name: "*"}}, ToolFault: MissingID}),
	always("call-object", "arguments as an object", Step{Calls: []Call{{Name: "*"}}, ToolFault: ObjectArgs}),
	always("call-double-encoded", "arguments encoded twice", Step{Calls: []Call{{Name: "*"}}, ToolFault: DoubleEncoded}),
	always("call-null", "arguments null", Step{Calls: []Call{{Name: "*", Arguments: "{}"}}, ToolFault: NullArgs}),
}

var strict = []Scenario{
	always("strict", "refuses unknown parameters", Step{Reject: []Check{UnknownParam}}),
	always("no-prefill", "refuses a conversation that ends with the assistant", Step{Reject: []Check{Prefill}}),
	always("no-system", "refuses instructions", Step{Reject: []Check{SystemRole, DeveloperRole}}),
	always("no-developer", "refuses the developer role", Step{Reject: []Check{DeveloperRole}}),
	always("no-images", "refuses pictures", Step{Reject: []Check{Images}}),
	always("no-tools", "refuses tools", Step{Reject: []Check{Tools}}),
	always("no-schema", "refuses structured output", Step{Reject: []Check{Schema}}),
	always("no-stream", "refuses to stream", Step{Reject: []Check{Streams}}),
	always("no-temperature", "refuses temperature", Step{Reject: []Check{paramCheck + "temperature"}}),
	always("no-max-tokens", "wants max_completion_tokens", Step{Reject: []Check{MaxTokensName}}),
	always("wants-reasoning", "wants its reasoning back with tool calls", Step{Reject: []Check{MissingReasoning}}),
	always("strict-history", "refuses a conversation whose calls, results, blocks, roles or signatures do not fit, as the protocol's vendor does", Step{Reject: []Check{History}}),
	always("strict-thinking", "thinks, refuses what strict-history does, and wants its reasoning back with tool calls", Step{Reject: []Check{History, MissingReasoning}, Reasoning: thinking}),
	always("strict-ids", "refuses what strict-history does, ids of calls that are not nine letters and digits, and a user's message right after a result", Step{Reject: []Check{History, MistralIDs, UserAfterTool}}),
	always("strict-local", "refuses what strict-history does and pictures; a window of 8000 tokens", Step{Reject: []Check{History, Images}, Window: 8000}),
	always("alternating", "wants roles to alternate", Step{Reject: []Check{SameRoles}}),
	always("needs-key", "refuses a request without a key", Step{Reject: []Check{NoKey}}),
	always("needs-v1", "404 with a web server's page where the path lacks /v1", Step{Reject: []Check{NoVersionPath}}),
}
