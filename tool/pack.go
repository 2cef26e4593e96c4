package tool

import (
	"errors"
	"io/fs"
	"os"
)

// pack holds contents for as long as the workspace is open: those of the files
// that a command might change. It is one private file without a name, written
// at its end and never synced; what turns out to be needed for undo moves to
// the Blobs.
type pack struct {
	f     *os.File
	size  int64
	spans map[string]span // by hash
}

type span struct{ at, size int64 }

// put keeps a content under its hash.
func (p *pack) put(hash string, content []byte) error {
	if _, ok := p.spans[hash]; ok {
		return nil
	}
	if p.f == nil {
		f, err := os.CreateTemp("", "ninelives-")
		if err != nil {
			return err
		}
		_ = os.Remove(f.Name()) // where an open file cannot be removed, close does it
		p.f, p.spans = f, map[string]span{}
	}
	if _, err := p.f.WriteAt(content, p.size); err != nil {
		return err
	}
	p.spans[hash] = span{p.size, int64(len(content))}
	p.size += int64(len(content))
	return nil
}

// get gives a content back, or an error if it is damaged or was never kept.
func (p *pack) get(hash string) ([]byte, error) {
	s, ok := p.spans[hash]
	if !ok {
		return nil, fs.ErrNotExist
	}
	content := make([]byte, s.size)
	if _, err := p.f.ReadAt(content, s.at); err != nil {
		return nil, err
	}
	if hashOf(content) != hash {
		return nil, errors.New("the content kept for undo was damaged")
	}
	return content, nil
}

// slim gives a pack of the contents that are still alive, and closes the old one.
func (p *pack) slim(alive map[string]bool) {
	fresh := pack{}
	for hash := range alive {
		if content, err := p.get(hash); err == nil {
			_ = fresh.put(hash, content)
		}
	}
	_ = p.close()
	*p = fresh
}

func (p *pack) close() error {
	if p.f == nil {
		return nil
	}
	err := p.f.Close()
	_ = os.Remove(p.f.Name())
	*p = pack{}
	return err
}
