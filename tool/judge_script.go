package tool

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// What a command would do is found by walking through it as a shell would,
// without running anything: assignments, loops and functions are followed, text
// that is known is known, and what only a run can tell is marked in the text
// itself. The marks are private characters, so they go wherever the text goes:
// through variables, substitutions and pipes.
const (
	unknownMark = "\ue000" // nobody knows what stands here before it runs
	fetchedMark = "\ue001" // it came over the network
	decodedMark = "\ue002" // it was decoded, so that nobody has read it
)

// known reports text that is as it stands.
func known(text string) bool { return !strings.ContainsAny(text, unknownMark+fetchedMark+decodedMark) }

// unmarked is the text with the marks of what is unknown left out.
func unmarked(text string) string {
	return strings.NewReplacer(unknownMark, "", fetchedMark, "", decodedMark, "").Replace(text)
}

// tints are the marks of a text, without the text.
func tints(text string) string {
	out := ""
	for _, mark := range []string{fetchedMark, decodedMark} {
		if strings.Contains(text, mark) {
			out += mark
		}
	}
	return out
}

// A start is one simple command as it would be started.
type start struct {
	args []string // with wrappers (nice, timeout, env) taken off
	// wrapped: it runs as somebody else or somewhere else (sudo, chroot); outer
	// are the words with that.
	wrapped bool
	outer   []string
	loose   bool     // something in it is known at run time only
	assigns []string // the names of what is set for it alone
	dir     string   // where: as in place
	in      string   // what it reads, as far as is known
	piped   bool     // it reads something
	code    bool     // it starts an interpreter with code that was walked through
}

// A touch is a file that a redirection opens.
type touch struct {
	place place
	write bool
	loose bool
}

// A script is what a command comes to.
type script struct {
	starts  []start
	touches []touch
	// floor says why it must never run; empty if nothing is known against it.
	floor string
	// broken says why it could not be read to its end.
	broken string
}

const (
	walkSteps = 4000 // statements, loops unrolled; real commands have tens
	walkDepth = 24   // scripts in scripts, functions in functions
	walkItems = 64   // rounds of a loop that are followed
	walkText  = 4096 // bytes of a variable
	walkFile  = 1 << 16
)

// readScript walks through a command that runs in a directory.
func (p Permissions) readScript(command, dir string) (result script) {
	s := &script{}
	defer func() {
		// The expander gives up on some words by a panic.
		if recover() != nil && s.broken == "" {
			s.broken = "the shell command cannot be followed"
		}
		result = *s
	}()
	steps := walkSteps
	w := &walk{p: p, s: s, steps: &steps, dir: dir,
		vars: map[string]expand.Variable{}, loose: map[string]bool{},
		funcs: map[string]*syntax.Stmt{}, files: map[string]string{}, knownParams: true}
	w.text(command, "", false)
	return
}

// walk is one shell of the walk; subshells are copies.
type walk struct {
	p     Permissions
	s     *script
	steps *int
	depth int
	dir   string

	vars  map[string]expand.Variable
	loose map[string]bool // set, but not certainly to this
	// steered are variables that make the commands after them other ones.
	steered []string
	funcs   map[string]*syntax.Stmt
	files   map[string]string // what the command itself wrote, by place

	params      []string
	knownParams bool

	in      string // what the present statement reads
	piped   bool
	isShell bool // the present statement is a shell
	fds     int
}

func (w *walk) subshell() *walk {
	c := *w
	c.vars = cloned(w.vars)
	c.loose = cloned(w.loose)
	c.funcs = cloned(w.funcs)
	return &c // files are shared: they outlive a subshell
}

func cloned[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func (w *walk) deny(why string) {
	if why != "" && w.s.floor == "" {
		w.s.floor = why
	}
}

func (w *walk) broken(why string) {
	if w.s.broken == "" {
		w.s.broken = why
	}
}

// text walks through a script that is given as text, in this shell.
func (w *walk) text(source, in string, piped bool) string {
	if w.depth >= walkDepth {
		w.broken("scripts stand in scripts too deep to be judged")
		return unknownMark
	}
	w.depth++
	defer func() { w.depth-- }()
	// Line by line, as a shell does: it runs what stands before an error.
	var out strings.Builder
	var failed error
	// The loop is not left early: the parser goes on after it has told an error.
	for stmt, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).StmtsSeq(strings.NewReader(source)) {
		if err != nil && failed == nil {
			failed = err
		}
		if failed == nil && *w.steps > 0 {
			out.WriteString(w.stmt(stmt, in, piped))
		}
	}
	if failed != nil {
		w.broken("the shell command does not parse: " + shown(failed.Error()))
		return unknownMark + tints(out.String())
	}
	return out.String()
}

func (w *walk) stmts(list []*syntax.Stmt, in string, piped bool) string {
	var out strings.Builder
	for _, stmt := range list {
		out.WriteString(w.stmt(stmt, in, piped))
	}
	if out.Len() > 1<<20 {
		return unknownMark + tints(out.String())
	}
	return out.String()
}

func (w *walk) stmt(stmt *syntax.Stmt, in string, piped bool) string {
	if *w.steps--; *w.steps < 0 {
		w.broken("the command is too long to be judged")
		return unknownMark
	}
	if stmt == nil {
		return ""
	}
	saveIn, savePiped, saveShell := w.in, w.piped, w.isShell
	defer func() { w.in, w.piped, w.isShell = saveIn, savePiped, saveShell }()
	w.in, w.piped = in, piped
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	w.isShell = ok && len(call.Args) > 0 && isShell(program(call.Args[0].Lit()))
	for _, r := range stmt.Redirs {
		w.redirectIn(r)
	}
	out := w.command(stmt)
	for _, r := range stmt.Redirs {
		out = w.redirectOut(r, out)
	}
	return out
}

// redirectIn follows what a statement reads.
func (w *walk) redirectIn(r *syntax.Redirect) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		w.in, w.piped = w.document(r.Hdoc), true
	case syntax.WordHdoc:
		text, _ := w.literal(r.Word)
		w.in, w.piped = text+"\n", true
	case syntax.RdrIn, syntax.RdrInOut:
		name, loose := w.literal(r.Word)
		l := w.place(name)
		w.s.touches = append(w.s.touches, touch{place: l, loose: loose, write: r.Op == syntax.RdrInOut})
		w.deny(w.p.floorPath(NeedRead, l))
		if r.Op == syntax.RdrInOut {
			w.connects(l)
			w.deny(w.p.floorPath(NeedWrite, l))
		}
		w.in, w.piped = w.content(l), true
	}
}

// redirectOut follows where a statement's output goes, and gives what is left of it.
func (w *walk) redirectOut(r *syntax.Redirect, out string) string {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrAllClob, syntax.AppAllClob:
	case syntax.DplOut:
		name, _ := w.literal(r.Word)
		if name == "-" || strings.Trim(name, "0123456789-") == "" {
			return out
		}
	default:
		return out
	}
	if len(r.Word.Parts) == 1 {
		if ps, ok := r.Word.Parts[0].(*syntax.ProcSubst); ok { // > >(command)
			w.subshell().stmts(ps.Stmts, out, true)
			return ""
		}
	}
	name, loose := w.literal(r.Word)
	l := w.place(name)
	if l.path == "/dev/stdout" || l.path == "/dev/fd/1" || l.path == "/proc/self/fd/1" {
		return out
	}
	if r.Op != syntax.RdrOut && r.Op != syntax.AppOut || w.isShell {
		w.connects(l)
	}
	w.writes(l, loose, out, r.Op == syntax.AppOut || r.Op == syntax.AppAll)
	if r.N != nil && r.N.Value != "1" {
		return out
	}
	return ""
}

// connects denies to give a shell to a connection. To try a port (> /dev/tcp/…)
// is no harm.
func (w *walk) connects(l place) {
	if strings.HasPrefix(l.path, "/dev/tcp/") || strings.HasPrefix(l.path, "/dev/udp/") {
		w.deny("it connects the shell to another machine (" + shown(l.path) + ")")
	}
}

// writes records that a file gets a content.
func (w *walk) writes(l place, loose bool, content string, more bool) {
	w.s.touches = append(w.s.touches, touch{place: l, loose: loose, write: true})
	w.deny(w.p.floorPath(NeedWrite, l))
	if more {
		content = w.files[l.path] + content
	}
	if len(content) > walkFile {
		content = unknownMark + tints(content)
	}
	w.files[l.path] = content
}

// content is what a file holds, if the command itself wrote it.
func (w *walk) content(l place) string {
	if text, ok := w.files[l.path]; ok {
		return text
	}
	if l.path == "/dev/null" {
		return ""
	}
	if strings.HasPrefix(l.path, "/dev/tcp/") || strings.HasPrefix(l.path, "/dev/udp/") {
		return unknownMark + fetchedMark
	}
	if l.path == "/dev/stdin" || l.path == "/dev/fd/0" || l.path == "/proc/self/fd/0" {
		return w.in
	}
	return unknownMark
}

func (w *walk) place(name string) place { return w.p.place(name, w.dir) }

func (w *walk) command(stmt *syntax.Stmt) string {
	in, piped := w.in, w.piped
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return w.call(cmd)
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			out := w.subshell().stmt(cmd.X, in, piped)
			return w.subshell().stmt(cmd.Y, out, true)
		}
		return w.stmt(cmd.X, in, piped) + w.stmt(cmd.Y, in, piped)
	case *syntax.Subshell:
		return w.subshell().stmts(cmd.Stmts, in, piped)
	case *syntax.Block:
		return w.stmts(cmd.Stmts, in, piped)
	case *syntax.IfClause:
		var out string
		for c := cmd; c != nil; c = c.Else {
			out += w.stmts(c.Cond, in, piped) + w.stmts(c.Then, in, piped)
		}
		return out
	case *syntax.WhileClause:
		return w.stmts(cmd.Cond, in, piped) + w.stmts(cmd.Do, in, piped)
	case *syntax.ForClause:
		return w.loop(cmd)
	case *syntax.CaseClause:
		w.literal(cmd.Word)
		var out string
		for _, item := range cmd.Items {
			for _, pattern := range item.Patterns {
				w.literal(pattern)
			}
			out += w.stmts(item.Stmts, in, piped)
		}
		return out
	case *syntax.FuncDecl:
		w.declare(cmd)
		return ""
	case *syntax.DeclClause:
		for _, a := range cmd.Args {
			w.assign(a)
		}
		return ""
	case *syntax.TimeClause:
		return w.stmt(cmd.Stmt, in, piped)
	case *syntax.CoprocClause:
		return w.subshell().stmt(cmd.Stmt, unknownMark, true)
	case nil:
		return ""
	}
	w.inside(stmt.Cmd) // tests and arithmetic: only what they substitute matters
	return ""
}

// inside walks through the substitutions in a node that has no words of its own.
func (w *walk) inside(node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			if text, _ := w.literal(n); hides(text) {
				w.s.starts = append(w.s.starts, start{args: []string{"[["}, loose: true, dir: w.dir})
			}
			return false
		case *syntax.CmdSubst:
			w.subshell().stmts(n.Stmts, w.in, w.piped)
			return false
		}
		return true
	})
}

func (w *walk) loop(cmd *syntax.ForClause) string {
	in, piped := w.in, w.piped
	iter, ok := cmd.Loop.(*syntax.WordIter)
	if !ok {
		w.inside(cmd.Loop)
		if c, ok := cmd.Loop.(*syntax.CStyleLoop); ok {
			syntax.Walk(c, func(n syntax.Node) bool {
				if b, ok := n.(*syntax.BinaryArithm); ok && b.Op == syntax.Assgn {
					if name, ok := b.X.(*syntax.Word); ok {
						w.set(name.Lit(), unknownMark, true)
					}
				}
				return true
			})
		}
		return w.stmts(cmd.Do, in, piped)
	}
	items, loose := w.fields(iter.Items)
	if !iter.InPos.IsValid() { // for x; do: the parameters
		items, loose = append([]string{}, w.params...), !w.knownParams
	}
	if len(items) == 0 || len(items) > walkItems {
		items, loose = append(items[:min(len(items), walkItems)], unknownMark), true
	}
	var out string
	for _, item := range items {
		if *w.steps < 0 {
			break
		}
		w.set(iter.Name.Value, item, loose)
		out += w.stmts(cmd.Do, in, piped)
	}
	return out
}

// declare takes up a function. Its body is judged at once, with parameters
// that nobody knows, and again with the real ones wherever it is called.
func (w *walk) declare(cmd *syntax.FuncDecl) {
	if cmd.Name == nil {
		return
	}
	name := cmd.Name.Value
	if spawnsItself(name, cmd.Body) {
		w.deny("it is a fork bomb: the function starts itself over and over")
	}
	w.funcs[name] = nil // no recursion while the body is looked at
	c := w.subshell()
	c.params, c.knownParams = []string{unknownMark}, false
	c.stmt(cmd.Body, w.in, w.piped)
	w.funcs[name] = cmd.Body
}

// spawnsItself reports a function that calls itself beside itself.
func spawnsItself(name string, body *syntax.Stmt) bool {
	found := false
	calls := func(node syntax.Node) bool {
		hit := false
		syntax.Walk(node, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == name {
				hit = true
			}
			return !hit
		})
		return hit
	}
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			found = found || n.Background && calls(n)
		case *syntax.BinaryCmd:
			found = found || (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) && (calls(n.X) && calls(n.Y))
		}
		return !found
	})
	return found
}

func (w *walk) set(name, value string, loose bool) {
	if steers(name) || hides(value) {
		w.steered = append(slices.Clip(w.steered), name)
	}
	if len(value) > walkText {
		value, loose = unknownMark+tints(value), true
	}
	w.vars[name] = expand.Variable{Set: true, Kind: expand.String, Str: value}
	w.loose[name] = loose
}

func (w *walk) assign(a *syntax.Assign) {
	if a.Name == nil {
		if a.Value != nil {
			w.literal(a.Value)
		}
		return
	}
	name := a.Name.Value
	switch {
	case a.Array != nil:
		var list []string
		loose := false
		for _, elem := range a.Array.Elems {
			if elem.Value == nil {
				continue
			}
			fields, l := w.fields([]*syntax.Word{elem.Value})
			list, loose = append(list, fields...), loose || l
		}
		if a.Append {
			list, loose = append(append([]string{}, w.vars[name].List...), list...), loose || w.loose[name]
		}
		w.set(name, strings.Join(list, " "), loose) // for what set looks at
		w.vars[name] = expand.Variable{Set: true, Kind: expand.Indexed, List: list}
		w.loose[name] = loose
	case a.Value != nil:
		value, loose := w.literal(a.Value)
		if a.Index != nil {
			w.set(name, unknownMark+tints(value), true)
			return
		}
		if a.Append {
			value, loose = w.vars[name].Str+value, loose || w.loose[name] || !w.vars[name].IsSet()
		}
		w.set(name, value, loose)
	case !a.Naked:
		w.set(name, "", false)
	}
}

// steers reports variables by which a shell or the programs that it starts are
// made to run something else: what only looks, looks no more.
func steers(name string) bool {
	switch name {
	case "PATH", "IFS", "HOME", "ENV", "BASH_ENV", "PS0", "PS1", "PS4", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "CDPATH", "PAGER", "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "TMPDIR", "SHELL", "GLOBIGNORE":
		return true
	}
	for _, prefix := range []string{"LD_", "DYLD_", "GIT_", "GO", "CGO_", "PYTHON", "NODE_", "NPM_", "npm_", "PERL", "RUBY", "LESS", "XDG_", "JAVA_", "RIPGREP_", "GREP_", "LC_", "BASH_"} {
		if strings.HasPrefix(name, prefix) {
			return !harmlessAssigns([]string{name})
		}
	}
	return false
}

// hides reports text that a shell would run where it takes it for a number or
// for the name of a variable (a[$(command)]).
func hides(text string) bool { return strings.Contains(text, "$(") || strings.Contains(text, "`") }

// call walks through a simple command.
func (w *walk) call(cmd *syntax.CallExpr) string {
	if len(cmd.Args) == 0 {
		for _, a := range cmd.Assigns {
			w.assign(a)
		}
		return ""
	}
	args, loose := w.fields(cmd.Args)
	names := slices.Clone(w.steered)
	for _, a := range cmd.Assigns {
		if a.Name != nil {
			names = append(names, a.Name.Value)
		}
		if a.Value != nil {
			value, _ := w.literal(a.Value)
			w.deny(w.p.floorAssign(a.Name.Value, value))
		}
	}
	if len(args) == 0 {
		args = []string{unknownMark}
	}
	return w.run(start{args: args, loose: loose, assigns: names})
}
