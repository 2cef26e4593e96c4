package tool

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
)

// A record is a directory in which the supervisor of a command leaves what
// became of it, for whoever asks after the agent has died:
//
//	start   made before the command is, and only by one: by the supervisor, or
//	        by a probe, which keeps the supervisor from starting it any more;
//	        locked for as long as the supervisor lives
//	out     what the command wrote, so far
//	end     how it ended (ending); absent as long as it has not
//
// The directory itself is made before the intent of the call is durable. Where
// it is missing, nothing can be said.
type record struct{ dir string }

// keepRecords is how long records are kept.
const keepRecords = 30 * 24 * time.Hour

// The reasons for an end.
const (
	endedItself   = "exited"
	endedStopped  = "stopped"                        // the agent wanted it
	endedOrphaned = "stopped because the agent died" // nobody was there any more
	endedLost     = "lost"                           // its supervisor was killed
	endedUnborn   = "not started"                    // there is no such program, directory, …
)

// ending is how a command ended.
type ending struct {
	How string `json:"how"`
	// Code is the exit code; for a command that a signal ended 128 and its number.
	Code   int    `json:"code"`
	Signal string `json:"signal,omitzero"`
	// Left is how many processes it had left behind, which were stopped.
	Left int `json:"left,omitzero"`
	// Undead is how many could not be stopped: they run as somebody else.
	Undead int    `json:"undead,omitzero"`
	Error  string `json:"error,omitzero"`
	// Took is in nanoseconds.
	Took int64 `json:"took_ns,omitzero"`
	// Dropped is how many bytes of its output were not kept.
	Dropped int64 `json:"dropped,omitzero"`
}

func newRecord(parent string) (record, error) {
	var id [12]byte
	if _, err := rand.Read(id[:]); err != nil {
		return record{}, err
	}
	r := record{dir: filepath.Join(parent, hex.EncodeToString(id[:]))}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return record{}, err
	}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return record{}, err
	}
	return r, nil
}

func (r record) path(name string) string { return filepath.Join(r.dir, name) }

// claim makes the start marker; false if somebody has made it before.
func (r record) claim() (*os.File, bool, error) {
	f, err := os.OpenFile(r.path("start"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return f, true, nil
}

// end writes how it ended; it is there whole or not at all.
func (r record) end(e ending) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path("end.new"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(r.path("end.new"), r.path("end"))
}

// ended reads how it ended; false if it has not.
func (r record) ended() (ending, bool) {
	text, err := os.ReadFile(r.path("end"))
	if err != nil {
		return ending{}, false
	}
	var e ending
	if err := json.Unmarshal(text, &e); err != nil {
		return ending{}, false
	}
	return e, true
}

// output reads what it wrote, so far.
func (r record) output() string {
	f, err := os.Open(r.path("out"))
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxOutput+1<<16))
	if err != nil {
		return ""
	}
	return string(text)
}

// sweepRecords removes what is too old to be asked for.
func sweepRecords(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && now.Sub(info.ModTime()) > keepRecords {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// maxOutput is how much of a command's output is kept: the first and the last
// half of it.
const maxOutput = 16 << 20

// both keeps the beginning and the end of what is written to it.
type both struct {
	head, tail []byte
	half       int
	dropped    int64
}

func (b *both) Write(p []byte) (int, error) {
	n := len(p)
	if room := b.half - len(b.head); room > 0 {
		k := min(room, len(p))
		b.head = append(b.head, p[:k]...)
		p = p[k:]
	}
	b.tail = append(b.tail, p...)
	if over := len(b.tail) - b.half; over > b.half { // not for every byte
		b.tail = append(b.tail[:0], b.tail[over:]...)
		b.dropped += int64(over)
	}
	return n, nil
}

func (b *both) String() string {
	tail, dropped := b.tail, b.dropped
	if over := len(tail) - b.half; over > 0 {
		tail, dropped = tail[over:], dropped+int64(over)
	}
	if dropped == 0 {
		return string(b.head) + string(tail)
	}
	return string(b.head) + fmt.Sprintf("\n[%s were written here and not kept]\n", size(dropped)) + string(tail)
}
