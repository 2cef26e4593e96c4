package tui

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// shellBytes is how much of a ! command's output is kept: its end.
const shellBytes = 32 << 10

// shell runs a command of the user's in the workspace, in a process group of
// its own. It is the user's own deed: nobody is asked. What it wrote is shown,
// and goes to the model with the next message.
func (d *driver) shell(command string) any {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	d.mu.Lock()
	d.shellID++
	id := d.shellID
	d.shells[id] = cancel
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.shells, id)
		d.mu.Unlock()
	}()
	cmd := shellCommand(ctx, command)
	cmd.Dir = d.cfg.Directory
	cmd.Env = append(slices.Clone(d.cfg.Env), "PAGER=cat", "GIT_PAGER=cat", "TERM=dumb")
	var out tailBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 2 * time.Second // something it started keeps the output open
	began := time.Now()
	err := cmd.Run()
	text := out.String()
	b := block{kind: blockShell, head: command, body: text}
	ending := "exit status 0"
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		b.note, b.failed, ending = "stopped", true, "stopped by the user"
	case errors.As(err, &exit):
		b.note, b.failed, ending = exit.Error(), true, exit.Error()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		b.note, b.failed, ending = err.Error(), true, err.Error()
	default:
		if took := time.Since(began); took >= time.Second {
			b.note = brief(took)
		}
	}
	return shellOver{block: b, context: fmt.Sprintf("$ %s\n%s\n(%s)", command, strings.TrimRight(plain(text), "\n"), ending)}
}

// tailBuffer keeps the end of what is written.
type tailBuffer struct {
	mu   sync.Mutex
	data []byte
	lost bool
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - 2*shellBytes; over > 0 {
		t.data = append(t.data[:0], t.data[len(t.data)-shellBytes:]...)
		t.lost = true
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	data := t.data
	if len(data) > shellBytes {
		data, t.lost = data[len(data)-shellBytes:], true
	}
	text := strings.ToValidUTF8(string(data), "\ufffd")
	if t.lost {
		text = "… the beginning is left out\n" + text
	}
	return text
}
