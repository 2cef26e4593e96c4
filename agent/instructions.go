package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What instructions may be long: each file, and all of them together. What is
// nearest to the workspace is kept longest. Source: Codex reads 32 KiB.
const (
	instructionBytes = 32 << 10
	instructionsAll  = 96 << 10
)

// Instructions reads what the user and the project want every model to know:
// AGENTS.md and CLAUDE.md, and the MEMORY.md of the user and of the project.
// dir is the workspace, home the user's home directory ("" for none). It gives
// the text for the system prompt and the files that it was read from, in order:
//
//   - the user's own: ninelives/AGENTS.md in $XDG_CONFIG_HOME or ~/.config
//   - AGENTS.md and CLAUDE.md of the repository's root, of each directory on the
//     way down, and of the workspace: what comes later counts more
//   - the user's memory: ninelives/MEMORY.md in $XDG_DATA_HOME or ~/.local/share
//   - the project's: .ninelives/MEMORY.md in the workspace
//
// The text depends on the files alone, so that the provider's cache holds. The
// error tells which files were not taken, or not whole, and why; the text is
// good without them. What leads out of the repository by a symbolic link is not
// taken, nor what is no text.
func Instructions(dir, home string, memory MemorySettings) (string, []string, error) {
	var parts []advice
	var problems []error
	take := func(p advice, err error) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return
		case err != nil:
			problems = append(problems, err)
		}
		if p.text != "" {
			parts = append(parts, p)
		}
	}
	own := func(env, below, name, head string, limit int) {
		if at := userDir(env, home, below); at != "" {
			take(readOwn(filepath.Join(at, name), head, limit))
		}
	}
	own("XDG_CONFIG_HOME", ".config", "AGENTS.md", "Instructions of the user", instructionBytes)
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	top := repository(dir)
	root, err := os.OpenRoot(top)
	if err != nil {
		problems = append(problems, fmt.Errorf("the instructions of the project were not read: %w", err))
	} else {
		defer root.Close()
		for _, at := range way(top, dir) {
			for _, name := range []string{"AGENTS.md", "CLAUDE.md"} {
				take(readIn(root, filepath.Join(at, name), "Instructions of the project", instructionBytes))
			}
		}
	}
	if !memory.Off {
		own("XDG_DATA_HOME", filepath.Join(".local", "share"), MemoryFile, memoryHead("the user"), memory.MaxBytes)
		if root != nil {
			rel, _ := filepath.Rel(top, filepath.Join(dir, ".ninelives", MemoryFile))
			take(readIn(root, rel, memoryHead("the project"), memory.MaxBytes))
		}
	}
	parts = slices.CompactFunc(parts, func(a, b advice) bool {
		// CLAUDE.md is often a copy of AGENTS.md, or a link to it.
		return a.text == b.text && filepath.Dir(a.path) == filepath.Dir(b.path)
	})
	room := instructionsAll
	first := len(parts)
	for first > 0 && room >= len(parts[first-1].text) {
		first--
		room -= len(parts[first].text)
	}
	for _, p := range parts[:first] {
		problems = append(problems, fmt.Errorf("%s was not taken: all instructions together may have %d KiB", shown(p.path), instructionsAll>>10))
	}
	var b strings.Builder
	var files []string
	for _, p := range parts[first:] {
		fmt.Fprintf(&b, "# %s (%s)\n\n%s\n\n", p.head, shown(p.path), p.text)
		files = append(files, p.path)
	}
	return strings.TrimSpace(b.String()), files, errors.Join(problems...)
}

// memoryHead says what a memory is, so that nothing in it passes for an order.
func memoryHead(whose string) string {
	return "What is remembered of " + whose + " from earlier sessions; it informs, and may be out of date"
}

// advice is one file of them.
type advice struct {
	head, path, text string
}

// userDir is where the program keeps a user's things: ninelives in the directory
// that the environment names, if it names an absolute one, else below home.
func userDir(env, home, below string) string {
	if at := os.Getenv(env); filepath.IsAbs(at) {
		return filepath.Join(at, "ninelives")
	}
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, below, "ninelives")
}

// repository is the nearest directory at or above dir that holds a .git; dir
// itself if there is none.
func repository(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// way lists the directories from top down to dir, relative to top.
func way(top, dir string) []string {
	rel, err := filepath.Rel(top, dir)
	if err != nil || rel == "." {
		return []string{"."}
	}
	list := []string{"."}
	at := "."
	for _, name := range strings.Split(rel, string(filepath.Separator)) {
		at = filepath.Join(at, name)
		list = append(list, at)
	}
	return list
}

// readIn reads a file of a tree that it must not lead out of.
func readIn(root *os.Root, rel, head string, limit int) (advice, error) {
	path := filepath.Join(root.Name(), rel)
	info, err := root.Stat(rel)
	if err != nil {
		if _, missing := root.Lstat(rel); errors.Is(missing, fs.ErrNotExist) {
			return advice{}, fs.ErrNotExist
		}
		return advice{}, fmt.Errorf("%s was not read: it leads out of %s or nowhere", shown(path), shown(root.Name()))
	}
	return read(path, head, limit, info, func() (*os.File, error) { return root.Open(rel) })
}

// readOwn reads a file of the user's own, wherever its links lead.
func readOwn(path, head string, limit int) (advice, error) {
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return advice{}, fs.ErrNotExist
		}
		return advice{}, fmt.Errorf("%s was not read: %w", shown(path), err)
	}
	return read(path, head, limit, info, func() (*os.File, error) { return os.Open(path) })
}

// most is how much of a file is looked at, whatever may be taken of it.
const most = 1 << 20

func read(path, head string, limit int, info fs.FileInfo, open func() (*os.File, error)) (advice, error) {
	p := advice{head: head, path: path}
	if !info.Mode().IsRegular() {
		return p, fmt.Errorf("%s was not read: it is no regular file", shown(path))
	}
	f, err := open()
	if err != nil {
		return p, fmt.Errorf("%s was not read: %w", shown(path), err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return p, fmt.Errorf("%s was not read: %w", shown(path), err)
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return p, fmt.Errorf("%s was not read: it is no UTF-8 text", shown(path))
	}
	text := strings.TrimPrefix(string(b), "\ufeff")
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\ufffd")
	p.text = strings.TrimSpace(text)
	if len(p.text) <= limit && info.Size() <= most {
		return p, nil
	}
	// The beginning says what it is, and a memory is newest at its end.
	start, _ := clip(p.text, limit/2)
	end := p.text[len(p.text)-min(limit/2, len(p.text)):]
	if _, line, ok := strings.Cut(end, "\n"); ok {
		end = line
	}
	p.text = strings.ToValidUTF8(start+"\n[the file is too long: its middle is left out]\n"+end, "")
	return p, fmt.Errorf("%s was cut: it has %d bytes and may have %d", shown(path), info.Size(), limit)
}

// shown writes a path so that it stays one line and no control of a terminal.
func shown(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
		return fmt.Sprintf("%q", path)
	}
	return path
}
