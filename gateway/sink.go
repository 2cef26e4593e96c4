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
}

func newConnection(w http.ResponseWriter, patience time.Duration) *connection {
	return &connection{w: w, control: http.NewResponseController(w), patience: patience}
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

func (c *connection) Write(p []byte) (int, error) {
	c.extend()
	return c.w.Write(p)
}

func (c *connection) Flush() error { return c.control.Flush() }

// extend moves the deadline of writing, not at every write: it is a long one.
func (c *connection) extend() {
	now := time.Now()
	if now.Sub(c.extended) < c.patience/8 {
		return
	}
	c.extended = now
	_ = c.control.SetWriteDeadline(now.Add(c.patience)) // what has no deadline has none to move
}
