package ninelives_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/ninelives-ai/ninelives"

// layer ranks a package: imports go from a higher rank to a lower one only.
// Packages that are missing here fail the test: a new package states its place.
var layer = map[string]int{
	"":                 0, // the vocabulary
	"internal/jsonout": 0,
	"internal/nearest": 0,
	"internal/visible": 0,
	// support of the tests of programs that draw on a terminal
	"internal/tmuxtest": 0,

	"internal/wire/rawjson":   0,
	"internal/wire":           1,
	"internal/wire/sse":       2,
	"internal/wire/openai":    2,
	"internal/wire/anthropic": 2,
	"internal/wire/gemini":    2,
	"internal/wire/ollama":    2,
	"internal/wire/bedrock":   2,
	"internal/wire/wiretest":  2, // support of the tests of its neighbours

	"provider": 3,
	"heal":     3,

	"chaos":   4,
	"journal": 4,
	"tool":    4,

	"agent":    5,
	"gateway":  5,
	"tool/mcp": 5,

	"config":          6,
	"agent/hookcmd":   6,
	"agent/telemetry": 6,

	"internal/conformance":         7,
	"internal/conformance/library": 7, // what a user of the library alone links
	"cmd/ninelives/acp":            7,
	"cmd/ninelives/tui":            7,
	"cmd/ninelives":                8,
	"bench/gateway":                8, // measures the binary from outside
}

// forbidden are arrows that the ranks alone would allow.
var forbidden = map[string][]string{
	// The simulator must not share the decoders' mistakes.
	"chaos": {"internal/wire", "provider", "heal", "config", "journal"},
	// The decider knows no HTTP and no provider.
	"heal": {"internal/wire", "provider", "net/http", "net"},
	// The vocabulary knows nobody but the checking of output.
	"":        {"net/http", "net", "internal/wire", "provider", "heal"},
	"journal": {"provider", "heal", "internal/wire", "net/http"},
	// What a tool does is judged and journaled by others.
	"tool":     {"provider", "heal", "internal/wire", "journal", "chaos", "agent"},
	"tool/mcp": {"provider", "heal", "internal/wire", "journal", "chaos", "agent"},
	// The turn decider knows models alone, not who serves them.
	"agent": {"provider", "internal/wire", "net/http", "net", "chaos", "config"},
	// Deciding what bytes mean needs no connection.
	"internal/wire/sse":       {"net"},
	"internal/wire/openai":    {"net"},
	"internal/wire/anthropic": {"net"},
	"internal/wire/gemini":    {"net"},
}

func TestImportsRunOneWay(t *testing.T) {
	packages := imports(t)
	for pkg, deps := range packages {
		rank, known := layer[pkg]
		if !known {
			t.Errorf("package %q has no place in the layers: give it one in this test and in ARCHITECTURE.md", pkg)
			continue
		}
		for _, dep := range deps {
			for _, bad := range forbidden[pkg] {
				if dep == bad || strings.TrimPrefix(dep, module+"/") == bad {
					t.Errorf("%q must not import %q", pkg, dep)
				}
			}
			if !strings.HasPrefix(dep, module) {
				continue
			}
			name := strings.TrimPrefix(strings.TrimPrefix(dep, module), "/")
			if layer[name] > rank {
				t.Errorf("%q imports %q, which is above it", pkg, name)
			}
			if layer[name] == rank && rank > 1 && name != "internal/wire/sse" && pkg != name {
				t.Errorf("%q imports its neighbour %q", pkg, name)
			}
		}
	}
}

// imports gives the direct imports of each package of the module, tests left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		name := strings.TrimPrefix(strings.TrimPrefix(fields[0], module), "/")
		packages[name] = fields[1:]
	}
	return packages
}

// TestLibraryStaysSmall holds what a program pays that only imports the
// library: at most a dozen modules and 12 MB, as a program is shipped: without
// its symbol table and debug information. (With them a program of net/http and
// the JSON libraries alone has 11.5 MB.)
func TestLibraryStaysSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program: left out with -short")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	dir := t.TempDir()
	bin := dir + "/library"
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "./internal/conformance/library")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	if mb := float64(info.Size()) / 1e6; mb > 12 {
		t.Errorf("the program has %.1f MB, 12 are allowed", mb)
	} else {
		t.Logf("the program has %.1f MB", mb)
	}
	out, err := exec.Command("go", "version", "-m", bin).Output()
	if err != nil {
		t.Fatalf("go version -m: %v", err)
	}
	var modules []string
	for _, line := range strings.Split(string(out), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "dep" {
			modules = append(modules, f[1])
		}
	}
	if len(modules) > 12 {
		t.Errorf("the program links %d modules, 12 are allowed: %v", len(modules), modules)
	} else {
		t.Logf("the program links %d modules: %v", len(modules), modules)
	}
}
