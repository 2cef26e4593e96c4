package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// The bounds of a cache that its settings do not name.
const (
	cacheTTL    = time.Hour
	cacheBytes  = 64 << 20
	cacheAnswer = 1 << 20 // of one answer; larger ones are not kept
)

// cacheLabel is what the cache did for a call, as clients and metrics are told.
type cacheLabel string

// The labels. A stored answer was missed before: the head of its answer says
// miss, and what comes with its end stored.
const (
	cacheHit    cacheLabel = "hit"
	cacheMiss   cacheLabel = "miss"
	cacheStored cacheLabel = "stored"
)

// cacheKey names a request in a cache: equal keys ask the same.
type cacheKey [32]byte

// cacheKeyOf gives the key of a request. Everything that the client sent counts,
// byte for byte, but for the order of the top-level members and for those that do
// not shape the answer (uncached below): whether it is streamed is one of them,
// because answers are kept in the vocabulary and written anew for each client.
//
// client is empty where clients share their answers. It reports false for what
// is never answered from a cache: a request that goes on from something that is
// kept elsewhere, runs in the background, or cannot be read.
func cacheKeyOf(client, route, model string, raw *ninelives.Raw) (key cacheKey, ok bool) {
	if raw == nil || rawjson.Kind(raw.Body) != '{' || !rawjson.Valid(raw.Body) {
		return key, false
	}
	var members []rawjson.Member
	for m := range rawjson.Members(raw.Body) {
		name := string(m.Name)
		if slices.Contains(stateful, name) && !rawjson.Null(m.Value) && string(m.Value) != "false" {
			return key, false
		}
		if !slices.Contains(uncached, name) {
			members = append(members, m)
		}
	}
	slices.SortStableFunc(members, func(a, b rawjson.Member) int { return bytes.Compare(a.Name, b.Name) })

	k := cacheHash{sha256.New()}
	for _, s := range []string{client, route, model, string(raw.Protocol)} {
		k.add([]byte(s))
	}
	query, _ := url.ParseQuery(raw.Query)
	query.Del("alt") // the form of a stream
	k.add([]byte(query.Encode()))
	for _, name := range slices.Sorted(maps.Keys(raw.Header)) {
		k.add([]byte(name))
		k.add([]byte(raw.Header[name]))
	}
	for _, m := range members {
		k.add(m.Name)
		k.add(m.Value)
	}
	return cacheKey(k.Sum(nil)), true
}

// uncached are the members of requests that do not shape the answer.
var uncached = []string{"stream", "stream_options", "store", "prompt_cache_key", "prompt_cache_retention"}

// stateful are those that make it depend on what is kept elsewhere, or that have
// it made elsewhere.
var stateful = []string{"previous_response_id", "conversation", "prompt", "thread", "container", "background", "cachedContent"}

// cacheHash takes values so that no two different sequences look alike.
type cacheHash struct{ hash.Hash }

func (k cacheHash) add(b []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
	k.Write(n[:])
	k.Write(b)
}

// answerCache keeps the whole answers of a route for equal requests. Requests
// that come while the first of their kind is under way are asked as well:
// waiting for another client's call would hang one client on the deadline, the
// healing and the leaving of another. Who wants that says so with an
// Idempotency-Key.
type answerCache struct {
	mu   sync.Mutex
	held lru[cacheKey, *ninelives.Response]
}

// newAnswerCache gives a cache; nil, which keeps nothing, where it is off.
func newAnswerCache(s CacheSettings) *answerCache {
	if s.Entries <= 0 {
		return nil
	}
	ttl := s.TTL
	if ttl <= 0 {
		ttl = cacheTTL
	}
	return &answerCache{held: lru[cacheKey, *ninelives.Response]{entries: s.Entries, bytes: cacheBytes, ttl: ttl}}
}

// get gives the answer of a key; it is the caller's to put its own id into, its
// parts are shared.
func (c *answerCache) get(now time.Time, key cacheKey) (*ninelives.Response, bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.held.get(now, key)
	if !ok {
		return nil, false
	}
	answer := *r
	return &answer, true
}

// put keeps an answer if it may be served again; it reports whether.
func (c *answerCache) put(now time.Time, key cacheKey, r *ninelives.Response) bool {
	if c == nil || !cacheable(r) {
		return false
	}
	size := answerSize(r)
	if size > cacheAnswer {
		return false
	}
	kept := *r
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held.put(now, key, &kept, size)
	return true
}

// cacheable: only one whole answer in words, and a fresh one. A tool call is the
// beginning of a deed, which the same words do not ask for twice.
func cacheable(r *ninelives.Response) bool {
	if r.Finish != ninelives.FinishStop || r.Degraded != "" || r.OutputDefaulted || len(r.Choices) > 0 {
		return false
	}
	words := false
	for _, p := range r.Message.Parts {
		switch p.(type) {
		case ninelives.Text, ninelives.Reasoning:
			words = true
		default:
			return false
		}
	}
	return words
}

// answerSize is about what an answer takes in memory.
func answerSize(r *ninelives.Response) int {
	n := 512 + len(r.Output) + len(r.Extra.JSON) + len(r.Logprobs.JSON) + len(r.ChoiceExtra.JSON) + len(r.Usage.Extra.JSON) + len(r.Message.Extra.JSON)
	for _, p := range r.Message.Parts {
		n += 256
		switch p := p.(type) {
		case ninelives.Text:
			n += len(p.Text) + len(p.Extra.JSON)
			for _, c := range p.Citations {
				n += 128 + len(c.URL) + len(c.Title) + len(c.Quote) + len(c.Raw.JSON)
			}
		case ninelives.Reasoning:
			n += len(p.Text) + len(p.Provenance.Signature) + len(p.Provenance.Blob) + len(p.Extra.JSON)
		}
	}
	return n
}
