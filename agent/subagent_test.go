package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// bySubagents is a model that plays main for the turn that the user began, and sub
// for a subagent; n counts the answers in the conversation.
func bySubagents(main, sub func(n int, task string) scene) *script {
	return plays(func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		n := 0
		for _, m := range r.Messages {
			if m.Role == ninelives.RoleAssistant {
				n++
			}
		}
		play := main
		if isSubagent(r) {
			play = sub
		}
		play(n, spokenBy(r.Messages, ninelives.RoleUser)[0])(ctx, r, yield)
	})
}

func isSubagent(r *ninelives.Request) bool {
	return strings.Contains(r.Messages[0].Text(), "You are a subagent")
}

// delegating is a model that gives a task to a subagent, which plays its scenes.
func delegating(sub ...scene) *script {
	return bySubagents(func(n int, _ string) scene {
		if n == 0 {
			return calls(call("", SubagentTool, `{"task":"find the flag","description":"find a flag"}`))
		}
		return says("the flag is found")
	}, func(n int, _ string) scene { return sub[min(n, len(sub)-1)] })
}

// changer is a tool that changes a file.
func changer(file string) *gadget {
	g := writer("edit", func(context.Context, *tool.Call) tool.Result {
		r := tool.TextResult("ok")
		r.Changes = []tool.Change{{Path: file}}
		return r
	})
	g.needs = []tool.Need{{Kind: tool.NeedWrite, Target: file}}
	return g
}

func fullMode() Settings {
	set := DefaultSettings()
	set.Permissions.Mode = tool.ModeFull
	return set
}

// toldBy are the results of the turn's calls.
func toldBy(s *Session) []string { return spokenBy(s.State().Messages(), ninelives.RoleTool) }

// childrenOf are the sessions of a session's subagents.
func childrenOf(t *testing.T, j *journal.Journal, id string) []journal.SessionSummary {
	t.Helper()
	list, damaged, err := j.Sessions(t.Context(), journal.SessionFilter{Labels: map[string]string{"parent": id}})
	if err != nil || len(damaged) > 0 {
		t.Fatal(err, damaged)
	}
	return list
}

func TestASubagentDoesItsTaskInASessionOfItsOwn(t *testing.T) {
	j := book(t)
	m := delegating(calls(call("", "edit", `{}`)), says("it is in flag.txt"))
	s := opened(t, m, Tools(changer("flag.txt")), With(fullMode()), Journal(j))
	p := turned(t, s, "where is the flag?")
	if p.end.Reason != ReasonComplete || p.end.Text != "the flag is found" || !slices.Equal(p.end.Changed, []string{"flag.txt"}) {
		t.Errorf("it ended as %s with %q, and changed %q", p.end.Reason, p.end.Text, p.end.Changed)
	}
	if got := toldBy(s); !slices.Equal(got, []string{"it is in flag.txt"}) {
		t.Errorf("the model was told %q", got)
	}
	if got := spokenBy(m.asked()[1].Messages, ninelives.RoleUser); !slices.Equal(got, []string{"find the flag"}) {
		t.Errorf("the subagent read %q", got)
	}
	for _, tool := range m.asked()[1].Tools {
		if tool.Name != "edit" {
			t.Errorf("the subagent has %s, one level too deep", tool.Name)
		}
	}
	var shown []string
	for _, o := range of[Output](p) {
		shown = append(shown, o.Text)
	}
	if want := []string{"edit flag.txt\n", "ended (complete) after 2 steps and 1 call\n"}; !slices.Equal(shown, want) {
		t.Errorf("shown was %q", shown)
	}
	list := childrenOf(t, j, s.ID())
	if len(list) != 1 || list[0].Title != "find the flag" || list[0].Running || list[0].Labels[LabelCall] != "call_1_1_0" {
		t.Fatalf("the session of the subagent is %+v", list)
	}
	if want := "2 steps, 1 call, session " + list[0].ID; of[Called](p)[0].Summary != want {
		t.Errorf("its summary is %q", of[Called](p)[0].Summary)
	}
	top, _, err := j.Sessions(t.Context(), journal.SessionFilter{Without: []string{LabelCall}})
	if err != nil || len(top) != 1 || top[0].ID != s.ID() {
		t.Errorf("without those of subagents the sessions are %+v, %v", top, err)
	}
}

func TestADeeperSettingLetsSubagentsStartSubagents(t *testing.T) {
	set := fullMode()
	set.Depth = 2
	m := bySubagents(func(n int, _ string) scene {
		if n == 0 {
			return calls(call("", SubagentTool, `{"task":"one"}`))
		}
		return says("done")
	}, func(n int, task string) scene {
		switch {
		case task == "two":
			if n == 0 {
				return calls(call("", "edit", `{}`))
			}
			return says("from the depth")
		case n == 0:
			return calls(call("", SubagentTool, `{"task":"two"}`))
		}
		return says("handed on")
	})
	s := opened(t, m, Tools(changer("a")), With(set))
	p := turned(t, s, "go")
	if got := toldBy(s); !slices.Equal(got, []string{"handed on"}) {
		t.Errorf("the model was told %q", got)
	}
	// Two answers of each of the three, two calls to delegate, one to edit.
	if p.end.Usage.Input != 600 || p.end.Calls != 3 || !slices.Equal(p.end.Changed, []string{"a"}) {
		t.Errorf("it counted %+v, %d calls, changed %q", p.end.Usage, p.end.Calls, p.end.Changed)
	}
	if tally := s.State().Tally(); tally.Calls != 3 || tally.PerTool[SubagentTool] != 2 || tally.PerTool["edit"] != 1 {
		t.Errorf("counted was %+v", tally)
	}
}

func TestASubagentHasOnlyTheToolsThatAreNamed(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"of all", `{"task":"x"}`, "edit look"},
		{"named", `{"task":"x","tools":["look"]}`, "look"},
		{"unknown", `{"task":"x","tools":["lok"]}`, `Error: a subagent cannot have the tool lok (did you mean "look"?). Nothing was done. It can have: edit, look`},
		{"too deep", `{"task":"x","tools":["subagent"]}`, `Error: a subagent cannot have the tool subagent. Nothing was done. It can have: edit, look`},
		{"research", `{"task":"x"}`, "look"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := SubagentTool
			if c.name == "research" {
				name = ResearchTool
			}
			m := bySubagents(func(n int, _ string) scene {
				if n == 0 {
					return calls(call("", name, c.args))
				}
				return says("done")
			}, func(int, string) scene { return says("looked") })
			s := opened(t, m, Tools(changer("a"), reader("look", echo)))
			turned(t, s, "go")
			got := toldBy(s)[0]
			for _, r := range m.asked() {
				if isSubagent(r) {
					var names []string
					for _, tool := range r.Tools {
						names = append(names, tool.Name)
					}
					got = strings.Join(names, " ")
				}
			}
			if got != c.want {
				t.Errorf("it has %q, want %q", got, c.want)
			}
		})
	}
}

// priced is a model whose answers cost a dollar each.
type priced struct{ *script }

func (priced) Candidate() ninelives.Candidate {
	return ninelives.Candidate{Provider: "test", Model: "scripted", Capabilities: ninelives.Capabilities{Price: ninelives.Price{Input: 10000}}}
}

// chatter says so many words, each an event, and then what follows.
func chatter(words int, last scene) scene {
	return func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
		for i := range words {
			if !yield(ninelives.TextDelta{Text: fmt.Sprintf("word %d ", i)}, nil) {
				return
			}
		}
		last(ctx, r, yield)
	}
}

func TestASubagentSharesTheGuardWithTheTurnThatStartedIt(t *testing.T) {
	looks := func(n int, _ string) scene { return calls(call("", "look", fmt.Sprintf(`{"n":%d}`, n))) }
	for _, c := range []struct {
		name   string
		set    func(*Settings)
		sub    func(n int, task string) scene
		stop   string // what stopped the subagent
		far    string
		reason Reason
		tally  Tally
	}{
		{"calls", func(s *Settings) { s.Guard.Calls = 4 }, looks,
			"Forced stop: reached maximum of 4 tool invocations.\nEvents: 0 · Tool calls: 4 ·", "4 steps, 3 calls", ReasonComplete,
			Tally{Calls: 4, Events: 1, Cost: 6}},
		{"calls of a tool", func(s *Settings) { s.Guard.PerTool = map[string]int{"look": 2} }, looks,
			"Forced stop: reached maximum of 2 look invocations.\nEvents: 0 · Tool calls: 3 ·", "3 steps, 2 calls", ReasonComplete,
			Tally{Calls: 3, Events: 1, Cost: 5}},
		{"events", func(s *Settings) { s.Guard.Events = 10 }, func(int, string) scene { return chatter(30, says("never")) },
			"Forced stop: reached maximum of 10 stream events.\nEvents: 10 · Tool calls: 1 ·", "0 steps, 0 calls", ReasonLimit,
			Tally{Calls: 1, Events: 10, Cost: 1}},
		{"cost", func(s *Settings) { s.Guard.Cost = 3 }, looks,
			"Forced stop: reached maximum cost of $3.00.\nEvents: 0 · Tool calls: 2 ·", "2 steps, 1 call", ReasonLimit,
			Tally{Calls: 2, Events: 0, Cost: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := book(t)
			set := DefaultSettings()
			c.set(&set)
			m := bySubagents(func(n int, _ string) scene {
				if n == 0 {
					return calls(call("", SubagentTool, `{"task":"x"}`))
				}
				return says("well")
			}, c.sub)
			s := opened(t, priced{m}, Tools(reader("look", echo)), With(set), Journal(j))
			p := turned(t, s, "go")
			got := toldBy(s)[0]
			want := "Error: the subagent gave no answer: it ended before it was done (limit): " + c.stop
			if !strings.HasPrefix(got, want) {
				t.Errorf("the model was told %q, want %q", got, want)
			}
			if want := "How far it came: " + c.far + "; its session is " + childrenOf(t, j, s.ID())[0].ID + "."; !strings.Contains(got, want) {
				t.Errorf("the model was told %q, want %q in it", got, want)
			}
			tally := s.State().Tally()
			if tally.Calls != c.tally.Calls || tally.Events != c.tally.Events || tally.Cost != c.tally.Cost {
				t.Errorf("counted was %d calls, %d events, $%v", tally.Calls, tally.Events, tally.Cost)
			}
			st := s.Status()
			if p.end.Reason != c.reason || p.end.Cost != tally.Cost || p.end.Events != tally.Events || p.end.Calls != tally.Calls || st.Cost != tally.Cost {
				t.Errorf("it ended as %s with $%v, %d events, %d calls; the status says $%v", p.end.Reason, p.end.Cost, p.end.Events, p.end.Calls, st.Cost)
			}
			if float64(p.end.Usage.Input)/100 != tally.Cost {
				t.Errorf("the usage is %+v", p.end.Usage)
			}
		})
	}
}

// The loop guard of the parent sees one call, whatever the subagent does.
func TestTheLoopGuardSeesASubagentAsOneCall(t *testing.T) {
	var args []string
	m := delegating(calls(call("", "look", `{}`)), calls(call("", "look", `{"b":1}`)), says("found"))
	s := opened(t, m, Tools(reader("look", func(_ context.Context, c *tool.Call) tool.Result {
		args = append(args, string(c.Arguments))
		return tool.TextResult("ok")
	})))
	turned(t, s, "go")
	if r := s.State().Tally().Recent; len(args) != 2 || len(r) != 1 || r[0].Name != SubagentTool {
		t.Errorf("after %q the guard looks at %+v", args, r)
	}
}

func TestWhatASubagentAsksForIsAskedInItsNameAndHoldsForItsParent(t *testing.T) {
	var asked []Question
	m := bySubagents(func(n int, _ string) scene {
		switch n {
		case 0:
			return calls(call("", SubagentTool, `{"task":"x","description":"edit the file"}`))
		case 1:
			return calls(call("", "edit", `{}`))
		}
		return says("done")
	}, func(n int, _ string) scene {
		if n == 0 {
			return calls(call("", "edit", `{}`))
		}
		return says("edited")
	})
	s := opened(t, m, Tools(changer("dir/a")), Journal(book(t)), Approve(func(_ context.Context, q Question) Decision {
		asked = append(asked, q)
		return Decision{Reply: ReplyAlways}
	}))
	p := turned(t, s, "go")
	if len(asked) != 1 || asked[0].Agent != "edit the file" || asked[0].Session == s.ID() || asked[0].Name != "edit" {
		t.Fatalf("asked was %+v", asked)
	}
	if rules := s.State().Rules(); len(rules) != 1 || rules[0].Target != "dir/**" || p.end.Reason != ReasonComplete {
		t.Errorf("the rules are %+v, and it ended as %s", rules, p.end.Reason)
	}
}

func TestAStopThatASubagentsQuestionIsAnsweredWithEndsTheTurn(t *testing.T) {
	m := delegating(calls(call("", "edit", `{}`)), says("never"))
	s := opened(t, m, Tools(changer("a")), Approve(func(context.Context, Question) Decision { return Decision{Reply: ReplyStop} }))
	p := turned(t, s, "go")
	if p.end.Reason != ReasonDenied || len(m.asked()) != 2 {
		t.Errorf("it ended as %s after %d requests", p.end.Reason, len(m.asked()))
	}
}

func TestASubagentMayNeverDoMoreThanItsParentMay(t *testing.T) {
	t.Run("nobody to ask", func(t *testing.T) {
		s := opened(t, delegating(calls(call("", "edit", `{}`)), says("no")), Tools(changer("a")))
		if p := turned(t, s, "go"); len(p.end.Changed) > 0 {
			t.Errorf("it changed %q", p.end.Changed)
		}
	})
	t.Run("a mode that is lowered meanwhile", func(t *testing.T) {
		var s *Session
		lower := reader("lower", func(ctx context.Context, c *tool.Call) tool.Result {
			if err := s.SetMode(ctx, tool.ModePlan); err != nil {
				t.Error(err)
			}
			return tool.TextResult("lowered from " + string(c.Mode))
		})
		m := delegating(calls(call("", "edit", `{}`)), calls(call("", "lower", `{}`)), calls(call("", "edit", `{"again":1}`)), says("it was"))
		s = opened(t, m, Tools(changer("a"), lower), With(fullMode()))
		turned(t, s, "go")
		got := spokenBy(m.asked()[4].Messages, ninelives.RoleTool)
		want := []string{"ok", "lowered from full", "Error: denied: writes a, and plan mode changes nothing"}
		if !slices.Equal(got, want) {
			t.Errorf("the subagent was told %q", got)
		}
	})
	t.Run("a rule that denies", func(t *testing.T) {
		set := fullMode()
		set.Permissions.Rules = []tool.Rule{{Action: tool.ActionDeny, Tool: "edit"}}
		s := opened(t, delegating(calls(call("", "edit", `{}`)), says("no")), Tools(changer("a")), With(set))
		if p := turned(t, s, "go"); len(p.end.Changed) > 0 {
			t.Errorf("it changed %q", p.end.Changed)
		}
	})
}

// researching asks n questions in one answer.
func researching(n int, sub func(n int, task string) scene) *script {
	return bySubagents(func(said int, _ string) scene {
		if said > 0 {
			return says("all found")
		}
		var list []ninelives.ToolCall
		for i := range n {
			list = append(list, call("", ResearchTool, fmt.Sprintf(`{"task":"question %d"}`, i)))
		}
		return calls(list...)
	}, sub)
}

func TestResearchRunsBesideEachOther(t *testing.T) {
	var began sync.WaitGroup
	began.Add(3)
	m := researching(3, func(_ int, task string) scene {
		return func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
			began.Done()
			began.Wait() // which it never would one after the other
			says("answer to "+task)(ctx, r, yield)
		}
	})
	s := opened(t, m, Tools(reader("look", echo)), Journal(book(t)))
	p := turned(t, s, "go")
	if got := toldBy(s); !slices.Equal(got, []string{"answer to question 0", "answer to question 1", "answer to question 2"}) {
		t.Errorf("the model was told %q", got)
	}
	if p.end.Usage.Input != 500 || p.end.Events != 4 {
		t.Errorf("counted was %+v and %d events", p.end.Usage, p.end.Events)
	}
}

func TestResearchBesideEachOtherNeverUsesMoreThanThereIs(t *testing.T) {
	set := DefaultSettings()
	set.Guard.Calls = 20
	m := researching(3, func(n int, task string) scene {
		return calls(call("", "look", fmt.Sprintf(`{"n":%d,"of":%q}`, n, task)))
	})
	var mu sync.Mutex
	looked := 0
	s := opened(t, m, With(set), Journal(book(t)), Tools(reader("look", func(_ context.Context, c *tool.Call) tool.Result {
		mu.Lock()
		defer mu.Unlock()
		looked++
		return tool.TextResult(string(c.Arguments))
	})))
	p := turned(t, s, "go")
	if tally := s.State().Tally(); looked != 17 || tally.Calls != 20 || tally.PerTool["look"] != 17 || tally.PerTool[ResearchTool] != 3 || p.end.Calls != 20 {
		t.Errorf("%d looks ran, counted were %+v", looked, tally)
	}
	for _, text := range toldBy(s) {
		if !strings.Contains(text, "Forced stop: reached maximum of 20 tool invocations.") {
			t.Errorf("the model was told %q", text)
		}
	}
}

func TestWhatOneSubagentSpendsStopsThoseBesideIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := DefaultSettings()
		set.Guard.Cost = 6
		// The first spends a dollar each second; the others speak on and on, and
		// would spend nothing before they end.
		m := researching(3, func(n int, task string) scene {
			return func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
				if task != "question 0" {
					time.Sleep(time.Second / 2)
				}
				for i := 0; task != "question 0" || i == 0; i++ {
					time.Sleep(time.Second)
					if ctx.Err() != nil || !yield(ninelives.TextDelta{Text: fmt.Sprintf("word %d ", i)}, nil) {
						return
					}
				}
				calls(call("", "look", fmt.Sprintf(`{"n":%d}`, n)))(ctx, r, yield)
			}
		})
		s := opened(t, priced{m}, Tools(reader("look", echo)), With(set))
		began := time.Now()
		p := turned(t, s, "go")
		if p.end.Reason != ReasonLimit || p.end.Limit != LimitCost || p.end.Cost != 6 || time.Since(began) != 5500*time.Millisecond {
			t.Errorf("it ended as %s (%s) after %v and $%v", p.end.Reason, p.end.Limit, time.Since(began), p.end.Cost)
		}
		for _, text := range toldBy(s) {
			if !strings.Contains(text, "Forced stop: reached maximum cost of $6.00.") {
				t.Errorf("the model is told %q", text)
			}
		}
	})
}

func TestAStopEndsAllSubagentsAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	var s *Session
	var began sync.WaitGroup
	began.Add(3)
	m := researching(3, func(_ int, task string) scene {
		return func(ctx context.Context, r *ninelives.Request, yield func(ninelives.Event, error) bool) {
			began.Done()
			if task == "question 0" {
				began.Wait()
				s.Stop()
			}
			hangs("I look")(ctx, r, yield)
		}
	})
	s, err = New(m, Workspace(t.TempDir()), Tools(reader("look", echo)), Journal(j)).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	p := turned(t, s, "go")
	if p.end.Reason != ReasonCanceled {
		t.Errorf("it ended as %s", p.end.Reason)
	}
	list := childrenOf(t, j, s.ID())
	got := toldBy(s)
	if len(list) != 3 || len(got) != 3 {
		t.Fatalf("there are %d subagents and the results %q", len(list), got)
	}
	for _, text := range got {
		if !strings.HasPrefix(text, "Error: the subagent gave no answer: it ended before it was done (canceled): stopped by the user\nHow far it came: 0 steps, 0 calls; its session is ") {
			t.Errorf("the model is told %q", text)
		}
	}
	for _, c := range list {
		if c.Running || c.State != string(ReasonCanceled) {
			t.Errorf("a subagent's session is left %+v", c)
		}
	}
}

func TestWhoeverLeavesTheLoopEndsTheSubagent(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, how := range []string{"left", "panic"} {
		s, err := New(delegating(calls(call("", "look", `{}`)), hangs("still")), Workspace(t.TempDir()), Tools(reader("look", echo))).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() { _ = recover() }()
			for e := range s.Turn(t.Context(), ninelives.UserText("go")) {
				if _, ok := e.(Output); ok {
					if how == "panic" {
						panic("the screen is broken")
					}
					break
				}
			}
		}()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What a subagent changed is taken back with its parent's turn, byte for byte.
func TestUndoTakesBackWhatASubagentChanged(t *testing.T) {
	j := book(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ws, err := tool.OpenWorkspace(dir, j.Blobs())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	m := delegating(
		calls(call("", "read_file", `{"path":"a.txt"}`)),
		calls(call("", "write_file", `{"path":"a.txt","content":"after\n"}`)),
		calls(call("", "write_file", `{"path":"new.txt","content":"new\n"}`)),
		says("written"))
	s := opened(t, m, Workspace(dir), Tools(tool.Files(ws)...), Restorer(ws), Journal(j), With(fullMode()))
	p := turned(t, s, "go")
	if want := []string{"a.txt", "new.txt"}; !slices.Equal(p.end.Changed, want) {
		t.Fatalf("changed was %q: %q", p.end.Changed, toldBy(s))
	}
	u, err := s.Undo(t.Context())
	if err != nil || len(u.Changes) != 2 || len(u.Conflicts) != 0 {
		t.Fatalf("undone was %+v, %v", u, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(b) != "before\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new.txt")); !os.IsNotExist(err) {
		t.Errorf("the new file is still there: %v", err)
	}
}

// Over HTTP, at a server that refuses what vendors refuse, with a cut stream and
// a limit of the rate in the subagent's own requests.
func TestASubagentHealsByItself(t *testing.T) {
	for _, p := range protocols {
		t.Run(string(p), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				use := func(name, args string) chaos.Step {
					return chaos.Step{Calls: []chaos.Call{{Name: name, Arguments: args}}, Insist: true}
				}
				m, srv := simulated(t, "sim/one", p, []chaos.Step{
					use(SubagentTool, `{"task":"look it up"}`),
					{Error: chaos.RateLimit, Times: 1},
					use("look", `{"q":1}`),
					{Text: "the answer is forty-two", After: 2, End: chaos.CutInside},
					{Text: "the answer is forty-two"},
					{Text: "done: forty-two"},
				})
				s := opened(t, heal.New(m), Tools(reader("look", echo)))
				got := turned(t, s, "find out")
				if got.end.Reason != ReasonComplete || got.end.Text != "done: forty-two" || got.end.Calls != 2 {
					t.Errorf("it ended as %s with %q after %d calls: %s", got.end.Reason, got.end.Text, got.end.Calls, got.end.Message)
				}
				if told := toldBy(s); !slices.Equal(told, []string{"the answer is forty-two"}) {
					t.Errorf("the model was told %q", told)
				}
				for _, e := range srv.Log() {
					if e.Status >= 400 && e.Status != 429 {
						t.Errorf("request %d was refused with %d: %s", e.Seq, e.Status, e.Did)
					}
				}
			})
		})
	}
}
