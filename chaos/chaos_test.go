package chaos

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The paths of the four protocols, asked to stream.
var paths = map[protocol]string{
	chat:      "/v1/chat/completions",
	responses: "/v1/responses",
	messages:  "/v1/messages",
	gemini:    "/v1beta/models/MODEL:streamGenerateContent?alt=sse",
}

// request writes a request for one user message.
func request(p protocol, model string, stream bool, say string) (path, body string) {
	path = paths[p]
	if !stream {
		path = strings.Replace(path, ":streamGenerateContent?alt=sse", ":generateContent", 1)
	}
	path = strings.Replace(path, "MODEL", model, 1)
	flag := "false"
	if stream {
		flag = "true"
	}
	switch p {
	case chat:
		return path, `{"model":` + quote(model) + `,"stream":` + flag + `,"messages":[{"role":"user","content":` + quote(say) + `}]}`
	case responses:
		return path, `{"model":` + quote(model) + `,"stream":` + flag + `,"input":` + quote(say) + `}`
	case messages:
		return path, `{"model":` + quote(model) + `,"stream":` + flag + `,"max_tokens":1000,"messages":[{"role":"user","content":` + quote(say) + `}]}`
	}
	return path, `{"contents":[{"role":"user","parts":[{"text":` + quote(say) + `}]}]}`
}

// post sends a request through memory and reads the answer as far as it comes.
func post(t *testing.T, srv *Server, path, body string, header ...string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", MemoryURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := srv.Client()
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	var got bytes.Buffer
	_, err = io.Copy(&got, resp.Body)
	return resp, got.String(), err
}

// ask sends one user message to a model.
func (s *Server) say(t *testing.T, p protocol, model string, stream bool) (*http.Response, string, error) {
	t.Helper()
	path, body := request(p, model, stream, "Why do cats land on their feet?")
	return post(t, s, path, body)
}

// inBubble runs a test in virtual time, with a server that is closed at its end.
func inBubble(t *testing.T, scenarios []Scenario, test func(t *testing.T, srv *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := New(scenarios...)
		defer srv.Close()
		test(t, srv)
	})
}

// one is a scenario named x of the given steps.
func one(steps ...Step) []Scenario { return []Scenario{{Name: "x", Steps: steps}} }

// since is the virtual time since the bubble began, which is a fixed date.
func since() time.Duration {
	return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
}

func TestTheAnswerIsSixtyWords(t *testing.T) {
	if n := len(tokens(Answer)); n != 60 {
		t.Errorf("the answer has %d tokens", n)
	}
	if got := strings.Join(tokens(Answer), ""); got != Answer {
		t.Errorf("joined tokens are not the answer: %q", got)
	}
	if got := tokens(" a\n b  "); strings.Join(got, "|") != " a|\n b|  " {
		t.Errorf("tokens lose space: %q", got)
	}
}
