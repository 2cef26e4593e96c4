package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"unicode/utf8"
)

// The limits of a file. They are far above what a configuration needs; the
// YAML parser takes time that grows with the square of nesting and lines.
const (
	maxFile  = 256 << 10
	maxLines = 5000
	maxDepth = 100
)

// readText reads the text of a file; fs.ErrNotExist says that it is not there.
// Every other error is one line that names the file.
func readText(path string) ([]byte, error) {
	flags := os.O_RDONLY
	if runtime.GOOS != "windows" {
		flags |= syscall.O_NONBLOCK // a pipe that nobody writes to is empty, not waited for
	}
	f, err := os.OpenFile(path, flags, 0)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fs.ErrNotExist
	}
	var text []byte
	if err == nil {
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		if cause := errors.Unwrap(err); cause != nil {
			err = cause // without the path, which is told already
		}
		return nil, Problem{File: path, Message: "it cannot be read: " + err.Error(), Err: err}
	case len(text) > maxFile:
		return nil, Problem{File: path, Message: fmt.Sprintf("it is larger than %d KB: a configuration is not", maxFile>>10)}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, Problem{File: path, Message: "it is no text in UTF-8: is it another file, or saved in another encoding?"}
	}
	if n := bytes.Count(text, []byte("\n")); n > maxLines {
		return nil, Problem{File: path, Message: fmt.Sprintf("it has more than %d lines: a configuration has not", maxLines)}
	}
	if tooDeep(text) {
		return nil, Problem{File: path, Message: fmt.Sprintf("it is nested more than %d levels deep", maxDepth)}
	}
	return text, nil
}

// tooDeep looks for nesting that no configuration has: open brackets, and the
// marks of lists, maps and anchors that one line opens.
func tooDeep(text []byte) bool {
	depth := 0
	for line := range bytes.Lines(text) {
		marks := 0
		for i, c := range line {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			case '-', '?', ':':
				if i+1 < len(line) && (line[i+1] == ' ' || line[i+1] == '\n') {
					marks++
				}
			}
			if depth > maxDepth {
				return true
			}
		}
		if depth == 0 && marks > maxDepth {
			return true
		}
	}
	return false
}
