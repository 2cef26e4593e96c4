package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// atOnce is how much of a body room is made for before any of it has come: a
// length that is only promised holds nothing.
const atOnce = 1 << 20

// read takes in the body of a request. forget is never nil.
func (s *Server) read(w http.ResponseWriter, r *http.Request, limits Limits) (body []byte, forget func(), err error) {
	var held int64
	forget = func() { s.memory.Add(-held) }
	tooLarge := func() error {
		return &refused{Trouble: troubleTooLarge, Text: fmt.Sprintf("The request is larger than the %s that this gateway takes.", bytesOf(limits.Body))}
	}
	size := r.ContentLength
	if size > limits.Body {
		return nil, forget, tooLarge()
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, forget, &refused{Trouble: troubleMalformed, Param: "content-encoding", Text: "Compressed requests are not read. Send the body as it is."}
	}
	hold := func(n int64) error {
		if s.memory.Add(n) > limits.Memory {
			s.memory.Add(-n)
			return &refused{Trouble: troubleBusy, Text: "This gateway holds as many bytes of requests as it may. Ask again in a moment.", Wait: 2 * time.Second}
		}
		held += n
		return nil
	}
	room := min(size, atOnce)
	if size < 0 {
		room = atOnce / 16 // it comes in chunks, and does not say how many
	}
	if err := hold(room); err != nil {
		return nil, forget, err
	}
	body = make([]byte, 0, room)
	bodyDeadline(w, limits.ReadTimeout, time.Now())
	in := http.MaxBytesReader(w, r.Body, limits.Body)
	for err == nil && int64(len(body)) != size {
		if n := int64(len(body)); n == room {
			more := min(n, limits.Body+1-n)
			if size >= 0 {
				more = min(n, size-n)
			}
			if err := hold(more); err != nil {
				return nil, forget, err
			}
			room += more
			body = append(make([]byte, 0, room), body...)
		}
		var n int
		n, err = in.Read(body[len(body):room])
		body = body[:len(body)+n]
	}
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, forget, tooLarge()
	case err != nil && (err != io.EOF || size >= 0 && int64(len(body)) < size):
		return nil, forget, &refused{Trouble: troubleMalformed, Text: "The body of the request did not come to its end in time, or was cut."}
	}
	bodyRead(w)
	return body, forget, nil
}

// bytesOf writes a number of bytes for people.
func bytesOf(n int64) string {
	if n%(1<<20) == 0 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
