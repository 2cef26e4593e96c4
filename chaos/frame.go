package chaos

import "strings"

// frameKind says what a frame is for, so that a step can leave it out or
// strike after so many tokens.
type frameKind int

const (
	frameStart  frameKind = iota // before any content
	frameToken                   // one token of reasoning, text, refusal or arguments
	frameOther                   // structure
	frameFinish                  // the reason why the answer ends
	frameUsage                   // the counts
	frameDone                    // the end marker
)

// frame is one event of a stream.
type frame struct {
	kind  frameKind
	event string // "" where the protocol names no events
	data  string
}

// bytes writes the frame as a server-sent event.
func (f frame) bytes(step Step) string {
	var b strings.Builder
	if f.event != "" && !step.omits(omitEvents) {
		b.WriteString("event: " + f.event + "\n")
	}
	b.WriteString("data: " + f.data + "\n\n")
	if step.CRLF {
		return strings.ReplaceAll(b.String(), "\n", "\r\n")
	}
	return b.String()
}

// dialect writes answers in one protocol.
type dialect struct {
	// stream gives the events of a streamed answer.
	stream func(*answer) []frame
	// whole gives the body of an answer that is not streamed.
	whole func(*answer) string
	// fail gives the error event of a stream that breaks.
	fail func(reported, *answer) frame
	// alive is the protocol's sign of life.
	alive string
	// malformed is an event that is no JSON.
	malformed frame
}

var dialects = map[protocol]dialect{
	chat: {chatStream, chatWhole, chatFail, ": keep-alive\n\n",
		frame{frameOther, "", `{"object":"chat.completion.chunk","choices":[{"delta":{"content":`}},
	responses: {responsesStream, responsesWhole, responsesFail, ": keep-alive\n\n",
		frame{frameOther, "response.output_text.delta", `{"type":"response.output_text.delta","delta":`}},
	messages: {messagesStream, messagesWhole, messagesFail, "event: ping\ndata: {\"type\": \"ping\"}\n\n",
		frame{frameOther, "content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":`}},
	gemini: {geminiStream, geminiWhole, geminiFail, ": keep-alive\n\n",
		frame{frameOther, "", `{"candidates":[{"content":{"parts":[`}},
}
