package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Transport heals the calls of a client library in this process: give it to
// the library's HTTP client, and every call goes to the models, in this order,
// with the default policy. Nothing listens, and nothing is kept.
//
//	claude, err := provider.Open("anthropic/claude-sonnet-4-6")
//	gpt, err := provider.Open("openai/gpt-5.4")
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: gateway.Transport(claude, gpt)}))
//
// For routes, limits and a journal make a Server and take its Transport.
func Transport(first ninelives.Model, fallbacks ...ninelives.Model) http.RoundTripper {
	targets := []Target{{Model: first}}
	for _, m := range fallbacks {
		targets = append(targets, Target{Model: m})
	}
	return New(Settings{Routes: []Route{{Name: "default", Targets: targets}}}, Options{}).Transport()
}

// Transport is the gateway as the transport of an HTTP client in the same
// process. It looks at the path alone: whatever host the client means to ask,
// the gateway's routes answer.
func (s *Server) Transport() http.RoundTripper { return transport{s} }

type transport struct{ server *Server }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "in process"
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.Header.Del("Authorization") // the library's key is for the provider that it meant to ask
	in.Header.Del("X-Api-Key")
	in.Header.Del("X-Goog-Api-Key")
	body, out := io.Pipe()
	w := &pipeWriter{header: http.Header{}, out: out, begun: make(chan struct{})}
	go func() {
		defer func() {
			_ = in.Body.Close()
			if p := recover(); p != nil && !w.aborted(p) {
				panic(p)
			}
		}()
		t.server.inProcess(w, in)
		w.WriteHeader(http.StatusOK)
		w.trail()
		_ = out.Close()
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
		cancel()
		_ = body.CloseWithError(ctx.Err())
		return nil, context.Cause(ctx)
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Trailer: w.trailer, ContentLength: -1,
		Body: &pipeBody{PipeReader: body, cancel: cancel}, Request: r,
	}, nil
}

// pipeWriter is the server's side of a call in process.
type pipeWriter struct {
	header  http.Header
	sent    http.Header
	trailer http.Header
	status  int
	out     *io.PipeWriter
	once    sync.Once
	begun   chan struct{}
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent, w.trailer = status, w.header.Clone(), http.Header{}
		close(w.begun)
	})
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(p)
}

// Flush and the deadlines serve http.ResponseController: a pipe keeps nothing
// back, and its reader is this process.
func (w *pipeWriter) Flush()                           {}
func (w *pipeWriter) SetReadDeadline(time.Time) error  { return nil }
func (w *pipeWriter) SetWriteDeadline(time.Time) error { return nil }

// trail moves the trailers to where a client finds them.
func (w *pipeWriter) trail() {
	for name, values := range w.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			w.trailer[http.CanonicalHeaderKey(name)] = values
		}
	}
}

// aborted ends the answer as a cut connection would; false for any other panic.
func (w *pipeWriter) aborted(p any) bool {
	err, ok := p.(error)
	if !ok || !errors.Is(err, http.ErrAbortHandler) {
		return false
	}
	w.WriteHeader(http.StatusBadGateway)
	_ = w.out.CloseWithError(io.ErrUnexpectedEOF)
	return true
}

// pipeBody is the answer; closing it is leaving.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *pipeBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
