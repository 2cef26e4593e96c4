package acp

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
)

// shown are the updates that events come to.
func shown(t *testing.T, events ...agent.Event) []string {
	t.Helper()
	var out bytes.Buffer
	s := &session{id: "S", dir: "/w", calls: map[string]bool{}, server: &server{}}
	s.server.conn = newConn(&out, nil, func(err error) { t.Error(err) })
	tell := &teller{s: s, outputs: map[string]*output{}}
	for _, ev := range events {
		tell.tell(ev)
	}
	tell.end()
	var lines []string
	for l := range strings.Lines(out.String()) {
		l = strings.TrimPrefix(l, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":`)
		lines = append(lines, strings.TrimSuffix(l, "}}\n"))
	}
	return lines
}

func thought(text string) string {
	return `{"content":{"text":"\n\n(` + text + `)\n\n","type":"text"},"sessionUpdate":"agent_thought_chunk"}`
}

func text(text string) string {
	return `{"content":{"text":"` + text + `","type":"text"},"sessionUpdate":"agent_message_chunk"}`
}

// What the program says stands apart from what the model says.
func TestWhatTheProgramSays(t *testing.T) {
	model := func(ev ninelives.Event) agent.Event { return agent.Model{Purpose: agent.PurposeStep, Event: ev} }
	same(t, shown(t,
		agent.Started{Text: "hello"},
		model(ninelives.Notice{Kind: ninelives.NoticePlan, Text: "one candidate"}),
		model(ninelives.Notice{Kind: ninelives.NoticeWait, Text: "waiting 2s:\nrate limit"}),
		model(ninelives.TextDelta{Text: "not yet"}),
		model(ninelives.Discard{}),
		model(ninelives.ReasoningDelta{}),
		agent.Warning{Text: "careful"},
		agent.Guarded{Limit: "rate", Message: "a short wait"},
		agent.Guarded{Limit: "cost", Message: "the end says this", Stop: true},
		agent.Compacted{Compaction: agent.Compaction{Tier: 1, Before: 900, After: 100}},
		agent.Compacted{Compaction: agent.Compaction{Tier: 2, Before: 900, After: 900}},
		agent.Steered{Number: 2, Text: "and this"},
	),
		thought(`waiting 2s: rate limit`),
		thought(`careful`),
		thought(`a short wait`),
		thought(`the conversation was made smaller: from about 900 to 100 tokens`),
		thought(`the conversation could not be made smaller`),
		`{"content":{"text":"and this","type":"text"},"sessionUpdate":"user_message_chunk"}`,
	)
}

// What a model is asked besides the turn (a summary) is not for the user, but
// that it waits is.
func TestASummaryIsNotShown(t *testing.T) {
	compact := func(ev ninelives.Event) agent.Event { return agent.Model{Purpose: agent.PurposeCompact, Event: ev} }
	same(t, shown(t,
		compact(ninelives.ReasoningDelta{Text: "Hm."}),
		compact(ninelives.Notice{Kind: ninelives.NoticeWait, Text: "waiting"}),
		agent.Answered{Answer: agent.Answer{Purpose: agent.PurposeCompact, Message: ninelives.AssistantText("It was all about cats.")}},
	), thought("waiting"))
}

// Two answers in a row are two paragraphs.
func TestAnswersInARowAreKeptApart(t *testing.T) {
	answered := func(text string) agent.Event {
		return agent.Answered{Answer: agent.Answer{Message: ninelives.AssistantText(text)}}
	}
	same(t, shown(t, answered("One."), answered("Two."), agent.Warning{Text: "w"}, answered("Three."), answered(" ")),
		text("One."), text(`\n\nTwo.`), thought("w"), text("Three."))
}

// Of what a command writes no more than the end is shown, in whole characters.
func TestLongOutputIsShownFromItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &session{id: "S", calls: map[string]bool{}, server: &server{}}
		s.server.conn = newConn(&out, nil, func(err error) { t.Error(err) })
		tell := &teller{s: s, outputs: map[string]*output{}}
		for range 3 {
			tell.tell(agent.Output{Call: "a", Text: strings.Repeat("é", liveOutput/2) + "x"})
		}
		time.Sleep(pace)
		synctest.Wait()
		want := `"` + "```" + `\n[…]\n` + strings.Repeat("é", liveOutput/2-1) + "x" + `\n` + "```" + `"`
		if got := out.String(); !strings.Contains(got, want) {
			t.Errorf("%.200s … %.200s", got, got[max(0, len(got)-200):])
		}
		if strings.Contains(out.String(), `\ufffd`) {
			t.Error("a character was cut")
		}
	})
}
