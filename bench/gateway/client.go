package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// ask is one kind of request, ready to be sent again and again.
type ask struct {
	name   string
	bytes  []byte
	stream bool
}

// line is one of about the length that lines of programs have.
const line = `lorem ipsum dolor sit amet, consectetur\n`

// newAsk writes a chat request with a body of about so many bytes.
func newAsk(name, model string, size int, stream bool, header http.Header) ask {
	body := fmt.Appendf(nil, `{"model":%q,"stream":%t,"messages":[{"role":"system","content":"You are terse."}`, model, stream)
	for i := 0; len(body) < size-120; i++ {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		fill := min(1500, size-len(body)-100)
		body = fmt.Appendf(body, `,{"role":%q,"content":"%s"}`, role, bytes.Repeat([]byte(line), max(fill/len(line), 1)))
	}
	body = append(body, `,{"role":"user","content":"Go on."}]}`...)
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	_ = header.Write(&b) // a buffer takes everything
	b.WriteString("\r\n")
	b.Write(body)
	return ask{name: name, bytes: b.Bytes(), stream: stream}
}

// conn is a connection that is kept, to one target.
type conn struct {
	addr string
	c    net.Conn
	in   *bufio.Reader
	body []byte
}

func (c *conn) close() {
	if c.c != nil {
		_ = c.c.Close() // nothing is lost with it
		c.c = nil
	}
}

// took is how long an answer took to its first byte of body, and to its end.
type took struct{ first, whole time.Duration }

// do asks once. An answer that is not whole is an error.
func (c *conn) do(a ask) (took, error) {
	t, err := c.try(a)
	if err != nil {
		c.close()
	}
	return t, err
}

func (c *conn) try(a ask) (t took, err error) {
	if c.c == nil {
		if c.c, err = net.Dial("tcp", c.addr); err != nil {
			return t, err
		}
		c.in = bufio.NewReaderSize(c.c, 64<<10)
	}
	_ = c.c.SetDeadline(time.Now().Add(30 * time.Second)) // a socket has deadlines
	began := time.Now()
	if _, err = c.c.Write(a.bytes); err != nil {
		return t, err
	}
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return t, err
	}
	defer r.Body.Close()
	if cap(c.body) == 0 {
		c.body = make([]byte, 0, 128<<10)
	}
	c.body = c.body[:0]
	for {
		if len(c.body) == cap(c.body) {
			return t, fmt.Errorf("an answer of more than %d bytes", cap(c.body))
		}
		n, err := r.Body.Read(c.body[len(c.body):cap(c.body)])
		if n > 0 && len(c.body) == 0 {
			t.first = time.Since(began)
		}
		c.body = c.body[:len(c.body)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return t, err
		}
	}
	t.whole = time.Since(began)
	switch {
	case r.StatusCode != http.StatusOK:
		return t, fmt.Errorf("status %d: %.300s", r.StatusCode, c.body)
	case a.stream && (bytes.Count(c.body, []byte("word")) != chunks-2 || !bytes.HasSuffix(bytes.TrimSpace(c.body), []byte("data: [DONE]"))):
		return t, fmt.Errorf("a stream that is not whole: %d bytes, %d of %d words", len(c.body), bytes.Count(c.body, []byte("word")), chunks-2)
	case !a.stream && !bytes.Contains(c.body, []byte("word039")):
		return t, fmt.Errorf("an answer that is not whole: %.300s", c.body)
	}
	if r.Close {
		c.close()
	}
	return t, nil
}

// load is what came of asking on many connections at once.
type load struct {
	done   int
	failed int
	err    error // one of them
	wall   time.Duration
}

// press asks on n connections at once, each again and again until the time is
// over; with no time, each once.
func press(addr string, a ask, n int, d time.Duration) load {
	var (
		mu    sync.Mutex
		all   load
		group sync.WaitGroup
	)
	began := time.Now()
	for range n {
		group.Go(func() {
			c := &conn{addr: addr}
			defer c.close()
			var mine load
			for {
				if _, err := c.do(a); err != nil {
					mine.failed++
					mine.err = err
				} else {
					mine.done++
				}
				if time.Since(began) >= d {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.done += mine.done
			all.failed += mine.failed
			if mine.err != nil {
				all.err = mine.err
			}
		})
	}
	group.Wait()
	all.wall = time.Since(began)
	return all
}
