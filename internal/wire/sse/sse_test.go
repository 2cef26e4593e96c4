package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/ninelives-ai/ninelives/internal/wire"
)

// event is a frame that outlives the next read.
type event struct{ name, id, data string }

func readAll(src io.Reader) (events []event, body string, err error) {
	r := NewReader(src)
	for {
		f, err := r.Next()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return events, string(r.Body()), err
		}
		events = append(events, event{f.Event, f.ID, string(f.Data)})
	}
}

func TestReaderUnderstandsWhatProvidersSend(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []event
	}{
		{"line feeds", "data: a\n\ndata: b\n\n", []event{{data: "a"}, {data: "b"}}},
		{"carriage returns and line feeds", "data: a\r\n\r\ndata: b\r\n\r\n", []event{{data: "a"}, {data: "b"}}},
		{"bare carriage returns", "data: a\r\rdata: b\r\r", []event{{data: "a"}, {data: "b"}}},
		{"mixed line ends", "data: a\n\r\ndata: b\r\n\ndata: c\r\n\r\r\n", []event{{data: "a"}, {data: "b"}, {data: "c"}}},
		{"no space after the colon", "event:x\ndata:a\n\n", []event{{name: "x", data: "a"}}},
		{"only one space is framing", "data:  a\n\n", []event{{data: " a"}}},
		{"several lines of data", "data: {\ndata: }\n\n", []event{{data: "{\n}"}}},
		{"an empty line among the data", "data: a\ndata\ndata: b\n\n", []event{{data: "a\n\nb"}}},
		{"a byte order mark", "\uFEFFdata: a\n\n", []event{{data: "a"}}},
		{"a byte order mark before an empty line", "\uFEFF\ndata: a\n\n", []event{{data: "a"}}},
		{"comments make no frame", ": hello\n\n:\n\ndata: a\n: inside\n\n: bye\n\n", []event{{data: "a"}}},
		{"unknown fields are read over", "data: a\nfoo: bar\nbaz\n\n", []event{{data: "a"}}},
		{"heartbeats without data make no frame", "data:\n\ndata: \n\ndata\n\ndata: a\n\nevent: ping\n\n", []event{{data: "a"}}},
		{"the name does not leak into the next event", "event: x\n\ndata: a\n\nevent: y\ndata: b\n\ndata: c\n\n", []event{{data: "a"}, {name: "y", data: "b"}, {data: "c"}}},
		{"the id stays until it changes", "id: 1\ndata: a\n\ndata: b\n\nid: 2\ndata: c\n\n", []event{{id: "1", data: "a"}, {id: "1", data: "b"}, {id: "2", data: "c"}}},
		{"retry is no data", "retry: 1000\ndata: a\n\n", []event{{data: "a"}}},
		{"no blank line at the end", "data: a\n\ndata: b\n", []event{{data: "a"}, {data: "b"}}},
		{"no line end at the end", "data: a\n\ndata: b", []event{{data: "a"}, {data: "b"}}},
		{"an error in a field of its own", "data: a\n\nerror: {\"message\":\"boom\"}\n\n", []event{{data: "a"}, {name: "error", data: `{"message":"boom"}`}}},
		{"an error in a field of its own, first and last", "error: {\"message\":\"boom\"}", []event{{name: "error", data: `{"message":"boom"}`}}},
		{"bare JSON after events", "data: a\n\n{\"error\":\"boom\"}\n", []event{{data: "a"}, {data: `{"error":"boom"}`}}},
		{"a comment sent as data is data", "data: : PROCESSING\n\n", []event{{data: ": PROCESSING"}}},
		{"runes", "data: 你好🌍\n\n", []event{{data: "你好🌍"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, src := range map[string]io.Reader{
				"at once":      strings.NewReader(c.in),
				"byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
				"halves":       iotest.HalfReader(strings.NewReader(c.in)),
				"with EOF":     iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				got, body, err := readAll(src)
				if err != nil || !reflect.DeepEqual(got, c.want) {
					t.Errorf("%s: got %q, %v; want %q", name, got, err, c.want)
				}
				if body != "" {
					t.Errorf("%s: body %q of a stream that has events", name, body)
				}
			}
		})
	}
}

func TestBodyKeepsWhatIsNoStream(t *testing.T) {
	for name, in := range map[string]string{
		"an error":            `{"error":{"message":"boom","code":429}}`,
		"an indented error":   "{\n  \"error\": {\n    \"message\": \"boom: twice\"\n  }\n}",
		"a page":              "<!DOCTYPE html>\n<html><head>\n<title>Just a moment</title>",
		"a line of text":      "upstream connect failure",
		"a completion":        `{"object":"chat.completion","choices":[]}`,
		"what merely has CRs": "<html>\r\n<body>",
	} {
		t.Run(name, func(t *testing.T) {
			want := strings.ReplaceAll(in, "\r\n", "\n")
			for _, src := range []io.Reader{
				strings.NewReader(in),
				strings.NewReader(": keep-alive\n\n\n\n" + in + "\n"),
				iotest.OneByteReader(strings.NewReader(in)),
			} {
				events, body, err := readAll(src)
				if len(events) != 0 || err != nil || body != want {
					t.Errorf("got events %q, body %q, error %v; want body %q", events, body, err, want)
				}
			}
		})
	}
}

func TestBrokenStreamLosesOnlyTheLineThatHasNoEnd(t *testing.T) {
	reset := errors.New("connection reset")
	for _, c := range []struct {
		in   string
		want []event
	}{
		{"data: a\n\ndata: b", []event{{data: "a"}}},
		{"data: a\n\ndata: b\n", []event{{data: "a"}, {data: "b"}}},
		{"data: a\n\ndata: b\ndata: c", []event{{data: "a"}, {data: "b"}}},
	} {
		r := NewReader(io.MultiReader(strings.NewReader(c.in), iotest.ErrReader(reset)))
		var got []event
		for {
			f, err := r.Next()
			if err != nil {
				if err != reset {
					t.Errorf("%q: error %v, want %v", c.in, err, reset)
				}
				break
			}
			got = append(got, event{f.Event, f.ID, string(f.Data)})
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
		if _, err := r.Next(); err != reset {
			t.Errorf("%q: the error does not stick: %v", c.in, err)
		}
	}
}

func TestLineOfAnyLengthUpToTheLimit(t *testing.T) {
	fits := strings.Repeat("x", MaxEvent-len("data: \n"))
	for name, src := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r },
		"in 4 KiB": func(r io.Reader) io.Reader {
			return readerFunc(func(p []byte) (int, error) { return r.Read(p[:min(len(p), 4096)]) })
		},
	} {
		events, _, err := readAll(src(strings.NewReader("data: " + fits + "\n\ndata: b\n\n")))
		if err != nil || len(events) != 2 || events[0].data != fits || events[1].data != "b" {
			t.Errorf("%s: %d events, %v: an event of MaxEvent bytes must be read", name, len(events), err)
		}
		events, _, err = readAll(src(strings.NewReader("data: a\n\ndata: x" + fits + "\n\ndata: b\n\n")))
		if !errors.Is(err, ErrTooLong) || len(events) != 1 {
			t.Errorf("%s: %d events, %v: want one event, then ErrTooLong", name, len(events), err)
		}
		events, body, err := readAll(src(strings.NewReader("<html>" + fits + "xx\n")))
		if !errors.Is(err, ErrTooLong) || len(events) != 0 {
			t.Errorf("%s: %d events, body of %d, %v: want ErrTooLong", name, len(events), len(body), err)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestReaderThatGivesNothingEnds(t *testing.T) {
	_, _, err := readAll(readerFunc(func([]byte) (int, error) { return 0, nil }))
	if !errors.Is(err, errNoProgress) {
		t.Errorf("got %v, want an end", err)
	}
}

func TestReadingBackWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z.]{0,12}`)
		data := rapid.StringMatching(`[^\x00\r]{1,80}`)
		var out []byte
		var want []event
		for range rapid.IntRange(0, 6).Draw(t, "events") {
			if rapid.Bool().Draw(t, "comment") {
				out = AppendComment(out, rapid.StringMatching(`[^\x00]{0,20}`).Draw(t, "text"))
			}
			e := event{name: name.Draw(t, "name"), data: data.Draw(t, "data")}
			out = Append(out, wire.Frame{Event: e.name, Data: []byte(e.data)})
			want = append(want, e)
		}
		got, body, err := readAll(pieces(t, out))
		if err != nil || body != "" || !reflect.DeepEqual(got, want) {
			t.Fatalf("wrote %q\n got %q, %v\nwant %q", out, got, err, want)
		}
	})
}

// pieces reads b in pieces of random sizes.
func pieces(t *rapid.T, b []byte) io.Reader {
	sizes := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 8).Draw(t, "sizes")
	i := 0
	src := bytes.NewReader(b)
	return readerFunc(func(p []byte) (int, error) {
		i++
		return src.Read(p[:min(len(p), sizes[i%len(sizes)])])
	})
}

func TestFramingCostsNoAllocationPerEvent(t *testing.T) {
	var stream []byte
	for i := range 500 {
		stream = Append(stream, wire.Frame{Event: "delta", Data: fmt.Appendf(nil, `{"n":%d,"text":"some text that makes the line longer"}`, i)})
	}
	n := testing.AllocsPerRun(10, func() {
		if events := count(t, stream); events != 500 {
			t.Fatalf("%d events", events)
		}
	})
	if n > 10 {
		t.Errorf("%v allocations for 500 events, want at most 10", n)
	}
}

func count(t *testing.T, stream []byte) int {
	r := NewReader(bytes.NewReader(stream))
	for n := 0; ; n++ {
		if _, err := r.Next(); err != nil {
			if err != io.EOF {
				t.Fatal(err)
			}
			return n
		}
	}
}

func FuzzSSE(f *testing.F) {
	f.Add([]byte("\uFEFFdata: a\r\n\r\n: c\n\nevent: x\ndata:b\ndata\n\nerror: {}\n{\"a\":1}\nid: 3\rdata: z"), uint8(3))
	f.Add([]byte("{\n\"error\": 1\n}\n"), uint8(1))
	f.Add([]byte("data: a\n\r\ndata: b\r\rdata"), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, n uint8) {
		whole, wholeBody, wholeErr := readAll(bytes.NewReader(in))
		src := bytes.NewReader(in)
		size := int(n)%64 + 1
		cut, cutBody, cutErr := readAll(readerFunc(func(p []byte) (int, error) { return src.Read(p[:min(len(p), size)]) }))
		if !reflect.DeepEqual(whole, cut) || wholeBody != cutBody || wholeErr != cutErr {
			t.Fatalf("at once:    %q %q %v\nin pieces: %q %q %v", whole, wholeBody, wholeErr, cut, cutBody, cutErr)
		}
		for _, e := range whole {
			if e.data == "" {
				t.Fatal("a frame without data")
			}
		}
	})
}
