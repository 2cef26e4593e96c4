package heal

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"math"
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
)

// requestKey tells whether two requests ask the same: everything that shapes
// the answer counts.
func requestKey(r *ninelives.Request) [32]byte {
	k := keyer{h: sha256.New()}
	if whole, err := r.Whole(); err == nil { // else it was never answered
		r = whole
	}
	k.str(r.Model)
	k.num(len(r.Messages))
	for _, m := range r.Messages {
		k.str(string(m.Role))
		k.str(m.Name)
		k.parts(m.Parts)
		k.raw(m.Extra)
	}
	k.num(len(r.Tools))
	for _, t := range r.Tools {
		k.str(t.Name)
		k.str(t.Description)
		k.str(string(t.Schema))
		k.str(t.Kind)
		k.flag(t.Strict)
		k.raw(t.Extra)
	}
	k.str(string(r.ToolChoice.Mode))
	k.str(r.ToolChoice.Name)
	k.raw(r.ToolChoice.Extra)
	k.flag(r.ParallelTools)
	k.num(r.MaxTokens)
	k.real(r.Temperature)
	k.real(r.TopP)
	k.real(r.FrequencyPenalty)
	k.real(r.PresencePenalty)
	k.num(deref(r.TopK))
	k.num(int(deref(r.Seed)))
	k.num(len(r.Stop))
	for _, s := range r.Stop {
		k.str(s)
	}
	k.num(r.N)
	k.flag(&r.Logprobs)
	k.num(r.TopLogprobs)
	k.str(r.Reasoning.Effort)
	k.num(r.Reasoning.Budget)
	k.raw(r.Reasoning.Extra)
	if o := r.Output; o != nil {
		k.str("output")
		k.str(string(o.Schema))
		k.flag(o.Strict)
	}
	k.str(r.User)
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		k.str(key)
		k.str(r.Metadata[key])
	}
	k.raw(r.Extra)
	return [32]byte(k.h.Sum(nil))
}

// keyer writes values so that no two different sequences look alike.
type keyer struct{ h hash.Hash }

func (k keyer) num(n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	k.h.Write(b[:])
}

func (k keyer) str(s string) {
	k.num(len(s))
	k.h.Write([]byte(s))
}

func (k keyer) flag(b *bool) {
	switch {
	case b == nil:
		k.num(0)
	case *b:
		k.num(1)
	default:
		k.num(2)
	}
}

func (k keyer) real(f *float64) {
	if f == nil {
		k.num(0)
		return
	}
	k.num(1)
	k.num(int(math.Float64bits(*f)))
}

func (k keyer) raw(e ninelives.Extra) {
	k.str(string(e.Protocol))
	k.str(string(e.JSON))
}

func (k keyer) parts(parts []ninelives.Part) {
	k.num(len(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case ninelives.Text:
			k.str("text")
			k.str(p.Text)
		case ninelives.Image:
			k.str("image")
			k.str(p.URL)
			k.str(p.MediaType)
			k.str(string(p.Data))
			k.str(p.FileID)
			k.str(p.Detail)
		case ninelives.File:
			k.str("file")
			k.str(p.Name)
			k.str(p.URL)
			k.str(p.MediaType)
			k.str(string(p.Data))
			k.str(p.FileID)
		case ninelives.ToolCall:
			k.str("call")
			k.str(p.ID)
			k.str(p.Name)
			k.str(p.Arguments)
		case ninelives.ToolResult:
			k.str("result")
			k.str(p.CallID)
			k.flag(&p.IsError)
			k.parts(p.Content)
		case ninelives.Reasoning:
			k.str("reasoning")
			k.str(p.Text)
		case ninelives.Refusal:
			k.str("refusal")
			k.str(p.Text)
		case ninelives.Opaque:
			k.str(p.Kind)
			k.raw(p.Raw)
		}
	}
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
