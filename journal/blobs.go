package journal

import (
	"context"
)

// Blobs keeps contents by their hash, each in a file of its own beside the
// journal. Any number of processes may use it at once.
type Blobs struct {
	j *Journal
}

// Blobs are the contents that entries refer to by their hash.
func (j *Journal) Blobs() *Blobs { return j.blobs }

// Put keeps the content and gives its SHA-256 in hexadecimal. It is on the disk
// when Put returns. What is kept already is not kept twice.
func (b *Blobs) Put(ctx context.Context, content []byte) (hash string, err error) {
	return "", ErrClosed
}

// Get gives the content back. A content that is not there (fs.ErrNotExist) or
// is not what was kept is an error that says so.
func (b *Blobs) Get(ctx context.Context, hash string) ([]byte, error) {
	return nil, ErrClosed
}
