package anthropic

import (
	"cmp"
	"slices"

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

// effortOf is the effort that a budget amounts to, where a model takes none.
func effortOf(budget int) string {
	switch {
	case budget <= 0:
		return ""
	case budget < budgets["medium"]:
		return "low"
	case budget < budgets["high"]:
		return "medium"
	case budget < budgets["xhigh"]:
		return "high"
	}
	return "xhigh"
}

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
		e.w.notes.Add("thinking was switched off: %s", why)
		t.drop()
	}
	if t.kind == "enabled" && t.budget >= t.maxTokens {
		switch {
		case limit == 0:
			t.maxTokens = t.budget + defaultMaxTokens
		case limit > minBudget:
			e.w.notes.Add("the thinking budget of %d tokens was cut to fit the output limit of %d", t.budget, limit)
			t.budget = max(minBudget, limit/2)
			t.raw = enabled(t.budget)
		default:
			e.w.notes.Add("thinking was switched off: the output limit of %d tokens leaves no room for it", limit)
			t.drop()
		}
	}
	return t
}

// drop asks for no thinking. It is not forbidden: models that think by
// themselves see what goes with it, and some reject being forbidden to.
func (t *thinking) drop() { t.kind, t.raw, t.budget = "", nil, 0 }

// forbid switches off the thinking of models that think by themselves.
func (t *thinking) forbid() {
	t.kind, t.raw, t.budget = "disabled", []byte(`{"type":"disabled"}`), 0
}

// adaptive leaves it to the model how long it thinks. Newer models show what
// they think only when asked to.
func (e *request) adaptive(t *thinking, display string) {
	if display == "" && e.req.Reasoning.Summary != "" {
		display = "summarized"
	}
	t.kind, t.budget = "adaptive", 0
	var w rawjson.Writer
	w.Open('{')
	w.StringMember("type", "adaptive")
	if display != "" {
		w.StringMember("display", display)
	}
	w.Close('}')
	t.raw = w.B
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
	case slices.Contains(d.Drop, "thinking"):
		t.effort = effort
		if d.EffortParam != "" || r.Effort == "none" {
			t.effort = ""
		}
	case d.NoThinking:
		t.forbid()
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
		if t.kind == "enabled" && d.EffortParam == "adaptive" {
			e.adaptive(&t, rawjson.String(rawjson.Get(own, "display")))
			t.effort = cmp.Or(t.effort, effortOf(r.Budget))
		}
	case r.Effort == "none" && r.Budget == 0:
		t.forbid()
	case d.EffortParam == "adaptive" && (r.Budget > 0 || r.Effort != ""):
		e.adaptive(&t, "")
		if t.effort = effort; effort == "" || effort == "none" {
			t.effort = effortOf(r.Budget)
		}
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
			e.adaptive(&t, "")
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
