package tui

import (
	"fmt"
	"strings"
	"time"
)

// blockKind is what a block of the transcript is.
type blockKind int

const (
	blockNote    blockKind = iota // what the program says
	blockWarning                  // what the user should know
	blockError                    // what failed
	blockUser                     // what the user said
	blockAnswer                   // what the model answered, in Markdown
	blockThought                  // what the model thought
	blockCall                     // a call of a tool and what came of it
	blockHealing                  // what was done to get an answer
	blockVoid                     // text that is no part of the conversation
	blockShell                    // a command of the user's and its output
)

// block is one piece of the transcript. It holds text as it came; render makes
// it safe.
type block struct {
	kind blockKind
	// head is its one line; of a user's, an answer's or a note's block, all of it.
	head string
	// note stands behind the head, dimmed.
	note string
	// body is what is folded: output, reasoning, healing steps.
	body string
	// diff is what was changed, in unified form.
	diff   string
	failed bool
}

// What is shown of something folded, in lines, and what is kept of it, in bytes.
const (
	foldedDiff  = 16
	foldedError = 4
	keptBody    = 32 << 10
)

// clip keeps the end of a long body and says so.
func clip(s string) string {
	if len(s) <= keptBody {
		return s
	}
	return "… the beginning is left out\n" + strings.ToValidUTF8(s[len(s)-keptBody:], "")
}

// spaced reports whether a block stands apart from its neighbours.
func (b *block) spaced() bool {
	return b.kind == blockUser || b.kind == blockAnswer || b.kind == blockVoid || b.diff != ""
}

// render gives the lines of a block, at most w columns wide. details unfolds it.
func (b *block) render(md *markdown, p paint, w int, details bool) []string {
	switch b.kind {
	case blockUser:
		return hang(p.cyan("›")+" ", wrap(visible(b.head), w-2), p.bold)
	case blockAnswer:
		return md.render(b.head, w, p.on)
	case blockVoid:
		return append(hang("  ", wrap(visible(b.head), w-2), p.dim), p.dim(cut("── "+b.note+" ──", w)))
	case blockNote:
		return hang("  ", wrap(visible(b.head), w-2), p.dim)
	case blockWarning:
		return hang(p.amber("!")+" ", wrap(visible(b.head), w-2), p.amber)
	case blockError:
		return hang(p.red("✗")+" ", wrap(visible(b.head), w-2), p.red)
	case blockThought:
		lines := []string{p.dim(cut("∴ "+b.head, w))}
		if details {
			lines = append(lines, hang("  ", wrap(visible(b.body), w-2), p.dim)...)
		}
		return lines
	case blockHealing:
		lines := []string{p.amber("↻") + " " + p.dim(cut(oneLine(b.head), w-2))}
		if details {
			lines = append(lines, hang("  ", wrap(visible(b.body), w-2), p.dim)...)
		}
		return lines
	}
	return b.renderCall(p, w, details)
}

// renderCall gives the lines of a call: its line, its diff, its output.
func (b *block) renderCall(p paint, w int, details bool) []string {
	sign := p.green("●")
	if b.kind == blockShell {
		sign = p.cyan("!")
	}
	if b.failed {
		sign = p.red("✗")
	}
	head := cut(oneLine(b.head), w-2)
	line := sign + " " + head
	if note := oneLine(b.note); note != "" {
		if room := w - 2 - width(head) - 3; room >= min(width(note), 12) {
			line += p.dim(" – " + cut(note, room))
		}
	}
	lines := []string{line}
	if b.diff != "" {
		shown := diffLines(b.diff, p, w-2)
		if hidden := len(shown) - foldedDiff; !details && hidden > 1 {
			shown = append(shown[:foldedDiff:foldedDiff], p.dim(cut(fmt.Sprintf("… %d more lines of the diff (Ctrl-O)", hidden), w-2)))
		}
		lines = append(lines, indent(shown)...)
	}
	body := strings.TrimRight(b.body, "\n")
	if body == "" {
		return lines
	}
	if !details && !b.failed && b.kind != blockShell {
		return append(lines, p.dim(cut("  └ "+plural(strings.Count(body, "\n")+1, "line")+" of output (Ctrl-O)", w)))
	}
	shown := hardWrap(plain(body), w-4)
	if b.kind == blockCall && b.failed { // mostly sentences
		shown = wrap(plain(body), w-4)
	}
	var folded string
	switch {
	case details || b.kind == blockShell && len(shown) <= 2*foldedDiff:
	case b.kind == blockShell:
		folded = fmt.Sprintf("… %d earlier lines (Ctrl-O)", len(shown)-2*foldedDiff)
		shown = shown[len(shown)-2*foldedDiff:]
	case len(shown) > foldedError+1:
		folded = fmt.Sprintf("… %d more lines (Ctrl-O)", len(shown)-foldedError)
		shown = shown[:foldedError]
	}
	for _, line := range shown {
		lines = append(lines, p.dim("  │ "+line))
	}
	if folded != "" {
		lines = append(lines, p.dim("  "+cut(folded, w-2)))
	}
	return lines
}

// hang puts a mark before the first line and blanks before the others.
func hang(mark string, lines []string, color func(string) string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimRight(mark+color(line), " ")
		mark = strings.Repeat(" ", width(mark))
	}
	return out
}

func indent(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = "  " + line
	}
	return out
}

// diffLines paints a unified diff.
func diffLines(diff string, p paint, w int) []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(diff, "\n"), "\n") {
		color := func(s string) string { return s }
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			color = p.bold
		case strings.HasPrefix(line, "@@"):
			color = p.cyan
		case strings.HasPrefix(line, "+"):
			color = p.green
		case strings.HasPrefix(line, "-"):
			color = p.red
		}
		for _, part := range hardWrap(visible(strings.TrimSuffix(line, "\r")), w) {
			out = append(out, color(part))
		}
	}
	return out
}

// transcript is what was said and done, in order. Blocks are printed into the
// terminal's own scrollback once they are finished; the last ones are kept, so
// that the screen can be drawn again.
type transcript struct {
	blocks []block
	bytes  int
	spaced bool // the last printed block stands apart
}

// What is kept for drawing again.
const (
	keptBlocks = 300
	keptBytes  = 512 << 10
)

func (b *block) size() int { return len(b.head) + len(b.note) + len(b.body) + len(b.diff) }

// keep takes a block in and drops the oldest beyond the bounds.
func (t *transcript) keep(b block) {
	t.blocks = append(t.blocks, b)
	t.bytes += b.size()
	n := 0
	for len(t.blocks)-n > keptBlocks || t.bytes > keptBytes && len(t.blocks)-n > 1 {
		t.bytes -= t.blocks[n].size()
		t.blocks[n] = block{} // let go of its text
		n++
	}
	t.blocks = t.blocks[n:]
}

// space puts the lines of a block apart from those before, where they belong apart.
func (t *transcript) space(b *block, lines []string) []string {
	apart := b.spaced()
	if apart || t.spaced {
		lines = append([]string{""}, lines...)
	}
	t.spaced = apart
	return lines
}

// end gives the last lines of the transcript, at most n of them; details gives
// the last turn whole.
func (t *transcript) end(n int, md *markdown, p paint, w int, details bool) []string {
	from := len(t.blocks)
	var sum int
	for from > 0 && (sum < n || details) {
		from--
		sum += len(t.blocks[from].render(md, p, w, details)) + 1
		if details && t.blocks[from].kind == blockUser {
			break
		}
	}
	t.spaced = false
	var lines []string
	for i := from; i < len(t.blocks); i++ {
		lines = append(lines, t.space(&t.blocks[i], t.blocks[i].render(md, p, w, details))...)
	}
	if !details {
		lines = lines[max(0, len(lines)-n):]
	}
	return lines
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%s %ss", count(n), word)
}

// count writes a number with its thousands apart.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// brief writes a duration for people: "0.3s", "42s", "3m05s", "1h02m".
func brief(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
