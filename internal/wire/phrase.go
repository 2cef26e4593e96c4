package wire

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
)

// phrase is a set of wordings with one meaning, each a regular expression.
// Nothing is compiled before a text holds a literal that a wording cannot do
// without, so that a phrase costs nothing at the start of a program and a few
// string searches in use.
type phrase struct {
	sources []string
	parse   sync.Once
	whole   func() *regexp.Regexp
	choices []choice
}

// choice is one alternative of a phrase.
type choice struct {
	// needs are literals of which the text must hold at least one; none means
	// that it cannot be told.
	needs []string
	re    func() *regexp.Regexp
}

// texts is a phrase over levelled sentences, in any case.
func texts(sources ...string) *phrase { return newPhrase("(?i)", sources) }

// words is a phrase over squeezed codes.
func words(sources ...string) *phrase { return newPhrase("", sources) }

// exact is a phrase in which case matters.
func exact(source string) *phrase { return newPhrase("", []string{source}) }

func newPhrase(flags string, sources []string) *phrase {
	p := &phrase{sources: make([]string, len(sources))}
	for i, s := range sources {
		p.sources[i] = flags + "(?:" + s + ")"
	}
	p.whole = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(strings.Join(p.sources, "|")) })
	return p
}

func (p *phrase) prepare() {
	for _, s := range p.sources {
		tree, err := syntax.Parse(s, syntax.Perl)
		if err != nil {
			panic(err) // a mistake in this package; a test compiles them all
		}
		for tree.Op == syntax.OpCapture {
			tree = tree.Sub[0]
		}
		trees := []*syntax.Regexp{tree}
		if tree.Op == syntax.OpAlternate {
			trees = tree.Sub
		}
		for _, t := range trees {
			p.choices = append(p.choices, choice{
				needs: needs(t),
				re:    sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(t.String()) }),
			})
		}
	}
}

// in reports whether a text holds the phrase; lower is the text in lower case.
func (p *phrase) in(text, lower string) bool {
	p.parse.Do(p.prepare)
	for _, c := range p.choices {
		if c.possible(lower) && c.re().MatchString(text) {
			return true
		}
	}
	return false
}

// matches reports whether a text holds the phrase.
func (p *phrase) matches(text string) bool { return p.in(text, strings.ToLower(text)) }

// find gives the submatches of the first place that holds the phrase.
func (p *phrase) find(text string) []string {
	if !p.possible(text) {
		return nil
	}
	return p.whole().FindStringSubmatch(text)
}

// findAll gives the submatches of up to n places.
func (p *phrase) findAll(text string, n int) [][]string {
	if !p.possible(text) {
		return nil
	}
	return p.whole().FindAllStringSubmatch(text, n)
}

// places gives where the submatches are.
func (p *phrase) places(text string, n int) [][]int {
	if !p.possible(text) {
		return nil
	}
	return p.whole().FindAllStringSubmatchIndex(text, n)
}

// replace puts another text in every place that holds the phrase.
func (p *phrase) replace(text, by string) string {
	if !p.possible(text) {
		return text
	}
	return p.whole().ReplaceAllString(text, by)
}

func (p *phrase) possible(text string) bool {
	p.parse.Do(p.prepare)
	lower := strings.ToLower(text)
	return slices.ContainsFunc(p.choices, func(c choice) bool { return c.possible(lower) })
}

func (c choice) possible(lower string) bool {
	return len(c.needs) == 0 || slices.ContainsFunc(c.needs, func(n string) bool { return strings.Contains(lower, n) })
}

// needs finds literals one of which is in every match of t; nil if none can be told.
func needs(t *syntax.Regexp) []string {
	switch t.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(t.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return needs(t.Sub[0])
	case syntax.OpRepeat:
		if t.Min > 0 {
			return needs(t.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range t.Sub {
			if n := needs(sub); shortest(n) > shortest(best) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range t.Sub {
			n := needs(sub)
			if n == nil {
				return nil
			}
			all = append(all, n...)
		}
		return all
	}
	return nil
}

// shortest is the length of the shortest literal: the longer it is, the fewer
// texts hold it.
func shortest(literals []string) int {
	n := 0
	for i, l := range literals {
		if i == 0 || len(l) < n {
			n = len(l)
		}
	}
	return n
}
