package config

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
	"github.com/ninelives-ai/ninelives/internal/nearest"
)

var (
	fileType   = reflect.TypeFor[file]()
	modes      = []string{string(heal.ModeRestart), string(heal.ModeContinue), string(heal.ModeHold), string(heal.ModeFail)}
	retryModes = []string{"standard", "persistent"}
	protocols  = []string{string(ninelives.OpenAIChat), string(ninelives.OpenAIResponses), string(ninelives.AnthropicMessages), string(ninelives.Gemini)}
	schemas    = []string{string(ninelives.SchemaNative), string(ninelives.SchemaTool), string(ninelives.SchemaObject), "none"}
	replays    = []string{string(ninelives.ReplayIgnore), string(ninelives.ReplayForbid), string(ninelives.ReplayRequireOnToolCalls), string(ninelives.ReplayRequireAlways)}
)

// policy is the preset with what is set differently.
func (p policy) policy() (heal.Policy, error) {
	preset := p.Preset
	if preset == "" {
		preset = heal.PresetNames()[0]
	}
	h, err := heal.Preset(preset)
	if err != nil {
		return h, err
	}
	return p.over(h), nil
}

// over puts what is set over a preset.
func (p policy) over(h heal.Policy) heal.Policy {
	if p.RetryMode == "persistent" && !h.Persistent {
		h = h.Background()
	}
	if p.Mode != "" {
		h.Mode = heal.Mode(p.Mode)
	}
	set(&h.Buffered, p.Deadline)
	set(&h.Streamed, p.Deadline)
	set(&h.Buffered, p.Buffered)
	set(&h.Streamed, p.Streamed)
	set(&h.Hedge.After, p.Hedge)
	put(&h.Failover, p.Failover)

	put(&h.Budget.Faults, p.Budget.Faults)
	put(&h.Budget.Tries, p.Budget.Tries)
	put(&h.Budget.Others, p.Budget.Others)
	put(&h.Budget.Requests, p.Budget.Requests)
	set(&h.Budget.Wait, p.Budget.Wait)
	put(&h.Budget.Tokens, p.Budget.Tokens)
	put(&h.Budget.Money, p.Budget.Money)

	if p.Backoff.Base != nil || p.Backoff.Cap != nil {
		h.Backoff.Delays = nil // fixed delays are another form of the same
	}
	set(&h.Backoff.Base, p.Backoff.Base)
	set(&h.Backoff.Cap, p.Backoff.Cap)

	set(&h.Clocks.Dial, p.Clocks.Dial)
	set(&h.Clocks.Headers, p.Clocks.Headers)
	set(&h.Clocks.FirstEvent, p.Clocks.FirstEvent)
	set(&h.Clocks.Liveness, p.Clocks.Liveness)
	set(&h.Clocks.Progress, p.Clocks.Progress)
	set(&h.Clocks.Attempt, p.Clocks.Attempt)
	set(&h.Clocks.SoftFirst, p.Clocks.SoftFirst)
	put(&h.Clocks.MinRate, p.Clocks.MinRate)
	set(&h.Clocks.RateWindow, p.Clocks.RateWindow)
	if h.Clocks.MinRate > 0 && h.Clocks.RateWindow == 0 {
		h.Clocks.RateWindow = 10 * time.Second
	}

	put(&h.Breaker.Consecutive, p.Breaker.Consecutive)
	set(&h.Breaker.Open, p.Breaker.Open)
	put(&h.Content.Empty, p.Content.Empty)
	put(&h.Content.Continuations, p.Content.Continuations)
	put(&h.Content.Repairs, p.Content.Repairs)
	put(&h.Limit.InFlight, p.Concurrency.InFlight)
	put(&h.Limit.Queue, p.Concurrency.Queue)
	set(&h.Limit.Wait, p.Concurrency.Wait)
	return h
}

// layer puts what another one sets over what is set.
func (p *policy) layer(over policy) { layerStruct(reflect.ValueOf(p).Elem(), reflect.ValueOf(over)) }

// layerStruct copies what is set of a struct, setting by setting.
func layerStruct(to, from reflect.Value) {
	for i := range from.NumField() {
		switch f := from.Field(i); {
		case f.Kind() == reflect.Struct:
			layerStruct(to.Field(i), f)
		case !f.IsZero():
			to.Field(i).Set(f)
		}
	}
}

func put[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func set(to *time.Duration, from *duration) {
	if from != nil {
		*to = time.Duration(*from)
	}
}

// check finds words that a setting does not know, and numbers without sense.
func (p policy) check(s *source, n ast.Node) []Problem {
	return append(words(s, n,
		word{"preset", p.Preset, heal.PresetNames()},
		word{"retry_mode", p.RetryMode, retryModes},
		word{"mode", p.Mode, modes},
	), negatives(s, n)...)
}

// word is a setting that knows only certain words.
type word struct {
	name, value string
	known       []string
}

func words(s *source, n ast.Node, list ...word) []Problem {
	var problems []Problem
	for _, w := range list {
		if w.value == "" || slices.Contains(w.known, w.value) {
			continue
		}
		problems = append(problems, s.at(valueOf(n, w.name), "%s: there is no %q%s: use one of %s",
			w.name, w.value, nearest.Hint(w.value, w.known), strings.Join(w.known, ", ")))
	}
	return problems
}

// valueOf is the value of a setting, or the mapping itself.
func valueOf(n ast.Node, name string) ast.Node {
	if m, ok := n.(*ast.MappingNode); ok {
		for _, pair := range m.Values {
			if pair.Key.GetToken().Value == name {
				return pair.Value
			}
		}
	}
	return n
}

// negatives finds numbers below zero, and what is no number at all: no setting
// but a priority has a use for either.
func negatives(s *source, n ast.Node) []Problem {
	var problems []Problem
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, pair := range n.Values {
			if pair.Key.GetToken().Value != "priority" {
				problems = append(problems, negatives(s, pair.Value)...)
			}
		}
	case *ast.NanNode, *ast.InfinityNode:
		problems = append(problems, s.at(n, "%s is no amount", n.GetToken().Value))
	case *ast.IntegerNode, *ast.FloatNode:
		if strings.HasPrefix(n.GetToken().Value, "-") {
			problems = append(problems, s.at(n, "%s is below zero", n.GetToken().Value))
		}
	}
	return problems
}

func (c *Candidate) check(s *source, n ast.Node) []Problem {
	problems := words(s, n,
		word{"protocol", c.Protocol, protocols},
		word{"schema", c.Schema, schemas},
		word{"replay", c.Replay, replays},
	)
	for _, p := range c.Protocols {
		problems = append(problems, words(s, n, word{"protocols", p, protocols})...)
	}
	if c.Provider == "" && c.Model == "" {
		problems = append(problems, s.at(n, "a candidate needs a provider or a model"))
	}
	if !c.Key.Empty() && c.KeyEnv != "" {
		problems = append(problems, s.at(valueOf(n, "key_env"), "key and key_env are both set: keep one"))
	}
	return append(problems, negatives(s, n)...)
}
