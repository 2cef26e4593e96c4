package conformance

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// reply is what the fake upstream sends. It is written by hand, byte for byte,
// so that it cannot share a mistake with what reads it.
type reply struct {
	status    int
	header    map[string]string
	body      []byte
	stream    bool
	transport transport
	mode      string
}

// upstream is a provider that misbehaves as a case says.
type upstream struct {
	t        *testing.T
	url      string
	caFile   string // the certificate to trust, if it speaks TLS
	listener net.Listener
	answer   func(n int, body []byte) reply
	// dropReused closes a connection on its second request, unanswered.
	dropReused bool
	http2      bool

	mu       sync.Mutex
	requests [][]byte
	conns    map[net.Conn]bool
	done     sync.WaitGroup
}

// newUpstream starts an upstream that answers; it ends with the test.
func newUpstream(t *testing.T, c fault, answer func(n int, body []byte) reply) *upstream {
	u := &upstream{t: t, answer: answer, conns: map[net.Conn]bool{}, http2: c.Transport.HTTP2,
		dropReused: c.Transport.Pre == "close_reused_connection_after_request"}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.listener = ln
	scheme := "http"
	switch {
	case c.Transport.Pre == "tls_handshake_stall":
		scheme = "https" // nobody will shake hands
	case c.Transport.Pre == "tls_bad_cert":
		scheme = "https"
		u.listener = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{theCertificate().pair}})
	case u.http2:
		scheme = "https"
		u.caFile = theCertificate().file(t)
		u.listener = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{theCertificate().pair}, NextProtos: []string{"h2"}})
	}
	u.url = scheme + "://" + ln.Addr().String()
	if c.Transport.Pre == "refuse" {
		ln.Close()
		return u
	}
	u.done.Go(func() { u.accept(c.Transport.Pre == "tls_handshake_stall") })
	t.Cleanup(u.close)
	return u
}

func (u *upstream) accept(mute bool) {
	for {
		conn, err := u.listener.Accept()
		if err != nil {
			return
		}
		u.mu.Lock()
		u.conns[conn] = true
		u.mu.Unlock()
		u.done.Go(func() {
			defer conn.Close()
			switch {
			case mute:
				_, _ = io.Copy(io.Discard, conn)
			case u.http2:
				u.serve2(conn)
			default:
				u.serve(conn)
			}
		})
	}
}

func (u *upstream) close() {
	u.listener.Close()
	u.mu.Lock()
	for c := range u.conns {
		c.Close()
	}
	u.mu.Unlock()
	u.done.Wait()
}

// seen gives the bodies of the requests so far.
func (u *upstream) seen() [][]byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([][]byte(nil), u.requests...)
}

func (u *upstream) record(body []byte) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = append(u.requests, body)
	return len(u.requests)
}

// serve speaks HTTP/1.1 on one connection.
func (u *upstream) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	for onConn := 1; ; onConn++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		n := u.record(body)
		if u.dropReused && onConn > 1 {
			return
		}
		if !u.write(conn, in, u.answer(n, body)) {
			return
		}
	}
}

// write sends a reply and reports whether the connection can be used again.
func (u *upstream) write(conn net.Conn, in io.Reader, r reply) bool {
	time.Sleep(time.Duration(r.transport.DelayBefore) * time.Millisecond)
	body := r.body
	header := map[string]string{"Date": time.Now().UTC().Format(http.TimeFormat)}
	for k, v := range r.header {
		header[k] = v
	}
	if r.transport.ContentEncoding == "gzip" {
		header["Content-Encoding"] = "gzip"
		body = zipped(body)
	}
	// A stream is chunked, or ends with its connection: for a reader these are
	// two kinds of end.
	chunked := r.stream && !(r.mode == eachByte && (r.transport.End == "" || r.transport.End == "clean"))
	switch {
	case chunked:
		header["Transfer-Encoding"] = "chunked"
	case r.stream:
		header["Connection"] = "close"
	default:
		header["Content-Length"] = fmt.Sprint(len(body))
	}
	var head bytes.Buffer
	text := http.StatusText(r.status)
	if text == "" {
		text = "Odd"
	}
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", r.status, text)
	for k, v := range header {
		fmt.Fprintf(&head, "%s: %s\r\n", k, v)
	}
	head.WriteString("\r\n")
	writes := [][]byte{head.Bytes()}
	for _, p := range r.transport.pieces(body, r.mode) {
		if chunked {
			p = chunk(p)
		}
		writes = append(writes, p)
	}
	if r.mode == oneWrite {
		writes = [][]byte{bytes.Join(writes, nil)}
	}
	for _, w := range writes {
		if _, err := conn.Write(w); err != nil {
			return false
		}
	}
	if rep := r.transport.Repeat; rep != nil {
		for range rep.Times {
			time.Sleep(time.Duration(rep.Every) * time.Millisecond)
			b := []byte(rep.Bytes)
			if chunked {
				b = chunk(b)
			}
			if _, err := conn.Write(b); err != nil {
				return false
			}
		}
	}
	switch end := r.transport.End; end {
	case "", "clean":
		if chunked {
			_, err := io.WriteString(conn, "0\r\n\r\n")
			return err == nil
		}
		return !r.stream
	case "truncate_chunked":
		return false
	case "rst":
		time.Sleep(100 * time.Millisecond) // what was sent is to arrive first
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return false
	case "hold_open", "stall":
		if r.transport.Hold > 0 {
			_ = conn.SetReadDeadline(time.Now().Add(time.Duration(r.transport.Hold) * time.Millisecond))
		}
		_, _ = io.Copy(io.Discard, in)
		return false
	default:
		panic("the corpus has an end that is not known here: " + end)
	}
}

func chunk(p []byte) []byte {
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(p), p)
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// normal is a one-sentence answer in the dialect, or the smallest JSON of the
// form that the case asks for.
func normal(c fault, body []byte, mode string) reply {
	var req struct{ Stream bool }
	_ = json.Unmarshal(body, &req)
	said, _ := json.Marshal(normalText(c))
	text := `{"id":"ok","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}}`
	events := `data: {"id":"ok","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":%s},"finish_reason":null}]}

data: {"id":"ok","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`
	if c.Dialect == "anthropic" {
		text = `{"id":"ok","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%s}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":4}}`
		events = `event: message_start
data: {"type":"message_start","message":{"id":"ok","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":4}}

event: message_stop
data: {"type":"message_stop"}

`
	}
	if req.Stream {
		return reply{status: 200, header: map[string]string{"content-type": "text/event-stream"}, body: fmt.Appendf(nil, events, said), stream: true, mode: mode}
	}
	return reply{status: 200, header: map[string]string{"content-type": "application/json"}, body: fmt.Appendf(nil, text, said), mode: mode}
}

// normalText is the text of a normal answer.
func normalText(c fault) string {
	var req struct {
		Format struct {
			Type   string `json:"type"`
			Schema struct {
				Schema object `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	_ = json.Unmarshal(c.Request, &req)
	if req.Format.Type == "" || req.Format.Type == "text" {
		return "All is well."
	}
	text, _ := json.Marshal(instance(req.Format.Schema.Schema))
	return string(text)
}

// instance is a small value that meets a simple schema.
func instance(schema object) any {
	if enum, ok := schema["enum"].([]any); ok && len(enum) > 0 {
		return enum[0]
	}
	switch schema["type"] {
	case "string":
		return "x"
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "array":
		return []any{}
	}
	out := object{}
	properties, _ := schema["properties"].(object)
	for name, p := range properties {
		if p, ok := p.(object); ok {
			out[name] = instance(p)
		}
	}
	return out
}

// served is the reply of a case itself, its dates filled in.
func served(c fault, mode string) reply {
	now := time.Now()
	header := map[string]string{}
	for k, v := range c.Headers {
		header[k] = fill(v, now)
	}
	status := c.Status
	if status == 0 {
		return normal(c, nil, mode) // the fault comes before any answer
	}
	return reply{status: status, header: header, body: []byte(fill(c.payload(), now)), stream: c.SSE != nil, transport: c.Transport, mode: mode}
}

// certificate is one that nobody trusts unless told to.
type certificate struct {
	pair tls.Certificate
	pem  []byte
}

var theCertificate = sync.OnceValue(func() certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "nine lives test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return certificate{
		pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}
})

func (c certificate) file(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, c.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// nowhere is a name server that knows no name, for a resolver to ask.
func nowhere(t *testing.T) string {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if n < 12 {
				continue
			}
			// The question goes back as an answer that says NXDOMAIN. What
			// follows the question (an OPT record) is left out.
			end := 12
			for end < n && buf[end] != 0 {
				end += int(buf[end]) + 1
			}
			out := append([]byte(nil), buf[:min(n, end+5)]...)
			out[2], out[3] = 0x81, 0x83
			copy(out[4:12], []byte{0, 1, 0, 0, 0, 0, 0, 0})
			_, _ = conn.WriteTo(out, from)
		}
	}()
	return conn.LocalAddr().String()
}

func TestPiecesAreTheWholePayload(t *testing.T) {
	for _, cuts := range []string{``, `[1,3,99]`, `"every byte"`, `"every 7 bytes"`, `"after every CR"`} {
		for _, mode := range []string{oneWrite, ownPieces, eachByte} {
			payload := "data: a\r\n\r\ndata: ä\n\nx"
			var b strings.Builder
			for _, p := range (transport{Cuts: json.RawMessage(cuts)}).pieces([]byte(payload), mode) {
				b.Write(p)
			}
			if b.String() != payload {
				t.Errorf("%s, %s: %q", cuts, mode, b.String())
			}
		}
	}
}
