package wire_test

import (
	"reflect"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

func TestMarksComeApartWhereverTheyWerePut(t *testing.T) {
	a := ninelives.Reasoning{Text: "first", Summary: true, ID: "rs_1", Provenance: ninelives.Provenance{Provider: "p", Model: "m", Field: "summary", Blob: "b+/="}}
	b := ninelives.Reasoning{Text: "second", Provenance: ninelives.Provenance{Provider: "p", Model: "m", Field: "thinking", Signature: "s"}}
	text := ninelives.Text{Text: "said"}
	signed := func(text, mark string) ninelives.Part {
		return ninelives.Reasoning{Text: text, Provenance: ninelives.Provenance{Field: "thinking", Signature: mark}}
	}
	hidden := func(mark string) ninelives.Part {
		return ninelives.Reasoning{Redacted: true, Provenance: ninelives.Provenance{Field: "redacted_thinking", Blob: mark}}
	}
	plain := func(text string) ninelives.Part { return signed(text, "") }
	whole := []ninelives.Part{a, b, text}
	for name, tt := range map[string]struct{ sent, want []ninelives.Part }{
		"in their places":        {[]ninelives.Part{signed("first", wire.Mark(a)), signed("second", wire.Mark(b)), text}, whole},
		"after the text":         {[]ninelives.Part{plain("first"), plain("second"), text, hidden(wire.Mark(a)), hidden(wire.Mark(b))}, whole},
		"joined":                 {[]ninelives.Part{signed("firstsecond", wire.JoinMarks([]string{wire.Mark(a), wire.Mark(b)})), text}, whole},
		"decoded and encoded":    {[]ninelives.Part{signed("first", strings.NewReplacer("+", "-", "/", "_").Replace(wire.Mark(a))), signed("second", wire.Mark(b)), text}, whole},
		"the text was left out":  {[]ninelives.Part{hidden(wire.MarkWhole(a)), hidden(wire.MarkWhole(b)), text}, whole},
		"the text was changed":   {[]ninelives.Part{signed("other", wire.Mark(b)), text}, []ninelives.Part{ninelives.Reasoning{Text: "other", Provenance: ninelives.Provenance{Provider: "p", Model: "m", Field: "thinking"}}, text}},
		"nothing is marked":      {[]ninelives.Part{plain("first"), text, plain("second"), signed("x", "own")}, []ninelives.Part{plain("first"), text, plain("second"), signed("x", "own")}},
		"a mark that is garbled": {[]ninelives.Part{signed("first", "bmluZWxpdmVz!"), text}, []ninelives.Part{signed("first", "bmluZWxpdmVz!"), text}},
	} {
		messages := []ninelives.Message{{Role: ninelives.RoleAssistant, Parts: tt.sent}}
		wire.Restore(messages)
		if !reflect.DeepEqual(messages[0].Parts, tt.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, messages[0].Parts, tt.want)
		}
	}
}
