package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/config"
	"github.com/ninelives-ai/ninelives/heal"
)

// choice is what flags say about whom to ask and how.
type choice struct {
	model     string
	fallbacks []string
	preset    string
	config    string
	deadline  deadline
	dir       string // whose configuration; empty: the current one's
}

// chain is who is asked.
type chain struct {
	choice    choice
	config    *config.Config
	models    []ninelives.Model
	policy    heal.Policy
	warnings  []string
	simulated bool
	close     func()
}

// settings reads the configuration: the file that a flag names, else the usual
// ones. What is wrong in it is a mistake of its user.
func (p *process) settings(c choice) (*config.Config, []config.Problem, error) {
	load := func() (*config.Config, []config.Problem, error) {
		return config.Load(config.Paths(cmp.Or(c.dir, "."), p.env), p.env)
	}
	if c.config != "" {
		load = func() (*config.Config, []config.Problem, error) { return config.LoadNamed(c.config, p.env) }
		if _, err := os.Stat(c.config); errors.Is(err, fs.ErrNotExist) { // else it is taken for one that need not be there
			return nil, nil, usagef("--config %s cannot be read: %v", c.config, errors.Unwrap(err))
		}
	}
	settings, problems, err := load()
	if err != nil {
		return nil, problems, &usageError{err}
	}
	return settings, problems, nil
}

// open resolves the choice: flags over configuration over environment, and
// the simulator where nothing is there. The caller closes the chain.
func (p *process) open(ctx context.Context, c choice, simulator func() ([]ninelives.Model, func(), error)) (*chain, error) {
	settings, problems, err := p.settings(c)
	if err != nil {
		return nil, err
	}
	out := &chain{choice: c, config: settings, policy: settings.Policy, close: func() {}}
	for _, problem := range problems {
		out.warnings = append(out.warnings, problem.Error())
	}
	if c.preset != "" {
		if out.policy, err = heal.Preset(c.preset); err != nil {
			return nil, usagef("--preset: %v", err)
		}
	}
	settings.Use(c.model, c.fallbacks)
	models, problems, err := settings.Chain(ctx, p.env)
	for _, problem := range problems {
		out.warnings = append(out.warnings, problem.Error())
	}
	switch {
	case errors.Is(err, config.ErrNoModel) && len(problems) > 0:
		// Somebody meant to ask a model: the simulator would be no answer.
		return nil, &usageError{problems[0]}
	case errors.Is(err, config.ErrNoModel):
		out.simulated = true
		if out.models, out.close, err = simulator(); err != nil {
			return nil, err
		}
		return out, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &usageError{err}
	}
	out.models = models
	out.warnings = append(out.warnings, warnings(models)...)
	return out, nil
}

// warnings are what is to be known about the models, one line for those of
// which the same is.
func warnings(models []ninelives.Model) []string {
	var texts []string
	about := map[string][]string{}
	for _, m := range models {
		if w, ok := m.(interface{ Warnings() []string }); ok {
			for _, text := range w.Warnings() {
				if about[text] == nil {
					texts = append(texts, text)
				}
				about[text] = append(about[text], m.Name())
			}
		}
	}
	for i, text := range texts {
		texts[i] = few(about[text], ", ") + ": " + text
	}
	return texts
}

// unpriced are the models of which no price is known; what simulates costs nothing.
func (c *chain) unpriced() (names []string) {
	if c.simulated {
		return nil
	}
	for _, m := range c.models {
		if c, ok := ninelives.CandidateOf(m); ok && c.Price == (ninelives.Price{}) {
			names = append(names, m.Name())
		}
	}
	return names
}

// few joins names, of many the first ones.
func few(names []string, between string) string {
	const most = 5
	if len(names) > most+1 {
		return strings.Join(names[:most], between) + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, between)
}

// healed puts the healing around the chain.
func (c *chain) healed(deadline time.Duration, opts ...heal.Option) *heal.Healed {
	opts = append(opts, heal.With(c.policy), heal.Fallback(c.models[1:]...))
	if deadline > 0 {
		opts = append(opts, heal.Deadline(deadline))
	}
	return heal.New(c.models[0], opts...)
}

// plan says who is asked, and how many of many.
func (c *chain) plan() string {
	text := few(c.names(), ", then ")
	if most := c.policy.Budget.Others; most > 0 && len(c.models) > 1+most {
		text += fmt.Sprintf(" (at most %d of them in one call: policy.budget.others)", 1+most)
	}
	return text
}

// signature stands for the configuration that the chain was opened from:
// whom it asks, by which policy. Source: design 000 §2.3.
func (c *chain) signature() string {
	parts := append([]string{c.policy.Name}, c.names()...)
	for _, m := range c.models {
		if candidate, ok := ninelives.CandidateOf(m); ok {
			parts = append(parts, candidate.Host, candidate.Key)
		}
	}
	return strings.Join(parts, "\n")
}

// names lists the candidates.
func (c *chain) names() []string {
	names := make([]string, len(c.models))
	for i, m := range c.models {
		names[i] = m.Name()
	}
	return names
}
