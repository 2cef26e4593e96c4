package tool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// What grep shows at once, and how it reads.
const (
	grepMatches = 200
	grepBytes   = 48 << 10
	grepContext = 20
	grepShown   = 400     // characters of a line
	grepLine    = 1 << 20 // bytes of a line that are searched
)

type grepArguments struct {
	Pattern    string `json:"pattern" jsonschema:"regular expression (RE2 syntax), matched line by line"`
	Path       string `json:"path,omitzero" jsonschema:"file or directory to search; the workspace if left out"`
	Glob       string `json:"glob,omitzero" jsonschema:"searches only files that match it, such as *.go or src/**/*.ts"`
	IgnoreCase bool   `json:"ignore_case,omitzero"`
	Context    int    `json:"context,omitzero" jsonschema:"how many lines to show around each match; at most 20"`
	Output     string `json:"output,omitzero" jsonschema:"lines (if left out), files (only which files match) or count (how often in each file)"`
	Limit      int    `json:"limit,omitzero" jsonschema:"how many matches, or files, to show at most; 200 if left out"`
}

func grep(w *Workspace) Tool {
	return &typed[grepArguments]{
		spec: Spec{
			Tool: describe[grepArguments]("grep", "Searches the files of the workspace for a regular expression, line by line. "+
				"Binary files are passed over, and what .gitignore names, unless path leads into it."),
			ReadOnly: true,
		},
		needs: func(a grepArguments) ([]Need, error) {
			if _, err := newSearch(a); err != nil {
				return nil, err
			}
			return w.readNeeds(a.Path)
		},
		run: func(ctx context.Context, _ *Call, a grepArguments) Result {
			r, err := w.grep(ctx, a)
			if err != nil {
				return ErrorResult(err.Error())
			}
			return r
		},
	}
}

func (w *Workspace) grep(ctx context.Context, a grepArguments) (Result, error) {
	s, err := newSearch(a)
	if err != nil {
		return Result{}, err
	}
	p, err := w.locate(a.Path)
	if err != nil {
		return Result{}, err
	}
	info, err := p.root.Lstat(p.name)
	if err != nil {
		return Result{}, p.failed("search", err)
	}
	k := walker{root: p.root}
	if info.IsDir() {
		err = k.from(ctx, p.name, func(rel string, info fs.FileInfo) error {
			if !info.Mode().IsRegular() || s.glob != "" && !doublestar.MatchUnvalidated(s.glob, below(p.name, rel)) {
				return nil
			}
			shown := rel
			if p.own {
				shown = path.Join(p.shown, below(p.name, rel))
			}
			err := s.file(ctx, location{root: p.root, name: rel, shown: shown})
			if err != nil && !errors.Is(err, errFull) && ctx.Err() == nil {
				s.unreadable++
				return nil
			}
			return err
		})
	} else {
		err = s.file(ctx, p)
		if err != nil && !errors.Is(err, errFull) && ctx.Err() == nil {
			return Result{}, err
		}
	}
	if ctx.Err() != nil {
		return Result{}, fmt.Errorf("the search was stopped after %s in %s", plural(s.matches, "match"), plural(s.files, "file"))
	}
	return s.result(a, &k, err != nil), nil
}

// errFull ends a search that has shown all that it may, errKnown the search of
// a file of which nothing more is asked.
var (
	errFull  = errors.New("enough was found")
	errKnown = errors.New("the file matches")
)

// search is a grep under way.
type search struct {
	re      *regexp.Regexp
	glob    string
	output  string
	context int
	limit   int

	out                              strings.Builder
	matches, files                   int // found
	binaries, unreadable, cut, shown int
}

func newSearch(a grepArguments) (*search, error) {
	s := &search{output: a.Output, context: a.Context, limit: a.Limit}
	if a.Pattern == "" {
		return nil, errors.New("the pattern is empty; give what to look for")
	}
	expr := a.Pattern
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("%s; the syntax is RE2: no look-around and no back-references, and \\ before a special character takes it literally", visible.Escaped(err.Error()))
	}
	s.re = re
	if a.Glob != "" {
		if s.glob, err = globPattern(a.Glob); err != nil {
			return nil, err
		}
	}
	switch s.output {
	case "":
		s.output = "lines"
	case "lines", "files", "count":
	default:
		return nil, fmt.Errorf("output is lines, files or count, not %q", visible.Escaped(a.Output))
	}
	if a.Context < 0 || a.Context > grepContext {
		return nil, fmt.Errorf("context is from 0 to %d", grepContext)
	}
	if s.limit <= 0 {
		s.limit = grepMatches
	}
	return s, nil
}

// file searches a file, holding no more of it than a line and its context.
func (s *search) file(ctx context.Context, p location) error {
	f, _, err := p.open()
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	if head, _ := in.Peek(8000); binary(head) {
		s.binaries++
		return nil
	}
	h := hits{search: s, name: p.shown}
	for n := 1; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, length, err := nextLine(in, grepLine)
		if length > 0 {
			if length > len(line) {
				s.cut++
			}
			switch ended := h.line(n, trimEnd(line)); ended {
			case nil:
			case errKnown:
				return nil
			default:
				return ended
			}
		}
		if err == io.EOF {
			return h.end()
		} else if err != nil {
			return p.failed("read", err)
		}
	}
}

func trimEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

// hits are the matches in one file.
type hits struct {
	*search
	name   string
	count  int
	before []string // the last lines that were not shown
	after  int      // lines still to be shown behind a match
	last   int      // number of the last line shown
}

func (h *hits) line(n int, line []byte) error {
	at := h.re.FindIndex(line)
	switch {
	case at != nil:
		if h.full() {
			return errFull
		}
		h.count++
		h.matches++
		if h.count == 1 {
			h.files++
		}
		if h.output == "files" {
			h.shown++
			fmt.Fprintf(&h.out, "%s\n", visible.EscapedLine(h.name))
			return errKnown
		}
		if h.output == "count" {
			return nil
		}
		h.shown++
		if h.count == 1 {
			fmt.Fprintf(&h.out, "%s\n", visible.EscapedLine(h.name))
		}
		if first := n - len(h.before); h.context > 0 && h.last > 0 && first > h.last+1 {
			h.out.WriteString("  --\n")
		}
		for i, l := range h.before {
			fmt.Fprintf(&h.out, "%6d- %s\n", n-len(h.before)+i, l)
		}
		h.before = h.before[:0]
		fmt.Fprintf(&h.out, "%6d: %s\n", n, around(line, at[0]))
		h.last, h.after = n, h.context
	case h.context == 0 || h.output != "lines":
	case h.after > 0:
		h.after--
		fmt.Fprintf(&h.out, "%6d- %s\n", n, around(line, 0))
		h.last = n
	default:
		if len(h.before) == h.context {
			h.before = append(h.before[:0], h.before[1:]...)
		}
		h.before = append(h.before, around(line, 0))
	}
	return nil
}

func (h *hits) full() bool {
	if h.output != "lines" && h.count > 0 {
		return false
	}
	return h.shown >= h.limit || h.out.Len() >= grepBytes
}

func (h *hits) end() error {
	if h.output == "count" && h.count > 0 {
		h.shown++
		fmt.Fprintf(&h.out, "%6d  %s\n", h.count, visible.EscapedLine(h.name))
	}
	return nil
}

// around shows the part of a line where the match is.
func around(line []byte, at int) string {
	from := 0
	if at > grepShown/2 {
		from = at - grepShown/4
	}
	to := min(len(line), from+grepShown)
	s := strings.ToValidUTF8(string(line[from:to]), "\ufffd")
	if from > 0 {
		s = "…" + strings.TrimLeft(s, "\ufffd")
	}
	if to < len(line) {
		s = strings.TrimRight(s, "\ufffd") + fmt.Sprintf("… [the line is cut: it has %s]", size(int64(len(line))))
	}
	return s
}

func (s *search) result(a grepArguments, k *walker, full bool) Result {
	if s.matches == 0 {
		s.out.WriteString("[nothing matches]\n")
	}
	if full {
		s.out.WriteString("[there is more: the search ended here; narrow the pattern, the path or the glob, or raise limit]\n")
	}
	if s.cut > 0 {
		fmt.Fprintf(&s.out, "[%s searched only up to %s]\n", were(s.cut, "line"), size(grepLine))
	}
	if s.binaries > 0 {
		fmt.Fprintf(&s.out, "[%s passed over]\n", were(s.binaries, "binary file"))
	}
	if s.unreadable > 0 {
		fmt.Fprintf(&s.out, "[%s not readable]\n", were(s.unreadable, "file"))
	}
	s.out.WriteString(k.note())
	r := TextResult(s.out.String())
	more := ""
	if full {
		more = "at least "
	}
	r.Summary = fmt.Sprintf("found %s%s in %s for %s", more, plural(s.matches, "match"), plural(s.files, "file"), visible.EscapedLine(a.Pattern))
	return r
}

func were(n int, thing string) string {
	if n == 1 {
		return plural(n, thing) + " was"
	}
	return plural(n, thing) + " were"
}
