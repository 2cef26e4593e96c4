package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// play carries out one step towards one client.
type play struct {
	server *Server
	w      http.ResponseWriter
	ctrl   *http.ResponseController
	ctx    context.Context
	ask    *ask
	step   Step
	entry  *Entry
	id     string // of the request
	sent   int    // tokens
	gone   bool   // the exchange is over before its end
}

// errOver ends a play: the client has left, or the server closes.
var errOver = errors.New("the exchange is over")

func (p *play) run() {
	defer func() { p.server.note(p.entry, func(e *Entry) { e.Sent = p.sent }) }()
	p.act()
	if p.gone { // net/http would end the answer politely
		panic(http.ErrAbortHandler)
	}
}

func (p *play) act() {
	if p.step.Drop != "" {
		p.drop()
		return
	}
	if p.wait(p.step.Delay, "") != nil {
		return
	}
	ans := compose(p.step, p.ask, p.entry.Seq, time.Now())
	switch {
	case p.step.Body != nil:
		p.raw()
	case p.step.Error != "" && p.step.End != ErrorEvent:
		p.fail(p.step.Error)
	case p.step.Status >= 400:
		p.fail(kindOf(p.step.Status))
	case p.ask.stream:
		p.stream(ans)
	default:
		p.whole(ans)
	}
}

// kindOf gives a bare status the error that usually comes with it.
func kindOf(status int) ErrorKind {
	switch status {
	case 401, 403:
		return Auth
	case 402:
		return Billing
	case 404:
		return ModelNotFound
	case 408, 504:
		return Timeout
	case 413:
		return ContextLength
	case 429:
		return RateLimit
	case 502, 503, 529:
		return Overloaded
	}
	if status >= 500 {
		return ServerError
	}
	return BadRequest
}

func (p *play) did(status int, format string, args ...any) {
	p.server.note(p.entry, func(e *Entry) { e.Status, e.Did = status, fmt.Sprintf(format, args...) })
}

// wait waits, sending signs of life if the step wants them. A negative d waits
// until the client leaves.
func (p *play) wait(d time.Duration, alive string) error {
	if d == 0 {
		return p.over()
	}
	var end, beat <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		end = t.C
	}
	if p.step.KeepAlive > 0 && alive != "" {
		t := time.NewTicker(p.step.KeepAlive)
		defer t.Stop()
		beat = t.C
	}
	for {
		select {
		case <-end:
			return p.over()
		case <-beat:
			if err := p.write(alive); err != nil {
				return err
			}
		case <-p.ctx.Done():
			return p.over()
		case <-p.server.closing:
			p.gone = true
			return errOver
		}
	}
}

// over notes it when the client has left.
func (p *play) over() error {
	if p.ctx.Err() == nil {
		return nil
	}
	p.gone = true
	select {
	case <-p.server.closing:
	default:
		p.server.note(p.entry, func(e *Entry) {
			if !e.Left {
				e.Left, e.LeftAfter = true, time.Since(e.At)
			}
		})
	}
	return errOver
}

// write sends bytes at once, in pieces if the step wants them so.
func (p *play) write(s string) error {
	for s != "" {
		if err := p.over(); err != nil {
			return err
		}
		n := len(s)
		if p.step.Split > 0 && p.step.Split < n {
			n = p.step.Split
		}
		if _, err := p.w.Write([]byte(s[:n])); err != nil {
			return p.broken()
		}
		if err := p.ctrl.Flush(); err != nil {
			return p.broken()
		}
		s = s[n:]
	}
	return nil
}

// broken is a write that failed: nobody reads any more. The context says so
// a moment later.
func (p *play) broken() error {
	select {
	case <-p.ctx.Done():
	case <-p.server.closing:
	}
	p.over()
	p.gone = true
	return errOver
}

// cut closes the connection without ending the body.
func (p *play) cut() {
	p.ctrl.Flush()
	panic(http.ErrAbortHandler)
}

// reset drops the connection so that the client reads a reset.
func (p *play) reset() {
	conn, _, err := p.ctrl.Hijack()
	if err != nil { // HTTP/2: the abort becomes a reset of the stream
		panic(http.ErrAbortHandler)
	}
	if tls, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = tls.NetConn()
	}
	if l, ok := conn.(interface{ SetLinger(int) error }); ok {
		l.SetLinger(0)
	}
	conn.Close()
}

// drop answers nothing.
func (p *play) drop() {
	switch p.step.Drop {
	case Hang:
		p.did(0, "no answer")
		d := p.step.Pause
		if d == 0 {
			d = -1
		}
		if p.wait(d, "") != nil {
			return
		}
		panic(http.ErrAbortHandler)
	case Close:
		p.did(0, "connection closed before the headers")
		panic(http.ErrAbortHandler)
	case RST:
		p.did(0, "connection reset before the headers")
		p.reset()
	case Garbage:
		p.did(0, "bytes that are no HTTP")
		conn, buf, err := p.ctrl.Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		buf.WriteString("\x00\x01 this is not HTTP\r\n\r\n")
		buf.Flush()
		conn.Close()
	}
}

// head writes status and headers; what the step says goes last.
func (p *play) head(status int, contentType string, more map[string]string) {
	h := p.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Request-Id", p.id)
	if p.ask.protocol == messages {
		h.Set("Request-Id", p.id)
	}
	for k, v := range more {
		h.Set(k, v)
	}
	for k, v := range p.step.Headers {
		h.Set(k, v)
	}
	p.w.WriteHeader(status)
}

// raw sends the body of the script as it is.
func (p *play) raw() {
	status := p.step.Status
	if status == 0 {
		status = http.StatusOK
	}
	contentType := "application/json"
	if strings.HasPrefix(strings.TrimSpace(*p.step.Body), "<") {
		contentType = "text/html; charset=utf-8"
	}
	p.did(status, "%d with a scripted body", status)
	p.head(status, contentType, map[string]string{"Content-Length": strconv.Itoa(len(*p.step.Body))})
	p.write(*p.step.Body)
}

// fail reports an error in place of an answer.
func (p *play) fail(kind ErrorKind) {
	r := report(kind, p.step, p.ask, time.Now())
	body := r.body(p.ask.protocol, p.id)
	contentType := "application/json"
	if strings.HasPrefix(body, "<") {
		contentType = "text/html"
	}
	r.headers["Content-Length"] = strconv.Itoa(len(body))
	if r.wait > 0 {
		p.did(r.status, "%d %s, wait %s", r.status, kind, r.wait)
	} else {
		p.did(r.status, "%d %s", r.status, kind)
	}
	p.head(r.status, contentType, r.headers)
	p.write(body)
}

// whole sends an answer that is not streamed. Its headers come when it is
// done, as with real providers; damage strikes in its body.
func (p *play) whole(ans *answer) {
	d := dialects[p.ask.protocol]
	if p.wait(p.step.First+p.step.Interval*time.Duration(ans.output()), "") != nil {
		return
	}
	body := d.whole(ans)
	part := len(body) * 3 / 5
	length := len(body)
	did, end := "200", p.step.End
	switch {
	case end == ErrorEvent:
		body = report(p.step.Error, p.step, p.ask, time.Now()).body(p.ask.protocol, p.id)
		length, part, did = len(body), len(body), "200 with an error as its body"
	case p.step.Malformed:
		body, end = body[:len(body)/2]+`"oops`, ""
		length, part, did = len(body), len(body), "200 with a body that is no JSON"
	case end == CleanEnd:
		length, did = part, "200, ended cleanly in the middle"
	case end != "": // even of an empty body something has to be missing
		length, did = max(1, length), fmt.Sprintf("200, %s in the middle", end)
	default:
		part = len(body)
	}
	p.did(http.StatusOK, "%s", did)
	more := map[string]string{}
	if p.step.KeepAlive == 0 { // signs of life before the body make its length unknown
		more["Content-Length"] = strconv.Itoa(length)
	}
	p.head(http.StatusOK, "application/json", more)
	if p.step.Pause > 0 {
		p.ctrl.Flush()
		if p.wait(p.step.Pause, "\n") != nil {
			return
		}
	}
	if p.write(body[:part]) != nil {
		return
	}
	switch end {
	case Cut, CutInside:
		p.cut()
	case Reset:
		p.reset()
	case Stall:
		p.wait(-1, "\n")
	default:
		p.sent = ans.output()
	}
}

// stream sends the events of an answer, and strikes where the step says.
func (p *play) stream(ans *answer) {
	d := dialects[p.ask.protocol]
	contentType := "text/event-stream; charset=utf-8"
	out := func(f frame) string { return f.bytes(p.step) }
	if p.ask.array {
		contentType, d.alive, out = "application/json", "\n", arrayWriter()
	}
	p.did(http.StatusOK, "200 stream")
	p.head(http.StatusOK, contentType, map[string]string{"Cache-Control": "no-cache"})
	p.ctrl.Flush()
	if p.wait(p.step.First, d.alive) != nil {
		return
	}

	damage := p.step.Pause > 0 || p.step.Malformed || p.step.Inject != "" || p.step.End != ""
	for _, f := range d.stream(ans) {
		if damage && f.kind != frameStart && (p.sent >= p.step.After || f.kind >= frameFinish) {
			damage = false
			if p.strike(d, out, f, ans) {
				return
			}
		}
		if p.omitted(f) {
			continue
		}
		if f.kind == frameToken && p.sent > 0 {
			if p.wait(p.step.Interval, d.alive) != nil {
				return
			}
		}
		if p.write(out(f)) != nil {
			return
		}
		if f.kind == frameToken {
			p.sent++
		}
	}
	if damage && p.strike(d, out, frame{}, ans) {
		return
	}
	if p.ask.array {
		p.write("]")
	}
}

func (p *play) omitted(f frame) bool {
	switch f.kind {
	case frameStart:
		return p.step.omits(omitStart)
	case frameFinish:
		return p.step.omits(omitFinish)
	case frameUsage:
		return p.step.omits(omitUsage)
	case frameDone:
		return p.step.omits(omitDone)
	}
	return false
}

// strike does the damage of the step before the frame next. It reports whether
// the stream is over.
func (p *play) strike(d dialect, out func(frame) string, next frame, ans *answer) bool {
	if p.wait(p.step.Pause, d.alive) != nil {
		return true
	}
	if p.step.Malformed {
		p.did(http.StatusOK, "200 stream, malformed event after %d tokens", p.sent)
		if p.write(out(d.malformed)) != nil {
			return true
		}
	}
	if p.step.Inject != "" {
		p.did(http.StatusOK, "200 stream, bytes injected after %d tokens", p.sent)
		if p.write(p.step.Inject) != nil {
			return true
		}
	}
	if p.step.End == "" {
		return false
	}
	p.did(http.StatusOK, "200 stream, %s after %d tokens", p.step.End, p.sent)
	switch p.step.End {
	case CutInside:
		s := out(next)
		if p.write(s[:len(s)/2]) == nil {
			p.cut()
		}
	case Cut:
		p.cut()
	case Reset:
		p.reset()
	case Stall:
		p.wait(-1, d.alive)
	case ErrorEvent:
		p.write(out(d.fail(report(p.step.Error, p.step, p.ask, time.Now()), ans)))
	}
	return true
}

// arrayWriter writes the frames of Gemini's stream as one JSON array.
func arrayWriter() func(frame) string {
	before := "["
	return func(f frame) string {
		s := before + f.data
		before = ",\r\n"
		return s
	}
}
