package openai

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// chatDecoder reads the chunks of a streamed chat completion, or the one
// object of a whole one.
type chatDecoder struct {
	o       wire.DecodeOptions
	choices []*chatChoice // the first one is the answer
	id      string
	model   string
	created int64
	members chatMembers // unknown members of the chunks
	usage   []byte      // the last usage object
	spare   bool        // usage is from another place, for want of the usual one

	emit     func(ninelives.Event) bool // of the frame being read; nil once it wants no more
	told     bool                       // an event was given
	frames   int
	done     bool // [DONE] was seen
	called   bool // a call was begun
	odd      bool // and one is written as clients do not read it
	closed   bool // nothing follows
	fault    *ninelives.Fault
	warnings []string

	arena   chatArena
	scratch []byte

	// mold is the last chunk if all that it did was to add its text to molded.
	// A chunk that differs from it in the text alone does nothing else either.
	mold   rawjson.Mold
	molded *chatChoice
	piece  []byte // the text of the chunk that is being read, if that is all of it
}

// NewChatDecoder reads the frames of a streamed answer of POST /chat/completions.
//
// The terminal marker is a finish_reason; [DONE] vouches for an answer without
// one, if anything was answered and no call is open. An answer that comes whole in one frame is read too. Frames that are only signs of life
// (comments sent as data, pings) are read over.
//
// Where the body is no stream at all (sse.Reader.Body is not empty), give it
// to DecodeChatResponse, which knows whole answers, error objects and pages.
func NewChatDecoder(o wire.DecodeOptions) wire.Decoder { return newChatDecoder(o) }

func newChatDecoder(o wire.DecodeOptions) *chatDecoder { return &chatDecoder{o: o} }

// State implements wire.Decoder.
func (d *chatDecoder) State() wire.State {
	switch {
	case d.closed:
		return wire.Closed
	case d.finished():
		return wire.Finished
	}
	return wire.Open
}

// finished reports that every choice that began has told its end.
func (d *chatDecoder) finished() bool {
	for _, c := range d.choices {
		if !c.finished {
			return false
		}
	}
	return len(d.choices) > 0
}

// Calling tells whether the stream has begun a tool call, and whether one of them
// is written so that it can be understood and clients do not: without an index or
// an id of its own, or with arguments that are no text. Such chunks must not be
// relayed.
//
// Source: notes/clients.md §4, what each client insists on.
func (d *chatDecoder) Calling() (begun, odd bool) { return d.called, d.odd }

// Frame implements wire.Decoder.
func (d *chatDecoder) Frame(f wire.Frame, emit func(ninelives.Event) bool) error {
	data := bytes.TrimSpace(f.Data)
	if len(data) == 0 || d.closed || chatLifeSign(f.Event, data) {
		return nil
	}
	d.emit = emit
	defer func() { d.emit = nil }()
	if chatIsDone(data) {
		d.end()
		return nil
	}
	d.frames++
	if text, ok := d.mold.Fits(data); ok && f.Event == "" {
		d.molded.text(text)
		return nil
	}
	d.mold.Break()
	if f.Event == "error" {
		return d.inBand(data)
	}
	if rawjson.Valid(data) {
		return d.value(data)
	}
	// Events that lost the empty line between them come as lines of one.
	if bytes.IndexByte(data, '\n') >= 0 && chatLinesValid(data) {
		for line := range bytes.Lines(data) {
			if err := d.Frame(wire.Frame{Event: f.Event, Data: line}, emit); err != nil {
				return err
			}
		}
		return nil
	}
	if !d.finished() && d.o.ReadOn() {
		return nil
	}
	return d.broke("an event of the stream is no JSON")
}

// chatLifeSign tells the frames that only say that the connection lives.
func chatLifeSign(event string, data []byte) bool {
	switch event {
	case "ping", "heartbeat", "keepalive", "keep-alive":
		return true
	}
	if data[0] == ':' {
		return true
	}
	if data[0] == '{' || data[0] == '[' {
		return false
	}
	switch word := strings.ToLower(strings.Trim(string(data), `"`)); word {
	case "ping", "heartbeat", "keepalive", "keep-alive", "null":
		return true
	}
	return false
}

func chatIsDone(data []byte) bool { return bytes.EqualFold(data, []byte("[DONE]")) }

func chatLinesValid(data []byte) bool {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && !chatIsDone(line) && !rawjson.Valid(line) {
			return false
		}
	}
	return true
}

// value takes in one JSON value of the stream.
func (d *chatDecoder) value(data []byte) error {
	if data[0] == '{' {
		return d.chunk(data)
	}
	if data[0] == '[' && rawjson.Kind(rawjson.Get(data[1:], "error")) != 0 {
		return d.inBand(data)
	}
	return d.broke("an event of the stream is no completion chunk")
}

// chunk takes in a chunk, or a whole completion.
func (d *chatDecoder) chunk(data []byte) error {
	var choices, failure []byte
	if !chatIsAnswer(data) {
		if chatIsError(data) {
			return d.inBand(data)
		}
		return nil
	}
	for m := range rawjson.Members(data) {
		switch string(m.Name) {
		case "id":
			if d.id == "" {
				d.id = rawjson.String(m.Value)
			}
		case "model":
			if len(m.Value) > 2 && !rawjson.Is(m.Value, d.model) {
				d.model = rawjson.String(m.Value)
			}
		case "created":
			if n := chatCreated(m.Value); n > 0 {
				d.created = n
			}
		case "object":
		case "choices":
			choices = m.Value
		case "usage":
			if !rawjson.Empty(m.Value) {
				d.usage, d.spare = append(d.usage[:0], m.Value...), false
			}
		case "error":
			if !rawjson.Empty(m.Value) {
				failure = m.Value
			}
		case "x_groq":
			d.spareUsage(rawjson.Get(m.Value, "usage"))
			d.members.add(m)
		case "base_resp": // MiniMax says here that it failed, beside choices that are null
			if n, ok := rawjson.Int(rawjson.Get(m.Value, "status_code")); ok && n != 0 {
				failure = m.Value
			}
			d.members.add(m)
		default:
			d.members.add(m)
		}
	}
	if failure != nil {
		return d.inBand(data)
	}
	position := int64(0)
	d.piece = nil
	for raw := range rawjson.Elements(choices) {
		if err := d.choice(raw, position); err != nil {
			return err
		}
		position++
	}
	if d.piece != nil && position == 1 {
		d.mold.Take(data, d.piece)
	}
	return nil
}

// spareUsage takes in usage that is not where it should be: Groq's own, and
// Kimi's within a choice.
func (d *chatDecoder) spareUsage(usage []byte) {
	if !rawjson.Empty(usage) && (d.usage == nil || d.spare) {
		d.usage, d.spare = append(d.usage[:0], usage...), true
	}
}

// chatIsAnswer: an object that has what answers have.
func chatIsAnswer(data []byte) bool {
	for m := range rawjson.Members(data) {
		switch string(m.Name) {
		case "choices":
			return rawjson.Kind(m.Value) == '[' || rawjson.Null(m.Value) && rawjson.Null(rawjson.Get(data, "error"))
		case "usage":
			if rawjson.Kind(m.Value) == '{' {
				return true
			}
		case "object":
			if rawjson.Is(m.Value, "chat.completion.chunk") || rawjson.Is(m.Value, "chat.completion") {
				return true
			}
		}
	}
	return false
}

// chatIsError: an object without an answer that says what went wrong, in one of
// the forms that servers have for it.
func chatIsError(data []byte) bool {
	for m := range rawjson.Members(data) {
		switch string(m.Name) {
		case "error", "errors", "detail", "message", "msg", "error_msg", "error_message", "base_resp":
			if !rawjson.Empty(m.Value) {
				return true
			}
		}
	}
	return false
}

// choice takes in one choice of a chunk.
func (d *chatDecoder) choice(raw []byte, position int64) error {
	var index, delta, message, text, finish, logprobs, failure []byte
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "index":
			index = m.Value
		case "delta":
			delta = m.Value
		case "message":
			message = m.Value
		case "text":
			text = m.Value
		case "finish_reason":
			finish = m.Value
		case "logprobs":
			logprobs = m.Value
		case "error":
			failure = m.Value
		}
	}
	place, ok := chatIndex(index)
	if !ok {
		place = position
	}
	c := d.at(place)
	for m := range rawjson.Members(raw) {
		switch string(m.Name) {
		case "index", "delta", "message", "text", "finish_reason", "logprobs":
		case "error":
			if rawjson.Empty(m.Value) {
				c.own.add(m)
			}
		case "usage":
			d.spareUsage(m.Value)
			c.own.add(m)
		default:
			c.own.add(m)
		}
	}
	if !rawjson.Empty(failure) {
		if c == d.choices[0] {
			return d.inBand(raw)
		}
		d.warn("a further choice failed")
	}
	c.logprobs.add(logprobs)
	good := true
	if !rawjson.Empty(delta) {
		good = c.delta(delta)
	}
	// Some servers end a stream with the whole message, or send it beside an
	// empty delta: it counts only if nothing has come in deltas.
	if rawjson.Kind(message) == '{' && len(c.parts) == 0 {
		c.whole = true
		good = c.delta(message) && good
	}
	if rawjson.Kind(text) == '"' && delta == nil && message == nil {
		c.text(text)
	}
	if !good {
		return d.broke("a piece of a tool call could belong to several calls")
	}
	if d.molded = c; message != nil || text != nil || rawjson.Kind(logprobs) == '{' || !rawjson.Null(finish) || !rawjson.Empty(failure) {
		d.piece = nil
	}
	if word := rawjson.String(finish); chatWord(word) != "" {
		if !rawjson.Is(finish, c.finishRaw) || !c.finished {
			c.finishRaw, c.finished = word, true
		}
		c.finish()
		if class, why := chatFinishFault(word, c.said()); class != "" && c == d.choices[0] {
			f := d.newFault(class, why)
			f.Code = word
			c.finished = false // it is no end that stands
			return d.fail(f)
		}
	}
	return nil
}

// chatIndex reads an index, a number or a number in a string.
func chatIndex(v []byte) (int64, bool) {
	if rawjson.Kind(v) == '"' {
		v = []byte(rawjson.String(v))
	}
	n, ok := rawjson.Int(v)
	return n, ok && n >= 0
}

// at is the choice with an index; a new one begins with it.
func (d *chatDecoder) at(index int64) *chatChoice {
	for _, c := range d.choices {
		if c.index == index {
			return c
		}
	}
	c := &chatChoice{d: d, index: index, calls: wire.NewCalls(d.o.Tools), splitter: wire.NewTextSplitter(d.o)}
	// The first one is the answer, unless a further one merely began before it.
	if n := len(d.choices); n > 0 && (d.told || index > d.choices[0].index) {
		d.choices = append(d.choices, c)
		return c
	} else if n > 0 {
		d.choices[0].first = false
	}
	c.first = true
	d.choices = slices.Insert(d.choices, 0, c)
	return c
}

// end takes in [DONE].
func (d *chatDecoder) end() {
	d.done, d.closed = true, true
	if len(d.choices) == 0 {
		return
	}
	c := d.choices[0]
	if !c.finished && c.open() {
		return // nothing says that the call is whole
	}
	if !c.finished && c.said() {
		c.finished = true
		d.warn("the end of the answer was inferred from [DONE]: the server gave no finish_reason")
	}
	c.finish()
}

func (d *chatDecoder) warn(text string) { d.warnings = append(d.warnings, text) }

// answer tells this answer apart from others.
func (d *chatDecoder) answer() string { return fmt.Sprintf("%s/%s/%d", d.id, d.model, d.created) }

// inBand takes in an error that came inside the answer. After the end it is
// only noted: the answer stands.
func (d *chatDecoder) inBand(data []byte) error {
	f := wire.Classify(wire.Answer{Status: 200, Body: data, Candidate: d.o.Candidate, InBand: true, Now: d.o.Now})
	if f.Class == ninelives.ClassUnknown && len(d.choices) > 0 && len(d.choices[0].parts) > 0 {
		f.Class, f.Scope = ninelives.ClassStreamBroken, ninelives.ScopeModel // an answer was under way
	}
	return d.fail(f)
}

func (d *chatDecoder) broke(why string) error {
	return d.fail(d.newFault(ninelives.ClassStreamBroken, why))
}

func (d *chatDecoder) fail(f *ninelives.Fault) error {
	if d.finished() {
		d.warn("after the end of the answer: " + f.Message)
		return nil
	}
	d.emit = nil
	d.closed = true
	f.Partial = d.response()
	d.fault = f
	return f
}

func (d *chatDecoder) newFault(class ninelives.Class, message string) *ninelives.Fault {
	scope := ninelives.ScopeModel
	switch class {
	case ninelives.ClassFormat, ninelives.ClassContextLength, ninelives.ClassEmpty:
		scope = ninelives.ScopeRequest
	}
	return &ninelives.Fault{
		Class: class, Scope: scope, Phase: ninelives.PhaseStream, Status: 200,
		Message: message, Candidate: d.o.Candidate.Name(), Billed: ninelives.BilledMaybe,
	}
}

// Response implements wire.Decoder.
func (d *chatDecoder) Response(cause error) (*ninelives.Response, error) {
	if d.fault != nil {
		return nil, d.fault
	}
	if len(d.choices) > 0 && d.choices[0].finished {
		r := d.response()
		if f := wire.Overflow(r, d.o); f != nil {
			return nil, f
		}
		return r, nil
	}
	var f *ninelives.Fault
	switch {
	case cause != nil:
		f = d.newFault(ninelives.ClassStreamBroken, "the stream broke off: "+wire.Redact(cause.Error()))
	case d.frames == 0:
		f = d.newFault(ninelives.ClassEmpty, "the stream ended without an event")
	case d.done && len(d.choices) > 0 && d.choices[0].open():
		f = d.newFault(ninelives.ClassStreamBroken, "the stream ended inside a tool call")
	case d.done:
		f = d.newFault(ninelives.ClassEmpty, "the stream ended without an answer")
	default:
		f = d.newFault(ninelives.ClassStreamBroken, "the stream ended without a finish_reason and without [DONE]")
	}
	f.Err = cause
	if d.frames > 0 {
		f.Partial = d.response()
	}
	return nil, f
}

// response gives the answer so far.
func (d *chatDecoder) response() *ninelives.Response {
	r := &ninelives.Response{
		ID:       d.id,
		Model:    d.model,
		Extra:    d.members.extra(),
		Warnings: d.warnings,
		Message:  ninelives.Message{Role: ninelives.RoleAssistant},
	}
	if d.created > 0 {
		r.Created = time.Unix(d.created, 0).UTC()
	}
	if d.usage != nil {
		r.Usage = chatUsage(d.usage, d.o.Dialect.OutputExcludesReasoning)
	}
	for i, c := range d.choices {
		c.finish()
		message, finish := c.message(), ninelives.FinishReason("")
		if c.finished {
			finish = c.ending(message, r.Usage)
		}
		c.finishArguments(&message, !c.finished || finish == ninelives.FinishLength)
		if i == 0 {
			r.Message, r.Finish, r.FinishRaw = message, finish, c.finishRaw
			r.Logprobs, r.ChoiceExtra = c.logprobs.extra(), c.own.extra()
			continue
		}
		r.Choices = append(r.Choices, ninelives.Choice{
			Message: message, Finish: finish, FinishRaw: c.finishRaw,
			Logprobs: c.logprobs.extra(), Extra: c.own.extra(),
		})
	}
	return r
}

// ending is how a choice ended, corrected by what it shows.
func (c *chatChoice) ending(message ninelives.Message, usage ninelives.Usage) ninelives.FinishReason {
	said := chatFinish(c.finishRaw)
	switch {
	case said == "":
		said = ninelives.FinishStop // vouched for by [DONE], or whole
	}
	if said == ninelives.FinishToolCalls && c.calls.Len() > 0 && len(message.ToolCalls()) == 0 {
		said = ninelives.FinishStop // the only call was the forced output
	}
	o := c.d.o
	if len(c.d.choices) > 1 {
		o.MaxTokens = 0 // usage counts all choices together
	}
	return wire.Ending(&ninelives.Response{Message: message, Finish: said, Usage: usage}, o)
}
