package heal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/ninelives-ai/ninelives"

// waiters are the files outside this package that may wait, and for what. None
// of them waits in order to try again.
var waiters = map[string]string{
	"provider/watch.go":      "the clocks of one attempt",
	"provider/body.go":       "reads on for the usage after the answer's end",
	"chaos/play.go":          "a fault that is a delay",
	"cmd/ninelives/input.go": "input on a pipe",
	"journal/owner.go":       "the lock of another process",
	"agent/memory.go":        "a session to be idle",
	"agent/memory_file.go":   "the lock of another process",
	"agent/calls.go":         "the clock of a call, and a place of the rate limiter",
	"config/watch.go":        "files to stand still",
	"gateway/keep.go":        "the journal to be pruned",
	"gateway/live.go":        "a client to come back, and kept answers to be dropped",
	"gateway/write.go":       "a sign of life for the client",
}

// apart are the directories that ask no model themselves, so that nothing they
// wait for can be another try at a call: a process, a frame of the screen (a
// test's as well), a server of tools that comes back, a gateway under load.
var apart = []string{"tool/", "cmd/ninelives/tui/", "cmd/ninelives/acp/", "internal/tmuxtest/", "bench/"}

// dice are the files outside this package that may use chance, and for what.
var dice = map[string]string{
	"journal/id.go":  "ids that nobody else makes",
	"gateway/way.go": "the lot of a call, by which a route's weights are kept",
}

// There is one owner of retries: no other package of the module waits before
// it tries something again, rolls dice, or asks how a candidate stands.
func TestNobodyElseBacksOffOrChooses(t *testing.T) {
	root := ".."
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if d.IsDir() {
			// The nested module of comparisons with other clients is not the product.
			if name == "compat" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "heal/") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil // its own package's build says so
		}
		seen[name] = true
		aside := slices.ContainsFunc(apart, func(dir string) bool { return strings.HasPrefix(name, dir) })
		check := func(ok bool, what string) {
			if !ok && !aside {
				t.Errorf("%s %s: only package heal does", name, what)
			}
		}
		for _, imp := range file.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			if aside && (path == module+"/heal" || path == module+"/provider") {
				t.Errorf("%s imports %s: it is held to ask no model itself", name, path)
			}
			check(!strings.HasPrefix(path, "math/rand") || dice[name] != "", "rolls dice")
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, _ := sel.X.(*ast.Ident)
			switch {
			case pkg != nil && pkg.Name == "time":
				switch sel.Sel.Name {
				case "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick":
					check(waiters[name] != "", "waits by time."+sel.Sel.Name)
				}
			case pkg != nil && pkg.Name == "heal":
				check(sel.Sel.Name != "Decide", "decides")
			case sel.Sel.Name == "Enter" || sel.Sel.Name == "MayRetry":
				check(false, "takes places at candidates by "+sel.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) < 10 {
		t.Fatalf("only %d files were looked at", len(seen))
	}
}
