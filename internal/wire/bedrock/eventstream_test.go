package bedrock_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/bedrock"
	"github.com/ninelives-ai/ninelives/internal/wire/wiretest"
)

// message writes one message by the book, so that the reader is not tested
// with its own idea of the format.
func message(headers, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(headers)+len(payload)+16))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func header(pairs ...string) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = append(b, byte(len(pairs[i])))
		b = append(b, pairs[i]...)
		b = append(b, 7)
		b = binary.BigEndian.AppendUint16(b, uint16(len(pairs[i+1])))
		b = append(b, pairs[i+1]...)
	}
	return b
}

func chunk(event string) []byte {
	return message(header(":event-type", "chunk", ":content-type", "application/json", ":message-type", "event"),
		[]byte(`{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(event))+`","p":"abcd"}`))
}

func candidate() ninelives.Candidate {
	return ninelives.Candidate{Provider: "bedrock", Model: "claude-test"}
}

// all reads a stream to its end.
func all(r *bedrock.Reader) ([]string, error) {
	var got []string
	for {
		f, err := r.Next()
		if err != nil {
			return got, err
		}
		got = append(got, string(f.Data))
	}
}

func TestEventsAreUnwrappedHoweverTheyAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []string
		var stream []byte
		for range rapid.IntRange(0, 5).Draw(t, "events") {
			event := `{"type":"x","v":"` + strings.Repeat("y", rapid.IntRange(0, 9000).Draw(t, "length")) + `"}`
			want, stream = append(want, event), append(stream, chunk(event)...)
		}
		var pieces [][]byte
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), rapid.IntRange(1, 5000).Draw(t, "read"))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		got, err := all(bedrock.NewReader(wiretest.Pieces(pieces), candidate()))
		if err != io.EOF || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("got %q, %v", got, err)
		}
	})
}

func TestMessagesWithoutAnEventAreReadOver(t *testing.T) {
	stream := append(message(header(":message-type", "event", ":event-type", "initial-response"), nil), chunk(`{"a":1}`)...)
	got, err := all(bedrock.NewReader(bytes.NewReader(stream), candidate()))
	if err != io.EOF || strings.Join(got, "\n") != `{"a":1}` {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestHeadersOfEveryTypeAreReadOver(t *testing.T) {
	headers := append([]byte{1, 'a', 0, 1, 'b', 1, 1, 'c', 2, 9, 1, 'd', 3, 0, 9, 1, 'e', 4, 0, 0, 0, 9, 1, 'f', 5, 0, 0, 0, 0, 0, 0, 0, 9,
		1, 'g', 6, 0, 2, 8, 9, 1, 'h', 8, 0, 0, 0, 0, 0, 0, 0, 9, 1, 'i', 9}, make([]byte, 16)...)
	headers = append(headers, header(":message-type", "event")...)
	got, err := all(bedrock.NewReader(bytes.NewReader(message(headers, []byte(`{"bytes":"e30="}`))), candidate()))
	if err != io.EOF || strings.Join(got, "\n") != `{}` {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestExceptionsAreFaults(t *testing.T) {
	exception := func(kind, text string) []byte {
		return message(header(":exception-type", kind, ":content-type", "application/json", ":message-type", "exception"), []byte(`{"message":"`+text+`"}`))
	}
	for _, tc := range []struct {
		name  string
		bytes []byte
		class ninelives.Class
	}{
		{"throttled", exception("throttlingException", "Too many tokens, please wait before trying again."), ninelives.ClassRateLimit},
		{"too long", exception("validationException", "Input is too long for requested model."), ninelives.ClassContextLength},
		{"unavailable", exception("serviceUnavailableException", "Bedrock is unable to process your request."), ninelives.ClassOverloaded},
		{"timed out", exception("modelTimeoutException", "Model has timed out in processing the request."), ninelives.ClassTimeout},
		{"an error message", message(header(":message-type", "error", ":error-code", "throttlingException", ":error-message", "slow down"), nil), ninelives.ClassRateLimit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := bedrock.NewReader(bytes.NewReader(append(chunk(`{"a":1}`), tc.bytes...)), candidate())
			got, err := all(r)
			var fault *ninelives.Fault
			if !errors.As(err, &fault) || fault.Class != tc.class || fault.Candidate != "bedrock/claude-test" || fault.Message == "" {
				t.Errorf("got %v, want class %s", err, tc.class)
			}
			if len(got) != 1 {
				t.Errorf("the events before it: %q", got)
			}
			if _, again := r.Next(); again != err {
				t.Errorf("the next read says %v", again)
			}
		})
	}
}

func TestCorruptStreams(t *testing.T) {
	good := chunk(`{"a":1}`)
	change := func(at int, b byte) []byte {
		c := bytes.Clone(good)
		c[at] ^= b
		return c
	}
	head := func(total, headers uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, total)
		b = binary.BigEndian.AppendUint32(b, headers)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	}
	for _, tc := range []struct {
		name  string
		bytes []byte
		says  string
	}{
		{"a wrong length", change(3, 1), "head"},
		{"a wrong payload", change(len(good)-8, 1), "checksum"},
		{"a wrong checksum", change(len(good)-1, 1), "checksum"},
		{"a message larger than any", head(64<<20, 0), "larger"},
		{"a message shorter than its own head", head(11, 0), "do not fit"},
		{"headers longer than their message", head(20, 1<<31), "do not fit"},
		{"a payload that is no JSON", message(header(":message-type", "event"), []byte("hello")), "not JSON"},
		{"a payload that is no base64", message(header(":message-type", "event"), []byte(`{"bytes":"***"}`)), "base64"},
		{"a header of an unknown type", message([]byte{1, 'a', 42}, []byte("{}")), "type 42"},
		{"a header that does not fit", message([]byte{9, 'a'}, []byte("{}")), "fit"},
		{"not an event stream", []byte("data: {\"type\":\"message_start\"}\n\n"), "head"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := all(bedrock.NewReader(bytes.NewReader(tc.bytes), candidate()))
			if len(got) > 0 || err == nil || err == io.EOF || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestACutStreamIsNoEnd(t *testing.T) {
	stream := append(chunk(`{"a":1}`), chunk(`{"b":2}`)...)
	first := len(chunk(`{"a":1}`))
	for n := range len(stream) {
		got, err := all(bedrock.NewReader(bytes.NewReader(stream[:n]), candidate()))
		want := io.ErrUnexpectedEOF
		if n == 0 || n == first {
			want = io.EOF
		}
		if err != want || len(got) != n/first {
			t.Fatalf("cut at %d: %q, %v", n, got, err)
		}
	}
	broken := errors.New("connection reset by peer")
	_, err := all(bedrock.NewReader(io.MultiReader(bytes.NewReader(stream[:first+5]), failing{broken}), candidate()))
	if !errors.Is(err, broken) {
		t.Errorf("the cause is lost: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FuzzAWSEventStream: whatever comes, the reader ends, and it reads alike
// however the bytes are split.
func FuzzAWSEventStream(f *testing.F) {
	f.Add(append(chunk(`{"a":1}`), chunk(`{"b":2}`)...))
	f.Add(message(header(":message-type", "exception", ":exception-type", "throttlingException"), []byte(`{"message":"x"}`)))
	f.Add(message([]byte{1, 'a', 3, 0, 1}, []byte(`{}`)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, err := all(bedrock.NewReader(bytes.NewReader(stream), candidate()))
		split, err2 := all(bedrock.NewReader(wiretest.Pieces(wiretest.Every(stream, 1)), candidate()))
		if strings.Join(whole, "\n") != strings.Join(split, "\n") || (err == nil) != (err2 == nil) || err.Error() != err2.Error() {
			t.Fatalf("in one read %q, %v; in many %q, %v", whole, err, split, err2)
		}
	})
}
