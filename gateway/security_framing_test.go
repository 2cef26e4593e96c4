package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// answers are those that come on one connection for bytes that were sent on it,
// as a client reads them: what is left over at the end is an error.
func (f *fortress) answers(request string) (statuses []int, bodies []string) {
	f.t.Helper()
	said := f.raw(request)
	in := bufio.NewReader(strings.NewReader(said))
	for {
		if _, err := in.Peek(1); err != nil {
			return statuses, bodies
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			f.t.Fatalf("no answer: %v: %.300q", err, said)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			f.t.Fatalf("half of an answer: %v: %.300q", err, said)
		}
		statuses, bodies = append(statuses, resp.StatusCode), append(bodies, string(body))
	}
}

// echoing is an upstream that answers with what it was asked, and remembers it.
type echoing struct {
	mu  sync.Mutex
	got []string
}

func (e *echoing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.got = append(e.got, string(body))
	e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, word, _ := strings.Cut(string(body), `"content":"`)
	if word, _, _ = strings.Cut(word, `"`); !json.Valid([]byte(`"`+word+`"`)) || !utf8.ValidString(word) {
		word = "Hello"
	}
	_, _ = io.WriteString(w, strings.Replace(chatAnswer, "Hello", word, 1))
}

// asked gives what has come since the last time.
func (e *echoing) asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.got
	e.got = nil
	return got
}

// Whatever the framing, a request is read as RFC 9112 says or refused; where two
// could read it differently, nothing that follows on its connection is read.
func TestFramingIsReadAsOneWayOrRefused(t *testing.T) {
	up := &echoing{}
	f := newFortress(t, up.ServeHTTP, nil)
	const (
		start = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
		alive = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" // says whether the connection went on
		last  = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(hi))
	one := func(size, ext, end string) string { // the body in one chunk
		return start + "Transfer-Encoding: chunked\r\n\r\n" + size + ext + end + hi + "\r\n0\r\n\r\n"
	}
	size := fmt.Sprintf("%x", len(hi))
	var bytewise strings.Builder
	for _, c := range []byte(hi) {
		fmt.Fprintf(&bytewise, "1\r\n%c\r\n", c)
	}
	for _, c := range []struct {
		name, request string
		statuses      []int // of it and of what follows
		asked         bool
	}{
		{"as usual", start + length + "\r\n" + hi, []int{200, 200}, true},
		{"lines that end with a line feed alone", strings.ReplaceAll(start+length+"\r\n", "\r\n", "\n") + hi, []int{200, 200}, true},
		{"a carriage return in a header", start + "X-A: a\rb\r\n" + length + "\r\n" + hi, []int{400}, false},
		{"a folded header", start + "X-A: a\r\n b\r\n" + length + "\r\n" + hi, []int{200, 200}, true},
		{"a folded length", start + "Content-Length:\r\n " + fmt.Sprint(len(hi)) + "\r\n\r\n" + hi, []int{200, 200}, true},
		{"a length folded in two", start + "Content-Length: 1\r\n 0\r\n\r\n" + hi, []int{400}, false},
		{"a folded encoding", strings.Replace(one(size, "", "\r\n"), ": chunked", ":\r\n\tchunked", 1), []int{200}, true},
		{"a fold in front", "POST /v1/chat/completions HTTP/1.1\r\n X: y\r\nHost: localhost\r\n" + length + "\r\n" + hi, []int{400}, false},
		{"the same length twice", start + length + length + "\r\n" + hi, []int{200, 200}, true},
		{"lengths with a comma", start + fmt.Sprintf("Content-Length: %d, %[1]d\r\n\r\n", len(hi)) + hi, []int{400}, false},
		{"a length in hexadecimal", start + "Content-Length: 0x3\r\n\r\nabc", []int{400}, false},
		{"an empty length", start + "Content-Length: \r\n\r\n", []int{400}, false},
		{"a huge length", start + "Content-Length: 99999999999999999999\r\n\r\n", []int{400}, false},
		{"an encoding after another", start + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", []int{501}, false},
		{"an encoding that is quoted", start + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", []int{501}, false},
		{"an encoding behind a tab", strings.Replace(one(size, "", "\r\n"), ": chunked", ":\tchunked", 1), []int{200}, true},
		{"an encoding behind a vertical tab", strings.Replace(one(size, "", "\r\n"), ": chunked", ": \vchunked", 1), []int{400}, false},
		{"an encoding with a space before the colon", strings.Replace(one(size, "", "\r\n"), ": chunked", " : chunked", 1), []int{400}, false},
		{"chunks", one(size, "", "\r\n"), []int{200}, true},
		{"chunks of a byte", start + "Transfer-Encoding: chunked\r\n\r\n" + bytewise.String() + "0\r\n\r\n", []int{200}, true},
		{"a size with zeros", one("000"+strings.ToUpper(size), "", "\r\n"), []int{200}, true},
		{"an extension", one(size, `;a=b;c="d"`, "\r\n"), []int{200}, true},
		{"an extension without end", one(size, ";"+strings.Repeat("a", 5000), "\r\n"), []int{400}, false},
		{"extensions without end", start + "Transfer-Encoding: chunked\r\n\r\n" + strings.ReplaceAll(bytewise.String(), "1\r\n", "1;"+strings.Repeat("a", 4000)+"\r\n") + "0\r\n\r\n", []int{400}, false},
		{"a chunk's size with a line feed alone", one(size, "", "\n"), []int{400}, false},
		{"an extension that hides a line feed", one(size, ";\n", "\r\n"), []int{400}, false},
		{"a size with a sign", one("+"+size, "", "\r\n"), []int{400}, false},
		{"a size in C", one("0x"+size, "", "\r\n"), []int{400}, false},
		{"a size that runs over", one("10000000000000000", "", "\r\n"), []int{400}, false},
		{"a chunk longer than its size", one("2", "", "\r\n"), []int{400}, false},
		{"trailers that ask for something", strings.TrimSuffix(one(size, "", "\r\n"), "\r\n") + "X-Ninelives-Route: none\r\nAuthorization: Bearer x\r\n\r\n", []int{200}, true},
		{"chunks in HTTP/1.0", strings.Replace(start, "1.1", "1.0", 1) + "Connection: keep-alive\r\n" + length + "Transfer-Encoding: chunked\r\n\r\n" + hi, []int{200}, true},
		{"HTTP/1.0 that would go on", strings.Replace(start, "1.1", "1.0", 1) + "Connection: keep-alive\r\n" + length + "\r\n" + hi, []int{200}, true},
		{"a body where none belongs", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(last)) + last, []int{200, 200}, false},
		{"HTTP/0.9", "GET /healthz\r\n\r\n", []int{400}, false},
		{"HTTP/3.0", "GET /healthz HTTP/3.0\r\nHost: localhost\r\n\r\n", []int{505}, false},
		{"HTTP/2 that nobody agreed on", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{403}, false},
		{"a proxy's tunnel", "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n", []int{405, 200}, false},
		{"the asterisk", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{200, 200}, false},
		{"a proxy's address", "GET http://elsewhere.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{403, 200}, false},
		{"a NUL in the path", "GET /healthz\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n", []int{400}, false},
		{"an expectation of another kind", start + "Expect: a miracle\r\n" + length + "\r\n" + hi, []int{417}, false},
		{"a body that is too large and not yet sent", start + "Expect: 100-continue\r\nContent-Length: 34603008\r\n\r\n", []int{413}, false},
	} {
		follow := alive
		if len(c.statuses) > 1 {
			follow = last
		}
		statuses, _ := f.answers(c.request + follow)
		if fmt.Sprint(statuses) != fmt.Sprint(c.statuses) {
			t.Errorf("%s: the answers have status %v, want %v", c.name, statuses, c.statuses)
		}
		switch asked := up.asked(); {
		case c.asked && (len(asked) != 1 || asked[0] != strings.Replace(hi, `"x"`, `"m"`, 1)):
			t.Errorf("%s: the upstream was asked %q", c.name, asked)
		case !c.asked && len(asked) != 0:
			t.Errorf("%s: the upstream was asked %q", c.name, asked)
		}
	}
}

// Requests that are sent before the answers of those in front of them have
// come are answered in their order, each with its own; after a malformed one
// nothing is.
func TestRequestsInARowAreAnsweredInTheirOrder(t *testing.T) {
	up := &echoing{}
	f := newFortress(t, up.ServeHTTP, nil)
	send := func(path, body string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
	}
	var row strings.Builder
	var want []string
	for i := range 12 {
		word := fmt.Sprintf("word-%d-of-many", i)
		message := `[{"role":"user","content":"` + word + `"}]`
		switch i % 4 {
		case 0:
			row.WriteString(send("/v1/chat/completions", `{"model":"x","messages":`+message+`}`))
		case 1:
			row.WriteString(send("/v1/messages", `{"model":"x","max_tokens":9,"messages":`+message+`}`))
		case 2:
			row.WriteString(send("/v1/responses", `{"model":"x","input":"`+word+`"}`))
		case 3:
			row.WriteString("GET /v1/models/" + word + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
		}
		want = append(want, word)
	}
	bad := "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
	statuses, bodies := f.answers(row.String() + bad + send("/v1/chat/completions", hi))
	if len(statuses) != len(want)+1 || statuses[len(want)] != 400 {
		t.Fatalf("%v", statuses)
	}
	for i, word := range want {
		status := 200
		if i%4 == 3 {
			status = 404
		}
		if statuses[i] != status || strings.Count(bodies[i], "word-") == 0 || !strings.Contains(bodies[i], word) || strings.Count(bodies[i], "word-") != strings.Count(bodies[i], word) {
			t.Errorf("%d: status %d, %s", i, statuses[i], bodies[i])
		}
	}
	if got := up.asked(); len(got) != 9 {
		t.Errorf("the upstream was asked %q", got)
	}
}

// flood sends a request head and then a body without end, and gives what was
// sent of the body until the gateway took no more, and the answer.
func flood(address, head, piece string) (sent int, answer string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	got := make(chan string)
	go func() {
		text, _ := io.ReadAll(conn) // a reset is an end too
		got <- string(text)
	}()
	for _, err = io.WriteString(conn, head); err == nil; {
		var n int
		n, err = io.WriteString(conn, piece)
		sent += n
	}
	return sent, <-got
}

// A body that is too large is refused in the words of its protocol, and read no
// further than that needs.
func TestABodyThatIsTooLargeIsNotReadToItsEnd(t *testing.T) {
	const limit = 1 << 20
	const slack = 16 << 20 // what the sockets of both sides hold
	f := newFortress(t, nil, func(set *Settings) { set.Limits.Body = limit })
	var all sync.WaitGroup // the server lingers at each, so that its answer is read
	for path, want := range map[string]string{
		"/v1/chat/completions":             `"code":"request_too_large"`,
		"/v1/responses":                    `"code":"request_too_large"`,
		"/v1/messages":                     `"type":"request_too_large"`,
		"/v1/messages/count_tokens":        `"type":"request_too_large"`,
		"/v1beta/models/x:generateContent": `"status":"INVALID_ARGUMENT"`,
		"/v1/embeddings":                   `"code":"request_too_large"`,
	} {
		for name, c := range map[string]struct{ header, piece string }{
			"promised":  {"Content-Length: 1000000000\r\n", strings.Repeat(" ", 64<<10)},
			"in chunks": {"Transfer-Encoding: chunked\r\n", "10000\r\n" + strings.Repeat(" ", 64<<10) + "\r\n"},
		} {
			all.Go(func() {
				sent, answer := flood(f.address, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\n"+c.header+"\r\n", c.piece)
				if sent > limit+slack {
					t.Errorf("%s, %s: %d MB were taken", path, name, sent>>20)
				}
				if !strings.HasPrefix(answer, "HTTP/1.1 413 ") || !strings.Contains(answer, want) || !strings.Contains(answer, "Connection: close\r\n") || !strings.Contains(answer, "larger than the 1 MiB") {
					t.Errorf("%s, %s: %.600s", path, name, answer)
				}
			})
		}
	}
	all.Wait()
	if n := f.asked.Load(); n != 0 {
		t.Errorf("%d of them have reached the upstream", n)
	}
	if n := f.g.memory.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}

// waitFor waits until something holds that another goroutine brings about.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never comes: " + what)
		}
	}
}

// Bodies that are on their way count by what has come of them: chunks as well,
// and a length that is only promised does not keep the others out.
func TestBodiesOnTheirWayCountByWhatHasCome(t *testing.T) {
	const memory = 8 << 20
	f := newFortress(t, nil, func(set *Settings) { set.Limits.Memory = memory })
	const start = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
	var open []net.Conn
	dial := func(send string) {
		conn, err := net.Dial("tcp", f.address)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		if _, err := io.WriteString(conn, send); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		dial(start + "Content-Length: 33554432\r\n\r\n{")
	}
	waitFor(t, "four bodies that were promised", func() bool { return f.g.drain.inFlight() == 4 && f.g.memory.Load() == 4<<20 })
	if resp, text := post(t, "http://"+f.address+"/v1/chat/completions", hi); resp.StatusCode != 200 {
		t.Errorf("promises keep the others out: %s %s", resp.Status, text)
	}
	// What comes in chunks fills the rest; the next one is told to come again.
	chunk := "100000\r\n" + strings.Repeat(" ", 1<<20) + "\r\n"
	dial(start + "Transfer-Encoding: chunked\r\n\r\n" + chunk + chunk + chunk)
	waitFor(t, "a body in chunks", func() bool { return f.g.memory.Load() == memory })
	resp, text := post(t, "http://"+f.address+"/v1/chat/completions", hi)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "2" || !strings.Contains(text, "server_is_overloaded") {
		t.Errorf("more than the memory is held: %s %s", resp.Status, text)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	waitFor(t, "nothing is held", func() bool { return f.g.memory.Load() == 0 && f.g.drain.inFlight() == 0 })
	if n := f.asked.Load(); n != 1 {
		t.Errorf("the upstream was asked %d times", n)
	}
}
