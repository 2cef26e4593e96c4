package hookcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ninelives-ai/ninelives/agent"
	"github.com/ninelives-ai/ninelives/provider"
)

// maxOutput is how much is read of each of a command's outputs; the rest is
// thrown away.
const maxOutput = 16 << 10

// exitBlock is the exit code that stops what was about to happen.
const exitBlock = 2

// run runs one command and gives what it wants changed, or a warning in a line.
func (r *runner) run(ctx context.Context, c agent.CommandHook, in input) (agent.Intervention, string) {
	var none agent.Intervention
	name := firstLine(filepath.Base(c.Run[0]))
	text, err := in.encode()
	if err != nil {
		return none, fmt.Sprintf("the hook %s was not run: what it should read cannot be written: %v", name, err)
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = Timeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stdout, stderr, err := command(limited, c.Run, r.Directory, provider.WithoutKeys(os.Environ(), r.Hide...), text)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return answered(name, stdout)
	case ctx.Err() != nil:
		return none, "" // the turn was stopped, and with it the command
	case limited.Err() != nil:
		return none, fmt.Sprintf("the hook %s at %s was ended after %v: it took too long", name, c.On, timeout)
	case errors.As(err, &exit) && exit.ExitCode() == exitBlock:
		reason := strings.TrimSpace(stderr.text())
		if reason == "" {
			reason = strings.TrimSpace(stdout.text())
		}
		if reason == "" {
			reason = "it gave no reason"
		}
		return agent.Intervention{Block: true, Note: fmt.Sprintf("blocked by the hook %s: %s", name, reason)}, ""
	}
	why := err.Error()
	if exit != nil {
		why = exit.String()
		if said := firstLine(stderr.text()); said != "" {
			why += ": " + said
		}
	}
	return none, fmt.Sprintf("the hook %s at %s failed, and what it was asked about goes on: %s", name, c.On, why)
}

// answered reads what a command that succeeded has written: a JSON object with
// block and note, or a note as plain text.
func answered(name string, stdout *output) (agent.Intervention, string) {
	text := strings.TrimSpace(stdout.text())
	if !strings.HasPrefix(text, "{") || stdout.cut {
		return agent.Intervention{Note: text}, ""
	}
	var reply struct {
		Block bool   `json:"block"`
		Note  string `json:"note"`
	}
	if err := json.Unmarshal([]byte(text), &reply); err != nil {
		return agent.Intervention{}, fmt.Sprintf(`the hook %s wrote no answer that can be read: expected {"block": true, "note": "…"} or plain text`, name)
	}
	if reply.Block {
		if reply.Note == "" {
			reply.Note = "it gave no reason"
		}
		reply.Note = fmt.Sprintf("blocked by the hook %s: %s", name, reply.Note)
	}
	return agent.Intervention{Block: reply.Block, Note: reply.Note}, ""
}

// command runs a program until it ends or the context does, and then ends
// everything that it has started and that is still in its group.
func command(ctx context.Context, run []string, dir string, env []string, stdin []byte) (stdout, stderr *output, err error) {
	stdout, stderr = new(output), new(output)
	cmd := exec.Command(run[0], run[1:]...)
	cmd.Dir, cmd.Env = dir, env
	group(cmd)
	// The pipes are ours and not the package's, so that a child that outlives
	// the program is ended, and not waited for.
	var pipes pipes
	defer pipes.close()
	in, feed := pipes.open(&err)
	said, out := pipes.open(&err)
	complained, errs := pipes.open(&err)
	if err != nil {
		return stdout, stderr, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	if err := cmd.Start(); err != nil {
		return stdout, stderr, err
	}
	in.Close()
	out.Close()
	errs.Close()

	var copying sync.WaitGroup
	copying.Go(func() {
		_, _ = feed.Write(stdin) // a program need not read
		feed.Close()
	})
	copying.Go(func() { stdout.read(said) })
	copying.Go(func() { stderr.read(complained) })

	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-ctx.Done():
			kill(cmd.Process)
		case <-ended:
		}
	})
	err = cmd.Wait()
	close(ended)
	watching.Wait()
	kill(cmd.Process)
	// Who has left the group may hold the pipes; nobody waits for that one.
	pipes.expire(time.Now().Add(linger))
	copying.Wait()
	return stdout, stderr, err
}

// linger is how long the rest of the output is waited for after a command has ended.
const linger = 250 * time.Millisecond

type pipes []*os.File

func (p *pipes) open(failed *error) (r, w *os.File) {
	if *failed != nil {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		*failed = err
		return nil, nil
	}
	*p = append(*p, r, w)
	return r, w
}

func (p pipes) close() {
	for _, f := range p {
		f.Close() // most are closed already
	}
}

func (p pipes) expire(at time.Time) {
	for _, f := range p {
		if err := f.SetDeadline(at); errors.Is(err, os.ErrNoDeadline) {
			f.Close()
		}
	}
}

// output is the beginning of what a program writes.
type output struct {
	bytes.Buffer
	cut bool
}

func (o *output) read(r io.Reader) {
	n, _ := io.CopyN(&o.Buffer, r, maxOutput)
	if n < maxOutput {
		return
	}
	rest, _ := io.Copy(io.Discard, r)
	o.cut = rest > 0
}

// text is what was written, as text.
func (o *output) text() string {
	text := strings.ToValidUTF8(o.String(), "\uFFFD")
	if o.cut {
		text += fmt.Sprintf("\n[cut off after %d KB]", maxOutput>>10)
	}
	return text
}
