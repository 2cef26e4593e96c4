package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/config"
	"github.com/ninelives-ai/ninelives/gateway"
	"github.com/ninelives-ai/ninelives/heal"
)

func (p *process) check() *cobra.Command {
	var c choice
	var live, asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Show what the configuration comes to, and all that is wrong with it",
		Long: `Show what the configuration comes to: where the gateway listens, whom its routes
ask in which order and how they heal, which clients may ask, what is kept; and
all that is wrong, with file, line and what to do. Nothing is sent anywhere but
with --live, which asks every candidate for a word.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(c.mistakes(cmd)...); err != nil {
				return err
			}
			plan := p.plan(cmd.Context(), c)
			if live {
				plan.ask(cmd.Context())
			}
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			plan.Exit = plan.exit()
			if err := p.showPlan(plan, asJSON); err != nil {
				return err
			}
			if plan.Exit != exitOK {
				return &ended{plan.Exit}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&c.config, "config", "", "check this file instead of those that are found")
	cmd.Flags().BoolVar(&live, "live", false, "ask every candidate for a word")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return cmd
}

// plan is what the configuration comes to. From says where a setting was set,
// as file:line; it is empty where the default holds.
type plan struct {
	Files     []string      `json:"files"`
	Listen    listenPlan    `json:"listen"`
	Keys      []keyPlan     `json:"keys"`
	Routes    []routePlan   `json:"routes"`
	Journal   journalPlan   `json:"journal"`
	Limits    *limitsPlan   `json:"limits,omitempty"`
	Simulated bool          `json:"simulated"`
	Problems  []problemPlan `json:"problems"`
	Exit      int           `json:"exit"`
}

type listenPlan struct {
	Addresses []string `json:"addresses"`
	TLS       bool     `json:"tls"`
	Insecure  bool     `json:"insecure"`
	From      string   `json:"from,omitempty"`
}

type keyPlan struct {
	Name     string      `json:"name"`
	Routes   []string    `json:"routes,omitempty"`
	Budget   *budgetPlan `json:"budget,omitempty"`
	Rate     *ratePlan   `json:"rate,omitempty"`
	Priority int         `json:"priority,omitempty"`
	From     string      `json:"from,omitempty"`
}

type budgetPlan struct {
	Money  float64 `json:"money,omitempty"`
	Tokens int     `json:"tokens,omitempty"`
	Per    string  `json:"per"`
}

type ratePlan struct {
	Requests   int `json:"requests,omitempty"`
	Tokens     int `json:"tokens,omitempty"`
	Concurrent int `json:"concurrent,omitempty"`
}

type routePlan struct {
	Name       string          `json:"name"`
	Match      []string        `json:"match,omitempty"`
	Order      string          `json:"order"`
	Mode       string          `json:"mode"`
	Sticky     bool            `json:"sticky"`
	Preset     string          `json:"preset"`
	Differs    []string        `json:"differs,omitempty"` // from the preset
	Options    []string        `json:"options,omitempty"`
	Candidates []candidatePlan `json:"candidates"`
	From       string          `json:"from,omitempty"`
}

type candidatePlan struct {
	Name         string     `json:"name"`
	Protocol     string     `json:"protocol"`
	Host         string     `json:"host"`
	Local        bool       `json:"local,omitempty"`
	Window       int        `json:"window"`
	WindowSource string     `json:"window_source"`
	Price        *pricePlan `json:"price,omitempty"`
	Weight       float64    `json:"weight,omitempty"`
	Notes        []string   `json:"notes,omitempty"`
	Live         *livePlan  `json:"live,omitempty"`

	model ninelives.Model
}

// pricePlan is in US dollars per million tokens.
type pricePlan struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
}

type journalPlan struct {
	Off       bool   `json:"off,omitempty"`
	Retention string `json:"retention"`
	Refuse    bool   `json:"refuse"`
	Encrypted bool   `json:"encrypted"`
	From      string `json:"from,omitempty"`
}

type limitsPlan struct {
	Body        int64  `json:"body,omitempty"`
	Headers     int    `json:"headers,omitempty"`
	Connections int    `json:"connections,omitempty"`
	InFlight    int    `json:"in_flight,omitempty"`
	Memory      int64  `json:"memory,omitempty"`
	ReadTimeout string `json:"read_timeout,omitempty"`
	Write       string `json:"write,omitempty"`
	From        string `json:"from,omitempty"`
}

type problemPlan struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// plan reads the configuration and resolves it.
func (p *process) plan(ctx context.Context, c choice) *plan {
	out := &plan{Files: []string{}, Keys: []keyPlan{}, Routes: []routePlan{}, Problems: []problemPlan{}}
	settings, problems, err := p.settings(c)
	out.note(problems, err)
	if err != nil {
		return out
	}
	out.Files = append(out.Files, settings.Files...)
	set, serving, problems, err := settings.Gateway(ctx, p.env)
	if errors.Is(err, config.ErrNoModel) {
		out.Simulated = len(problems) == 0
		err = nil
	}
	out.note(problems, err)
	out.Listen = listenPlan{Addresses: serving.Listen, TLS: serving.Cert != "", Insecure: serving.Insecure, From: settings.Origin("gateway.listen")}
	for _, k := range set.Keys {
		out.Keys = append(out.Keys, keyOf(k, settings.Origin("gateway.keys."+k.Name)))
	}
	for _, r := range set.Routes {
		out.Routes = append(out.Routes, routeOf(r, routeOrigin(settings, r.Name)))
	}
	out.Journal = journalPlan{Off: set.Journal.Off, Retention: retentionOf(set.Journal), Refuse: set.Journal.Refuse,
		Encrypted: !serving.JournalKey.Empty(), From: settings.Origin("gateway.journal")}
	if l := set.Limits; l != (gateway.Limits{}) {
		out.Limits = &limitsPlan{Body: l.Body, Headers: l.Headers, Connections: l.Connections, InFlight: l.InFlight, Memory: l.Memory,
			ReadTimeout: span(l.ReadTimeout), Write: span(l.Write), From: settings.Origin("gateway.limits")}
	}
	return out
}

// note takes down what is wrong.
func (p *plan) note(problems []config.Problem, err error) {
	for _, problem := range append(problems, problemsIn(err)...) {
		p.Problems = append(p.Problems, problemPlan{File: problem.File, Line: problem.Line, Column: problem.Column, Message: problem.Message})
	}
	slices.SortStableFunc(p.Problems, func(a, b problemPlan) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// problemsIn takes an error apart into the problems that it tells.
func problemsIn(err error) []config.Problem {
	switch e := err.(type) {
	case nil:
		return nil
	case config.Problem:
		return []config.Problem{e}
	case *usageError:
		return problemsIn(e.err)
	case interface{ Unwrap() []error }:
		var all []config.Problem
		for _, one := range e.Unwrap() {
			all = append(all, problemsIn(one)...)
		}
		return all
	}
	return []config.Problem{{Message: describe(err)}}
}

func (p *plan) exit() int {
	if len(p.Problems) > 0 {
		return exitUsage
	}
	answered, asked := false, false
	for _, r := range p.Routes {
		for _, c := range r.Candidates {
			if c.Live != nil {
				asked, answered = true, answered || c.Live.OK
			}
		}
	}
	if asked && !answered {
		return exitUnavailable
	}
	return exitOK
}

// routeOrigin says where a route was set; the default one's candidates may be
// those of the whole file, or of the environment.
func routeOrigin(c *config.Config, name string) string {
	if from := c.Origin("gateway.routes." + name); from != "" {
		return from
	}
	var from []string
	for _, setting := range []string{"model", "fallbackModels"} {
		if at := c.Origin(setting); at != "" {
			from = append(from, setting+" "+at)
		}
	}
	if c.Origin("model") == "" {
		from = append([]string{"the environment"}, from...)
	}
	return strings.Join(from, ", ")
}

func keyOf(k gateway.Key, from string) keyPlan {
	out := keyPlan{Name: k.Name, Routes: k.Routes, Priority: k.Priority, From: from}
	if b := k.Budget; b.Money > 0 || b.Tokens > 0 {
		if b.Per == "" {
			b.Per = "month"
		}
		out.Budget = &budgetPlan{Money: b.Money, Tokens: b.Tokens, Per: b.Per}
	}
	if k.Rate != (gateway.Rate{}) {
		r := ratePlan(k.Rate)
		out.Rate = &r
	}
	return out
}

func routeOf(r gateway.Route, from string) routePlan {
	policy := gateway.DefaultPolicy()
	if r.Policy != nil {
		policy = *r.Policy
	}
	mode := r.Mode
	if mode == "" {
		mode = policy.Mode
	}
	order := r.Order
	if order == "" {
		order = gateway.OrderListed
	}
	out := routePlan{Name: r.Name, Match: r.Match, Order: string(order), Mode: string(mode), Sticky: r.Sticky, Preset: policy.Name, Candidates: []candidatePlan{}, From: from}
	if base, err := config.GatewayPreset(policy.Name); err == nil {
		out.Differs = differs(policy, base)
	}
	out.Options = optionsOf(r)
	for _, t := range r.Targets {
		out.Candidates = append(out.Candidates, candidateOf(t))
	}
	return out
}

func optionsOf(r gateway.Route) (options []string) {
	add := func(set bool, format string, args ...any) {
		if set {
			options = append(options, fmt.Sprintf(format, args...))
		}
	}
	add(r.Deadline > 0, "deadline %s", span(r.Deadline))
	add(r.Hedge > 0, "hedge %s", span(r.Hedge))
	add(r.Continue, "continue")
	ttl := r.Cache.TTL
	if ttl == 0 {
		ttl = time.Hour
	}
	add(r.Cache.Entries > 0, "cache of %d answers for %s", r.Cache.Entries, span(ttl))
	for _, d := range r.Degraded {
		add(true, "degraded: %s", degradedName(d))
	}
	add(r.Priority != 0, "priority %d", r.Priority)
	return options
}

func degradedName(d heal.Substitute) string {
	name := fmt.Sprintf("%T", d) // its kind is all that is to be known of it
	return strings.TrimPrefix(filepath.Ext(name), ".")
}

func candidateOf(t gateway.Target) candidatePlan {
	k, _ := ninelives.CandidateOf(t.Model)
	out := candidatePlan{Name: t.Model.Name(), Protocol: string(k.Protocol), Host: k.Host, Local: k.Local,
		Window: k.Window, WindowSource: k.WindowSource, Weight: t.Weight, model: t.Model}
	if k.Price != (ninelives.Price{}) {
		out.Price = &pricePlan{Input: k.Price.Input, Output: k.Price.Output}
	}
	if w, ok := t.Model.(interface{ Warnings() []string }); ok {
		out.Notes = w.Warnings()
	}
	return out
}

func retentionOf(j gateway.JournalSettings) string {
	switch days := j.Days; j.Retention {
	case gateway.RetainNone, gateway.RetainDone:
		return string(j.Retention)
	default:
		if days == 0 {
			days = 30
		}
		return fmt.Sprintf("%dd", days)
	}
}

// span is a time as a file has it: 2m, not 2m0s; empty for none.
func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// showPlan writes the plan.
func (p *process) showPlan(plan *plan, asJSON bool) error {
	if !asJSON {
		return plan.write(p.stdout)
	}
	line, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%s\n", line)
	return err
}

// money is an amount in US dollars without zeros at its end.
func money(x float64) string {
	return "$" + strings.TrimSuffix(fmt.Sprintf("%.*f", decimals(x), x), ".")
}

func decimals(x float64) int {
	for n := range 4 {
		if scaled := x * math.Pow10(n); math.Abs(scaled-math.Round(scaled)) < 1e-6 {
			return n
		}
	}
	return 4
}
