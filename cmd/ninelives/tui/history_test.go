package tui

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestHistoryIsKeptWithoutDuplicatesAndPrivately(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "history")
	for _, text := range []string{"one", "two\nlines", "one", "  ", strings.Repeat("x", historyBytes+1), "three \x1b[31m"} {
		if err := saveHistory(path, text); err != nil {
			t.Fatal(err)
		}
	}
	got, err := loadHistory(path)
	if want := []string{"two\nlines", "one", "three \x1b[31m"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
		}
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("files are left over: %v", left)
	}
}

func TestDamagedLineOfTheHistoryIsLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	os.WriteFile(path, []byte("\"one\"\n\"cut off\n\x00\x01\n\"two\"\n{}\n"), 0o600)
	if got, err := loadHistory(path); err != nil || !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q, %v", got, err)
	}
	if err := saveHistory(path, "three"); err != nil {
		t.Fatal(err)
	}
	if got, _ := loadHistory(path); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("%q", got)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var h history
	for i := range historyLimit + 50 {
		h.add(strings.Repeat("i", i%100+1) + string(rune('a'+i%26)) + strings.Repeat("j", i))
	}
	if len(h.items) != historyLimit {
		t.Errorf("%d inputs are kept", len(h.items))
	}
}

func TestDraftGoesWhenItIsSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if err := saveDraft(path, "half a tho"); err != nil || loadDraft(path) != "half a tho" {
		t.Errorf("%v, %q", err, loadDraft(path))
	}
	for range 2 {
		if err := saveDraft(path, ""); err != nil || loadDraft(path) != "" {
			t.Errorf("%v, %q", err, loadDraft(path))
		}
	}
	if _, err := os.Stat(draftPath(path)); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}
