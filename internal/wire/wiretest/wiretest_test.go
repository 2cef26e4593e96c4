package wiretest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

// judge counts the complaints of a comparison.
type judge struct {
	testing.TB
	complaints []string
}

func (j *judge) Helper() {}
func (j *judge) Errorf(format string, args ...any) {
	j.complaints = append(j.complaints, format)
}
func (j *judge) Fatalf(format string, args ...any) {
	j.Errorf(format, args...)
	panic(j)
}

// verdict is how many complaints a comparison makes.
func verdict(ex Exchange, resp *ninelives.Response, err error) (complaints []string) {
	j := &judge{}
	defer func() {
		if r := recover(); r != nil && r != any(j) {
			panic(r)
		}
		complaints = j.complaints
	}()
	Compare(j, ex, resp, err)
	return j.complaints
}

func TestCompareComplainsOfWhatDiffers(t *testing.T) {
	str := func(s string) *string { return &s }
	num := func(n int) *int { return &n }
	good := func() (Exchange, *ninelives.Response) {
		ex := Exchange{Expect: Expect{
			Text: "hi", Reasoning: "hm", FinishRaw: str("tool_calls"), Complete: true,
			Usage: &Usage{Input: num(3), Cached: num(0)},
			ToolCalls: []Call{
				{ID: str("a"), Name: "f", Arguments: []byte(`{"x":1}`), Raw: `{"x":1}`, Valid: true},
				{Name: "f", Arguments: []byte(`null`), Raw: ``},
			},
		}}
		return ex, &ninelives.Response{
			FinishRaw: "tool_calls",
			Usage:     ninelives.Usage{Input: 3, Reported: ninelives.UsageInput | ninelives.UsageCached},
			Message: ninelives.Message{Parts: []ninelives.Part{
				ninelives.Reasoning{Text: "hm"}, ninelives.Text{Text: "hi"},
				ninelives.ToolCall{ID: "a", Name: "f", Arguments: `{ "x": 1 }`}, ninelives.ToolCall{ID: "made", Name: "f", Arguments: `{}`},
			}},
		}
	}
	if ex, r := good(); len(verdict(ex, r, nil)) > 0 {
		t.Fatalf("a good answer: %q", verdict(ex, r, nil))
	}
	for name, spoil := range map[string]func(*ninelives.Response){
		"text":               func(r *ninelives.Response) { r.Message.Parts[1] = ninelives.Text{Text: "ho"} },
		"reasoning":          func(r *ninelives.Response) { r.Message.Parts[0] = ninelives.Text{Text: ""} },
		"finish":             func(r *ninelives.Response) { r.FinishRaw = "stop" },
		"a count":            func(r *ninelives.Response) { r.Usage.Input = 4 },
		"zero that was null": func(r *ninelives.Response) { r.Usage.Reported |= ninelives.UsageOutput },
		"null that was zero": func(r *ninelives.Response) { r.Usage.Reported = ninelives.UsageInput },
		"a lost call":        func(r *ninelives.Response) { r.Message.Parts = r.Message.Parts[:3] },
		"an id": func(r *ninelives.Response) {
			r.Message.Parts[2] = ninelives.ToolCall{ID: "b", Name: "f", Arguments: `{"x":1}`}
		},
		"arguments": func(r *ninelives.Response) {
			r.Message.Parts[2] = ninelives.ToolCall{ID: "a", Name: "f", Arguments: `{"x":2}`}
		},
		"a refusal": func(r *ninelives.Response) { r.Message.Parts = append(r.Message.Parts, ninelives.Refusal{Text: "no"}) },
	} {
		ex, r := good()
		spoil(r)
		if n := len(verdict(ex, r, nil)); n != 1 {
			t.Errorf("%s: %d complaints", name, n)
		}
	}
	ex, r := good()
	if len(verdict(ex, nil, &ninelives.Fault{Class: ninelives.ClassUnknown, Partial: r})) == 0 {
		t.Error("a fault passes for a complete answer")
	}
}

func TestCompareJudgesErrors(t *testing.T) {
	message := "boom"
	status := 429
	failed := Exchange{Expect: Expect{Error: &Error{Status: &status, Kind: "rate_limit", Message: &message}}}
	for name, c := range map[string]struct {
		err error
		bad int
	}{
		"right":        {&ninelives.Fault{Class: ninelives.ClassRateLimit, Status: 429, Message: "boom"}, 0},
		"wrong class":  {&ninelives.Fault{Class: ninelives.ClassAuth, Status: 429, Message: "boom"}, 1},
		"wrong status": {&ninelives.Fault{Class: ninelives.ClassRateLimit, Status: 500, Message: "boom"}, 1},
		"no message":   {&ninelives.Fault{Class: ninelives.ClassRateLimit, Status: 429}, 1},
		"no fault":     {errors.New("boom"), 1},
	} {
		if n := len(verdict(failed, nil, c.err)); n != c.bad {
			t.Errorf("%s: %d complaints", name, n)
		}
	}
	if n := len(verdict(failed, &ninelives.Response{}, nil)); n != 1 {
		t.Errorf("an answer: %d complaints", n)
	}
	finish := "length"
	late := Exchange{Expect: Expect{FinishRaw: &finish, StreamError: &Error{Kind: "overloaded", Message: &message}}}
	if n := len(verdict(late, &ninelives.Response{FinishRaw: "length"}, nil)); n != 1 {
		t.Errorf("an error after the end that nothing tells of: %d complaints", n)
	}
	if got := verdict(late, &ninelives.Response{FinishRaw: "length", Warnings: []string{"later: boom"}}, nil); len(got) > 0 {
		t.Errorf("an error after the end that a warning tells of: %q", got)
	}
}

func TestReplaysGiveTheSameBytes(t *testing.T) {
	ex := Exchange{Body: []byte("hello, world"), Chunks: []int{5, 2, 5}}
	for _, r := range ex.Replays() {
		var reads []string
		src := r.Reader()
		buf := make([]byte, 64)
		for {
			n, err := src.Read(buf)
			if err == io.EOF {
				break
			}
			reads = append(reads, string(buf[:n]))
		}
		want := map[string]int{"whole": 1, "pieces": 3, "bytes": 12}[r.Name]
		if len(reads) != want || strings.Join(reads, "") != "hello, world" {
			t.Errorf("%s: %q", r.Name, reads)
		}
	}
	if n := len(Cut(ex.Body, []int{99})); n != 2 {
		t.Errorf("sizes that do not add up: %d pieces, want seven bytes each", n)
	}
}

func TestExchangesAreReadWhereTheyLie(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, "acme", "one", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("meta.json", `{"provider":"acme","protocol":"openai-chat","model":"m","stream":true,"features":["text"]}`)
	write("request.json", `{"host":"api.acme.example","path":"/v1/chat/completions","body_file":"request.body"}`)
	write("request.body", `{}`)
	write("response.json", `{"status":200,"headers":{"a":"1","b":["2","3"]},"body_file":"response.body","chunk_bytes":[2]}`)
	write("response.body", "ok")
	write("expect.json", `{"text":"ok","complete":true}`)
	t.Setenv("NINELIVES_RECORDINGS", dir)
	list := Exchanges(t, ninelives.OpenAIChat)
	if len(list) != 1 {
		t.Fatalf("%d exchanges", len(list))
	}
	ex := list[0]
	if ex.Name != "acme/one" || ex.Host != "api.acme.example" || !ex.Has("text") || ex.Has("image") || string(ex.Request) != "{}" || string(ex.Body) != "ok" || ex.Header.Values("b")[1] != "3" || ex.Expect.Text != "ok" {
		t.Errorf("%+v", ex)
	}
}
