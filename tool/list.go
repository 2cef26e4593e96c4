package tool

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// What list_dir shows at once.
const (
	listEntries = 1000
	listDepth   = 8
)

type listArguments struct {
	Path  string `json:"path,omitzero" jsonschema:"the directory, relative to the workspace; the workspace itself if left out"`
	Depth int    `json:"depth,omitzero" jsonschema:"how many levels to show; 1 if left out, at most 8"`
}

func listDir(w *Workspace) Tool {
	return &typed[listArguments]{
		spec: Spec{
			Tool: describe[listArguments]("list_dir", "Lists a directory of the workspace: directories end with /, files have their size. "+
				"What .gitignore names is listed but not gone into."),
			ReadOnly: true,
		},
		needs: func(a listArguments) ([]Need, error) { return w.readNeeds(a.Path) },
		run: func(ctx context.Context, _ *Call, a listArguments) Result {
			r, err := w.list(ctx, a)
			if err != nil {
				return ErrorResult(err.Error())
			}
			return r
		},
	}
}

func (w *Workspace) list(ctx context.Context, a listArguments) (Result, error) {
	depth := max(a.Depth, 1)
	if depth > listDepth {
		return Result{}, fmt.Errorf("depth is at most %d", listDepth)
	}
	p, err := w.locate(a.Path)
	if err != nil {
		return Result{}, err
	}
	info, err := p.root.Lstat(p.name)
	if err != nil {
		return Result{}, p.failed("list", err)
	}
	if !info.IsDir() {
		return Result{}, fmt.Errorf("%s is %s, not a directory", visible.Escaped(p.shown), kindOf(info.Mode()))
	}
	l := listing{location: p, walker: walker{root: p.root, read: map[string][]ignoreRule{}}, depth: depth}
	var up *ignores
	for _, d := range above(p.name) {
		up = l.rules(d, up)
	}
	if err := l.into(ctx, p.name, up, 1); err != nil {
		return Result{}, err
	}
	if l.shown == 0 {
		l.out.WriteString("[the directory is empty]\n")
	}
	if l.left > 0 {
		fmt.Fprintf(&l.out, "[%d more are not shown; list a directory further down, or use glob]\n", l.left)
	}
	r := TextResult(l.out.String())
	r.Summary = fmt.Sprintf("listed %s: %s", visible.EscapedLine(p.shown), plural(l.shown+l.left, "entry"))
	return r, nil
}

// listing is what list_dir writes.
type listing struct {
	location
	walker
	depth int

	shown, left int
	out         strings.Builder
}

func (l *listing) rules(dir string, up *ignores) *ignores {
	if rules, ok := l.walker.rules(dir, path.Join(dir, ".gitignore")); ok {
		return &ignores{dir: dir, rules: rules, up: up}
	}
	return up
}

func (l *listing) into(ctx context.Context, dir string, up *ignores, level int) error {
	entries, err := entriesOf(l.location.root, dir)
	if err != nil {
		if level == 1 {
			return l.failed("list", err)
		}
		fmt.Fprintf(&l.out, "%s[cannot be read]\n", strings.Repeat("  ", level-1))
		return nil
	}
	up = l.rules(dir, up)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("listing %s was stopped", visible.Escaped(l.location.shown))
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		if l.shown >= listEntries {
			l.left++
			continue
		}
		l.shown++
		rel := path.Join(dir, e.Name())
		ignored := e.Name() == ".git" || up.ignored(rel, info.IsDir())
		fmt.Fprintf(&l.out, "%s%s%s\n", strings.Repeat("  ", level-1), visible.EscapedLine(e.Name()), l.about(rel, info, ignored))
		if info.IsDir() && !ignored && level < l.depth {
			if err := l.into(ctx, rel, up, level+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// about is what stands behind the name of an entry.
func (l *listing) about(rel string, info fs.FileInfo, ignored bool) string {
	var s string
	switch info.Mode().Type() {
	case fs.ModeDir:
		s = "/"
	case 0:
		s = "  " + size(info.Size())
	case fs.ModeSymlink:
		target, err := l.location.root.Readlink(rel)
		if err != nil {
			target = "?"
		}
		s = " -> " + visible.EscapedLine(target)
	default:
		s = "  (" + kindOf(info.Mode()) + ")"
	}
	if ignored {
		s += "  (ignored)"
	}
	return s
}
