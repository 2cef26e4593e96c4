package nearest

import "testing"

func TestNameForgivesTypingErrorsAndNothingMore(t *testing.T) {
	names := []string{"anthropic", "openai", "openrouter", "deepseek", "groq", "xai", "zai"}
	for _, c := range []struct{ in, want string }{
		{"antropic", "anthropic"},
		{"Anthropic", "anthropic"},
		{"opnai", "openai"},
		{"oepnai", "openai"}, // swapped letters count once
		{"deepsek", "deepseek"},
		{"grok", "groq"},
		{"openrou", "openrouter"}, // begun
		{"openai2", "openai"},
		{"xi", "xai"},
		{"x", ""}, // too short to guess
		{"bedrock", ""},
		{"", ""},
	} {
		if got := Name(c.in, names); got != c.want {
			t.Errorf("Name(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestHintIsEmptyWhenNothingIsClose(t *testing.T) {
	if got := Hint("antropic", []string{"anthropic"}); got != ` (did you mean "anthropic"?)` {
		t.Errorf("Hint = %q", got)
	}
	if got := Hint("qqqq", []string{"anthropic"}); got != "" {
		t.Errorf("Hint = %q, want none", got)
	}
}
