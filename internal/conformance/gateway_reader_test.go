package conformance_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	ninelives "github.com/ninelives-ai/ninelives"
)

// understood is what a plain client of a protocol makes of the bytes of an
// answer: one that goes by the protocol's documentation, and by nothing of this
// module's decoders, so that it cannot share their mistakes.
type understood struct {
	text, refusal string
	calls         []saidCall
	model, finish string
	input, output int  // tokens
	counted       bool // that were told
	ended         bool // with the protocol's last event
	marked        bool // and its end marker, where it has one of its own
	failure       string
	message       string // of the failure
	// wrong is what such a client trips over.
	wrong []string
}

// saidCall is a tool call as a client gets it.
type saidCall struct{ ID, Name, Arguments string }

func (u *understood) trip(format string, args ...any) {
	u.wrong = append(u.wrong, fmt.Sprintf(format, args...))
}

// sseEvent is an event as it stands in a stream.
type sseEvent struct{ name, data string }

// eventsOf splits a stream into its events. rest is what no blank line ends.
func eventsOf(body []byte) (events []sseEvent, rest string) {
	blocks := strings.Split(strings.ReplaceAll(string(body), "\r\n", "\n"), "\n\n")
	for _, block := range blocks[:len(blocks)-1] {
		var e sseEvent
		for line := range strings.SplitSeq(block, "\n") {
			switch field, value, _ := strings.Cut(line, ":"); field {
			case "event":
				e.name = strings.TrimPrefix(value, " ")
			case "data":
				e.data = strings.TrimPrefix(e.data+"\n"+strings.TrimPrefix(value, " "), "\n")
			}
		}
		if e != (sseEvent{}) {
			events = append(events, e)
		}
	}
	return events, blocks[len(blocks)-1]
}

// streamReader follows a stream event by event.
type streamReader struct {
	understood
	protocol ninelives.Protocol
	id       string
	began    bool
	role     bool
	blocks   int    // Messages: that have begun
	open     string // Messages: the kind of the one that is open
	sequence float64
	items    []*saidItem // Responses
}

// saidItem is an item of Responses.
type saidItem struct {
	id, kind, text string
	call           saidCall
	done           bool
}

// readStream reads a stream to its end; cut is how the connection ended, nil if
// as if all were well.
func readStream(p ninelives.Protocol, body []byte, cut error) understood {
	r := &streamReader{protocol: p, sequence: -1}
	events, rest := eventsOf(body)
	for _, e := range events {
		twice := p == ninelives.OpenAIResponses && e.name == "response.failed" // after error: some clients hear only the one, some the other
		if r.ended && r.marked || r.failure != "" && !twice {
			r.trip("an event after the end: %+v", e)
		}
		if p == ninelives.OpenAIChat && e.data == "[DONE]" {
			if r.marked = true; r.finish == "" {
				r.trip("[DONE] without a finish_reason")
			}
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(e.data), &v); err != nil {
			r.trip("an event that is no JSON: %+v", e)
			continue
		}
		if f := at(v, "error"); f != nil && (p == ninelives.OpenAIChat || p == ninelives.Gemini) {
			r.failed(f)
			continue
		}
		switch p {
		case ninelives.OpenAIChat:
			r.chat(v)
		case ninelives.AnthropicMessages:
			r.messages(e.name, v)
		case ninelives.OpenAIResponses:
			r.responses(e.name, v)
		case ninelives.Gemini:
			r.gemini(v)
		}
	}
	switch {
	case r.ended && r.failure != "":
		r.trip("it ends and fails")
	case r.ended && cut != nil:
		r.trip("cut after its end: %v", cut)
	case !r.ended && r.failure == "" && cut == nil:
		r.trip("it stops as if all were well, without its end")
	case !r.ended && r.failure == "":
		r.trip("cut without a word: %v", cut)
	case r.failure != "" && cut == nil && p != ninelives.OpenAIResponses: // where it is an end of its own
		r.trip("it fails, and then the connection ends as if all were well")
	case rest != "":
		r.trip("half an event at the end: %q", rest)
	}
	return r.understood
}

func (r *streamReader) failed(f any) {
	r.failure = cmp.Or(text(f, "code"), text(f, "status"), text(f, "type"), "?")
	r.message = text(f, "message")
}

// same holds that every event belongs to one answer.
func (r *streamReader) same(id, model string) {
	if r.id != "" && id != r.id {
		r.trip("the id %q in the answer %q", id, r.id)
	}
	if r.model != "" && model != "" && model != r.model {
		r.trip("the model %q in an answer of %q", model, r.model)
	}
	r.id, r.model = id, cmp.Or(r.model, model)
}

func (r *streamReader) chat(v any) {
	r.same(text(v, "id"), text(v, "model"))
	if n, ok := r.usage(at(v, "usage"), "prompt_tokens", "completion_tokens"); ok && n > 0 {
		r.trip("the usage comes twice")
	}
	for _, c := range list(v, "choices") {
		if text(c, "delta", "role") != "" {
			if r.role {
				r.trip("the answer begins twice")
			}
			r.role = true
		}
		if !r.role {
			r.trip("a delta before the role")
		}
		said := text(c, "delta", "content") + text(c, "delta", "refusal")
		if r.finish != "" && (said != "" || len(list(c, "delta", "tool_calls")) > 0 || text(c, "finish_reason") != "") {
			r.trip("more after the finish: %v", c)
		}
		r.text += text(c, "delta", "content")
		r.refusal += text(c, "delta", "refusal")
		for _, call := range list(c, "delta", "tool_calls") {
			i, ok := at(call, "index").(float64)
			if !ok || int(i) > len(r.calls) {
				r.trip("a call with the index %v after %d", at(call, "index"), len(r.calls))
				continue
			}
			if int(i) == len(r.calls) {
				if text(call, "id") == "" || text(call, "function", "name") == "" {
					r.trip("a call begins without id or name: %v", call)
				}
				r.calls = append(r.calls, saidCall{ID: text(call, "id"), Name: text(call, "function", "name")})
			}
			r.calls[int(i)].Arguments += text(call, "function", "arguments")
		}
		if f := text(c, "finish_reason"); f != "" {
			r.finish, r.ended = f, true
		}
	}
}

func (r *streamReader) messages(name string, v any) {
	kind := text(v, "type")
	if name != kind {
		r.trip("the event %q has the type %q", name, kind) // the SDKs go by the name
	}
	if kind != "message_start" && kind != "ping" && kind != "error" && !r.began {
		r.trip("%s before message_start", kind)
	}
	if r.ended {
		r.trip("%s after message_stop", kind)
	}
	index, _ := at(v, "index").(float64)
	switch kind {
	case "ping":
	case "message_start":
		if r.began {
			r.trip("the answer begins twice")
		}
		r.began = true
		r.same(text(v, "message", "id"), text(v, "message", "model"))
		r.input = inputOf(at(v, "message", "usage"))
	case "content_block_start":
		if r.open != "" || int(index) != r.blocks {
			r.trip("block %v begins while %q is open, after %d", index, r.open, r.blocks)
		}
		r.blocks++
		r.open = cmp.Or(text(v, "content_block", "type"), "?")
		r.text += text(v, "content_block", "text")
		if r.open == "tool_use" {
			r.calls = append(r.calls, saidCall{ID: text(v, "content_block", "id"), Name: text(v, "content_block", "name")})
		}
	case "content_block_delta":
		if r.open == "" || int(index) != r.blocks-1 {
			r.trip("a delta of block %v, open is %d", index, r.blocks-1)
			return
		}
		switch d := text(v, "delta", "type"); {
		case d == "text_delta" && r.open == "text":
			r.text += text(v, "delta", "text")
		case d == "input_json_delta" && r.open == "tool_use":
			r.calls[len(r.calls)-1].Arguments += text(v, "delta", "partial_json")
		case (d == "thinking_delta" || d == "signature_delta") && r.open == "thinking":
		default:
			r.trip("a %s in a block of %s", d, r.open)
		}
	case "content_block_stop":
		if r.open == "" || int(index) != r.blocks-1 {
			r.trip("block %v ends, open is %d", index, r.blocks-1)
		}
		r.open = ""
	case "message_delta":
		if r.open != "" {
			r.trip("message_delta while a block is open")
		}
		r.finish = text(v, "delta", "stop_reason")
		if n, ok := at(v, "usage", "output_tokens").(float64); ok {
			r.output, r.counted = int(n), true
		} else {
			r.trip("message_delta without output_tokens") // the SDKs crash
		}
		if n := inputOf(at(v, "usage")); n > 0 {
			r.input = n
		}
	case "message_stop":
		if r.finish == "" {
			r.trip("message_stop without a stop_reason")
		}
		r.ended, r.marked = true, true
	case "error":
		r.failed(at(v, "error"))
	default:
		r.trip("an unknown event %q", kind)
	}
}

func inputOf(usage any) int {
	return count(usage, "input_tokens") + count(usage, "cache_read_input_tokens") + count(usage, "cache_creation_input_tokens")
}

func (r *streamReader) responses(name string, v any) {
	kind := text(v, "type")
	if name != kind {
		r.trip("the event %q has the type %q", name, kind)
	}
	if n, ok := at(v, "sequence_number").(float64); ok {
		if n <= r.sequence {
			r.trip("sequence_number %v after %v", n, r.sequence)
		}
		r.sequence = n
	}
	if !r.began && kind != "response.created" && kind != "error" {
		r.trip("%s before response.created", kind)
	}
	if r.ended {
		r.trip("%s after the end", kind)
	}
	if whole := at(v, "response"); whole != nil {
		r.same(text(whole, "id"), text(whole, "model"))
	}
	item := func() *saidItem {
		i, _ := at(v, "output_index").(float64)
		if int(i) >= len(r.items) || r.items[int(i)].done {
			r.trip("%s of item %v, of which there are %d", kind, i, len(r.items))
			return &saidItem{}
		}
		it := r.items[int(i)]
		if id := cmp.Or(text(v, "item_id"), text(v, "item", "id")); id != it.id {
			r.trip("%s names the item %q, which is %q", kind, id, it.id)
		}
		return it
	}
	switch kind {
	case "response.created":
		if r.began {
			r.trip("the answer begins twice")
		}
		r.began = true
	case "response.output_item.added":
		if i, _ := at(v, "output_index").(float64); int(i) != len(r.items) {
			r.trip("item %v is added after %d", i, len(r.items))
		}
		r.items = append(r.items, &saidItem{id: text(v, "item", "id"), kind: text(v, "item", "type"),
			call: saidCall{ID: text(v, "item", "call_id"), Name: text(v, "item", "name")}})
	case "response.output_text.delta":
		it := item()
		it.text += text(v, "delta")
		r.text += text(v, "delta")
	case "response.refusal.delta":
		item()
		r.refusal += text(v, "delta")
	case "response.function_call_arguments.delta":
		it := item()
		it.call.Arguments += text(v, "delta")
	case "response.output_text.done", "response.function_call_arguments.done":
		it := item()
		if said := cmp.Or(text(v, "text"), text(v, "arguments")); said != cmp.Or(it.text, it.call.Arguments) {
			r.trip("%s says %q, its deltas %q", kind, said, cmp.Or(it.text, it.call.Arguments))
		}
	case "response.output_item.done":
		it := item()
		it.done = true
		if it.kind == "function_call" { // Codex runs it now
			if said := text(v, "item", "arguments"); said != it.call.Arguments && it.call.Arguments != "" {
				r.trip("a call is done with %q, its deltas were %q", said, it.call.Arguments)
			}
			r.calls = append(r.calls, saidCall{ID: text(v, "item", "call_id"), Name: text(v, "item", "name"), Arguments: text(v, "item", "arguments")})
		}
	case "response.completed", "response.incomplete":
		whole := readWhole(r.protocol, at(v, "response"))
		r.finish, r.ended, r.marked = whole.finish, true, true
		r.input, r.output, r.counted = whole.input, whole.output, whole.counted
		if whole.text != r.text || whole.refusal != r.refusal || len(whole.calls) != len(r.calls) {
			r.trip("the answer at the end is another one: %q, %q, %d calls", whole.text, whole.refusal, len(whole.calls))
		}
		for _, it := range r.items {
			if !it.done {
				r.trip("the item %q is not done at the end", it.id)
			}
		}
	case "response.failed":
		r.failed(at(v, "response", "error"))
	case "error":
		r.failed(v)
	case "response.in_progress", "response.content_part.added", "response.content_part.done", "response.refusal.done",
		"response.reasoning_summary_part.added", "response.reasoning_summary_part.done",
		"response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "response.reasoning_text.delta", "response.reasoning_text.done":
	default:
		r.trip("an unknown event %q", kind)
	}
}

func (r *streamReader) gemini(v any) {
	r.same(text(v, "responseId"), text(v, "modelVersion"))
	if u := at(v, "usageMetadata"); u != nil {
		r.input, r.output, r.counted = count(u, "promptTokenCount"), count(u, "candidatesTokenCount"), true
	}
	if why := text(v, "promptFeedback", "blockReason"); why != "" {
		r.finish, r.ended = why, true
	}
	for _, c := range list(v, "candidates") {
		for _, p := range list(c, "content", "parts") {
			if r.finish != "" {
				r.trip("more after the finish: %v", p)
			}
			if thought, _ := at(p, "thought").(bool); !thought {
				r.text += text(p, "text")
			}
			r.geminiCall(p)
		}
		if f := text(c, "finishReason"); f != "" {
			if r.finish != "" {
				r.trip("the answer ends twice")
			}
			r.finish, r.ended = f, true
		}
	}
}

func (u *understood) geminiCall(part any) {
	if c := at(part, "functionCall"); c != nil {
		arguments, _ := json.Marshal(at(c, "args"))
		u.calls = append(u.calls, saidCall{ID: text(c, "id"), Name: text(c, "name"), Arguments: string(arguments)})
	}
}

// usage takes an OpenAI usage; n is how many came before.
func (u *understood) usage(v any, input, output string) (n int, ok bool) {
	if v == nil {
		return 0, false
	}
	if u.counted {
		n = 1
	}
	u.input, u.output, u.counted = count(v, input), count(v, output), true
	return n, true
}
