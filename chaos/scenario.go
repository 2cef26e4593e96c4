package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Answer is the text that is streamed where a step scripts no other: sixty
// words, one a token.
const Answer = "You are reading the Nine Lives simulator: no model thought of these sixty words, they are always the same and arrive one at a time. " +
	"When a call was limited, cut, stalled or left empty and they still reach you whole, with none missing and none said twice, " +
	"it has landed on its feet, as cats do when they fall."

// Scenario is how the server behaves towards one model name: a list of steps,
// walked through request by request.
type Scenario struct {
	// Name is the model name (what follows the last slash of it) or the value
	// of the x-chaos header that selects the scenario. "" and "*" stand for
	// every name that no other scenario has.
	Name string `yaml:"name" json:"name"`
	// About says in one line what happens.
	About string `yaml:"about,omitempty" json:"about,omitempty"`
	// Steps are met in order; the last one stays, unless Loop is set. No step
	// at all means the plain answer.
	Steps []Step `yaml:"steps,omitempty" json:"steps,omitempty"`
	// Loop starts over after the last step.
	Loop bool `yaml:"loop,omitempty" json:"loop,omitempty"`
}

// Step is what one request meets. The zero Step is the plain, whole answer;
// each field bends it. A step whose request fails one of the checks in Reject
// is answered with that rejection instead.
type Step struct {
	// Times is how many requests meet the step; 0 means one.
	Times int `yaml:"times,omitempty" json:"times,omitempty"`
	// For makes the step a window of time instead: every request within For of
	// its start meets it. The first window starts with the first request, each
	// further one where the last ended.
	For time.Duration `yaml:"for,omitempty" json:"for,omitempty"`

	// Drop gives no answer at all.
	Drop Drop `yaml:"drop,omitempty" json:"drop,omitempty"`

	// Error answers with a provider's error, worded as the protocol words it.
	// With End: ErrorEvent the error comes inside a 200 instead.
	Error ErrorKind `yaml:"error,omitempty" json:"error,omitempty"`
	// Message and Param replace the error's text and name its parameter.
	Message string `yaml:"message,omitempty" json:"message,omitempty"`
	Param   string `yaml:"param,omitempty" json:"param,omitempty"`
	// Hint says in which form an error asks for Wait.
	Hint Hint          `yaml:"hint,omitempty" json:"hint,omitempty"`
	Wait time.Duration `yaml:"wait,omitempty" json:"wait,omitempty"`

	// Status, Headers and Body replace those of the error or the answer. A
	// Body with Status 0 is sent with 200.
	Status  int               `yaml:"status,omitempty" json:"status,omitempty"`
	Headers map[string]string `yaml:"headers,omitempty" json:"headers,omitempty"`
	Body    *string           `yaml:"body,omitempty" json:"body,omitempty"`

	// Text is the answer; empty means Answer, or an instance of the schema
	// where the request asks for one.
	Text string `yaml:"text,omitempty" json:"text,omitempty"`
	// Echo answers with the last user message instead.
	Echo bool `yaml:"echo,omitempty" json:"echo,omitempty"`
	// Reasoning is thought before the answer.
	Reasoning string `yaml:"reasoning,omitempty" json:"reasoning,omitempty"`
	// Refusal is said instead of the answer.
	Refusal string `yaml:"refusal,omitempty" json:"refusal,omitempty"`
	// Calls are the tool calls of the answer; a request that ends with the
	// result of a tool gets the text instead. ToolFault bends them.
	Calls []Call `yaml:"calls,omitempty" json:"calls,omitempty"`
	// Insist makes the calls although the request ends with the result of a
	// tool: so a list of steps plays a model that works through several calls.
	Insist    bool      `yaml:"insist,omitempty" json:"insist,omitempty"`
	ToolFault ToolFault `yaml:"tool_fault,omitempty" json:"tool_fault,omitempty"`
	// Usage is reported in place of what the server counts; a field that is zero
	// is counted.
	Usage *Usage `yaml:"usage,omitempty" json:"usage,omitempty"`
	// Coder lets the scripted coder answer: it works through plain sentences of
	// the user with the tools of the request. See the scenario coder.
	Coder bool `yaml:"coder,omitempty" json:"coder,omitempty"`
	// Finish overrides the reason why the answer ends: "stop", "length",
	// "tool_calls", "content_filter" or "refusal".
	Finish string `yaml:"finish,omitempty" json:"finish,omitempty"`
	// Truncate ends the answer with "length" after so many tokens, also in the
	// middle of a call: one token for its name, one for each 12 bytes of its
	// arguments.
	Truncate int `yaml:"truncate,omitempty" json:"truncate,omitempty"`
	// Empty answers with nothing, in one of its faces.
	Empty Empty `yaml:"empty,omitempty" json:"empty,omitempty"`

	// Delay is waited before the headers, First between them and the first
	// token, Interval between tokens.
	Delay    time.Duration `yaml:"delay,omitempty" json:"delay,omitempty"`
	First    time.Duration `yaml:"first,omitempty" json:"first,omitempty"`
	Interval time.Duration `yaml:"interval,omitempty" json:"interval,omitempty"`
	// KeepAlive sends the protocol's sign of life so often while waiting
	// after the headers; zero means silence.
	KeepAlive time.Duration `yaml:"keep_alive,omitempty" json:"keep_alive,omitempty"`

	// After is the number of tokens that are sent before Pause, Malformed,
	// Inject and End, in this order, do their work.
	After int `yaml:"after,omitempty" json:"after,omitempty"`
	// Pause is a silence in mid-stream.
	Pause time.Duration `yaml:"pause,omitempty" json:"pause,omitempty"`
	// Malformed puts an event between two good ones that is no JSON.
	Malformed bool `yaml:"malformed,omitempty" json:"malformed,omitempty"`
	// Inject puts these bytes between two events.
	Inject string `yaml:"inject,omitempty" json:"inject,omitempty"`
	// End ends the stream early.
	End End `yaml:"end,omitempty" json:"end,omitempty"`
	// Omit leaves out frames: "start", "finish", "usage", "done", "events"
	// (the event: lines). Without finish and done there is no terminal marker.
	Omit []string `yaml:"omit,omitempty" json:"omit,omitempty"`
	// Split writes the answer in pieces of so many bytes; zero means whole events.
	Split int `yaml:"split,omitempty" json:"split,omitempty"`
	// CRLF ends lines with CR LF.
	CRLF bool `yaml:"crlf,omitempty" json:"crlf,omitempty"`

	// Window is the context window in tokens (about four bytes each): a longer
	// request overflows. Zero means that any length fits.
	Window int `yaml:"window,omitempty" json:"window,omitempty"`
	// Reject lists what this server does not take.
	Reject []Check `yaml:"reject,omitempty" json:"reject,omitempty"`
}

// Call is a tool call of an answer.
type Call struct {
	// ID is made up where it is empty.
	ID string `yaml:"id,omitempty" json:"id,omitempty"`
	// Name is the tool; "*" takes the first tool of the request.
	Name string `yaml:"name" json:"name"`
	// Arguments is JSON; empty means an instance of the tool's schema.
	Arguments string `yaml:"arguments,omitempty" json:"arguments,omitempty"`
}

// Usage is what an answer claims to have cost, in tokens. Input counts the
// cached ones, Output the reasoning.
type Usage struct {
	Input     int `yaml:"input,omitempty" json:"input,omitempty"`
	Output    int `yaml:"output,omitempty" json:"output,omitempty"`
	Cached    int `yaml:"cached,omitempty" json:"cached,omitempty"`
	Reasoning int `yaml:"reasoning,omitempty" json:"reasoning,omitempty"`
}

// Drop says how a request is left without an answer.
type Drop string

// The ways to give no answer.
const (
	Hang    Drop = "hang"    // silence until the client leaves, or for Pause and then a close
	Close   Drop = "close"   // the connection is closed politely before a byte was answered
	RST     Drop = "reset"   // the connection is reset before a byte was answered
	Garbage Drop = "garbage" // bytes that are no HTTP
)

// End says how a stream ends early.
type End string

// The early ends.
const (
	Cut        End = "cut"        // the connection closes between two events, the body is not terminated
	CutInside  End = "cut_inside" // the same in the middle of an event
	CleanEnd   End = "clean"      // the body is terminated as if all were well
	Reset      End = "reset"      // the connection is reset
	Stall      End = "stall"      // nothing more comes and the connection stays open
	ErrorEvent End = "error"      // the protocol's error event, with the step's Error
)

// Empty is a face of an answer that says nothing.
type Empty string

// The faces of an empty answer.
const (
	EmptyNull       Empty = "null"       // the list of choices is null
	EmptyNone       Empty = "none"       // the list of choices is empty
	EmptyDone       Empty = "done"       // only the end marker
	EmptyBlank      Empty = "blank"      // 200 without a byte of body
	EmptyWhitespace Empty = "whitespace" // blanks and a line feed
	EmptyReasoning  Empty = "reasoning"  // thought, but nothing said
)

// ToolFault is a way to write a tool call wrongly.
type ToolFault string

// The tool faults. Where a protocol cannot express one (Gemini's arguments
// are always an object), the call is written as it should be; arguments that
// are no object, cut or scripted, Gemini reports as MALFORMED_FUNCTION_CALL.
const (
	Unclosed       ToolFault = "unclosed"        // the arguments end in mid-JSON, the reason says tool_calls
	DuplicateIndex ToolFault = "duplicate_index" // all calls have index 0
	MissingIndex   ToolFault = "missing_index"
	MissingID      ToolFault = "missing_id"
	ObjectArgs     ToolFault = "object"         // arguments as an object, not as a string
	DoubleEncoded  ToolFault = "double_encoded" // arguments as a string of a string
	NullArgs       ToolFault = "null"           // arguments null
)

// What may be left out of a stream.
const (
	omitStart  = "start"
	omitFinish = "finish"
	omitUsage  = "usage"
	omitDone   = "done"
	omitEvents = "events"
)

// vocabulary lists the legal words of each field of a Step that has a fixed set.
var vocabulary = map[string][]string{
	"drop":       {string(Hang), string(Close), string(RST), string(Garbage)},
	"end":        {string(Cut), string(CutInside), string(CleanEnd), string(Reset), string(Stall), string(ErrorEvent)},
	"empty":      {string(EmptyNull), string(EmptyNone), string(EmptyDone), string(EmptyBlank), string(EmptyWhitespace), string(EmptyReasoning)},
	"tool_fault": {string(Unclosed), string(DuplicateIndex), string(MissingIndex), string(MissingID), string(ObjectArgs), string(DoubleEncoded), string(NullArgs)},
	"omit":       {omitStart, omitFinish, omitUsage, omitDone, omitEvents},
	"finish":     {"stop", "length", "tool_calls", "content_filter", "refusal"},
	"hint":       hintWords,
	"error":      errorWords(),
}

// Validate reports the first thing in the scenario that the server would not
// understand, and what it would.
func (s Scenario) Validate() error {
	name := s.Name
	if name == "" {
		name = "*"
	}
	for i, step := range s.Steps {
		if err := step.validate(); err != nil {
			return fmt.Errorf("scenario %q, step %d: %w", name, i+1, err)
		}
	}
	return nil
}

func (s Step) validate() error {
	words := []struct{ field, word string }{
		{"drop", string(s.Drop)}, {"end", string(s.End)}, {"empty", string(s.Empty)},
		{"tool_fault", string(s.ToolFault)}, {"finish", s.Finish},
		{"hint", string(s.Hint)}, {"error", string(s.Error)},
	}
	for _, o := range s.Omit {
		words = append(words, struct{ field, word string }{"omit", o})
	}
	for _, w := range words {
		if w.word != "" && !slices.Contains(vocabulary[w.field], w.word) {
			return fmt.Errorf("%s: %q is unknown: use one of %s", w.field, w.word, strings.Join(vocabulary[w.field], ", "))
		}
	}
	for _, c := range s.Reject {
		if !knownCheck(c) {
			return fmt.Errorf("reject: %q is unknown: use one of %s, param:NAME", c, strings.Join(checkWords(), ", "))
		}
	}
	switch {
	case s.Times != 0 && s.For != 0:
		return fmt.Errorf("times and for exclude each other: a step is a number of requests or a window of time")
	case s.Times < 0 || s.After < 0 || s.Split < 0 || s.Truncate < 0 || s.Window < 0:
		return fmt.Errorf("times, after, split, truncate and window must not be negative")
	case s.Coder && (s.Text != "" || s.Echo || len(s.Calls) > 0 || s.Refusal != ""):
		return fmt.Errorf("coder excludes text, echo, calls and refusal: it says and calls what it finds fit")
	case s.Usage != nil && min(s.Usage.Input, s.Usage.Output, s.Usage.Cached, s.Usage.Reasoning) < 0:
		return fmt.Errorf("usage must not be negative")
	case s.End == ErrorEvent && s.Error == "":
		return fmt.Errorf("end: error needs an error: name which, such as error: overloaded")
	case s.Hint != "" && s.Wait == 0:
		return fmt.Errorf("hint %q needs a wait, such as wait: 2s", s.Hint)
	case s.Status != 0 && (s.Status < 200 || s.Status > 599):
		return fmt.Errorf("status %d is no final HTTP status: use 200 to 599", s.Status)
	}
	return nil
}

func (s Step) omits(what string) bool { return slices.Contains(s.Omit, what) }
