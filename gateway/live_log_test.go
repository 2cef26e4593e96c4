package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

func testOutput(lead, limit int) *output {
	o := newOutput(&livePool{limit: 1 << 30})
	o.lead, o.limit = lead, limit
	return o
}

// readOutput reads to the end.
func readOutput(t testing.TB, r *outputReader) ([]byte, error) {
	t.Helper()
	var all []byte
	for {
		pieces, err := r.next(t.Context())
		if err != nil {
			return all, err
		}
		all = append(all, bytes.Join(pieces, nil)...)
	}
}

func TestASlowReaderHoldsTheWriterBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const piece, pieces = 1024 - pieceCost, 100
		o := testOutput(16<<10, 1<<20)
		fast, _ := o.reader(0)
		slow, _ := o.reader(0)
		defer fast.close()
		written := 0
		go func() {
			for range pieces {
				if err := o.write(t.Context(), make([]byte, piece)); err != nil {
					t.Error(err)
				}
				written++
			}
			o.end(nil)
		}()
		got := 0
		go func() {
			for {
				p, err := fast.next(t.Context())
				if err != nil {
					return
				}
				got += len(p)
			}
		}()
		synctest.Wait()
		// The writer goes on at 16 KiB behind, and not beyond.
		if written != 17 || got != 17 {
			t.Fatalf("%d pieces were written and %d read by the fast reader, want 17 and 17", written, got)
		}
		if p, err := slow.next(t.Context()); err != nil || len(p) != 17 {
			t.Fatalf("the slow reader got %d pieces, %v", len(p), err)
		}
		synctest.Wait()
		if written != 17 {
			t.Fatalf("%d pieces were written before the slow reader had had what it got", written)
		}
		_, _ = slow.next(t.Context()) // it has had the first 17
		synctest.Wait()
		if written != 34 {
			t.Fatalf("%d pieces were written, want 34", written)
		}
		slow.close() // a reader that leaves holds nobody back
		synctest.Wait()
		if written != pieces || got != pieces {
			t.Fatalf("%d pieces were written and %d read, want all %d", written, got, pieces)
		}
	})
}

func TestAWriterThatWaitsForAReaderEndsWithItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := testOutput(100, 1<<20)
		r, _ := o.reader(0)
		defer r.close()
		ctx, cancel := context.WithCancelCause(t.Context())
		_ = o.write(ctx, make([]byte, 200))
		var err error
		go func() { err = o.write(ctx, []byte("more")) }()
		synctest.Wait()
		cancel(errAbandoned)
		synctest.Wait()
		if !errors.Is(err, errAbandoned) {
			t.Errorf("the writer got %v", err)
		}
	})
}

func TestALongAnswerIsBoundedAndWholeForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, lead = 64 << 10, 16 << 10
		o := testOutput(lead, limit)
		r, _ := o.reader(0)
		defer r.close()
		most := 0
		var want bytes.Buffer
		go func() {
			for i := range 1000 {
				p := []byte(strings.Repeat(fmt.Sprintf("%4d ", i), 200))
				want.Write(p)
				if err := o.write(t.Context(), p); err != nil {
					t.Error(err)
				}
				most = max(most, o.cost())
			}
			o.end(nil)
		}()
		got, err := readOutput(t, r)
		if err != io.EOF || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("the reader got %d of %d bytes, %v", len(got), want.Len(), err)
		}
		if most > limit+1000+pieceCost || most < lead {
			t.Errorf("%d bytes were kept at a time, the bound is %d", most, limit)
		}
		if used := o.pool.used.Load(); used != int64(o.cost()) {
			t.Errorf("the pool counts %d bytes, %d are kept", used, o.cost())
		}
		if o.whole() {
			t.Error("an answer without its beginning counts as whole")
		}
		if _, err := o.reader(0); !errors.Is(err, errPieceGone) {
			t.Errorf("who wants the beginning gets %v", err)
		}
		if late, err := o.reader(o.gone); err != nil {
			t.Errorf("who has had all that is gone gets %v", err)
		} else if rest, _ := readOutput(t, late); !bytes.HasSuffix(want.Bytes(), rest) || len(rest) == 0 {
			t.Error("who has had all that is gone does not get the rest")
		}
	})
}

func TestALongAnswerWithoutReadersEnds(t *testing.T) {
	o := testOutput(100, 10*(100+pieceCost))
	for range 10 { // nobody is behind, so nothing waits
		if err := o.write(t.Context(), make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.write(t.Context(), make([]byte, 100)); !errors.Is(err, errOutputFull) {
		t.Errorf("the writer got %v", err)
	}
}

func TestAllAnswersTogetherAreBounded(t *testing.T) {
	pool := &livePool{limit: 10 * (100 + pieceCost)}
	a, b := newOutput(pool), newOutput(pool)
	for range 5 {
		_, _ = a.write(t.Context(), make([]byte, 100)), b.write(t.Context(), make([]byte, 100))
	}
	if err := b.write(t.Context(), make([]byte, 100)); !errors.Is(err, errOutputFull) {
		t.Errorf("with the room taken the writer got %v", err)
	}
	a.release()
	if err := b.write(t.Context(), make([]byte, 100)); err != nil {
		t.Errorf("with room given back the writer got %v", err)
	}
}

func TestABrokenAnswerIsToldAsBroken(t *testing.T) {
	broken := errors.New("cut")
	o := testOutput(1000, 1000)
	_ = o.write(t.Context(), []byte("half"))
	o.end(broken)
	o.end(nil) // the first end counts
	r, _ := o.reader(0)
	defer r.close()
	if got, err := readOutput(t, r); string(got) != "half" || err != broken {
		t.Errorf("read %q, %v", got, err)
	}
	if _, _, err := r.head(t.Context()); !errors.Is(err, broken) {
		t.Errorf("an answer that ended without a head: %v", err)
	}
}

func TestReadersOfPositionsThatAreNotThere(t *testing.T) {
	o := testOutput(1000, 1000)
	_ = o.write(t.Context(), []byte("one"))
	for _, n := range []int{-1, 2} {
		if _, err := o.reader(n); !errors.Is(err, errPosition) {
			t.Errorf("position %d: %v", n, err)
		}
	}
}

func TestEventsAreNamedAtTheirEnd(t *testing.T) {
	for _, c := range []struct{ event, want string }{
		{"data: x\n\n", "data: x\nid: c-1\n\n"},
		{"event: a\r\ndata: x\r\n\r\n", "event: a\r\ndata: x\r\nid: c-1\r\n\r\n"},
		{"data: x\r\r", "data: x\rid: c-1\r\r"},
		{"\ufeffdata: x\n\n", "\ufeffdata: x\nid: c-1\n\n"},
		{"id: theirs\ndata: x\n\n", "id: theirs\ndata: x\nid: c-1\n\n"},
		{": ping\n\n", ": ping\n\n"}, // not an event
		{"\n", "\n"},
		{"data: half\n", "data: half\n"},
		{"data: half\r\n", "data: half\r\n"},
		{"data: ha", "data: ha"},
	} {
		if got := string(appendEventID(nil, []byte(c.event), "c-1")); got != c.want {
			t.Errorf("%q became %q, want %q", c.event, got, c.want)
		}
	}
}

// A client that has had n events and asks for the rest gets exactly the rest,
// wherever the bytes were split on their way in.
func TestEveryPositionGivesTheMissingBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		eol := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "eol")
		var stream []byte
		events := rapid.SliceOfN(rapid.SampledFrom([]string{"data: {}", "event: a|data: b", ": ping", "data: x|data: y|id: 7"}), 1, 12).Draw(t, "events")
		for _, e := range events {
			stream = append(stream, strings.ReplaceAll(e+"||", "|", eol)...)
		}
		stream = append(stream, rapid.SampledFrom([]string{"", "data: half"}).Draw(t, "rest")...)

		v := newLive(nil)
		l, _, err := v.begin(context.Background(), liveKey{client: "a"}, [32]byte{}, true)
		if err != nil {
			t.Fatal(err)
		}
		l.named("call")
		k := l.sink()
		k.Start(200, http.Header{"Content-Type": {"text/event-stream"}})
		for rest := stream; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if _, err := k.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		k.end(nil)

		var all liveClient
		if err := l.follow(context.Background(), &all, http.Header{}); err != nil {
			t.Fatal(err)
		}
		if bare := withoutOurIDs(all.String(), eol); bare != string(stream) {
			t.Fatalf("sent %q, want %q with ids", all.String(), liveStream)
		}
		for at, id := range eventPositions(all.String(), eol) {
			var rest liveClient
			if err := v.resume(context.Background(), &rest, http.Header{"Last-Event-Id": {id}}, "a", "call"); err != nil {
				t.Fatal(err)
			}
			if want := all.String()[at:]; rest.String() != want {
				t.Fatalf("after %s: %q, want %q", id, rest.String(), want)
			}
		}
		v.mu.Lock()
		v.sweep.Stop()
		v.mu.Unlock()
	})
}

// eventPositions gives the ids of a stream by where their events end.
func eventPositions(s, eol string) map[int]string {
	at := map[int]string{0: ""}
	for i := 0; ; {
		n := strings.Index(s[i:], "id: call-")
		if n < 0 {
			return at
		}
		i += n
		end := strings.Index(s[i:], eol)
		at[i+end+2*len(eol)] = s[i+len("id: ") : i+end]
		i += end
	}
}

func withoutOurIDs(s, eol string) string {
	for {
		n := strings.Index(s, "id: call-")
		if n < 0 {
			return s
		}
		end := n + strings.Index(s[n:], eol) + len(eol)
		s = s[:n] + s[end:]
	}
}

// liveClient is a client that takes everything.
type liveClient struct {
	bytes.Buffer
	status int
	header http.Header
}

func (k *liveClient) Start(status int, h http.Header) { k.status, k.header = status, h }
func (k *liveClient) Flush() error                    { return nil }
