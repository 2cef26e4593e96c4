package journal

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func openWith(t testing.TB, path string, o Options) *Journal {
	t.Helper()
	j, err := OpenWith(path, o)
	must(t, err)
	t.Cleanup(func() { must(t, j.Close()) })
	return j
}

// sealedAway says that the content is not to be had, and the rest is.
func sealedAway(t *testing.T, j *Journal, id string) {
	t.Helper()
	r := call(t, j, id)
	if r.Raw != nil || r.Request != nil || r.Title != "" || r.Outcome == nil || r.Outcome.Raw != nil || len(r.Damaged) != 2 {
		t.Errorf("%+v", r)
	}
	for _, d := range r.Damaged {
		if !errors.Is(d.Err, ErrSealed) {
			t.Errorf("%v", d)
		}
	}
	if r.State != StateFailed || r.Client != "team" || r.Cost != 0.5 || r.Outcome.Status != 503 || len(r.Outcome.Attempts) != 1 || !r.Removed.IsZero() {
		t.Errorf("%+v", r.Summary)
	}
	if list, damaged, err := j.Calls(t.Context(), Filter{Limit: -1}); err != nil || len(damaged) > 0 || len(list) == 0 {
		t.Errorf("%v %v %v", list, damaged, err)
	}
}

func whole(t *testing.T, j *Journal, id string) {
	t.Helper()
	if r := call(t, j, id); r.Title != secret || string(r.Raw.Body) != string(secretCall().Raw.Body) || r.Outcome.Fault.Message != secret || len(r.Damaged) > 0 {
		t.Errorf("%+v", r)
	}
}

func secretly(t *testing.T, j *Journal) string {
	t.Helper()
	id := beginCall(t, j, secretCall())
	must(t, j.End(t.Context(), id, secretEnd()))
	return id
}

func TestEncryptedContentIsReadWithItsKeyAlone(t *testing.T) {
	raw := strings.Repeat("k", keySize)
	const passphrase = "correct horse battery"
	for name, test := range map[string]struct{ key, same, wrong string }{
		"a key":        {hex.EncodeToString([]byte(raw)), base64.StdEncoding.EncodeToString([]byte(raw)), strings.Repeat("ab", keySize)},
		"a passphrase": {passphrase, passphrase, "another horse battery"},
	} {
		path := filepath.Join(t.TempDir(), "j")
		j := openWith(t, path, Options{Key: test.key})
		id := secretly(t, j)
		whole(t, j, id)
		sealedAway(t, openWith(t, path, Options{}), id) // another process, without a key
		must(t, j.Close())
		if lies(t, path, secret) || lies(t, path, raw) || lies(t, path, passphrase) {
			t.Errorf("%s: it lies in the file in clear", name)
		}
		whole(t, openWith(t, path, Options{Key: test.same}), id)
		sealedAway(t, openWith(t, path, Options{Key: test.wrong}), id)
	}
}

func TestAFileMayBeEncryptedInPartsAndWithSeveralKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	first, second := strings.Repeat("01", keySize), strings.Repeat("02", keySize)
	clear := secretly(t, openWith(t, path, Options{}))
	old := secretly(t, openWith(t, path, Options{Key: first}))
	j := openWith(t, path, Options{Key: second, Former: []string{first}})
	fresh := secretly(t, j)
	for _, id := range []string{clear, old, fresh} {
		whole(t, j, id)
	}
	j = openWith(t, path, Options{Key: second})
	whole(t, j, clear)
	whole(t, j, fresh)
	sealedAway(t, j, old)
	// What cannot be read can be removed.
	must(t, j.Remove(t.Context(), old))
	bare(t, call(t, j, old))
	var keys int
	if err := j.readers.QueryRow(`SELECT count(*) FROM seals`).Scan(&keys); err != nil || keys != 2 {
		t.Errorf("%d keys are known (%v)", keys, err)
	}
}

// A content that was put into another call, with a checksum that fits, is none.
func TestEncryptedContentIsBoundToItsCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openWith(t, path, Options{Key: strings.Repeat("01", keySize)})
	a, b := secretly(t, j), secretly(t, j)
	e := event{stream: a, seq: 1, at: call(t, j, a).Started, kind: eventCall}
	must(t, j.readers.QueryRow(`SELECT data FROM events WHERE stream = ? AND seq = 1`, b).Scan(&e.data))
	raw(t, path, `UPDATE events SET data = ?, crc = ? WHERE stream = ? AND seq = 1`, e.data, e.checksum(), a)
	if r := call(t, j, a); r.Raw != nil || len(r.Damaged) != 1 || !errors.Is(r.Damaged[0].Err, errChanged) {
		t.Errorf("%+v", r)
	}
}

func TestAShortPassphraseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	_, err := OpenWith(path, Options{Key: "hunter2"})
	want := "journal " + path + ": the passphrase for its contents is too short – give one of 12 characters or more, or a key of 32 bytes in hexadecimal or base64"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}
