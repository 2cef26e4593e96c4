package gateway

import (
	"net/http"
	"time"
)

// connection is the client at the other end of a request.
type connection struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// patience is how long the client may take nothing before it counts as gone.
	patience time.Duration
	extended time.Time
	// two says that HTTP/2 is spoken: there a deadline that passes resets the
	// stream, although nobody writes at that time.
	two bool
}

// writePiece is what a client takes within its patience at least, in bytes.
const writePiece = 64 << 10

func newConnection(w http.ResponseWriter, r *http.Request, patience time.Duration) *connection {
	return &connection{w: w, control: http.NewResponseController(w), patience: patience, two: r.ProtoMajor == 2}
}

// Start sends status and headers.
func (c *connection) Start(status int, h http.Header) {
	c.extend()
	header := c.w.Header()
	for name, values := range h {
		header[name] = values
	}
	c.w.WriteHeader(status)
}

func (c *connection) Write(p []byte) (n int, err error) {
	for {
		c.extend()
		var m int
		m, err = c.w.Write(p[:min(len(p), writePiece)])
		n, p = n+m, p[m:]
		if err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (c *connection) Flush() error {
	err := c.control.Flush()
	if c.two {
		c.extended = time.Time{}
		_ = c.control.SetWriteDeadline(c.extended)
	}
	return err
}

// extend moves the deadline of writing, not at every write: it is a long one.
func (c *connection) extend() {
	now := time.Now()
	if now.Sub(c.extended) < c.patience/8 {
		return
	}
	c.extended = now
	_ = c.control.SetWriteDeadline(now.Add(c.patience)) // what has no deadline has none to move
}
