package gateway

import (
	"sync"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// request makes the request for the models: the client's own bytes, and what
// they mean where that is asked for, or has to be.
func (k *call) request() (err error) {
	if k.head.PreviousID != "" {
		if k.grew, err = k.s.responses.expand(k.r.Context(), k.client.Name, k.body); err != nil {
			return err
		}
	}
	path, body := k.r.URL.Path, k.body
	read := sync.OnceValues(func() (*ninelives.Request, error) {
		in, err := k.codec.read(path, body)
		if err != nil {
			return nil, err
		}
		in.Request.Model = k.head.Model
		return in.Request, nil
	})
	raw := &ninelives.Raw{Protocol: k.codec.protocol, Body: body, Model: k.head.ModelAt, Stream: k.head.Stream,
		Header: forUpstream(k.r.Header, k.codec.protocol)}
	if k.codec == messages {
		raw.Query = k.r.URL.RawQuery
	}
	switch {
	case k.grew != nil:
		if k.req, err = k.grew.request(); err != nil {
			return err
		}
		k.req.Model = k.head.Model
	case wire.Marked(body) || k.head.Background || k.head.Billing && k.elsewhere():
		// Thinking of another vendor in our own wrapping is for nobody's eyes, and
		// an answer that the gateway itself makes in the background is asked for here.
		whole, err := read()
		if err != nil {
			return err
		}
		req := *whole
		k.req = &req
	case k.head.Simple:
		raw.Decode, raw.Text, raw.Tools = read, k.head.Text, k.head.Tools
		k.req = &ninelives.Request{Model: k.head.Model, MaxTokens: k.head.MaxTokens, N: k.head.N, Raw: raw}
	default:
		whole, err := read()
		if err != nil {
			return err
		}
		req := *whole
		k.req, req.Raw = &req, raw
	}
	k.req.Buffered = !k.head.Stream
	if k.way.cache != nil && k.asks.Cache != cacheOff {
		owner := k.client.Name
		if k.way.Cache.Shared {
			owner = ""
		}
		k.cached, k.caches = cacheKeyOf(owner, k.way.Name, k.head.Model, raw)
	}
	return nil
}

// elsewhere says that a server of Anthropic's protocol that is not Anthropic's
// may be asked: the line of its own that Claude Code puts in front of a prompt
// would keep every prefix cache from hitting there.
func (k *call) elsewhere() bool {
	for _, m := range speaking(k.way.models, k.codec.protocol) {
		if c, ok := ninelives.CandidateOf(m); ok && c.Protocol == ninelives.AnthropicMessages && c.Provider != "anthropic" {
			return true
		}
	}
	return false
}

// size is what the call may come to.
func (k *call) size() estimate {
	var prices []ninelives.Price
	if k.way != nil {
		for _, m := range k.way.models {
			if c, ok := ninelives.CandidateOf(m); ok {
				prices = append(prices, c.Price)
			}
		}
	}
	return estimateOf(int(float64(k.head.Text)/bytesPerToken), k.head.MaxTokens, prices...)
}
