package tool

import (
	"sync"
	"sync/atomic"
	"time"
)

// child is a command that was started. What it writes is handed to output as
// it comes, from one goroutine.
type child struct {
	// done is closed when the command, all that it started and all that reads
	// its output have ended; end is how.
	done chan struct{}
	end  ending

	pid atomic.Int64 // the command's; 0 as long as it is not known

	once  sync.Once
	ask   func() // asks for its end: SIGTERM, and SIGKILL after the grace
	force func() // for when that has not helped
}

// stop ends the command and waits until it has ended. It may be called at any time and more than once.
func (c *child) stop() {
	c.once.Do(func() { c.ask() })
	select {
	case <-c.done:
	case <-time.After(3 * grace):
		c.force()
		<-c.done
	}
}
