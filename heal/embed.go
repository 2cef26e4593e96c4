package heal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Embedder is a chain of embedders with healing around it, and an embedder
// itself. Calls for vectors are healed by the same decider, budget and health as
// all others: within, each embedder is a model whose answers have no text. It is
// safe for concurrent use.
type Embedder struct {
	healed *Healed
}

var _ ninelives.Embedder = (*Embedder)(nil)

// NewEmbedder makes an embedder that heals what those of the chain do wrong;
// they are asked in this order.
//
// Vectors of different models have nothing to do with each other: whoever
// compares them gets numbers that mean nothing, and no error. So a chain has one
// model, at several hosts or with several keys; an error says so if it has more.
// SameVectors tells which candidates may stand in for each other.
//
// Options that add models or substitutes to a chain do nothing here.
func NewEmbedder(chain []ninelives.Embedder, opts ...Option) (*Embedder, error) {
	if len(chain) == 0 {
		return nil, errors.New("heal: there is no embedder to ask: name at least one")
	}
	links := make([]link, len(chain))
	for i, e := range chain {
		links[i].model = asModel(e)
		if a, b := chain[0], e; !SameVectors(candidateOf(a), candidateOf(b)) {
			return nil, fmt.Errorf("heal: %s cannot stand in for %s: vectors of different models cannot be compared: use the same model at another host or with another key", b.Name(), a.Name())
		}
	}
	only := func(h *Healed) { h.links, h.substitutes, h.mode = links, nil, ModeRestart }
	return &Embedder{New(links[0].model, append(opts[:len(opts):len(opts)], only)...)}, nil
}

// SameVectors reports whether two candidates serve the same embedding model, so
// that vectors of one can be compared with vectors of the other: their models
// have the same name. Names that differ only in how a vendor writes them count
// as different, since a quantised or retrained model also has but another name.
func SameVectors(a, b ninelives.Candidate) bool { return a.Model == b.Model }

// candidateOf is the candidate that an embedder speaks for; one that says
// nothing of it speaks for its name.
func candidateOf(e ninelives.Embedder) ninelives.Candidate {
	if c, ok := e.(interface{ Candidate() ninelives.Candidate }); ok {
		return c.Candidate()
	}
	return ninelives.Candidate{Model: e.Name()}
}

// Name is the chain's name, or the first embedder's.
func (e *Embedder) Name() string { return e.healed.Name() }

// Candidate is the first candidate of the chain.
func (e *Embedder) Candidate() ninelives.Candidate { return e.healed.links[0].candidate }

// Health is the record that this chain goes by.
func (e *Embedder) Health() *Health { return e.healed.health }

// Embed makes one call and heals it; the error is as of [Healed.Stream].
func (e *Embedder) Embed(ctx context.Context, req *ninelives.EmbedRequest) (*ninelives.EmbedResponse, error) {
	call := &embedCall{req: req, answers: map[int]*ninelives.EmbedResponse{}}
	ctx = context.WithValue(ctx, embedKey{}, call)
	for ev, err := range e.healed.Stream(ctx, &ninelives.Request{Model: req.Model, Buffered: true, Attempt: req.Attempt}) {
		if err != nil {
			return nil, err
		}
		done, ok := ev.(ninelives.Done)
		if !ok {
			continue
		}
		answer := *call.answer(done.Attempt)
		answer.Candidate, answer.IsFallback, answer.Attempts = done.Response.Candidate, done.Response.IsFallback, done.Response.Attempts
		return &answer, nil
	}
	return nil, ninelives.ErrNoEnd
}

// embedKey finds the call in the context of its attempts.
type embedKey struct{}

// embedCall is one call for vectors: what the attempts are asked, and what they
// answered, by their numbers.
type embedCall struct {
	req *ninelives.EmbedRequest

	mu      sync.Mutex
	answers map[int]*ninelives.EmbedResponse
}

func (c *embedCall) keep(number int, answer *ninelives.EmbedResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[number] = answer
}

func (c *embedCall) answer(number int) *ninelives.EmbedResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[number]
}

// asModel is an embedder in the eyes of the driver.
func asModel(e ninelives.Embedder) ninelives.Model {
	m := embedModel{e}
	if c, ok := e.(interface{ Candidate() ninelives.Candidate }); ok {
		return embedCandidate{m, c.Candidate}
	}
	return m
}

type embedModel struct{ ninelives.Embedder }

// embedCandidate is one that says which candidate it speaks for.
type embedCandidate struct {
	embedModel
	candidate func() ninelives.Candidate
}

// Candidate describes the embedder.
func (m embedCandidate) Candidate() ninelives.Candidate { return m.candidate() }

// Stream makes one attempt at the call that the context carries. A request
// without a number is a probe: it asks for the vector of one word.
func (m embedModel) Stream(ctx context.Context, req *ninelives.Request) iter.Seq2[ninelives.Event, error] {
	return func(yield func(ninelives.Event, error) bool) {
		call := ctx.Value(embedKey{}).(*embedCall)
		ask, number := *call.req, 0
		if req.Attempt != nil {
			number = req.Attempt.Number
		}
		if number == 0 {
			ask = ninelives.EmbedRequest{Texts: []string{"ping"}}
		}
		ask.Attempt = req.Attempt
		answer, err := m.Embed(ctx, &ask)
		switch {
		case err != nil:
			yield(nil, unrepaired(err))
			return
		case answer == nil:
			return // which breaks the contract, and is a fault
		}
		call.keep(number, answer)
		yield(ninelives.Done{Attempt: number, Response: &ninelives.Response{
			Message: ninelives.Message{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.Opaque{}}},
			Finish:  ninelives.FinishStop, Model: answer.Model, Usage: answer.Usage,
		}}, nil)
	}
}

// unrepaired leaves out the repairs of a fault: they are for requests of chats.
func unrepaired(err error) error {
	var f *ninelives.Fault
	if !errors.As(err, &f) || f == nil || len(f.Repairs) == 0 {
		return err
	}
	plain := *f
	plain.Repairs = nil
	return &plain
}
