package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// OpenAI's own spelling, out of order as some servers send it.
const vectors = `{
  "object": "list",
  "data": [
    {"object": "embedding", "index": 1, "embedding": [0.5, -1]},
    {"object": "embedding", "index": 0, "embedding": "AACAPwAAAEA="}
  ],
  "model": "test-model-0001",
  "usage": {"prompt_tokens": 5, "total_tokens": 5}
}
`

func embedFault(t *testing.T, err error) *ninelives.Fault {
	t.Helper()
	var f *ninelives.Fault
	if !errors.As(err, &f) {
		t.Fatalf("no fault: %v", err)
	}
	return f
}

func TestVectorsComeInTheOrderOfTheInputs(t *testing.T) {
	for _, p := range []ninelives.Protocol{ninelives.OpenAIChat, ninelives.OpenAIResponses} {
		synctest.Test(t, func(t *testing.T) {
			m := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				const want = `{"model":"test-model","input":["a","ü"],"dimensions":2,"user":"u","x":1}`
				if r.URL.Path != "/v1/embeddings" || string(body) != want || r.Header.Get("Authorization") != "Bearer "+testKey {
					t.Errorf("%s %s %v", r.URL.Path, body, r.Header)
				}
				say(w, r, vectors)
			}, Protocol(p))
			got, err := m.Embed(context.Background(), &ninelives.EmbedRequest{Texts: []string{"a", "ü"}, Dimensions: 2, User: "u",
				Extra: ninelives.Extra{Protocol: ninelives.OpenAIChat, JSON: []byte(`{"x":1}`)}})
			if err != nil {
				t.Fatal(err)
			}
			first, err1 := got.Floats(0)
			second, err2 := got.Floats(1)
			if err1 != nil || err2 != nil || fmt.Sprint(first, second) != "[1 2] [0.5 -1]" {
				t.Errorf("vectors %v %v, %v %v", first, second, err1, err2)
			}
			if got.Model != "test-model-0001" || got.Usage.Input != 5 || got.Candidate != "testing/test-model" || got.Attempts != 1 || got.Raw != nil {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A client's bytes go on as they are but for the model's name, and so does the answer.
func TestEmbeddingsOfTheSameProtocolAreRelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := []byte(`{ "input":["a", "b"],"model" : "mine", "future": {"x": 1.0} }`)
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got, _ := io.ReadAll(r.Body)
			if want := bytes.Replace(body, []byte(`"mine"`), []byte(`"test-model"`), 1); !bytes.Equal(got, want) {
				t.Errorf("sent %s", got)
			}
			say(w, r, vectors)
		})
		at := bytes.Index(body, []byte(`"mine"`))
		got, err := m.Embed(context.Background(), &ninelives.EmbedRequest{Texts: []string{"a", "b"},
			Raw: &ninelives.Raw{Protocol: ninelives.OpenAIChat, Body: body, Model: [2]int{at, at + 6}}})
		if err != nil || string(got.Raw) != vectors {
			t.Errorf("answer %s, %v", got.Raw, err)
		}
	})
}

// Gemini has one address for one text, another for many, and a limit of 100.
func TestGeminiEmbedsInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		m := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var many struct {
				Requests []struct {
					Model                string
					Content              struct{ Parts []struct{ Text string } }
					OutputDimensionality int
				}
			}
			if err := json.Unmarshal(body, &many); err != nil {
				t.Error(err)
			}
			asked = append(asked, fmt.Sprint(r.URL.Path, " ", len(many.Requests)))
			if len(many.Requests) == 0 {
				if string(body) != `{"model":"models/test-model","content":{"parts":[{"text":"200"}]},"outputDimensionality":2}` {
					t.Errorf("body %s", body)
				}
				say(w, r, `{"embedding":{"values":[200,0]}}`)
				return
			}
			var parts []string
			for _, q := range many.Requests {
				parts = append(parts, `{"values":[`+q.Content.Parts[0].Text+`,0]}`)
			}
			say(w, r, `{"embeddings":[`+strings.Join(parts, ",")+`],"usageMetadata":{"promptTokenCount":100}}`)
		}, Protocol(ninelives.Gemini), BaseURL("http://llm.test"))
		req := &ninelives.EmbedRequest{Dimensions: 2}
		for i := range 201 {
			req.Texts = append(req.Texts, fmt.Sprint(i))
		}
		got, err := m.Embed(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		const many, one = "/v1beta/models/test-model:batchEmbedContents 100", "/v1beta/models/test-model:embedContent 0"
		if want := fmt.Sprint([]string{many, many, one}); fmt.Sprint(asked) != want {
			t.Errorf("asked %v", asked)
		}
		for i := range req.Texts {
			if string(got.Vectors[i]) != fmt.Sprintf("[%d,0]", i) {
				t.Fatalf("vector %d is %s", i, got.Vectors[i])
			}
		}
		if got.Usage.Input != 200 || got.Attempts != 1 {
			t.Errorf("%+v", got)
		}
	})
}

func TestAnAnswerWithoutAllItsVectorsIsNone(t *testing.T) {
	one := `{"index":0,"embedding":[1,2]}`
	for name, c := range map[string]struct {
		status int
		body   string
		class  ninelives.Class
		says   string
	}{
		"one is missing":       {200, `{"data":[` + one + `]}`, ninelives.ClassStreamBroken, "no vector for input 2 of 2"},
		"one is null":          {200, `{"data":[` + one + `,{"index":1,"embedding":null}]}`, ninelives.ClassStreamBroken, "no vector for input 2"},
		"one is empty":         {200, `{"data":[` + one + `,{"index":1,"embedding":[]}]}`, ninelives.ClassStreamBroken, "vector of input 2 is empty"},
		"one is shorter":       {200, `{"data":[` + one + `,{"index":1,"embedding":[1]}]}`, ninelives.ClassStreamBroken, "has 1 dimensions, and 2 are wanted"},
		"cut":                  {200, `{"data":[{"index":0,"embedding":[1,`, ninelives.ClassStreamBroken, "no valid JSON"},
		"a page":               {200, "<html><body>502 Bad Gateway</body></html>", ninelives.ClassFormat, "web page"},
		"nothing":              {200, "", ninelives.ClassEmpty, ""},
		"an error":             {429, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, ninelives.ClassRateLimit, ""},
		"an error within":      {200, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, ninelives.ClassRateLimit, ""},
		"an error with a key":  {401, `{"error":{"message":"Incorrect API key provided: ` + testKey + `","code":"invalid_api_key"}}`, ninelives.ClassAuth, ""},
		"no such model there":  {404, `{"error":{"message":"The model does not exist","code":"model_not_found"}}`, ninelives.ClassModelNotFound, ""},
		"a text that is long":  {400, `{"error":{"message":"This model's maximum context length is 8192 tokens, however you requested 9000 tokens","type":"invalid_request_error"}}`, ninelives.ClassContextLength, ""},
		"a server that is out": {503, ``, ninelives.ClassOverloaded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				m := serve(t, func(w http.ResponseWriter, r *http.Request) {
					asked++
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				})
				got, err := m.Embed(context.Background(), &ninelives.EmbedRequest{Texts: []string{"a", "b"}})
				f := embedFault(t, err)
				if got != nil || f.Class != c.class || !strings.Contains(f.Message, c.says) || asked != 1 {
					t.Errorf("class %s, %q, asked %d times", f.Class, f.Message, asked)
				}
				if f.Candidate != "testing/test-model" || strings.Contains(f.Error(), testKey) {
					t.Errorf("fault %v", f)
				}
			})
		})
	}
}

func TestWhatCannotBeEmbeddedIsNotSent(t *testing.T) {
	for _, c := range []struct {
		protocol ninelives.Protocol
		req      ninelives.EmbedRequest
	}{
		{ninelives.AnthropicMessages, ninelives.EmbedRequest{Texts: []string{"a"}}},
		{ninelives.OpenAIChat, ninelives.EmbedRequest{}},
		{ninelives.OpenAIChat, ninelives.EmbedRequest{Texts: []string{"a"}, Tokens: [][]int{{1}}}},
		{ninelives.Gemini, ninelives.EmbedRequest{Tokens: [][]int{{1}}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, Protocol(c.protocol))
			_, err := m.Embed(context.Background(), &c.req)
			if f := embedFault(t, err); f.Class != ninelives.ClassFormat || f.Billed != ninelives.BilledNo {
				t.Errorf("%+v", f)
			}
		})
	}
}

// Vectors are under the clocks of an answer that does not stream.
func TestEmbeddingsEndAtTheirClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body) // only then it is seen that the client leaves
			<-r.Context().Done()
		})
		start := time.Now()
		_, err := m.Embed(context.Background(), &ninelives.EmbedRequest{Texts: []string{"a"},
			Attempt: &ninelives.Attempt{Clocks: ninelives.Clocks{Total: 7 * time.Second}}})
		if f := embedFault(t, err); f.Class != ninelives.ClassTimeout || time.Since(start) != 7*time.Second {
			t.Errorf("%v after %s", f, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start = time.Now()
		if _, err := m.Embed(ctx, &ninelives.EmbedRequest{Texts: []string{"a"}}); err == nil || time.Since(start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}
