package acp

import (
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// hunk is a part of a file before and after a change.
type hunk struct {
	path string
	old  *string // nil if there was no file
	new  string
	line int // the first changed line in the new file, from 1
}

// readDiff reads a unified diff. What is no whole hunk is not shown as one:
// rest has it, in lines.
func readDiff(diff string) (hunks []hunk, rest []string) {
	lines := strings.SplitAfter(diff, "\n")
	path, created := "", false
	for i := 0; i < len(lines); {
		line := strings.TrimSuffix(lines[i], "\n")
		switch {
		case strings.HasPrefix(line, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			from, to := line[4:], strings.TrimSuffix(lines[i+1], "\n")[4:]
			created = from == "/dev/null"
			if path = strings.TrimPrefix(to, "b/"); to == "/dev/null" {
				path = strings.TrimPrefix(from, "a/")
			}
			i += 2
		case strings.HasPrefix(line, "@@ ") && path != "":
			h, n := readHunk(lines[i:])
			if n == 0 {
				rest = append(rest, path+": the change is not shown whole")
				i++
				for i < len(lines) && !strings.HasPrefix(lines[i], "[") {
					i++
				}
				continue
			}
			h.path = path
			if created {
				h.old = nil
			}
			hunks = append(hunks, h)
			i += n
		default:
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "[") {
				if path != "" && strings.HasPrefix(line, "[not shown") {
					line = path + ": " + line
				}
				rest = append(rest, line)
			}
			i++
		}
	}
	return hunks, rest
}

// readHunk reads one hunk from its head; n is how many lines it has, 0 if some
// are missing.
func readHunk(lines []string) (h hunk, n int) {
	oldLines, newLines, line, ok := hunkHead(lines[0])
	if !ok {
		return hunk{}, 0
	}
	var before, after strings.Builder
	n = 1
	first := 0
	for ; n < len(lines) && (oldLines > 0 || newLines > 0); n++ {
		text := lines[n]
		if text == "" || !strings.HasSuffix(text, "\n") {
			return hunk{}, 0
		}
		body := text[1:]
		if n+1 < len(lines) && strings.HasPrefix(lines[n+1], `\ `) {
			body = strings.TrimSuffix(body, "\n")
		}
		if first == 0 && text[0] != ' ' {
			first = max(line, 1)
		}
		switch text[0] {
		case ' ':
			before.WriteString(body)
			after.WriteString(body)
			oldLines--
			newLines--
			line++
		case '-':
			before.WriteString(body)
			oldLines--
		case '+':
			after.WriteString(body)
			newLines--
		case '\\':
		default:
			return hunk{}, 0
		}
	}
	if oldLines != 0 || newLines != 0 {
		return hunk{}, 0
	}
	if n < len(lines) && strings.HasPrefix(lines[n], `\ `) {
		n++
	}
	old := before.String()
	return hunk{old: &old, new: after.String(), line: first}, n
}

// hunkHead reads "@@ -1,2 +3,4 @@".
func hunkHead(head string) (oldLines, newLines, line int, ok bool) {
	fields := strings.Fields(head)
	if len(fields) < 4 || fields[3] != "@@" {
		return 0, 0, 0, false
	}
	span := func(text, sign string) (start, count int, ok bool) {
		text, ok = strings.CutPrefix(text, sign)
		if !ok {
			return 0, 0, false
		}
		if !strings.Contains(text, ",") {
			text += ",1"
		}
		n, err := fmt.Sscanf(text, "%d,%d", &start, &count)
		return start, count, err == nil && n == 2 && count >= 0
	}
	_, oldLines, okOld := span(fields[1], "-")
	line, newLines, okNew := span(fields[2], "+")
	return oldLines, newLines, line, okOld && okNew
}

// diffContent is a unified diff as editors show it.
func diffContent(diff, dir string) (content []sdk.ToolCallContent) {
	hunks, rest := readDiff(diff)
	for _, h := range hunks {
		content = append(content, sdk.ToolCallContent{Diff: &sdk.ToolCallContentDiff{Path: absolute(dir, h.path), OldText: h.old, NewText: h.new}})
	}
	if len(rest) > 0 {
		content = append(content, fenced(strings.Join(rest, "\n")))
	}
	return content
}
