package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/journal"
	"github.com/ninelives-ai/ninelives/tool"
)

// The eight histories that break the rules of providers, after the integration
// tests a01 to a08 of OpenHands: each as a request, and as what can happen to a
// session. Every server here refuses what the protocol's own vendor refuses.

func calling(ids ...string) ninelives.Message {
	m := ninelives.Message{Role: ninelives.RoleAssistant}
	for _, id := range ids {
		m.Parts = append(m.Parts, ninelives.ToolCall{ID: id, Name: "look", Arguments: fmt.Sprintf(`{"at":%q}`, id)})
	}
	return m
}

func resulting(ids ...string) ninelives.Message {
	m := ninelives.Message{Role: ninelives.RoleTool}
	for _, id := range ids {
		m.Parts = append(m.Parts, ninelives.ToolResult{CallID: id, Name: "look", Content: []ninelives.Part{ninelives.Text{Text: "seen " + id}}})
	}
	return m
}

// unknown is what the model is told of a call whose result is not there.
const unknown = "It may or may not have taken effect"

var brokenHistories = []struct {
	name     string
	messages []ninelives.Message // after the first word of the user
	note     string              // what the caller is told; "" where nothing is wrong
	sent     []string            // what the provider reads
	unsent   []string            // and what it must not
}{
	{"a01 a call without a result",
		[]ninelives.Message{calling("one"), ninelives.UserText("and now?")},
		"1 tool call(s) had no result", []string{unknown, "and now?"}, nil},
	{"a01 a call without a result at the end",
		[]ninelives.Message{calling("one")},
		"1 tool call(s) had no result", []string{unknown}, nil},
	{"a02 a result without a call",
		[]ninelives.Message{resulting("one"), ninelives.UserText("and now?")},
		"1 tool result(s) without a call", []string{"and now?"}, []string{"seen one"}},
	{"a03 the user between call and result",
		[]ninelives.Message{calling("one"), ninelives.UserText("meanwhile"), resulting("one"), ninelives.UserText("and now?")},
		"1 tool result(s) were moved", []string{"seen one", "meanwhile"}, []string{unknown}},
	{"a04 the assistant between call and result",
		[]ninelives.Message{calling("one"), ninelives.AssistantText("still looking"), resulting("one"), ninelives.UserText("and now?")},
		"1 tool result(s) were moved", []string{"seen one", "still looking"}, []string{unknown}},
	{"a05 an id of two calls of one answer",
		[]ninelives.Message{calling("one", "one"), resulting("one", "one")},
		"", []string{"seen one"}, []string{unknown}},
	{"a05 an id of two answers",
		[]ninelives.Message{calling("one"), resulting("one"), calling("one"), resulting("one")},
		"", []string{"seen one"}, []string{unknown}},
	{"a05 two results of one call",
		[]ninelives.Message{calling("one"), resulting("one"), resulting("one"), ninelives.UserText("and now?")},
		"1 tool result(s) without a call", []string{"seen one"}, []string{unknown}},
	{"a06 a result of another id",
		[]ninelives.Message{calling("one"), resulting("two"), ninelives.UserText("and now?")},
		"1 tool call(s) had no result", []string{unknown}, []string{"seen two"}},
	{"a07 a result missing among several",
		[]ninelives.Message{calling("one", "two"), resulting("one"), ninelives.UserText("and now?")},
		"1 tool call(s) had no result", []string{"seen one", unknown}, nil},
	{"a08 results in another order",
		[]ninelives.Message{calling("one", "two"), resulting("two", "one")},
		"", []string{"seen one", "seen two"}, []string{unknown}},
	{"a08 results in another order, a message each",
		[]ninelives.Message{calling("one", "two"), resulting("two"), resulting("one")},
		"", []string{"seen one", "seen two"}, []string{unknown}},
}

// A request with a broken history is repaired before it is sent, and the caller
// is told; it never costs a refusal.
func TestBrokenHistoriesAreRepairedBeforeTheyAreSent(t *testing.T) {
	for _, c := range brokenHistories {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range protocols {
				synctest.Test(t, func(t *testing.T) {
					m, srv := simulated(t, "sim/one", p, []chaos.Step{{}})
					req := &ninelives.Request{
						Messages: append([]ninelives.Message{ninelives.SystemText("You are careful."), ninelives.UserText("Look.")}, c.messages...),
						Tools:    []ninelives.Tool{{Name: "look", Schema: []byte(`{"type":"object"}`)}},
					}
					before := fmt.Sprintf("%+v", req.Messages)
					text := ""
					var notes []string
					for e, err := range heal.New(m).Stream(t.Context(), req) {
						switch e := e.(type) {
						case nil:
							t.Errorf("%s: %v", p, err)
						case ninelives.TextDelta:
							text += e.Text
						case ninelives.Notice:
							if e.Kind == ninelives.NoticeTranslate {
								notes = append(notes, e.Text)
							}
						}
					}
					equal(t, string(p)+": answer", text, chaos.Answer)
					equal(t, string(p)+": the caller's history is left alone", fmt.Sprintf("%+v", req.Messages), before)
					accepted(t, srv)
					log := srv.Log()
					if len(log) != 1 {
						t.Fatalf("%s: %d requests", p, len(log))
					}
					toldOf := strings.Join(notes, "; ")
					equal(t, fmt.Sprintf("%s: told of the repair in %q", p, toldOf), c.note != "" && strings.Contains(toldOf, c.note) || c.note == "" && toldOf == "", true)
					for _, s := range c.sent {
						equal(t, fmt.Sprintf("%s: sent %q", p, s), bytes.Contains(log[0].Body, []byte(s)), true)
					}
					for _, s := range c.unsent {
						equal(t, fmt.Sprintf("%s: sent %q", p, s), bytes.Contains(log[0].Body, []byte(s)), false)
					}
				})
			}
		})
	}
}

// lookingAt is a tool whose later calls end first, and that may do something
// while it runs.

func lookingAt(during func(at string)) tool.Tool {
	return gadget{"look", true, func(_ context.Context, c *tool.Call) tool.Result {
		at := string(c.Arguments)
		if during != nil {
			during(at)
		}
		switch { // the first takes longest
		case strings.Contains(at, "one"):
			time.Sleep(3 * time.Second)
		case strings.Contains(at, "two"):
			time.Sleep(2 * time.Second)
		}
		return tool.TextResult("seen " + at)
	}}
}

// vendors are models of those that each protocol comes from.
var vendors = map[ninelives.Protocol]string{
	ninelives.OpenAIChat:        "openai/gpt-4o",
	ninelives.OpenAIResponses:   "openai/gpt-5.4",
	ninelives.AnthropicMessages: "anthropic/claude-sonnet-4-6",
	ninelives.Gemini:            "google/gemini-3-pro",
}

// A server of which nothing is known says once what form of ids it takes, and
// is not asked in another one again.
func TestTheFormOfIdsIsLearntFromOneComplaint(t *testing.T) {
	for name, c := range map[string]struct {
		check chaos.Check
		want  *regexp.Regexp
	}{
		"40 characters at most": {chaos.History, regexp.MustCompile(`^.{1,40}$`)},
		"nine letters":          {chaos.MistralIDs, regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, srv := simulated(t, "sim/one", ninelives.OpenAIChat, []chaos.Step{{Reject: []chaos.Check{c.check}}})
				id := "chatcmpl-tool-" + strings.Repeat("0123456789abcdef", 2)
				req := &ninelives.Request{Messages: []ninelives.Message{ninelives.UserText("Look."), calling(id), resulting(id)}}
				model := heal.New(m)
				for range 3 {
					resp, err := ninelives.Generate(t.Context(), model, req)
					if err != nil {
						t.Fatal(err)
					}
					equal(t, "answer", resp.Text(), chaos.Answer)
				}
				srv.Wait()
				var status []int
				for _, e := range srv.Log() {
					status = append(status, e.Status)
				}
				equal(t, "asked", status, []int{400, 200, 200, 200})
				var sent struct {
					Messages []struct {
						ToolCallID string `json:"tool_call_id"`
					}
				}
				if err := json.Unmarshal(srv.Log()[3].Body, &sent); err != nil {
					t.Fatal(err)
				}
				if got := sent.Messages[2].ToolCallID; !c.want.MatchString(got) {
					t.Errorf("the id was sent as %q", got)
				}
			})
		})
	}
}

// What a provider, a user and the order of things can do to a session's
// history, live: no request is ever refused.
func TestSessionsMakeNoHistoryThatAProviderRefuses(t *testing.T) {
	named := func(ids ...string) chaos.Step {
		var calls []chaos.Call
		for i, id := range ids {
			calls = append(calls, chaos.Call{ID: id, Name: "look", Arguments: fmt.Sprintf(`{"at":%q}`, []string{"one", "two", "three"}[i])})
		}
		return uses(calls...)
	}
	faulty := func(f chaos.ToolFault, s chaos.Step) chaos.Step { s.ToolFault = f; return s }
	for _, c := range []struct {
		name  string
		steps []chaos.Step
		steer bool
		reads []string // what the last request of the first turn must have, in this order
	}{
		{"a01 a call that never closes", []chaos.Step{faulty(chaos.Unclosed, named("c1")), named("c2")}, false, nil},
		{"a02 results are never sent without their calls after a cut", []chaos.Step{named("c1"), {Truncate: 3, Calls: named("c2").Calls, Insist: true}}, false, []string{"seen"}},
		{"a03 the user speaks between call and result", []chaos.Step{named("c1", "c2")}, true, []string{`seen {\"at\":\"one\"}`, `seen {\"at\":\"two\"}`, "mind the tests"}},
		{"a04 the assistant calls again at once", []chaos.Step{named("c1"), named("c2"), named("c3")}, false, nil},
		{"a05 the same id in every answer", []chaos.Step{named("c1"), named("c1"), named("c1")}, false, nil},
		{"a05 the same id twice in an answer", []chaos.Step{named("c1", "c1")}, false, nil},
		{"a06 ids in a form of another vendor", []chaos.Step{named("toolu_01.a/b:c", strings.Repeat("call", 30))}, false, nil},
		{"a07 no ids at all", []chaos.Step{faulty(chaos.MissingID, named("", "", ""))}, false, nil},
		{"a08 the last call ends first", []chaos.Step{named("c1", "c2", "c3")}, false,
			[]string{`seen {\"at\":\"one\"}`, `seen {\"at\":\"two\"}`, `seen {\"at\":\"three\"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range protocols {
				home := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					d := sits(t, home)
					m, srv := simulated(t, vendors[p], p, append(slices.Clone(c.steps), chaos.Step{Text: "Seen it all."}))
					var s *agent.Session
					steered := false
					look := lookingAt(func(string) {
						if c.steer && !steered {
							steered = true
							if _, err := s.Steer(t.Context(), ninelives.UserText("mind the tests")); err != nil {
								t.Error(err)
							}
						}
					})
					set := full()
					set.ParallelCalls = 1
					if strings.HasPrefix(c.name, "a08") {
						set.ParallelCalls = 8
					}
					s = d.opens(d.agent(heal.New(m), set, look))
					d.ended(d.turn(s, "Look."), agent.ReasonComplete, "Seen it all.")
					accepted(t, srv)
					log := srv.Log()
					body := string(log[len(log)-1].Body)
					if p == ninelives.OpenAIChat {
						for _, want := range c.reads {
							_, rest, found := strings.Cut(body, want)
							if !found {
								// Results are JSON in JSON on this wire.
								_, rest, found = strings.Cut(body, strings.ReplaceAll(want, `\"`, `\\\"`))
							}
							equal(t, fmt.Sprintf("%q is in its place", want), found, true)
							body = rest
						}
					}
					d.ended(d.turn(s, "Once more."), agent.ReasonComplete, "Seen it all.")
					accepted(t, srv)
				})
			}
		})
	}
}

// A record in which an entry is missing, doubled, in another place or the last
// one, wherever that is, still gives a session whose turns every provider
// takes, also one of another protocol than the one that it was made with.
func TestADamagedRecordGivesNoHistoryThatAProviderRefuses(t *testing.T) {
	home := t.TempDir()
	var entries []journal.Entry
	synctest.Test(t, func(t *testing.T) {
		d := sits(t, home)
		m, srv := simulated(t, "anthropic/claude-sonnet-4-6", ninelives.AnthropicMessages, []chaos.Step{
			{Reasoning: "I look twice.", Calls: []chaos.Call{use("look", `{"at":"one"}`), use("look", `{"at":"two"}`)}, Insist: true},
			{Reasoning: "I write.", Calls: []chaos.Call{writes("a.txt", "a\n"), use("look", `{"at":"three"}`)}, Insist: true},
			{Text: "Done."},
		})
		var s *agent.Session
		steered := false
		look := lookingAt(func(string) {
			if !steered {
				steered = true
				_, _ = s.Steer(t.Context(), ninelives.UserText("mind the tests"))
			}
		})
		set := full()
		set.ParallelCalls = 1
		s = d.opens(d.agent(heal.New(m), set, look))
		d.ended(d.turn(s, "Look and write."), agent.ReasonComplete, "Done.")
		accepted(t, srv)
		_ = s.Close()
		var err error
		if _, entries, _, err = d.journal.ReadSession(t.Context(), s.ID()); err != nil {
			t.Fatal(err)
		}
	})
	type record struct {
		name    string
		entries []journal.Entry
	}
	var records []record
	name := func(what string, i int) string { return fmt.Sprintf("%s entry %d (%s)", what, i, entries[i].Kind) }
	for i := 1; i < len(entries); i++ {
		records = append(records,
			record{name("without", i), slices.Delete(slices.Clone(entries), i, i+1)},
			record{name("cut after", i), slices.Clone(entries[:i+1])},
			record{name("doubled", i), slices.Insert(slices.Clone(entries), i, entries[i])})
		if i+1 < len(entries) {
			swapped := slices.Clone(entries)
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			records = append(records, record{name("exchanged with the next:", i), swapped})
		}
		if entries[i].Kind == "effect" {
			wrong := slices.Clone(entries)
			wrong[i].Data = bytes.Replace(wrong[i].Data, []byte(`{"call":"`), []byte(`{"call":"wrong`), 1)
			records = append(records, record{name("of another id:", i), wrong})
		}
	}
	for _, p := range protocols {
		t.Run(string(p), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := sits(t, home)
				for _, r := range records {
					log, err := d.journal.NewSession(t.Context(), journal.Head{}, unnumbered(r.entries)...)
					if err != nil {
						t.Fatal(err)
					}
					_ = log.Close()
					m, srv := simulated(t, "sim/one", p, []chaos.Step{{Text: "Well."}})
					s := d.resumes(d.agent(heal.New(m), full(), lookingAt(nil)), log.ID())
					if s.Status().Failed != nil {
						if q := acts(s.Continue(t.Context()), nil); q.err != nil || q.end.Reason != agent.ReasonComplete {
							t.Errorf("%s: it went on to %v %s: %s", r.name, q.err, q.end.Reason, q.end.Message)
						}
					}
					if q := d.turn(s, "And now?"); q.err != nil || q.end.Reason != agent.ReasonComplete || q.end.Text != "Well." {
						t.Errorf("%s: it ended as %v %s: %s", r.name, q.err, q.end.Reason, q.end.Message)
					}
					_ = s.Close()
					srv.Wait()
					for _, e := range srv.Log() {
						if e.Status != 200 {
							t.Errorf("%s: %d %s\n%s", r.name, e.Status, e.Did, e.Body)
						}
					}
				}
			})
		})
	}
}

// unnumbered leaves the numbers to the journal.
func unnumbered(entries []journal.Entry) []journal.Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Seq = 0
	}
	return entries
}
