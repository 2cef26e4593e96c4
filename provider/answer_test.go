package provider

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
)

// reply answers with a status, a content type and a body.
func reply(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestAStreamEndsInDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, good)
		o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil)
		if o.fault != nil {
			t.Fatal(o.fault)
		}
		r := o.resp
		if o.text != "Hello" || r.Text() != "Hello" || r.Finish != ninelives.FinishStop || r.Candidate != "testing/test-model" || r.Attempts != 1 || r.Usage.Input != 7 || r.Usage.Output != 2 {
			t.Errorf("text %q, response %+v", o.text, r)
		}
		if len(o.numbers) != 1 || !o.numbers[3] {
			t.Errorf("events carry the numbers %v, want 3", o.numbers)
		}
		if o.took != 0 {
			t.Errorf("took %v", o.took)
		}
	})
}

func TestAWholeAnswerComesAsAStreamToo(t *testing.T) {
	const calls = `{"id":"c1","object":"chat.completion","created":1,"model":"test-model","choices":[{"index":0,"message":{"role":"assistant","content":"Look:","reasoning_content":"hm","tool_calls":[{"id":"t1","type":"function","function":{"name":"look","arguments":"{\"at\":\"cat\"}"}}]},"finish_reason":"tool_calls"}]}`
	for name, contentType := range map[string]string{"JSON": "application/json", "JSON by another name": "text/plain; charset=utf-8", "JSON called a stream": "text/event-stream"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := serve(t, reply(200, contentType, calls))
				var got []string
				o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), func(ev ninelives.Event) {
					switch e := ev.(type) {
					case ninelives.ReasoningDelta:
						got = append(got, fmt.Sprintf("%d thinks %s", e.Attempt, e.Text))
					case ninelives.TextDelta:
						got = append(got, fmt.Sprintf("%d says %s", e.Attempt, e.Text))
					case ninelives.ToolCallDelta:
						got = append(got, fmt.Sprintf("%d calls %s %s%s", e.Attempt, e.ID, e.Name, e.Arguments))
					}
				})
				want := []string{"3 thinks hm", "3 says Look:", `3 calls t1 look{"at":"cat"}`}
				if !slices.Equal(got, want) || o.resp == nil || len(o.resp.Message.ToolCalls()) != 1 {
					t.Errorf("events %q, want %q; %v", got, want, o.fault)
				}
			})
		})
	}
}

func TestWhatIsNoAnswerIsATypedFault(t *testing.T) {
	for _, c := range []struct {
		name        string
		contentType string
		body        string
		class       ninelives.Class
		final       bool
		hint        string
	}{
		{"a page of HTML", "text/html", "<!DOCTYPE html>\n<html><title>Sign in</title><body>Please sign in</body></html>", ninelives.ClassFormat, true, "base URL"},
		{"an empty body", "application/json", "", ninelives.ClassEmpty, false, ""},
		{"an empty stream", "text/event-stream", "", ninelives.ClassEmpty, false, ""},
		{"blank lines", "application/json", "\n\n  \n", ninelives.ClassEmpty, false, ""},
		{"null", "application/json", "null", ninelives.ClassEmpty, false, ""},
		{"a stream of comments", "text/event-stream", ping + ping, ninelives.ClassEmpty, false, ""},
		{"an error object", "application/json", `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`, ninelives.ClassBilling, false, "credit"},
		{"an error in the stream", "text/event-stream", `data: {"error":{"message":"The server is overloaded","type":"overloaded_error","code":503}}` + "\n\n", ninelives.ClassOverloaded, false, ""},
		{"half a JSON", "application/json", answer[:80], ninelives.ClassStreamBroken, false, ""},
		{"a stream that ends politely without an end", "text/event-stream", text("Hel"), ninelives.ClassStreamBroken, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := serve(t, reply(200, c.contentType, c.body))
				o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil)
				if o.fault == nil {
					t.Fatalf("accepted: %+v", o.resp)
				}
				if o.fault.Class != c.class || o.fault.Final != c.final || !strings.Contains(o.fault.Hint, c.hint) {
					t.Errorf("%s, final %v, hint %q (%s); want %s, final %v", o.fault.Class, o.fault.Final, o.fault.Hint, o.fault.Message, c.class, c.final)
				}
				if strings.Contains(o.fault.Error(), "\n") {
					t.Errorf("more than one line: %q", o.fault.Error())
				}
			})
		})
	}
}

// Whatever a model says, of limits, of money or of models that there are not: it
// is its answer, also where that has come to harm. What is left of an error is
// still told by its words.
func TestTheWordsOfABrokenAnswerAreNoComplaint(t *testing.T) {
	const words = "no such model: rate limit exceeded, insufficient balance, invalid api key, maximum context length is 10 tokens, please log in"
	for _, c := range []struct {
		body  string
		class ninelives.Class
	}{
		{`{"id":"c1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + words, ninelives.ClassStreamBroken},
		{`{"id":"r1","object":"response","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"` + words, ninelives.ClassStreamBroken},
		{`{"id":"m1","type":"message","role":"assistant","content":[{"type":"text","text":"` + words + `"oops`, ninelives.ClassStreamBroken},
		{`{"candidates":[{"content":{"parts":[{"text":"` + words, ninelives.ClassStreamBroken},
		{`{"model":"m","message":{"role":"assistant","content":"` + words, ninelives.ClassStreamBroken},
		{`{"id":"c1","object":"chat.comp`, ninelives.ClassStreamBroken},
		{`{"error":{"message":"insufficient balance"}`, ninelives.ClassBilling},
		{`{"message":"rate limit exceeded","code":`, ninelives.ClassRateLimit},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := serve(t, reply(200, "application/json", c.body))
			o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil)
			if o.fault == nil || o.fault.Class != c.class {
				t.Errorf("%s: %v; want %s", c.body, o.fault, c.class)
			}
		})
	}
}

func TestErrorsAreClassifiedWithTheirHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("X-Request-Id", "req-1")
			reply(429, "application/json", `{"error":{"message":"Rate limit reached, key `+testKey+`","type":"requests","code":"rate_limit_exceeded"}}`)(w, r)
		})
		o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil)
		f := o.fault
		if f == nil || f.Class != ninelives.ClassRateLimit || f.RetryAfter != 7*time.Second || f.RequestID != "req-1" || f.Status != 429 || f.Candidate != "testing/test-model" {
			t.Fatalf("%+v", f)
		}
		for _, shown := range []string{f.Error(), fmt.Sprintf("%v", f), fmt.Sprintf("%+v", *f), fmt.Sprintf("%#v", *f)} {
			if strings.Contains(shown, testKey) {
				t.Errorf("the key is told: %s", shown)
			}
		}
	})
}

func TestAWrongBaseURLIsOneClearLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, reply(404, "text/plain", "404 page not found\n"), BaseURL("http://llm.test"))
		o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil)
		if o.fault == nil || o.fault.Class != ninelives.ClassModelNotFound || o.fault.Scope != ninelives.ScopeHost || !strings.Contains(o.fault.Hint, "/v1") {
			t.Errorf("%+v", o.fault)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://other.test/v1/chat/completions?key="+testKey, http.StatusMovedPermanently)
		})
		o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil)
		want := "testing/test-model: format (HTTP 301): the server redirects, which a request with a body and a key does not follow – set the base URL to where it leads: https://other.test…"
		if o.fault == nil || o.fault.Error() != want {
			t.Errorf("%v", o.fault)
		}
	})
}

func TestAnOverflowTellsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, reply(400, "application/json", `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`))
		if c := m.Candidate(); c.Window != DefaultWindow {
			t.Fatalf("window %d", c.Window)
		}
		o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil)
		if o.fault == nil || o.fault.Class != ninelives.ClassContextLength {
			t.Fatalf("%v", o.fault)
		}
		if c := m.Candidate(); c.Window != 8192 || c.WindowSource != "learnt" {
			t.Errorf("window %d (%s), want 8192 (learnt)", c.Window, c.WindowSource)
		}
	})
}

func TestASilentlyCutPromptIsToldAndLearnt(t *testing.T) {
	counted := func(n int) http.HandlerFunc {
		return reply(200, "application/json", strings.Replace(answer, `"prompt_tokens":7`, fmt.Sprintf(`"prompt_tokens":%d`, n), 1))
	}
	for _, c := range []struct {
		name    string
		base    string
		counted int
		window  int
		warned  bool
	}{
		{"cut to a context of 4096", "http://127.0.0.1:11434/v1", 4001, 4096, true},
		{"cut to a size that cannot be told", "http://127.0.0.1:11434/v1", 3000, 131072, true},
		{"counted whole", "http://127.0.0.1:11434/v1", 9000, 131072, false},
		{"elsewhere the count may leave out what is cached", "http://llm.test/v1", 4001, 131072, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := serve(t, counted(c.counted), BaseURL(c.base), Capabilities(func(k *ninelives.Capabilities) { k.Window, k.WindowSource = 131072, "family" }))
			m.candidate.WindowSource = "family"
			o := call(t, context.Background(), m, ninelives.Prompt(strings.Repeat("word", 10_000)), nil)
			if o.resp == nil || (len(o.resp.Warnings) > 0) != c.warned {
				t.Errorf("%s: %v, fault %v", c.name, o.resp, o.fault)
			}
			if k := m.Candidate(); k.Window != c.window {
				t.Errorf("%s: window %d, want %d", c.name, k.Window, c.window)
			}
		})
	}
}

func TestRepairsChangeTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies := make(chan string, 2)
		accepts := make(chan string, 2)
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies <- string(body)
			accepts <- r.Header.Get("Accept")
			time.Sleep(40 * time.Second) // longer than any headers clock: the answer comes whole
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		})
		req := prompt(ninelives.Clocks{})
		req.Attempt.Repairs = []ninelives.Repair{{Name: wire.RepairNoStream}}
		o := call(t, context.Background(), m, req, nil)
		if o.text != "Hello" || o.took != 40*time.Second {
			t.Errorf("text %q after %v, fault %v", o.text, o.took, o.fault)
		}
		if body := <-bodies; strings.Contains(body, `"stream":true`) {
			t.Errorf("a stream was asked for: %s", body)
		}
		if accept := <-accepts; accept != "application/json" {
			t.Errorf("Accept: %s", accept)
		}
	})
}

func TestAServerThatStreamsUnaskedIsReadAsAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, good)
		req := prompt(ninelives.Clocks{})
		req.Attempt.Repairs = []ninelives.Repair{{Name: wire.RepairNoStream}}
		if o := call(t, context.Background(), m, req, nil); o.text != "Hello" {
			t.Errorf("text %q, fault %v", o.text, o.fault)
		}
	})
}

func TestWhatCouldNotBeSentIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, good, Capabilities(func(c *ninelives.Capabilities) { c.Images = false }))
		req := prompt(ninelives.Clocks{})
		req.Messages[0].Parts = append(req.Messages[0].Parts, ninelives.Image{MediaType: "image/png", Data: []byte("png")})
		o := call(t, context.Background(), m, req, nil)
		if o.resp == nil || len(o.notes) == 0 || !strings.Contains(o.notes[0], "image") {
			t.Errorf("notes %q, fault %v", o.notes, o.fault)
		}
	})
}

func TestAnswersOfAnySizeAreNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			block := strings.Repeat("x", 64<<10)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, block); err != nil {
					return
				}
			}
		})
		o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil)
		if o.fault == nil || o.fault.Class != ninelives.ClassUnknown || o.fault.Status != 500 || len(o.fault.Message) > 1000 {
			t.Errorf("%.200v", o.fault)
		}
	})
}

func TestWhatBreaksAfterTheEndOfAnAnswerIsNoFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			say(w, r, text("Hello"), finish)
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			c.Close() // no final chunk
		})
		if o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil); o.text != "Hello" || o.resp == nil {
			t.Errorf("text %q, fault %v", o.text, o.fault)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			say(w, r, text("Hel"))
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
		o := call(t, context.Background(), m, prompt(ninelives.Clocks{}), nil)
		if o.fault == nil || o.fault.Class != ninelives.ClassStreamBroken || o.fault.Partial == nil || o.fault.Partial.Text() != "Hel" {
			t.Errorf("before it, it is: %+v", o.fault)
		}
	})
}
