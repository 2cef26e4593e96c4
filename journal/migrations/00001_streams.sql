-- +goose Up

-- A stream is one thing that is recorded: a call. Its row sums up its events,
-- which are the record itself.
CREATE TABLE streams (
    id         TEXT PRIMARY KEY,
    kind       TEXT    NOT NULL,            -- 'call'
    owner      TEXT    NOT NULL,            -- the process that writes it: a name among the owners
    source     TEXT    NOT NULL,
    title      TEXT    NOT NULL,
    labels     TEXT    NOT NULL,            -- a JSON object of strings
    started    INTEGER NOT NULL,            -- milliseconds since 1970
    ended      INTEGER NOT NULL DEFAULT 0,  -- 0: it has not ended
    state      TEXT    NOT NULL DEFAULT 'open',
    reason     TEXT    NOT NULL DEFAULT '',
    resumes    TEXT    NOT NULL DEFAULT '', -- the call that this one takes up
    resumed_by TEXT    NOT NULL DEFAULT ''  -- the call that takes this one up
) STRICT;

CREATE TABLE events (
    stream TEXT    NOT NULL,
    seq    INTEGER NOT NULL,                -- 1, 2, 3, … within the stream
    at     INTEGER NOT NULL,                -- milliseconds since 1970
    kind   TEXT    NOT NULL,
    data   BLOB    NOT NULL,                -- JSON
    crc    INTEGER NOT NULL,                -- CRC-32C of data
    UNIQUE (stream, seq)
) STRICT;
