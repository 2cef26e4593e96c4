-- +goose Up

-- A stream may also be a session ('session'): a history that goes on for as
-- long as somebody adds to it. These columns are for sessions alone.
ALTER TABLE streams ADD COLUMN pid     INTEGER NOT NULL DEFAULT 0; -- of the owner; 0: nobody holds it
ALTER TABLE streams ADD COLUMN term    INTEGER NOT NULL DEFAULT 0; -- how often it was taken
ALTER TABLE streams ADD COLUMN version INTEGER NOT NULL DEFAULT 0; -- the number of its last entry
ALTER TABLE streams ADD COLUMN updated INTEGER NOT NULL DEFAULT 0; -- milliseconds since 1970

CREATE INDEX streams_by_update ON streams (kind, updated);
