package wire

import (
	"strings"
	"unicode"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// FieldThinkTags is the Provenance.Field of reasoning that came as
// <think>…</think> in the text, and goes back so.
const FieldThinkTags = "<think>"

// FieldThinkingPart is the Provenance.Field of reasoning that came as a
// "thinking" part of a chat message's content (Mistral), and goes back so.
const FieldThinkingPart = "content.thinking"

// The tags that models write into their text.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	callOpen   = "<tool_call>"
	callClose  = "</tool_call>"
)

// Segment is a stretch of what a model wrote: text, reasoning (Reasoning is
// true), or a call (Name is not empty).
type Segment struct {
	Text      string
	Reasoning bool
	// Name and Arguments are those of a call written as text.
	Name      string
	Arguments string
}

// TextSplitter takes apart what some models write into their text although it
// is none: thinking in <think> tags, and calls in <tool_call> tags. However the
// text is cut into pieces, the segments' contents are the same.
//
// Thinking is only looked for at the head of the answer, so that an answer
// about the tag stays an answer; white space around it is dropped. A call is
// only taken for one if its tag is closed, its JSON is whole and its name is
// that of a tool of the request; else it stays text.
type TextSplitter struct {
	think, headless, calls bool
	tools                  []ninelives.Tool
	state                  splitState
	held                   string // not decided yet
	gap                    string // white space before the <tool_call> that is open
	line                   bool   // text has begun on the current line
}

type splitState int

const (
	splitHead     splitState = iota // nothing but white space so far
	splitThinking                   // inside <think>
	splitAfter                      // white space after </think>
	splitText
	splitCall // inside <tool_call>
)

// NewTextSplitter gives the splitter for an answer in a dialect; nil where its
// text is only text.
func NewTextSplitter(o DecodeOptions) *TextSplitter {
	s := &TextSplitter{
		think:    o.Dialect.ThinkTags || o.Dialect.ReasoningOpen,
		headless: o.Dialect.ReasoningOpen,
		calls:    o.Dialect.TextToolCalls && len(o.Tools) > 0,
		tools:    o.Tools,
	}
	if !s.think && !s.calls {
		return nil
	}
	if !s.think {
		s.state = splitText
	}
	return s
}

// Write takes in a piece of text and gives the segments that are decided.
func (s *TextSplitter) Write(text string, out func(Segment)) {
	s.held += text
	for s.step(out) {
	}
}

// Flush gives what is still held back, at the end of the answer.
func (s *TextSplitter) Flush(out func(Segment)) {
	switch s.state {
	case splitThinking:
		s.give(out, Segment{Text: strings.TrimRightFunc(s.held, unicode.IsSpace), Reasoning: true})
	case splitCall:
		s.give(out, Segment{Text: s.gap + callOpen + s.held})
	case splitAfter:
	default:
		s.give(out, Segment{Text: s.held})
	}
	s.held = ""
}

func (s *TextSplitter) give(out func(Segment), seg Segment) {
	if seg.Text == "" && seg.Name == "" {
		return
	}
	if seg.Name != "" {
		s.line = false
	} else if !seg.Reasoning {
		last := seg.Text[strings.LastIndexByte(seg.Text, '\n')+1:]
		blank := strings.TrimSpace(last) == ""
		s.line = !blank || s.line && len(last) == len(seg.Text)
	}
	out(seg)
}

// step decides on as much of what is held as it can; it reports whether the
// rest is to be looked at again.
func (s *TextSplitter) step(out func(Segment)) bool {
	switch s.state {
	case splitHead:
		body := strings.TrimLeftFunc(s.held, unicode.IsSpace)
		switch {
		case strings.HasPrefix(body, thinkOpen):
			s.held = strings.TrimLeftFunc(body[len(thinkOpen):], unicode.IsSpace)
			s.state = splitThinking
			s.headless = s.held == "" // white space may still follow
			return true
		case strings.HasPrefix(thinkOpen, body):
			return false
		case s.headless:
			s.held, s.headless = body, false
			s.state = splitThinking
		default:
			s.state = splitText
		}
		return true

	case splitThinking:
		if s.headless { // still at the head of the thinking
			if s.held = strings.TrimLeftFunc(s.held, unicode.IsSpace); s.held == "" {
				return false
			}
			s.headless = false
		}
		if before, after, found := strings.Cut(s.held, thinkClose); found {
			s.give(out, Segment{Text: strings.TrimRightFunc(before, unicode.IsSpace), Reasoning: true})
			s.held, s.state = after, splitAfter
			return true
		}
		// White space may turn out to be the last before the tag.
		n := len(s.held) - partial(s.held, thinkClose)
		n = len(strings.TrimRightFunc(s.held[:n], unicode.IsSpace))
		s.give(out, Segment{Text: s.held[:n], Reasoning: true})
		s.held = s.held[n:]
		return false

	case splitAfter:
		if s.held = strings.TrimLeftFunc(s.held, unicode.IsSpace); s.held == "" {
			return false
		}
		s.state = splitText
		return true

	case splitCall:
		body, after, found := strings.Cut(s.held, callClose)
		if !found {
			return false
		}
		s.held, s.state = after, splitText
		if calls := s.callsOf(body); len(calls) > 0 {
			for _, c := range calls {
				s.give(out, c)
			}
			s.state = splitAfter
			return true
		}
		s.give(out, Segment{Text: s.gap + callOpen + body + callClose})
		return true
	}
	return s.stepText(out)
}

func (s *TextSplitter) stepText(out func(Segment)) bool {
	if !s.calls {
		s.give(out, Segment{Text: s.held})
		s.held = ""
		return false
	}
	if before, after, found := strings.Cut(s.held, callOpen); found {
		line := before[strings.LastIndexByte(before, '\n')+1:]
		inline := strings.TrimSpace(line) != "" || s.line && len(line) == len(before)
		if inline { // prose about the tag
			n := len(before) + len(callOpen)
			s.give(out, Segment{Text: s.held[:n]})
			s.held = s.held[n:]
			return true
		}
		said := strings.TrimRightFunc(before, unicode.IsSpace)
		s.give(out, Segment{Text: said})
		s.gap, s.held, s.state = before[len(said):], after, splitCall
		return true
	}
	// White space may turn out to be the last before a call.
	n := len(s.held) - partial(s.held, callOpen)
	n = len(strings.TrimRightFunc(s.held[:n], unicode.IsSpace))
	s.give(out, Segment{Text: s.held[:n]})
	s.held = s.held[n:]
	return false
}

// callsOf reads what stands in a <tool_call> tag: a call, or a list of them. A
// call that is no tool of the request makes the whole tag text.
func (s *TextSplitter) callsOf(body string) []Segment {
	text := []byte(strings.TrimSpace(body))
	if !rawjson.Valid(text) {
		return nil
	}
	if rawjson.Kind(text) == '{' {
		text = append(append([]byte("["), text...), ']')
	}
	var calls []Segment
	for c := range rawjson.Elements(text) {
		name := rawjson.String(rawjson.Get(c, "name"))
		arguments := rawjson.Get(c, "arguments")
		if arguments == nil {
			arguments = rawjson.Get(c, "parameters")
		}
		if toolNamed(s.tools, name) == nil {
			return nil
		}
		calls = append(calls, Segment{Name: name, Arguments: string(arguments)})
	}
	return calls
}

// partial is the length of the longest end of text that begins tag.
func partial(text, tag string) int {
	for n := min(len(tag)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return n
		}
	}
	return 0
}

// textCallCut reports that a text ends inside a call written as text.
func textCallCut(text string) bool {
	i := strings.LastIndex(text, callOpen)
	if i < 0 || strings.Contains(text[i:], callClose) {
		return false
	}
	line := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
	if strings.TrimSpace(line) != "" {
		return false
	}
	body := text[i+len(callOpen):]
	return strings.HasPrefix(strings.TrimSpace(body), "{") && Unclosed(body)
}
