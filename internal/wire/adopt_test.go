package wire_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// spoken is a protocol as both sides of a stream speak it.
type spoken struct {
	name    string
	encoder func(wire.EncodeOptions) wire.Encoder
	decoder func(wire.DecodeOptions) wire.Decoder
}

var protocols = []spoken{
	{"chat", func(o wire.EncodeOptions) wire.Encoder { return openai.NewChatEncoder(o) }, func(o wire.DecodeOptions) wire.Decoder { return openai.NewChatDecoder(o) }},
	{"responses", func(o wire.EncodeOptions) wire.Encoder { return openai.NewResponsesEncoder(o) }, openai.NewResponsesDecoder},
	{"messages", anthropic.NewEncoder, anthropic.NewDecoder},
	{"gemini", gemini.NewEncoder, gemini.NewDecoder},
}

// relayed is what a client holds of a stream that broke off.
type relayed struct {
	bytes, heads []byte
	told         []ninelives.Event
	frames       int
	calls        bool
}

// cut gives the frames of a stream.
func cut(stream []byte) [][]byte {
	var frames [][]byte
	for _, f := range bytes.SplitAfter(stream, []byte("\n\n")) {
		if len(f) > 0 {
			frames = append(frames, f)
		}
	}
	return frames
}

// relay reads frames as they are relayed, the way a gateway remembers them.
func relay(t *rapid.T, p spoken, frames [][]byte) relayed {
	var r relayed
	d := p.decoder(wire.DecodeOptions{Candidate: ninelives.Candidate{Provider: "p", Model: "m"}})
	for _, raw := range frames {
		fresh := false
		for f := range decoded(raw) {
			if err := d.Frame(f, func(ev ninelives.Event) bool {
				fresh = true
				r.tell(ev)
				return true
			}); err != nil {
				t.Fatalf("%s: %v", f.Data, err)
			}
		}
		r.bytes = append(r.bytes, raw...)
		r.frames++
		if !fresh || len(r.heads) == 0 && (p.name == "chat" || p.name == "gemini") {
			r.heads = append(r.heads, raw...)
		}
	}
	return r
}

func decoded(stream []byte) func(func(wire.Frame) bool) {
	return func(yield func(wire.Frame) bool) {
		reader := sse.NewReader(bytes.NewReader(stream))
		for f, err := reader.Next(); err == nil; f, err = reader.Next() {
			if !yield(f) {
				return
			}
		}
	}
}

func (r *relayed) tell(ev ninelives.Event) {
	if _, ok := ev.(ninelives.ToolCallDelta); ok {
		r.calls = true
		return
	}
	if n := len(r.told); n > 0 {
		switch v := ev.(type) {
		case ninelives.TextDelta:
			if last, ok := r.told[n-1].(ninelives.TextDelta); ok && last.Part == v.Part {
				last.Text += v.Text
				r.told[n-1] = last
				return
			}
		case ninelives.ReasoningDelta:
			if last, ok := r.told[n-1].(ninelives.ReasoningDelta); ok && last.Part == v.Part {
				last.Text += v.Text
				if v.Proof != nil {
					last.Proof = v.Proof
				}
				r.told[n-1] = last
				return
			}
		}
	}
	r.told = append(r.told, ev)
}

// length is how much of a part the client holds.
func (r *relayed) length(part int) int {
	for _, ev := range r.told {
		switch v := ev.(type) {
		case ninelives.TextDelta:
			if v.Part == part {
				return len(v.Text)
			}
		case ninelives.ReasoningDelta:
			if v.Part == part {
				return len(v.Text)
			}
		}
	}
	return 0
}

// signed says that the client holds the proof of a part.
func (r *relayed) signed(part int) bool {
	return slices.ContainsFunc(r.told, func(ev ninelives.Event) bool {
		v, ok := ev.(ninelives.ReasoningDelta)
		return ok && v.Part == part && v.Proof != nil
	})
}

func whole(t *rapid.T, p spoken, stream []byte) *ninelives.Response {
	d := p.decoder(wire.DecodeOptions{Candidate: ninelives.Candidate{Provider: "p", Model: "m"}})
	for f := range decoded(stream) {
		if err := d.Frame(f, func(ninelives.Event) bool { return true }); err != nil {
			t.Fatalf("%s: %v", f.Data, err)
		}
	}
	r, err := d.Response(nil)
	if err != nil {
		t.Fatalf("%v, of\n%s", err, stream)
	}
	return r
}

// pieces are a text in pieces, as deltas.
func pieces(t *rapid.T, text string, delta func(string) ninelives.Event) (list []ninelives.Event) {
	for len(text) > 0 {
		n := rapid.IntRange(1, len(text)).Draw(t, "piece")
		list = append(list, delta(text[:n]))
		text = text[n:]
	}
	return list
}

// rest are the deltas of an answer that a client does not hold yet.
func rest(t *rapid.T, r *ninelives.Response, held *relayed) (list []ninelives.Event) {
	for i, part := range r.Message.Parts {
		switch p := part.(type) {
		case ninelives.Text:
			list = append(list, pieces(t, p.Text[held.length(i):], func(s string) ninelives.Event { return ninelives.TextDelta{Part: i, Text: s} })...)
		case ninelives.Reasoning:
			list = append(list, pieces(t, p.Text[held.length(i):], func(s string) ninelives.Event { return ninelives.ReasoningDelta{Part: i, Text: s} })...)
			if p.Provenance.Signature != "" && !held.signed(i) {
				list = append(list, ninelives.ReasoningDelta{Part: i, Proof: &p.Provenance})
			}
		case ninelives.ToolCall:
			list = append(list, ninelives.ToolCallDelta{Part: i, ID: p.ID, Name: p.Name, Arguments: p.Arguments})
		}
	}
	return list
}

func genAnswer(t *rapid.T) *ninelives.Response {
	text := rapid.StringMatching(`[a-z ]{1,20}`)
	r := &ninelives.Response{
		ID: "msg_first", Model: "m", Created: time.Unix(1767225600, 0).UTC(), Finish: ninelives.FinishStop,
		Usage:   ninelives.Usage{Input: 5, Output: 7, Reported: ninelives.UsageInput | ninelives.UsageOutput},
		Message: ninelives.Message{Role: ninelives.RoleAssistant},
	}
	if rapid.Bool().Draw(t, "thinks") {
		r.Message.Parts = append(r.Message.Parts, ninelives.Reasoning{Text: text.Draw(t, "thought"), Provenance: ninelives.Provenance{Field: "thinking", Signature: "c2ln"}})
	}
	r.Message.Parts = append(r.Message.Parts, ninelives.Text{Text: text.Draw(t, "text")})
	for i := range rapid.IntRange(0, 2).Draw(t, "calls") {
		r.Finish = ninelives.FinishToolCalls
		r.Message.Parts = append(r.Message.Parts, ninelives.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "look", Arguments: `{"a":1}`})
	}
	return r
}

// An answer that was relayed up to some frame, and is written from there on,
// is the same answer to a client as the one that was relayed to its end.
func TestAnAdoptedAnswerIsOneAnswer(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				answer := genAnswer(t)
				provider := p.encoder(wire.EncodeOptions{ID: answer.ID, Model: answer.Model, Created: answer.Created, Usage: true})
				var stream []byte
				for _, ev := range rest(t, answer, &relayed{}) {
					stream = provider.Event(stream, ev)
				}
				stream = provider.Event(stream, ninelives.Done{Response: answer})
				want := whole(t, p, stream)

				frames := cut(stream)
				n := rapid.IntRange(1, len(frames)-1).Draw(t, "frames held")
				held := relay(t, p, frames[:n])
				for held.calls { // calls are held whole or not at all
					n--
					held = relay(t, p, frames[:n])
				}
				e := p.encoder(wire.EncodeOptions{ID: "another", Model: "m", Created: time.Unix(1767225601, 0), Usage: true})
				e.Adopt(held.heads, held.told, held.frames)
				joined := held.bytes
				if rapid.Bool().Draw(t, "waits") && n > 0 {
					joined = e.KeepAlive(joined)
				}
				for _, ev := range rest(t, want, &held) {
					joined = e.Event(joined, ev)
				}
				joined = e.Event(joined, ninelives.Done{Response: want})
				got := whole(t, p, joined)
				if n == 0 { // nothing that the client holds names the answer
					got.ID, got.Created = want.ID, want.Created
				}
				plain(got, want)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("held %d frames\n got %+v\nwant %+v\n%s", n, got, want, joined)
				}
				wellFormed(t, p.name, joined)
			})
		})
	}
}

// plain leaves out what an item's own bytes say.
func plain(list ...*ninelives.Response) {
	for _, r := range list {
		r.Extra = ninelives.Extra{}
	}
}

// wellFormed: numbers come in order, blocks are begun before they are told of
// and ended before the next begins, and everything has the id it was begun with.
func wellFormed(t *rapid.T, name string, stream []byte) {
	var open []string
	var seq int64
	ids := map[string]string{}
	for f := range decoded(stream) {
		kind := rawjson.String(rawjson.Get(f.Data, "type"))
		index := string(rawjson.Get(f.Data, "index"))
		switch {
		case name == "responses":
			n, _ := rawjson.Int(rawjson.Get(f.Data, "sequence_number"))
			if n != seq {
				t.Fatalf("number %d follows %d\n%s", n, seq-1, stream)
			}
			seq++
			out := string(rawjson.Get(f.Data, "output_index"))
			id := rawjson.String(rawjson.Get(f.Data, "item_id"))
			if item := rawjson.Get(f.Data, "item"); item != nil {
				id = rawjson.String(rawjson.Get(item, "id"))
			}
			if kind == "response.output_item.added" {
				if ids[out] != "" {
					t.Fatalf("item %s is added again\n%s", out, stream)
				}
				ids[out] = id
			} else if out != "" && ids[out] != id {
				t.Fatalf("item %s is %q and was %q\n%s", out, id, ids[out], stream)
			}
			if kind == "response.completed" {
				i := 0
				for item := range rawjson.Elements(rawjson.Path(f.Data, "response", "output")) {
					if id := ids[fmt.Sprint(i)]; id != rawjson.String(rawjson.Get(item, "id")) {
						t.Fatalf("item %d ends as %s and was %q", i, item, id)
					}
					i++
				}
				if i != len(ids) {
					t.Fatalf("%d items of %d are in the end\n%s", i, len(ids), stream)
				}
			}
		case name == "messages" && kind == "content_block_start":
			if len(open) > 0 {
				t.Fatalf("block %s begins in %s\n%s", index, open, stream)
			}
			open = append(open, index)
		case name == "messages" && index != "":
			if !slices.Contains(open, index) {
				t.Fatalf("%s of block %s, which is not open\n%s", kind, index, stream)
			}
			if kind == "content_block_stop" {
				open = nil
			}
		}
	}
}
