package gateway

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/provider"
)

// secured is a gateway that speaks TLS, before an upstream that never answers
// while its client is there.
func secured(t *testing.T) (g *Server, address string, client *http.Client, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Add(1)
		<-r.Context().Done()
	}))
	t.Cleanup(up.Close)
	m, err := provider.Open("m", provider.Provider("up"), provider.BaseURL(up.URL+"/v1"), provider.Protocol(ninelives.OpenAIChat), provider.Key(provider.NewSecret("k")))
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewUnstartedServer(nil)
	model.StartTLS()
	t.Cleanup(model.Close)
	l, err := Listen(t.Context(), "127.0.0.1:0", &tls.Config{Certificates: model.TLS.Certificates}, 0)
	if err != nil {
		t.Fatal(err)
	}
	g = New(Settings{Routes: []Route{{Name: "default", Targets: []Target{{Model: m}}}}}, Options{})
	serving(t, g, l)
	client = model.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	t.Cleanup(client.CloseIdleConnections)
	return g, l.Addr().String(), client, asked
}

// A client that opens requests and resets them at once (CVE-2023-44487) makes
// no more of them run than may be open, and leaves nothing behind; others are
// answered meanwhile.
func TestRequestsThatAreResetAtOnceAreBounded(t *testing.T) {
	g, address, client, asked := secured(t)
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", "/v1/chat/completions"}, {"content-length", fmt.Sprint(len(hi))}} {
		if err := enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for {
			if _, err := framer.ReadFrame(); err != nil {
				return
			}
		}
	}()
	open := func(id uint32) {
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head.Bytes(), EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
		if err := framer.WriteData(id, true, []byte(hi)); err != nil {
			t.Fatal(err)
		}
	}
	id := uint32(1)
	for range h2Streams + 50 { // the last of them are refused
		open(id)
		id += 2
	}
	waitFor(t, "as many as may be open are", func() bool { return asked.Load() == h2Streams })
	for reset := uint32(1); reset < 4_000; reset += 2 {
		if n := g.drain.inFlight(); n > h2Streams {
			t.Fatalf("%d requests are carried out at a time", n)
		}
		if err := framer.WriteRSTStream(reset, http2.ErrCodeCancel); err != nil {
			t.Fatal(err)
		}
		open(id)
		id += 2
	}
	resp, err := client.Get("https://" + address + "/healthz")
	if err != nil || resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Errorf("another client: %v %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	_ = conn.Close()
	<-closed
	waitFor(t, "nothing is under way", func() bool { return g.drain.inFlight() == 0 && g.memory.Load() == 0 })
}

// Headers are bounded on HTTP/2 as they are before it.
func TestHeadersAreBoundedOnHTTP2(t *testing.T) {
	_, address, client, _ := secured(t)
	for name, change := range map[string]func(http.Header){
		"a large one": func(h http.Header) { h.Set("X-A", strings.Repeat("a", 1<<20)) },
		"many": func(h http.Header) {
			for i := range 10_000 {
				h.Set(fmt.Sprint("X-", i), "b")
			}
		},
	} {
		r, err := http.NewRequest("GET", "https://"+address+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		change(r.Header)
		resp, err := client.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		if err == nil && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
}
