package main

import (
	"context"
	"errors"
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
	deadline  time.Duration
}

// chain is who is asked.
type chain struct {
	models    []ninelives.Model
	policy    heal.Policy
	warnings  []string
	simulated bool
	close     func()
}

// open resolves the choice: flags over configuration over environment, and
// the simulator where nothing is there. The caller closes the chain.
func (p *process) open(ctx context.Context, c choice) (*chain, error) {
	paths := config.Paths(".", p.env)
	if c.config != "" {
		paths = []string{c.config}
		if _, err := readFile("--config", c.config, 1<<20); err != nil {
			return nil, err
		}
	}
	settings, problems, err := config.Load(paths, p.env)
	if err != nil {
		return nil, &usageError{err}
	}
	out := &chain{policy: settings.Policy, close: func() {}}
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
		if out.models, out.close, err = demo(); err != nil {
			return nil, err
		}
		return out, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &usageError{err}
	}
	out.models = models
	for _, m := range models {
		if w, ok := m.(interface{ Warnings() []string }); ok {
			for _, warning := range w.Warnings() {
				out.warnings = append(out.warnings, m.Name()+": "+warning)
			}
		}
	}
	return out, nil
}

// healed puts the healing around the chain.
func (c *chain) healed(deadline time.Duration, opts ...heal.Option) *heal.Healed {
	opts = append(opts, heal.With(c.policy), heal.Fallback(c.models[1:]...))
	if deadline > 0 {
		opts = append(opts, heal.Deadline(deadline))
	}
	return heal.New(c.models[0], opts...)
}

// names lists the candidates.
func (c *chain) names() []string {
	names := make([]string, len(c.models))
	for i, m := range c.models {
		names[i] = m.Name()
	}
	return names
}
