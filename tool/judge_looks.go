package tool

import (
	"regexp"
	"strings"
)

// looking are programs that only look, with the options that would make them
// do more: short ones as letters, long ones by their beginning.
var looking = map[string]struct {
	short string
	long  []string
}{
	"ls": {}, "cat": {}, "head": {}, "tail": {}, "wc": {}, "stat": {}, "file": {short: "C", long: []string{"--compile"}}, "du": {}, "df": {},
	"basename": {}, "dirname": {}, "realpath": {}, "readlink": {}, "tree": {short: "oR", long: []string{"--output"}},
	"diff": {}, "cmp": {}, "comm": {}, "sort": {short: "oT", long: []string{"--output", "--compress-program", "--temporary-directory"}},
	"cut": {}, "tr": {}, "nl": {}, "tac": {}, "rev": {}, "fold": {}, "column": {}, "paste": {}, "join": {}, "expand": {}, "unexpand": {}, "fmt": {},
	"grep": {}, "egrep": {}, "fgrep": {}, "zgrep": {}, "rg": {long: []string{"--pre", "--hostname-bin", "--search-zip"}, short: "z"},
	"jq": {}, "md5sum": {}, "sha1sum": {}, "sha256sum": {}, "sha512sum": {}, "cksum": {}, "od": {}, "hexdump": {}, "strings": {}, "nm": {}, "size": {},
	"gofmt": {short: "w"}, "pgrep": {}, "cloc": {}, "tokei": {}, "base64": {}, "which": {},
}

// telling are programs that tell something, whatever they are given.
var telling = map[string]bool{
	"echo": true, "printf": true, "true": true, "false": true, ":": true, "pwd": true, "whoami": true, "id": true, "uname": true, "nproc": true, "uptime": true,
	"free": true, "lscpu": true, "seq": true, "sleep": true, "type": true, "test": true, "[": true, "exit": true, "return": true, "break": true, "continue": true,
	"shift": true, "local": true, "wait": true, "arch": true, "tty": true, "getconf": true, "locale": true, "groups": true, "printenv": true, "shopt": true,
}

// gitLooks are the subcommands of git that only look.
var gitLooks = map[string]bool{
	"status": true, "log": true, "diff": true, "show": true, "rev-parse": true, "ls-files": true, "ls-tree": true, "blame": true, "annotate": true, "describe": true,
	"shortlog": true, "cat-file": true, "merge-base": true, "rev-list": true, "name-rev": true, "for-each-ref": true, "grep": true, "diff-tree": true, "diff-index": true,
	"diff-files": true, "show-ref": true, "whatchanged": true, "count-objects": true, "version": true, "check-ignore": true, "check-attr": true, "var": true, "cherry": true, "range-diff": true,
}

var (
	sedPrints = regexp.MustCompile(`^(?:(?:\d+|\$|/[^/]*/)(?:,\+?(?:\d+|\$|/[^/]*/))?!?[pdq=]?;?\s*|s([/|#,])[^\n]*[/|#,][gpiI0-9]*;?\s*)*$`)
	sedDoes   = regexp.MustCompile(`s(.)(?:[^\n]*?)[/|#,][a-zA-Z0-9]*[ewM]`)
	versions  = map[string]bool{"--version": true, "-V": true, "version": true, "--help": true}
)

// looks reports a command that only looks, at nothing but the workspace; else
// why it is not one.
func (p Permissions) looks(st start) (bool, string) {
	name := st.args[0]
	what := shown(strings.Join(st.args, " "))
	switch {
	case st.wrapped:
		return false, "it runs with other rights or elsewhere (" + what + ")"
	case st.code:
		// What it runs was walked through and is judged by itself, if it is known.
		if st.loose {
			return false, "it runs code that is known only then (" + what + ")"
		}
		if base := program(name); base == "su" || !st.walked() {
			return false, "it runs a program (" + what + ")"
		}
		return true, ""
	case !harmlessAssigns(st.assigns):
		return false, "it sets variables for a command (" + what + ")"
	case telling[name]:
		if name != "echo" && hides(strings.Join(st.args, " ")) {
			return false, "it may run what stands in it (" + what + ")"
		}
		return true, ""
	case st.loose:
		return false, "part of it is known only when it runs (" + what + ")"
	}
	args := st.args
	ok := false
	switch name {
	case "git":
		ok = gitLooking(&args)
	case "go":
		ok = goLooking(args)
	case "find":
		ok = findLooking(args)
	case "sed":
		ok = sedLooking(args)
		args = dropOperand(args)
	case "awk", "gawk", "mawk":
		ok = len(args) > 1 && !option(args[:min(3, len(args))], "fi", "") && !strings.ContainsAny(strings.Join(args[1:], " "), "|>@") && !strings.Contains(strings.Join(args, " "), "system") && !strings.Contains(strings.Join(args, " "), "getline")
		if ok {
			args = dropOperand(args)
		}
	case "uniq", "xxd":
		ok = len(operands(args)) < 2 && !option(args, "r", "")
	case "date":
		ok = !option(args, "s", "set") && len(operands(args)) == len(prefixed(args, "+"))
	case "hostname":
		ok = len(args) == 1
	case "env":
		ok = len(args) == 1
	case "set":
		ok = len(args) == 1 || strings.HasPrefix(args[1], "-") || strings.HasPrefix(args[1], "+")
	case "cd", "pushd", "popd":
		ok = true
	case "read":
		ok = !hides(strings.Join(args, " "))
	case "command":
		ok = len(args) > 1 && (args[1] == "-v" || args[1] == "-V")
	case "ps":
		return true, ""
	case "sqlite3", "less", "more":
		ok = false
	default:
		if k, found := looking[name]; found {
			ok = !(k.short != "" && option(args, k.short, ""))
			for _, a := range args[1:] {
				for _, long := range k.long {
					// A beginning of a long option is taken for it.
					word, _, _ := strings.Cut(a, "=")
					if strings.HasPrefix(a, "--") && len(word) > 3 && (strings.HasPrefix(long, word) || strings.HasPrefix(word, long)) {
						ok = false
					}
				}
			}
			if strings.HasSuffix(name, "grep") && name != "pgrep" || name == "rg" || name == "tr" || name == "jq" {
				args = dropOperand(args)
			}
		} else if len(args) == 2 && versions[args[1]] && !strings.Contains(name, "/") {
			return true, ""
		}
	}
	if !ok {
		return false, "it may change something (" + what + ")"
	}
	for _, a := range args[1:] {
		if a == "-" || strings.HasPrefix(a, "-") && !strings.ContainsAny(a, "/~") {
			continue
		}
		for _, piece := range pieces(a) {
			if strings.HasPrefix(piece, "-") {
				continue
			}
			l := p.place(piece, st.dir)
			if !l.inside() && !sink(l.path) || l.secret() {
				return false, "it looks at " + shown(l.show())
			}
		}
	}
	return true, ""
}

// walked reports a shell whose code stood in its command line or its input.
func (st start) walked() bool {
	switch program(st.args[0]) {
	case "eval", "trap", "alias":
		return true
	}
	if !isShell(program(st.args[0])) {
		return false
	}
	for i, a := range st.args {
		if a == "-c" {
			return i == 1 && len(st.args) > 2
		}
	}
	return st.piped && len(st.args) == 1
}

func prefixed(args []string, prefix string) []string {
	var out []string
	for _, a := range args[1:] {
		if strings.HasPrefix(a, prefix) {
			out = append(out, a)
		}
	}
	return out
}

// dropOperand takes the first operand off, which is a pattern and no path.
func dropOperand(args []string) []string {
	if option(args, "ef", "regexp") || option(args, "f", "file") {
		return args
	}
	for i, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			return append(append([]string{}, args[:i+1]...), args[i+2:]...)
		}
	}
	return args
}

// gitLooking reports git commands that only look, and takes off what is no path.
func gitLooking(args *[]string) bool {
	a := (*args)[1:]
	var dirs []string
	for len(a) > 0 && strings.HasPrefix(a[0], "-") {
		switch {
		case a[0] == "-C" && len(a) > 1:
			dirs = append(dirs, a[1])
			a = a[2:]
		case a[0] == "--no-pager" || a[0] == "-P" || a[0] == "--no-optional-locks" || a[0] == "--literal-pathspecs":
			a = a[1:]
		case a[0] == "--version":
			return true
		default:
			return false
		}
	}
	if len(a) == 0 {
		return false
	}
	sub, rest := a[0], a[1:]
	for _, r := range rest {
		word, _, _ := strings.Cut(r, "=")
		if len(word) > 3 && (strings.HasPrefix("--output", word) && word != "--out" || strings.HasPrefix("--ext-diff", word) || strings.HasPrefix("--open-files-in-pager", word) || strings.HasPrefix("--textconv", word)) || sub == "grep" && strings.HasPrefix(r, "-O") {
			return false
		}
	}
	only := func(allowed ...string) bool {
		for _, r := range rest {
			found := false
			for _, x := range allowed {
				found = found || r == x || strings.HasSuffix(x, "=") && strings.HasPrefix(r, x)
			}
			if !found {
				return false
			}
		}
		return true
	}
	ok := gitLooks[sub]
	switch sub {
	case "branch":
		ok = only("-a", "-r", "-v", "-vv", "--all", "--remotes", "--list", "--show-current", "--verbose", "--sort=", "--format=", "--no-color")
	case "remote":
		ok = only("-v", "--verbose") || len(rest) == 2 && rest[0] == "get-url"
	case "tag":
		ok = only("-l", "--list", "--sort=", "-n")
	case "stash":
		ok = len(rest) > 0 && (rest[0] == "list" || rest[0] == "show")
	case "config":
		ok = len(rest) > 0 && (rest[0] == "--get" || rest[0] == "--list" || rest[0] == "-l" || rest[0] == "--get-all" || rest[0] == "get" || rest[0] == "list")
		rest = nil
	case "worktree", "submodule":
		ok = len(rest) > 0 && (rest[0] == "list" || rest[0] == "status")
	case "reflog":
		ok = len(rest) == 0 || rest[0] == "show"
	}
	if sub == "grep" {
		rest = dropOperand(append([]string{"grep"}, rest...))[1:]
	}
	// What git calls x:path or a..b is in its own store.
	kept := []string{"git"}
	for _, r := range append(dirs, rest...) {
		if !strings.HasPrefix(r, "-") {
			kept = append(kept, r)
		}
	}
	for _, r := range rest {
		if sub == "diff" && r == "--no-index" {
			return false
		}
	}
	*args = kept
	return ok
}

func goLooking(args []string) bool {
	if len(args) < 2 {
		return false
	}
	for _, a := range args[1:] {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if strings.HasPrefix(a, "-") && (name == "exec" || name == "toolexec" || name == "vettool" || name == "overlay" || name == "modfile" || name == "o" || name == "mod" || name == "w" || name == "u" || name == "fix" || name == "C") {
			return false
		}
	}
	switch args[1] {
	case "version", "env", "vet", "list", "doc", "help":
		return true
	}
	return false
}

func findLooking(args []string) bool {
	for _, a := range args[1:] {
		switch a {
		case "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-ok", "-okdir", "-exec", "-execdir", "-files0-from":
			// What -exec starts is judged by itself, but for every file that is found.
			return false
		}
	}
	return true
}

func sedLooking(args []string) bool {
	if option(args, "iefsWu", "in-place") || option(args, "", "expression") || option(args, "", "file") || option(args, "", "separate") {
		return false
	}
	for _, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			return sedPrints.MatchString(a) && !sedDoes.MatchString(a)
		}
	}
	return false
}
