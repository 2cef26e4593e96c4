package tool

import (
	"io"
	"path"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// fields expands words into fields. loose: they are not certainly these.
func (w *walk) fields(words []*syntax.Word) (fields []string, loose bool) {
	for _, word := range words {
		loose = w.unsure(word) || loose
		got, err := []string{unknownMark}, error(nil)
		if !wide(word) {
			got, err = expand.Fields(w.config(), word)
		}
		if err != nil {
			got = []string{unknownMark}
		}
		for _, f := range got {
			if !known(f) {
				loose = true
			}
		}
		fields = append(fields, got...)
	}
	return fields, loose
}

// wide reports braces that would expand to more than can be followed.
func wide(word *syntax.Word) bool {
	braces, long := 0, false
	for _, part := range word.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			braces += strings.Count(lit.Value, "{")
			if strings.Contains(lit.Value, "..") && strings.Contains(lit.Value, "{") {
				long = long || digits(lit.Value) > 3
			}
		}
	}
	return braces > 6 || long
}

// digits is the length of the longest run of digits.
func digits(s string) int {
	longest, n := 0, 0
	for _, r := range s {
		if n++; r < '0' || r > '9' {
			n = 0
		}
		longest = max(longest, n)
	}
	return longest
}

func (w *walk) literal(word *syntax.Word) (text string, loose bool) {
	if word == nil {
		return "", false
	}
	loose = w.unsure(word)
	// Fields without splitting, because expand.Literal leaves backslashes in.
	cfg := w.config()
	cfg.Env = environ{w: w, whole: true}
	if wide(word) {
		return unknownMark, true
	}
	fields, err := expand.Fields(cfg, word)
	text = strings.Join(fields, " ")
	if err != nil {
		text = unknownMark
	}
	return text, loose || !known(text)
}

func (w *walk) document(word *syntax.Word) string {
	if word == nil {
		return ""
	}
	text, err := expand.Document(w.config(), word)
	if err != nil {
		return unknownMark
	}
	if w.unsure(word) {
		text += unknownMark
	}
	return text
}

// unsure reports a word that holds a variable that the script does not set.
func (w *walk) unsure(word *syntax.Word) bool {
	unsure := false
	syntax.Walk(word, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false // their output has marks
		case *syntax.ParamExp:
			if n.Param == nil || n.Excl || n.Names != 0 {
				unsure = true
				return true
			}
			name := n.Param.Value
			if name == "@" || name == "*" || len(name) == 1 && name[0] >= '1' && name[0] <= '9' {
				unsure = unsure || !w.knownParams
			} else if _, ok := w.vars[name]; ok {
				unsure = unsure || w.loose[name]
			} else if _, ok := w.special(name); !ok {
				unsure = true
			}
		}
		return true
	})
	return unsure
}

func (w *walk) config() *expand.Config {
	return &expand.Config{
		Env: environ{w: w},
		CmdSubst: func(out io.Writer, cs *syntax.CmdSubst) error {
			_, err := io.WriteString(out, w.subshell().stmts(cs.Stmts, w.in, w.piped))
			return err
		},
		ProcSubst: func(ps *syntax.ProcSubst) (string, error) {
			w.fds++
			name := "/dev/fd/" + strings.Repeat("9", 1+w.fds%8)
			if ps.Op == syntax.CmdOut {
				w.subshell().stmts(ps.Stmts, w.in+unknownMark, true)
				return "/dev/null", nil
			}
			w.files[name] = w.subshell().stmts(ps.Stmts, "", false)
			return name, nil
		},
	}
}

// special gives what is known of variables that the shell itself has.
func (w *walk) special(name string) (string, bool) {
	switch name {
	case "HOME":
		if w.p.Home == "" {
			return "~", true
		}
		return w.p.Home, true
	case "PWD":
		if path.IsAbs(w.dir) || w.p.Workspace == "" {
			return path.Join("./", w.dir), true
		}
		return path.Join(w.p.Workspace, w.dir), true
	case "IFS":
		return " \t\n", true
	case "?", "#", "LINENO", "RANDOM", "SECONDS", "EPOCHSECONDS", "SHLVL", "BASHPID", "UID", "EUID":
		return "7", true
	case "$", "!", "PPID":
		return "31337", true
	case "-":
		return "hB", true
	case "TMPDIR":
		return "/tmp", true
	case "0":
		return "bash", true
	}
	return "", false
}

// present are variables that an environment usually has; every other that a
// script does not set is taken for empty, as it will be.
var present = map[string]bool{
	"PATH": true, "USER": true, "LOGNAME": true, "HOSTNAME": true, "SHELL": true, "LANG": true, "TERM": true, "OLDPWD": true,
	"EDITOR": true, "PAGER": true, "DISPLAY": true, "GOPATH": true, "GOROOT": true, "GOCACHE": true, "GOBIN": true,
	"GOMODCACHE": true, "JAVA_HOME": true, "CARGO_HOME": true, "RUSTUP_HOME": true, "VIRTUAL_ENV": true, "CONDA_PREFIX": true,
	"NVM_DIR": true, "BASH_VERSION": true, "OSTYPE": true, "MACHTYPE": true, "HOSTTYPE": true, "PIPESTATUS": true,
	"XDG_CONFIG_HOME": true, "XDG_CACHE_HOME": true, "XDG_DATA_HOME": true, "XDG_STATE_HOME": true, "XDG_RUNTIME_DIR": true,
	"REPLY": true, "OPTARG": true, "OPTIND": true, "BASH_SOURCE": true,
}

// environ shows the variables of a walk to the expander.
type environ struct {
	w     *walk
	whole bool // words are not split
}

func (e environ) Get(name string) expand.Variable {
	str := func(s string) expand.Variable {
		return expand.Variable{Set: true, Kind: expand.String, Str: s}
	}
	if user, ok := strings.CutPrefix(name, "HOME "); ok {
		if user == "root" {
			return str("/root")
		}
		return str("/home/" + user)
	}
	if name == "IFS" && e.whole {
		return str("")
	}
	if v, ok := e.w.vars[name]; ok {
		return v
	}
	switch {
	case name == "@" || name == "*":
		return expand.Variable{Set: true, Kind: expand.Indexed, List: e.w.params}
	case len(name) == 1 && name[0] >= '1' && name[0] <= '9':
		if i := int(name[0] - '1'); i < len(e.w.params) && e.w.knownParams {
			return str(e.w.params[i])
		}
		if !e.w.knownParams {
			return str(unknownMark)
		}
		return expand.Variable{}
	}
	if s, ok := e.w.special(name); ok {
		return str(s)
	}
	if present[name] {
		return str(unknownMark)
	}
	return expand.Variable{}
}

func (e environ) Each(f func(string, expand.Variable) bool) {
	for name, v := range e.w.vars {
		if !f(name, v) {
			return
		}
	}
}

// Set takes what an expansion assigns (${x:=y}).
func (e environ) Set(name string, v expand.Variable) error {
	e.w.vars[name] = v
	e.w.loose[name] = true
	return nil
}
