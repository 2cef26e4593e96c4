package agent

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMatchersChooseByTheToolsName(t *testing.T) {
	for _, row := range []struct {
		match, name string
		want        bool
	}{
		{"", "anything", true},
		{"  ", "anything", true},
		{"edit_file", "edit_file", true},
		{"edit_file|write_file", "write_file", true},
		{"edit_file | write_file", "write_file", true},
		{"edit_file", "edit_files", false},
		{"*_file", "edit_file", true},
		{"mcp__*__read", "mcp__github__read", true},
		{"mcp__*__read", "mcp__github__write", false},
		{"*", "x", true},
		{"a*a", "a", false},
		{"a*b*c", "a-b-b-c", true},
		{"edit_file|", "grep", false},
	} {
		if got := (CommandHook{Match: row.match}).Matches(row.name); got != row.want {
			t.Errorf("%q and %q: %v, want %v", row.match, row.name, got, row.want)
		}
	}
}

// A * stands for any characters, and nothing else for more than itself.
func TestAStarStandsForAnyCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab.*]{1,8}`).Draw(t, "pattern")
		name := rapid.StringMatching(`[ab.]{0,10}`).Draw(t, "name")
		same := regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`)
		if got := (CommandHook{Match: pattern}).Matches(name); got != same.MatchString(name) {
			t.Fatalf("%q and %q: %v", pattern, name, got)
		}
	})
}

func TestAContextSaysWhoseItIs(t *testing.T) {
	if session, turn := Whose(context.Background()); session != "" || turn != 0 {
		t.Errorf("%q %d", session, turn)
	}
	if session, turn := Whose(For(For(context.Background(), "outer", 1), "inner", 2)); session != "inner" || turn != 2 {
		t.Errorf("%q %d", session, turn)
	}
}
