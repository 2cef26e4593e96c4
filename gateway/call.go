package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/provider"
)

// call is one call of a client, from its request to the end of its answer.
type call struct {
	s     *Server
	plan  *plan
	codec *codec
	w     http.ResponseWriter
	r     *http.Request

	id     string // of the request
	public string // id of the answer, where the gateway gives it
	began  time.Time
	body   []byte
	head   wire.Head
	asks   control
	client *client
	way    *way
	req    *ninelives.Request
	again  *repeatKey // nil until it is asked for
	known  bool       // it can be told: the body was read
	cached cacheKey
	caches bool       // the answer may come from the cache, or go there
	grew   *expansion // of previous_response_id; nil if there was none
	forget func()     // gives back what the call holds

	span   *callSpan
	stats  callStats
	truth  truth
	kept   string // id in the journal; empty if it is not there
	faults map[int]*ninelives.Fault
	sent   int // bytes of content that went out
}

// call is the handler of calls in one protocol.
func (s *Server) call(c *codec) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		k := &call{s: s, plan: s.plan.Load(), codec: c, w: w, r: r, began: time.Now()}
		k.serve()
	}
}

// generate is Gemini's path, in which the model stands.
func (s *Server) generate(w http.ResponseWriter, r *http.Request) {
	_, rest, _ := strings.Cut(r.URL.Path, "/models/")
	switch _, method, _ := strings.Cut(rest, ":"); {
	case method == "countTokens":
		s.countTokens(w, r)
		return
	}
	c := generate
	if strings.HasSuffix(r.URL.Path, ":streamGenerateContent") && r.URL.Query().Get("alt") != "sse" {
		c = geminiArray
	}
	s.call(c)(w, r)
}

// serve answers the call.
func (k *call) serve() {
	k.id = "req_" + random(12)
	k.public = k.codec.idPrefix + random(16)
	k.forget = func() {}
	k.stats = callStats{ID: k.id, Began: k.began, Operation: "chat", Protocol: k.codec.protocol}
	k.truth = newTruth(k.began)
	leave, no := k.s.enter(k.plan.Limits)
	if no != nil {
		k.refuse(no)
		return
	}
	if err := k.accept(); err != nil {
		k.forget()
		leave()
		k.refuse(err)
		return
	}
	k.forget = sync.OnceFunc(func(forget func()) func() { return func() { forget(); leave() } }(k.forget))
	switch {
	case k.head.Background && k.codec == responses:
		k.detach()
	case k.asks.Idempotency != "":
		k.share()
	default:
		defer k.forget()
		if end := k.carry(k.r.Context(), newConnection(k.w, k.r, k.plan.Limits.Write)); end.broke && !k.codec.cleanFailure {
			panic(http.ErrAbortHandler) // a clean end would look like a whole answer
		}
	}
}

// accept finds out who asks for what, and whether he may.
func (k *call) accept() (err error) {
	if k.client, err = k.plan.clients.who(k.r.Header, k.r.URL.Query()); err != nil {
		return err
	}
	k.stats.Key = k.client.Name
	if k.body, k.forget, err = k.s.read(k.w, k.r, k.plan.Limits); err != nil {
		return err
	}
	if k.head, err = wire.Peek(k.codec.protocol, k.body); err != nil {
		return err
	}
	if k.codec.protocol == ninelives.Gemini {
		model, stream, ok := gemini.ParsePath(k.r.URL.Path)
		if !ok {
			return &refused{Trouble: troubleNotFound, Text: "There is no such method of a model. Use :generateContent, :streamGenerateContent or :countTokens."}
		}
		k.head.Model, k.head.Stream, k.head.Usage = model, stream, true
	}
	k.stats.Stream = k.head.Stream
	if k.head.Thread {
		// The client then sends the whole conversation by itself.
		// Source: notes/clients.md §1.9, measured.
		return &refused{Trouble: troubleMalformed, Code: "thread_unsupported_request",
			Text: "This gateway keeps no threads of messages. Send the whole conversation.", Param: "thread"}
	}
	asks, bad := parseControl(k.r.Header, k.head.Session)
	if bad != nil {
		return bad
	}
	k.asks = asks
	k.stats.ClientRetry = asks.Retry
	if k.asks.RequestID != "" {
		k.id = k.asks.RequestID
		k.stats.ID = k.id
	}
	k.truth.requestID = k.id
	k.known = true
	if k.way, err = k.s.way(k.plan, k.client, k); err != nil {
		return err
	}
	k.stats.Route = k.way.Name
	return k.request()
}

// carry carries the call out and sends its answer.
func (k *call) carry(ctx context.Context, out sink) ending {
	ctx, k.span = k.s.tracing.begin(ctx, k.r.Header, k.stats.Operation, k.way.Name, k.id)
	k.stats.Trace = traceID(ctx)
	traced := http.Header{}
	inject(ctx, propagation.HeaderCarrier(traced))
	ctx = provider.Forward(ctx, traced)
	var end ending
	if err, ok := k.s.repeats.exhausted.recall(k.repeat, time.Now()); ok {
		end.err = err
		k.fail(out, &end)
		return k.finish(end)
	}
	place, stands, err := k.s.quotas.admit(ctx, k.client, k.size(), time.Now())
	if err != nil {
		k.s.options.Log.Error("a budget", "error", err.Error())
	}
	if place == nil {
		end.err = stands.refused(&k.client.Key, k.size())
		k.fail(out, &end)
		return k.finish(end)
	}
	defer func() { place.settle(k.spent(), time.Now()) }()
	if k.caches && k.asks.Cache != cacheRefresh {
		if r, ok := k.way.cache.get(time.Now(), k.cached); ok {
			return k.serveKept(out, r)
		}
		k.truth.cache = string(cacheMiss)
	}
	if end.err = k.begin(ctx); end.err != nil {
		if ctx.Err() != nil {
			end.gone = true
			return k.finish(end)
		}
		k.fail(out, &end)
		return k.finish(end)
	}
	if k.head.Stream {
		end = k.stream(ctx, out)
	} else if end = runWhole(ctx, k.model(), k.req, k.notice); !end.gone {
		if k.truth.done(end.response); end.err != nil {
			k.fail(out, &end)
		} else {
			k.whole(out, &end)
		}
	}
	if end.err != nil && !end.gone {
		k.s.repeats.exhausted.remember(k.repeat, k.way.Name, end.err, time.Now())
	}
	return k.finish(end)
}

// repeat is what makes the call the same as another one. Hashing a body is most
// of what the gateway does with a long one, and mostly nobody needs it.
func (k *call) repeat() repeatKey {
	if k.again == nil {
		again := repeatOf(k.client.Name, k.codec.protocol, k.r.URL.Path, &k.asks, k.body)
		k.again = &again
	}
	return *k.again
}

// serveKept answers with an answer that was kept.
func (k *call) serveKept(out sink, r *ninelives.Response) ending {
	k.truth.cache = string(cacheHit)
	k.stats.heal(healedCache)
	r.ID = k.public
	end := ending{response: r, status: http.StatusOK}
	if !k.head.Stream {
		k.whole(out, &end)
		return k.finish(end)
	}
	st := k.newStream(out)
	st.start()
	defer st.stop()
	end.gone = st.event(ninelives.Done{Response: r}) != nil
	return k.finish(end)
}

// newStream is the stream of this call's answer.
func (k *call) newStream(out sink) *stream {
	return &stream{codec: k.codec, out: out, head: k.headers, plain: k.plain, foreign: k.foreign,
		options: wire.EncodeOptions{ID: k.public, Model: k.head.Model, Created: k.began, Usage: k.head.Usage}}
}

// plain says that a candidate's reasoning has no proof: its protocol has none.
func (k *call) plain(name string) bool { return k.protocolOf(name) == ninelives.OpenAIChat }

// foreign says that a candidate speaks another protocol than the client.
func (k *call) foreign(name string) bool {
	p := k.protocolOf(name)
	return p != "" && p != k.codec.protocol
}

// protocolOf is what a candidate is spoken to in; empty if that is not known.
func (k *call) protocolOf(name string) ninelives.Protocol {
	for _, m := range speaking(k.way.models, k.codec.protocol) {
		if c, ok := ninelives.CandidateOf(m); ok && m.Name() == name {
			return c.Protocol
		}
	}
	return ""
}

// stream carries out a call whose answer is streamed.
func (k *call) stream(ctx context.Context, out sink) ending {
	st := k.newStream(out)
	st.truth = func(dst []byte, r *ninelives.Response) []byte {
		k.truth.done(r)
		return k.truth.comment(dst)
	}
	end := st.run(provider.Pausing(ctx, st.pause), k.model(), k.req, k.notice)
	k.sent = st.content()
	switch {
	case end.gone:
	case end.err == nil:
		k.truth.done(end.response)
		k.trailers(out)
	case end.broke:
		st.fail(streamFault(end.err, time.Now()))
		k.trailers(out)
	default:
		k.truth.done(nil)
		k.fail(out, &end)
	}
	if r := end.response; r != nil && st.owner == 0 {
		named := *r
		named.ID = k.public
		end.response = &named
	}
	return end
}

// notice takes one healing step.
func (k *call) notice(n ninelives.Notice) {
	k.stats.notice(n, time.Now())
	if n.Kind == ninelives.NoticeAttempt {
		k.s.latency.asked(n.Candidate)
	}
	if n.Kind == ninelives.NoticeFault && n.Fault != nil {
		if k.faults == nil {
			k.faults = map[int]*ninelives.Fault{}
		}
		k.faults[n.Attempt] = n.Fault
	}
	k.truth.notice(n)
	k.s.metrics.notice(n)
	k.span.notice(n)
}

// whole sends an answer in one piece.
func (k *call) whole(out sink, end *ending) {
	body := end.raw
	if body == nil {
		answer := *end.response
		answer.ID = k.public
		end.response = &answer
		var err error
		if body, err = k.codec.whole(&answer); err != nil {
			end.response, end.err = nil, err
			k.fail(out, end)
			return
		}
	}
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	k.headers(h)
	end.status = http.StatusOK
	out.Start(http.StatusOK, h)
	_, err := out.Write(body)
	if err == nil {
		err = out.Flush() // the client need not wait until the call is in the books
	}
	if err != nil {
		end.gone = true
	}
}

// fail sends the error of a call of which nothing is out.
func (k *call) fail(out sink, end *ending) {
	a := k.answer(end.err)
	if a.overflow() && k.known && k.s.repeats.overflow.refuses(k.repeat(), len(k.body), time.Now()) {
		a = a.plain(k.codec.protocol)
	}
	end.status = a.Status
	k.send(out, a)
}

// answer is what the client is told about an error.
func (k *call) answer(err error) clientAnswer {
	return answerFor(k.codec.protocol, k.asks.Client, k.head.Stream, err, time.Now())
}

// send sends an error.
func (k *call) send(out sink, a clientAnswer) {
	h := a.Header
	k.headers(h)
	var body []byte
	if a.Stream != nil {
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		body = k.codec.encoder(wire.EncodeOptions{ID: k.codec.idPrefix + random(16), Model: k.head.Model, Created: k.began}).Fail(nil, a.Stream)
	} else {
		a.Error.RequestID = k.id
		h.Set("Content-Type", "application/json")
		body = k.codec.fail(a.Error)
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	out.Start(a.Status, h)
	_, _ = out.Write(body) // a client that has gone needs no error
	_ = out.Flush()
}

// refuse says no before anybody was asked.
func (k *call) refuse(err error) {
	if k.asks.Client == "" {
		k.asks.Client = clientOf(k.r.Header)
	}
	end := ending{err: err}
	k.fail(newConnection(k.w, k.r, k.plan.Limits.Write), &end)
	k.stats.Outcome, k.stats.Status = outcomeRejected, end.status
	k.stats.end(0, time.Now())
	k.s.told(k.r.Context(), &k.stats)
}

// headers are those of every answer.
func (k *call) headers(h http.Header) {
	h.Set("X-Request-Id", k.id)
	h.Set(k.codec.requestID, k.id)
	k.truth.headers(h)
}

// trailers say at the end of a stream what its headers could not know yet.
func (k *call) trailers(out sink) {
	c, ok := out.(*connection)
	if !ok {
		return // an answer that is kept for others has an end of its own
	}
	h := http.Header{}
	k.truth.headers(h)
	for name, values := range h {
		c.w.Header()[http.TrailerPrefix+name] = values
	}
}

// finish closes the accounts.
func (k *call) finish(end ending) ending {
	now := time.Now()
	st := &k.stats
	st.Status, st.ClientGone = end.status, end.gone
	if !end.first.IsZero() && k.head.Stream {
		st.FirstToken = end.first.Sub(k.began)
	}
	switch r := end.response; {
	case end.gone:
		st.Outcome = outcomeGone
	case r == nil:
		st.Outcome = outcomeFailed
		var f *ninelives.Fault
		if errors.As(end.err, &f) {
			st.Class = f.Class
		}
		var no *refused
		if errors.As(end.err, &no) {
			st.Outcome = outcomeRejected
		}
	case r.Degraded != "":
		st.Outcome = outcomeDegraded
	case r.Finish == ninelives.FinishLength:
		st.Outcome = outcomeCut
	case r.Finish == ninelives.FinishRefusal, r.Finish == ninelives.FinishContentFilter:
		st.Outcome = outcomeRefused
	default:
		st.Outcome = outcomeOK
	}
	st.Overhead = k.truth.overhead(now)
	st.end(end.attempt, now)
	k.account(end)
	if r := end.response; r != nil && !end.gone && end.err == nil {
		k.s.sticky.served(k.way.sticky, st.Served, now)
		k.s.repeats.overflow.answered(k.repeat, now)
		if k.caches && k.way.cache.put(now, k.cached, r) {
			k.truth.cache = string(cacheStored)
		}
		if k.codec == responses && !k.head.Background && r.Degraded == "" && storing(k.body) {
			k.store(r, end.raw)
		}
	}
	if st.FirstToken > 0 && st.Served != "" && len(st.Trail) == 1 {
		k.s.latency.observe(st.Served, st.FirstToken, now)
	}
	k.end(end)
	k.span.end(st, end.attempt)
	k.s.told(k.r.Context(), st)
	return end
}

// store keeps a response for the client to go on from.
func (k *call) store(r *ninelives.Response, object []byte) {
	if object == nil {
		object = openai.EncodeResponsesResponse(r)
	}
	var previous *storedNode
	if k.grew != nil {
		previous = k.grew.Previous
	}
	k.public = r.ID
	k.s.responses.put(time.Now(), k.client.Name, storedOf(k.body, object, &r.Message), previous)
}

// told tells everybody of a call that has ended.
func (s *Server) told(ctx context.Context, st *callStats) {
	s.metrics.call(st)
	logCall(context.WithoutCancel(ctx), s.options.Log, st)
	s.recent.add(*st)
}

// random is a word of n random bytes.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}
