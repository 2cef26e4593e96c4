package chaos

import (
	"strconv"
	"strings"
)

// OpenAI chat/completions.

var chatFinish = map[string]string{"stop": "stop", "length": "length", "tool_calls": "tool_calls", "content_filter": "content_filter", "refusal": "stop"}

func (a *answer) chatChunk(delta, finish string) string {
	return a.chatHead("chat.completion.chunk") + `"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + quoteOrNull(finish) + `}]}`
}

func (a *answer) chatHead(object string) string {
	return `{"id":"chatcmpl-` + a.id + `","object":"` + object + `","created":` + strconv.FormatInt(a.created, 10) + `,"model":` + quote(a.model) + `,`
}

func (a *answer) chatUsage() string {
	s := `{"prompt_tokens":` + strconv.Itoa(a.input) + `,"completion_tokens":` + strconv.Itoa(a.output()) + `,"total_tokens":` + strconv.Itoa(a.input+a.output())
	if n := a.thought(); n > 0 {
		s += `,"completion_tokens_details":{"reasoning_tokens":` + strconv.Itoa(n) + `}`
	}
	if n := a.scripted.Cached; n > 0 {
		s += `,"prompt_tokens_details":{"cached_tokens":` + strconv.Itoa(n) + `}`
	}
	return s + `}`
}

func chatStream(a *answer) []frame {
	done := frame{kind: frameDone, data: "[DONE]"}
	switch a.empty {
	case EmptyNull:
		return []frame{{kind: frameOther, data: a.chatHead("chat.completion.chunk") + `"choices":null}`}, done}
	case EmptyNone:
		return []frame{{kind: frameOther, data: a.chatHead("chat.completion.chunk") + `"choices":[]}`}, done}
	case EmptyDone:
		return []frame{done}
	case EmptyBlank:
		return nil
	}
	frames := []frame{{kind: frameStart, data: a.chatChunk(`{"role":"assistant","content":""}`, "")}}
	add := func(field string, words []string) {
		for _, w := range words {
			frames = append(frames, frame{kind: frameToken, data: a.chatChunk(`{"`+field+`":`+quote(w)+`}`, "")})
		}
	}
	add("reasoning_content", a.reasoning)
	add("refusal", a.refusal)
	add("content", a.text)
	for i, c := range a.calls {
		frames = append(frames, a.chatCall(i, c)...)
	}
	frames = append(frames, frame{kind: frameFinish, data: a.chatChunk(`{}`, chatFinish[a.finish])})
	if a.usage {
		frames = append(frames, frame{kind: frameUsage, data: a.chatHead("chat.completion.chunk") + `"choices":[],"usage":` + a.chatUsage() + `}`})
	}
	return append(frames, done)
}

// chatCall streams one call: id and name first, then the arguments in pieces.
func (a *answer) chatCall(i int, c made) []frame {
	index := `"index":` + strconv.Itoa(i) + `,`
	switch a.fault {
	case DuplicateIndex:
		index = `"index":0,`
	case MissingIndex:
		index = ``
	}
	id := `"id":` + quote(c.ID) + `,`
	if a.fault == MissingID {
		id = ``
	}
	delta := func(head, function string) frame {
		return frame{kind: frameToken, data: a.chatChunk(`{"tool_calls":[{`+index+head+`"function":{`+function+`}}]}`, "")}
	}
	switch a.fault {
	case ObjectArgs, NullArgs, DoubleEncoded: // such servers send a call in one piece
		return []frame{delta(id+`"type":"function",`, `"name":`+quote(c.Name)+`,"arguments":`+a.arguments(c))}
	}
	frames := []frame{delta(id+`"type":"function",`, `"name":`+quote(c.Name)+`,"arguments":""`)}
	for _, f := range fragments(c.Arguments) {
		frames = append(frames, delta("", `"arguments":`+quote(f)))
	}
	return frames
}

func chatWhole(a *answer) string {
	tail := `,"usage":` + a.chatUsage() + `}`
	switch a.empty {
	case EmptyNull:
		return a.chatHead("chat.completion") + `"choices":null` + tail
	case EmptyNone:
		return a.chatHead("chat.completion") + `"choices":[]` + tail
	case EmptyBlank:
		return ""
	}
	content := quote(strings.Join(a.text, ""))
	if len(a.text) == 0 && len(a.calls)+len(a.refusal) > 0 {
		content = "null"
	}
	message := `{"role":"assistant","content":` + content
	if len(a.reasoning) > 0 {
		message += `,"reasoning_content":` + quote(strings.Join(a.reasoning, ""))
	}
	if len(a.refusal) > 0 {
		message += `,"refusal":` + quote(strings.Join(a.refusal, ""))
	}
	if len(a.calls) > 0 {
		var calls []string
		for _, c := range a.calls {
			id := `"id":` + quote(c.ID) + `,`
			if a.fault == MissingID {
				id = ``
			}
			calls = append(calls, `{`+id+`"type":"function","function":{"name":`+quote(c.Name)+`,"arguments":`+a.arguments(c)+`}}`)
		}
		message += `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	return a.chatHead("chat.completion") + `"choices":[{"index":0,"message":` + message + `},"finish_reason":` + quote(chatFinish[a.finish]) + `}]` + tail
}

func chatFail(r reported, _ *answer) frame {
	return frame{kind: frameOther, data: `{"error":` + r.object(chat) + `}`}
}
