package tool

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// globFiles is how many files glob shows at once.
const globFiles = 200

type globArguments struct {
	Pattern string `json:"pattern" jsonschema:"such as *.go, src/**/*.{ts,tsx} or docs/**; without a slash it is matched against the names in all directories"`
	Path    string `json:"path,omitzero" jsonschema:"the directory to look in; the workspace if left out"`
	Limit   int    `json:"limit,omitzero" jsonschema:"how many files to show at most; 200 if left out"`
}

func glob(w *Workspace) Tool {
	return &typed[globArguments]{
		spec: Spec{
			Tool: describe[globArguments]("glob", "Finds files of the workspace by their path, those changed last first. "+
				"What .gitignore names is left out, unless path leads into it."),
			ReadOnly: true,
		},
		needs: func(a globArguments) ([]Need, error) {
			if _, err := globPattern(a.Pattern); err != nil {
				return nil, err
			}
			return w.readNeeds(a.Path)
		},
		run: func(ctx context.Context, _ *Call, a globArguments) Result {
			r, err := w.glob(ctx, a)
			if err != nil {
				return ErrorResult(err.Error())
			}
			return r
		},
	}
}

// globPattern makes a pattern ready for matching paths.
func globPattern(pattern string) (string, error) {
	p := strings.TrimPrefix(pattern, "./")
	if p == "" || !doublestar.ValidatePattern(p) {
		return "", fmt.Errorf("%q is not a pattern; use such as *.go, src/**/*.ts or docs/{a,b}*.md", visible.Escaped(pattern))
	}
	if path.IsAbs(p) || strings.HasPrefix(p, "../") {
		return "", fmt.Errorf("the pattern %q must be relative to path; give the directory as path", visible.Escaped(pattern))
	}
	if !strings.Contains(p, "/") {
		p = "**/" + p
	}
	return p, nil
}

func (w *Workspace) glob(ctx context.Context, a globArguments) (Result, error) {
	pattern, err := globPattern(a.Pattern)
	if err != nil {
		return Result{}, err
	}
	p, err := w.locate(a.Path)
	if err != nil {
		return Result{}, err
	}
	if info, err := p.root.Lstat(p.name); err != nil {
		return Result{}, p.failed("look into", err)
	} else if !info.IsDir() {
		return Result{}, fmt.Errorf("%s is %s, not a directory", visible.Escaped(p.shown), kindOf(info.Mode()))
	}
	type found struct {
		name string
		time int64
	}
	var files []found
	k := walker{root: p.root}
	err = k.from(ctx, p.name, func(rel string, info fs.FileInfo) error {
		if !info.IsDir() && doublestar.MatchUnvalidated(pattern, below(p.name, rel)) {
			files = append(files, found{rel, info.ModTime().UnixNano()})
		}
		return nil
	})
	if err != nil {
		return Result{}, fmt.Errorf("looking for %q was stopped after %s", visible.Escaped(a.Pattern), plural(len(files), "file"))
	}
	slices.SortFunc(files, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.time, a.time), strings.Compare(a.name, b.name))
	})
	limit := a.Limit
	if limit <= 0 {
		limit = globFiles
	}
	var out strings.Builder
	for _, f := range files[:min(limit, len(files))] {
		out.WriteString(visible.EscapedLine(f.name) + "\n")
	}
	if len(files) == 0 {
		out.WriteString("[no file matches]\n")
	}
	if len(files) > limit {
		fmt.Fprintf(&out, "[%d more match; give a narrower pattern]\n", len(files)-limit)
	}
	out.WriteString(k.note())
	r := TextResult(out.String())
	r.Summary = fmt.Sprintf("found %s for %s", plural(len(files), "file"), visible.EscapedLine(a.Pattern))
	return r, nil
}

// note says what a walk could not look into.
func (k *walker) note() string {
	if k.unreadable == 0 {
		return ""
	}
	return fmt.Sprintf("[%s could not be read]\n", plural(k.unreadable, "directory"))
}

// below makes a path relative to a directory above it.
func below(dir, rel string) string {
	if dir == "." {
		return rel
	}
	return strings.TrimPrefix(rel, dir+"/")
}
