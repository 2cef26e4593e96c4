package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// Blobs keeps contents by their hash, each in a file of its own beside the
// journal: ab/cdef… for the hash abcdef…. It is safe for concurrent use, by any
// number of processes.
//
// A file gets its name only when it is whole and on the disk, so what has a
// name is whole, and a crash leaves nothing but a nameless rest that the next
// process removes.
type Blobs struct {
	dir    string
	path   string // of the journal, for errors
	owners *owners
	at     func(where string)

	mu     sync.Mutex
	synced map[string]bool       // directories whose names are on the disk
	kept   map[[32]byte]struct{} // contents that are
}

func newBlobs(path string, owners *owners, at func(string)) *Blobs {
	return &Blobs{
		dir: path + ".blobs", path: path, owners: owners, at: at,
		synced: map[string]bool{}, kept: map[[32]byte]struct{}{},
	}
}

// unfinished is the directory of files that have no name yet. Theirs begins
// with the owner who writes them.
const unfinished = "new"

// Blobs are the contents that entries refer to by their hash.
func (j *Journal) Blobs() *Blobs { return j.blobs }

// Put keeps the content and gives its SHA-256 in hexadecimal. It is on the disk
// when Put returns. What is kept already is not kept twice; where the file has
// been damaged it is replaced.
func (b *Blobs) Put(ctx context.Context, content []byte) (hash string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	hash = hex.EncodeToString(sum[:])
	if err := b.put(sum, hash, content); err != nil {
		return "", b.explain(hash, "written", err)
	}
	return hash, nil
}

func (b *Blobs) put(sum [32]byte, hash string, content []byte) error {
	name := b.name(hash)
	if b.has(sum) {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(content)) {
			return nil
		}
	}
	if err := b.makeDirs(filepath.Dir(name)); err != nil {
		return err
	}
	// One that is there may be a hardly older one of another process, whose
	// name is not on the disk yet; the file itself is.
	if !isContent(name, content) {
		if err := b.write(name, content); err != nil {
			return err
		}
	}
	if err := syncDir(filepath.Dir(name)); err != nil {
		return err
	}
	b.at("blob kept")
	b.mu.Lock()
	b.kept[sum] = struct{}{}
	b.mu.Unlock()
	return nil
}

func (b *Blobs) has(sum [32]byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, has := b.kept[sum]
	return has
}

// write writes the file and then gives it its name.
func (b *Blobs) write(name string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Join(b.dir, unfinished), b.owners.self+"-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	b.at("blob created")
	if _, err := f.Write(content); err != nil {
		return err
	}
	b.at("blob written")
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	b.at("blob synced")
	if err := os.Rename(f.Name(), name); err != nil {
		if !isContent(name, content) { // Windows keeps files that are being read
			return err
		}
		_ = os.Remove(f.Name())
	}
	b.at("blob named")
	return nil
}

// makeDirs makes the directories, and makes sure that their names are on the
// disk, whoever has made them. At first it also removes what the dead have
// left unfinished.
func (b *Blobs) makeDirs(dir string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := filepath.Join(b.dir, unfinished)
	for _, d := range []string{b.dir, rest, dir} {
		if b.synced[d] {
			if _, err := os.Lstat(d); err == nil {
				continue
			}
		}
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		b.at("blob directory made")
		if err := syncDir(filepath.Dir(d)); err != nil {
			return err
		}
		if d == rest {
			if err := b.sweep(); err != nil {
				return err
			}
		}
		b.synced[d] = true
	}
	return nil
}

// sweep removes the unfinished files of the dead.
func (b *Blobs) sweep() error {
	files, err := os.ReadDir(filepath.Join(b.dir, unfinished))
	for _, f := range files {
		if owner, _, ours := strings.Cut(f.Name(), "-"); ours && !b.owners.alive(owner) {
			_ = os.Remove(filepath.Join(b.dir, unfinished, f.Name()))
		}
	}
	return err
}

// Get gives the content back. A content that is not there (fs.ErrNotExist) or
// is not what was kept is an error that says so.
func (b *Blobs) Get(ctx context.Context, hash string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if raw, err := hex.DecodeString(hash); err != nil || len(raw) != sha256.Size || hash != strings.ToLower(hash) {
		return nil, fmt.Errorf("%.80q is no hash of a blob, which is a SHA-256 in lower-case hexadecimal", hash)
	}
	content, err := os.ReadFile(b.name(hash))
	if err != nil {
		return nil, b.explain(hash, "read", err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != hash {
		return nil, b.explain(hash, "read", errChanged)
	}
	return content, nil
}

func (b *Blobs) name(hash string) string { return filepath.Join(b.dir, hash[:2], hash[2:]) }

// explain says in one line which content is concerned, what is wrong and what
// to do.
func (b *Blobs) explain(hash, done string, err error) error {
	const restore = "restore it from a backup, or do without what it held"
	e := &Error{Path: b.path, Err: err}
	switch name := b.name(hash); {
	case full(err):
		return explain(b.path, err)
	case errors.Is(err, errChanged):
		e.Problem, e.Hint = fmt.Sprintf("the blob %s is not what was written (SHA-256)", name), restore
	case done == "read" && errors.Is(err, fs.ErrNotExist):
		e.Problem, e.Hint = fmt.Sprintf("the blob %s is missing", name), restore
	default:
		e.Problem, e.Hint = fmt.Sprintf("the blob %s cannot be %s: %s", name, done, plain(err)), "look at the disk, and at what "+b.dir+" is"
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			e.Hint = "change the permissions of " + b.dir + " and what is in it, or name another file for the journal"
		}
	}
	return e
}

// isContent says whether the file holds exactly this.
func isContent(name string, content []byte) bool {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(content)) {
		return false
	}
	got, err := os.ReadFile(name)
	return err == nil && bytes.Equal(got, content)
}

// syncDir brings the names in a directory to the disk. Windows does so itself,
// and some file systems have no such thing.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
