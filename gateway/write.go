package gateway

import (
	"net/http"
	"strings"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// The silences that a client is told something in.
//
// Source: notes/clients.md §1.8 and §5, measured: clients give up after 300 s
// without a byte at the earliest; a real status is possible only before the
// first one.
const (
	firstBeat = 50 * time.Second
	nextBeat  = 12 * time.Second
)

// stream writes one streamed answer for a client. It either relays the
// provider's own bytes or writes the answer itself:
//
//	waiting ── first frame of an attempt ──▶ relaying ── anything that is not its ──▶ writing
//	   └────────── first event ──────────────────────────────────────────────────────▶ writing
//
// Nobody relays twice: what another attempt adds to bytes that were relayed is
// written so that it goes on where they ended (wire.Encoder.Adopt).
type stream struct {
	codec   *codec
	options wire.EncodeOptions
	out     sink
	// head is called once, before the first byte.
	head func(http.Header)
	// plain, if set, tells the candidates whose reasoning has no proof.
	plain func(candidate string) bool
	// foreign, if set, tells the candidates of another protocol than the client's.
	foreign func(candidate string) bool
	// truth, if set, appends what is said of the answer before its last event,
	// where the gateway writes it.
	truth func(dst []byte, r *ninelives.Response) []byte

	mu      sync.Mutex
	begun   bool // the first byte is out
	ended   bool // no sign of life may follow, only the error that ends it
	err     error
	last    time.Time // of the last byte
	buf     []byte
	pending []byte // written, and not yet sent
	running int    // the attempt that does not wait for its provider; 0 if none is known
	encoder wire.Encoder
	beat    *time.Timer

	owner    int // the attempt that is relayed; 0 if none
	whole    bool
	frames   int
	heads    []byte
	told     []told
	waiting  int  // the first of told that has come since the last frame
	unclosed bool // the provider has left out the last event
	broken   bool // and would have sent it
	fresh    bool // an event has come since the last frame
	named    bool // a frame with content has been relayed
	given    int  // bytes of content
	// asked is the attempt that started last: the answer names its model.
	asked ninelives.Notice
}

// sink takes the bytes of an answer.
type sink interface {
	// Start sends status and headers.
	Start(status int, h http.Header)
	Write(p []byte) (int, error)
	Flush() error
}

// told is what came of one part of what is relayed, and how much of it the
// client holds: its frame may wait for more.
type told struct {
	event   ninelives.Event
	text    []byte
	relayed int
}

// maxHeads bounds what is remembered of frames without content.
const maxHeads = 256 << 10

// start begins the beats.
func (s *stream) start() {
	s.mu.Lock() // the timer's own goroutine reads what is set here
	defer s.mu.Unlock()
	s.last = time.Now()
	s.beat = time.AfterFunc(firstBeat, s.pulse)
}

// stop ends them.
func (s *stream) stop() {
	s.beat.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send()
	s.ended = true
}

// pause is told by an attempt when it begins to wait for its provider, and when
// it goes on. What it writes while it does not wait is sent together.
func (s *stream) pause(attempt int, waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !waiting:
		s.running = attempt
	case s.running == attempt:
		s.running = 0
	}
	if waiting {
		s.send()
	}
}

// pulse is the timer's: it gives a sign of life if nothing else did.
func (s *stream) pulse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.err != nil {
		return
	}
	wait := nextBeat
	if silent := time.Since(s.last); s.begun && silent < nextBeat {
		wait = nextBeat - silent
	} else {
		if s.owner != 0 {
			s.buf = s.codec.encoder(s.options).KeepAlive(s.buf[:0])
			if s.codec == responses {
				s.buf = append(s.buf[:0], ": keep-alive\n\n"...) // its own event would be a second beginning
			}
		} else {
			s.buf = s.enc().KeepAlive(s.buf[:0])
		}
		s.write(s.buf, true)
	}
	s.beat.Reset(wait)
}

// enc is the encoder, made when it is first needed.
func (s *stream) enc() wire.Encoder {
	if s.encoder == nil {
		if provider, model, ok := strings.Cut(s.asked.Candidate, "/"); ok {
			s.options.Model = model
			if s.plain != nil && s.plain(s.asked.Candidate) {
				s.options.Maker = ninelives.Provenance{Provider: provider, Model: model, Field: "reasoning_content"}
			}
		}
		s.encoder = s.codec.encoder(s.options)
	}
	return s.encoder
}

// event takes one event of the call. The error is the client's: it has gone.
func (s *stream) event(ev ninelives.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := ev.(type) {
	case ninelives.Notice:
		if e.Kind == ninelives.NoticeAttempt {
			s.asked = e
		}
		return s.err
	case ninelives.Discard:
		return s.err
	case *ninelives.Frame:
		if s.codec != geminiArray { // which is asked for as events, and gets them as an array
			s.frame(e)
		}
		return s.err
	case ninelives.TextDelta:
		if s.relays(e.Attempt) {
			if !s.tellMore(e) {
				s.tell(ninelives.TextDelta{Part: e.Part}, e.Text)
			}
			return nil
		}
	case ninelives.RefusalDelta:
		if s.relays(e.Attempt) {
			s.tell(ninelives.RefusalDelta{Part: e.Part}, e.Text)
			return nil
		}
	case ninelives.ReasoningDelta:
		if s.relays(e.Attempt) {
			s.tell(ninelives.ReasoningDelta{Part: e.Part, Proof: e.Proof}, e.Text)
			return nil
		}
	case ninelives.ToolCallDelta:
		if s.relays(e.Attempt) {
			s.fresh = true // delivered whole, with its frames, or not at all
			return nil
		}
	case ninelives.Done:
		if s.whole && e.Attempt == s.owner && s.encoder == nil {
			return s.close(e)
		}
	}
	s.adopt()
	s.buf = s.buf[:0]
	if done, ok := ev.(ninelives.Done); ok && s.truth != nil && s.codec != geminiArray {
		s.buf = s.truth(s.buf, done.Response)
	}
	attempt := s.count(ev)
	s.buf = s.enc().Event(s.buf, ev)
	s.write(s.buf, attempt == 0 || attempt != s.running)
	return s.err
}

// finish ends the stream with an answer that no Done came for, unless all of it
// was relayed.
func (s *stream) finish(r *ninelives.Response) error {
	s.mu.Lock()
	relayed := s.whole && s.encoder == nil
	s.mu.Unlock()
	if relayed {
		return nil
	}
	return s.event(ninelives.Done{Attempt: -1, Response: r})
}

// count counts what the client is given of an answer's content, and tells the
// attempt that gives it; 0 for what is none.
func (s *stream) count(ev ninelives.Event) (attempt int) {
	switch e := ev.(type) {
	case ninelives.TextDelta:
		s.given += len(e.Text)
		return e.Attempt
	case ninelives.ReasoningDelta:
		s.given += len(e.Text)
		return e.Attempt
	case ninelives.RefusalDelta:
		s.given += len(e.Text)
		return e.Attempt
	case ninelives.ToolCallDelta:
		s.given += len(e.Name) + len(e.Arguments)
		return e.Attempt
	}
	return 0
}

// content is how many bytes of content went out.
func (s *stream) content() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

// close writes the last event of a relayed answer that its provider has left
// out, where clients insist on it: without it some take the answer for cut, and
// others wait. Chat is whole without [DONE], which many leave out; but where it did
// not come because something broke, it is written. It is called with the lock held.
func (s *stream) close(done ninelives.Done) error {
	switch {
	case !s.unclosed:
	case s.codec == chat && s.broken:
		s.write([]byte("data: [DONE]\n\n"), true)
	case s.codec == messages:
		s.write([]byte("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), true)
	case s.codec == responses:
		s.adopt()
		s.write(s.enc().Event(nil, done), true)
	}
	return s.err
}

// relays says that an event's bytes come in a frame.
func (s *stream) relays(attempt int) bool { return s.owner != 0 && attempt == s.owner }

// frame relays bytes.
func (s *stream) frame(f *ninelives.Frame) {
	if s.owner == 0 && s.encoder == nil {
		s.owner = f.Attempt
	}
	if f.Attempt != s.owner || s.encoder != nil {
		return // another one has begun: its events are written
	}
	s.unclosed, s.broken = s.unclosed || f.Unclosed, s.broken || f.Broken
	if len(f.Data) > 0 {
		s.frames += max(f.Events, 1)
		// Any chunk names the answer in these protocols, and each has content at some
		// providers: the first is remembered in any case.
		names := s.fresh && !s.named && (s.codec == chat || s.codec == generate)
		if (!s.fresh || names) && len(s.heads)+len(f.Data) <= maxHeads {
			s.heads = append(s.heads, f.Data...)
		}
		s.named = s.named || s.fresh
		s.fresh = false
		s.whole = s.whole || f.End
		for ; s.waiting < len(s.told); s.waiting++ {
			s.told[s.waiting].relayed = len(s.told[s.waiting].text)
		}
	}
	s.write(f.Data, !f.More)
}

// tell remembers what is relayed, for whoever has to go on with it.
func (s *stream) tell(ev ninelives.Event, text string) {
	s.fresh = true
	s.given += len(text)
	if n := len(s.told); n == 0 || !samePart(s.told[n-1].event, ev) {
		s.told = append(s.told, told{event: ev})
	}
	s.waiting = min(s.waiting, len(s.told)-1)
	last := &s.told[len(s.told)-1]
	last.text = append(last.text, text...)
	if r, ok := ev.(ninelives.ReasoningDelta); ok && r.Proof != nil {
		last.event = ev
	}
}

// tellMore tells more of the same text: what most pieces of most streams are.
func (s *stream) tellMore(e ninelives.TextDelta) bool {
	n := len(s.told) - 1
	if n < 0 {
		return false
	}
	if before, ok := s.told[n].event.(ninelives.TextDelta); !ok || before.Part != e.Part {
		return false
	}
	s.fresh = true
	s.given += len(e.Text)
	s.waiting = min(s.waiting, n)
	s.told[n].text = append(s.told[n].text, e.Text...)
	return true
}

func samePart(a, b ninelives.Event) bool {
	switch a := a.(type) {
	case ninelives.TextDelta:
		b, ok := b.(ninelives.TextDelta)
		return ok && a.Part == b.Part
	case ninelives.RefusalDelta:
		b, ok := b.(ninelives.RefusalDelta)
		return ok && a.Part == b.Part
	case ninelives.ReasoningDelta:
		b, ok := b.(ninelives.ReasoningDelta)
		return ok && a.Part == b.Part
	}
	return false
}

// adopt goes over from relaying to writing.
func (s *stream) adopt() {
	if s.owner == 0 || s.encoder != nil {
		return
	}
	var held, due []ninelives.Event
	for _, t := range s.told {
		if t.relayed > 0 {
			held = append(held, withText(t.event, t.text[:t.relayed]))
		}
		if t.relayed < len(t.text) {
			due = append(due, withText(t.event, t.text[t.relayed:]))
		}
	}
	s.enc().Adopt(s.heads, held, s.frames)
	for _, ev := range due {
		s.buf = s.encoder.Event(s.buf[:0], ev)
		s.write(s.buf, false)
	}
}

// withText is a delta with another text.
func withText(ev ninelives.Event, text []byte) ninelives.Event {
	switch e := ev.(type) {
	case ninelives.TextDelta:
		e.Text = string(text)
		return e
	case ninelives.RefusalDelta:
		e.Text = string(text)
		return e
	case ninelives.ReasoningDelta:
		e.Text = string(text)
		return e
	}
	return ev
}

// fail ends the stream with the protocol's own error event; never with an end
// that could be taken for a good one.
func (s *stream) fail(f *ninelives.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adopt()
	s.buf = s.enc().Fail(s.buf[:0], f)
	s.write(s.buf, true)
}

// write sends bytes, after the headers. It is called with the lock held.
func (s *stream) write(p []byte, flush bool) {
	if s.err != nil || len(p) == 0 && !s.begun {
		return
	}
	if !s.begun {
		s.begun = true
		h := http.Header{}
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		if s.codec == geminiArray {
			h.Set("Content-Type", "application/json; charset=utf-8")
		}
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // nginx would collect what is meant to flow
		s.head(h)
		s.out.Start(http.StatusOK, h)
	}
	if !flush && len(s.pending)+len(p) <= maxPending {
		s.pending = append(s.pending, p...)
		return
	}
	if len(s.pending) > 0 {
		s.pending = append(s.pending, p...)
		p, s.pending = s.pending, s.pending[:0]
	}
	if len(p) > 0 {
		s.last = time.Now()
		_, s.err = s.out.Write(p)
	}
	if flush && s.err == nil {
		s.err = s.out.Flush()
	}
}

// send sends what is pending. It is called with the lock held.
func (s *stream) send() {
	if len(s.pending) > 0 {
		s.write(nil, true)
	}
}

// maxPending bounds what is collected before it is sent.
const maxPending = 32 << 10
