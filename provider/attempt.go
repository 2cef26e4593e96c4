package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/bedrock"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// attempt is one request on the wire and its answer.
type attempt struct {
	model  *Model
	req    *ninelives.Request
	number int
	yield  func(ninelives.Event, error) bool

	caller context.Context
	ctx    context.Context // the attempt's own, ended by the clocks
	cancel context.CancelCauseFunc
	watch  *watch

	candidate ninelives.Candidate
	dialect   wire.Dialect
	codec     codec
	options   wire.DecodeOptions
	stream    bool
	raw       *ninelives.Raw  // sent as it is; nil where the request was written here
	frame     ninelives.Frame // of the answer, given again and again
	due       due             // bytes that are relayed with those that follow
	target    *url.URL        // nil for the protocol's calls
	path      string
	left      bool // the consumer has left
	gap       gap
}

// run makes the attempt and yields how it ended, unless the consumer has left.
func (a *attempt) run(caller context.Context) {
	a.caller = caller
	a.ctx, a.cancel = context.WithCancelCause(caller)
	defer a.cancel(nil)
	a.candidate = a.model.Candidate()

	encoded, fault := a.prepare()
	if fault != nil {
		a.fail(fault)
		return
	}
	for _, note := range encoded.Notes {
		a.emit(ninelives.Notice{Kind: ninelives.NoticeTranslate, Attempt: a.number, Candidate: a.candidate.Name(), Text: note})
		if a.left {
			return
		}
	}
	hold := &dialing{ctx: a.ctx}
	a.watch = newWatch(clocksFor(a.candidate, a.req, a.stream), a.cancel, hold)
	defer a.watch.end()

	resp, err := a.send(encoded, hold)
	if err != nil {
		a.fail(wire.Transport(a.ctx, err, a.watch.at()))
		return
	}
	a.options.Now = time.Now()
	in := &body{ReadCloser: resp.Body, watch: a.watch, room: maxStream, pause: a.pausing()}
	if in.pause != nil {
		defer in.pause(true)
	}
	defer in.Close()
	answer, fault := a.receive(resp, in)
	switch {
	case a.left:
		return
	case fault != nil:
		a.fail(fault)
		return
	}
	answer.Candidate = a.candidate.Name()
	answer.Attempts = 1
	if warning, window := silentCut(a.candidate, a.req, answer); warning != "" {
		answer.Warnings = append(answer.Warnings, warning)
		a.model.learn(window)
	}
	a.watch.end()
	a.yield(ninelives.Done{Attempt: a.number, Response: answer}, nil)
	in.settle(func() { a.cancel(nil) })
}

// prepare writes the request.
func (a *attempt) prepare() (wire.Encoded, *ninelives.Fault) {
	if a.caller.Err() != nil {
		return wire.Encoded{}, wire.Transport(a.caller, a.caller.Err(), ninelives.PhasePrepare)
	}
	a.dialect = a.model.dialect
	if a.req.Attempt != nil {
		a.dialect = a.dialect.Apply(a.req.Attempt.Repairs)
	}
	a.codec = codecs[a.candidate.Protocol]
	encoded, err := a.encode()
	if err != nil {
		var f *ninelives.Fault
		if !errors.As(err, &f) {
			f = &ninelives.Fault{Class: ninelives.ClassFormat, Scope: ninelives.ScopeRequest, Message: "the request cannot be written: " + err.Error(), Err: err, Final: true}
		}
		f.Phase, f.Billed = ninelives.PhasePrepare, ninelives.BilledNo
		return wire.Encoded{}, f
	}
	limit := a.req.MaxTokens
	if most := a.dialect.MaxTokensCap; most > 0 && limit > most {
		limit = most
	}
	a.options = wire.DecodeOptions{
		Candidate:  a.candidate,
		Dialect:    a.dialect,
		Names:      encoded.Names,
		Tools:      a.req.Tools,
		MaxTokens:  limit,
		OutputTool: encoded.OutputTool,
		Attempt:    a.number,
		Garbled:    a.garbled,
	}
	return encoded, nil
}

// encode writes the body of the request: the client's own bytes where the
// server takes them, else what they mean in its dialect.
func (a *attempt) encode() (wire.Encoded, error) {
	raw := a.req.Raw
	repaired := a.req.Attempt != nil && len(a.req.Attempt.Repairs) > 0
	if raw != nil && raw.Protocol == a.candidate.Protocol && !repaired && a.dialect.BodyVersion == "" && !(raw.Stream && a.dialect.NoStream) {
		a.raw, a.stream = raw, raw.Stream
		a.frame.Attempt = a.number
		body := raw.Body
		if raw.Model != [2]int{} && !a.model.endpoint.deployment {
			body = wire.Splice(body, raw.Model, a.candidate.Model)
		}
		return wire.Encoded{Body: body, Header: raw.Header}, nil
	}
	whole, err := a.req.Whole()
	if err != nil {
		return wire.Encoded{}, err
	}
	a.req = whole
	a.stream = !a.dialect.NoStream
	room := 4 * inputTokens(whole)
	if raw != nil {
		room = len(raw.Body)
	}
	return a.codec.encode(whole, wire.Target{Candidate: a.candidate, Dialect: a.dialect, Stream: a.stream, Room: room + room/8 + 512})
}

// send sends the request and waits for the headers of the response.
func (a *attempt) send(encoded wire.Encoded, hold *dialing) (*http.Response, error) {
	target := a.target
	if target == nil {
		target = a.model.endpoint.url(a.stream)
	}
	if a.raw != nil && a.raw.Query != "" && target.RawQuery == "" {
		target.RawQuery = a.raw.Query
	}
	a.path = target.Path
	ctx := context.WithValue(a.ctx, dialingKey{}, hold)
	ctx = httptrace.WithClientTrace(ctx, a.watch.trace())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(encoded.Body))
	if err != nil {
		return nil, err
	}
	// Without it the transport cannot send the body twice, and never does:
	// only the healing driver repeats a request.
	r.GetBody = nil
	h := r.Header
	h.Set("User-Agent", "ninelives")
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json")
	if a.stream {
		h.Set("Accept", typeEvents)
	}
	for _, more := range []map[string]string{a.codec.header, encoded.Header, a.model.headers} {
		for name, value := range more {
			h.Set(name, value)
		}
	}
	if key := a.model.key.Reveal(); key != "" {
		h.Set(a.model.auth.header(key))
	}
	forward(ctx, h)
	a.watch.enter()
	resp, err := a.model.transport.RoundTrip(r)
	a.watch.leave(err == nil)
	if err != nil {
		return nil, err
	}
	a.watch.headers()
	return resp, nil
}

// receive reads the answer: an error, a stream or a whole answer.
func (a *attempt) receive(resp *http.Response, in *body) (*ninelives.Response, *ninelives.Fault) {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, a.refused(resp, in)
	}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, &ninelives.Fault{Class: ninelives.ClassFormat, Scope: ninelives.ScopeHost, Phase: ninelives.PhaseHeaders, Status: resp.StatusCode, Final: true,
			Message: fmt.Sprintf("the answer is encoded as %q, which was not asked for", enc), Hint: "check what stands between here and the provider"}
	}
	if mt := mediaType(resp.Header); a.stream || mt == typeEvents || mt == bedrock.ContentType {
		return a.readStream(resp, in)
	}
	in.room = maxWhole
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, a.broken(err)
	}
	return a.readWhole(resp, text)
}

// refused classifies an answer that says no.
func (a *attempt) refused(resp *http.Response, in *body) *ninelives.Fault {
	if to := resp.Header.Get("Location"); resp.StatusCode < 400 && to != "" {
		hint := "set the base URL to where it leads"
		if u, err := resp.Location(); err == nil {
			hint += ": " + u.Scheme + "://" + u.Host + "…"
		}
		return &ninelives.Fault{Class: ninelives.ClassFormat, Scope: ninelives.ScopeHost, Phase: ninelives.PhaseHeaders, Status: resp.StatusCode,
			Final: true, Billed: ninelives.BilledNo, Message: "the server redirects, which a request with a body and a key does not follow", Hint: hint}
	}
	in.room = maxError
	text, err := io.ReadAll(in)
	if err != nil && !errors.Is(err, errTooLarge) && a.caller.Err() != nil {
		return wire.Transport(a.ctx, err, ninelives.PhaseHeaders)
	}
	return a.classify(resp, text, false)
}

func (a *attempt) classify(resp *http.Response, text []byte, inBand bool) *ninelives.Fault {
	answer := wire.Answer{
		Status:      resp.StatusCode,
		Header:      resp.Header,
		Body:        text,
		Candidate:   a.candidate,
		Path:        a.path,
		InBand:      inBand,
		InputTokens: inputTokens(a.req),
		Now:         time.Now(),
	}
	if a.req.Attempt != nil {
		answer.Applied = a.req.Attempt.Repairs
	}
	return wire.Classify(answer)
}

// broken is the fault of an answer that could not be read to its end.
func (a *attempt) broken(err error) *ninelives.Fault {
	var told *ninelives.Fault
	if errors.As(err, &told) {
		return told // the frames themselves carry errors at some providers
	}
	if errors.Is(err, errTooLarge) {
		return &ninelives.Fault{Class: ninelives.ClassStreamBroken, Scope: ninelives.ScopeModel, Phase: a.watch.at(), Billed: ninelives.BilledYes, Message: err.Error(), Err: err}
	}
	return wire.Transport(a.ctx, err, a.watch.at())
}

// readStream reads a streamed answer to its terminal marker and a little
// beyond, for the usage that may follow it.
func (a *attempt) readStream(resp *http.Response, in *body) (*ninelives.Response, *ninelives.Fault) {
	stream := framesOf(resp.Header, in, a.candidate)
	var events *sse.Reader // whose bytes are relayed
	if a.raw != nil && a.stream {
		if events, _ = stream.(*sse.Reader); events != nil {
			events.Keep()
			if !a.yield(&a.frame, nil) { // from here on all comes in bytes as well
				a.left = true
			}
		}
	}
	decoder := a.codec.decoder(a.options)
	calls := callsOf(decoder)
	emit := a.pass // once: a method value is allocated
	var cause *ninelives.Fault
	failed := false // after the end of the answer, which stands
	for decoder.State() != wire.Closed && !a.left {
		open := decoder.State() == wire.Open
		if open && a.ctx.Err() != nil {
			cause = wire.Transport(a.ctx, a.ctx.Err(), a.watch.at())
			break
		}
		frame, err := stream.Next()
		if err != nil {
			if whole, ok := stream.(interface{ Body() []byte }); ok && err == io.EOF && open {
				if text := whole.Body(); text != nil {
					return a.readWhole(resp, text)
				}
			}
			if err != io.EOF {
				cause = a.broken(err)
			}
			break
		}
		a.due.text, a.due.other = false, false
		if err := decoder.Frame(frame, emit); err != nil {
			cause = a.inBand(resp, err)
			break
		}
		if open && decoder.State() == wire.Finished {
			a.watch.finished()
		}
		if events != nil && !a.left {
			raw := events.Raw()
			if !open && belated(frame) {
				failed = true
				continue
			}
			switch calls.take(raw, decoder.State()) {
			case callsNone:
				a.relayEvent(raw, decoder.State() != wire.Open, events.More())
			case callsHeld:
				a.relayDue(true)
			case callsWhole:
				a.due.events += calls.events
				a.relay(calls.data, true, events.More())
			case callsOdd:
				events = nil // what is not relayed is written from what was read
			}
		}
	}
	a.relayDue(false)
	if events != nil && !a.left && decoder.State() != wire.Open {
		a.relayRest(events, in, decoder.State() == wire.Closed, cause != nil, failed)
	}
	if a.left {
		return nil, nil
	}
	return a.bridge(a.conclude(decoder, cause))
}

// inBand completes a fault that a provider reported inside a good answer.
func (a *attempt) inBand(resp *http.Response, err error) *ninelives.Fault {
	var f *ninelives.Fault
	if !errors.As(err, &f) {
		return &ninelives.Fault{Class: ninelives.ClassStreamBroken, Scope: ninelives.ScopeModel, Phase: a.watch.at(), Billed: ninelives.BilledMaybe, Message: err.Error(), Err: err}
	}
	if f.RequestID == "" {
		for _, name := range []string{"Request-Id", "X-Request-Id"} {
			if id := resp.Header.Get(name); f.RequestID == "" {
				f.RequestID = id
			}
		}
	}
	return f
}

// conclude is what a stream comes to. An answer whose terminal marker was seen
// stands, whatever broke after it.
func (a *attempt) conclude(decoder wire.Decoder, cause *ninelives.Fault) (*ninelives.Response, *ninelives.Fault) {
	var why error
	if cause != nil {
		why = cause
	}
	answer, err := decoder.Response(why)
	if err == nil {
		return answer, nil
	}
	var f *ninelives.Fault
	if !errors.As(err, &f) {
		f = &ninelives.Fault{Class: ninelives.ClassStreamBroken, Scope: ninelives.ScopeModel, Phase: a.watch.at(), Message: err.Error(), Err: err}
	}
	if cause != nil && f != cause {
		if cause.Partial == nil {
			cause.Partial = f.Partial
		}
		f = cause
	}
	if f.Class == ninelives.ClassStreamBroken && a.watch.stalled() {
		// Whoever closes a connection after a long silence (a proxy, mostly)
		// only came before our own clock: asked again, it is silent again.
		f.Class, f.Phase, f.Message = ninelives.ClassTimeout, a.watch.at(), "the stream fell silent, and then: "+f.Message
	}
	return nil, f
}

// emit yields one event; false says that the consumer has left.
func (a *attempt) emit(ev ninelives.Event) bool {
	if size, ok := contentSize(ev); ok {
		a.watch.semantic(size)
	}
	if !a.yield(numbered(ev, a.number), nil) {
		a.left = true
	}
	return !a.left
}

// fail yields the fault that ends the attempt.
func (a *attempt) fail(f *ninelives.Fault) {
	if f.Candidate == "" {
		f.Candidate = a.candidate.Name()
	}
	if f.Class == ninelives.ClassContextLength {
		a.model.learn(f.Window)
	}
	// The provider may echo the key, in whatever form.
	key := a.model.key
	f.Message, f.Code, f.Type, f.Hint = key.scrub(f.Message), key.scrub(f.Code), key.scrub(f.Type), key.scrub(f.Hint)
	if f.Err != nil {
		if text := f.Err.Error(); key.scrub(text) != text {
			f.Err = errors.New(key.scrub(text))
		}
	}
	a.yield(nil, f)
}
