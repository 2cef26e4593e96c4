package anthropic

import (
	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire/rawjson"
)

// thinking is what is asked of the model's thinking, and what that leaves of
// the output limit.
type thinking struct {
	kind      string // "", "disabled", "enabled" or "adaptive"
	raw       []byte // the thinking parameter; nil if none is sent
	effort    string // output_config.effort; empty if none is sent
	budget    int    // of kind enabled
	maxTokens int
}

func (t thinking) on() bool { return t.kind == "enabled" || t.kind == "adaptive" }

// minBudget is the smallest thinking budget. Source: the extended thinking page, 2026.
const minBudget = 1024

// budgets stand for efforts where a model only takes a budget in tokens. The
// numbers are ours.
var budgets = map[string]int{"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 32768}

// thinking decides on the thinking parameter.
func (e *request) thinking() thinking {
	t := e.wanted()
	t.maxTokens = e.req.MaxTokens
	limit := e.req.MaxTokens
	if t.maxTokens == 0 {
		if t.maxTokens = e.target.Candidate.MaxOutput; t.maxTokens == 0 {
			t.maxTokens = defaultMaxTokens
		} else {
			limit = t.maxTokens
		}
	}
	if c := e.target.Dialect.MaxTokensCap; c > 0 && t.maxTokens > c {
		t.maxTokens, limit = c, c
	}
	if why := e.conflict(t); why != "" {
		e.w.note("thinking was switched off: %s", why)
		t.off()
	}
	if t.kind == "enabled" && t.budget >= t.maxTokens {
		switch {
		case limit == 0:
			t.maxTokens = t.budget + defaultMaxTokens
		case limit > minBudget:
			e.w.note("the thinking budget of %d tokens was cut to fit the output limit of %d", t.budget, limit)
			t.budget = max(minBudget, limit/2)
			t.raw = enabled(t.budget)
		default:
			e.w.note("thinking was switched off: the output limit of %d tokens leaves no room for it", limit)
			t.off()
		}
	}
	return t
}

func (t *thinking) off() {
	t.kind, t.raw, t.budget = "disabled", []byte(`{"type":"disabled"}`), 0
}

func enabled(budget int) []byte {
	var w rawjson.Writer
	w.Open('{')
	w.StringMember("type", "enabled")
	w.IntMember("budget_tokens", int64(budget))
	w.Close('}')
	return w.B
}

// wanted is what the request asks for, before anything stands in its way.
func (e *request) wanted() thinking {
	r, d := e.req.Reasoning, e.target.Dialect
	effort := r.Effort
	if name, ok := d.Efforts[effort]; ok {
		effort = name
	} else if effort == "minimal" && d.EffortParam != "thinking" {
		effort = "low" // the protocol's lowest
	}
	var t thinking
	switch own := r.Extra.For(protocol); {
	case d.NoThinking:
		t.off()
		return t
	case own != nil:
		if !rawjson.Empty(own) {
			t.raw, t.kind = own, rawjson.String(rawjson.Get(own, "type"))
		}
		n, _ := rawjson.Int(rawjson.Get(own, "budget_tokens"))
		t.budget = int(n)
		t.effort = effort
		if r.Effort == "none" {
			t.effort = ""
		}
	case r.Effort == "none" && r.Budget == 0:
		t.off()
	case r.Budget > 0, d.EffortParam == "thinking" && r.Effort != "":
		t.kind, t.budget = "enabled", r.Budget
		if d.EffortParam != "thinking" && effort != "none" {
			t.effort = effort
		}
		if t.budget == 0 {
			if t.budget = budgets[r.Effort]; t.budget == 0 {
				t.budget = budgets["medium"]
			}
		}
		t.budget = max(t.budget, minBudget)
		t.raw = enabled(t.budget)
	case r.Effort != "":
		t.effort = effort
		if d.EffortParam != "output_config.effort" {
			t.kind, t.raw = "adaptive", []byte(`{"type":"adaptive"}`)
		}
	}
	return t
}

// conflict says why the target would reject thinking in this request; empty if
// it would not.
//
// Source: the extended thinking page, 2026: no forced tool, no prefill, and with
// a budget the thinking of a turn with tool calls must come first in it.
func (e *request) conflict(t thinking) string {
	if !t.on() {
		return ""
	}
	if m := e.req.ToolChoice.Mode; e.output != nil || len(e.req.Tools) > 0 && (m == ninelives.ToolChoiceRequired || m == ninelives.ToolChoiceTool) {
		return "it does not go with a forced tool"
	}
	last := len(e.req.Messages) - 1
	if e.req.Messages[last].Role == ninelives.RoleAssistant {
		return "it does not go with an answer to be continued"
	}
	if t.kind != "enabled" {
		return ""
	}
	for last >= 0 && e.req.Messages[last].Role != ninelives.RoleAssistant {
		last--
	}
	if last < 0 || len(e.req.Messages[last].ToolCalls()) == 0 {
		return ""
	}
	first := last // the assistant's first message of the turn
	for i := last; i >= 0 && e.req.Messages[i].Role != ninelives.RoleUser; i-- {
		if e.req.Messages[i].Role == ninelives.RoleAssistant {
			first = i
		}
	}
	if _, ok := e.req.Messages[first].Parts[0].(ninelives.Reasoning); !ok {
		return "the turn began without it"
	}
	return ""
}
