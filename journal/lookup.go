package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Spent sums up what the calls of a client have cost that ended at or after
// since: US dollars, and tokens of input and output. It reads an index alone.
func (j *Journal) Spent(ctx context.Context, client string, since time.Time) (money float64, tokens int, err error) {
	// The index has the calls of clients that have a name.
	err = j.readers.QueryRowContext(ctx, `SELECT coalesce(sum(cost), 0), coalesce(sum(tokens), 0) FROM streams
		WHERE client = ?1 AND client <> '' AND ended > 0 AND ended >= ?2`, client, since.UnixMilli()).Scan(&money, &tokens)
	if err != nil {
		return 0, 0, j.trouble(err)
	}
	return money, tokens, nil
}

// ByRepeat gives the newest call of a client under a key of its own against
// repetitions (Call.Repeat): ErrUnknown if there is none. Whether it is the
// same call is for the caller to see, by what was asked.
func (j *Journal) ByRepeat(ctx context.Context, client, key string) (*Record, error) {
	return j.by(ctx, `SELECT id FROM streams WHERE repeat = ?1 AND repeat <> '' AND client = ?2 ORDER BY id DESC LIMIT 1`, client, key)
}

// ByPublic gives the newest call of a client whose answer has that id in the
// client's eyes (Outcome.Public): ErrUnknown if there is none.
func (j *Journal) ByPublic(ctx context.Context, client, id string) (*Record, error) {
	return j.by(ctx, `SELECT id FROM streams WHERE public = ?1 AND public <> '' AND client = ?2 ORDER BY id DESC LIMIT 1`, client, id)
}

func (j *Journal) by(ctx context.Context, query, client, what string) (*Record, error) {
	var id string
	switch err := j.readers.QueryRowContext(ctx, query, what, client).Scan(&id); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("%.80q: %w", what, ErrUnknown)
	case err != nil:
		return nil, j.trouble(err)
	}
	return j.Call(ctx, id)
}
