package tool

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignores are the rules of a .gitignore and of those above it. Nil ignores
// nothing.
type ignores struct {
	dir   string // that the rules are relative to
	rules []ignoreRule
	up    *ignores
}

// ignoreRule is a line of a .gitignore. Source: gitignore(5).
type ignoreRule struct {
	pattern  string // for doublestar; without the marks below
	literal  bool   // pattern has no wildcards
	negated  bool   // "!": what matches is not ignored after all
	dirOnly  bool   // "/" at the end
	anchored bool   // it is matched against the path, else against the name alone
}

// ignored tells whether a path is ignored by itself; that a directory above it
// may be is for the walk, which does not go into those. The last rule that
// matches decides, and those of deeper files come after the others.
func (g *ignores) ignored(rel string, isDir bool) bool {
	for ; g != nil; g = g.up {
		below := rel
		if g.dir != "." {
			below = strings.TrimPrefix(rel, g.dir+"/")
		}
		for i := len(g.rules) - 1; i >= 0; i-- {
			if g.rules[i].matches(below, isDir) {
				return !g.rules[i].negated
			}
		}
	}
	return false
}

func (r ignoreRule) matches(rel string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if !r.anchored {
		rel = path.Base(rel)
	}
	if r.literal {
		return rel == r.pattern
	}
	return doublestar.MatchUnvalidated(r.pattern, rel)
}

// parseIgnores reads a .gitignore. Lines that are no patterns ignore nothing,
// as with git.
func parseIgnores(text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(strings.TrimPrefix(text, string(bom))) {
		if r, ok := parseIgnore(strings.TrimRight(line, "\r\n")); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

func parseIgnore(line string) (r ignoreRule, ok bool) {
	// Spaces at the end do not count, unless they are escaped.
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	if rest, is := strings.CutPrefix(line, "!"); is {
		r.negated, line = true, rest
	}
	if rest, is := strings.CutSuffix(line, "/"); is {
		r.dirOnly, line = true, rest
	}
	r.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	if strings.HasSuffix(line, "/**") {
		line += "/*" // what is inside, not the directory itself
	}
	// Braces mean nothing special to git.
	line = strings.NewReplacer(`\{`, `\{`, `\}`, `\}`, "{", `\{`, "}", `\}`).Replace(line)
	r.literal = !strings.ContainsAny(line, `*?[\`)
	r.pattern = line
	return r, r.literal || doublestar.ValidatePattern(line)
}
