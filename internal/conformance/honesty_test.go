package conformance

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The product may know kinds of faults, never a case: no id stands in the
// sources, and no sentence in those that judge. (The simulator speaks as the
// providers do.)
func TestNoSourceKnowsACase(t *testing.T) {
	cases := loadFaults(t)
	sources := map[string]string{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		sources[path] = strings.ToLower(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		known := []string{c.ID}
		for _, s := range sentences(c.payload()) {
			if len(s) >= 48 {
				known = append(known, strings.ToLower(s))
			}
		}
		for path, text := range sources {
			for i, s := range known {
				speaks := strings.HasPrefix(path, filepath.Join("..", "..", "chaos")+string(filepath.Separator))
				if !(i > 0 && speaks) && strings.Contains(text, s) {
					t.Errorf("%s quotes case %s: %q", path, c.ID, s)
				}
			}
		}
	}
}

// sentences are the texts that an error body tells.
func sentences(body string) []string {
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		return nil
	}
	var out []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case object:
			for key, e := range v {
				if s, ok := e.(string); ok && (key == "message" || key == "msg" || key == "error" || key == "raw") {
					out = append(out, strings.Split(s, ". ")...)
				}
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(v)
	return out
}
