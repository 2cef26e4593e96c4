package tool

import (
	"slices"
	"strings"
)

// judgeCommand judges a shell command by every simple command in it and every
// file that it redirects to.
func (p Permissions) judgeCommand(spec Spec, need Need) Verdict {
	s := p.readScript(need.Target, p.place(need.Directory, "").path)
	what := "runs " + shown(need.Target)
	if s.floor != "" {
		return floored(s.floor)
	}
	if p.Profile == ProfileRestricted {
		return Verdict{Action: ActionDeny, Why: what + ", and the restricted profile runs no commands"}
	}
	if p.Mode == ModePlan {
		if why := p.changes(s); why != "" {
			return Verdict{Action: ActionDeny, Why: what + ", and plan mode only looks: " + why}
		}
	}
	worst := Verdict{Action: ActionAllow, Why: what}
	var open []start // what nothing vouches for
	for _, st := range s.starts {
		action, why := p.judgeStart(spec, st)
		if action == "" {
			open = append(open, st)
			continue
		}
		if v := (Verdict{Action: action, Why: why}); v.stricter(worst) {
			worst = v
		}
	}
	for _, t := range s.touches {
		if v := p.judgeTouch(spec, t); v.stricter(worst) {
			worst = v
		}
	}
	if s.broken != "" {
		if v := (Verdict{Action: ActionAsk, Why: s.broken}); v.stricter(worst) {
			worst = v
		}
	}
	if len(open) == 0 || p.Mode == ModeFull {
		return worst
	}
	v := Verdict{Action: ActionAsk, Why: what}
	if len(open) == 1 && s.broken == "" && worst.Action == ActionAllow {
		v.Offer = offerCommand(spec, open[0])
	}
	if slices.ContainsFunc(open, func(st start) bool { return st.loose }) {
		v.Why += ", part of which is known only when it runs"
		v.Offer = nil
	}
	if v.stricter(worst) {
		return v
	}
	return worst
}

// judgeStart says what rules, or the harmlessness of a command, make of it;
// no action if neither says anything.
func (p Permissions) judgeStart(spec Spec, st start) (Action, string) {
	what := "runs " + shown(strings.Join(st.args, " "))
	action, ruledBy := p.commandRule(spec.Name, st)
	if ruledBy && action != ActionAllow {
		return action, ruled(action, what)
	}
	if !ruledBy && p.Mode == ModeFull && st.loose && p.hasStrict(spec.Name) {
		return ActionAsk, what + ", which is known only when it runs, and there are rules for what must not"
	}
	if harmless, _ := p.looks(st); harmless {
		return ActionAllow, what
	}
	if ruledBy {
		return action, ruled(action, what)
	}
	return "", ""
}

// changes says why a command is not one that only looks; empty if it is.
func (p Permissions) changes(s script) string {
	if s.broken != "" {
		return s.broken
	}
	for _, st := range s.starts {
		if ok, why := p.looks(st); !ok {
			return why
		}
	}
	for _, t := range s.touches {
		switch {
		case t.write && !sink(t.place.path):
			return "it writes to " + shown(t.place.show())
		case t.loose || !t.write && !t.place.inside() && !sink(t.place.path) || t.place.secret():
			return "it reads " + shown(t.place.show())
		}
	}
	return ""
}

// sink reports files that nothing is kept in.
func sink(name string) bool {
	switch name {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero", "/dev/urandom", "/dev/random":
		return true
	}
	return strings.HasPrefix(name, "/dev/fd/")
}

// judgeTouch judges a redirection like the file tool that would do the same.
func (p Permissions) judgeTouch(spec Spec, t touch) Verdict {
	if sink(t.place.path) {
		return Verdict{Action: ActionAllow}
	}
	kind := NeedRead
	if t.write {
		kind = NeedWrite
	}
	v := p.judgePath(spec, Need{Kind: kind, Target: t.place.path})
	v.Offer = nil
	if t.loose && v.Action == ActionAllow && p.Mode != ModeFull {
		v = Verdict{Action: ActionAsk, Why: "opens a file whose name is known only when it runs"}
	}
	return v
}

// commandRule gives the strictest action of the rules for a command.
func (p Permissions) commandRule(tool string, st start) (Action, bool) {
	var action Action
	for _, r := range p.Rules {
		if r.Tool != "" && !wild(r.Tool, tool) {
			continue
		}
		match := r.Target == ""
		if !match && r.Action == ActionAllow {
			match = !st.loose && !st.code && harmlessAssigns(st.assigns) && begins(r.Target, firstOf(st.outer, st.args), false)
		} else if !match {
			match = begins(r.Target, st.args, true) || st.wrapped && begins(r.Target, st.outer, true) || p.touchesBy(r.Target, st)
		}
		if match && (action == "" || r.Action.weight() > action.weight()) {
			action = r.Action
		}
	}
	return action, action != ""
}

func firstOf(a, b []string) []string {
	if len(a) > 0 {
		return a
	}
	return b
}

// touchesBy reports a command that is given a path which a rule names.
func (p Permissions) touchesBy(target string, st start) bool {
	if !strings.ContainsAny(target, "/.~*") || strings.Contains(target, " ") || target == "*" {
		return false
	}
	for _, a := range st.args[1:] {
		for _, piece := range pieces(a) {
			if p.place(piece, st.dir).matches(target, p.Home) {
				return true
			}
		}
	}
	return false
}

// hasStrict reports rules that deny or ask for certain commands.
func (p Permissions) hasStrict(tool string) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool {
		return r.Action != ActionAllow && r.Target != "" && (r.Tool == "" || wild(r.Tool, tool))
	})
}

// begins reports that a command begins with the words of a rule. anyPath: also
// where the program is named with its directory.
func begins(target string, args []string, anyPath bool) bool {
	words := strings.Fields(target)
	if n := len(words); n > 1 && words[n-1] == "*" {
		words = words[:n-1]
	}
	if len(words) == 0 || len(words) > len(args) {
		return false
	}
	for i, word := range words {
		if !wild(word, args[i]) && !(i == 0 && anyPath && wild(word, program(args[0]))) {
			return false
		}
	}
	return true
}

// harmlessAssigns reports variables that change how much a command says or what
// it builds for, and not what it runs.
func harmlessAssigns(names []string) bool {
	for _, name := range names {
		switch name {
		case "CGO_ENABLED", "GOOS", "GOARCH", "GOARM", "GOAMD64", "GOMAXPROCS", "GODEBUG", "GORACE", "NODE_ENV", "CI", "DEBUG", "VERBOSE",
			"RUST_BACKTRACE", "RUST_LOG", "FORCE_COLOR", "NO_COLOR", "CLICOLOR", "TERM", "LANG", "LANGUAGE", "TZ", "COLUMNS", "LINES", "PYTHONUNBUFFERED":
		default:
			if !strings.HasPrefix(name, "LC_") {
				return false
			}
		}
	}
	return true
}

// neverOffered are commands that "always" must not be offered for: they run
// whatever they are given, reach outside, or take away.
var neverOffered = map[string]bool{
	"env": true, "xargs": true, "parallel": true, "eval": true, "exec": true, "source": true, ".": true, "find": true, "fd": true, "ssh": true, "scp": true, "sftp": true,
	"rsync": true, "rm": true, "rmdir": true, "mv": true, "dd": true, "chmod": true, "chown": true, "chgrp": true, "kill": true, "pkill": true, "killall": true,
	"curl": true, "wget": true, "nc": true, "ncat": true, "socat": true, "telnet": true, "tee": true, "truncate": true, "ln": true, "crontab": true, "at": true,
	"systemctl": true, "service": true, "mount": true, "umount": true, "su": true, "trap": true, "alias": true, "export": true, "set": true, "vim": true, "vi": true, "nano": true,
	"npx": true, "bunx": true, "uvx": true, "pipx": true, "watch": true, "script": true, "flock": true, "tmux": true, "screen": true, "expect": true, "sed": true, "aws": true,
	"gcloud": true, "az": true, "kubectl": true, "terraform": true, "gh": true, "cd": true,
}

// subcommands are programs whose first word says what they do.
var subcommands = map[string]bool{
	"git": true, "go": true, "npm": true, "pnpm": true, "yarn": true, "bun": true, "deno": true, "cargo": true, "docker": true, "podman": true, "make": true, "just": true,
	"pip": true, "pip3": true, "uv": true, "poetry": true, "dotnet": true, "gradle": true, "mvn": true, "bundle": true, "rake": true, "composer": true, "mix": true,
	"brew": true, "apt": true, "apt-get": true, "dnf": true, "swift": true, "flutter": true, "task": true, "bazel": true, "cmake": true, "ninja": true, "rails": true, "hatch": true, "nx": true, "turbo": true,
}

// runners are subcommands that run what the next word names.
var runners = map[string]bool{"run": true, "exec": true, "x": true, "dlx": true, "tool": true}

// offerCommand is the rule that "always" would add for a command; nil if there
// is no sensible one.
func offerCommand(spec Spec, st start) *Rule {
	if st.wrapped || st.code || st.loose || !harmlessAssigns(st.assigns) {
		return nil
	}
	name := st.args[0]
	if neverOffered[program(name)] || isInterpreter(program(name)) || strings.ContainsAny(name, "*?[ \t\n") {
		return nil
	}
	words := []string{name}
	if subcommands[name] {
		if len(st.args) < 2 || strings.HasPrefix(st.args[1], "-") {
			return nil
		}
		words = append(words, st.args[1])
		switch {
		case name == "git" && (st.args[1] == "push" || st.args[1] == "clean" || st.args[1] == "reset" || st.args[1] == "config"):
			return nil
		case st.args[1] == "exec" || st.args[1] == "x" || st.args[1] == "dlx" || name == "docker" && st.args[1] == "run" || name == "podman" && st.args[1] == "run":
			return nil
		case runners[st.args[1]]:
			if len(st.args) < 3 || strings.HasPrefix(st.args[2], "-") {
				return nil
			}
			words = append(words, st.args[2])
		}
	}
	for _, word := range words {
		if word == "" || strings.ContainsAny(word, "* \t\n") || !known(word) {
			return nil
		}
	}
	return &Rule{Action: ActionAllow, Tool: spec.Name, Target: strings.Join(words, " ") + " *"}
}
