//go:build !windows

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/ninelives-ai/ninelives/chaos"
	"github.com/ninelives-ai/ninelives/internal/tmuxtest"
)

// desk is the program in a real terminal, with the simulator as its provider.
type desk struct {
	*tmuxtest.Pane
	t   *testing.T
	sim *chaos.Server
	dam *dam
}

// newDesk starts the simulator with a file of scenarios, and a terminal.
func newDesk(t *testing.T, w, h int, scenarios string, env ...string) *desk {
	t.Helper()
	sim := simulate(t, scenarios)
	dam := newDam(t, sim)
	d := &desk{tmuxtest.New(t, w, h, append(providers(dam.url), env...)...), t, sim, dam}
	d.file(".git/HEAD", "ref: refs/heads/main\n")
	return d
}

func simulate(t *testing.T, scenarios string) *chaos.Server {
	t.Helper()
	list, err := chaos.Parse([]byte("scenarios:\n" + scenarios))
	if err != nil {
		t.Fatal(err)
	}
	sim := chaos.New(list...)
	t.Cleanup(sim.Close)
	return sim
}

// providers are the variables that lead to the simulator and nowhere else.
func providers(url string) []string {
	return []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=" + url + "/v1", "NINELIVES_LOCAL=off"}
}

// file writes a file of the workspace.
func (d *desk) file(name, content string) {
	d.t.Helper()
	path := filepath.Join(d.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// wantFile checks what a file of the workspace holds; "" stands for no file.
func (d *desk) wantFile(name, want string) {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.Dir, name))
	if err != nil && !os.IsNotExist(err) || string(data) != want {
		d.t.Errorf("%s has %q (%v), want %q", name, data, err, want)
	}
}

// open starts the program, until it takes keys.
func (d *desk) open(command string) {
	d.t.Helper()
	d.Start(command + "; echo exit=$?")
	d.Wait("openai/", " · ")
}

// quit ends the program and gives the id of the session as its last line tells it.
func (d *desk) quit() string {
	d.t.Helper()
	d.Send("/quit")
	last := regexp.MustCompile(`\ngo on with: ninelives resume (\S+)\nexit=0\n\$$`)
	return last.FindStringSubmatch(d.Until("its last line and a prompt", last.MatchString))[1]
}

// twice presses a key of which the second one counts, in time: not before what
// the first of an earlier pair said has gone, and both at once.
func (d *desk) twice(key, said string) {
	d.t.Helper()
	d.Wait(said)
	d.Gone(said)
	d.Press(key, key)
}

// status waits for a last line of the screen.
func (d *desk) status(pattern string) {
	d.t.Helper()
	re := regexp.MustCompile(`\n` + pattern + `$`)
	d.Until("a status line like "+pattern, re.MatchString)
}

// asked gives the texts of the user's messages of each request.
func (d *desk) asked() [][]string {
	d.t.Helper()
	var all [][]string
	for _, e := range d.sim.Log() {
		var body struct {
			Messages []struct {
				Role    string          `json:"role"`
				Content json.RawMessage `json:"content"`
			} `json:"messages"`
		}
		if err := json.Unmarshal(e.Body, &body); err != nil {
			d.t.Fatal(err)
		}
		texts := []string{}
		for _, m := range body.Messages {
			if m.Role == "user" {
				texts = append(texts, text(m.Content))
			}
		}
		all = append(all, texts)
	}
	return all
}

// text is the content of a message in either of its forms.
func text(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts)
	for _, p := range parts {
		s += p.Text
	}
	return s
}
