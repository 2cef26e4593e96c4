// Package ollama reads the answers of Ollama's own chat API (POST /api/chat),
// streamed as lines of JSON or whole. Requests go to Ollama's compatible
// endpoint, so that there is nothing to write.
package ollama

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// MaxLine is the longest line that is read, in bytes.
const MaxLine = 16 << 20

// ErrTooLong is the error for a line of more than MaxLine bytes; nothing can
// be read after it.
var ErrTooLong = fmt.Errorf("a line of the stream is longer than %d MiB", MaxLine>>20)

// Framer reads a stream of JSON lines: each one is a frame. However the bytes
// are split over reads, the frames are the same. Empty lines are read over. At
// a clean end the last line needs no line end; where the stream broke, a last
// line without one is dropped. It is not safe for concurrent use.
type Framer struct {
	src   *bufio.Reader
	line  []byte // what did not fit the reader's buffer
	err   error  // sticky
	begun bool   // a line of JSON has been read
	stray []byte
}

// NewFramer gives a Framer of src.
func NewFramer(src io.Reader) *Framer { return &Framer{src: bufio.NewReaderSize(src, 8<<10)} }

// Next reads the next frame. Its data are only valid until the next call. At
// the end of the stream the error is io.EOF; otherwise it is ErrTooLong or the
// error of the underlying reader.
func (f *Framer) Next() (wire.Frame, error) {
	for {
		line, err := f.readLine()
		if err != nil {
			return wire.Frame{}, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if !f.begun && (line[0] != '{' || !rawjson.Valid(line)) {
			if len(f.stray) > 0 {
				f.stray = append(f.stray, '\n')
			}
			if f.stray = append(f.stray, line...); len(f.stray) > MaxLine {
				f.err = ErrTooLong
			}
			continue
		}
		f.begun = true
		return wire.Frame{Data: line}, nil
	}
}

// Body gives what the stream held when not one line of it was JSON: a page of
// HTML, or JSON that is written over several lines. It is nil once a frame has
// been read. Call it when Next gives io.EOF as its first result.
func (f *Framer) Body() []byte {
	if f.begun {
		return nil
	}
	return f.stray
}

func (f *Framer) readLine() ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	f.line = f.line[:0]
	for {
		piece, err := f.src.ReadSlice('\n')
		if len(f.line)+len(piece) > MaxLine {
			f.err = ErrTooLong
			return nil, f.err
		}
		if err == nil && len(f.line) == 0 {
			return piece, nil
		}
		f.line = append(f.line, piece...)
		switch {
		case err == nil:
			return f.line, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		f.err = err
		if err == io.EOF && len(f.line) > 0 {
			return f.line, nil
		}
		return nil, err
	}
}
