package agent

import (
	"testing"

	ninelives "github.com/ninelives-ai/ninelives"
)

// Source design 001: setting, exact match, family, 16k.
func TestTheWindowIsFoundInThisOrder(t *testing.T) {
	c := DefaultSettings().Compaction
	set := c
	set.Window = 5000
	at := func(window int, source string) ninelives.Candidate {
		return ninelives.Candidate{Capabilities: ninelives.Capabilities{Window: window, WindowSource: source}}
	}
	for _, row := range []struct {
		name      string
		settings  CompactionSettings
		candidate ninelives.Candidate
		learnt    int
		tokens    int
		source    string
	}{
		{"a setting goes before all", set, at(200000, "exact"), 100, 5000, "setting"},
		{"an exact match", c, at(200000, "exact"), 0, 200000, "exact"},
		{"a family", c, at(200000, "family"), 0, 200000, "family"},
		{"a larger one that was learnt proves nothing", c, at(200000, "exact"), 300000, 200000, "exact"},
		{"a smaller one that was learnt holds", c, at(200000, "exact"), 8192, 8192, "learnt"},
		{"the candidate's own setting stays", c, at(200000, "setting"), 8192, 200000, "setting"},
		{"learnt where nothing is known", c, at(0, ""), 8192, 8192, "learnt"},
		{"learnt where there is a guess", c, at(16000, "default"), 32768, 32768, "learnt"},
		{"16k where nobody knows", c, at(0, ""), 0, 16000, "default"},
		{"16k where the candidate guesses", c, at(4096, "default"), 0, 16000, "default"},
	} {
		if tokens, source := row.settings.WindowOf(row.candidate, row.learnt); tokens != row.tokens || source != row.source {
			t.Errorf("%s: %d (%s), want %d (%s)", row.name, tokens, source, row.tokens, row.source)
		}
	}
}

func TestTheReserveIsTheOutputCapAndNoFlatNumber(t *testing.T) {
	for _, row := range []struct{ window, output, limit, want int }{
		{200000, 64000, 0, 64000}, {200000, 64000, 8000, 8000}, {8192, 8192, 0, 2730}, {16000, 0, 0, 2000},
	} {
		c := ninelives.Candidate{Capabilities: ninelives.Capabilities{MaxOutput: row.output}}
		if got := ReserveOf(c, row.window, row.limit); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

func TestTheEstimateAddsUp(t *testing.T) {
	h := history(10, 333)
	if a, b := Estimate(h...), Estimate(h[:7]...)+Estimate(h[7:]...); a != b {
		t.Errorf("%d in one, %d in two", a, b)
	}
}
