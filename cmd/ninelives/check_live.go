package main

import (
	"context"
	"errors"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

// livePlan is what came of asking a candidate.
type livePlan struct {
	OK      bool   `json:"ok"`
	MS      int64  `json:"ms"`
	Class   string `json:"class,omitempty"`
	Message string `json:"message,omitempty"`
	Do      string `json:"do,omitempty"`
}

const (
	// liveTime bounds a request of check --live.
	liveTime = time.Minute
	// liveTokens is as good as one: some servers take no smaller limit.
	liveTokens = 16
)

// ask asks every candidate of the plan once, all at the same time.
func (p *plan) ask(ctx context.Context) {
	type identity struct{ provider, model, host, key string }
	asked := map[identity]*livePlan{}
	var wg sync.WaitGroup
	for _, r := range p.Routes {
		for i := range r.Candidates {
			c := &r.Candidates[i]
			k, _ := ninelives.CandidateOf(c.model)
			id := identity{k.Provider, k.Model, k.Host, k.Key}
			if asked[id] == nil {
				asked[id] = &livePlan{}
				live := asked[id]
				wg.Go(func() { *live = askOnce(ctx, c.model, k) })
			}
			c.Live = asked[id]
		}
	}
	wg.Wait()
}

// askOnce asks a candidate for a word. Any answer will do.
func askOnce(ctx context.Context, m ninelives.Model, k ninelives.Candidate) livePlan {
	ctx, cancel := context.WithTimeout(ctx, liveTime)
	defer cancel()
	policy := heal.DefaultPolicy()
	start := time.Now()
	_, err := ninelives.Collect(m.Stream(ctx, &ninelives.Request{
		Messages:  []ninelives.Message{ninelives.UserText("Say ok.")},
		MaxTokens: liveTokens,
		Attempt:   &ninelives.Attempt{Clocks: policy.ClocksFor(k, heal.Facts{})},
	}))
	out := livePlan{OK: err == nil, MS: time.Since(start).Milliseconds()}
	if err == nil {
		return out
	}
	class := ninelives.ClassUnknown
	var fault *ninelives.Fault
	if errors.As(err, &fault) {
		class = fault.Class
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		class = ninelives.ClassTimeout
	}
	out.Class, out.Message, out.Do = string(class), clip(describe(err), 300), whatToDo(class)
	return out
}

// whatToDo says what helps against a fault of a single request.
func whatToDo(class ninelives.Class) string {
	switch class {
	case ninelives.ClassAuth:
		return "check the key and what it may do"
	case ninelives.ClassBilling:
		return "add credit or raise the spend limit at the provider"
	case ninelives.ClassModelNotFound:
		return "check the model's name and the base URL"
	case ninelives.ClassNetwork:
		return "check the base URL, the network and the proxy: is the server running?"
	case ninelives.ClassFormat:
		return "check the base URL, the protocol and the dialect"
	case ninelives.ClassRateLimit, ninelives.ClassOverloaded:
		return "try again in a minute"
	case ninelives.ClassTimeout:
		return "try again; if it stays silent, check the base URL"
	}
	return "try again; see docs/faults.md"
}
