package chaos

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTheLogIsExact(t *testing.T) {
	steps := one(Step{Error: RateLimit, Hint: HintSeconds, Wait: 2 * time.Second, Delay: time.Second}, Step{After: 3, Interval: time.Second, End: Cut})
	inBubble(t, steps, func(t *testing.T, srv *Server) {
		start := time.Now()
		path, body := request(chat, "x", true, "Hello")
		post(t, srv, path, body, "Authorization", "Bearer secret-key", "X-Trace", "abc")
		time.Sleep(2 * time.Second)
		post(t, srv, path, body, "X-Api-Key", "other-secret")
		srv.Wait()
		log := srv.Log()
		if len(log) != 2 {
			t.Fatalf("%d entries", len(log))
		}
		if got := log[0].Header.Get("Authorization"); got != "Bearer sha256:85dbe15d" {
			t.Errorf("key: %q", got)
		}
		if log[0].Header.Get("X-Trace") != "abc" {
			t.Error("a harmless header is missing")
		}
		if all, _ := json.Marshal(log); strings.Contains(string(all), "secret") {
			t.Errorf("a secret is in the log: %s", all)
		}
		for i := range log {
			log[i].Header = nil
		}
		want := []Entry{
			{Seq: 1, Protocol: "openai-chat", Model: "x", Scenario: "x", Step: 1, Attempt: 1, Stream: true, Tokens: 5, Method: "POST", Path: path,
				Body: json.RawMessage(body), At: start, Took: time.Second, Did: "429 rate_limit, wait 2s", Status: 429},
			{Seq: 2, Protocol: "openai-chat", Model: "x", Scenario: "x", Step: 2, Attempt: 2, Stream: true, Tokens: 5, Method: "POST", Path: path,
				Body: json.RawMessage(body), At: start.Add(3 * time.Second), Took: 2 * time.Second, Did: "200 stream, cut after 3 tokens", Status: 200, Sent: 3},
		}
		if !reflect.DeepEqual(log, want) {
			t.Errorf("got  %+v\nwant %+v", log, want)
		}
	})
}

// Whatever bodies clients send, the log is JSON in UTF-8.
func TestTheLogIsAlwaysText(t *testing.T) {
	inBubble(t, one(Step{}), func(t *testing.T, srv *Server) {
		for _, body := range []string{"{\"model\":\"x\",\"a\":\"\xff\"}", "\xff\x00", "{", ""} {
			post(t, srv, "/v1/chat/completions", body)
		}
		all, err := json.Marshal(srv.Log())
		if err != nil || !utf8.Valid(all) {
			t.Errorf("%v: %q", err, all)
		}
	})
}

func TestTheKeyInAnAddressIsNotKept(t *testing.T) {
	inBubble(t, one(Step{Reject: []Check{NoKey}}), func(t *testing.T, srv *Server) {
		resp, _, err := post(t, srv, "/v1beta/models/x:generateContent?key=secret-key", `{"contents":[]}`)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v %v", resp, err)
		}
		if p := srv.Log()[0].Path; strings.Contains(p, "secret") || !strings.Contains(p, "85dbe15d") {
			t.Errorf("path %q", p)
		}
	})
}

func TestAClientThatLeavesIsSeenAtOnce(t *testing.T) {
	for name, step := range map[string]Step{
		"while nothing was answered":    {Drop: Hang},
		"before the headers":            {Delay: time.Hour},
		"before the first token":        {First: time.Hour},
		"between two tokens":            {Interval: time.Hour},
		"in a stall":                    {After: 5, End: Stall},
		"in a stall with signs of life": {After: 5, End: Stall, KeepAlive: 3 * time.Second},
	} {
		for _, stream := range []bool{true, false} {
			inBubble(t, one(step), func(t *testing.T, srv *Server) {
				path, body := request(messages, "x", stream, "Hello")
				client := srv.Client()
				client.Timeout = 10 * time.Second
				resp, err := client.Post(MemoryURL+path, "application/json", strings.NewReader(body))
				if err == nil {
					readAll(resp.Body)
					resp.Body.Close()
				}
				srv.Wait()
				e := srv.Log()[0]
				if !e.Left || e.LeftAfter != 10*time.Second || e.Took != 10*time.Second {
					t.Errorf("%s, stream %v: left %v after %s, answered for %s", name, stream, e.Left, e.LeftAfter, e.Took)
				}
			})
		}
	}
}

func TestClosingEndsEveryRequest(t *testing.T) {
	inBubble(t, one(Step{Drop: Hang}), func(t *testing.T, srv *Server) {
		done := make(chan error)
		go func() {
			_, _, err := srv.say(t, chat, "x", true)
			done <- err
		}()
		time.Sleep(time.Minute)
		srv.Close()
		if err := <-done; err == nil {
			t.Error("a hanging request was answered")
		}
		if e := srv.Log()[0]; e.Left || e.Took != time.Minute {
			t.Errorf("the client is blamed (%v), or the request went on: %s", e.Left, e.Took)
		}
	})
}
