package conformance_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/provider"
	"github.com/ninelives-ai/ninelives/tool"
)

// look is a tool whose results fill windows.
type look struct{ runs int }

func (l *look) Spec() tool.Spec {
	return tool.Spec{Tool: ninelives.Tool{Name: "look", Schema: []byte(`{"type":"object","properties":{"at":{"type":"string"}}}`)}, ReadOnly: true}
}
func (l *look) Needs([]byte) ([]tool.Need, error) { return nil, nil }
func (l *look) Run(context.Context, *tool.Call) tool.Result {
	l.runs++
	return tool.TextResult(fmt.Sprintf("%d %s", l.runs, strings.Repeat("word ", 600)))
}

// turned is what came of a turn.
type turned struct {
	end         agent.Ended
	compactions []agent.Compaction
	notices     []ninelives.Notice
	log         []chaos.Entry // of the last model
	runs        int
}

// sized is a model of a window, and what it does.
type sizedModel struct {
	name   string
	tokens int // what the catalogue says
	steps  []chaos.Step
}

// turnOf runs a turn over HTTP with a chain of models.
func turnOf(t *testing.T, p ninelives.Protocol, models ...sizedModel) turned {
	t.Helper()
	var chain ninelives.Model
	var options []heal.Option
	var last *chaos.Server
	for i, m := range models {
		last = chaos.New(chaos.Scenario{Name: "scripted", Steps: m.steps})
		model, err := provider.Open("scripted", provider.Provider(m.name), provider.BaseURL("http://"+m.name+".sim/v1"), provider.Protocol(p),
			provider.Dial(last.Dial), provider.Key(provider.NewSecret("sk-not-for-anyone")),
			provider.Capabilities(func(c *ninelives.Capabilities) {
				c.Window, c.WindowSource, c.MaxOutput, c.Tools = m.tokens, "exact", 1000, true
			}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(last.Close)
		t.Cleanup(model.(*provider.Model).CloseIdleConnections)
		if i == 0 {
			chain = model
		} else {
			options = append(options, heal.Fallback(model))
		}
	}
	settings := agent.DefaultSettings()
	settings.Permissions.Mode = tool.ModeFull
	l := &look{}
	a := agent.New(heal.New(chain, options...), agent.Tools(l), agent.With(settings), agent.Workspace(t.TempDir()))
	var got turned
	for e, err := range a.Turn(t.Context(), "Look around. Never touch vendor/.") {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case agent.Compacted:
			got.compactions = append(got.compactions, e.Compaction)
		case agent.Model:
			if n, ok := e.Event.(ninelives.Notice); ok {
				got.notices = append(got.notices, n)
			}
		case agent.Ended:
			got.end = e
		}
	}
	last.Wait()
	got.log, got.runs = last.Log(), l.runs
	return got
}

// looks is so many steps of a model that looks at another thing each time, and
// then says that it is done. window is what it really has; 0 is without end.
func looks(n, window int) []chaos.Step {
	var steps []chaos.Step
	for i := range n {
		steps = append(steps, chaos.Step{Calls: []chaos.Call{{Name: "look", Arguments: fmt.Sprintf(`{"at":"place %d"}`, i)}}, Insist: true,
			Window: window, Reject: []chaos.Check{chaos.History}})
	}
	return append(steps, chaos.Step{Text: "All looked at.", Window: window, Reject: []chaos.Check{chaos.History}})
}

// A turn whose results come to many windows stays inside one, in every
// protocol, without one request that is refused.
func TestALongTurnStaysInsideASmallWindow(t *testing.T) {
	for _, p := range protocols {
		t.Run(string(p), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := turnOf(t, p, sizedModel{"small", 9000, looks(30, 9000)})
				if got.end.Reason != agent.ReasonComplete || got.end.Text != "All looked at." || got.runs != 30 {
					t.Errorf("it ended: %s %s after %d calls, %q", got.end.Reason, got.end.Message, got.runs, got.end.Text)
				}
				if len(got.compactions) == 0 {
					t.Error("nothing was compacted")
				}
				for _, c := range got.compactions {
					if c.Tier == 0 || c.After >= c.Before || c.Why != agent.WhyThreshold {
						t.Errorf("tier %d (%s): %d tokens, then %d", c.Tier, c.Why, c.Before, c.After)
					}
				}
				for _, e := range got.log {
					if e.Status != 200 {
						t.Errorf("request %d of %d tokens was refused: %s", e.Seq, e.Tokens, e.Did)
					}
					if !strings.Contains(string(e.Body), "Never touch vendor/.") {
						t.Errorf("request %d has lost the user's words", e.Seq)
					}
				}
			})
		})
	}
}

// The catalogue is wrong: the provider says what fits, and the turn goes on.
func TestAnOverflowIsLearntFromAndTheTurnGoesOn(t *testing.T) {
	for _, p := range protocols {
		t.Run(string(p), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := turnOf(t, p, sizedModel{"small", 200_000, looks(20, 9000)})
				if got.end.Reason != agent.ReasonComplete || got.runs < 15 {
					t.Errorf("it ended: %s %s after %d calls", got.end.Reason, got.end.Message, got.runs)
				}
				refused := 0
				for _, e := range got.log {
					if e.Status != 200 {
						refused++
					}
				}
				if refused == 0 || refused > 2 || len(got.compactions) == 0 || got.compactions[0].Why != agent.WhyOverflow {
					t.Errorf("%d requests were refused, compactions %+v", refused, got.compactions)
				}
			})
		})
	}
}

// In the middle of a turn the large model is gone; the small one gets what it
// can hold, and the turn ends well.
func TestATurnGoesOnAtASmallerWindow(t *testing.T) {
	for _, p := range protocols {
		t.Run(string(p), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				large := append(looks(12, 0)[:12], chaos.Step{Error: chaos.Billing})
				got := turnOf(t, p, sizedModel{"large", 200_000, large}, sizedModel{"small", 6000, looks(4, 6000)})
				if got.end.Reason != agent.ReasonComplete || got.runs != 16 {
					t.Errorf("it ended: %s %s after %d calls", got.end.Reason, got.end.Message, got.runs)
				}
				for _, e := range got.log {
					if e.Status != 200 {
						t.Errorf("the small model refused %d tokens: %s", e.Tokens, e.Did)
					}
				}
				told := 0
				for _, n := range got.notices {
					if n.Kind == ninelives.NoticeTranslate && strings.Contains(n.Text, "made to fit the window of 6000 tokens") {
						told++
					}
				}
				if told != 5 {
					t.Errorf("told %d times of 5 requests", told)
				}
			})
		})
	}
}
