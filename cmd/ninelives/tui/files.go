package tui

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	ignore "github.com/sabhiram/go-gitignore"
)

// listLimit is how many files are offered for completion at most.
const listLimit = 20000

// workspaceFiles lists the files of the workspace, with slashes: without what
// .gitignore leaves out, and without .git and other people's packages.
func workspaceFiles(ctx context.Context, root *os.Root) []string {
	files := []string{}
	if root == nil {
		return files
	}
	var rules *ignore.GitIgnore
	if data, err := root.ReadFile(".gitignore"); err == nil {
		rules = ignore.CompileIgnoreLines(strings.Split(string(data), "\n")...)
	}
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil || len(files) >= listLimit {
			return fs.SkipAll
		}
		if err != nil {
			return nil // a directory that cannot be read is left out
		}
		if d.IsDir() {
			switch path.Base(name) {
			case ".git", ".hg", ".svn", "node_modules":
				return fs.SkipDir
			}
			if name != "." && rules != nil && rules.MatchesPath(name+"/") {
				return fs.SkipDir
			}
			return nil
		}
		if rules == nil || !rules.MatchesPath(name) {
			files = append(files, name)
		}
		return nil
	})
	return files
}

// branch is the git branch of a directory, or the beginning of its commit;
// empty where there is none.
func branch(dir string) string {
	if dir == "" {
		return ""
	}
	for {
		git := filepath.Join(dir, ".git")
		if info, err := os.Lstat(git); err == nil {
			if !info.IsDir() { // a worktree: the file names the directory
				data, err := os.ReadFile(git)
				to, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
				if err != nil || !ok {
					return ""
				}
				if !filepath.IsAbs(to) {
					to = filepath.Join(dir, to)
				}
				git = to
			}
			data, err := os.ReadFile(filepath.Join(git, "HEAD"))
			if err != nil {
				return ""
			}
			head := strings.TrimSpace(string(data))
			if name, ok := strings.CutPrefix(head, "ref: refs/heads/"); ok {
				return name
			}
			return head[:min(len(head), 8)]
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}
