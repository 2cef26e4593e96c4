package journal

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	// schemaVersion is the number of the newest migration.
	schemaVersion = 3
	// applicationID marks a database as a journal ("9lvs").
	applicationID = 0x396c7673
	// autoVacuum is SQLite's number for a file that can give its free pages back
	// a few at a time.
	autoVacuum = 2
	// patience is how long another process is waited for.
	patience = 5 * time.Second
)

var (
	errNotJournal = errors.New("it is the database of another program")
	errNewer      = errors.New("it was written by a newer version")
	errDirectory  = errors.New("it is a directory")
	errNoFile     = errors.New("it is no file that can be read again, but a pipe or a device")
)

// source is how SQLite opens the file: the transaction log is synced at every
// commit, also past the caches of the disk where the system has a way.
func source(path string, pragmas ...string) string {
	q := url.Values{"mode": {"rw"}, "_pragma": append([]string{
		fmt.Sprintf("busy_timeout(%d)", patience.Milliseconds()),
		"synchronous(FULL)",
		"fullfsync(1)",
		"secure_delete(1)", // what is removed is not left in free pages
	}, pragmas...)}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String()
}

// setUp makes what does not exist, brings the schema up to date and makes this
// process known. Processes do it one after the other.
func setUp(path string, at func(string)) (_ *owners, _ *sql.DB, err error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, nil, errDirectory
	} else if err == nil && !info.Mode().IsRegular() {
		return nil, nil, errNoFile
	}
	dir := path + ".owners"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	turn, err := lockSetUp(dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = turn.Close() }()

	// SQLite would make the file readable by all; its log files follow it.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, err
	}
	if err := f.Close(); err != nil {
		return nil, nil, err
	}
	at("created")
	db, err := sql.Open("sqlite", source(path))
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	if err := migrate(db, at); err != nil {
		return nil, nil, err
	}
	owners, err := join(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := owners.sweep(); err != nil {
		return nil, nil, errors.Join(err, owners.leave())
	}
	return owners, db, nil
}

// migrate makes sure that the file is a journal of this version.
func migrate(db *sql.DB, at func(string)) error {
	var id, tables, version int64
	if err := db.QueryRow(`SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id`).Scan(&id, &tables); err != nil {
		return err
	}
	switch {
	case id == applicationID:
	case id != 0 || tables > 0:
		return errNotJournal
	default:
		// The log keeps readers and the writer out of each other's way.
		if _, err := db.Exec(fmt.Sprintf(`PRAGMA auto_vacuum = %d; PRAGMA journal_mode = WAL; PRAGMA application_id = %d`, autoVacuum, applicationID)); err != nil {
			return err
		}
	}
	at("marked")
	if tables > 0 {
		if err := db.QueryRow(`SELECT coalesce(max(version_id), 0) FROM goose_db_version`).Scan(&version); err != nil {
			return err
		}
	}
	if version == schemaVersion {
		return nil
	}
	if version > schemaVersion {
		return fmt.Errorf("%w: its schema is %d, this version knows %d", errNewer, version, schemaVersion)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	goose, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		return err
	}
	_, err = goose.Up(context.Background())
	at("migrated")
	return err
}

// The codes of SQLite that have an explanation.
const (
	sqliteBusy       = 5
	sqliteReadOnly   = 8
	sqliteIOErr      = 10
	sqliteCorrupt    = 11
	sqliteFull       = 13
	sqliteCantOpen   = 14
	sqliteConstraint = 19
	sqliteNotADB     = 26
)

// code is SQLite's primary result code; 0 if the error is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// hopeless says that trying the rest of a batch would fail alike.
func hopeless(err error) bool {
	switch code(err) {
	case sqliteBusy, sqliteReadOnly, sqliteIOErr, sqliteCorrupt, sqliteFull, sqliteCantOpen, sqliteNotADB:
		return true
	}
	return false
}

// full says that there is no space left, or none for this user.
func full(err error) bool {
	return code(err) == sqliteFull || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Error is a failure of the journal itself.
type Error struct {
	Path string
	// Problem says what is wrong, Hint what can be done about it.
	Problem string
	Hint    string
	Err     error
}

// Error is one line: which journal, what is wrong, what to do.
func (e *Error) Error() string {
	s := "journal " + e.Path + ": " + e.Problem
	if e.Hint != "" {
		s += " – " + e.Hint
	}
	return s
}

// Is says that the disk is full (ErrFull).
func (e *Error) Is(target error) bool { return target == ErrFull && full(e.Err) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// explain says in one line what is wrong and what to do. Errors that are about
// a call or a session, not about the journal, stay as they are.
func explain(path string, err error) error {
	for _, own := range []error{ErrUnknown, ErrAmbiguous, ErrEnded, ErrRunning, ErrResumed, ErrComplete, ErrTaken, ErrReplaced} {
		if errors.Is(err, own) {
			return err
		}
	}
	e := &Error{Path: path, Err: err}
	const another = "name another file for the journal"
	switch c := code(err); {
	case full(err):
		e.Problem, e.Hint = "the disk is full", "free some space; nothing that was recorded is lost"
	case c == sqliteNotADB:
		e.Problem, e.Hint = "it is no SQLite database", another+", or move this one away"
	case c == sqliteCorrupt:
		e.Problem, e.Hint = "it is damaged", "move it away and go on with a new one; `sqlite3 FILE .recover` saves what can be read"
	case c == sqliteBusy:
		e.Problem, e.Hint = fmt.Sprintf("another process has kept it locked for %v", patience), "end that process, or "+another
	case errors.Is(err, errNotJournal):
		e.Problem, e.Hint = errNotJournal.Error(), another
	case errors.Is(err, errNewer):
		e.Problem, e.Hint = err.Error(), "update ninelives, or "+another
	case errors.Is(err, errPassphrase):
		e.Problem = errPassphrase.Error()
		e.Hint = fmt.Sprintf("give one of %d characters or more, or a key of %d bytes in hexadecimal or base64", minPassphrase, keySize)
	case errors.Is(err, errDirectory):
		e.Problem, e.Hint = errDirectory.Error(), "name a file in it"
	case errors.Is(err, errNoFile):
		e.Problem, e.Hint = errNoFile.Error(), another
	case c == sqliteIOErr:
		e.Problem, e.Hint = "it cannot be read or written: "+plain(err), "look for a full or broken disk, or "+another
	case c == sqliteReadOnly, c == sqliteCantOpen, errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Problem, e.Hint = "it cannot be written: "+plain(err), "change the permissions of the file and its directory, or "+another
	default:
		e.Problem, e.Hint = plain(err), another
	}
	return e
}

// plain is the innermost text of an error, in one line.
func plain(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Sprintf("%s %s: %v", path.Op, path.Path, path.Err)
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
