package bedrock

import (
	"encoding/binary"
	"fmt"
)

// headers are the headers of a message that have a meaning here.
type headers struct {
	messageType   string // event, exception or error
	exceptionType string
	errorCode     string
	errorMessage  string
}

// The types of header values and their lengths; -1 is a length in two bytes.
//
// Source: the Amazon Transcribe and smithy pages on event stream encoding.
var valueLengths = [...]int{
	0: 0,  // true
	1: 0,  // false
	2: 1,  // byte
	3: 2,  // short
	4: 4,  // integer
	5: 8,  // long
	6: -1, // bytes
	7: -1, // string
	8: 8,  // timestamp
	9: 16, // UUID
}

const typeString = 7

var errHeader = fmt.Errorf("%w: a header does not fit", errCorrupt)

// read takes the headers of a message. Those of other types than string are
// read over.
func (h *headers) read(b []byte) error {
	*h = headers{}
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+1 {
			return errHeader
		}
		name, kind := b[1:1+n], b[1+n]
		b = b[2+n:]
		if int(kind) >= len(valueLengths) {
			return fmt.Errorf("%w: a header has the unknown type %d", errCorrupt, kind)
		}
		length := valueLengths[kind]
		if length < 0 {
			if len(b) < 2 {
				return errHeader
			}
			length = int(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) < length {
			return errHeader
		}
		if kind == typeString {
			h.set(name, b[:length])
		}
		b = b[length:]
	}
	return nil
}

// set keeps a value. The usual ones need no memory of their own.
func (h *headers) set(name, value []byte) {
	switch string(name) {
	case ":message-type":
		if string(value) == "event" {
			h.messageType = "event"
		} else {
			h.messageType = string(value)
		}
	case ":exception-type":
		h.exceptionType = string(value)
	case ":error-code":
		h.errorCode = string(value)
	case ":error-message":
		h.errorMessage = string(value)
	}
}
