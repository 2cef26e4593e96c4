package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// Head is what a look at the bytes of a client's request tells.
type Head struct {
	// Model is the model's name; empty where the body has none (Gemini's is in
	// the path). ModelAt is where its value lies in the body, quotes included;
	// empty if there is none.
	Model   string
	ModelAt [2]int
	// Stream says that the body asks for a streamed answer, Usage that it asks
	// for usage in it (chat's stream_options).
	Stream bool
	Usage  bool
	// MaxTokens and N are the limit of the answer and the number of answers; 0
	// if not set.
	MaxTokens int
	N         int
	// Tools says that the model may call tools.
	Tools bool
	// Text is about how many bytes of text the prompt has, tools included.
	Text int
	// Session is what the body says about the conversation that it belongs to:
	// the session of a metadata.user_id as Claude Code writes it, or the
	// prompt_cache_key; empty if nothing.
	Session string
	// PreviousID is previous_response_id.
	PreviousID string
	// Store is what the body says about keeping the answer; nil if nothing.
	Store *bool
	// Background asks for an answer that is made while nobody waits (Responses).
	Background bool
	// Thread says that the body names a thread of messages that the server keeps.
	Thread bool
	// Billing says that the instructions begin with Claude Code's billing header,
	// which only its maker should be sent: it spoils every prefix cache.
	Billing bool
	// Simple says that nothing in the body needs to be read in full before the
	// call can be healed: no images, files or sound, no form that the answer must
	// have, one answer.
	Simple bool
}

// maxNesting is how deep a body may nest. No client comes near it.
const maxNesting = 1000

// Peek reads the head of a request in one pass over its bytes, without
// decoding it.
//
// It sees that the body is one JSON object whose brackets and strings close,
// not that every value in it is valid. A member that it reads and that comes
// twice is refused, and so is one that has its name but for capitals: servers
// differ in which of the two they obey, and what is sent on as it is must mean
// one thing to everybody.
//
// The error is a *ninelives.Fault of class format, in words for the client.
func Peek(p ninelives.Protocol, body []byte) (Head, error) {
	k := peeker{protocol: p, b: body, head: Head{Simple: true}}
	if err := k.body(); err != nil {
		return Head{}, err
	}
	if k.declares && !k.forbids {
		k.head.Tools = true
	}
	if k.media || k.head.N > 1 {
		k.head.Simple = false
	}
	return k.head, nil
}

// Splice gives body with model as the value at the range at, which is that of
// Head.ModelAt. It never changes its input, and gives it back where nothing
// changes.
func Splice(body []byte, at [2]int, model string) []byte {
	if at[0] >= at[1] || at[1] > len(body) || rawjson.Is(body[at[0]:at[1]], model) {
		return body
	}
	return slices.Concat(body[:at[0]], rawjson.Quote(model), body[at[1]:])
}

// peeker reads one body.
type peeker struct {
	protocol ninelives.Protocol
	b        []byte
	head     Head
	seen     [][]byte // the members that were read
	room     [20][]byte
	declares bool // tools are declared
	forbids  bool // and none may be called
	media    bool // something in the prompt is not text
	prompt   bool // the value being passed is part of the prompt
}

func peekFault(format string, args ...any) error {
	return &ninelives.Fault{
		Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Phase: ninelives.PhasePrepare, Billed: ninelives.BilledNo,
		Status: 400, Type: "invalid_request_error", Message: fmt.Sprintf(format, args...),
	}
}

// body passes over the members of the body.
func (k *peeker) body() error {
	b := k.b
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return peekFault("the body is not a JSON object")
	}
	k.seen = k.room[:0]
	if i = skipSpace(b, i+1); i < len(b) && b[i] == '}' {
		return k.after(i + 1)
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return k.broken(i, "a name")
		}
		from := i
		if i = skipString(b, i); i < 0 {
			return peekFault("the body is not a JSON object: a string in it is not closed")
		}
		name := b[from+1 : i-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = rawjson.AppendString(nil, b[from:i])
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return k.broken(i, "a colon")
		}
		from = skipSpace(b, i+1)
		if err := k.capitals(name); err != nil {
			return err
		}
		k.prompt = isPrompt(name)
		to, err := k.pass(from)
		if err != nil {
			return err
		}
		if err := k.member(name, from, to); err != nil {
			return err
		}
		i = skipSpace(b, to)
		if i < len(b) && b[i] == '}' {
			return k.after(i + 1)
		}
		if i >= len(b) || b[i] != ',' {
			return k.broken(i, "a comma")
		}
		i = skipSpace(b, i+1)
	}
}

// broken says what is missing at a place.
func (k *peeker) broken(i int, what string) error {
	if i >= len(k.b) {
		return peekFault("the body is not a JSON object: it is not closed")
	}
	return peekFault("the body is not a JSON object: %s is missing at byte %d", what, i)
}

// after sees that nothing follows the object.
func (k *peeker) after(i int) error {
	if i = skipSpace(k.b, i); i < len(k.b) {
		return peekFault("the body is more than a JSON object: something follows it at byte %d", i)
	}
	return nil
}

// pass passes over the value at i and gives the place after it. In the prompt
// it looks for what is not text: a "type" that says so, or Gemini's members for
// data. An escape within such a word hides it; then the provider answers for it.
func (k *peeker) pass(i int) (int, error) {
	b := k.b
	if i >= len(b) {
		return 0, k.broken(i, "a value")
	}
	look := k.prompt
	switch b[i] {
	case '"':
		if i = skipString(b, i); i < 0 {
			return 0, peekFault("the body is not a JSON object: a string in it is not closed")
		}
		return i, nil
	case '{', '[':
	default:
		from := i
		for i < len(b) && isScalar(b[i]) {
			i++
		}
		if i == from {
			return 0, k.broken(i, "a value")
		}
		return i, nil
	}
	var objects [maxNesting/64 + 1]uint64 // one bit for each bracket that is open: it is a brace
	depth := 0
	typed := false // the last string was the name "type"
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			end := skipString(b, i)
			if end < 0 {
				return 0, peekFault("the body is not a JSON object: a string in it is not closed")
			}
			if n := end - i - 2; look && n >= 4 && n <= len("computer_screenshot") {
				word := b[i+1 : end-1]
				switch {
				case typed:
					typed = false
					k.media = k.media || isMediaType(word)
				case n == 4:
					typed = word[0] == 't' && string(word) == "type" && end < len(b) && (b[end] == ':' || isBlank(b[end]))
				default:
					k.media = k.media || isMediaName(word)
				}
			} else {
				typed = false
			}
			i = end
			continue
		case '{', '[':
			if depth == maxNesting {
				return 0, peekFault("the body nests deeper than %d levels", maxNesting)
			}
			bit := uint64(1) << (depth % 64)
			if c == '{' {
				objects[depth/64] |= bit
			} else {
				objects[depth/64] &^= bit
			}
			depth++
		case '}', ']':
			depth--
			if (objects[depth/64]&(1<<(depth%64)) != 0) != (c == '}') {
				return 0, peekFault("the body is not a JSON object: a bracket is closed by another one at byte %d", i)
			}
			if depth == 0 {
				return i + 1, nil
			}
		}
		i++
	}
	return 0, k.broken(i, "a bracket")
}

// isMediaType tells the types of content parts that are not text.
func isMediaType(word []byte) bool {
	switch string(word) {
	case "image", "image_url", "input_image", "computer_screenshot", "document", "file", "input_file", "input_audio", "audio",
		"video", "video_url", "container_upload":
		return true
	}
	return false
}

// isMediaName tells Gemini's names for what is not text.
func isMediaName(word []byte) bool {
	switch string(word) {
	case "inlineData", "inline_data", "fileData", "file_data":
		return true
	}
	return false
}

// isPrompt tells the members that hold the prompt.
func isPrompt(name []byte) bool {
	switch string(name) {
	case "messages", "input", "contents", "system", "instructions", "systemInstruction", "system_instruction":
		return true
	}
	return false
}

// lowercase are the members that decide where a request goes and what it holds.
// Servers written in Go read their names in any case.
var lowercase = []string{"model", "stream", "messages", "input", "system", "instructions", "tools", "functions", "max_tokens",
	"max_completion_tokens", "max_output_tokens", "n", "previous_response_id"}

// capitals refuses a name that some servers take for that of a member that is
// read here.
func (k *peeker) capitals(name []byte) error {
	if k.protocol == ninelives.Gemini || !bytes.ContainsFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 0x80 }) {
		return nil
	}
	for _, meant := range lowercase {
		if strings.EqualFold(string(name), meant) {
			return peekFault("the member %q is written %q", name, meant)
		}
	}
	return nil
}

// once refuses a member that comes again.
func (k *peeker) once(name []byte) error {
	for _, seen := range k.seen {
		if bytes.Equal(seen, name) {
			return peekFault("the member %q stands twice in the body", name)
		}
	}
	k.seen = append(k.seen, name)
	return nil
}

// member reads the member whose value lies from from to to.
func (k *peeker) member(name []byte, from, to int) error {
	v := k.b[from:to]
	h := &k.head
	switch {
	case isPrompt(name):
		h.Text += len(v)
		if string(name) == "system" {
			h.Billing = bytes.Contains(v[:min(len(v), 256)], []byte(billingHeader))
		}
		return k.once(name)
	case string(name) == "tools" || string(name) == "functions":
		h.Text += len(v)
		k.declares = k.declares || !rawjson.Empty(v)
		return k.once(name)
	}
	if k.protocol == ninelives.Gemini {
		return k.gemini(name, v)
	}
	chat, responses, messages := k.protocol == ninelives.OpenAIChat, k.protocol == ninelives.OpenAIResponses, k.protocol == ninelives.AnthropicMessages
	switch string(name) {
	case "model":
		h.Model, h.ModelAt = rawjson.String(v), [2]int{from, to}
	case "stream":
		h.Stream, _ = rawjson.Bool(v)
	case "stream_options":
		if chat {
			h.Usage, _ = rawjson.Bool(rawjson.Get(v, "include_usage"))
		}
	case "max_tokens":
		if (chat || messages) && h.MaxTokens == 0 {
			h.MaxTokens = positive(v)
		}
	case "max_completion_tokens":
		if n, ok := rawjson.Int(v); chat && ok && n >= 0 {
			h.MaxTokens = int(n) // it counts before max_tokens
		}
	case "max_output_tokens":
		if responses {
			h.MaxTokens = positive(v)
		}
	case "n":
		if chat {
			h.N = positive(v)
		}
	case "tool_choice", "function_call":
		k.forbids = rawjson.Is(v, "none") || rawjson.Is(rawjson.Get(v, "type"), "none")
	case "previous_response_id":
		h.PreviousID = rawjson.String(v)
	case "store":
		h.Store, _ = rawjson.Optional(rawjson.Bool(v))
	case "background":
		h.Background, _ = rawjson.Bool(v)
	case "thread":
		h.Thread = !rawjson.Null(v)
	case "prompt_cache_key":
		if h.Session == "" {
			h.Session = rawjson.String(v)
		}
	case "metadata":
		if messages {
			if session := claudeSession(rawjson.String(rawjson.Get(v, "user_id"))); session != "" {
				h.Session = session
			}
		}
	case "response_format":
		k.form(v, rawjson.Get(v, "type"))
	case "text":
		k.form(rawjson.Get(v, "format"), rawjson.Path(v, "format", "type"))
	case "output_config":
		k.form(rawjson.Get(v, "format"), nil)
	case "output_format", "audio":
		k.form(v, nil)
	default:
		return nil
	}
	return k.once(name)
}

// form notes a form that the answer must have.
func (k *peeker) form(v, kind []byte) {
	if !rawjson.Null(v) && !rawjson.Is(kind, "text") {
		k.head.Simple = false
		k.head.Text += len(v)
	}
}

// gemini reads a member of a request in Gemini's protocol.
func (k *peeker) gemini(name, v []byte) error {
	switch string(name) {
	case "toolConfig", "tool_config":
		for _, spelling := range [][2]string{{"functionCallingConfig", "mode"}, {"function_calling_config", "mode"}} {
			k.forbids = k.forbids || rawjson.Is(rawjson.Path(v, spelling[:]...), "NONE")
		}
	case "generationConfig", "generation_config":
		for m := range rawjson.Members(v) {
			switch string(m.Name) {
			case "maxOutputTokens", "max_output_tokens":
				k.head.MaxTokens = positive(m.Value)
			case "candidateCount", "candidate_count":
				k.head.N = positive(m.Value)
			case "responseSchema", "response_schema", "responseJsonSchema", "response_json_schema":
				k.form(m.Value, nil)
			case "responseMimeType", "response_mime_type":
				if !rawjson.Is(m.Value, "text/plain") {
					k.form(m.Value, nil)
				}
			case "responseModalities", "response_modalities":
				for el := range rawjson.Elements(m.Value) {
					if !strings.EqualFold(rawjson.String(el), "TEXT") {
						k.head.Simple = false
					}
				}
			default:
				continue
			}
			if err := k.once(m.Name); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	return k.once(name)
}

// positive is a whole number above zero; anything else is none.
func positive(v []byte) int {
	n, ok := rawjson.Int(v)
	if !ok || n < 0 || int64(int(n)) != n {
		return 0
	}
	return int(n)
}

// claudeSession finds the session in a user_id of Claude Code: a JSON object in
// newer versions, user_…_account_…_session_… in older ones.
//
// Source: bodies of Claude Code 2.1, November 2026.
func claudeSession(id string) string {
	if strings.HasPrefix(id, "{") && rawjson.Valid([]byte(id)) {
		return rawjson.String(rawjson.Get([]byte(id), "session_id"))
	}
	if !strings.HasPrefix(id, "user_") {
		return ""
	}
	_, session, _ := strings.Cut(id, "_session_")
	return session
}

// isScalar tells the bytes of numbers, true, false and null.
func isScalar(c byte) bool { return strings.IndexByte("0123456789+-.eEtrufalsn", c) >= 0 }

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func skipSpace(b []byte, i int) int {
	for i < len(b) && isBlank(b[i]) {
		i++
	}
	return i
}

// skipString gives the place after the string that begins at b[i]; -1 if it is
// not closed.
func skipString(b []byte, i int) int {
	first := i + 1
	// Most strings are short: for them a call costs more than a look.
	for i = first; i < len(b) && i < first+16; i++ {
		if b[i] == '"' {
			return i + 1
		}
		if b[i] == '\\' {
			break
		}
	}
	for {
		n := bytes.IndexByte(b[min(i, len(b)):], '"')
		if n < 0 {
			return -1
		}
		i += n
		escape := i
		for escape > first && b[escape-1] == '\\' {
			escape--
		}
		if i++; (i-1-escape)%2 == 0 {
			return i
		}
	}
}
