package tool

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// Judge says what is done with a call of a tool that touches these things: the
// strictest verdict over all of them. It is a pure function; the floor
// (floor.go) comes first, then plan mode and the restricted profile, then the
// rules, then the mode.
//
// A call that touches nothing is allowed, unless a rule names its tool.
func (p Permissions) Judge(spec Spec, needs []Need) Verdict {
	worst := Verdict{Action: ActionAllow}
	if len(needs) == 0 {
		if action, named := p.rule(spec.Name, func(string) bool { return false }); named {
			worst = Verdict{Action: action, Why: ruled(action, "calls "+spec.Name)}
		}
	}
	asked := 0
	for i, need := range needs {
		v := p.judge(spec, need)
		if i == 0 {
			worst.Why = v.Why
		}
		if v.Action == ActionAsk {
			asked++
		}
		if v.stricter(worst) {
			worst = v
		}
	}
	if asked > 1 {
		worst.Offer = nil // one rule would not do
	}
	if worst.Action != ActionAsk {
		worst.Offer = nil
	}
	return worst
}

// stricter reports that v leaves less room than w.
func (v Verdict) stricter(w Verdict) bool {
	if v.Floor != w.Floor {
		return v.Floor
	}
	return v.Action.weight() > w.Action.weight()
}

// weight orders the actions by strictness.
func (a Action) weight() int {
	switch a {
	case ActionAllow:
		return 0
	case ActionAsk:
		return 1
	}
	return 2
}

func (p Permissions) judge(spec Spec, need Need) Verdict {
	switch need.Kind {
	case NeedExecute:
		return p.judgeCommand(spec, need)
	case NeedRead, NeedWrite, NeedDelete:
		return p.judgePath(spec, need)
	case NeedFetch:
		return p.judgeFetch(spec, need)
	case NeedCall:
		return p.judgeCall(spec, need)
	}
	return Verdict{Action: ActionDeny, Why: fmt.Sprintf("nobody knows what %q touches", need.Kind)}
}

// judgePath judges reading, writing and deleting of a file.
func (p Permissions) judgePath(spec Spec, need Need) Verdict {
	file := p.place(need.Target, "")
	if why := p.floorPath(need.Kind, file); why != "" {
		return floored(why)
	}
	verb := map[NeedKind]string{NeedRead: "reads", NeedWrite: "writes", NeedDelete: "deletes"}[need.Kind]
	what := verb + " " + shown(file.show())
	if p.Mode == ModePlan && need.Kind != NeedRead {
		return Verdict{Action: ActionDeny, Why: what + ", and plan mode changes nothing"}
	}
	if p.Profile == ProfileRestricted {
		switch {
		case need.Kind == NeedDelete:
			return Verdict{Action: ActionDeny, Why: what + ", and the restricted profile deletes nothing"}
		case !file.inside():
			return Verdict{Action: ActionDeny, Why: what + ", and the restricted profile stays inside the workspace"}
		}
	}
	if action, ok := p.rule(spec.Name, func(target string) bool { return file.matches(target, p.Home) }); ok {
		return Verdict{Action: action, Why: ruled(action, what)}
	}
	ask := func(why string) Verdict {
		v := Verdict{Action: ActionAsk, Why: why}
		if file.inside() && need.Kind != NeedDelete && !file.secret() {
			v.Offer = &Rule{Action: ActionAllow, Tool: spec.Name, Target: file.offer()}
		}
		return v
	}
	if p.Mode == ModeFull {
		return Verdict{Action: ActionAllow, Why: what}
	}
	switch {
	case file.secret():
		return ask(what + ", where secrets may be")
	case !file.inside():
		return ask(what + ", outside the workspace")
	case need.Kind == NeedRead:
		return Verdict{Action: ActionAllow, Why: what}
	case p.Mode == ModeAutoEdit && (need.Kind == NeedWrite || p.Profile == ProfileTrusted):
		return Verdict{Action: ActionAllow, Why: what}
	}
	return ask(what)
}

// judgeFetch judges asking a web server.
func (p Permissions) judgeFetch(spec Spec, need Need) Verdict {
	u, err := url.Parse(need.Target)
	if err != nil || u.Hostname() == "" {
		return Verdict{Action: ActionDeny, Why: "fetches from an address that names no host"}
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	what := "fetches from " + shown(host)
	if p.Profile == ProfileRestricted {
		return Verdict{Action: ActionDeny, Why: what + ", and the restricted profile has no network"}
	}
	if action, ok := p.rule(spec.Name, func(target string) bool { return wild(strings.ToLower(target), host) }); ok {
		return Verdict{Action: action, Why: ruled(action, what)}
	}
	if p.Mode == ModeFull {
		return Verdict{Action: ActionAllow, Why: what}
	}
	return Verdict{Action: ActionAsk, Why: what, Offer: &Rule{Action: ActionAllow, Tool: spec.Name, Target: host}}
}

// judgeCall judges a call of an outside server's tool.
func (p Permissions) judgeCall(spec Spec, need Need) Verdict {
	what := "asks the server for " + shown(need.Target)
	switch {
	case p.Profile == ProfileRestricted:
		return Verdict{Action: ActionDeny, Why: what + ", and the restricted profile has no outside servers"}
	case p.Mode == ModePlan && !spec.ReadOnly:
		return Verdict{Action: ActionDeny, Why: what + ", and plan mode changes nothing"}
	}
	if action, ok := p.rule(spec.Name, func(target string) bool { return wild(target, need.Target) }); ok {
		return Verdict{Action: action, Why: ruled(action, what)}
	}
	if p.Mode == ModeFull {
		return Verdict{Action: ActionAllow, Why: what}
	}
	return Verdict{Action: ActionAsk, Why: what, Offer: &Rule{Action: ActionAllow, Tool: spec.Name, Target: need.Target}}
}

// rule gives the strictest action of the rules that name the tool and whose
// target matches.
func (p Permissions) rule(tool string, matches func(target string) bool) (Action, bool) {
	var action Action
	for _, r := range p.Rules {
		if r.Tool != "" && !wild(r.Tool, tool) || r.Target != "" && !matches(r.Target) {
			continue
		}
		if action == "" || r.Action.weight() > action.weight() {
			action = r.Action
		}
	}
	return action, action != ""
}

func ruled(action Action, what string) string {
	switch action {
	case ActionAllow:
		return what + ": a rule allows it"
	case ActionAsk:
		return what + ": a rule wants it asked for"
	}
	return what + ": a rule denies it"
}

func floored(why string) Verdict {
	return Verdict{Action: ActionDeny, Why: why, Floor: true}
}

// wild matches a name against a pattern in which * stands for any characters.
func wild(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}

// shown is untrusted text as it may stand in a line: short, and without what
// cannot be seen or turns the direction of writing.
func shown(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || visible.Hidden(r) {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > 120 {
		text = string(runes[:117]) + "..."
	}
	return text
}

// A place is where a path leads, as far as its letters tell: symbolic links are
// resolved by whoever touches it.
type place struct {
	// path is clean: relative to the workspace ("" is the workspace itself,
	// "../x" beside it), or absolute.
	path string
}

// place reads a path that is used in a directory of the workspace (or, after a
// cd, in an absolute one).
func (p Permissions) place(name, dir string) place {
	if p.Home != "" {
		if name == "~" {
			name = p.Home
		} else if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = path.Join(p.Home, rest)
		}
	}
	if !path.IsAbs(name) && !strings.HasPrefix(name, "~") {
		name = path.Join(dir, name)
	}
	name = path.Clean(name)
	if path.IsAbs(name) && p.Workspace != "" {
		if name == p.Workspace {
			name = "."
		} else if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(p.Workspace, "/")+"/"); ok {
			name = rest
		}
	} else if p.Workspace != "" && (name == ".." || strings.HasPrefix(name, "../")) {
		name = path.Join(p.Workspace, name)
	}
	if name == "." {
		name = ""
	}
	return place{path: name}
}

func (l place) inside() bool {
	return !path.IsAbs(l.path) && l.path != ".." && !strings.HasPrefix(l.path, "../") && !strings.HasPrefix(l.path, "~")
}

func (l place) show() string {
	if l.path == "" {
		return "the workspace"
	}
	return l.path
}

// matches compares with a rule's pattern.
func (l place) matches(pattern, home string) bool {
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok && home != "" {
		pattern = path.Join(home, rest)
	}
	ok, err := doublestar.Match(strings.TrimPrefix(pattern, "./"), l.path)
	return ok && err == nil
}

// offer is the pattern that "always" would allow: the directory of the file, or
// the file where it is in the workspace itself.
func (l place) offer() string {
	if dir := path.Dir(l.path); dir != "." {
		return escapeGlob(dir) + "/**"
	}
	return escapeGlob(l.path)
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(s)
}

// secret reports a file that often holds secrets but is a project's own: it is
// asked for.
func (l place) secret() bool {
	base := path.Base(l.path)
	if base != ".env" && !strings.HasPrefix(base, ".env.") && base != ".envrc" {
		return false
	}
	switch path.Ext(base) {
	case ".example", ".sample", ".template", ".dist", ".defaults":
		return false
	}
	return true
}
