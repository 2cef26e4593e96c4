package provider

import (
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// The largest answers that are read, in bytes. They bound memory, not use: the
// longest answers of today's models are a few MiB.
const (
	maxWhole  = 64 << 20
	maxStream = 256 << 20
	maxError  = 1 << 20
)

var errTooLarge = errors.New("the answer is larger than is read")

// body reads a response's body under the attempt's clocks.
type body struct {
	io.ReadCloser
	watch *watch
	room  int64
	ended bool // the end has been read, or an error
	// pause, if set, is told of every wait.
	pause func(waiting bool)
}

func (b *body) Read(p []byte) (int, error) {
	if b.room <= 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.room {
		p = p[:b.room]
	}
	if b.pause != nil {
		b.pause(true)
	}
	b.watch.enter()
	n, err := b.ReadCloser.Read(p)
	b.watch.leave(n > 0)
	if b.pause != nil {
		b.pause(false)
	}
	b.room -= int64(n)
	if err != nil {
		b.ended = true
	}
	return n, err
}

// settle reads what a whole answer has left of its body, if it is there
// already, so that the connection can be used again. A server that holds the
// connection open is not waited for. It gives what it read, for those who relay
// it.
func (b *body) settle(cancel func()) (rest []byte) {
	if b.ended {
		return nil
	}
	var late atomic.Bool
	timer := time.AfterFunc(afterglow, func() { late.Store(true); cancel() })
	defer timer.Stop()
	var buf [512]byte
	for range 8 {
		n, err := b.ReadCloser.Read(buf[:])
		rest = append(rest, buf[:n]...)
		if err != nil || late.Load() {
			b.ended = true
			break
		}
	}
	return rest
}
