package agent

import (
	"os"
	"strings"
	"testing"
	"time"

	ninelives "github.com/ninelives-ai/ninelives"
)

const full5 = `# Mine

I wrote this.

- 2026-01-01: uses go 1.25
- 2026-02-01 (permanent): never touch vendor/
- a line of my own
- 2026-03-01: uses go 1.26
- 2026-03-02: tests run with make
`

func TestADreamRefinesWhatIsRemembered(t *testing.T) {
	remembers(t, func(k *kept) {
		k.write(k.dirs.Project, full5)
		k.OnTurn("s")()
		after(10*time.Minute + 3*time.Second)
		want := `# Mine

I wrote this.

- 2000-01-01: uses go 1.26
- 2000-01-01: tests run with make
- 2026-02-01 (permanent): never touch vendor/
- a line of my own
`
		if got := k.read(k.dirs.Project, MemoryFile); got != want {
			t.Errorf("the memory is\n%s\nwant\n%s\n%s", got, want, k.Problem())
		}
		if got, want := k.read(k.dirs.Project, archiveFile), "## 2000-01-01, entries that were refined\n\n- 2026-01-01: uses go 1.25\n\n"; got != want {
			t.Errorf("put away: %q, want %q", got, want)
		}
		if text := k.model.requests[0].Messages[1].Text(); strings.Contains(text, "permanent") || strings.Contains(text, "my own") || !k.model.requests[0].Background {
			t.Errorf("the model was asked about %q", text)
		}
		after(72 * time.Hour)
		if k.model.asked() != 1 {
			t.Errorf("what had not changed was refined %d times", k.model.asked())
		}
	}, "- 2026-03-01: uses go 1.26\n- 2026-03-02: tests run with make")
}

func TestADreamComesAtMostOnceADayAlsoIfItFails(t *testing.T) {
	for _, answer := range []string{"!", "no entries here", strings.Repeat("- 2026-01-01: longer and longer\n", 100)} {
		remembers(t, func(k *kept) {
			k.write(k.dirs.Project, full5)
			k.OnTurn("s")()
			after(10*time.Minute + 3*time.Second)
			if k.model.asked() != 1 || k.read(k.dirs.Project, MemoryFile) != full5 {
				t.Errorf("%.20q: asked %d times", answer, k.model.asked())
			}
			after(24*time.Hour - 10*time.Second)
			if k.model.asked() != 1 {
				t.Errorf("%.20q: asked again within a day", answer)
			}
			after(20 * time.Second)
			if k.model.asked() != 2 || k.read(k.dirs.Project, MemoryFile) != full5 {
				t.Errorf("%.20q: asked %d times after a day", answer, k.model.asked())
			}
			after(24 * time.Hour)
			if n := k.model.asked(); n != 3 {
				t.Errorf("%.20q: asked %d times after two days", answer, n)
			}
		}, answer)
	}
}

func TestADreamDoesNotOverwriteWhatWasWrittenMeanwhile(t *testing.T) {
	remembers(t, func(k *kept) {
		k.write(k.dirs.Project, full5)
		k.OnTurn("s")()
		after(10*time.Minute + time.Second)
		k.write(k.dirs.Project, full5+"- and this too\n")
		after(time.Minute)
		if got := k.read(k.dirs.Project, MemoryFile); got != full5+"- and this too\n" {
			t.Errorf("the memory is\n%s", got)
		}
	}, "- 2026-03-01: one")
}

func TestADreamThatATurnEndsComesLater(t *testing.T) {
	remembers(t, func(k *kept) {
		k.write(k.dirs.Project, full5)
		k.OnTurn("s")()
		after(10*time.Minute + time.Second)
		ended := k.OnTurn("s")
		after(time.Minute)
		if k.read(k.dirs.Project, MemoryFile) != full5 {
			t.Error("it went on beside a turn")
		}
		ended()
		after(10*time.Minute + 3*time.Second)
		if k.model.asked() != 2 || strings.Contains(k.read(k.dirs.Project, MemoryFile), "make") {
			t.Errorf("asked %d times: %s", k.model.asked(), k.Problem())
		}
	}, "- 2026-03-01: one")
}

func TestWhereNothingIsRememberedNothingIsMade(t *testing.T) {
	remembers(t, func(k *kept) {
		if err := os.MkdirAll(k.dirs.Project, 0o755); err != nil {
			t.Fatal(err)
		}
		k.OnTurn("s")()
		after(72 * time.Hour)
		if files, err := os.ReadDir(k.dirs.Project); err != nil || len(files) != 0 || k.model.asked() != 0 {
			t.Errorf("%v (%v), asked %d times", files, err, k.model.asked())
		}
	}, "nothing")
}

func TestTwoProcessesDreamOnce(t *testing.T) {
	remembers(t, func(k *kept) {
		k.write(k.dirs.Project, full5)
		other := NewMemory(func() ninelives.Model { return k.model }, k.dirs, DefaultSettings().Memory)
		defer other.Close()
		k.OnTurn("s")()
		other.OnTurn("t")()
		after(time.Hour)
		if k.model.asked() != 1 {
			t.Errorf("asked %d times", k.model.asked())
		}
	}, "- 2026-03-01: one")
}
