package openai

import (
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// chatUsageCounts are the counts of a Usage and where servers put them, the
// usual place first.
var chatUsageCounts = []struct {
	field ninelives.UsageField
	of    func(*ninelives.Usage) *int
	paths [][]string
}{
	{ninelives.UsageInput, func(u *ninelives.Usage) *int { return &u.Input }, [][]string{{"prompt_tokens"}, {"input_tokens"}}},
	{ninelives.UsageOutput, func(u *ninelives.Usage) *int { return &u.Output }, [][]string{{"completion_tokens"}, {"output_tokens"}}},
	{ninelives.UsageReasoning, func(u *ninelives.Usage) *int { return &u.Reasoning }, [][]string{{"completion_tokens_details", "reasoning_tokens"}, {"output_tokens_details", "reasoning_tokens"}, {"reasoning_tokens"}}},
	{ninelives.UsageCached, func(u *ninelives.Usage) *int { return &u.Cached }, [][]string{{"prompt_tokens_details", "cached_tokens"}, {"input_tokens_details", "cached_tokens"}, {"cached_tokens"}, {"prompt_cache_hit_tokens"}}},
	{ninelives.UsageCacheWrite, func(u *ninelives.Usage) *int { return &u.CacheWrite }, [][]string{{"prompt_tokens_details", "cache_write_tokens"}, {"cache_creation_input_tokens"}}},
}

// chatUsage reads a usage object.
func chatUsage(raw []byte, outputExcludesReasoning bool) ninelives.Usage {
	u := ninelives.Usage{
		OutputExcludesReasoning: outputExcludesReasoning,
		Extra:                   chatExtra(append([]byte(nil), raw...)),
	}
	for _, c := range chatUsageCounts {
		for _, path := range c.paths {
			if n, ok := rawjson.Int(rawjson.Path(raw, path...)); ok {
				*c.of(&u) = int(n)
				u.Reported |= c.field
				break
			}
		}
	}
	return u
}

// chatWriteUsage writes a usage object: the server's own if it came by this
// protocol, else one with the counts that were reported, in the protocol's
// sense: input with what was cached, output with the reasoning.
func chatWriteUsage(w *rawjson.Writer, u ninelives.Usage) {
	if raw := u.Extra.For(ninelives.OpenAIChat); raw != nil {
		w.Raw(raw)
		return
	}
	w.Open('{')
	w.IntMember("prompt_tokens", int64(u.TotalInput()))
	w.IntMember("completion_tokens", int64(u.TotalOutput()))
	w.IntMember("total_tokens", int64(u.TotalInput()+u.TotalOutput()))
	if u.Reported&(ninelives.UsageCached|ninelives.UsageCacheWrite) != 0 {
		w.Name("prompt_tokens_details")
		w.Open('{')
		if u.Has(ninelives.UsageCached) {
			w.IntMember("cached_tokens", int64(u.Cached))
		}
		if u.Has(ninelives.UsageCacheWrite) {
			w.IntMember("cache_write_tokens", int64(u.CacheWrite))
		}
		w.Close('}')
	}
	if u.Has(ninelives.UsageReasoning) {
		w.Name("completion_tokens_details")
		w.Open('{')
		w.IntMember("reasoning_tokens", int64(u.Reasoning))
		w.Close('}')
	}
	w.Close('}')
}
