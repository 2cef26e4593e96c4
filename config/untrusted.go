package config

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/provider"
)

// What a project's file may say of where requests and keys go, before its user
// trusts it: it chooses among the vendors and presets that the user has, and
// may name servers on this machine. It sends nothing anywhere else, no key to
// anyone whom the user has not given it to, and no variable to anyone.

const onlyTrusted = " only taken from a project's file that you trust"

// onThisMachine reports that a base URL is one of this machine's. It is
// narrower than what counts as local otherwise: a name below .localhost may be
// looked up elsewhere.
func onThisMachine(base string) bool {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	if strings.EqualFold(u.Hostname(), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.Zone() == "" && ip.IsLoopback()
}

// withheld says why a model that a file names is left out, because the file is
// not trusted; nil if it is not left out. A candidate is left out as a whole:
// without its address or its key it would be another one.
func (s *source) withheld(n ast.Node) *Problem {
	because := func(n ast.Node, what string) *Problem {
		p := s.untrusted(n, what+onlyTrusted)
		return &p
	}
	if s.trusted {
		return nil
	}
	if refers(n) {
		return because(n, "${…} is")
	}
	m, ok := n.(*ast.MappingNode)
	if !ok || s.staysHere(m) {
		return nil
	}
	for _, pair := range m.Values {
		switch name := pair.Key.GetToken().Value; {
		case name == "base_url":
			return because(pair.Key, "a base_url that is not on this machine is")
		case name == "key", name == "key_env":
			return because(pair.Key, "a candidate with a key of its own is")
		case name == "headers":
			return because(pair.Key, "a candidate with headers of its own is")
		case refers(pair.Value):
			return because(pair.Value, "${…} is")
		}
	}
	return nil
}

// staysHere reports that a candidate has a base URL on this machine.
func (s *source) staysHere(m *ast.MappingNode) bool {
	text, ok := valueOf(m, "base_url").(*ast.StringNode)
	if !ok {
		return false
	}
	filled, err := s.expandText(text)
	if err != nil {
		return false
	}
	text, ok = filled.(*ast.StringNode)
	return ok && onThisMachine(text.Value)
}

// refers reports that a value is filled in from the environment.
func refers(n ast.Node) bool {
	text, ok := n.(*ast.StringNode)
	return ok && slices.ContainsFunc(reference.FindAllStringSubmatch(text.Value, -1), func(m []string) bool { return m[1] != "" })
}

// unfilled takes out of settings what would be filled in from the environment,
// and what is empty then: in instructions, or as the name of a model, it would
// be sent to a provider.
func (s *source) unfilled(n ast.Node) (problems []Problem) {
	drop := func(v ast.Node) bool {
		if refers(v) {
			problems = append(problems, s.untrusted(v, "${…} is"+onlyTrusted))
			return true
		}
		below := s.unfilled(v)
		problems = append(problems, below...)
		return below != nil && isEmpty(v)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		n.Values = slices.DeleteFunc(n.Values, func(pair *ast.MappingValueNode) bool { return drop(pair.Value) })
	case *ast.SequenceNode:
		n.Values = slices.DeleteFunc(n.Values, drop)
	}
	return problems
}

func isEmpty(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.MappingNode:
		return len(n.Values) == 0
	case *ast.SequenceNode:
		return len(n.Values) == 0
	}
	return false
}

// stricter is a problem about a setting that would have lifted the user's own.
func (s *source) stricter(n ast.Node, setting string, own any) Problem {
	return s.untrusted(n, fmt.Sprintf("a project's file that you do not trust can only make %s stricter than yours (%v)", setting, own))
}

// tame takes out of what a file says of consent what the user's own does not
// consent to.
func (set *consent) tame(s *source, n ast.Node, now provider.Consent) (problems []Problem) {
	if r := set.RemoteFallback; r != nil && *r && !now.RemoteFallback {
		problems = append(problems, s.stricter(valueOf(n, "allow_remote_fallback"), "consent.allow_remote_fallback", false))
		set.RemoteFallback = nil
	}
	isMore := func(name string) bool {
		return !slices.ContainsFunc(now.Vendors, func(own string) bool { return strings.EqualFold(own, name) })
	}
	if v := set.Vendors; v != nil && len(now.Vendors) > 0 && (len(*v) == 0 || slices.ContainsFunc(*v, isMore)) {
		problems = append(problems, s.stricter(valueOf(n, "vendors"), "consent.vendors", strings.Join(now.Vendors, ", ")))
		set.Vendors = nil
	}
	return problems
}

// tame keeps what a policy may cost within what it was. Everything else of a
// policy costs time at most.
func (p *policy) tame(s *source, n ast.Node, was policy) (problems []Problem) {
	before, err := was.policy()
	if err != nil {
		return nil // of the user's own file, and told there
	}
	after, err := p.policy()
	if err != nil {
		return nil
	}
	if own := before.Budget.Money; lifts(after.Budget.Money, own) {
		problems = append(problems, s.stricter(valueOf(valueOf(n, "budget"), "money"), "policy.budget.money", own))
		p.Budget.Money = &own
	}
	if own := before.Budget.Tokens; lifts(after.Budget.Tokens, own) {
		problems = append(problems, s.stricter(valueOf(valueOf(n, "budget"), "tokens"), "policy.budget.tokens", own))
		p.Budget.Tokens = &own
	}
	return problems
}

// leaves gives the problem that a file that is not trusted makes a chain begin
// elsewhere which by the user's own configuration begins on this machine, and
// must not leave it; nil if it does not.
func (c *Config) leaves(ctx context.Context, first ninelives.Model, env provider.Env) error {
	k, _ := ninelives.CandidateOf(first)
	if c.own == nil || c.Consent.RemoteFallback || k.Local || !c.own.beginsHere(ctx, env) {
		return nil
	}
	p := Problem{Err: ErrUntrusted}
	if c.model != nil {
		p = c.model.where
		p.Err = ErrUntrusted
	}
	p.Message = fmt.Sprintf("by your own configuration requests stay on this machine, and a project's file that you do not trust must not send them to %s: "+
		"read the file, then run \"ninelives trust\", or name a model yourself", k.Name())
	return p
}

// beginsHere reports that a chain begins on this machine.
func (c *Config) beginsHere(ctx context.Context, env provider.Env) bool {
	models, _, err := c.Chain(ctx, env)
	if err != nil {
		return false
	}
	k, _ := ninelives.CandidateOf(models[0])
	return k.Local
}
