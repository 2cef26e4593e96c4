package chaos

import (
	"context"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// memory is a listener whose connections are pipes.
type memory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newMemory() *memory {
	return &memory{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (m *memory) dial(ctx context.Context) (net.Conn, error) {
	client, server := newPipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.done:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

func (m *memory) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "pipe" }
func (memoryAddr) String() string  { return "memory" }

// pipeConn is one end of a net.Pipe that can be reset like a TCP connection:
// after SetLinger(0) and Close the other end reads ECONNRESET.
type pipeConn struct {
	net.Conn
	reset    *atomic.Bool // shared by both ends
	abortive atomic.Bool
}

func newPipe() (client, server *pipeConn) {
	a, b := net.Pipe()
	reset := new(atomic.Bool)
	return &pipeConn{Conn: a, reset: reset}, &pipeConn{Conn: b, reset: reset}
}

// SetLinger has the name that *net.TCPConn gives it; only zero means anything here.
func (c *pipeConn) SetLinger(sec int) error {
	c.abortive.Store(sec == 0)
	return nil
}

func (c *pipeConn) Close() error {
	if c.abortive.Load() {
		c.reset.Store(true)
	}
	return c.Conn.Close()
}

func (c *pipeConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && c.reset.Load() {
		err = &net.OpError{Op: "read", Net: "pipe", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}
	return n, err
}
