package tui

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// historyLimit is how many inputs are kept, historyBytes the longest one that is.
const (
	historyLimit = 1000
	historyBytes = 16 << 10
)

// history is what the user has sent before, oldest first, without duplicates.
type history struct {
	items []string
	at    int    // the one that is shown; len(items) for none
	own   string // what was typed before going back
}

// add takes an input as the newest one.
func (h *history) add(text string) bool {
	if strings.TrimSpace(text) == "" || len(text) > historyBytes {
		return false
	}
	h.items = slices.DeleteFunc(h.items, func(s string) bool { return s == text })
	h.items = append(h.items, text)
	h.items = h.items[max(0, len(h.items)-historyLimit):]
	h.at = len(h.items)
	return true
}

// back and forth step through the inputs; what was typed before comes last.
func (h *history) back(present string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.items) {
		h.own = present
	}
	h.at--
	return h.items[h.at], true
}

func (h *history) forth() (string, bool) {
	if h.at >= len(h.items) {
		return "", false
	}
	h.at++
	if h.at == len(h.items) {
		return h.own, true
	}
	return h.items[h.at], true
}

// rest goes back to the newest.
func (h *history) rest() { h.at, h.own = len(h.items), "" }

// search gives the inputs that hold all words of a query, newest first.
func (h *history) search(query string) []string {
	words := strings.Fields(strings.ToLower(query))
	var found []string
	for _, item := range slices.Backward(h.items) {
		lower := strings.ToLower(item)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(lower, w) }) {
			found = append(found, item)
		}
	}
	return found
}

// loadHistory reads a history file: a JSON string a line. A line that cannot be
// read is left out; a file that is not there is an empty history.
func loadHistory(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var h history
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 8*historyBytes)
	for lines.Scan() {
		var text string
		if json.Unmarshal(lines.Bytes(), &text) == nil {
			h.add(text)
		}
	}
	return h.items, nil
}

// saveHistory adds an input to the file, as one line in one write, so that
// several terminals can share it. When half of the file could go, it is
// written again without what nobody sees any more.
func saveHistory(path, text string) error {
	var h history
	if !h.add(text) {
		return nil
	}
	line, err := json.Marshal(strings.ToValidUTF8(text, "\ufffd"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Count(data, []byte("\n")) <= 2*historyLimit {
		return err
	}
	items, err := loadHistory(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, item := range items {
		line, err := json.Marshal(item)
		if err != nil {
			continue
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return writePrivate(path, b.Bytes())
}

// draft is text that was typed and not sent, as its file holds it. Each process
// has a file of its own, named by its id: two terminals do not mix their drafts,
// and one whose process is gone is found by the next in the same directory.
type draft struct {
	Directory string `json:"directory"`
	Text      string `json:"text"`
}

func draftPath(history string, pid int) string { return fmt.Sprintf("%s.draft.%d", history, pid) }

// saveDraft keeps unsent text; none takes the file away.
func saveDraft(history, directory, text string) error {
	path := draftPath(history, os.Getpid())
	if text == "" {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	data, err := json.Marshal(draft{directory, strings.ToValidUTF8(text, "\ufffd")})
	if err != nil {
		return err
	}
	return writePrivate(path, data)
}

// takeDraft finds what a process that is gone had left in a directory, the
// newest first, and makes it this process's own.
func takeDraft(history, directory string) string {
	paths, _ := filepath.Glob(globQuote(history) + ".draft.*")
	var found draft
	var from string
	var newest time.Time
	for _, path := range paths {
		pid, err := strconv.Atoi(strings.TrimPrefix(path, history+".draft."))
		if err != nil || pid != os.Getpid() && alive(pid) {
			continue
		}
		info, err := os.Stat(path)
		data, failed := os.ReadFile(path)
		var d draft
		if err != nil || failed != nil || json.Unmarshal(data, &d) != nil || d.Directory != directory || info.ModTime().Before(newest) {
			continue
		}
		found, from, newest = d, path, info.ModTime()
	}
	if from == "" {
		return ""
	}
	if saveDraft(history, directory, found.Text) == nil && from != draftPath(history, os.Getpid()) {
		os.Remove(from)
	}
	return found.Text
}

// globQuote makes a path one that filepath.Glob takes as it is.
func globQuote(path string) string {
	if runtime.GOOS == "windows" {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// writePrivate replaces a file by a rename, readable by its owner alone.
func writePrivate(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*") // made with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = cmp.Or(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
