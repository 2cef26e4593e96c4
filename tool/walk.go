package tool

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// walker goes through a directory tree in the order of its paths. It follows no
// symbolic link, leaves .git out, and what the .gitignore files name.
type walker struct {
	root *os.Root
	// known gives the rules of a directory as they were read before; a directory
	// that is missing in it is read.
	known map[string][]ignoreRule
	// skip names more directories to leave out.
	skip string
	// all goes into ignored directories too, and into .git.
	all bool

	read       map[string][]ignoreRule // what was read, and known, of each directory
	unreadable int                     // directories that could not be read
}

// maxIgnoreFile is the largest .gitignore that is obeyed.
const maxIgnoreFile = 1 << 20

// from walks what lies under dir and calls visit for everything in it, a
// directory before its content. An error of visit ends the walk and is given
// back; fs.SkipDir leaves the content of a directory out. What vanishes
// meanwhile is passed over.
func (k *walker) from(ctx context.Context, dir string, visit func(rel string, info fs.FileInfo) error) error {
	if k.read == nil {
		k.read = map[string][]ignoreRule{}
	}
	var up *ignores
	if !k.all {
		if rules, ok := k.rules(".git/info/exclude", ".git/info/exclude"); ok {
			up = &ignores{dir: ".", rules: rules}
		}
		for _, d := range above(dir) {
			if rules, ok := k.rules(d, path.Join(d, ".gitignore")); ok {
				up = &ignores{dir: d, rules: rules, up: up}
			}
		}
	}
	return k.into(ctx, dir, up, visit)
}

func (k *walker) into(ctx context.Context, dir string, up *ignores, visit func(string, fs.FileInfo) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := entriesOf(k.root, dir)
	if err != nil {
		k.unreadable++
		return nil
	}
	if !k.all {
		if rules, ok := k.rules(dir, path.Join(dir, ".gitignore")); ok {
			up = &ignores{dir: dir, rules: rules, up: up}
		}
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		rel := path.Join(dir, e.Name())
		if !k.all && (e.Name() == ".git" || info.IsDir() && e.Name() == k.skip || up.ignored(rel, info.IsDir())) {
			continue
		}
		switch err := visit(rel, info); {
		case err == fs.SkipDir:
		case err != nil:
			return err
		case info.IsDir():
			if err := k.into(ctx, rel, up, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// rules gives the rules that a directory's ignore file holds.
func (k *walker) rules(dir, file string) ([]ignoreRule, bool) {
	rules, ok := k.known[dir]
	if !ok {
		p := location{root: k.root, name: file}
		if content, _, whole, err := p.read(maxIgnoreFile); err == nil && whole {
			rules = parseIgnores(string(content))
		}
	}
	k.read[dir] = rules
	return rules, len(rules) > 0
}

// entriesOf lists a directory in the order of the names. It never waits, and
// what could not be read of it is an error.
func entriesOf(root *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|calm, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil && err != io.EOF {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// above lists the directories above one, from the top: "a/b/c" has ".", "a", "a/b".
func above(dir string) []string {
	if dir == "." {
		return nil
	}
	var up []string
	for d := path.Dir(dir); ; d = path.Dir(d) {
		up = append(up, d)
		if d == "." {
			slices.Reverse(up)
			return up
		}
	}
}
