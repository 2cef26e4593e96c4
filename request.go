package ninelives

import "time"

// Request is one logical call. The zero value of every field means "the
// provider's default". A Model never changes the Request it is given.
type Request struct {
	// Model is the model name that the caller asked for; empty means the
	// Model's own. A single provider model sends its own name regardless.
	Model    string    `json:"model,omitzero"`
	Messages []Message `json:"messages,omitzero"`

	Tools      []Tool     `json:"tools,omitzero"`
	ToolChoice ToolChoice `json:"tool_choice,omitzero"`
	// ParallelTools allows or forbids several tool calls in one answer.
	ParallelTools *bool `json:"parallel_tools,omitzero"`

	// MaxTokens limits the answer. Zero means that the caller set no limit:
	// then, and only then, a truncated answer may be continued by itself.
	MaxTokens   int      `json:"max_tokens,omitzero"`
	Temperature *float64 `json:"temperature,omitzero"`
	TopP        *float64 `json:"top_p,omitzero"`
	TopK        *int     `json:"top_k,omitzero"`
	Seed        *int64   `json:"seed,omitzero"`
	Stop        []string `json:"stop,omitzero"`
	// FrequencyPenalty and PresencePenalty are OpenAI's parameters.
	FrequencyPenalty *float64 `json:"frequency_penalty,omitzero"`
	PresencePenalty  *float64 `json:"presence_penalty,omitzero"`
	// N is the number of choices; zero and one mean one. Healing covers choice 0.
	N int `json:"n,omitzero"`
	// Logprobs asks for token probabilities; TopLogprobs for so many alternatives.
	Logprobs    bool `json:"logprobs,omitzero"`
	TopLogprobs int  `json:"top_logprobs,omitzero"`

	Reasoning ReasoningOptions `json:"reasoning,omitzero"`
	// Output is the form that the answer must satisfy; nil means free text.
	Output *Output `json:"output,omitzero"`

	// CacheKey groups requests that share a prompt prefix (prompt_cache_key).
	CacheKey string `json:"cache_key,omitzero"`
	// User is the caller's own id of its end user.
	User     string            `json:"user,omitzero"`
	Metadata map[string]string `json:"metadata,omitzero"`

	// Background marks work that nobody waits for: no cap on attempts, waits
	// up to a minute (see package heal).
	Background bool `json:"background,omitzero"`
	// Buffered says that nobody watches the stream: only the whole answer
	// counts, and the shorter total deadline holds. Generate sets it.
	Buffered bool `json:"buffered,omitzero"`

	// Extra holds the top-level wire fields that have no word here.
	Extra Extra `json:"extra,omitzero"`

	// Fit, if set, gives a form of the request that needs at most so many tokens
	// of input, or an error if there is none. A healing driver asks it before an
	// attempt at a candidate whose window the request does not fit, so that an
	// agent's history is planned anew for that candidate and not refused by it.
	Fit func(tokens int) (*Request, error) `json:"-"`

	// Raw is the request as a client of a wire protocol sent it; nil where it
	// was made here. A model of the same protocol sends these bytes on as they
	// are, but for the model's name, and yields the bytes of the answer (see
	// [Frame]). Whoever changes the request sets it to nil.
	Raw *Raw `json:"-"`

	// Attempt is set by a healing driver for one attempt; callers leave it nil.
	Attempt *Attempt `json:"-"`
}

// Raw is a request in the bytes of a wire protocol.
type Raw struct {
	Protocol Protocol
	// Body is the whole JSON object. It must not change while the call runs.
	Body []byte
	// Model is where the value of the model's name lies in Body, quotes
	// included, as a half-open range; empty where the body has none (Gemini
	// names the model in the path).
	Model [2]int
	// Stream says that the bytes ask for a streamed answer.
	Stream bool
	// Header holds the client's header fields that are part of the request
	// (anthropic-beta, …), Query its query string; neither holds a credential.
	Header map[string]string
	Query  string
	// Decode, if set, reads Body in full. Then the Request around it holds only
	// what a look at the bytes could tell (see Request.Whole), and Text, Tools
	// are what the healing goes by meanwhile. It may be called several times and
	// from several goroutines, and gives the same request each time.
	Decode func() (*Request, error)
	// Text is about how many bytes of text the prompt has, Tools whether the
	// model may call tools; only read where Decode is set.
	Text  int
	Tools bool
}

// Whole gives the request with everything that it says. It is r itself unless
// that holds no more than a look at the bytes could tell (Raw.Decode).
func (r *Request) Whole() (*Request, error) {
	if r.Raw == nil || r.Raw.Decode == nil {
		return r, nil
	}
	read, err := r.Raw.Decode()
	if err != nil {
		return nil, err
	}
	whole := *read
	whole.Background, whole.Buffered, whole.Fit, whole.Attempt = r.Background, r.Buffered, r.Fit, r.Attempt
	raw := *r.Raw
	raw.Decode = nil
	whole.Raw = &raw
	return &whole, nil
}

// Attempt tells a provider how to carry out one attempt of a call. It is
// written by the healing driver alone.
type Attempt struct {
	// Number counts from 1 within the call; events carry it.
	Number int
	// Clocks bound the attempt; a zero clock means the provider's default.
	Clocks Clocks
	// Repairs are the changes of the request's dialect to apply, in order.
	Repairs []Repair
}

// Clocks bound the phases of one attempt. They run only while the provider is
// being waited for, never while the consumer of a stream works. Zero means the
// provider's default, a negative value means no limit.
type Clocks struct {
	// Dial covers name lookup, connection and TLS handshake.
	Dial time.Duration
	// Headers runs from the request's last byte to the response's headers.
	Headers time.Duration
	// FirstEvent runs from sending the request to the first semantic event.
	FirstEvent time.Duration
	// Liveness is the longest silence (any byte counts) inside a stream.
	Liveness time.Duration
	// Progress is the longest wait between semantic events: comments and
	// pings do not count.
	Progress time.Duration
	// MinRate is the slowest stream that is tolerated, in bytes of content per
	// second over any RateWindow after the first event; zero means off.
	MinRate    float64
	RateWindow time.Duration
	// Total bounds the whole attempt.
	Total time.Duration
}

// Tool is a function that the model may call.
type Tool struct {
	Name        string `json:"name,omitzero"`
	Description string `json:"description,omitzero"`
	// Schema is the JSON schema of the arguments object.
	Schema []byte `json:"schema,omitzero"`
	// Strict asks the provider to enforce the schema; nil means its default.
	Strict *bool `json:"strict,omitzero"`
	// Kind is empty for a function. Any other value names a provider's own
	// tool (web search, code execution); then Extra holds its whole JSON.
	Kind string `json:"kind,omitzero"`
	Meta
}

// ToolChoiceMode says how free the model is in calling tools.
type ToolChoiceMode string

// The tool choice modes; the empty mode is the provider's default.
const (
	ToolChoiceAuto     ToolChoiceMode = "auto"
	ToolChoiceNone     ToolChoiceMode = "none"
	ToolChoiceRequired ToolChoiceMode = "required" // some tool must be called
	ToolChoiceTool     ToolChoiceMode = "tool"     // Name must be called
)

// ToolChoice constrains the model's use of tools.
type ToolChoice struct {
	Mode ToolChoiceMode `json:"mode,omitzero"`
	// Name is the tool of ToolChoiceTool.
	Name string `json:"name,omitzero"`
	// Extra is a provider's own form (allowed_tools) of the whole choice.
	Extra Extra `json:"extra,omitzero"`
}

// ReasoningOptions steer the thinking of models that have it.
type ReasoningOptions struct {
	// Effort is "none", "minimal", "low", "medium", "high" or "xhigh"; empty
	// means the provider's default.
	Effort string `json:"effort,omitzero"`
	// Budget is a limit in tokens where the provider takes one; zero means none given.
	Budget int `json:"budget,omitzero"`
	// Summary asks for a readable summary ("auto", "concise", "detailed").
	Summary string `json:"summary,omitzero"`
	// Extra is the provider's own form of its reasoning parameter.
	Extra Extra `json:"extra,omitzero"`
}

// Output is the form that an answer must satisfy.
type Output struct {
	// Name names the schema towards providers ([a-zA-Z0-9_-], at most 64).
	Name        string `json:"name,omitzero"`
	Description string `json:"description,omitzero"`
	// Schema is the JSON schema; nil means any JSON value ("JSON mode").
	Schema []byte `json:"schema,omitzero"`
	// Strict asks for native enforcement in the provider's strict mode; nil
	// means its default.
	Strict *bool `json:"strict,omitzero"`
	// Default is what is returned, marked as such, when the answer cannot be
	// brought into form; nil means a typed failure instead.
	Default []byte `json:"default,omitzero"`
}

// Prompt is a request of one user message.
func Prompt(text string) *Request {
	return &Request{Messages: []Message{UserText(text)}}
}

// Clone copies the request deeply enough that appending to or replacing
// elements of its slices and maps does not touch the original. Parts, schemas
// and raw JSON are shared and must be treated as immutable.
func (r *Request) Clone() *Request {
	c := *r
	c.Messages = append([]Message(nil), r.Messages...)
	for i := range c.Messages {
		c.Messages[i].Parts = append([]Part(nil), r.Messages[i].Parts...)
	}
	c.Tools = append([]Tool(nil), r.Tools...)
	c.Stop = append([]string(nil), r.Stop...)
	if r.Metadata != nil {
		c.Metadata = make(map[string]string, len(r.Metadata))
		for k, v := range r.Metadata {
			c.Metadata[k] = v
		}
	}
	if r.Attempt != nil {
		a := *r.Attempt
		a.Repairs = append([]Repair(nil), r.Attempt.Repairs...)
		c.Attempt = &a
	}
	return &c
}
