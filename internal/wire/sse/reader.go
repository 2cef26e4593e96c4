// Package sse reads and writes server-sent events as providers really send
// them: with LF, CRLF or bare CR, with or without a space after the colon,
// cut anywhere, and with things in between that are no events at all.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ninelives-ai/ninelives/internal/wire"
)

// MaxEvent is the largest event that is read, in bytes, framing included.
const MaxEvent = 16 << 20

// ErrTooLong is the error for an event of more than MaxEvent bytes; nothing
// can be read after it.
var ErrTooLong = fmt.Errorf("a server-sent event is larger than %d MiB", MaxEvent>>20)

// errNoProgress ends a stream whose reader gives neither bytes nor an error.
var errNoProgress = errors.New("the stream gives neither bytes nor an error")

// Reader reads the events of a stream. However the bytes are split over reads,
// the events are the same. It is not safe for concurrent use.
//
// Comments, unknown fields and events without data (heartbeats) are read over:
// they make no frame, so they cannot be mistaken for progress. Whoever needs to
// know that the connection lives counts the bytes of the underlying reader.
//
// Beyond the standard, because providers do so: a field named "error" is an
// event named "error" by itself; a line that begins with "{" once events have
// come is taken as an event with that data; and the last event of a stream
// needs no blank line after it. Where the stream broke (any error but io.EOF),
// a last line that has no end is dropped; at a clean end it counts.
type Reader struct {
	src io.Reader
	err error // of src, sticky

	tooLong bool // the current event is

	buf []byte
	// The current event is buf[start:], of which buf[start:line] is parsed;
	// buf[line:seen] has no line end.
	start, line, seen int
	skipLF            bool // the last line ended in CR: an LF belongs to it
	begun             bool // the first line has been read

	// The event so far. Data of one line lies in buf[start+data:start+dataEnd];
	// of several it is joined in many.
	event         string
	id            string
	data, dataEnd int
	lines         int
	many          []byte

	keep bool // the bytes are wanted as well: see Keep
	from int  // the first byte in buf that was not given out by Raw

	events bool   // an event has been read
	stray  []byte // what came before the first event and was no event

	names map[string]string // event names seen, so that each is made once
}

// NewReader gives a Reader of src.
func NewReader(src io.Reader) *Reader { return &Reader{src: src} }

// Next reads the next event. Its data are only valid until the next call. At
// the end of the stream the error is io.EOF; otherwise it is ErrTooLong or the
// error of the underlying reader.
func (r *Reader) Next() (wire.Frame, error) {
	r.drop()
	for {
		line, ok := r.readLine()
		if !ok && r.err == nil {
			r.fill()
			continue
		}
		if !ok {
			return r.last()
		}
		r.begin(&line)
		if len(line) == 0 {
			if r.complete() {
				return r.frame(), nil
			}
			r.drop()
			continue
		}
		if r.field(line) {
			return r.frame(), nil
		}
		if r.tooLong {
			r.err = ErrTooLong
			r.line = len(r.buf)
			return r.last()
		}
		if r.lines != 1 {
			r.start = r.line // the buffer holds nothing that the event needs
		}
	}
}

// last ends the stream: what is pending may still be an event.
func (r *Reader) last() (wire.Frame, error) {
	line := r.buf[r.line:]
	r.line, r.seen = len(r.buf), len(r.buf)
	if r.err == io.EOF && len(line) > 0 {
		r.begin(&line)
		if len(line) > 0 && r.field(line) {
			return r.frame(), nil
		}
	}
	if r.tooLong {
		r.err = ErrTooLong
	} else if r.complete() {
		return r.frame(), nil
	}
	return wire.Frame{}, r.err
}

// Body gives what the stream held when it held no event at all, as it came: a
// JSON error or a whole JSON answer where a stream was asked for, a page of
// HTML. It is nil once an event has been read. Comments and empty lines are not
// part of it. Call it when Next gives io.EOF as its first result.
func (r *Reader) Body() []byte {
	if r.events {
		return nil
	}
	return r.stray
}

// Keep makes the reader keep the bytes of the stream, so that they can be
// relayed. Call it before the first Next, and Raw after every one.
func (r *Reader) Keep() { r.keep = true }

// Raw gives the bytes from the end of the event before up to the end of the
// last one, with everything in between that was read over. All that Raw gives,
// and Rest, is the stream byte for byte. They are valid until the next call of
// Next.
func (r *Reader) Raw() []byte {
	if r.skipLF && r.line < len(r.buf) {
		// The other half of a line end belongs to it: some clients wait for it.
		r.skipLF = false
		if r.buf[r.line] == '\n' {
			r.line++
			r.seen = max(r.seen, r.line)
		}
	}
	raw := r.buf[r.from:r.line]
	r.from = r.line
	return raw
}

// Rest gives the bytes that were read and belong to no event that Next gave.
func (r *Reader) Rest() []byte {
	rest := r.buf[r.from:]
	r.from, r.line, r.seen = len(r.buf), len(r.buf), len(r.buf)
	return rest
}

// More reports whether the next event is surely in the buffer already: Next
// then does not wait. It looks for the plain form alone and may miss others.
func (r *Reader) More() bool {
	rest := r.buf[r.line:]
	end := bytes.Index(rest, []byte("\n\n"))
	if end < 0 {
		return false
	}
	event := rest[:end]
	return bytes.HasPrefix(event, []byte("data: {")) || bytes.Contains(event, []byte("\ndata: {"))
}

// readLine gives the next line without its end, if there is one in the buffer.
func (r *Reader) readLine() ([]byte, bool) {
	if r.skipLF && r.line < len(r.buf) {
		r.skipLF = false
		if r.buf[r.line] == '\n' {
			if r.start == r.line {
				r.start++
			}
			r.line++
		}
	}
	if r.seen < r.line {
		r.seen = r.line
	}
	rest := r.buf[r.seen:]
	n := bytes.IndexByte(rest, '\n')
	if n >= 0 {
		rest = rest[:n]
	}
	if cr := bytes.IndexByte(rest, '\r'); cr >= 0 {
		n = cr
		r.skipLF = true
	}
	if n < 0 {
		r.seen = len(r.buf)
		return nil, false
	}
	end := r.seen + n
	line := r.buf[r.line:end]
	r.line = end + 1
	r.seen = r.line
	return line, true
}

// begin strips the byte order mark of the first line.
func (r *Reader) begin(line *[]byte) {
	if !r.begun {
		r.begun = true
		*line = bytes.TrimPrefix(*line, []byte("\uFEFF"))
	}
}

// field takes in one line and reports whether it is an event by itself.
func (r *Reader) field(line []byte) bool {
	if r.line-r.start > MaxEvent {
		r.tooLong = true
		return false
	}
	colon := bytes.IndexByte(line, ':')
	if colon == 0 {
		return false // a comment
	}
	name, value := line, line[len(line):]
	if colon > 0 {
		name, value = line[:colon], line[colon+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
	}
	switch string(name) {
	case "data":
		r.addData(value)
	case "event":
		r.event = r.intern(value)
	case "id":
		if string(value) != r.id && bytes.IndexByte(value, 0) < 0 {
			r.id = string(value)
		}
	case "retry":
	case "error":
		r.event = "error"
		r.addData(value)
	default:
		if !r.events {
			if len(r.stray) > 0 {
				r.stray = append(r.stray, '\n')
			}
			r.stray = append(r.stray, line...)
			r.tooLong = len(r.stray) > MaxEvent
			return false
		}
		if line[0] == '{' && r.lines == 0 {
			r.addData(line)
			return true
		}
	}
	return false
}

// addData adds a line of data to the event. value lies in buf.
func (r *Reader) addData(value []byte) {
	switch r.lines {
	case 0:
		at := cap(r.buf) - cap(value) // value is a piece of buf
		r.data = at - r.start
		r.dataEnd = r.data + len(value)
	case 1:
		r.many = append(r.many[:0], r.buf[r.start+r.data:r.start+r.dataEnd]...)
		fallthrough
	default:
		r.many = append(r.many, '\n')
		r.many = append(r.many, value...)
		r.tooLong = len(r.many) > MaxEvent
	}
	r.lines++
}

// complete reports whether the event so far is one to hand out.
func (r *Reader) complete() bool {
	return r.lines > 1 || r.lines == 1 && r.dataEnd > r.data
}

// frame hands the event out. It stays in the buffer until the next call.
func (r *Reader) frame() wire.Frame {
	f := wire.Frame{Event: r.event, ID: r.id}
	if r.lines > 1 {
		f.Data = r.many
	} else {
		f.Data = r.buf[r.start+r.data : r.start+r.dataEnd]
	}
	r.events = true
	r.stray = nil
	return f
}

// drop forgets the current event.
func (r *Reader) drop() {
	r.event, r.lines, r.data, r.dataEnd = "", 0, 0, 0
	r.start = r.line
}

// intern makes an event name a string, once per name.
func (r *Reader) intern(name []byte) string {
	if s, ok := r.names[string(name)]; ok {
		return s
	}
	s := string(name)
	if r.names == nil {
		r.names = make(map[string]string)
	}
	if len(r.names) < 64 {
		r.names[s] = s
	}
	return s
}

// fill reads more bytes, making room for them.
func (r *Reader) fill() {
	first := r.start // the first byte that is needed
	if r.keep {
		first = min(first, r.from)
	}
	if first > 0 && (first == len(r.buf) || cap(r.buf)-len(r.buf) < cap(r.buf)/4) {
		n := copy(r.buf, r.buf[first:])
		r.buf = r.buf[:n]
		r.line -= first
		r.seen -= first
		r.start -= first
		r.from -= first
	}
	if len(r.buf)-first > MaxEvent {
		r.err, r.tooLong = ErrTooLong, true
		return
	}
	if len(r.buf) == cap(r.buf) {
		grown := make([]byte, len(r.buf), max(8<<10, 2*cap(r.buf)))
		copy(grown, r.buf)
		r.buf = grown
	}
	for range 100 {
		n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		if err != nil {
			r.err = err
		}
		if n > 0 || err != nil {
			return
		}
	}
	r.err = errNoProgress
}
