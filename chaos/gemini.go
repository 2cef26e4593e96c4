package chaos

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Gemini generateContent.

var geminiFinish = map[string]string{"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "content_filter": "SAFETY", "refusal": "STOP"}

func (a *answer) geminiChunk(parts, finish string) string {
	s := `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"}`
	if finish != "" {
		s += `,"finishReason":` + quote(finish)
	}
	return s + `,"index":0}],` + a.geminiTail(finish != "")
}

func (a *answer) geminiTail(final bool) string {
	s := `"usageMetadata":{"promptTokenCount":` + strconv.Itoa(a.input)
	if final {
		said := max(0, a.output()-a.thought())
		s += `,"candidatesTokenCount":` + strconv.Itoa(said)
		if n := a.thought(); n > 0 {
			s += `,"thoughtsTokenCount":` + strconv.Itoa(n)
		}
		if n := a.scripted.Cached; n > 0 {
			s += `,"cachedContentTokenCount":` + strconv.Itoa(n)
		}
		s += `,"totalTokenCount":` + strconv.Itoa(a.input+said+a.thought())
	} else {
		s += `,"totalTokenCount":` + strconv.Itoa(a.input)
	}
	return s + `},"modelVersion":` + quote(a.model) + `,"responseId":"` + a.id + `"}`
}

// reason is the finish reason; a call that is no JSON object is reported, not sent.
func (a *answer) reason() string {
	if a.finish != "length" && slices.ContainsFunc(a.calls, func(c made) bool { return !isObject(c.Arguments) }) {
		return "MALFORMED_FUNCTION_CALL"
	}
	return geminiFinish[a.finish]
}

// geminiCalls writes the calls; the first one of several carries the signature.
func (a *answer) geminiCalls() []string {
	var parts []string
	proof := `,"thoughtSignature":` + quote(a.proof)
	for _, c := range a.calls {
		args := c.Arguments
		switch {
		case a.fault == NullArgs:
			args = "null"
		case !isObject(args):
			continue
		}
		parts = append(parts, `{"functionCall":{"name":`+quote(c.Name)+`,"args":`+args+`}`+proof+`}`)
		proof = ""
	}
	return parts
}

// isObject reports whether a JSON text is an object.
func isObject(s string) bool {
	var m map[string]any
	return json.Unmarshal([]byte(s), &m) == nil && m != nil
}

// textProof is the signature that an answer without calls carries on its text.
func (a *answer) textProof() string {
	if len(a.reasoning) == 0 || len(a.calls) > 0 {
		return ""
	}
	return `,"thoughtSignature":` + quote(a.proof)
}

func (a *answer) geminiEmpty() (string, bool) {
	switch a.empty {
	case EmptyNull:
		return `{"candidates":null,` + a.geminiTail(true), true
	case EmptyNone:
		return `{"candidates":[],` + a.geminiTail(true), true
	case EmptyDone:
		return `{"candidates":[{"finishReason":"STOP","index":0}],` + a.geminiTail(true), true
	case EmptyBlank:
		return "", true
	}
	return "", false
}

func geminiStream(a *answer) []frame {
	if data, empty := a.geminiEmpty(); empty {
		if data == "" {
			return nil
		}
		return []frame{{kind: frameFinish, data: data}}
	}
	var frames []frame
	for _, w := range a.reasoning {
		frames = append(frames, frame{kind: frameToken, data: a.geminiChunk(`{"text":`+quote(w)+`,"thought":true}`, "")})
	}
	for _, w := range append(a.refusal, a.text...) {
		frames = append(frames, frame{kind: frameToken, data: a.geminiChunk(`{"text":`+quote(w)+`}`, "")})
	}
	for _, call := range a.geminiCalls() {
		frames = append(frames, frame{kind: frameToken, data: a.geminiChunk(call, "")})
	}
	return append(frames, frame{kind: frameFinish, data: a.geminiChunk(`{"text":""`+a.textProof()+`}`, a.reason())})
}

func geminiWhole(a *answer) string {
	if data, empty := a.geminiEmpty(); empty {
		return data
	}
	var parts []string
	if len(a.reasoning) > 0 {
		parts = append(parts, `{"text":`+quote(strings.Join(a.reasoning, ""))+`,"thought":true}`)
	}
	if words := append(a.refusal, a.text...); len(words) > 0 {
		parts = append(parts, `{"text":`+quote(strings.Join(words, ""))+a.textProof()+`}`)
	}
	parts = append(parts, a.geminiCalls()...)
	return a.geminiChunk(strings.Join(parts, ","), a.reason())
}

func geminiFail(r reported, _ *answer) frame {
	return frame{kind: frameOther, data: r.google(r.details()...)}
}
