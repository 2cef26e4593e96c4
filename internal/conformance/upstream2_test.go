package conformance

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// serve2 speaks HTTP/2 on one connection, frame by frame, so that it can break
// off as no server library would.
func (u *upstream) serve2(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok && t.Handshake() != nil {
		return
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	fr := http2.NewFramer(conn, conn)
	if fr.WriteSettings() != nil {
		return
	}
	bodies := map[uint32]*bytes.Buffer{}
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = fr.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = fr.WritePing(true, f.Data)
			}
		case *http2.HeadersFrame:
			bodies[f.StreamID] = &bytes.Buffer{}
			if f.StreamEnded() && !u.answer2(conn, fr, f.StreamID, nil) {
				return
			}
		case *http2.DataFrame:
			b := bodies[f.StreamID]
			if b == nil {
				continue
			}
			b.Write(f.Data())
			if f.StreamEnded() && !u.answer2(conn, fr, f.StreamID, b.Bytes()) {
				return
			}
		}
	}
}

// answer2 sends a reply on a stream and reports whether the connection lives on.
func (u *upstream) answer2(conn net.Conn, fr *http2.Framer, stream uint32, body []byte) bool {
	r := u.answer(u.record(body), body)
	time.Sleep(time.Duration(r.transport.DelayBefore) * time.Millisecond)
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	_ = enc.WriteField(hpack.HeaderField{Name: ":status", Value: fmt.Sprint(r.status)})
	for k, v := range r.header {
		_ = enc.WriteField(hpack.HeaderField{Name: strings.ToLower(k), Value: v})
	}
	if fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true}) != nil {
		return false
	}
	for _, p := range r.transport.pieces(r.body, r.mode) {
		for len(p) > 0 { // frames of at most 16 KiB
			n := min(len(p), 16<<10)
			if fr.WriteData(stream, false, p[:n]) != nil {
				return false
			}
			p = p[n:]
		}
	}
	kind, code, _ := strings.Cut(r.transport.End, ":")
	switch kind {
	case "", "clean":
		return fr.WriteData(stream, true, nil) == nil
	case "h2_rst":
		return fr.WriteRSTStream(stream, codeOf(code)) == nil
	case "h2_goaway":
		// A drain finishes this stream; a refusal disowns it. Both are seen
		// with any code, so the modes take turns.
		last := stream
		if codeOf(code) != http2.ErrCodeNo && r.mode != oneWrite {
			last = 0
		}
		_ = fr.WriteGoAway(last, codeOf(code), nil)
		// The client reads it before it hears that the connection is closed.
		if t, ok := conn.(*tls.Conn); ok {
			_ = t.CloseWrite()
		}
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
		_, _ = io.Copy(io.Discard, conn)
		return false
	case "stall", "hold_open":
		if r.transport.Hold > 0 {
			_ = conn.SetReadDeadline(time.Now().Add(time.Duration(r.transport.Hold) * time.Millisecond))
		}
		_, _ = io.Copy(io.Discard, conn)
		return false
	case "rst":
		time.Sleep(100 * time.Millisecond)
		if t, ok := conn.(*tls.Conn); ok {
			if tcp, ok := t.NetConn().(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
				_ = tcp.Close()
			}
		}
		return false
	}
	panic("the corpus has an end of HTTP/2 that is not known here: " + r.transport.End)
}

func codeOf(name string) http2.ErrCode {
	for code := http2.ErrCodeNo; code <= http2.ErrCodeHTTP11Required; code++ {
		if code.String() == name {
			return code
		}
	}
	panic("no such HTTP/2 code: " + name)
}
