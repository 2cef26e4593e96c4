package tool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// nearText is how much of a file is searched for what was perhaps meant.
const nearText = 2 << 20

// notFound says why an edit does not fit, as exactly as can be told: what is
// the same but for whitespace, else the lines that are most alike.
func notFound(text string, e edit) error {
	head := "old_string is not in the file"
	lines := splitLines(text)
	old := splitLines(e.Old)
	if copied := stripNumbers(old); copied != nil && strings.Contains(text, strings.Join(copied, "\n")) {
		return errors.New(head + ": it holds the line numbers of read_file; leave them out")
	}
	if at := sameTrimmed(lines, old); at >= 0 {
		return fmt.Errorf("%s; %s of it %s, but differ in whitespace: %s", head, linesOf(at, len(old)), "match", whitespace(lines, old, at))
	}
	if e.New != "" {
		if i := strings.Index(text, e.New); i >= 0 && len(strings.TrimSpace(e.New)) > 3 {
			return fmt.Errorf("%s, but new_string is, at line %d: perhaps the edit was made before", head, 1+strings.Count(text[:i], "\n"))
		}
	}
	at := mostAlike(lines, old)
	if at < 0 {
		return errors.New(head + ", and nothing in it is like it; read the file again")
	}
	n := min(len(old), len(lines)-at, 12)
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\n%6d\t%s", at+i+1, cutLine(lines[at+i], 0, 200))
	}
	return fmt.Errorf("%s; nearest to it are %s:%s%s", head, linesOf(at, n), b.String(), firstDifference(lines, old, at))
}

// splitLines gives the lines without their ends.
func splitLines(text string) []string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if n := len(lines); n > 1 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return lines
}

// stripNumbers takes the numbers off lines that were copied with those of
// read_file; nil if they were not.
func stripNumbers(lines []string) []string {
	var out []string
	for _, l := range lines {
		number, rest, ok := strings.Cut(l, "\t")
		if _, err := strconv.Atoi(strings.TrimSpace(number)); !ok || err != nil {
			return nil
		}
		out = append(out, rest)
	}
	return out
}

func linesOf(at, n int) string {
	if n == 1 {
		return fmt.Sprintf("line %d", at+1)
	}
	return fmt.Sprintf("lines %d to %d", at+1, at+n)
}

// squeeze makes lines alike that differ in whitespace alone.
func squeeze(line string) string { return strings.Join(strings.Fields(line), " ") }

// nearCompared is how many pairs of lines are compared: texts of equal lines
// would cost the product of their lengths.
const nearCompared = 5_000_000

// sameTrimmed finds where the lines are those of old but for whitespace, or -1.
func sameTrimmed(lines, old []string) int {
	want := make([]string, len(old))
	blank := true
	for i, l := range old {
		want[i] = squeeze(l)
		blank = blank && want[i] == ""
	}
	if blank {
		return -1
	}
	have := make([]string, len(lines))
	for i, l := range lines {
		have[i] = squeeze(l)
	}
	compared := 0
next:
	for at := 0; at+len(want) <= len(have) && compared < nearCompared; at++ {
		for i, l := range want {
			if compared++; have[at+i] != l {
				continue next
			}
		}
		return at
	}
	return -1
}

// whitespace names the first line that differs, and in what.
func whitespace(lines, old []string, at int) string {
	for i, o := range old {
		have := lines[at+i]
		if have == o {
			continue
		}
		what := "inside the line"
		switch {
		case strings.TrimRight(have, " \t") == strings.TrimRight(o, " \t"):
			what = "at its end"
		case strings.TrimLeft(have, " \t") == strings.TrimLeft(o, " \t"):
			what = "in its indentation"
			if strings.HasPrefix(have, "\t") != strings.HasPrefix(o, "\t") {
				what += " (tabs and spaces)"
			}
		}
		return fmt.Sprintf("line %d differs %s: the file has %q, old_string has %q", at+i+1, what, clip(have), clip(o))
	}
	return "the lines end differently (CRLF and LF are mixed in the file), or old_string goes on after the last of them"
}

// firstDifference names the first line of a near match that differs.
func firstDifference(lines, old []string, at int) string {
	for i, o := range old {
		if at+i >= len(lines) {
			return fmt.Sprintf("\nThe file ends there; old_string goes on with %q", clip(o))
		}
		if lines[at+i] != o {
			return fmt.Sprintf("\nThe first difference is in line %d: the file has %q, old_string has %q", at+i+1, clip(lines[at+i]), clip(o))
		}
	}
	return ""
}

func clip(line string) string { return cutLine(line, 0, 160) }

// mostAlike gives where the lines are most like old, or -1 if nothing is like
// it at all. Its work is linear in the text: every line is compared with the
// one line of old that says most.
func mostAlike(lines, old []string) int {
	anchor := 0
	for i, l := range old {
		if len(squeeze(l)) > len(squeeze(old[anchor])) {
			anchor = i
		}
	}
	want := pairs(squeeze(old[anchor]))
	if len(want) == 0 {
		return -1
	}
	best, score, searched := -1, 0.4, 0
	for i, l := range lines {
		if searched += len(l); searched > nearText {
			break
		}
		have := squeeze(l)
		if len(have) > 1000 {
			have = have[:1000]
		}
		if s := dice(want, have); s > score {
			best, score = i, s
		}
	}
	if best < 0 {
		return -1
	}
	return max(0, best-anchor)
}

// pairs counts the pairs of neighbouring bytes.
func pairs(s string) map[[2]byte]int {
	m := map[[2]byte]int{}
	for i := 1; i < min(len(s), 1000); i++ {
		m[[2]byte{s[i-1], s[i]}]++
	}
	return m
}

// dice is the share of common pairs of bytes, from 0 to 1.
func dice(want map[[2]byte]int, have string) float64 {
	total := len(have) - 1
	for _, n := range want {
		total += n
	}
	common := 0
	seen := map[[2]byte]int{}
	for i := 1; i < len(have); i++ {
		p := [2]byte{have[i-1], have[i]}
		if seen[p] < want[p] {
			seen[p]++
			common++
		}
	}
	if total <= 0 {
		return 0
	}
	return 2 * float64(common) / float64(total)
}
