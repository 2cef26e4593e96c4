package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// blob keeps a content and gives its hash and the name of its file.
func blob(t testing.TB, j *Journal, content string) (hash, name string) {
	t.Helper()
	hash, err := j.Blobs().Put(t.Context(), []byte(content))
	must(t, err)
	return hash, filepath.Join(j.path+".blobs", hash[:2], hash[2:])
}

// unfinishedFiles are those that were not finished.
func unfinishedFiles(t testing.TB, path string) []fs.DirEntry {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(path+".blobs", unfinished))
	must(t, err)
	return files
}

func TestABlobIsReadBackAsItWasAndKeptOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b", "j")
	j := openTest(t, path)
	for _, content := range [][]byte{nil, []byte("hello\n"), bytes.Repeat([]byte{0, 255}, 3<<20)} {
		hash, err := j.Blobs().Put(t.Context(), content)
		must(t, err)
		if want := fmt.Sprintf("%x", sha256.Sum256(content)); hash != want {
			t.Errorf("%s, want %s", hash, want)
		}
		name := filepath.Join(path+".blobs", hash[:2], hash[2:])
		before, err := os.Stat(name)
		must(t, err)
		if before.Mode() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("%v", before.Mode())
		}
		other := openTest(t, path)
		for _, j := range []*Journal{j, j, other, other} {
			if again, err := j.Blobs().Put(t.Context(), content); err != nil || again != hash {
				t.Errorf("%s %v", again, err)
			}
			got, err := j.Blobs().Get(t.Context(), hash)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		}
		if after, err := os.Stat(name); err != nil || !os.SameFile(before, after) {
			t.Errorf("it was written again: %v", err)
		}
	}
	for _, dir := range []string{path + ".blobs", filepath.Join(path+".blobs", unfinished)} {
		if info, err := os.Stat(dir); err != nil || info.Mode() != os.ModeDir|0o700 && runtime.GOOS != "windows" {
			t.Errorf("%v %v", info.Mode(), err)
		}
	}
	if rest := unfinishedFiles(t, path); len(rest) > 0 {
		t.Errorf("%v is left", rest)
	}
}

func TestABlobThatIsLostOrChangedIsToldInALineAndCanBeKeptAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openTest(t, path)
	for _, test := range []struct {
		do   func(name string) error
		want string
	}{
		{os.Remove, "is missing"},
		{func(name string) error { return os.Truncate(name, 3) }, "is not what was written (SHA-256)"},
		{func(name string) error { return os.WriteFile(name, []byte("hellO"), 0o600) }, "is not what was written (SHA-256)"},
		{func(name string) error { return os.RemoveAll(path + ".blobs") }, "is missing"},
	} {
		hash, name := blob(t, j, "hello")
		must(t, test.do(name))
		_, err := j.Blobs().Get(t.Context(), hash)
		want := "journal " + path + ": the blob " + name + " " + test.want + " – restore it from a backup, or do without what it held"
		if err == nil || err.Error() != want || errors.Is(err, fs.ErrNotExist) != (test.want == "is missing") {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
		// A process that has not kept it itself looks into the file.
		other := openTest(t, path)
		if again, _ := blob(t, other, "hello"); again != hash {
			t.Errorf("%s", again)
		}
		if got, err := j.Blobs().Get(t.Context(), hash); err != nil || string(got) != "hello" {
			t.Errorf("%q %v", got, err)
		}
	}
}

func TestWhatIsNoHashLeadsToNoFile(t *testing.T) {
	j := newJournal(t)
	hash, _ := blob(t, j, "hello")
	for _, bad := range []string{"", "ab", "../../../../etc/passwd", hash[:63], hash + "0", strings.ToUpper(hash), "../" + hash[3:], strings.Repeat("é", 32)} {
		if got, err := j.Blobs().Get(t.Context(), bad); err == nil || got != nil || !strings.Contains(err.Error(), "is no hash of a blob") {
			t.Errorf("%q: %q %v", bad, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Blobs().Get(ctx, hash); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := j.Blobs().Put(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestOneBlobIsKeptByManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	journals := []*Journal{openTest(t, path), openTest(t, path)}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				content := fmt.Sprint("content ", i)
				j := journals[g%2]
				hash, err := j.Blobs().Put(context.Background(), []byte(content))
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := j.Blobs().Get(context.Background(), hash); err != nil || string(got) != content {
					t.Errorf("%q %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	if rest := unfinishedFiles(t, path); len(rest) > 0 {
		t.Errorf("%v is left", rest)
	}
}

func TestAFullDiskIsToldForBlobsToo(t *testing.T) {
	j := newJournal(t)
	hash := strings.Repeat("ab", 32)
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		err := j.Blobs().explain(hash, "written", &fs.PathError{Op: "write", Path: "x", Err: cause})
		if want := "journal " + j.path + ": the disk is full – free some space; nothing that was recorded is lost"; err.Error() != want {
			t.Errorf("\n got %v\nwant %s", err, want)
		}
	}
}

// What cannot be written whole gets no name, and leaves nothing behind. A limit
// on the size of files stands for the disk that is full.
func TestABlobThatDoesNotFitLeavesNothingBehind(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the shell's limit on the size of files is needed")
	}
	path := filepath.Join(t.TempDir(), "j")
	hash, name := blob(t, openTest(t, path), "hello")
	cmd := command("large blob", path, 0)
	cmd.Args = []string{"sh", "-c", `ulimit -f 2048; exec "$0"`, os.Args[0]}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	cmd.Path = shell
	var told strings.Builder
	cmd.Stderr = &told
	if err := cmd.Run(); err == nil || !strings.Contains(told.String(), "file too large") || strings.Count(told.String(), "\n") != 1 {
		t.Errorf("%v: %s", err, told.String())
	}
	if rest := unfinishedFiles(t, path); len(rest) > 0 {
		t.Errorf("%v is left", rest)
	}
	var names []string
	must(t, filepath.WalkDir(path+".blobs", func(name string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			names = append(names, name)
		}
		return err
	}))
	if len(names) != 1 || names[0] != name {
		t.Errorf("%v, want %s", names, hash)
	}
}

func TestBlobsThatMayNotBeReadAreToldInALine(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions of directories mean something else there")
	}
	dir, err := os.MkdirTemp("", "journal")
	must(t, err)
	path := filepath.Join(dir, "j")
	t.Cleanup(func() { _ = os.Chmod(path+".blobs", 0o700); _ = os.RemoveAll(dir) })
	exe, err := os.ReadFile(os.Args[0])
	must(t, err)
	binary := filepath.Join(dir, "test")
	must(t, os.WriteFile(binary, exe, 0o755))
	must(t, os.Mkdir(path+".blobs", 0o700))
	must(t, os.Chmod(path+".blobs", 0))
	must(t, os.Chmod(dir, 0o777))
	cmd := command("blobs", path, 0)
	cmd.Path, cmd.Dir = binary, dir
	if os.Geteuid() == 0 { // who may read everything
		nobody(cmd)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("no process of nobody can be started: %v", err)
	}
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte("hello")))
	name := filepath.Join(path+".blobs", hash[:2], hash[2:])
	hint := " – change the permissions of " + path + ".blobs and what is in it, or name another file for the journal\n"
	want := "journal " + path + ": the blob " + name + " cannot be written: mkdir " + path + ".blobs/new: permission denied" + hint +
		"journal " + path + ": the blob " + name + " cannot be read: open " + name + ": permission denied" + hint
	if string(out) != want {
		t.Errorf("\n got %swant %s", out, want)
	}
}
