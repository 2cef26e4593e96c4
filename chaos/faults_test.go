package chaos

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func readAll(r io.Reader) string {
	b, _ := io.ReadAll(r)
	return string(b)
}

// text collects what a chat stream says.
func chatText(t *testing.T, stream string) (said, finish string) {
	t.Helper()
	for _, ev := range events(t, stream) {
		for _, c := range list(ev["choices"]) {
			c := object(c)
			said += text(object(c["delta"])["content"])
			if f := text(c["finish_reason"]); f != "" {
				finish = f
			}
		}
	}
	return said, finish
}

func firstWords(n int) string { return strings.Join(tokens(Answer)[:n], "") }

func TestTokensComeAtTheirPace(t *testing.T) {
	inBubble(t, one(Step{Delay: 3 * time.Second, First: 20 * time.Second, Interval: time.Second}), func(t *testing.T, srv *Server) {
		req, _ := http.NewRequest("POST", MemoryURL+"/v1/chat/completions", strings.NewReader(`{"model":"x","stream":true,"messages":[]}`))
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if d := since(); d != 3*time.Second {
			t.Errorf("headers after %s", d)
		}
		one := make([]byte, 1)
		if _, err := io.ReadFull(resp.Body, one); err != nil {
			t.Fatal(err)
		}
		if d := since(); d != 23*time.Second {
			t.Errorf("first byte after %s", d)
		}
		said, _ := chatText(t, string(one)+readAll(resp.Body))
		if d := since(); d != 82*time.Second {
			t.Errorf("60 tokens took until %s", d)
		}
		if said != Answer {
			t.Errorf("said %q", said)
		}
	})
}

func TestEarlyEnds(t *testing.T) {
	cases := []struct {
		end  End
		want error // of reading the body
	}{
		{Cut, io.ErrUnexpectedEOF},
		{CutInside, io.ErrUnexpectedEOF},
		{CleanEnd, nil},
		{Reset, syscall.ECONNRESET},
	}
	for _, c := range cases {
		for _, stream := range []bool{true, false} {
			inBubble(t, one(Step{After: 40, End: c.end}), func(t *testing.T, srv *Server) {
				_, got, err := srv.say(t, chat, "x", stream)
				if !errors.Is(err, c.want) {
					t.Errorf("%s, stream %v: reading ends with %v, want %v", c.end, stream, err, c.want)
				}
				if !stream {
					return
				}
				if c.end == CutInside {
					got = got[:strings.LastIndex(got, "\n\n")+2]
				}
				if said, finish := chatText(t, got); said != firstWords(40) || finish != "" {
					t.Errorf("%s: said %q, finish %q", c.end, said, finish)
				}
			})
		}
	}
}

func TestARealConnectionIsReallyReset(t *testing.T) {
	srv := New(one(Step{Drop: RST}, Step{After: 10, End: Reset}, Step{Drop: Close})...)
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	send := func() (*http.Response, error) {
		return client.Post(srv.URL()+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"x","stream":true,"messages":[]}`))
	}
	if _, err := send(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("before the headers: %v", err)
	}
	resp, err := send()
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("in mid-stream: %v", err)
	}
	if _, err := send(); !errors.Is(err, io.EOF) {
		t.Errorf("a polite close: %v", err)
	}
}

func TestNoAnswerAtAll(t *testing.T) {
	inBubble(t, one(Step{Drop: RST}, Step{Drop: Close}, Step{Drop: Garbage}, Step{Drop: Hang, Pause: 2 * time.Minute}), func(t *testing.T, srv *Server) {
		if _, _, err := srv.say(t, chat, "x", true); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("reset: %v", err)
		}
		if _, _, err := srv.say(t, chat, "x", true); !errors.Is(err, io.EOF) {
			t.Errorf("close: %v", err)
		}
		if _, _, err := srv.say(t, chat, "x", true); err == nil || !strings.Contains(err.Error(), "malformed HTTP") {
			t.Errorf("garbage: %v", err)
		}
		begin := since()
		if _, _, err := srv.say(t, chat, "x", true); !errors.Is(err, io.EOF) || since()-begin != 2*time.Minute {
			t.Errorf("hang: %v after %s", err, since()-begin)
		}
	})
}

func TestSignsOfLifeDuringAStall(t *testing.T) {
	want := map[protocol]string{
		chat: ": keep-alive\n\n", responses: ": keep-alive\n\n", gemini: ": keep-alive\n\n",
		messages: "event: ping\ndata: {\"type\": \"ping\"}\n\n",
	}
	for p, alive := range want {
		inBubble(t, one(Step{End: Stall, Omit: []string{"start"}, KeepAlive: 5 * time.Second}), func(t *testing.T, srv *Server) {
			client := srv.Client()
			client.Timeout = 12 * time.Second
			path, body := request(p, "x", true, "Hi")
			resp, err := client.Post(MemoryURL+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			got := readAll(resp.Body)
			resp.Body.Close()
			if got != alive+alive {
				t.Errorf("%s: in 12 seconds came %q", p, got)
			}
			srv.Wait()
			e := srv.Log()[0]
			if !e.Left || e.LeftAfter != 12*time.Second || e.Sent != 0 {
				t.Errorf("%s: left %v after %s, sent %d", p, e.Left, e.LeftAfter, e.Sent)
			}
		})
	}
}

func TestErrorInsideAGoodStatus(t *testing.T) {
	last := map[protocol]string{
		chat:      `data: {"error":{"message":"The engine is currently overloaded. Please try again later.","type":"server_error","param":null,"code":"overloaded"}}`,
		messages:  "event: error\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_sim1"}`,
		gemini:    `data: {"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`,
		responses: `"status":"failed"`,
	}
	for p, want := range last {
		inBubble(t, nil, func(t *testing.T, srv *Server) {
			for name, words := range map[string]string{"error-first": "", "error-started": "", "error-inside": "twenty"} {
				resp, got, err := srv.say(t, p, name, true)
				if err != nil || resp.StatusCode != 200 {
					t.Fatalf("%s %s: %v %v", p, name, resp, err)
				}
				all := strings.Split(strings.TrimSpace(got), "\n\n")
				if !strings.Contains(all[len(all)-1], want) {
					t.Errorf("%s %s ends with %s", p, name, all[len(all)-1])
				}
				if name == "error-first" && strings.Count(got, "\n\n") != 1 {
					t.Errorf("%s: before the first error came %s", p, got)
				}
				if words != "" && srv.Log()[len(srv.Log())-1].Sent != 20 {
					t.Errorf("%s: %d tokens before the error", p, srv.Log()[len(srv.Log())-1].Sent)
				}
				srv.Reset()
			}
		})
	}
}

func TestMalformedEventIsExtra(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, srv *Server) {
		_, got, err := srv.say(t, chat, "fb-s10-malformed-chunk", true)
		if err != nil {
			t.Fatal(err)
		}
		const bad = `data: {"object":"chat.completion.chunk","choices":[{"delta":{"content":` + "\n\n"
		if strings.Count(got, bad) != 1 {
			t.Fatalf("no malformed event in %s", got)
		}
		before, after, _ := strings.Cut(got, bad)
		if said, _ := chatText(t, before); said != firstWords(10) {
			t.Errorf("before it came %q", said)
		}
		if said, finish := chatText(t, before+after); said != Answer || finish != "stop" {
			t.Errorf("in all came %q, %q", said, finish)
		}
	})
}

func TestMarkersAreLeftOut(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, srv *Server) {
		_, got, _ := srv.say(t, chat, "no-done", true)
		if said, finish := chatText(t, got); said != Answer || finish != "stop" || strings.Contains(got, "[DONE]") {
			t.Errorf("no-done: %q %q %v", said, finish, strings.Contains(got, "[DONE]"))
		}
		_, got, _ = srv.say(t, chat, "no-marker", true)
		if said, finish := chatText(t, got); said != Answer || finish != "" || strings.Contains(got, "[DONE]") {
			t.Errorf("no-marker: %q %q", said, finish)
		}
		_, got, _ = srv.say(t, messages, "no-marker", true)
		if strings.Contains(got, "message_stop") || strings.Contains(got, "message_delta") || !strings.Contains(got, "content_block_stop") {
			t.Errorf("no-marker: %s", got)
		}
		_, got, _ = srv.say(t, messages, "no-event-lines", true)
		if strings.Contains(got, "event:") || !strings.Contains(got, "message_stop") {
			t.Errorf("no-event-lines: %s", got)
		}
	})
}

func TestSplitChangesNoByte(t *testing.T) {
	inBubble(t, one(Step{}), func(t *testing.T, srv *Server) {
		_, whole, err := srv.say(t, responses, "x", true)
		if err != nil {
			t.Fatal(err)
		}
		srv.Reset()
		srv.Add(one(Step{Split: 1})...)
		_, split, err := srv.say(t, responses, "x", true)
		if err != nil || split != whole {
			t.Errorf("split: %v\n%s\nwhole:\n%s", err, split, whole)
		}
	})
}

func TestFacesOfNothing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, srv *Server) {
		want := map[string]string{
			"empty-null": `"choices":null`,
			"empty-none": `"choices":[]`,
			"empty-done": "data: [DONE]\n\n",
			"null-body":  "null",
		}
		for name, part := range want {
			_, got, err := srv.say(t, chat, name, true)
			if err != nil || !strings.Contains(got, part) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			if said, _ := chatText(t, got); said != "" {
				t.Errorf("%s says %q", name, said)
			}
		}
		if resp, got, err := srv.say(t, chat, "empty-blank", true); err != nil || got != "" || resp.StatusCode != 200 {
			t.Errorf("empty-blank: %q, %v", got, err)
		}
		if _, got, _ := srv.say(t, chat, "empty-reasoning", true); !strings.Contains(got, "reasoning_content") {
			t.Errorf("empty-reasoning: %s", got)
		}
	})
}

func TestEveryFormOfAHint(t *testing.T) {
	// A bubble begins at 2000-01-01 00:00:00 UTC.
	want := map[Hint][2]string{ // a header and its value, or "" and part of the body
		HintSeconds:   {"Retry-After", "2"},
		HintDate:      {"Retry-After", "Sat, 01 Jan 2000 00:00:02 GMT"},
		HintMillis:    {"Retry-After-Ms", "2000"},
		HintText:      {"", "Please try again in 2s."},
		HintRetryInfo: {"", `"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"`},
		HintDuration:  {"X-Ratelimit-Reset-Requests", "2s"},
		HintRFC3339:   {"Anthropic-Ratelimit-Requests-Reset", "2000-01-01T00:00:02Z"},
		HintEpoch:     {"X-Ratelimit-Reset", "946684802"},
		HintEpochMS:   {"X-Ratelimit-Reset", "946684802000"},
		HintEstimated: {"", `"estimated_time":2`},
	}
	for _, word := range hintWords {
		form := want[Hint(word)]
		inBubble(t, one(Step{Error: RateLimit, Hint: Hint(word), Wait: 2 * time.Second}), func(t *testing.T, srv *Server) {
			resp, got, err := srv.say(t, chat, "x", false)
			if err != nil || resp.StatusCode != 429 {
				t.Fatalf("%s: %v, %v", word, resp, err)
			}
			if form[0] != "" {
				got = resp.Header.Get(form[0])
			}
			if form[0] != "" && got != form[1] || !strings.Contains(got, form[1]) {
				t.Errorf("%s: got %q, want %q", word, got, form[1])
			}
		})
	}
}

func TestADialAfterTheEndIsRefused(t *testing.T) {
	srv := New()
	c, err := srv.Dial(t.Context(), "tcp", "anywhere:80")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	srv.Close()
	if _, err := srv.Dial(t.Context(), "tcp", "anywhere:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v", err)
	}
	var op *net.OpError
	if _, err := srv.Dial(t.Context(), "tcp", "anywhere:80"); !errors.As(err, &op) {
		t.Errorf("dial: %v", err)
	}
}
