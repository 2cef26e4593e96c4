package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// overHTTP prepares a connection to the server's address. release ends what
// waits for notifications, after closes what the goodbye went over.
func (s *server) overHTTP(l *link) (transport sdk.Transport, release, after func()) {
	base := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 4,
	}
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{
		Transport: &carrier{server: s, link: l, base: base, ended: ctx},
		// A redirect would carry the headers to somewhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	// Retries are the owner's: see carrier.listen for the one stream that the
	// SDK would connect again.
	return &sdk.StreamableClientTransport{Endpoint: s.cfg.URL, HTTPClient: client, MaxRetries: -1, MaxEventSize: maxFrame}, cancel, base.CloseIdleConnections
}

// carrier sends the requests of one connection, with the configured headers,
// and bounds what comes back.
type carrier struct {
	server *server
	link   *link
	base   *http.Transport
	ended  context.Context // the connection is over
}

func (c *carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, value := range c.server.cfg.Headers {
		req.Header.Set(name, value)
	}
	if req.Method == http.MethodGet {
		return c.listen(req)
	}
	resp, err := c.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		resp.Body.Close()
		return nil, permanent{fmt.Errorf("it refuses the credentials (HTTP %d): check the headers of server %s", resp.StatusCode, c.server.cfg.Name)}
	}
	if 300 <= resp.StatusCode && resp.StatusCode < 400 {
		resp.Body.Close()
		return nil, permanent{fmt.Errorf("it redirects to another address (HTTP %d): put that into the url of server %s", resp.StatusCode, c.server.cfg.Name)}
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" { // whose events are bounded one by one
		resp.Body = &bounded{ReadCloser: resp.Body, left: maxFrame}
	}
	return resp, nil
}

// bounded fails when more comes than is taken.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooMuch
	}
	return n, err
}

// listen opens the stream of notifications. A server need not have one, and
// may never answer the question for it: then it counts as having none. When
// the stream ends, its reader is left waiting and the owner is told: the calls
// of the connection may go on.
func (c *carrier) listen(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	type answer struct {
		resp *http.Response
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		resp, err := c.base.RoundTrip(req.WithContext(ctx))
		got <- answer{resp, err}
	}()
	late := time.NewTimer(c.server.timing.listen)
	defer late.Stop()
	select {
	case a := <-got:
		if a.err != nil || a.resp.StatusCode != http.StatusOK {
			if a.err == nil {
				a.resp.Body.Close()
			}
			cancel()
			return noStream(req), nil
		}
		a.resp.Body = &stream{ReadCloser: a.resp.Body, ctx: ctx, cancel: cancel, carrier: c}
		return a.resp, nil
	case <-late.C:
	case <-req.Context().Done():
	case <-c.ended.Done():
	}
	cancel()
	if a := <-got; a.err == nil {
		a.resp.Body.Close()
	}
	return noStream(req), nil
}

// noStream is the answer of a server without notifications.
func noStream(req *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req,
	}
}

// stream is the body of the notifications.
type stream struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelFunc
	carrier *carrier
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && n == 0 {
		s.carrier.server.outdate(s.carrier.link)
		select {
		case <-s.ctx.Done():
		case <-s.carrier.ended.Done():
		}
		return 0, context.Canceled
	}
	return n, nil
}

func (s *stream) Close() error {
	s.cancel()
	return s.ReadCloser.Close()
}

// neverSent reports whether a request cannot have reached the server, or was
// turned away unread: then it may be made again.
func neverSent(err error) bool {
	var op *net.OpError
	var refused permanent
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &refused) || errors.Is(err, sdk.ErrSessionMissing)
}
