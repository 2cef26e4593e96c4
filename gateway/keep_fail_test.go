package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ninelives-ai/ninelives/journal"
)

// keeping is a gateway with a journal, or with what it is told of one.
func keeping(t *testing.T, set JournalSettings, options Options) *httptest.Server {
	t.Helper()
	g := New(Settings{Routes: []Route{{Name: "default", Targets: []Target{{Model: wordy{"Hello"}}}}}, Journal: set}, options)
	t.Cleanup(g.Close)
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return server
}

// failures is how often the gateway counts that its journal could not be written.
func failures(t *testing.T, server *httptest.Server) string {
	t.Helper()
	_, text := get(t, server.URL+"/metrics")
	_, text, _ = strings.Cut(text, "\nninelives_journal_errors_total ")
	text, _, _ = strings.Cut(text, "\n")
	return text
}

// Whether calls are kept, served without or refused, by what there is of a
// journal and what is wanted of it.
func TestCallsThatCannotBeKept(t *testing.T) {
	why := errors.New("it is a directory")
	for name, c := range map[string]struct {
		set    JournalSettings
		broken error
		status int
		count  string
	}{
		"none, and none is wanted":         {JournalSettings{}, nil, 200, "0"},
		"none, although calls must be":     {JournalSettings{Refuse: true}, nil, 503, "1"},
		"a broken one":                     {JournalSettings{}, why, 200, "1"},
		"a broken one, although they must": {JournalSettings{Refuse: true}, why, 503, "1"},
		"it is off":                        {JournalSettings{Off: true}, why, 200, "0"},
		"it is off, and they must":         {JournalSettings{Off: true, Refuse: true}, why, 200, "0"},
	} {
		server := keeping(t, c.set, Options{NoJournal: c.broken})
		resp, text := post(t, server.URL+"/v1/chat/completions", hi)
		if resp.StatusCode != c.status || failures(t, server) != c.count || resp.Header.Get("X-Ninelives-Call") != "" || strings.Contains(text, why.Error()) {
			t.Errorf("%s: %s, %s failures, %s", name, resp.Status, failures(t, server), text)
		}
	}
}

// A journal whose file was removed promises nothing: what is written to it ends
// with the process.
func TestAJournalThatWasRemovedKeepsNothing(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "journal.db")
		j, err := journal.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = j.Close() }()
		server := keeping(t, JournalSettings{Refuse: refuse}, Options{Journal: j})
		if resp, text := post(t, server.URL+"/v1/chat/completions", hi); resp.StatusCode != 200 || resp.Header.Get("X-Ninelives-Call") == "" {
			t.Fatalf("%s %s", resp.Status, text)
		}
		if err := os.Rename(path, path+".old"); err != nil {
			t.Fatal(err)
		}
		want := http.StatusOK
		if refuse {
			want = http.StatusServiceUnavailable
		}
		resp, text := post(t, server.URL+"/v1/chat/completions", hi)
		if resp.StatusCode != want || resp.Header.Get("X-Ninelives-Call") != "" || failures(t, server) != "1" {
			t.Errorf("refuse %v: %s, call %q, %s failures, %s", refuse, resp.Status, resp.Header.Get("X-Ninelives-Call"), failures(t, server), text)
		}
		if err := os.Rename(path+".old", path); err != nil {
			t.Fatal(err)
		}
		if resp, _ := post(t, server.URL+"/v1/chat/completions", hi); resp.StatusCode != 200 || resp.Header.Get("X-Ninelives-Call") == "" {
			t.Errorf("when it is back: %s", resp.Status)
		}
	}
}

// Embeddings are calls as well: no more of them run at a time than may.
func TestEmbeddingsCountAsCallsUnderWay(t *testing.T) {
	held, going := make(chan struct{}), make(chan struct{})
	f := newFortress(t, func(w http.ResponseWriter, r *http.Request) {
		close(held)
		<-going
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(chatAnswer))
	}, func(set *Settings) { set.Limits.InFlight = 1 })
	done := make(chan struct{})
	go func() {
		defer close(done)
		if answer := f.raw(chatOf(hi)); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
			t.Error(answer)
		}
	}()
	<-held
	for path, body := range map[string]string{"/v1/embeddings": `{"model":"x","input":"hi"}`, "/v1/chat/completions": hi} {
		resp, text := post(t, "http://"+f.address+path, body)
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "2" || !strings.Contains(text, "as many calls under way as it may have") {
			t.Errorf("%s: %s %s", path, resp.Status, text)
		}
	}
	close(going)
	<-done
	if n := f.asked.Load(); n != 1 {
		t.Errorf("the upstream was asked %d times", n)
	}
}
