package tool

import (
	"path"
	"strings"
)

// program is the name that a command goes by: without its directory.
func program(arg string) string {
	name := path.Base(unmarked(arg))
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}

// A wrapper starts the command that follows its options.
type wrapper struct {
	values string   // short options that take a value
	longs  []string // long ones that take a value as a word of its own
	skip   int      // words between the options and the command
	other  bool     // the command runs as somebody else, or somewhere else
}

var wrappers = map[string]wrapper{
	"sudo":        {values: "ugCpDhrtTRU", longs: []string{"--user", "--group", "--chdir", "--prompt", "--host", "--chroot"}, other: true},
	"doas":        {values: "uC", other: true},
	"pkexec":      {longs: []string{"--user"}, other: true},
	"runuser":     {values: "ug", other: true},
	"chroot":      {skip: 1, other: true},
	"unshare":     {values: "RwSG", other: true},
	"nsenter":     {values: "tSG", other: true},
	"fakeroot":    {},
	"systemd-run": {values: "pEuMH", longs: []string{"--unit", "--property", "--setenv"}, other: true},
	"nice":        {values: "n", longs: []string{"--adjustment"}},
	"ionice":      {values: "cnpPu"},
	"chrt":        {skip: 1},
	"taskset":     {skip: 1},
	"nohup":       {},
	"setsid":      {},
	"stdbuf":      {values: "ioe"},
	"timeout":     {values: "ks", longs: []string{"--kill-after", "--signal"}, skip: 1},
	"gtimeout":    {values: "ks", skip: 1},
	"time":        {values: "fo"},
	"command":     {},
	"builtin":     {},
	"exec":        {values: "a"},
	"busybox":     {},
	"toybox":      {},
	"caffeinate":  {values: "tw"},
	"strace":      {values: "eopsu", other: true},
	"ltrace":      {values: "eopsu", other: true},
	"xvfb-run":    {values: "nsef"},
}

// inner gives the command that a wrapper starts.
func (k wrapper) inner(args []string) []string {
	i := 1
	for ; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			i++
			break
		}
		if len(a) < 2 || a[0] != '-' {
			break
		}
		for _, long := range k.longs {
			if a == long {
				i++
			}
		}
		if a[1] != '-' && strings.IndexByte(k.values, a[len(a)-1]) >= 0 {
			i++
		}
	}
	if i += k.skip; i >= len(args) {
		return nil
	}
	return args[i:]
}

// run follows one simple command, and gives what it writes, as far as that is
// known.
func (w *walk) run(st start) string {
	if *w.steps--; *w.steps < 0 || w.depth >= walkDepth {
		w.broken("the command is too long to be judged")
		return unknownMark
	}
	w.depth++
	defer func() { w.depth-- }()
	st.dir, st.in, st.piped = w.dir, w.in, w.piped
	name := program(st.args[0])
	if body, ok := w.funcs[st.args[0]]; ok {
		if body == nil {
			return unknownMark // it calls itself
		}
		params, knownParams := w.params, w.knownParams
		w.params, w.knownParams = st.args[1:], !st.loose
		w.funcs[st.args[0]] = nil // one round is enough to judge it
		out := w.stmt(body, w.in, w.piped)
		w.funcs[st.args[0]] = body
		w.params, w.knownParams = params, knownParams
		return out
	}
	if k, ok := wrappers[name]; ok {
		w.deny(w.p.floorStart(st))
		inner := k.inner(st.args)
		if name == "command" && len(st.args) > 1 && strings.HasPrefix(st.args[1], "-") && strings.ContainsAny(st.args[1], "vV") || inner == nil {
			w.s.starts = append(w.s.starts, st)
			return unknownMark
		}
		if k.other && !st.wrapped {
			st.wrapped, st.outer = true, st.args
		}
		st.args = inner
		return w.run(st)
	}
	if out, ok := w.launch(name, st); ok {
		return out
	}
	w.deny(w.p.floorStart(st))
	w.s.starts = append(w.s.starts, st)
	w.effects(name, st)
	return w.output(name, st)
}

// launch follows commands whose arguments are commands.
func (w *walk) launch(name string, st start) (out string, ok bool) {
	args := st.args
	// code is one interpreter that starts what has been walked through.
	code := func() {
		st.code = true
		st.loose = st.loose || st.piped && !known(st.in)
		w.deny(w.p.floorStart(st))
		w.s.starts = append(w.s.starts, st)
	}
	switch name {
	case "env":
		return w.env(st), true
	case "eval":
		code()
		return w.script(strings.Join(args[1:], " "), "text that came over the network or was decoded is run by eval", w.in, w.piped, true), true
	case ".", "source":
		code()
		if len(args) > 1 {
			return w.scriptFile(args[1], st), true
		}
		return "", true
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "su", "csh", "tcsh", "osh", "yash", "elvish", "nu", "pwsh", "powershell", "cmd":
		code()
		return w.shell(name, st), true
	case "xargs", "parallel":
		return w.xargs(name, st), true
	case "find", "fd", "fdfind", "gfind":
		w.deny(w.p.floorStart(st))
		w.s.starts = append(w.s.starts, st)
		w.find(st)
		return unknownMark, true
	case "trap":
		if len(args) > 1 && args[1] != "-" && args[1] != "" {
			code()
			w.text(args[1], "", false)
		}
		return "", true
	case "alias":
		for _, a := range args[1:] {
			if _, value, ok := strings.Cut(a, "="); ok {
				code()
				w.subshell().text(value, "", false)
			}
		}
		return "", true
	case "at", "batch":
		code()
		return w.fed(), true
	case "tmux", "screen", "watch", "hyperfine", "entr", "concurrently", "zellij", "dtach":
		// Each has its own way to be given a command; whatever may be one is looked at.
		st.loose = true
		code()
		for i, a := range args[1:] {
			if strings.ContainsAny(a, " ;|&") {
				w.subshell().text(a, "", false)
			}
			if !strings.HasPrefix(a, "-") {
				w.deny(w.p.floorStart(start{args: args[i+1:], dir: w.dir}))
			}
		}
		return unknownMark, true
	case "flock", "script":
		for i, a := range args[1:] {
			if (a == "-c" || a == "--command") && i+2 < len(args) {
				code()
				return w.subshell().text(args[i+2], w.in, w.piped), true
			}
		}
		if name == "flock" {
			inner := wrapper{values: "wEo", longs: []string{"--timeout", "--wait"}, skip: 1}.inner(args)
			if inner == nil {
				return "", false
			}
			st.args = inner
			return w.run(st), true
		}
	}
	return "", false
}

// env takes the assignments and options of env off.
func (w *walk) env(st start) string {
	args := st.args[1:]
	for len(args) > 0 {
		a := args[0]
		switch {
		case a == "--":
			args = args[1:]
			continue
		case a == "-u" || a == "--unset" || a == "-C" || a == "--chdir":
			if a == "-C" || a == "--chdir" {
				st.wrapped, st.outer = true, st.args
			}
			args = args[min(2, len(args)):]
			continue
		case a == "-S" || a == "--split-string":
			if len(args) < 2 {
				return unknownMark
			}
			return w.subshell().text(strings.Join(args[1:], " "), w.in, w.piped)
		case strings.HasPrefix(a, "-S") || strings.HasPrefix(a, "--split-string="):
			text := strings.TrimPrefix(strings.TrimPrefix(a, "-S"), "--split-string=")
			return w.subshell().text(text+" "+strings.Join(args[1:], " "), w.in, w.piped)
		case strings.HasPrefix(a, "-"):
			args = args[1:]
			continue
		}
		if name, value, ok := strings.Cut(a, "="); ok {
			st.assigns = append(st.assigns, name)
			w.deny(w.p.floorAssign(name, value))
			args = args[1:]
			continue
		}
		break
	}
	if len(args) == 0 {
		st.args = []string{"env"}
		w.s.starts = append(w.s.starts, st)
		return unknownMark
	}
	st.args = args
	return w.run(st)
}

// script walks through text that a shell is given as code.
func (w *walk) script(source, why, in string, piped, here bool) string {
	if tints(source) != "" {
		w.deny(why)
	}
	target := w
	if !here {
		target = w.subshell()
	}
	source = unmarked(source) // the start itself is marked as loose
	return target.text(source, in, piped)
}

func (w *walk) scriptFile(name string, st start) string {
	l := w.place(name)
	source := w.content(l)
	if tints(source) != "" {
		w.deny("it runs what came over the network or was decoded, unread (" + shown(l.show()) + ")")
	}
	if !known(source) || source == "" {
		return unknownMark // a file that was there before: a program like others
	}
	c := w.subshell()
	c.params = nil
	if len(st.args) > 2 {
		c.params = st.args[2:]
	}
	return c.text(source, w.in, w.piped)
}

const fedShell = "it feeds a shell with what came over the network or was decoded, unread"

// shell follows a shell's own command line.
func (w *walk) shell(name string, st start) string {
	args := st.args[1:]
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-c" || a == "--command" || name == "cmd" && strings.EqualFold(a, "/c") ||
			len(a) > 1 && (a[0] == '-' || a[0] == '+') && a[1] != '-' && strings.HasSuffix(a, "c") && name != "su" ||
			(name == "pwsh" || name == "powershell") && strings.EqualFold(a, "-Command"),
			len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "c") && isShell(name) && !strings.Contains(a, "o"):
			rest := args[i+1:]
			for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && rest[0] != "--" { // bash -c -x text
				rest = rest[1:]
			}
			if len(rest) > 0 && rest[0] == "--" {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				return unknownMark
			}
			c := w.subshell()
			c.params = nil
			if len(rest) > 2 {
				c.params = rest[2:]
			}
			return c.script(rest[0], "a shell runs text that came over the network or was decoded", w.in, w.piped, true)
		case a == "-o" || a == "+o" || a == "-O" || a == "--rcfile" || a == "--init-file":
			i++
		case a == "-s" || a == "-":
			return w.fed()
		case a == "--":
			if i+1 < len(args) {
				return w.scriptFile(args[i+1], start{args: args[i:]})
			}
		case strings.HasPrefix(a, "-") || strings.HasPrefix(a, "+"):
		case name == "su":
		default:
			return w.scriptFile(a, start{args: append([]string{name}, args[i:]...)})
		}
	}
	return w.fed()
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "yash":
		return true
	}
	return false
}

// fed follows a shell that reads its commands.
func (w *walk) fed() string {
	if !w.piped {
		return unknownMark
	}
	return w.subshell().script(w.in, fedShell, unknownMark, true, true)
}

// xargs follows the command that is given its arguments by a pipe.
func (w *walk) xargs(name string, st start) string {
	k := wrapper{values: "InPLsEd", longs: []string{"--max-args", "--max-procs", "--replace", "--delimiter", "--jobs", "--max-lines", "--arg-file"}}
	if name == "parallel" {
		k.values = "jNnIa"
	}
	inner := k.inner(st.args)
	place := ""
	for i, a := range st.args[:len(st.args)-len(inner)] {
		switch {
		case (a == "-I" || a == "-i" || a == "--replace") && i+1 < len(st.args):
			place = st.args[i+1]
		case strings.HasPrefix(a, "-I") || strings.HasPrefix(a, "-i"):
			place = a[2:]
		case strings.HasPrefix(a, "--replace="):
			place = strings.TrimPrefix(a, "--replace=")
		}
	}
	if name == "parallel" && place == "" {
		place = "{}"
	}
	inner = append([]string{}, inner...)
	if i := index(inner, ":::"); i >= 0 {
		w.in, inner = strings.Join(inner[i+1:], "\n"), inner[:i]
	}
	items := strings.FieldsFunc(w.in, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == 0 })
	if len(items) > walkItems {
		items = append(items[:walkItems], unknownMark)
	}
	if len(items) == 0 || !w.piped {
		items = []string{unknownMark}
	}
	if len(inner) == 0 {
		if name == "parallel" {
			return w.script(w.in, fedShell, "", false, false)
		}
		inner = []string{"echo"}
	}
	st.loose = st.loose || !known(w.in) || !w.piped
	if place == "" {
		st.args = append(inner, items...)
		return w.run(st)
	}
	var out string
	for _, item := range items {
		st.args = make([]string, len(inner))
		for i, a := range inner {
			st.args[i] = strings.ReplaceAll(a, place, item)
		}
		out += w.run(st)
	}
	return out
}

func index(list []string, s string) int {
	for i, x := range list {
		if x == s {
			return i
		}
	}
	return -1
}

// find follows the commands that find starts for what it finds.
func (w *walk) find(st start) {
	roots := findRoots(st.args)
	args := st.args
	for i := 1; i < len(args); i++ {
		switch args[i] {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			end := i + 1
			for end < len(args) && args[end] != ";" && args[end] != "+" {
				end++
			}
			for _, root := range roots {
				c := st
				c.args = nil
				// What is found is under the root; the root is the worst of it.
				if filtered(args) {
					root = path.Join(root, wanted(args))
				}
				for _, a := range args[min(i+1, len(args)):end] {
					c.args = append(c.args, strings.ReplaceAll(a, "{}", root))
				}
				if len(c.args) > 0 {
					c.loose = true
					w.run(c)
				}
			}
			i = end
		}
	}
}

// findRoots are the directories that find looks through.
func findRoots(args []string) []string {
	if program(args[0]) == "fd" || program(args[0]) == "fdfind" {
		if len(args) > 2 && !strings.HasPrefix(args[2], "-") {
			return args[2:3]
		}
		return []string{"."}
	}
	var roots []string
	for _, a := range args[1:] {
		if a == "-H" || a == "-L" || a == "-P" || strings.HasPrefix(a, "-O") || a == "-D" {
			continue
		}
		if strings.HasPrefix(a, "-") || a == "(" || a == "!" {
			break
		}
		roots = append(roots, a)
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	return roots
}

// wanted is the name that find looks for.
func wanted(args []string) string {
	for i, a := range args[:len(args)-1] {
		if a == "-name" || a == "-iname" {
			return args[i+1]
		}
	}
	return unknownMark
}

// filtered reports a find that takes only what has a certain name or age.
func filtered(args []string) bool {
	for i, a := range args {
		switch a {
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex":
			if i+1 < len(args) && args[i+1] != "*" && args[i+1] != ".*" && args[i+1] != "**" {
				return true
			}
		case "-mtime", "-mmin", "-newer", "-size", "-empty", "-atime", "-ctime", "-user", "-perm", "-xtype":
			return true
		}
	}
	return false
}

func isInterpreter(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	switch name {
	case "python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh", "osascript", "rscript", "julia", "groovy", "scala", "ts-node", "tsx", "ipython", "irb", "awk", "gawk", "mawk", "nawk":
		return true
	}
	return isShell(name)
}
