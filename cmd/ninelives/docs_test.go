package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/heal"
)

const root = "../.."

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block is what stands between a fence that begins like this and its end.
func block(t *testing.T, text, fence string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, fence)
	inside, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		t.Fatalf("there is no block %q", fence)
	}
	return inside
}

// The picture in the README is what a newcomer sees, but for the times and the
// ends of lines.
func TestThePictureIsTrue(t *testing.T) {
	times := regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?m?s\b`)
	plain := func(s string) string {
		return times.ReplaceAllString(strings.Join(strings.Fields(s), " "), "TIME")
	}
	models, stop, err := demo()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var screen strings.Builder
	s := &show{out: &screen, log: &screen, live: true, sameTTY: true, start: time.Now()}
	a := &asking{process: &process{}, tell: s, kept: &kept{}}
	c := &chain{models: models, policy: heal.DefaultPolicy(), simulated: true}
	resp, err := a.carryOut(context.Background(), c, ninelives.Prompt("Why do cats land on their feet?"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.answer(resp); err != nil {
		t.Fatal(err)
	}
	_, picture, _ := strings.Cut(block(t, page(t, "README.md"), "```\n$ ninelives ask"), "\n")
	if got, want := plain(screen.String()), plain(picture); got != want {
		t.Errorf("the README shows\n%s\nand this is what happens:\n%s", picture, screen.String())
	}
}

// The programs in the manual are programs.
func TestTheManualsProgramsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the go command")
	}
	inTest := "package x\n\nimport (\n\t\"testing\"\n\n\t\"github.com/ninelives-ai/ninelives/chaos\"\n\t\"github.com/ninelives-ai/ninelives/provider\"\n)\n\nfunc TestX(t *testing.T) {\n" +
		block(t, page(t, "docs/chaos.md"), "```go\n") + "\n\t_, _ = model, err\n}\n"
	for name, program := range map[string]string{"main.go": block(t, page(t, "README.md"), "```go\n"), "x_test.go": inTest} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "vet", file)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// Every page is found from the README, and every link leads somewhere.
func TestEveryPageIsLinked(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:, ]+)\)`)
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for _, name := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to := filepath.Join(filepath.Dir(name), m[1])
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
			if filepath.Base(name) == "README.md" {
				linked[to] = true
			}
		}
	}
	for _, p := range pages {
		if !linked[p] {
			t.Errorf("the README does not link to %s", p)
		}
	}
}

// The page of faults names the script of every fault.
func TestEveryFaultIsInTheTable(t *testing.T) {
	table := page(t, "docs/faults.md")
	scripts, err := filepath.Glob("testdata/script/fault_*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal(err)
	}
	for _, s := range scripts {
		if name := strings.TrimSuffix(filepath.Base(s), ".txtar"); !strings.Contains(table, "| `"+name+"` |") {
			t.Errorf("docs/faults.md does not have %s", name)
		}
	}
	for _, m := range regexp.MustCompile("`(fault_[a-z_]+)`").FindAllStringSubmatch(table, -1) {
		if _, err := os.Stat("testdata/script/" + m[1] + ".txtar"); err != nil {
			t.Error(err)
		}
	}
}

// The manual lists the exit codes that there are, the flags and the variables.
func TestTheManualIsComplete(t *testing.T) {
	manual := page(t, "docs/cli.md")
	for _, code := range []int{exitOK, exitInternal, exitUsage, exitAuth, exitBilling, exitUnavailable, exitRefused, exitTruncated, exitEmpty, exitLimit, exitLoop, exitDenied, exitOverflow, exitDeadline, exitCancelled} {
		if !strings.Contains(manual, "\n| "+strconv.Itoa(code)+" | ") {
			t.Errorf("exit code %d is not in docs/cli.md", code)
		}
	}
	p := &process{env: os.LookupEnv}
	for _, cmd := range p.root().Commands() {
		if cmd.Name() != "help" && !strings.Contains(manual, "\nninelives "+cmd.Name()) {
			t.Errorf("ninelives %s is not in docs/cli.md", cmd.Name())
		}
		flags := regexp.MustCompile(`--[a-z-]+`).FindAllString(cmd.LocalFlags().FlagUsages(), -1)
		for _, flag := range flags {
			if flag != "--help" && !strings.Contains(manual, "`"+flag) {
				t.Errorf("ninelives %s %s is not in docs/cli.md", cmd.Name(), flag)
			}
		}
	}
}
