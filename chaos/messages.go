package chaos

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Anthropic Messages.

var messagesFinish = map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal", "refusal": "refusal"}

func (a *answer) messagesHead(content, stop string, output int) string {
	return `{"id":"msg_` + a.id + `","type":"message","role":"assistant","model":` + quote(a.model) + `,"content":` + content +
		`,"stop_reason":` + quoteOrNull(stop) + `,"stop_sequence":null,"usage":{"input_tokens":` + strconv.Itoa(max(0, a.input-a.scripted.Cached)) + // without what was cached
		`,"cache_creation_input_tokens":0,"cache_read_input_tokens":` + strconv.Itoa(a.scripted.Cached) + `,"output_tokens":` + strconv.Itoa(output) + `}}`
}

func messagesStream(a *answer) []frame {
	stop := frame{frameDone, "message_stop", `{"type":"message_stop"}`}
	finish := frame{frameFinish, "message_delta", `{"type":"message_delta","delta":{"stop_reason":` + quote(messagesFinish[a.finish]) +
		`,"stop_sequence":null},"usage":{"output_tokens":` + strconv.Itoa(a.output()) + `}}`}
	switch a.empty {
	case EmptyNull:
		return []frame{{frameStart, "message_start", `{"type":"message_start","message":` + a.messagesHead("null", "", 0) + `}`}, finish, stop}
	case EmptyDone:
		return []frame{stop}
	case EmptyBlank:
		return nil
	}
	frames := []frame{
		{frameStart, "message_start", `{"type":"message_start","message":` + a.messagesHead("[]", "", 1) + `}`},
		{frameStart, "ping", `{"type": "ping"}`},
	}
	index := 0
	block := func(start string, kind, field string, words []string, extra ...string) {
		at := `"index":` + strconv.Itoa(index)
		frames = append(frames, frame{frameOther, "content_block_start", `{"type":"content_block_start",` + at + `,"content_block":` + start + `}`})
		for _, w := range words {
			frames = append(frames, frame{frameToken, "content_block_delta",
				`{"type":"content_block_delta",` + at + `,"delta":{"type":"` + kind + `","` + field + `":` + quote(w) + `}}`})
		}
		for _, delta := range extra {
			frames = append(frames, frame{frameOther, "content_block_delta", `{"type":"content_block_delta",` + at + `,"delta":` + delta + `}`})
		}
		frames = append(frames, frame{frameOther, "content_block_stop", `{"type":"content_block_stop",` + at + `}`})
		index++
	}
	if len(a.reasoning) > 0 {
		block(`{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking", a.reasoning,
			`{"type":"signature_delta","signature":`+quote(a.proof)+`}`)
	}
	if words := append(a.refusal, a.text...); len(words) > 0 {
		block(`{"type":"text","text":""}`, "text_delta", "text", words)
	}
	for _, c := range a.calls {
		args := c.Arguments
		switch a.fault {
		case NullArgs:
			args = ""
		case DoubleEncoded:
			args = quote(args)
		}
		start, words := a.toolUse(c, "{}"), fragments(args)
		if a.fault == ObjectArgs && json.Valid([]byte(args)) { // the arguments come with the start of the block
			start, words = a.toolUse(c, c.Arguments), nil
		}
		block(start, "input_json_delta", "partial_json", words)
	}
	return append(frames, finish, stop)
}

func (a *answer) toolUse(c made, input string) string {
	id := `"id":` + quote("toolu_"+c.ID) + `,`
	if a.fault == MissingID {
		id = ``
	}
	return `{"type":"tool_use",` + id + `"name":` + quote(c.Name) + `,"input":` + input + `}`
}

func messagesWhole(a *answer) string {
	switch a.empty {
	case EmptyNull:
		return a.messagesHead("null", "end_turn", 0)
	case EmptyBlank:
		return ""
	}
	var blocks []string
	if len(a.reasoning) > 0 {
		blocks = append(blocks, `{"type":"thinking","thinking":`+quote(strings.Join(a.reasoning, ""))+`,"signature":`+quote(a.proof)+`}`)
	}
	if words := append(a.refusal, a.text...); len(words) > 0 {
		blocks = append(blocks, `{"type":"text","text":`+quote(strings.Join(words, ""))+`}`)
	}
	for _, c := range a.calls {
		input := c.Arguments
		switch {
		case a.fault == NullArgs:
			input = "null"
		case a.fault == DoubleEncoded:
			input = a.arguments(c)
		case !json.Valid([]byte(input)): // an object cannot be cut or broken: such servers put the text there
			input = quote(input)
		}
		blocks = append(blocks, a.toolUse(c, input))
	}
	return a.messagesHead(`[`+strings.Join(blocks, ",")+`]`, messagesFinish[a.finish], a.output())
}

func messagesFail(r reported, a *answer) frame {
	return frame{frameOther, "error", `{"type":"error","error":` + r.object(messages) + `,"request_id":"req_` + a.id + `"}`}
}
