package ninelives

// Part is one piece of a message: [Text], [Image], [File], [ToolCall],
// [ToolResult], [Reasoning], [Refusal] or [Opaque]. Parts are values; a type
// switch over them is exhaustive with these eight.
type Part interface{ part() }

// Meta is what any part may carry beside its content.
type Meta struct {
	// Cache marks the end of a prefix that the provider should cache; nil means
	// no hint. It is translated where the target has such hints.
	Cache *CacheHint `json:"cache,omitzero"`
	// Extra holds the wire fields of this part that have no word here.
	Extra Extra `json:"extra,omitzero"`
}

// CacheHint asks the provider to cache the prompt up to and including a part.
type CacheHint struct {
	// TTL is the provider's word for the lifetime ("5m", "1h"); empty means its default.
	TTL string `json:"ttl,omitzero"`
}

// Text is plain text.
type Text struct {
	Text string `json:"text"`
	// Citations are the sources that the provider named for this text.
	Citations []Citation `json:"citations,omitzero"`
	Meta
}

// Citation is one source of a text. Raw keeps the provider's own form.
type Citation struct {
	URL   string `json:"url,omitzero"`
	Title string `json:"title,omitzero"`
	Quote string `json:"quote,omitzero"`
	Raw   Extra  `json:"raw,omitzero"`
}

// Image is a picture, by URL or inline; exactly one of URL, Data and FileID is set.
type Image struct {
	URL       string `json:"url,omitzero"`
	MediaType string `json:"media_type,omitzero"` // such as "image/png"; required with Data
	Data      []byte `json:"data,omitzero"`       // the decoded bytes
	FileID    string `json:"file_id,omitzero"`    // a file uploaded to the provider before
	Detail    string `json:"detail,omitzero"`     // OpenAI's detail level; empty means its default
	Meta
}

// File is a document or audio file, by URL, inline or by uploaded id.
type File struct {
	Name      string `json:"name,omitzero"`
	URL       string `json:"url,omitzero"`
	MediaType string `json:"media_type,omitzero"`
	Data      []byte `json:"data,omitzero"`
	FileID    string `json:"file_id,omitzero"`
	Meta
}

// ToolCall is a request of the model to run a tool.
type ToolCall struct {
	ID   string `json:"id,omitzero"`
	Name string `json:"name,omitzero"`
	// Arguments is the JSON text as the model wrote it, normalised only where
	// the wire demands it: "" and null become {}, an object in a string is
	// unwrapped once. It may be invalid JSON: see Valid.
	Arguments string `json:"arguments,omitzero"`
	// Signature is an opaque proof that some providers attach to a call and
	// want back with it (Gemini's thought signature). Provenance names its owner.
	Signature  string     `json:"signature,omitzero"`
	Provenance Provenance `json:"provenance,omitzero"`
	Meta
}

// ToolResult answers a ToolCall.
type ToolResult struct {
	CallID  string `json:"call_id,omitzero"`
	Name    string `json:"name,omitzero"`    // the tool's name; some providers want it
	Content []Part `json:"content,omitzero"` // Text, Image or File
	IsError bool   `json:"is_error,omitzero"`
	Meta
}

// Text joins the text parts of the result.
func (r ToolResult) Text() string { return joinText(r.Content) }

// Reasoning is what the model thought before it answered, with its provenance:
// only its own maker may be shown a signed or encrypted one again.
type Reasoning struct {
	// Text is the readable thinking or summary; empty where it is redacted.
	Text string `json:"text,omitzero"`
	// Summary says that Text is a summary and not the reasoning itself.
	Summary bool `json:"summary,omitzero"`
	// Redacted says that only Provenance.Blob holds the content.
	Redacted bool `json:"redacted,omitzero"`
	// ID is the provider's id of the reasoning item, if any.
	ID         string     `json:"id,omitzero"`
	Provenance Provenance `json:"provenance,omitzero"`
	Meta
}

// Provenance says where a signed or opaque part comes from. Two parts of the
// same Provider and Model may be replayed to each other's maker.
type Provenance struct {
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	// Field is the wire field it was read from, such as "reasoning_content",
	// "reasoning", "reasoning_details", "thinking".
	Field string `json:"field,omitzero"`
	// Signature is the provider's proof over the text.
	Signature string `json:"signature,omitzero"`
	// Blob is opaque content (redacted thinking, encrypted reasoning).
	Blob string `json:"blob,omitzero"`
}

// Refusal is what the model said instead of answering.
type Refusal struct {
	Text string `json:"text,omitzero"`
	Meta
}

// Opaque is a part of a kind that has no word here (server-side tools, new
// block types). It travels back to the same protocol as it came and is left
// out, with a notice, for any other.
type Opaque struct {
	// Kind is the wire's own type name.
	Kind string `json:"kind,omitzero"`
	// Raw is the whole part, verbatim; Raw.Protocol names its protocol.
	Raw Extra `json:"raw,omitzero"`
}

func (Text) part()       {}
func (Image) part()      {}
func (File) part()       {}
func (ToolCall) part()   {}
func (ToolResult) part() {}
func (Reasoning) part()  {}
func (Refusal) part()    {}
func (Opaque) part()     {}

// Protocol names a wire protocol.
type Protocol string

// The wire protocols.
const (
	OpenAIChat        Protocol = "openai-chat"
	OpenAIResponses   Protocol = "openai-responses"
	AnthropicMessages Protocol = "anthropic-messages"
	Gemini            Protocol = "gemini"
	OllamaNative      Protocol = "ollama-native"
)

// Extra is raw JSON that the vocabulary has no word for: the unknown members
// of one wire object, in their original order and spelling, or a whole value.
// It is only ever sent to the protocol that it came from.
type Extra struct {
	Protocol Protocol `json:"protocol,omitzero"`
	// JSON is a JSON object (for Opaque and Citation: any JSON value), verbatim; nil means none.
	JSON []byte `json:"json,omitzero"`
}

// For gives the raw JSON if it belongs to protocol p, else nil.
func (e Extra) For(p Protocol) []byte {
	if e.Protocol != p {
		return nil
	}
	return e.JSON
}
