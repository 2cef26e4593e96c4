package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever a file holds, it is read or refused with its place: never a panic,
// never a key in an error.
func FuzzLoad(f *testing.F) {
	f.Add(whole)
	f.Add("model: [a\nx: }")
	f.Add("agents: {defaults: {provider: openai, model: ${K}}}")
	f.Add("policy: {deadline: 1m, clocks: {min_rate: -1}}")
	f.Add("modelPresets: {a: {key: " + testKey + ", windw: 1}}")
	f.Add("&a [*a]")
	f.Add("codebuddy.failover: {providers: [x]}")
	dir := f.TempDir()
	path := filepath.Join(dir, "f.yaml")
	env := environ("K", "gpt-4o")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, problems, err := Load([]string{path}, env)
		if (c == nil) != (err != nil) {
			t.Errorf("config %v, error %v", c, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), path) {
			t.Errorf("an error without its file: %v", err)
		}
		for _, p := range problems {
			if p.File != path || p.Line == 0 {
				t.Errorf("a problem without its place: %v", p)
			}
		}
	})
}
