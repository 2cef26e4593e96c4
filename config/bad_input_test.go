package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Whatever is wrong with a file is one line: where, what, and what to do.
func TestWhatIsWrongIsSaidInPlainWords(t *testing.T) {
	for text, want := range map[string]string{
		"\tmodel: x":              "f.yaml:1:6: a tab stands in this line: indent with spaces",
		"policy:\n\tdeadline: 3s": "f.yaml:2:1: a tab stands here: indent with spaces",
		"model: a\nmodel: b":      `f.yaml:2:1: mapping key "model" already defined at [1:1]`,
		"model: a: b":             `f.yaml:1:8: a second ":" in one value: put the value in quotes`,
		"modelPresets: {a: {model: x, key: ${K}}}":             "f.yaml:1:36: ',' or '}' must be specified (inside { } and [ ] a value such as ${NAME} stands in quotes)",
		"model: ${UNCLOSED":                                    "f.yaml:1:8: a variable is written ${NAME} or ${NAME:-default}, and a plain ${ as $${",
		"model: a${}":                                          "f.yaml:1:8: a variable is written ${NAME} or ${NAME:-default}, and a plain ${ as $${",
		"model: [a]":                                           "f.yaml:1:8: expected a text, not a list",
		"model: " + strings.Repeat("x", 201):                   "f.yaml:1:8: no model has a name of 201 characters",
		"policy: 3":                                            `f.yaml:1:9: expected settings of its own, not "3"`,
		"policy: {deadline: [1]}":                              "f.yaml:1:20: expected a duration like 30s or 2m, not a list",
		"policy: {deadline: 30}":                               `f.yaml:1:20: "30" needs a unit: write it like 30s or 2m`,
		"policy: {budget: {requests: 1.5}}":                    `f.yaml:1:29: expected a whole number, not "1.5"`,
		"policy: {budget: {requests: {a: 1}}}":                 "f.yaml:1:29: expected a whole number, not settings",
		"policy: {budget: {requests: 9999999999999999999999}}": `f.yaml:1:29: "9999999999999999999999" is too large a number`,
		"policy: {budget: {money: .nan}}":                      "f.yaml:1:26: .nan is no amount",
		"policy: {budget: {money: -.inf}}":                     "f.yaml:1:26: -.inf is no amount",
		"window: -1":                                           "f.yaml:1:9: -1 is below zero",
		"consent: {vendors: openai}":                           `f.yaml:1:20: expected a list, not "openai"`,
		"network: {ca_file: nowhere.pem}":                      "f.yaml:1:20: CA file: open nowhere.pem: no such file or directory",
		"network: {proxy: nonsense}":                           "f.yaml:1:18: the proxy is no URL: write it like http://host:3128 or socks5://host:1080",
		"- model":                                              `f.yaml:1:1: a configuration is made of settings like "model: …"`,
		"model: \xff":                                          "f.yaml: it is no text in UTF-8: is it another file, or saved in another encoding?",
		"model: a\x00":                                         "f.yaml: it is no text in UTF-8: is it another file, or saved in another encoding?",
		"m\x00o\x00d\x00e\x00l\x00":                            "f.yaml: it is no text in UTF-8: is it another file, or saved in another encoding?",
		strings.Repeat("[", 5000):                              "f.yaml: it is nested more than 100 levels deep",
		strings.Repeat("{a: ", 5000):                           "f.yaml: it is nested more than 100 levels deep",
		strings.Repeat("- ", 5000) + "a":                       "f.yaml: it is nested more than 100 levels deep",
		"a: >" + strings.Repeat("\n", 5001):                    "f.yaml: it has more than 5000 lines: a configuration has not",
		"# " + strings.Repeat("x", 256<<10):                    "f.yaml: it is larger than 256 KB: a configuration is not",
	} {
		if _, _, got := load(t, text, environ("K", "k")); got != want {
			t.Errorf("%.60q:\n  %s\nwant:\n  %s", text, got, want)
		}
	}
}

func TestWhatEditorsWriteIsRead(t *testing.T) {
	for _, text := range []string{"\ufeffmodel: openai/gpt-4o", "model: openai/gpt-4o\r\nwindow: 5\r\n", "# nothing else\n\nmodel: openai/gpt-4o", `{"model": "openai/gpt-4o"}`, "---\nmodel: openai/gpt-4o\n...\n"} {
		c, problems, fatal := load(t, text, environ())
		if fatal != "" || problems != nil || c.model == nil || c.model.name != "openai/gpt-4o" {
			t.Errorf("%q: %q %s", text, problems, fatal)
		}
	}
	for _, text := range []string{"", "\n", "# nothing\n", "null", "~"} {
		if c, problems, fatal := load(t, text, environ()); fatal != "" || problems != nil || c.model != nil {
			t.Errorf("%q: %q %s", text, problems, fatal)
		}
	}
}

// A preset that was skipped is a warning; where it is the model that is asked
// for, the error says what is wrong with it, not that there is no such model.
func TestABrokenPresetSaysWhatIsWrongWithIt(t *testing.T) {
	env := environ("OPENAI_API_KEY", testKey)
	c, _, fatal := load(t, "model: house\nmodelPresets:\n  house: {provider: openai, model: gpt-4o, windw: 5}\n", env)
	if fatal != "" {
		t.Fatal(fatal)
	}
	_, _, err := chain(t, c, env)
	want := `f.yaml:3:44: the preset "house" is broken: there is no setting "windw" here (did you mean "window"?)`
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	c.Use("openai/gpt-4o", []string{"house"})
	_, problems, err := chain(t, c, env)
	if err != nil || len(problems) != 1 || !strings.Contains(problems[0], `fallback skipped: the preset "house" is broken`) {
		t.Errorf("%q, %v", problems, err)
	}
}

func TestAFileThatIsNoneIsALine(t *testing.T) {
	dir := t.TempDir()
	failure := func(path, want string) {
		t.Helper()
		_, _, err := Load([]string{path}, environ())
		if err == nil || err.Error() != path+": "+want {
			t.Errorf("got %v, want %s: %s", err, path, want)
		}
	}
	failure(dir, "it cannot be read: is a directory")
	if runtime.GOOS == "windows" {
		return
	}
	loop := filepath.Join(dir, "loop.yaml")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	failure(loop, "it cannot be read: too many levels of symbolic links")
	// What stands in the way of a directory is as good as no file.
	file := write(t, dir, "file", "")
	if _, _, err := Load([]string{filepath.Join(file, "config.yaml")}, environ()); err != nil {
		t.Error(err)
	}
	// A pipe without a writer is empty and not waited for.
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := mkfifo(pipe); err != nil {
		t.Skip(err)
	}
	if _, _, err := Load([]string{pipe}, environ()); err != nil {
		t.Error(err)
	}
	if os.Getuid() != 0 {
		secret := write(t, dir, "secret.yaml", "model: x")
		if err := os.Chmod(secret, 0); err != nil {
			t.Fatal(err)
		}
		failure(secret, "it cannot be read: "+syscall.EACCES.Error())
	}
}

func TestRelativeHomesAreNone(t *testing.T) {
	for _, env := range [][]string{{"HOME", "rel"}, {"HOME", ""}, {"XDG_CONFIG_HOME", "rel", "HOME", "/home/x"}, {}} {
		if got := Paths(".", environ(env...)); len(got) != 1 || got[0] != "ninelives.yaml" {
			t.Errorf("%q: %q", env, got)
		}
	}
}
