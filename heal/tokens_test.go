package heal

import (
	"strings"
	"testing"
)

func TestTokensAreEstimatedByScript(t *testing.T) {
	for text, want := range map[string]int{
		"":                                0,
		"a":                               1,
		"Why do cats land on their feet?": 8,
		"1234567":                         3,
		"猫为什么总是用脚着地":                      10,
		"\n\n\n":                          1,
	} {
		if got := TextTokens(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
	// Twice the text has twice the tokens: nothing is counted from its length alone.
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 50)
	if one, two := TextTokens(text), TextTokens(text+text); two != 2*one {
		t.Errorf("%d tokens, and twice the text %d", one, two)
	}
}
