package ninelives

import "time"

// FinishReason is why a model stopped, normalised.
type FinishReason string

// The finish reasons. The empty reason means that none was told.
const (
	FinishStop          FinishReason = "stop"
	FinishLength        FinishReason = "length"
	FinishToolCalls     FinishReason = "tool_calls"
	FinishContentFilter FinishReason = "content_filter"
	FinishRefusal       FinishReason = "refusal"
	// FinishMalformedCall: the provider could not read the tool call that its
	// model wrote, and left it out. The answer is not whole.
	FinishMalformedCall FinishReason = "malformed_call"
	// FinishOther is a reason without a word here; FinishRaw has it.
	FinishOther FinishReason = "other"
)

// Response is one complete answer.
type Response struct {
	ID      string       `json:"id,omitzero"`
	Message Message      `json:"message,omitzero"`
	Finish  FinishReason `json:"finish,omitzero"`
	// FinishRaw is the provider's own word.
	FinishRaw string `json:"finish_raw,omitzero"`
	Usage     Usage  `json:"usage,omitzero"`
	// Model is the model name as the provider reports it.
	Model string `json:"model,omitzero"`
	// Created is the provider's time stamp; zero if it gave none.
	Created time.Time `json:"created,omitzero"`

	// Output is the validated JSON when the request asked for an Output.
	Output []byte `json:"output,omitzero"`
	// OutputDefaulted says that Output is the caller's default, because no
	// answer could be brought into form.
	OutputDefaulted bool `json:"output_defaulted,omitzero"`

	// Candidate is the name of the candidate that served ("anthropic/claude-…").
	Candidate string `json:"candidate,omitzero"`
	// IsFallback says that it was not the first candidate of the chain.
	IsFallback bool `json:"is_fallback,omitzero"`
	// Attempts is the number of requests that were made for this call.
	Attempts int `json:"attempts,omitzero"`
	// Continued is how many times the answer was continued and stitched.
	Continued int `json:"continued,omitzero"`
	// Degraded is set when the answer is no fresh one.
	Degraded Degraded `json:"degraded,omitzero"`
	// Warnings tell what the caller should know about an accepted answer (a
	// silently cut prompt, reasoning that was dropped, …).
	Warnings []string `json:"warnings,omitzero"`

	// Choices holds the further choices (index 1…) of a request with N > 1.
	Choices []Choice `json:"choices,omitzero"`
	// Logprobs is the provider's logprobs object of choice 0, verbatim.
	Logprobs Extra `json:"logprobs,omitzero"`
	// ChoiceExtra holds the wire fields of choice 0 that have no word here.
	ChoiceExtra Extra `json:"choice_extra,omitzero"`
	// Extra holds the top-level wire fields that have no word here.
	Extra Extra `json:"extra,omitzero"`
}

// Choice is a further choice of a request with N > 1.
type Choice struct {
	Message   Message      `json:"message,omitzero"`
	Finish    FinishReason `json:"finish,omitzero"`
	FinishRaw string       `json:"finish_raw,omitzero"`
	Logprobs  Extra        `json:"logprobs,omitzero"`
	// Extra holds the wire fields of this choice that have no word here.
	Extra Extra `json:"extra,omitzero"`
}

// Text is the text of the answer.
func (r *Response) Text() string { return r.Message.Text() }

// Degraded names the substitute that was served; the empty value means none.
type Degraded string

// The degraded answers.
const (
	DegradedStale  Degraded = "stale"  // the last good answer to the same request
	DegradedCanned Degraded = "canned" // a fixed answer chosen beforehand
)

// UsageField is a set of the counts that a provider reported.
type UsageField uint8

// The counts of a Usage.
const (
	UsageInput UsageField = 1 << iota
	UsageOutput
	UsageReasoning
	UsageCached
	UsageCacheWrite
)

// Usage counts tokens exactly as the provider reports them; Reported says
// which counts it gave. What the counts include differs between providers:
// see InputExcludesCached and OutputExcludesReasoning, and use TotalInput and
// TotalOutput to compare.
type Usage struct {
	Input      int        `json:"input,omitzero"`
	Output     int        `json:"output,omitzero"`
	Reasoning  int        `json:"reasoning,omitzero"`
	Cached     int        `json:"cached,omitzero"`      // read from the prompt cache
	CacheWrite int        `json:"cache_write,omitzero"` // written to the prompt cache
	Reported   UsageField `json:"reported,omitzero"`
	// InputExcludesCached: Cached and CacheWrite come on top of Input (Anthropic).
	InputExcludesCached bool `json:"input_excludes_cached,omitzero"`
	// OutputExcludesReasoning: Reasoning comes on top of Output (Gemini, xAI chat).
	OutputExcludesReasoning bool `json:"output_excludes_reasoning,omitzero"`
	// Estimated says that the counts are ours, not the provider's.
	Estimated bool `json:"estimated,omitzero"`
	// Extra is the provider's usage object, verbatim.
	Extra Extra `json:"extra,omitzero"`
}

// Has reports whether the provider gave all the counts of f.
func (u Usage) Has(f UsageField) bool { return u.Reported&f == f }

// TotalInput is all input tokens, cached ones included.
func (u Usage) TotalInput() int {
	if u.InputExcludesCached {
		return u.Input + u.Cached + u.CacheWrite
	}
	return u.Input
}

// TotalOutput is all output tokens, reasoning included.
func (u Usage) TotalOutput() int {
	if u.OutputExcludesReasoning {
		return u.Output + u.Reasoning
	}
	return u.Output
}
