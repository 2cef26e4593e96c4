package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ninelives-ai/ninelives/gateway"
	"github.com/ninelives-ai/ninelives/internal/nearest"
)

// Where launch looks for a gateway, and as whom it comes.
const (
	defaultGateway  = "http://127.0.0.1:9009"
	gatewayVariable = "NINELIVES_GATEWAY"
	keyVariable     = "NINELIVES_KEY"
)

// gatewayStart starts a gateway in this process, on a free loopback port, and
// ends it with stop. The context's end does not end it.
type gatewayStart func(ctx context.Context) (url string, stop func(), err error)

func (p *process) launch(start gatewayStart) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "launch claude|codex|opencode|crush [-- arguments]",
		Short: "Start a client so that its calls are healed",
		Long: `Start Claude Code, Codex, opencode or Crush so that it asks the gateway.

That is the one that ` + gatewayVariable + ` names, else the one at 127.0.0.1:9009
if it runs, else one that lives as long as the client. Where the gateway wants a
client key it is taken from ` + keyVariable + `. The client's own files of settings
stay as they are. Everything after its name is for the client, and its exit code
is the command's.`,
		Example: `  ninelives launch claude
  ninelives launch codex -- exec "Make the tests pass"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("launch what? One of %s", strings.Join(clientNames(), ", "))
			}
			if clientNamed(args[0]) == nil {
				return usagef("launch knows no client %q%s: it is one of %s", args[0], nearest.Hint(args[0], clientNames()), strings.Join(clientNames(), ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			more := args[1:]
			if len(more) > 0 && more[0] == "--" {
				more = more[1:]
			}
			return p.launchClient(cmd.Context(), clientNamed(args[0]), more, start)
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the name is the client's
	return cmd
}

func (p *process) launchClient(ctx context.Context, c *client, args []string, start gatewayStart) error {
	program, err := exec.LookPath(c.name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return usagef("%s is not installed: %s", c.name, c.install)
	} else if err != nil {
		return usagef("%s: %v", c.name, err)
	}
	// A Ctrl-C is the client's, here and in the gateway that serves it.
	own := context.WithoutCancel(ctx)
	base, stop, err := p.gatewayFor(own, start)
	if err != nil {
		return err
	}
	defer stop()
	get := func(name string) string { text, _ := p.env(name); return text }
	at := &launching{base: base, key: get(keyVariable), env: get}
	if c.models {
		at.models = modelsOf(own, base, at.key)
	}
	dir := ""
	if c.files {
		if dir, err = os.MkdirTemp("", "ninelives-launch-"); err != nil {
			return fmt.Errorf("there is no place for the settings of %s: %w", c.name, err)
		}
		defer os.RemoveAll(dir)
		at.dir = dir
	}
	way, err := c.way(at)
	if err != nil {
		return err
	}
	cmd := exec.Command(program, append(way.args, args...)...)
	cmd.Env = way.environ(os.Environ())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	fmt.Fprintf(p.stderr, "ninelives: %s asks %s\n", c.name, base)
	return p.runClient(cmd)
}

// runClient runs a client in our place: what we are told, it is told.
func (p *process) runClient(cmd *exec.Cmd) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	// An ignored signal would stay ignored in the client, and Reset would not help.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	err := cmd.Start()
	signal.Ignore(syscall.SIGPIPE)
	if err != nil {
		return fmt.Errorf("%s does not start: %w", filepath.Base(cmd.Path), err)
	}
	// A terminal tells all of its foreground, the client among them.
	told := isTerminal(os.Stdin) || isTerminal(os.Stdout) || isTerminal(os.Stderr)
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s != os.Interrupt || !told {
				_ = cmd.Process.Signal(s) // it may have ended just now
			}
		case err := <-done:
			return clientEnd(err)
		}
	}
}

// clientEnd is the client's exit code as ours; a signal gives 128 and its
// number, as a shell would say.
func clientEnd(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &ended{128 + int(status.Signal())}
	}
	return &ended{exit.ExitCode()}
}

// gatewayFor finds a gateway or starts one.
func (p *process) gatewayFor(ctx context.Context, start gatewayStart) (base string, stop func(), err error) {
	none := func() {}
	if named, _ := p.env(gatewayVariable); strings.TrimSpace(named) != "" {
		base, err := gatewayURL(named)
		if err != nil {
			return "", nil, err
		}
		if err := isGateway(ctx, base); err != nil {
			return "", nil, usagef("%s=%s: %v", gatewayVariable, base, err)
		}
		return base, none, nil
	}
	if isGateway(ctx, defaultGateway) == nil {
		return defaultGateway, none, nil
	}
	if start == nil {
		return "", nil, usagef("no gateway runs at %s: start one with ninelives serve", defaultGateway)
	}
	return start(ctx)
}

// gatewayURL reads an address as people write it, with or without scheme and /v1.
func gatewayURL(text string) (string, error) {
	text = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(text), "/"), "/v1")
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", usagef("%s is no address of a gateway: write it like %s", gatewayVariable, defaultGateway)
	}
	return strings.TrimRight(text, "/"), nil
}

// isGateway says why something is none.
func isGateway(ctx context.Context, base string) error {
	body, err := fetch(ctx, base+"/healthz", "")
	var status statusError
	if err != nil && !errors.As(err, &status) {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return fmt.Errorf("no gateway answers there (%w): start one with ninelives serve", err)
	}
	var said struct {
		Service string `json:"service"`
	}
	if json.Unmarshal(body, &said) != nil || said.Service != gateway.Service {
		return errors.New("something answers there, but it is no gateway of Nine Lives")
	}
	return nil
}

// modelsOf lists what the gateway serves, the default first; where it does not
// say, any name will do.
func modelsOf(ctx context.Context, base, key string) []string {
	var said struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	body, err := fetch(ctx, base+"/v1/models", key)
	var names []string
	if err == nil && json.Unmarshal(body, &said) == nil {
		for _, m := range said.Data {
			if m.ID != "" {
				names = append(names, m.ID)
			}
		}
	}
	if len(names) == 0 {
		return []string{"default"}
	}
	return names
}

// statusError is an answer that is none.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("it answers with status %d", int(s)) }

// fetch gets a small answer soon or not at all.
func fetch(ctx context.Context, url, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, 1<<20))
}

// way is how a client is made to ask the gateway.
type way struct {
	args  []string          // before those of the user
	set   map[string]string // in its environment
	unset []string
}

// environ is the environment with what the way changes.
func (w *way) environ(from []string) []string {
	drop := map[string]bool{}
	for _, name := range w.unset {
		drop[name] = true
	}
	for name := range w.set {
		drop[name] = true
	}
	var env []string
	for _, entry := range from {
		if name, _, _ := strings.Cut(entry, "="); !drop[name] {
			env = append(env, entry)
		}
	}
	for name, value := range w.set {
		env = append(env, name+"="+value)
	}
	return env
}

// copySettings gives a directory the entries of another one, but for those that
// are named; where links are not to be had, without them.
func copySettings(from, to string, but ...string) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return
	}
	for _, e := range entries {
		keep := true
		for _, name := range but {
			keep = keep && e.Name() != name
		}
		if keep {
			_ = os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		}
	}
}

// readObject reads a file that holds a JSON object; none is an empty one.
func readObject(path string) (map[string]any, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, err
	}
	return asObject(path, string(text))
}

func asObject(what, text string) (map[string]any, error) {
	var object map[string]any
	if err := json.Unmarshal([]byte(cmp.Or(strings.TrimSpace(text), "{}")), &object); err != nil || object == nil {
		return nil, fmt.Errorf("%s is no JSON object, so nothing can be added to it (%w): mend it, or move it away", what, cmp.Or(err, errors.New("it is null")))
	}
	return object, nil
}
