package tui

import (
	"regexp"
	"strings"

	"charm.land/glamour/v2"
	"charm.land/glamour/v2/ansi"
)

// markdown renders finished blocks of Markdown. It keeps one renderer for the
// present width.
type markdown struct {
	width int
	color bool
	term  *glamour.TermRenderer
}

// render gives the lines of a piece of Markdown. Its text is made safe first,
// so that the only escapes in the lines are the renderer's own colours.
func (m *markdown) render(source string, width int, color bool) []string {
	source = visible(source)
	if len(source) > markdownBytes || nesting(source) > markdownDepth {
		return wrap(source, width)
	}
	if m.term == nil || m.width != width || m.color != color {
		term, err := glamour.NewTermRenderer(
			glamour.WithStyles(markdownStyle(color)),
			glamour.WithWordWrap(max(width, 10)),
			glamour.WithChromaFormatter("terminal16"),
		)
		if err != nil {
			return wrap(source, width)
		}
		m.term, m.width, m.color = term, width, color
	}
	text, err := m.term.Render(source)
	if err != nil {
		return wrap(source, width)
	}
	lines := strings.Split(text, "\n")
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		out = append(out, trimRight(colors(line, color)))
	}
	for len(out) > 0 && out[0] == "" {
		out = out[1:]
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	var fit []string
	for _, line := range out {
		fit = append(fit, hardWrap(line, width)...)
	}
	return fit
}

// What is rendered: a larger or deeper piece is shown as it stands. The time
// that rendering takes grows with the length, and without bound with the depth.
const (
	markdownBytes = 64 << 10
	markdownDepth = 12
)

// nesting is how deep quotes and lists are nested at most, as their lines begin.
func nesting(source string) int {
	deepest := 0
	for line := range strings.SplitSeq(source, "\n") {
		depth, blanks := 0, 0
	marks:
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case c == ' ':
				blanks++
			case c == '>':
				depth++
			case strings.IndexByte("-*+.)", c) >= 0 && i+1 < len(line) && line[i+1] == ' ':
				depth++
			case c >= '0' && c <= '9':
			default:
				break marks
			}
		}
		if depth > 0 { // code may be far to the right, and is not deep
			deepest = max(deepest, depth+blanks/4)
		}
	}
	return deepest
}

var (
	escape   = regexp.MustCompile("\x1b\\[[0-9;]*m|\x1b\\][^\a\x1b]*(?:\a|\x1b\\\\)|\x1b")
	trailing = regexp.MustCompile("(?:\x1b\\[[0-9;]*m| )+$")
)

// colors keeps the colours of a rendered line and nothing else that a terminal
// obeys: a text can spell a control character as an entity.
func colors(line string, color bool) string {
	if !strings.Contains(line, "\x1b") {
		return visible(line)
	}
	var b strings.Builder
	for line != "" {
		at := escape.FindStringIndex(line)
		if at == nil {
			break
		}
		b.WriteString(visible(line[:at[0]]))
		if e := line[at[0]:at[1]]; color && strings.HasPrefix(e, "\x1b[") {
			b.WriteString(e)
		}
		line = line[at[1]:]
	}
	b.WriteString(visible(line))
	return b.String()
}

// trimRight takes the blanks from the end of a line that a renderer filled up.
func trimRight(line string) string {
	end := trailing.FindStringIndex(line)
	if end == nil {
		return line
	}
	rest := line[:end[0]]
	if strings.Contains(rest, "\x1b[") {
		rest += "\x1b[m"
	}
	return rest
}

// markdownStyle is how Markdown looks: the sixteen colours, no background, no
// margin. Without colour the marks stay that carry meaning.
func markdownStyle(color bool) ansi.StyleConfig {
	yes, zero, one, two := true, uint(0), uint(1), uint(2)
	ink := func(c string) *string {
		if !color {
			return nil
		}
		return &c
	}
	text := func(s string) *string { return &s }
	bold := ansi.StylePrimitive{Bold: &yes}
	italic := ansi.StylePrimitive{Italic: &yes}
	code := ansi.StylePrimitive{Color: ink("6")}
	if !color {
		bold = ansi.StylePrimitive{BlockPrefix: "**", BlockSuffix: "**"}
		italic = ansi.StylePrimitive{BlockPrefix: "*", BlockSuffix: "*"}
		code = ansi.StylePrimitive{Prefix: "`", Suffix: "`"}
	}
	head := func(marks string) ansi.StyleBlock {
		b := ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Prefix: marks}}
		if color {
			b.Bold, b.Color = &yes, ink("4")
		}
		return b
	}
	style := ansi.StyleConfig{
		Document:       ansi.StyleBlock{Margin: &zero},
		BlockQuote:     ansi.StyleBlock{Indent: &one, IndentToken: text("│ ")},
		List:           ansi.StyleList{LevelIndent: 2},
		Heading:        ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{BlockSuffix: "\n"}},
		H1:             head("# "),
		H2:             head("## "),
		H3:             head("### "),
		H4:             head("#### "),
		H5:             head("##### "),
		H6:             head("###### "),
		Strikethrough:  ansi.StylePrimitive{CrossedOut: &yes},
		Emph:           italic,
		Strong:         bold,
		HorizontalRule: ansi.StylePrimitive{Format: "\n──────\n"},
		Item:           ansi.StylePrimitive{BlockPrefix: "• "},
		Enumeration:    ansi.StylePrimitive{BlockPrefix: ". "},
		Task:           ansi.StyleTask{Ticked: "[x] ", Unticked: "[ ] "},
		Link:           ansi.StylePrimitive{Color: ink("6")},
		Image:          ansi.StylePrimitive{Color: ink("6")},
		ImageText:      ansi.StylePrimitive{Format: "image: {{.text}}"},
		Code:           ansi.StyleBlock{StylePrimitive: code},
		CodeBlock:      ansi.StyleCodeBlock{StyleBlock: ansi.StyleBlock{Margin: &two}},
		Table:          ansi.StyleTable{CenterSeparator: text("┼"), ColumnSeparator: text("│"), RowSeparator: text("─")},
		DefinitionDescription: ansi.StylePrimitive{
			BlockPrefix: "\n→ ",
		},
	}
	if !color {
		style.Strikethrough = ansi.StylePrimitive{BlockPrefix: "~~", BlockSuffix: "~~"}
		return style
	}
	style.CodeBlock.Chroma = &ansi.Chroma{
		Keyword:       ansi.StylePrimitive{Color: ink("#5f5fff")},
		Comment:       ansi.StylePrimitive{Color: ink("#808080")},
		LiteralString: ansi.StylePrimitive{Color: ink("#00af00")},
		LiteralNumber: ansi.StylePrimitive{Color: ink("#00afaf")},
		NameFunction:  ansi.StylePrimitive{Color: ink("#00afff")},
	}
	return style
}
