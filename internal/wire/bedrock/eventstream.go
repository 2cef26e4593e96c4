// Package bedrock takes the frames off a streamed answer of Amazon Bedrock: an
// AWS event stream whose messages wrap, in base64, the events of the model's
// own protocol.
package bedrock

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// ContentType is the media type of an AWS event stream.
const ContentType = "application/vnd.amazon.eventstream"

// MaxMessage is the largest message that is read, in bytes; the format's own
// limits are 16 MiB of payload and 128 KiB of headers.
const MaxMessage = 16<<20 + 128<<10 + overhead

const (
	prelude  = 12 // total length, length of the headers, CRC of both
	overhead = prelude + 4
)

// errCorrupt begins the errors about bytes that are no event stream.
var errCorrupt = errors.New("the AWS event stream is corrupt")

// Reader reads the messages of a stream. However the bytes are split over
// reads, the frames are the same. It is not safe for concurrent use.
type Reader struct {
	src       io.Reader
	candidate ninelives.Candidate
	buf       []byte
	err       error
	text      []byte // base64
	data      []byte
	head      headers
}

// NewReader gives a Reader of src; the faults that it finds name the candidate.
func NewReader(src io.Reader, c ninelives.Candidate) *Reader {
	return &Reader{src: src, candidate: c}
}

// Next reads the next event. Its data are only valid until the next call.
// Messages that carry no event are read over. At the end of the stream the
// error is io.EOF, in the middle of a message io.ErrUnexpectedEOF; an exception
// or an error message of the service is a *ninelives.Fault.
func (r *Reader) Next() (wire.Frame, error) {
	for r.err == nil {
		f, ok, err := r.message()
		if err != nil {
			r.err = err
			break
		}
		if ok {
			return f, nil
		}
	}
	return wire.Frame{}, r.err
}

// message reads one message; it reports false if it carries no event.
func (r *Reader) message() (wire.Frame, bool, error) {
	if err := r.fill(prelude); err != nil {
		return wire.Frame{}, false, err
	}
	if crc := binary.BigEndian.Uint32(r.buf[8:]); crc != crc32.ChecksumIEEE(r.buf[:8]) {
		return wire.Frame{}, false, fmt.Errorf("%w: the checksum of a message's head is wrong", errCorrupt)
	}
	total, headLen := uint64(binary.BigEndian.Uint32(r.buf)), uint64(binary.BigEndian.Uint32(r.buf[4:]))
	switch {
	case total > MaxMessage:
		return wire.Frame{}, false, fmt.Errorf("%w: a message of %d bytes is larger than the format allows", errCorrupt, total)
	case total < overhead || headLen > total-overhead:
		return wire.Frame{}, false, fmt.Errorf("%w: the lengths in a message's head do not fit", errCorrupt)
	}
	if err := r.fill(int(total)); err != nil {
		return wire.Frame{}, false, err
	}
	message := r.buf[:total]
	if crc := binary.BigEndian.Uint32(message[total-4:]); crc != crc32.ChecksumIEEE(message[:total-4]) {
		return wire.Frame{}, false, fmt.Errorf("%w: the checksum of a message is wrong", errCorrupt)
	}
	if err := r.head.read(message[prelude : prelude+headLen]); err != nil {
		return wire.Frame{}, false, err
	}
	f, ok, err := r.event(message[prelude+headLen : total-4])
	r.buf = r.buf[:copy(r.buf, r.buf[total:])]
	return f, ok, err
}

// fill reads until the buffer holds n bytes.
func (r *Reader) fill(n int) error {
	for empty := 0; len(r.buf) < n; {
		if cap(r.buf) < n {
			grown := make([]byte, len(r.buf), max(n, 4096))
			copy(grown, r.buf)
			r.buf = grown
		}
		got, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+got]
		switch {
		case len(r.buf) >= n:
			return nil
		case err == io.EOF && len(r.buf) > 0:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case got > 0:
			empty = 0
		default:
			if empty++; empty > 100 {
				return io.ErrNoProgress
			}
		}
	}
	return nil
}

// event makes a frame of a message's payload. The model's own event is base64
// in the member "bytes"; a payload without it is taken as it is.
func (r *Reader) event(payload []byte) (wire.Frame, bool, error) {
	switch r.head.messageType {
	case "exception", "error":
		return wire.Frame{}, false, r.fault(payload)
	}
	if !rawjson.Valid(payload) {
		if len(payload) == 0 {
			return wire.Frame{}, false, nil
		}
		return wire.Frame{}, false, fmt.Errorf("%w: the payload of a message is not JSON", errCorrupt)
	}
	encoded := rawjson.Get(payload, "bytes")
	if rawjson.Kind(encoded) != '"' {
		r.data = append(r.data[:0], payload...)
		return wire.Frame{Data: r.data}, true, nil
	}
	r.text = rawjson.AppendString(r.text[:0], encoded)
	var err error
	if r.data, err = base64.StdEncoding.AppendDecode(r.data[:0], r.text); err != nil {
		return wire.Frame{}, false, fmt.Errorf("%w: the payload of a message is not base64", errCorrupt)
	}
	return wire.Frame{Data: r.data}, true, nil
}

// fault makes a fault of an exception (a modelled one, with a JSON payload) or
// an error message (code and text in its headers).
func (r *Reader) fault(payload []byte) *ninelives.Fault {
	kind := r.head.exceptionType
	if r.head.messageType == "error" {
		kind = r.head.errorCode
		var w rawjson.Writer
		w.Open('{')
		w.StringMember("message", r.head.errorMessage)
		w.Close('}')
		payload = w.B
	}
	return wire.Classify(wire.Answer{Status: 200, Type: kind, Body: payload, Candidate: r.candidate, InBand: true})
}
