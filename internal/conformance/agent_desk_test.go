package conformance_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/provider"
	"github.com/ninelives-ai/ninelives/tool"
)

// desk is where an agent works: a directory with files and a journal, both on
// the disk. What is put down at one desk is found at another of the same home.
type desk struct {
	*testing.T
	home    string
	dir     string // the workspace
	journal *journal.Journal
	files   *tool.Workspace
}

// sits opens the journal and the workspace of a home.
func sits(t *testing.T, home string) *desk {
	t.Helper()
	d := &desk{T: t, home: home, dir: filepath.Join(home, "work")}
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.journal, err = journal.Open(filepath.Join(home, "journal.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.journal.Close() })
	if d.files, err = tool.OpenWorkspace(d.dir, d.journal.Blobs()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.files.Close() })
	return d
}

// full are the default settings of a user who need not be asked.
func full() agent.Settings {
	s := agent.DefaultSettings()
	s.Permissions.Mode = tool.ModeFull
	return s
}

// agent is one that works at this desk, with the tools of files and others.
func (d *desk) agent(m ninelives.Model, s agent.Settings, tools ...tool.Tool) *agent.Agent {
	return agent.New(m, agent.Workspace(d.dir), agent.Journal(d.journal), agent.Restorer(d.files), agent.With(s),
		agent.Tools(append(tool.Files(d.files), tools...)...))
}

// opens begins a session, and resumes takes one up.
func (d *desk) opens(a *agent.Agent) *agent.Session {
	d.Helper()
	s, err := a.Open(d.Context())
	return d.held(s, err)
}

func (d *desk) resumes(a *agent.Agent, id string) *agent.Session {
	d.Helper()
	s, err := a.Resume(d.Context(), id)
	return d.held(s, err)
}

func (d *desk) held(s *agent.Session, err error) *agent.Session {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = s.Close() })
	return s
}

// file reads a file of the workspace; "" where there is none.
func (d *desk) file(name string) string {
	b, _ := os.ReadFile(filepath.Join(d.dir, name))
	return string(b)
}

// acted is what a turn has told.
type acted struct {
	events []agent.Event
	end    agent.Ended
	err    error
}

// acts plays a turn; watch, which may be nil, is told of each event.
func acts(turn iter.Seq2[agent.Event, error], watch func(agent.Event)) (p acted) {
	for e, err := range turn {
		if err != nil {
			p.err = err
			return p
		}
		p.events = append(p.events, e)
		if end, ok := e.(agent.Ended); ok {
			p.end = end
		}
		if watch != nil {
			watch(e)
		}
	}
	return p
}

// ended holds how a turn has ended.
func (d *desk) ended(p acted, reason agent.Reason, text string) {
	d.Helper()
	if p.err != nil || p.end.Reason != reason || p.end.Text != text {
		d.Fatalf("it ended: %v %s %q: %s", p.err, p.end.Reason, p.end.Text, p.end.Message)
	}
}

// of gives the events of one type.
func of[E agent.Event](p acted) (list []E) {
	for _, e := range p.events {
		if e, ok := e.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

// streamed are the events of one type from the model's streams.
func streamed[E ninelives.Event](p acted) (list []E) {
	for _, e := range of[agent.Model](p) {
		if e, ok := e.Event.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

// noticed are the kinds of the healing notices, in order.
func noticed(p acted) string {
	var kinds []string
	for _, n := range streamed[ninelives.Notice](p) {
		kinds = append(kinds, string(n.Kind))
	}
	return strings.Join(kinds, " ")
}

// simulated opens "vendor/model" at a server that plays the steps, and refuses
// every history that the protocol's own vendor refuses.
func simulated(t *testing.T, spec string, p ninelives.Protocol, steps []chaos.Step, options ...provider.Option) (ninelives.Model, *chaos.Server) {
	t.Helper()
	steps = slices.Clone(steps)
	for i := range steps {
		steps[i].Reject = append(slices.Clone(steps[i].Reject), chaos.History)
	}
	srv := chaos.New(chaos.Scenario{Name: "*", Steps: steps})
	vendor, name, _ := strings.Cut(spec, "/")
	m, err := provider.Open(name, append([]provider.Option{
		provider.Provider(vendor), provider.BaseURL("http://" + vendor + ".sim/v1"), provider.Protocol(p), provider.Dial(srv.Dial),
		provider.Key(provider.NewSecret("sk-not-for-anyone")),
		provider.Capabilities(func(c *ninelives.Capabilities) {
			c.Tools, c.Window, c.WindowSource, c.MaxOutput = true, 200_000, "exact", 1000
		}),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	t.Cleanup(m.(*provider.Model).CloseIdleConnections)
	return m, srv
}

// uses is an answer of calls, whatever the request ends with.
func uses(calls ...chaos.Call) chaos.Step { return chaos.Step{Calls: calls, Insist: true} }

// use is a call, its arguments written with fmt.
func use(name, arguments string, args ...any) chaos.Call {
	return chaos.Call{Name: name, Arguments: fmt.Sprintf(arguments, args...)}
}

// writes is a call of write_file.
func writes(path, content string) chaos.Call {
	return use("write_file", `{"path":%q,"content":%q}`, path, content)
}

// gadget is a tool of a test.
type gadget struct {
	name     string
	readOnly bool
	run      func(ctx context.Context, c *tool.Call) tool.Result
}

func (g gadget) Spec() tool.Spec {
	return tool.Spec{Tool: ninelives.Tool{Name: g.name, Schema: []byte(`{"type":"object"}`)}, ReadOnly: g.readOnly}
}
func (g gadget) Needs([]byte) ([]tool.Need, error) { return nil, nil }
func (g gadget) Run(ctx context.Context, c *tool.Call) tool.Result {
	return g.run(ctx, c)
}

// accepted holds that a server has refused nothing but what its steps say.
func accepted(t testing.TB, srv *chaos.Server, but ...string) {
	t.Helper()
	srv.Wait()
	for _, e := range srv.Log() {
		if e.Status >= 400 && !slices.ContainsFunc(but, func(word string) bool { return strings.Contains(e.Did, word) }) {
			t.Errorf("%s refused request %d with %d: %s\n%s", e.Model, e.Seq, e.Status, e.Did, e.Body)
		}
	}
}
