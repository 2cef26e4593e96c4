package agent

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
)

// The entries of a session in the journal: the kind beside the entry's JSON.
// What is written is read back as it was, but for bytes that are no UTF-8.

// form is how entries are written and read: durations as milliseconds, whatever
// text tools and models have put in, equal entries alike.
var form = json.JoinOptions(
	jsontext.AllowInvalidUTF8(true),
	jsontext.AllowDuplicateNames(true),
	json.Deterministic(true),
	json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, d time.Duration) error {
		return e.WriteValue(strconv.AppendFloat(nil, float64(d)/float64(time.Millisecond), 'f', -1, 64))
	})),
	json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *time.Duration) error {
		var ms float64
		if err := json.UnmarshalDecode(d, &ms); err != nil {
			return err
		}
		*v = time.Duration(math.Round(ms * float64(time.Millisecond)))
		return nil
	})),
)

// effectForm is an Effect whose result is written as the parts of a message.
type effectForm struct {
	*plainEffect
	Result ninelives.Message `json:"result,omitzero"`
}

type plainEffect Effect

// MarshalJSONTo implements json.MarshalerTo.
func (e Effect) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, effectForm{(*plainEffect)(&e), ninelives.Message{Parts: []ninelives.Part{e.Result}}})
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (e *Effect) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	f := effectForm{plainEffect: (*plainEffect)(e)}
	if err := json.UnmarshalDecode(dec, &f); err != nil {
		return err
	}
	if len(f.Result.Parts) == 1 {
		if r, ok := f.Result.Parts[0].(ninelives.ToolResult); ok {
			e.Result = r
			return nil
		}
	}
	return fmt.Errorf("the effect of call %q has no result", e.Call)
}

// encode writes an entry for the journal.
func encode(at time.Time, e Entry) (journal.Entry, error) {
	data, err := json.Marshal(e, form)
	if err != nil {
		return journal.Entry{}, fmt.Errorf("an entry %q cannot be recorded: %w", e.Kind(), err)
	}
	return journal.Entry{At: at, Kind: e.Kind(), Data: data}, nil
}

// kinds are the readers of all kinds of entries.
var kinds = map[string]func([]byte) (Entry, error){
	"opening": readAs[Opening], "input": readAs[Input], "start": readAs[Start], "answer": readAs[Answer],
	"failure": readAs[Failure], "intent": readAs[Intent], "effect": readAs[Effect], "settled": readAs[Settled], "healing": readAs[Healing],
	"compaction": readAs[Compaction], "ruling": readAs[Ruled], "stopped": readAs[Stopped], "grant": readAs[Grant],
	"end": readAs[End], "model": readAs[ModelChange], "mode": readAs[ModeChange], "permission": readAs[Permission],
	"undo": readAs[Undo], "rewind": readAs[Rewind], "archive": readAs[Archive],
}

func readAs[E Entry](data []byte) (Entry, error) {
	var e E
	err := json.Unmarshal(data, &e, form)
	return e, err
}

// Decode reads an entry of a session as the journal has it.
func Decode(e journal.Entry) (Entry, error) {
	reader, known := kinds[e.Kind]
	if !known {
		return nil, fmt.Errorf("entry %d is of kind %q, which this version does not know – a newer one may", e.Seq, e.Kind)
	}
	v, err := reader(e.Data)
	if err != nil {
		return nil, fmt.Errorf("entry %d (%s) cannot be read: %w", e.Seq, e.Kind, err)
	}
	return v, nil
}

// decoded is an entry as it was read, or why it cannot be.
type decoded struct {
	entry Entry
	err   error
}

// decodeAll reads the entries, a stretch on each core: it is most of what the
// opening of a long session takes.
func decodeAll(entries []journal.Entry) []decoded {
	out := make([]decoded, len(entries))
	stretch := max(decodedTogether, (len(entries)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for from := 0; from < len(entries); from += stretch {
		to := min(from+stretch, len(entries))
		wait.Go(func() {
			for i := from; i < to; i++ {
				out[i].entry, out[i].err = Decode(entries[i])
			}
		})
	}
	wait.Wait()
	return out
}

// decodedTogether is how many entries are worth a goroutine.
const decodedTogether = 256
