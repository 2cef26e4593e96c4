package tui

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	ninelives "github.com/ninelives-ai/ninelives"
)

// What a mentioned file may put before the model, in bytes: the rest it can read itself.
const (
	mentionText  = 128 << 10
	mentionImage = 5 << 20
)

// The marks that begin what is added to a message beside what was typed.
const (
	fileMark    = "\n\n<file path="
	commandMark = "\n\n<command ran-by=\"user\">"
)

// said gives what the user typed of a message: without added files and output.
func said(text string) string {
	for _, mark := range []string{fileMark, commandMark} {
		if i := strings.Index(text, mark); i >= 0 {
			text = text[:i]
		}
	}
	return text
}

// mentions finds @path, @"path with blanks" and @path#20-45, where the @ begins a word.
var mentions = regexp.MustCompile(`(?:^|[\s(])@(?:"([^"\n]+)"|([^\s"#]+))(?:#(\d+)(?:-(\d+))?)?`)

// compose makes the message of what was typed: the text, the files that it
// mentions, and what goes with it. A name that is no file of the workspace
// stays plain text, which is told where it looks like a file; what could not be
// put in whole is told in notes.
func compose(root *os.Root, text string, context []string) (msg ninelives.Message, notes []string) {
	msg = ninelives.Message{Role: ninelives.RoleUser, Parts: []ninelives.Part{ninelives.Text{Text: text}}}
	seen := map[string]bool{}
	for _, m := range mentions.FindAllStringSubmatch(text, -1) {
		name := m[1] + m[2]
		if root == nil || seen[m[0]] {
			continue
		}
		seen[m[0]] = true
		part, note, err := mentioned(root, name, m[3], m[4])
		trimmed := strings.TrimRight(name, ".,;:!?)")
		if errors.Is(err, fs.ErrNotExist) && trimmed != name {
			part, note, err = mentioned(root, trimmed, "", "")
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if strings.ContainsAny(trimmed, "./") || m[1] != "" { // else a name, as in "ask @somebody"
				notes = append(notes, fmt.Sprintf("@%s is no file here: it was sent as plain text", oneLine(trimmed)))
			}
		case err != nil:
			if p := (*fs.PathError)(nil); errors.As(err, &p) {
				err = p.Err
			}
			notes = append(notes, fmt.Sprintf("@%s was not put into the message: %v", name, err))
		default:
			msg.Parts = append(msg.Parts, part)
			if note != "" {
				notes = append(notes, note)
			}
		}
	}
	for _, c := range context {
		msg.Parts = append(msg.Parts, ninelives.Text{Text: commandMark + "\n" + c + "\n</command>"})
	}
	return msg, notes
}

// mentioned reads a file of the workspace for a message.
func mentioned(root *os.Root, name, from, to string) (ninelives.Part, string, error) {
	name = path.Clean(filepath.ToSlash(name))
	info, err := root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, "", err
	}
	if info.IsDir() {
		return listing(root, name)
	}
	if !info.Mode().IsRegular() {
		return nil, "", errors.New("it is no regular file")
	}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mentionImage+1))
	if err != nil {
		return nil, "", err
	}
	if kind := http.DetectContentType(data); strings.HasPrefix(kind, "image/") && kind != "image/svg+xml" {
		if len(data) > mentionImage {
			return nil, "", fmt.Errorf("the picture is larger than %d MB", mentionImage>>20)
		}
		return ninelives.Image{MediaType: kind, Data: data}, "", nil
	}
	if !isText(data[:min(len(data), mentionText)]) {
		return nil, "", errors.New("it is no text")
	}
	text, lines, note := string(data), "", ""
	if from != "" {
		text, lines, err = cutLines(text, from, to)
		if err != nil {
			return nil, "", err
		}
	}
	if len(text) > mentionText {
		text = strings.ToValidUTF8(text[:mentionText], "")
		lines += fmt.Sprintf(" shown=\"the first %d KB of %d KB: read the rest with a tool\"", mentionText>>10, info.Size()>>10)
		note = fmt.Sprintf("only the first %d KB of @%s went into the message; the model can read the rest", mentionText>>10, name)
	}
	return ninelives.Text{Text: fileMark + strconv.Quote(name) + lines + ">\n" + strings.TrimSuffix(text, "\n") + "\n</file>"}, note, nil
}

// isText reports whether data, which may end within a character, is text.
func isText(data []byte) bool {
	for range utf8.UTFMax - 1 {
		if r, n := utf8.DecodeLastRune(data); r != utf8.RuneError || n != 1 {
			break
		}
		data = data[:len(data)-1]
	}
	return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

// cutLines takes the lines from–to of a text, counted from 1.
func cutLines(text, from, to string) (string, string, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	a, _ := strconv.Atoi(from)
	b := a
	if to != "" {
		b, _ = strconv.Atoi(to)
	}
	if a < 1 || a > len(lines) || b < a {
		return "", "", fmt.Errorf("it has no lines %s: it has %d", strings.TrimSuffix(from+"-"+to, "-"), len(lines))
	}
	b = min(b, len(lines))
	return strings.Join(lines[a-1:b], "\n"), fmt.Sprintf(" lines=\"%d-%d\"", a, b), nil
}

// listing gives the names in a directory of the workspace.
func listing(root *os.Root, name string) (ninelives.Part, string, error) {
	entries, err := fs.ReadDir(root.FS(), name)
	if err != nil {
		return nil, "", err
	}
	var b strings.Builder
	for i, e := range entries {
		if i == 500 {
			fmt.Fprintf(&b, "… and %d more\n", len(entries)-i)
			break
		}
		b.WriteString(strings.ToValidUTF8(e.Name(), "\ufffd"))
		if e.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	return ninelives.Text{Text: fileMark + strconv.Quote(name+"/") + ">\n" + b.String() + "</file>"}, "", nil
}
