package sse

import (
	"bytes"
	"strings"

	"github.com/ninelives-ai/ninelives/internal/wire"
)

// Append appends an event to dst in wire form. Data of several lines become
// several data fields; empty data are written too, so that an event that is
// nothing but its name is heard.
func Append(dst []byte, f wire.Frame) []byte {
	if f.Event != "" {
		dst = appendField(dst, "event: ", f.Event)
	}
	if f.ID != "" {
		dst = appendField(dst, "id: ", f.ID)
	}
	data := f.Data
	for {
		n := bytes.IndexAny(data, "\r\n")
		dst = append(dst, "data: "...)
		if n < 0 {
			dst = append(dst, data...)
			return append(dst, "\n\n"...)
		}
		dst = append(dst, data[:n]...)
		dst = append(dst, '\n')
		if data[n] == '\r' && n+1 < len(data) && data[n+1] == '\n' {
			n++
		}
		data = data[n+1:]
	}
}

// AppendComment appends a comment to dst: a sign of life that is no event.
func AppendComment(dst []byte, text string) []byte {
	return append(appendField(dst, ": ", text), '\n')
}

// appendField appends one line; line ends within the value become spaces.
func appendField(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	if strings.ContainsAny(value, "\r\n") {
		value = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ").Replace(value)
	}
	dst = append(dst, value...)
	return append(dst, '\n')
}
