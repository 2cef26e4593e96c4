package gateway

import (
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

func cacheRaw(body string) *ninelives.Raw {
	return &ninelives.Raw{Protocol: ninelives.OpenAIChat, Body: []byte(body), Header: map[string]string{"anthropic-beta": "x"}, Query: "beta=true"}
}

func TestEqualRequestsHaveOneKeyAndOthersHaveOthers(t *testing.T) {
	const body = `{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0}`
	want, ok := cacheKeyOf("a", "r", "m", cacheRaw(body))
	if !ok {
		t.Fatal("no key")
	}
	for name, raw := range map[string]*ninelives.Raw{
		"streamed":        cacheRaw(`{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`),
		"in other order":  cacheRaw(`{"temperature":0,"model":"m", "messages":[{"role":"user","content":"hi"}]}`),
		"with a hint":     cacheRaw(`{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0,"prompt_cache_key":"k","store":false}`),
		"in another form": {Protocol: ninelives.OpenAIChat, Body: []byte(body), Header: map[string]string{"anthropic-beta": "x"}, Query: "alt=sse&beta=true"},
	} {
		if got, ok := cacheKeyOf("a", "r", "m", raw); !ok || got != want {
			t.Errorf("the same request %s has another key", name)
		}
	}
	seen := map[cacheKey]string{want: "the request"}
	for name, key := range map[string]func() (cacheKey, bool){
		"another client": func() (cacheKey, bool) { return cacheKeyOf("b", "r", "m", cacheRaw(body)) },
		"all clients":    func() (cacheKey, bool) { return cacheKeyOf("", "r", "m", cacheRaw(body)) },
		"another route":  func() (cacheKey, bool) { return cacheKeyOf("a", "q", "m", cacheRaw(body)) },
		"another model":  func() (cacheKey, bool) { return cacheKeyOf("a", "r", "n", cacheRaw(body)) },
		"shifted names":  func() (cacheKey, bool) { return cacheKeyOf("ar", "", "m", cacheRaw(body)) },
		"another protocol": func() (cacheKey, bool) {
			r := cacheRaw(body)
			r.Protocol = ninelives.Gemini
			return cacheKeyOf("a", "r", "m", r)
		},
		"another header": func() (cacheKey, bool) { r := cacheRaw(body); r.Header = nil; return cacheKeyOf("a", "r", "m", r) },
		"another value": func() (cacheKey, bool) {
			r := cacheRaw(body)
			r.Header = map[string]string{"anthropic-beta": "y"}
			return cacheKeyOf("a", "r", "m", r)
		},
		"another query": func() (cacheKey, bool) { r := cacheRaw(body); r.Query = ""; return cacheKeyOf("a", "r", "m", r) },
		"another user": func() (cacheKey, bool) {
			return cacheKeyOf("a", "r", "m", cacheRaw(strings.Replace(body, `"model"`, `"user":"u","model"`, 1)))
		},
		"another text": func() (cacheKey, bool) {
			return cacheKeyOf("a", "r", "m", cacheRaw(strings.Replace(body, "hi", "ho", 1)))
		},
	} {
		k, ok := key()
		if other := seen[k]; !ok || other != "" {
			t.Errorf("%s has the key of %s (%t)", name, other, ok)
		}
		seen[k] = name
	}
	for _, body := range []string{
		`{"previous_response_id":"resp_1","input":"hi"}`, `{"conversation":{"id":"c"},"input":"hi"}`, `{"background":true,"input":"hi"}`,
		`{"thread":{"type":"create"}}`, `{"cachedContent":"cachedContents/1"}`, `[]`, `{`,
	} {
		if _, ok := cacheKeyOf("a", "r", "m", cacheRaw(body)); ok {
			t.Errorf("%s has a key", body)
		}
	}
	if _, ok := cacheKeyOf("a", "r", "m", cacheRaw(`{"previous_response_id":null,"background":false,"input":"hi"}`)); !ok {
		t.Error("a request that goes on from nothing has no key")
	}
}

func TestOnlyWholeAnswersInWordsAreCached(t *testing.T) {
	whole := func(change func(*ninelives.Response)) *ninelives.Response {
		r := &ninelives.Response{Message: ninelives.AssistantText("hi"), Finish: ninelives.FinishStop}
		if change != nil {
			change(r)
		}
		return r
	}
	now := time.Unix(0, 0)
	c := newAnswerCache(CacheSettings{Entries: 10})
	for name, r := range map[string]*ninelives.Response{
		"truncated": whole(func(r *ninelives.Response) { r.Finish = ninelives.FinishLength }),
		"refused":   whole(func(r *ninelives.Response) { r.Message.Parts = []ninelives.Part{ninelives.Refusal{Text: "no"}} }),
		"a call": whole(func(r *ninelives.Response) {
			r.Message.Parts = append(r.Message.Parts, ninelives.ToolCall{ID: "1", Name: "rm"})
		}),
		"stale":     whole(func(r *ninelives.Response) { r.Degraded = ninelives.DegradedStale }),
		"defaulted": whole(func(r *ninelives.Response) { r.OutputDefaulted = true }),
		"one of n":  whole(func(r *ninelives.Response) { r.Choices = []ninelives.Choice{{}} }),
		"empty":     whole(func(r *ninelives.Response) { r.Message.Parts = nil }),
		"too long":  whole(func(r *ninelives.Response) { r.Message = ninelives.AssistantText(strings.Repeat("x", cacheAnswer)) }),
	} {
		if c.put(now, cacheKey{1}, r) {
			t.Errorf("an answer that is %s was kept", name)
		}
	}
	if _, ok := c.get(now, cacheKey{1}); ok {
		t.Error("one of them is served")
	}
	if !c.put(now, cacheKey{1}, whole(nil)) {
		t.Fatal("a whole answer was not kept")
	}
	got, ok := c.get(now, cacheKey{1})
	if !ok || got.Text() != "hi" {
		t.Fatalf("got %v, %t", got, ok)
	}
	got.ID = "mine"
	if again, _ := c.get(now, cacheKey{1}); again.ID != "" {
		t.Error("the id that one client got is in the cache")
	}
}

func TestACacheIsBoundedInNumberSizeAndTime(t *testing.T) {
	answer := func(n int) *ninelives.Response {
		return &ninelives.Response{Message: ninelives.AssistantText(strings.Repeat("x", n)), Finish: ninelives.FinishStop}
	}
	now := time.Unix(0, 0)
	has := func(c *answerCache, now time.Time, k byte) bool { _, ok := c.get(now, cacheKey{k}); return ok }

	c := newAnswerCache(CacheSettings{Entries: 2})
	c.put(now, cacheKey{1}, answer(1))
	c.put(now, cacheKey{2}, answer(1))
	c.get(now, cacheKey{1})
	c.put(now, cacheKey{3}, answer(1))
	if !has(c, now, 1) || has(c, now, 2) || !has(c, now, 3) {
		t.Error("what was used longest ago is not what left")
	}
	if !has(c, now.Add(time.Hour-1), 1) || has(c, now.Add(time.Hour), 1) {
		t.Error("an answer is not served for exactly an hour")
	}

	c = newAnswerCache(CacheSettings{Entries: 1000, TTL: time.Minute})
	for i := range 100 {
		c.put(now, cacheKey{byte(i)}, answer(cacheAnswer-1000))
		if c.held.held > cacheBytes {
			t.Fatalf("%d bytes are kept", c.held.held)
		}
	}
	if has(c, now, 0) || !has(c, now, 99) {
		t.Error("the oldest is not what left")
	}
	c.put(now.Add(time.Minute), cacheKey{200}, answer(1))
	if n := len(c.held.index); n != 1 {
		t.Errorf("%d answers are kept beyond their time", n-1)
	}

	off := newAnswerCache(CacheSettings{})
	if off.put(now, cacheKey{1}, answer(1)) || has(off, now, 1) {
		t.Error("a cache that is off keeps answers")
	}
}
