package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// read takes in the body of a request. forget is never nil.
func (s *Server) read(w http.ResponseWriter, r *http.Request, limits Limits) (body []byte, forget func(), err error) {
	forget = func() {}
	size := r.ContentLength
	if size > limits.Body {
		return nil, forget, tooLarge(limits)
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, forget, &refused{Trouble: troubleMalformed, Param: "content-encoding", Text: "Compressed requests are not read. Send the body as it is."}
	}
	held := max(size, 0)
	if s.memory.Add(held) > limits.Memory {
		s.memory.Add(-held)
		return nil, forget, &refused{Trouble: troubleBusy, Text: "This gateway holds as many bytes of requests as it may. Ask again in a moment.", Wait: 2 * time.Second}
	}
	forget = func() { s.memory.Add(-held) }
	done := bodyDeadline(w, limits.ReadTimeout, time.Now())
	defer done()
	in := http.MaxBytesReader(w, r.Body, limits.Body)
	if size >= 0 {
		body = make([]byte, size)
		_, err = io.ReadFull(in, body)
	} else {
		var b bytes.Buffer
		_, err = b.ReadFrom(in)
		body = b.Bytes()
		held = int64(len(body))
		s.memory.Add(held)
	}
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, forget, tooLarge(limits)
	case err != nil:
		return nil, forget, &refused{Trouble: troubleMalformed, Text: "The body of the request did not come to its end in time, or was cut."}
	}
	return body, forget, nil
}

func tooLarge(limits Limits) *refused {
	return &refused{Trouble: troubleTooLarge, Text: fmt.Sprintf("The request is larger than the %s that this gateway takes.", bytesOf(limits.Body))}
}

// bytesOf writes a number of bytes for people.
func bytesOf(n int64) string {
	if n%(1<<20) == 0 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
