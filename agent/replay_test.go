package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/journal"
)

// eventful is the record of a session in which much happens, and its agent.
func eventful(t *testing.T) (*Agent, []journal.Entry) {
	t.Helper()
	set := DefaultSettings()
	set.Iterations = 7
	same := calls(call("", "look", `{"n":1}`))
	m := plays(
		calls(call("", "look", `{}`), call("", "write", `{}`), call("", "nothing", `{}`)), same, same, same, same, // told twice of the loop
		ends(ninelives.FinishLength, call("", "write", `{"`)), says("done"),
		same, fails(ninelives.ClassNetwork, "gone"),
		says("then"),
	)
	a := New(m, Tools(reader("look", echo), writer("write", echo)), With(set), Workspace(t.TempDir()))
	log := &tape{}
	s := a.taken(t.Context(), log, nil, nil)
	for range 3 {
		turned(t, s, "go")
	}
	return a, log.entries
}

func TestAReplayMakesTheSameDecisions(t *testing.T) {
	_, entries := eventful(t)
	list, err := Replay(entries)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range list {
		if !r.Agrees {
			t.Errorf("entry %d: %s was done, %s is decided", r.Seq, r.Recorded, r.Decided)
		}
		got = append(got, r.Recorded)
	}
	text := strings.Join(got, "\n")
	for _, want := range []string{"ask (step)", "run call_1_1_0", "tell loop", "end (complete)", "end (failed)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not among\n%s", want, text)
		}
	}
}

func TestAReplayFindsARecordThatTheDeciderWouldNotHaveWritten(t *testing.T) {
	_, entries := eventful(t)
	for name, c := range map[string]struct {
		kind, from, to string
		recorded       string
	}{
		"another end":     {"end", `"reason":"failed"`, `"reason":"complete"`, "end (complete)"},
		"another request": {"input", `"text":"go"`, `"text":"stop"`, "ask (step)"},
		"a call left out": {"effect", `"is_error":true`, `"is_error":false,"call_id":"else"`, ""},
		"another purpose": {"answer", `"purpose":"step"`, `"purpose":"final"`, "ask (final)"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := slices.Clone(entries)
			found := false
			for i, e := range changed {
				if text := strings.Replace(string(e.Data), c.from, c.to, 1); e.Kind == c.kind && text != string(e.Data) {
					changed[i].Data, found = []byte(text), true
					break
				}
			}
			if !found {
				t.Fatalf("there is no %s with %s", c.kind, c.from)
			}
			list, err := Replay(changed)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(list, func(r Replayed) bool {
				return !r.Agrees && (c.recorded == "" || r.Recorded == c.recorded)
			}) {
				t.Error("it was not found")
			}
		})
	}
}

// What is decided otherwise because a part of the record is lost is not called
// different: nobody can say what was known then.
func TestAReplayOfADamagedRecordSaysThatItHasAGap(t *testing.T) {
	_, entries := eventful(t)
	whole, err := Replay(entries)
	if err != nil {
		t.Fatal(err)
	}
	gaps := 0
	for i := 1; i < len(entries)-1; i++ {
		list, err := Replay(slices.Delete(slices.Clone(entries), i, i+1))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if r.Gap != (r.Seq > entries[i].Seq) {
				t.Fatalf("without entry %d: entry %d has a gap before it: %t", entries[i].Seq, r.Seq, r.Gap)
			}
			if !r.Agrees && !r.Gap {
				t.Errorf("without entry %d: entry %d is decided otherwise: %s, was %s", entries[i].Seq, r.Seq, r.Decided, r.Recorded)
			}
			if !r.Agrees {
				gaps++
			}
		}
	}
	if gaps == 0 || slices.ContainsFunc(whole, func(r Replayed) bool { return r.Gap }) {
		t.Errorf("%d decisions cannot be compared; the whole record: %v", gaps, whole)
	}
}

// Whatever piece of a record is lost, the rest is a session that one can go on
// with, and its history is one that providers take.
func TestASessionWithAHoleInItsRecordGoesOn(t *testing.T) {
	_, entries := eventful(t)
	for i := range entries {
		t.Run(fmt.Sprintf("without %d %s", i, entries[i].Kind), func(t *testing.T) {
			left := slices.Delete(slices.Clone(entries), i, i+1)
			m := plays(says("here I am"))
			a := New(m, Tools(reader("look", echo), writer("write", echo)), Workspace(t.TempDir()))
			s := a.taken(t.Context(), &tape{}, left, nil)
			p := turned(t, s, "are you there?")
			if p.end.Reason != ReasonComplete || p.end.Text != "here I am" {
				t.Errorf("it ended as %s: %s", p.end.Reason, p.end.Message)
			}
			said := spokenBy(m.asked()[0].Messages, ninelives.RoleUser)
			if !slices.Contains(said, "are you there?") {
				t.Errorf("the model reads %q", said)
			}
		})
	}
}

func TestWhatCannotBeReadIsLeftOutAndSaid(t *testing.T) {
	a, entries := eventful(t)
	entries = append(slices.Clone(entries),
		journal.Entry{Seq: 900, Kind: "hologram", Data: []byte(`{}`)},
		journal.Entry{Seq: 901, Kind: "answer", Data: []byte(`{"message":`)},
		journal.Entry{Seq: 902, Kind: "effect", Data: []byte(`{"call":"x"}`)})
	s := a.taken(t.Context(), &tape{}, entries, nil)
	d := s.Damaged()
	if len(d) != 3 || d[0].Seq != 900 || !strings.Contains(d[0].Err.Error(), `of kind "hologram", which this version does not know`) {
		t.Errorf("damaged are %v", d)
	}
	if w := of[Warning](turned(t, s, "go")); len(w) != 3 {
		t.Errorf("the user was told %q", w)
	}
	if _, err := Replay(entries); err == nil {
		t.Error("a replay of what cannot be read")
	}
}
