package wiretest

import (
	"bytes"
	"io"
	"reflect"
	"regexp"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/sse"
)

// Unhurried fails the test if a decoder finds something else in a stream when
// none of its events has the shape of the one before: when what it knows of one
// event helps it nowhere with the next. Their data differ in blanks alone.
func Unhurried(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, stream io.Reader, decoder func() wire.Decoder) {
	t.Helper()
	plain, uneven := new(decoded), new(decoded)
	plain.d, uneven.d = decoder(), decoder()
	r := sse.NewReader(stream)
	for n := 1; ; n++ {
		f, err := r.Next()
		if err != nil {
			break
		}
		plain.frame(f)
		if data := bytes.TrimSpace(f.Data); len(data) > 0 && data[0] == '{' {
			f.Data = append(append([]byte{'{'}, bytes.Repeat([]byte{' '}, n)...), data[1:]...)
		}
		uneven.frame(f)
		if plain.d.State() != uneven.d.State() {
			t.Fatalf("event %d: state %v, slowly %v", n, plain.d.State(), uneven.d.State())
		}
	}
	plain.resp, plain.err = plain.d.Response(plain.err)
	uneven.resp, uneven.err = uneven.d.Response(uneven.err)
	if uneven.resp != nil {
		for i, text := range uneven.resp.Warnings { // they may quote the event
			uneven.resp.Warnings[i] = blanks.ReplaceAllString(text, "{")
		}
	}
	if !reflect.DeepEqual(plain.events, uneven.events) {
		t.Fatalf("events %+v\nslowly %+v", plain.events, uneven.events)
	}
	if !reflect.DeepEqual(plain.resp, uneven.resp) || (plain.err == nil) != (uneven.err == nil) {
		t.Fatalf("answer %+v %v\nslowly %+v %v", plain.resp, plain.err, uneven.resp, uneven.err)
	}
}

var blanks = regexp.MustCompile(`\{ +`)

type decoded struct {
	d      wire.Decoder
	events []ninelives.Event
	resp   *ninelives.Response
	err    error
}

func (x *decoded) frame(f wire.Frame) {
	if x.err == nil {
		x.err = x.d.Frame(f, func(ev ninelives.Event) bool { x.events = append(x.events, ev); return true })
	}
}
