package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/provider"
)

// A call has left the gateway before its connection has carried the end of its
// body: a client that is slow by that moment gets it all the same.
func TestAStoppedGatewayWritesTheLastByteOfItsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		m, err := provider.Open("m", provider.Provider("up"), provider.BaseURL("http://up/v1"), provider.Protocol(ninelives.OpenAIChat),
			provider.Key(provider.NewSecret("k")), provider.Transport(streams("data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\","+
				"\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")))
		if err != nil {
			t.Fatal(err)
		}
		g := New(Settings{Routes: []Route{{Name: "default", Targets: []Target{{Model: m}}}}}, Options{})
		defer g.Close()
		p := newPipe()
		served := make(chan error, 1)
		go func() { served <- g.Serve(ctx, time.Minute, p) }()

		conn := p.dial()
		defer conn.Close()
		const ask = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
		go io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:9009\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(ask))+"\r\n\r\n"+ask)
		resp, err := http.ReadResponse(bufio.NewReader(iotest.OneByteReader(conn)), nil) // reads no further than it must
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		for one := make([]byte, 1); !strings.HasSuffix(body.String(), "data: [DONE]\n\n"); {
			n, err := resp.Body.Read(one)
			if body.Write(one[:n]); err != nil {
				t.Fatalf("%v after %q", err, body.String())
			}
		}
		stop()
		synctest.Wait() // the handler is done; the last chunk waits for us
		if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
			t.Errorf("%v, %q", err, rest)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// streams is a provider that answers every request with the same stream.
type streams string

func (s streams) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(s))), ContentLength: -1}, nil
}

// serving serves a gateway until the test has ended.
func serving(t *testing.T, g *Server, l net.Listener) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- g.Serve(ctx, time.Second, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		g.Close()
	})
}
