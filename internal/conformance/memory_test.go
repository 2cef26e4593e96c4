package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
)

// remembering is a memory whose model is behind HTTP, and does what its steps say.
type remembering struct {
	*agent.Memory
	srv *chaos.Server
	dir string

	mu       sync.Mutex
	archived []agent.Archive
}

func remembers(t *testing.T, test func(t *testing.T, r *remembering), steps ...chaos.Step) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &remembering{srv: chaos.New(chaos.Scenario{Name: "scripted", Steps: steps}), dir: t.TempDir()}
		m, err := provider.Open("scripted", provider.Provider("sim"), provider.BaseURL("http://sim.sim/v1"), provider.Protocol(ninelives.OpenAIChat),
			provider.Dial(r.srv.Dial), provider.Key(provider.NewSecret("sk-not-for-anyone")))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.srv.Close)
		t.Cleanup(m.(*provider.Model).CloseIdleConnections)
		model := heal.New(m)
		r.Memory = agent.NewMemory(func() ninelives.Model { return model }, agent.MemoryDirs{Project: r.dir}, agent.DefaultSettings().Memory)
		defer r.Close()
		r.OnIdle(agent.History{Session: "s", Messages: []ninelives.Message{ninelives.UserText("We test with make.")}, Since: time.Now(),
			Record: func(a agent.Archive) error {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.archived = append(r.archived, a)
				return nil
			}})
		test(t, r)
	})
}

func (r *remembering) recorded() []agent.Archive {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]agent.Archive(nil), r.archived...)
}

func (r *remembering) read(name string) string {
	b, _ := os.ReadFile(filepath.Join(r.dir, name))
	return string(b)
}

// Nobody waits for the memory: it outlasts what a turn would not.
func TestTheMemoryOutlastsAnOutage(t *testing.T) {
	remembers(t, func(t *testing.T, r *remembering) {
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if got := r.recorded(); len(got) != 1 || got[0].Raw {
			t.Fatalf("recorded %+v after %d requests: %s", got, len(r.srv.Log()), r.Problem())
		}
		if got := r.read(agent.MemoryFile); !strings.HasSuffix(got, "- 2000-01-01: tests run with make\n") {
			t.Errorf("the memory is %q", got)
		}
		if n := len(r.srv.Log()); n < 4 {
			t.Errorf("it was asked %d times", n)
		}
	}, chaos.Step{Times: 2, Error: chaos.RateLimit, Hint: chaos.HintSeconds, Wait: 20 * time.Second},
		chaos.Step{For: time.Minute, Error: chaos.Overloaded}, chaos.Step{Text: "project: tests run with make"})
}

// Whatever is wrong with the answer, the history is put away once and not
// asked about again.
func TestTheMemoryPutsAwayWhatNobodySummarises(t *testing.T) {
	for name, step := range map[string]chaos.Step{
		"no money":          {Error: chaos.Billing},
		"a refusal":         {Refusal: "I cannot help with that."},
		"another answer":    {Text: "I am only a model."},
		"cut off":           {Text: strings.Repeat("project: x\n", 50), Truncate: 8},
		"nothing, for ever": {Empty: chaos.EmptyNone},
	} {
		t.Run(name, func(t *testing.T) {
			remembers(t, func(t *testing.T, r *remembering) {
				time.Sleep(20 * time.Hour)
				synctest.Wait()
				if got := r.recorded(); len(got) != 1 || !got[0].Raw {
					t.Fatalf("recorded %+v after %d requests: %s", got, len(r.srv.Log()), r.Problem())
				}
				n := len(r.srv.Log())
				if !strings.Contains(r.read("MEMORY.archive.md"), "We test with make.") || r.read(agent.MemoryFile) != "" {
					t.Errorf("the archive is %q, the memory %q", r.read("MEMORY.archive.md"), r.read(agent.MemoryFile))
				}
				time.Sleep(100 * time.Hour)
				synctest.Wait()
				if again := len(r.srv.Log()); again != n {
					t.Errorf("%d requests, and %d later", n, again)
				}
			}, step)
		})
	}
}

// A turn does not wait for the memory, whatever that waits for: a backoff of a
// minute or a stream that stalls. Upstream is hung up on.
func TestATurnEndsTheMemorysRequest(t *testing.T) {
	for name, step := range map[string]chaos.Step{
		"a long wait": {Error: chaos.RateLimit, Hint: chaos.HintSeconds, Wait: 50 * time.Second},
		"a stall":     {First: time.Hour, Text: "project: late"},
	} {
		t.Run(name, func(t *testing.T) {
			remembers(t, func(t *testing.T, r *remembering) {
				time.Sleep(10*time.Minute + time.Second)
				synctest.Wait()
				if n := len(r.srv.Log()); n != 1 {
					t.Fatalf("%d requests", n)
				}
				began := time.Now()
				ended := r.OnTurn("other")
				r.srv.Wait()
				if took := time.Since(began); took != 0 {
					t.Errorf("it took %s", took)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := len(r.srv.Log()); n != 1 || len(r.recorded()) != 0 {
					t.Errorf("beside a turn: %d requests, recorded %+v", n, r.recorded())
				}
				ended()
				synctest.Wait()
				began = time.Now()
				r.Close()
				if took := time.Since(began); took != 0 || len(r.recorded()) != 0 {
					t.Errorf("closing took %s, recorded %+v", took, r.recorded())
				}
			}, step)
		})
	}
}
