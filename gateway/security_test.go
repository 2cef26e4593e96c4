package gateway

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/provider"
)

// fortress is a gateway on a real socket, before a real upstream.
type fortress struct {
	t       *testing.T
	g       *Server
	address string
	asked   atomic.Int32 // requests that have reached the upstream

	mu  sync.Mutex
	log bytes.Buffer
}

func (f *fortress) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(p)
}

func (f *fortress) said() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

func newFortress(t *testing.T, upstream http.HandlerFunc, change func(*Settings)) *fortress {
	t.Helper()
	f := &fortress{t: t}
	if upstream == nil {
		upstream = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, chatAnswer)
		}
	}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.asked.Add(1); upstream(w, r) }))
	t.Cleanup(up.Close)
	m, err := provider.Open("m", provider.Provider("up"), provider.BaseURL(up.URL+"/v1"), provider.Protocol(ninelives.OpenAIChat), provider.Key(provider.NewSecret("sk-upstream-0123456789abcdef0123")))
	if err != nil {
		t.Fatal(err)
	}
	set := Settings{Routes: []Route{{Name: "default", Targets: []Target{{Model: m}}}}}
	if change != nil {
		change(&set)
	}
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	g := New(set, Options{Journal: j, Log: slog.New(slog.NewJSONHandler(f, nil))})
	f.g = g
	l, err := Listen(t.Context(), "127.0.0.1:0", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.address = l.Addr().String()
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		if strings.Contains(f.said(), "panic") {
			t.Error(f.said())
		}
	})
	serving(t, g, l)
	return f
}

// raw sends bytes and gives everything that comes back until the connection closes.
func (f *fortress) raw(bytes string) string {
	f.t.Helper()
	conn, err := net.Dial("tcp", f.address)
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	go func() { _, _ = io.WriteString(conn, bytes) }() // it may be refused in the middle
	answer, _ := io.ReadAll(conn)                      // a reset is an answer too
	return string(answer)
}

const hi = `{"model":"x","messages":[{"role":"user","content":"hi"}]}`

func chatOf(body string, header ...string) string {
	return "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n" +
		strings.Join(header, "") + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
}

func TestSmuggledRequestsAreRefused(t *testing.T) {
	f := newFortress(t, nil, nil)
	const start = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
	second := "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	for name, request := range map[string]string{
		"two lengths":          start + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + second,
		"no length":            start + "Content-Length: -1\r\n\r\n" + second,
		"signed length":        start + "Content-Length: +5\r\n\r\nhello" + second,
		"an unknown encoding":  start + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + second,
		"two encodings":        start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + second,
		"space before a colon": start + "Content-Length : 5\r\n\r\nhello" + second,
		"no host":              "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 0\r\n\r\n" + second,
		"two hosts":            start + "Host: other\r\nContent-Length: 0\r\n\r\n" + second,
		"a NUL in a header":    start + "X-A: a\x00b\r\nContent-Length: 0\r\n\r\n" + second,
		"a bad chunk":          start + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n" + second,
	} {
		answer := f.raw(request)
		if status, _, _ := strings.Cut(answer, "\r\n"); !strings.HasPrefix(status, "HTTP/1.1 4") && !strings.HasPrefix(status, "HTTP/1.1 5") || strings.Count(answer, "HTTP/1.1 ") != 1 {
			t.Errorf("%s: %s", name, answer)
		}
	}
	if n := f.asked.Load(); n != 0 {
		t.Errorf("%d of them have reached the upstream", n)
	}
	// Both a length and chunks: the chunks count, and the connection ends there.
	answer := f.raw(start + fmt.Sprintf("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(hi), hi) + second)
	if strings.Count(answer, "HTTP/1.1 ") != 1 || !strings.Contains(answer, "Connection: close") {
		t.Errorf("length and chunks: %s", answer)
	}
}

// numbered are so many headers, each of another name.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "h%d: 1\r\n", i)
	}
	return b.String()
}

func TestOddRequestsAreAnswered(t *testing.T) {
	f := newFortress(t, nil, nil)
	deep := `{"model":"x","messages":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`
	for name, c := range map[string]struct{ request, status string }{
		"null":               {chatOf("null"), "400"},
		"nothing":            {chatOf(""), "400"},
		"a list":             {chatOf("[]"), "400"},
		"half of it":         {chatOf(hi[:len(hi)-5]), "400"},
		"two of them":        {chatOf(hi + hi), "400"},
		"deep":               {chatOf(deep), "400"},
		"bytes that no text": {chatOf("{\"model\":\"\xff\xfe\",\"messages\":3}"), "200"}, // for the provider to judge
		"compressed":         {chatOf(hi, "Content-Encoding: gzip\r\n"), "400"},
		"HTTP/1.0":           {strings.Replace(chatOf(hi), "HTTP/1.1", "HTTP/1.0", 1), "200"},
		"plain text":         {strings.Replace(chatOf(hi), "application/json", "text/plain", 1), "200"},
		"a huge body":        {"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 34603008\r\n\r\n", "413"},
		"huge headers":       {chatOf(hi, "X-A: "+strings.Repeat("a", 100<<10)+"\r\n"), "431"},
		"a header of 1 MB":   {chatOf(hi, "X-A: "+strings.Repeat("a", 1<<20)+"\r\n"), "431"},
		"10,000 headers":     {chatOf(hi, numbered(10_000)), "431"},
		"5,000 headers":      {chatOf(hi, numbered(5_000)), "200"}, // fewer bytes than are allowed
		"many headers":       {chatOf(hi, strings.Repeat("X-A: b\r\n", 20_000)), "431"},
		"dots":               {strings.Replace(chatOf(hi), "/v1/chat", "/v1/../../etc/chat", 1), "307"}, // to the path that is meant, where nothing is
		"hidden dots":        {"GET /v1/models/..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "404"},
		"no method":          {strings.Replace(chatOf(hi), "POST", "BREW", 1), "405"},
		"another host":       {strings.Replace(chatOf(hi), "localhost", "rebound.example", 1), "403"},
	} {
		answer := f.raw(c.request)
		status, _, _ := strings.Cut(answer, "\r\n")
		if _, status, _ = strings.Cut(status, " "); !strings.HasPrefix(status, c.status) {
			t.Errorf("%s: %.600s", name, answer)
		}
	}
}

func TestNamesDoNotReachHeadersOrLogsAsTheyAre(t *testing.T) {
	f := newFortress(t, nil, nil)
	evil := `x\r\nX-Evil: yes\u001b[31m\u2028`
	answer := f.raw(chatOf(`{"model":"`+evil+strings.Repeat("a", 100_000)+`","messages":[{"role":"user","content":"hi"}],"user":"`+evil+`"}`,
		"X-Ninelives-Session: a\tb\u009b31m\r\n", "X-Ninelives-Route: nothing\u2028here\r\n", "X-Request-Id: \u001b[31mred\r\n"))
	head, _, _ := strings.Cut(answer, "\r\n\r\n")
	if strings.Contains(head, "Evil") && strings.Contains(head, "\r\nX-Evil") || strings.ContainsAny(answer+f.said(), "\x1b\u2028\u009b") {
		t.Errorf("%.800s\n%.800s", answer, f.said())
	}
	if len(head) > 4000 {
		t.Errorf("%d bytes of headers", len(head))
	}
}

func TestAddressesInRequestsAreNotFetched(t *testing.T) {
	var fetched atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetched.Add(1) }))
	defer inside.Close()
	f := newFortress(t, nil, nil)
	for path, body := range map[string]string{
		"/v1/chat/completions":             `{"model":"x","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"URL/a.png"}}]}]}`,
		"/v1/responses":                    `{"model":"x","input":[{"role":"user","content":[{"type":"input_image","image_url":"URL/a.png"}]}]}`,
		"/v1/messages":                     `{"model":"x","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"URL/a.png"}}]}]}`,
		"/v1beta/models/x:generateContent": `{"contents":[{"role":"user","parts":[{"fileData":{"mimeType":"image/png","fileUri":"URL/a.png"}}]}]}`,
	} {
		post(t, "http://"+f.address+path, strings.ReplaceAll(body, "URL", inside.URL))
	}
	if n := fetched.Load(); n != 0 {
		t.Errorf("%d addresses were fetched", n)
	}
}

func TestWhatAProviderSaysOfItsKeyGoesNowhere(t *testing.T) {
	const planted = "sk-upstream-0123456789abcdef0123"
	for _, status := range []int{401, 403, 400, 404, 429, 500} {
		f := newFortress(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s. See the page.","type":"invalid_request_error","code":"invalid_api_key"}}`, planted)
		}, func(set *Settings) { set.Routes[0].Deadline = 2 * time.Second })
		url := "http://" + f.address
		var all strings.Builder
		for _, body := range []string{hi, strings.Replace(hi, "{", `{"stream":true,`, 1)} {
			resp, text := post(t, url+"/v1/chat/completions", body)
			if resp.StatusCode == 401 || resp.StatusCode == 403 || resp.StatusCode == 200 {
				t.Errorf("upstream %d: the client got %s", status, resp.Status)
			}
			fmt.Fprint(&all, text, resp.Header)
		}
		for _, path := range []string{"/", "/metrics", "/ninelives/v1/calls", "/ninelives/v1/health"} {
			resp, err := http.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			all.Write(text)
			var list struct{ Calls []struct{ ID string } }
			if path == "/ninelives/v1/calls" {
				if err := json.Unmarshal(text, &list); err != nil || len(list.Calls) != 2 {
					t.Errorf("%v: %s", err, text)
				}
			}
			for _, c := range list.Calls {
				_, text := get(t, url+"/ninelives/v1/calls/"+c.ID)
				all.WriteString(text)
			}
		}
		if said := all.String() + f.said(); strings.Contains(said, "0123456789abcdef0123") {
			t.Errorf("upstream %d: the key is told:\n%s", status, said)
		}
	}
}

func TestClientsDoNotSeeEachOther(t *testing.T) {
	f := newFortress(t, nil, func(set *Settings) {
		for _, name := range []string{"anna", "ben"} {
			set.Keys = append(set.Keys, Key{Name: name, Hash: sha256.Sum256([]byte("nl-key-of-" + name))})
		}
	})
	url := "http://" + f.address
	anna, ben := []string{"Authorization", "Bearer nl-key-of-anna"}, []string{"Authorization", "Bearer nl-key-of-ben"}
	resp, text := post(t, url+"/v1/responses", `{"model":"x","input":"hi"}`, append(anna, "Idempotency-Key", "the-key")...)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || resp.StatusCode != 200 {
		t.Fatal(err, text)
	}
	id := resp.Header.Get("X-Ninelives-Call")
	for _, path := range []string{"/v1/responses/" + made.ID, "/v1/responses/" + made.ID + "/input_items", "/ninelives/v1/calls/" + id, "/ninelives/v1/calls/" + made.ID + "/stream"} {
		if resp, text := get(t, url+path, anna...); resp.StatusCode != 200 {
			t.Errorf("%s: its owner gets %s %s", path, resp.Status, text)
		}
		if resp, text := get(t, url+path, ben...); resp.StatusCode != 404 {
			t.Errorf("%s: another gets %s %s", path, resp.Status, text)
		}
	}
	if resp, text := post(t, url+"/v1/responses", `{"model":"x","input":"go on","previous_response_id":"`+made.ID+`"}`, ben...); resp.StatusCode == 200 {
		t.Errorf("another goes on with it: %s", text)
	}
	if _, text := get(t, url+"/ninelives/v1/calls", ben...); strings.Contains(text, id) {
		t.Errorf("another has it in his list: %s", text)
	}
}

func TestAClientThatReadsNothingIsDropped(t *testing.T) {
	left := make(chan int, 1)
	chunk := []byte("data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + strings.Repeat("a b ", 4<<10) + "\"},\"finish_reason\":null}]}\n\n")
	f := newFortress(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		n := 0
		for r.Context().Err() == nil && n < 1<<30 {
			m, err := w.Write(chunk)
			if n += m; err != nil {
				break
			}
		}
		left <- n
	}, func(set *Settings) { set.Limits.Write = time.Second })
	conn, err := net.Dial("tcp", f.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, chatOf(strings.Replace(hi, "{", `{"stream":true,`, 1)))
	if _, err := bufio.NewReaderSize(conn, 16).ReadByte(); err != nil { // it has begun; nothing more is read
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	select {
	case n := <-left:
		runtime.GC()
		runtime.ReadMemStats(&after)
		// What the sockets hold, and no more.
		if n > 64<<20 {
			t.Errorf("the upstream could send %d MB", n>>20)
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
			t.Errorf("%d MB are held", grown>>20)
		}
	case <-time.After(time.Minute):
		t.Fatal("the upstream is not cancelled")
	}
}
