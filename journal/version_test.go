package journal

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

// kept is a journal that an earlier version has written, kept in testdata as
// that version left it. The first one also left the log of its transactions.
type kept struct {
	files                                []string
	complete, failed, resuming, canceled string
	session                              string
}

var earlier = map[string]kept{
	"schema 1": {[]string{"v1.db", "v1.db-wal"}, "1m8nw8w8e9szpgkq", "1m8nw8w8hsy16v9p", "1m8nw8w8m04rkawq", "1m8nw8w8naa3ykfq", ""},
	"schema 2": {[]string{"v2.db"}, "1m8nw90fca5r9nhy", "1m8nw90fw46c6ps7", "1m8nw90fykpakeqf", "1m8nw90fykpakeqg", "1m8nw90fznc2v861"},
}

// unpack writes the files of the journal and gives its path.
func (k kept) unpack(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "j")
	for _, name := range k.files {
		f, err := os.Open(filepath.Join("testdata", name+".gz"))
		must(t, err)
		in, err := gzip.NewReader(f)
		must(t, err)
		data, err := io.ReadAll(in)
		must(t, err)
		must(t, f.Close())
		must(t, os.WriteFile(path+name[len("v1.db"):], data, 0o600))
	}
	return path
}

// check says what is not read as it was written.
func (k kept) check(t *testing.T, j *Journal) {
	t.Helper()
	r := call(t, j, k.complete)
	want := &ninelives.Request{
		Model: "claude", MaxTokens: 100,
		Messages: []ninelives.Message{
			ninelives.SystemText("be brief"),
			{Role: ninelives.RoleUser, Parts: []ninelives.Part{ninelives.Text{Text: "Why do cats land on their feet? \u00fc\x00\u2028"}, ninelives.Image{MediaType: "image/png", Data: []byte{0, 1, 255}}}},
			{Role: ninelives.RoleAssistant, Parts: []ninelives.Part{ninelives.ToolCall{ID: "1", Name: "f", Arguments: `{"a":1}`}}},
			{Role: ninelives.RoleTool, Parts: []ninelives.Part{ninelives.ToolResult{CallID: "1", Content: []ninelives.Part{ninelives.Text{Text: "42"}}}}},
			ninelives.UserText("go on"),
		},
		Tools: []ninelives.Tool{{Name: "f", Schema: []byte(`{"type":"object"}`)}},
	}
	answer := &Outcome{Response: &ninelives.Response{ID: "msg_1", Model: "claude", Message: ninelives.AssistantText("Righting reflex."), Finish: ninelives.FinishStop, Usage: ninelives.Usage{Input: 12, Output: 4}}}
	if !reflect.DeepEqual(r.Request, want) || r.State != StateComplete || r.Source != "ask" || r.Title != "go on" || len(r.Notices) != 1 || r.Notices[0].Candidate != "anthropic/claude" || len(r.Damaged) > 0 || r.Labels["preset"] != "hardened" {
		t.Errorf("complete: %+v", r)
	}
	if !reflect.DeepEqual(r.Outcome, answer) {
		t.Errorf("answered: %+v", r.Outcome)
	}
	if r := call(t, j, k.failed); r.State != StateFailed || r.Reason != ninelives.ClassBilling || r.ResumedBy != k.resuming || r.Resumable() || r.Outcome == nil || r.Outcome.Fault == nil || r.Outcome.Fault.Status != 402 || r.Outcome.Error == "" || len(r.Damaged) > 0 {
		t.Errorf("failed: %+v", r)
	}
	if r := call(t, j, k.canceled); r.State != StateCanceled || !r.Resumable() || r.Request == nil || r.Request.Messages[0].Text() != "third" || len(r.Damaged) > 0 {
		t.Errorf("canceled: %+v", r)
	}
	if r := call(t, j, k.resuming); r.State != StateInterrupted || r.Resumes != k.failed || r.Request.Messages[0].Text() != "second" || len(r.Damaged) > 0 {
		t.Errorf("resuming: %+v", r)
	}
	list, damaged, err := j.Calls(context.Background(), Filter{Source: "ask", Limit: -1})
	if err != nil || len(damaged) > 0 || len(list) != 4 {
		t.Errorf("%d calls, %v, %v", len(list), damaged, err)
	}
	if k.session == "" {
		return
	}
	sum, entries := read(t, j, k.session)
	if sum.Title != "a longer talk" || sum.State != "busy" || sum.Labels["directory"] != "/tmp/x" || sum.Running || len(entries) < 3 || string(entries[0].Data) != `"one"` || string(entries[1].Data) != `"two"` || entries[2].Kind != "bare" || entries[2].Data != nil {
		t.Errorf("session: %+v %v", sum, entries)
	}
}

func TestJournalsOfEarlierVersionsAreReadAndGoneOnWith(t *testing.T) {
	for name, k := range earlier {
		t.Run(name, func(t *testing.T) {
			path := k.unpack(t)
			j, err := Open(path)
			must(t, err)
			k.check(t, j)
			// What the gateway does, in the same file.
			id := beginCall(t, j, secretCall())
			must(t, j.End(t.Context(), id, secretEnd()))
			if r := call(t, j, id); r.State != StateFailed || r.Raw == nil || r.Cost != 0.5 {
				t.Errorf("%+v", r)
			}
			if money, tokens, err := j.Spent(t.Context(), "team", time.Now().Add(-time.Hour)); err != nil || money != 0.5 || tokens != 7 {
				t.Errorf("%v %v %v", money, tokens, err)
			}
			// What was left is taken up, once.
			next, err := j.Begin(t.Context(), Call{Source: "again", Request: ninelives.Prompt("second"), Resumes: k.resuming})
			must(t, err)
			if _, err := j.Begin(t.Context(), Call{Resumes: k.resuming}); !errors.Is(err, ErrResumed) {
				t.Errorf("a second time: %v", err)
			}
			must(t, j.End(t.Context(), next, Outcome{Response: answer("done")}))
			s := newSession(t, j, "new")
			must(t, s.Close())
			if k.session != "" {
				s, entries := take(t, j, k.session)
				must(t, s.Append(t.Context(), nil, words("more")...))
				must(t, s.Close())
				if len(entries) != 3 {
					t.Errorf("%d entries", len(entries))
				}
			}
			must(t, j.Close())

			j = openTest(t, path) // it is up to date now
			k.check(t, j)
			if r := call(t, j, next); r.State != StateComplete || r.Resumes != k.resuming {
				t.Errorf("%+v", r)
			}
			if got, err := j.Prune(t.Context(), time.Now().Add(time.Hour), Policy{Source: "ask", Interrupted: -1, Account: -1}); err != nil || got.Contents != 3 {
				t.Errorf("%+v %v", got, err)
			}
			if r := call(t, j, k.complete); r.Request != nil || r.Outcome == nil || r.Outcome.Response != nil || r.Removed.IsZero() || r.State != StateComplete || len(r.Damaged) > 0 {
				t.Errorf("without its content: %+v", r)
			}
			if r := call(t, j, k.resuming); r.Request == nil || r.State != StateInterrupted {
				t.Errorf("what can be taken up: %+v", r)
			}
		})
	}
}

func TestAJournalOfAnEarlierVersionSurvivesBeingKilledWhileItIsBroughtUpToDate(t *testing.T) {
	for name, k := range earlier {
		killed := 0
		for point := 1; point <= 4; point++ {
			path := k.unpack(t)
			if err := command("open", path, point).Run(); err != nil {
				killed++
			}
			k.check(t, openTest(t, path))
		}
		if killed < 3 { // when it is made sure of, when it is marked, when it is up to date
			t.Errorf("%s: it was killed %d times only", name, killed)
		}
	}
}
