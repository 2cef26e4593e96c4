package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/journal"
)

// journalSource names the gateway in the journal.
const journalSource = "gateway"

// The labels of a call in the journal.
const (
	labelKey   = "key"
	labelRoute = "route"
	labelModel = "model"
)

// pruneEvery is how often what the journal keeps no longer is removed.
const pruneEvery = time.Hour

// begin makes the call durable before anybody is asked.
func (k *call) begin(ctx context.Context) error {
	j, err := k.s.options.Journal, k.s.options.NoJournal
	if k.plan.Journal.Off || j == nil && err == nil && !k.plan.Journal.Refuse {
		return nil
	}
	if j == nil {
		return k.withoutJournal(cmp.Or(err, errNoJournal))
	}
	if err := j.Gone(); err != nil { // who would find it there again?
		return k.withoutJournal(err)
	}
	labels := map[string]string{labelRoute: k.way.Name}
	if k.client.Name != "" {
		labels[labelKey] = k.client.Name
	}
	if k.head.Model != "" {
		labels[labelModel] = label(k.head.Model)
	}
	id, err := j.Begin(ctx, journal.Call{Source: journalSource, Client: k.client.Name, Repeat: k.asks.Idempotency, Labels: labels, Public: k.public,
		Raw: &journal.RawCall{Protocol: k.codec.protocol, Path: k.r.URL.Path, Body: k.body, Header: forUpstream(k.r.Header, k.codec.protocol)}})
	switch {
	case err == nil:
		k.kept = id
		k.truth.call = id
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return k.withoutJournal(err)
}

var errNoJournal = errors.New("the gateway was given no journal")

// withoutJournal says that the call cannot be kept. The error is the client's, where
// nothing is answered then.
func (k *call) withoutJournal(err error) error {
	k.s.metrics.journalFailed()
	k.s.options.Log.Error("a call is not kept", "request_id", k.id, "error", err.Error())
	if k.plan.Journal.Refuse {
		return &refused{Trouble: troubleBusy, Text: "This gateway cannot write its journal and is told to answer nothing that it cannot keep. Its log says why.", Wait: 10 * time.Second}
	}
	return nil
}

// end says in the journal what became of the call. Nobody waits for it.
func (k *call) end(e ending) {
	if k.kept == "" {
		return
	}
	o := journal.Outcome{Status: e.status, Attempts: k.attempts(), Usage: k.stats.Usage, Public: k.public}
	o.Cost, o.Estimated = k.stats.cost()
	switch {
	case e.gone:
		o.Error = "the client left"
		o.Fault = &ninelives.Fault{Class: ninelives.ClassCanceled, Message: "the client left before the end of the answer"}
		o.Partial = e.response
	case e.err != nil:
		made := journal.OutcomeOf(nil, e.err)
		o.Fault, o.Error = made.Fault, made.Error
	case e.raw != nil:
		o.Raw = e.raw
	default:
		o.Response = e.response
	}
	switch k.plan.Journal.Retention {
	case RetainNone:
		o.Forget = true
	case RetainDone:
		o.Forget = e.err == nil && !e.gone
	}
	if o.Forget && (o.Response != nil || o.Raw != nil) {
		o.Answered = true
	}
	err := k.s.options.Journal.EndLater(context.Background(), k.kept, o, func(err error) {
		switch {
		case err != nil:
			k.s.unkept(k.id, err)
		case o.Forget:
			select {
			case k.s.forgotten <- struct{}{}:
			default: // it is known already
			}
		}
	})
	if err != nil {
		k.s.unkept(k.id, err)
	}
}

func (s *Server) unkept(id string, err error) {
	s.metrics.journalFailed()
	s.options.Log.Error("the end of a call is not kept", "request_id", id, "error", err.Error())
}

// Asked is what a call of the journal asked, read from the client's own bytes.
// The name of the model is left out: it was meant for the gateway's routes.
func Asked(raw *journal.RawCall) (*ninelives.Request, error) {
	c := codecOf(raw.Protocol)
	if c == nil {
		return nil, fmt.Errorf("a call in the protocol %q cannot be read", raw.Protocol)
	}
	in, err := c.read(raw.Path, raw.Body)
	if err != nil {
		return nil, err
	}
	in.Request.Model = ""
	return in.Request, nil
}

// attempts are those of the call as the journal has them.
func (k *call) attempts() []journal.Attempt {
	list := make([]journal.Attempt, len(k.stats.Trail))
	for i, a := range k.stats.Trail {
		list[i] = journal.Attempt{Number: a.Number, Candidate: a.Candidate, Class: a.Class, Status: a.Status, Took: a.Took, Cost: a.Cost, Estimated: a.Estimated}
	}
	return list
}

// scrubAfter is how long what was removed may stand in the journal's log: to
// empty it is work that many calls share.
const scrubAfter = time.Second

// prune removes what is not kept any longer, until ctx ends.
func (s *Server) prune(ctx context.Context) {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	var scrub <-chan time.Time
	for due := true; ; {
		if due {
			s.pruneNow(ctx)
			due = false
		}
		select {
		case <-tick.C:
			due = true
		case <-s.forgotten:
			if scrub == nil {
				scrub = time.After(scrubAfter)
			}
		case <-scrub:
			scrub = nil
			if err := s.options.Journal.Scrub(ctx); err != nil && ctx.Err() == nil {
				s.options.Log.Warn("the journal", "error", err.Error())
				scrub = time.After(scrubAfter)
			}
		case <-ctx.Done():
			return
		}
	}
}

// pruneNow removes what is not kept any longer.
func (s *Server) pruneNow(ctx context.Context) {
	policy := journal.Policy{Source: journalSource}
	switch set := s.plan.Load().Journal; set.Retention {
	case RetainDays:
		policy.Content = time.Duration(set.Days) * 24 * time.Hour
	default:
		policy.Content = -1
	}
	if _, err := s.options.Journal.Prune(ctx, time.Now(), policy); err != nil && ctx.Err() == nil {
		s.options.Log.Error("the journal is not pruned", "error", err.Error())
	}
}

// recall finds the answer of a call from before this process by the client's
// own key of it (Idempotency-Key).
func (s *Server) recall(ctx context.Context, key liveKey) (recalled, bool) {
	rec, err := s.options.Journal.ByRepeat(ctx, key.client, key.idempotency)
	if err != nil || rec.Raw == nil || rec.Outcome == nil || rec.State != journal.StateComplete {
		return recalled{}, false
	}
	old := recalled{id: rec.Public, hash: hashOf(rec.Raw.Path, rec.Raw.Body), status: http.StatusOK, header: http.Header{}}
	c := codecOf(rec.Raw.Protocol)
	head, err := wire.Peek(rec.Raw.Protocol, rec.Raw.Body)
	switch r := rec.Outcome.Response; {
	case c == nil || err != nil:
		return recalled{}, false
	case rec.Outcome.Raw != nil:
		old.body = rec.Outcome.Raw
	case r == nil:
		return recalled{}, false
	case head.Stream || strings.Contains(rec.Raw.Path, ":stream"):
		old.body = c.encoder(wire.EncodeOptions{ID: r.ID, Model: r.Model, Created: rec.Started, Usage: head.Usage}).Event(nil, ninelives.Done{Response: r})
		old.header.Set("Content-Type", "text/event-stream; charset=utf-8")
		return old, true
	default:
		if old.body, err = c.whole(r); err != nil {
			return recalled{}, false
		}
	}
	old.header.Set("Content-Type", "application/json")
	return old, true
}

// recallResponse finds a stored response from before this process.
func (s *Server) recallResponse(ctx context.Context, client, id string) (storedResponse, bool) {
	rec, err := s.options.Journal.ByPublic(ctx, client, id)
	if err != nil || rec.Raw == nil || rec.Outcome == nil || rec.State != journal.StateComplete || rec.Raw.Protocol != ninelives.OpenAIResponses || !storing(rec.Raw.Body) {
		return storedResponse{}, false
	}
	switch r := rec.Outcome.Response; {
	case r != nil:
		answer := *r
		answer.ID = id
		return storedOf(rec.Raw.Body, openai.EncodeResponsesResponse(&answer), &answer.Message), true
	case rec.Outcome.Raw != nil:
		resp, err := openai.DecodeResponsesResponse(rec.Outcome.Raw, wire.DecodeOptions{})
		if err != nil {
			return storedResponse{}, false
		}
		return storedOf(rec.Raw.Body, rec.Outcome.Raw, &resp.Message), true
	}
	return storedResponse{}, false
}

// eraseResponse removes a stored response for good.
func (s *Server) eraseResponse(ctx context.Context, client, id string) error {
	rec, err := s.options.Journal.ByPublic(ctx, client, id)
	if errors.Is(err, journal.ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.options.Journal.Remove(ctx, rec.ID)
}
