package tui

import "strings"

// stream takes Markdown as it comes in pieces and tells what of it is
// finished: whole paragraphs, lists, tables and fenced blocks. Each line is
// looked at once, so a long answer costs no more than its length.
type stream struct {
	source strings.Builder
	done   int      // bytes of the source that are finished
	seen   int      // bytes of the source whose lines were looked at
	lines  []string // the finished blocks, rendered
	fence  string   // the mark that closes the fenced block; empty outside
	width  int
	color  bool
}

// add takes a piece and renders what it finishes.
func (s *stream) add(text string, md *markdown, width int, color bool) {
	s.source.WriteString(text)
	if s.width != width || s.color != color {
		s.lines, s.done, s.seen, s.fence = nil, 0, 0, ""
		s.width, s.color = width, color
	}
	all := s.source.String()
	for {
		i := strings.IndexByte(all[s.seen:], '\n')
		if i < 0 {
			return
		}
		line := all[s.seen : s.seen+i]
		s.seen += i + 1
		if s.ends(line) {
			s.finish(all[s.done:s.seen], md)
			s.done = s.seen
		}
	}
}

// ends reports whether a line ends a block. A blank line does outside of
// fences, but not before what goes on with it (a list's next item is only
// known when it comes, so a list is rendered item group by item group).
func (s *stream) ends(line string) bool {
	mark := strings.TrimSpace(line)
	if s.fence != "" {
		if strings.HasPrefix(mark, s.fence) && strings.Trim(mark, s.fence[:1]) == "" {
			s.fence = ""
			return true
		}
		return false
	}
	for _, c := range []string{"```", "~~~"} {
		if strings.HasPrefix(mark, c) {
			n := len(mark) - len(strings.TrimLeft(mark, c[:1]))
			s.fence = mark[:n]
			return false
		}
	}
	return mark == ""
}

func (s *stream) finish(block string, md *markdown) {
	if strings.TrimSpace(block) == "" {
		return
	}
	if len(s.lines) > 0 {
		s.lines = append(s.lines, "")
	}
	s.lines = append(s.lines, md.render(block, s.width, s.color)...)
}

// tail gives the last n lines of what there is to see: the finished blocks
// rendered, what is unfinished as it stands.
func (s *stream) tail(n int) []string {
	rest, _ := lastLines(s.source.String()[s.done:], n)
	if most := 4 * n * s.width; len(rest) > most { // one endless line
		rest = strings.ToValidUTF8(rest[len(rest)-most:], "")
	}
	var lines []string
	if strings.TrimSpace(rest) != "" {
		lines = wrap(visible(rest), s.width)
		if len(s.lines) > 0 {
			lines = append([]string{""}, lines...)
		}
	}
	if missing := n - len(lines); missing > 0 {
		lines = append(s.lines[max(0, len(s.lines)-missing):len(s.lines):len(s.lines)], lines...)
	}
	return lines[max(0, len(lines)-n):]
}

// whole renders what is left, at the end, and gives all lines.
func (s *stream) whole(md *markdown) []string {
	s.finish(s.source.String()[s.done:], md)
	s.done, s.seen = s.source.Len(), s.source.Len()
	return s.lines
}
