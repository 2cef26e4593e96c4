package gateway

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
)

// embeddings is POST /v1/embeddings. It is healed as calls are, but only those
// stand in for each other that serve the very same model: vectors of different
// ones cannot be compared, and nobody would notice.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) {
	k := &call{s: s, plan: s.plan.Load(), codec: chat, w: w, r: r, began: time.Now(), id: "req_" + random(12), forget: func() {}}
	k.stats = callStats{ID: k.id, Began: k.began, Operation: "embeddings", Protocol: chat.protocol}
	k.truth = newTruth(k.began)
	leave, no := s.enter(k.plan.Limits)
	if no != nil {
		k.refuse(no)
		return
	}
	defer leave()
	defer func() { k.forget() }()
	if err := k.embed(); err != nil {
		k.refuse(err)
	}
}

// embed answers a call for vectors; an error is one of a call that nobody was
// asked for.
func (k *call) embed() (err error) {
	if k.client, err = k.plan.clients.who(k.r.Header, k.r.URL.Query()); err != nil {
		return err
	}
	k.stats.Key = k.client.Name
	if k.body, k.forget, err = k.s.read(k.w, k.r, k.plan.Limits); err != nil {
		return err
	}
	req, err := openai.DecodeEmbedRequest(k.body)
	if err != nil {
		return err
	}
	asks, bad := parseControl(k.r.Header, "")
	if bad != nil {
		return bad
	}
	k.asks, k.head.Model = asks, req.Model
	for _, text := range req.Texts {
		k.head.Text += len(text)
	}
	if k.way, err = k.s.way(k.plan, k.client, k); err != nil {
		return err
	}
	k.stats.Route = k.way.Name
	chain := embedders(k.way.models)
	if len(chain) == 0 {
		return &refused{Trouble: troubleNoModel, Param: "model", Text: "No model of the route " + shownName(k.way.Name) + " makes vectors. Name one that does, as provider/model."}
	}
	policy := k.way.buffered
	policy.Hedge.After = 0
	k.asks.change(&policy, false)
	healed, err := heal.NewEmbedder(chain, heal.With(policy), heal.SharedHealth(k.way.health), heal.Observer(k.notice), heal.Priority(k.way.priority))
	if err != nil {
		return err
	}
	place, stands, quotaErr := k.s.quotas.admit(k.r.Context(), k.client, k.size(), time.Now())
	if quotaErr != nil {
		k.s.options.Log.Error("a budget", "error", quotaErr.Error())
	}
	if place == nil {
		return stands.refused(&k.client.Key, k.size())
	}
	out := newConnection(k.w, k.r, k.plan.Limits.Write)
	var end ending
	resp, err := healed.Embed(k.r.Context(), req)
	switch {
	case err != nil && errors.Is(k.r.Context().Err(), context.Canceled):
		end.err, end.gone = err, true
	case err != nil:
		end.err = err
		k.fail(out, &end)
	default:
		end.response = &ninelives.Response{Usage: resp.Usage, Model: resp.Model, Candidate: resp.Candidate, Attempts: resp.Attempts, Finish: ninelives.FinishStop}
		end.attempt = resp.Attempts
		body := resp.Raw
		if body == nil {
			if body, err = openai.EncodeEmbedResponse(resp, req.Encoding); err != nil {
				end.response, end.err = nil, err
				k.fail(out, &end)
				break
			}
		}
		k.truth.done(end.response)
		end.status = http.StatusOK
		h := http.Header{}
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		k.headers(h)
		out.Start(http.StatusOK, h)
		_, _ = out.Write(body) // a client that has gone needs nothing
	}
	k.finish(end)
	place.settle(k.spent(), time.Now())
	return nil
}

// embedders are those of the models that make vectors and serve the same model
// as the first of them.
func embedders(models []ninelives.Model) (chain []ninelives.Embedder) {
	var first ninelives.Candidate
	for _, m := range models {
		c, _ := ninelives.CandidateOf(m)
		e, ok := ninelives.EmbedderOf(m)
		if !ok || c.Protocol == ninelives.AnthropicMessages || len(chain) > 0 && !heal.SameVectors(first, c) {
			continue
		}
		if len(chain) == 0 {
			first = c
		}
		chain = append(chain, e)
	}
	return chain
}
