package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/visible"
	"golang.org/x/text/encoding/unicode"
)

// What read_file shows of a file at once. Source of the lines: what other
// agents show (2,000); the bytes stay under what a result may have inline, so
// that the rest is read by offset and not from another file.
const (
	readLines = 2000
	readBytes = 48 << 10
	readLine  = 2000    // characters of a line
	readImage = 5 << 20 // the largest image that is given as such
)

type readArguments struct {
	Path   string `json:"path" jsonschema:"path of the file, relative to the workspace"`
	Offset int    `json:"offset,omitzero" jsonschema:"number of the first line to read, counted from 1"`
	Limit  int    `json:"limit,omitzero" jsonschema:"how many lines to read at most; 2000 if left out"`
}

func readFile(w *Workspace) Tool {
	return &typed[readArguments]{
		spec: Spec{
			Tool: describe[readArguments]("read_file", "Reads a file of the workspace. Lines come with their numbers, then a tab; "+
				"the numbers are not part of the file. Images are shown. For a long file give offset and limit."),
			ReadOnly: true,
		},
		needs: func(a readArguments) ([]Need, error) { return w.readNeeds(a.Path) },
		run: func(ctx context.Context, call *Call, a readArguments) Result {
			r, err := w.read(ctx, call.Session, a)
			if err != nil {
				return ErrorResult(err.Error())
			}
			return r
		},
	}
}

func (w *Workspace) read(ctx context.Context, session string, a readArguments) (Result, error) {
	if a.Offset < 0 || a.Limit < 0 {
		return Result{}, errors.New("offset and limit count lines from 1; they cannot be negative")
	}
	p, err := w.locate(a.Path)
	if err != nil {
		return Result{}, err
	}
	if info, err := p.root.Lstat(p.name); err == nil && info.IsDir() {
		return Result{}, fmt.Errorf("%s is a directory; list_dir shows what is in it", visible.Escaped(p.shown))
	}
	content, info, whole, err := p.read(keepFile)
	if err != nil {
		return Result{}, err
	}
	seen := sighting{stat: stampOf(info)}
	if !whole {
		r, err := p.readLarge(ctx, a, info.Size())
		if err == nil && !p.own {
			w.saw(session, p.name, seen)
		}
		return r, err
	}
	seen.hash = hashOf(content)
	r, err := readWhole(p.shown, content, a)
	if err == nil && !p.own {
		w.saw(session, p.name, seen)
	}
	return r, err
}

// readWhole shows a content that is in memory.
func readWhole(shown string, content []byte, a readArguments) (Result, error) {
	kind := http.DetectContentType(content)
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		if len(content) > readImage {
			return Result{}, fmt.Errorf("%s is an image of %s (%s); images of up to %s are shown", visible.Escaped(shown), size(int64(len(content))), kind, size(readImage))
		}
		return Result{
			Content: []ninelives.Part{
				ninelives.Text{Text: fmt.Sprintf("%s is an image (%s, %s).", shown, kind, size(int64(len(content))))},
				ninelives.Image{MediaType: kind, Data: content},
			},
			Summary: fmt.Sprintf("showed the image %s (%s)", visible.EscapedLine(shown), size(int64(len(content)))),
		}, nil
	}
	var notes []string
	text, notes, err := decode(content)
	if err != nil {
		return Result{}, fmt.Errorf("%s %w (%s, %s); read_file shows text and images", visible.Escaped(shown), err, kind, size(int64(len(content))))
	}
	if strings.Contains(text, "\r\n") {
		if bare := strings.Count(text, "\n") - strings.Count(text, "\r\n"); bare == 0 {
			notes = append(notes, "the lines end with CRLF, which edit_file keeps")
		} else {
			notes = append(notes, fmt.Sprintf("lines end with CRLF, but %d of them with LF", bare))
		}
	}
	page := pager{first: max(a.Offset, 1), limit: a.Limit}
	for line := range strings.SplitAfterSeq(text, "\n") {
		if line != "" {
			page.add([]byte(line), len(line))
		}
	}
	return page.result(shown, true, notes)
}

// decode makes text of a content, with what is to be said of its encoding.
func decode(content []byte) (text string, notes []string, err error) {
	switch {
	case bytes.HasPrefix(content, []byte("\xff\xfe")), bytes.HasPrefix(content, []byte("\xfe\xff")):
		decoded, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Bytes(content)
		if err != nil || len(content)%2 != 0 || binary(decoded) {
			return "", nil, errors.New("is a binary file")
		}
		return string(decoded), []string{"the file is UTF-16; it is shown as UTF-8, and edit_file cannot change it"}, nil
	case binary(content):
		return "", nil, errors.New("is a binary file")
	}
	if bytes.HasPrefix(content, bom) {
		content = content[len(bom):]
		notes = append(notes, "the file begins with a byte order mark, which edit_file keeps")
	}
	if !utf8.Valid(content) {
		notes = append(notes, "some bytes are no UTF-8 and are shown as \ufffd")
		content = bytes.ToValidUTF8(content, []byte("\ufffd"))
	}
	return string(content), notes, nil
}

var bom = []byte("\xef\xbb\xbf")

// readLarge shows lines of a file that is not held in memory. It reads no
// further than it shows.
func (p location) readLarge(ctx context.Context, a readArguments, bytes int64) (Result, error) {
	f, _, err := p.open()
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	if head, _ := in.Peek(8000); binary(head) {
		return Result{}, fmt.Errorf("%s is a binary file (%s); read_file shows text and images", visible.Escaped(p.shown), size(bytes))
	}
	page := pager{first: max(a.Offset, 1), limit: a.Limit}
	notes := []string{fmt.Sprintf("the file has %s; only as much as is shown was read", size(bytes))}
	for !page.full {
		if err := ctx.Err(); err != nil {
			return Result{}, fmt.Errorf("reading %s was stopped", visible.Escaped(p.shown))
		}
		line, length, err := nextLine(in, 4*readLine)
		if length > 0 {
			page.add([]byte(strings.ToValidUTF8(string(line), "\ufffd")), length)
		}
		if err == io.EOF {
			return page.result(p.shown, true, notes)
		} else if err != nil {
			return Result{}, p.failed("read", err)
		}
	}
	return page.result(p.shown, false, notes)
}

// nextLine reads a line with its end, of which it keeps at most keep bytes, and
// gives how long it was in full. The slice is good until the next call.
func nextLine(in *bufio.Reader, keep int) (line []byte, length int, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		length += len(piece)
		if err == nil && line == nil {
			return piece[:min(len(piece), keep)], length, nil
		}
		line = append(line, piece[:min(len(piece), max(0, keep-len(line)))]...)
		if err != bufio.ErrBufferFull {
			return line, length, err
		}
	}
}

// pager numbers lines and takes those that are asked for, as far as they fit.
type pager struct {
	first, limit int

	n     int // lines seen
	taken int
	full  bool // a line did not fit any more
	out   strings.Builder
}

// add shows the next line if it is one of those asked for. length is that of
// the whole line if line is only its beginning.
func (p *pager) add(line []byte, length int) {
	p.n++
	limit := p.limit
	if limit == 0 {
		limit = readLines
	}
	if p.n < p.first || p.full {
		return
	}
	shown := cutLine(strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"), length, readLine)
	if p.taken >= limit || p.out.Len()+len(shown) > readBytes && p.taken > 0 {
		p.full = true
		return
	}
	p.taken++
	fmt.Fprintf(&p.out, "%6d\t%s\n", p.n, shown)
}

// cutLine cuts a line that has more than limit characters, visibly.
func cutLine(line string, length, limit int) string {
	if len(line) <= limit && length <= len(line)+2 {
		return line
	}
	at, chars := 0, 0
	for i := range line {
		if chars == limit {
			break
		}
		chars++
		_, n := utf8.DecodeRuneInString(line[i:])
		at = i + n
	}
	if at == len(line) && length <= len(line)+2 {
		return line
	}
	return fmt.Sprintf("%s… [the line is cut: it has %s]", line[:at], size(int64(length)))
}

// result is the page with what is to be said of it. ended says that all lines
// of the file were seen.
func (p *pager) result(shown string, ended bool, notes []string) (Result, error) {
	if ended && p.n == 0 {
		notes = append([]string{"the file is empty"}, notes...)
	} else if p.taken == 0 {
		return Result{}, fmt.Errorf("%s has %s; there is none with the number %d", visible.Escaped(shown), plural(p.n, "line"), p.first)
	}
	last := p.first + p.taken - 1
	if p.full || p.first > 1 {
		note := fmt.Sprintf("lines %d to %d", p.first, last)
		if ended {
			note += fmt.Sprintf(" of %d", p.n)
		}
		if p.full {
			note += fmt.Sprintf("; go on with offset %d", last+1)
		}
		notes = append([]string{note}, notes...)
	}
	for _, n := range notes {
		fmt.Fprintf(&p.out, "[%s]\n", n)
	}
	r := TextResult(p.out.String())
	r.Summary = fmt.Sprintf("read %s of %s", plural(p.taken, "line"), visible.EscapedLine(shown))
	return r, nil
}
