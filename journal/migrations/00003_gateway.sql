-- +goose Up

-- What a gateway asks of its calls without reading them.
ALTER TABLE streams ADD COLUMN client  TEXT    NOT NULL DEFAULT ''; -- the name of the client's key
ALTER TABLE streams ADD COLUMN repeat  TEXT    NOT NULL DEFAULT ''; -- its Idempotency-Key
ALTER TABLE streams ADD COLUMN public  TEXT    NOT NULL DEFAULT ''; -- the id of the answer that the client saw
ALTER TABLE streams ADD COLUMN cost    REAL    NOT NULL DEFAULT 0;  -- US dollars
ALTER TABLE streams ADD COLUMN tokens  INTEGER NOT NULL DEFAULT 0;  -- input and output
ALTER TABLE streams ADD COLUMN removed INTEGER NOT NULL DEFAULT 0;  -- when its content was removed, in milliseconds; 0: it is there

CREATE INDEX streams_by_client ON streams (client, ended, cost, tokens) WHERE client <> '' AND ended > 0;
CREATE INDEX streams_by_repeat ON streams (repeat, client) WHERE repeat <> '';
CREATE INDEX streams_by_public ON streams (public, client) WHERE public <> '';
CREATE INDEX streams_with_content ON streams (id) WHERE kind = 'call' AND removed = 0;

-- The keys that contents are sealed with, without the keys.
CREATE TABLE seals (
    id     TEXT PRIMARY KEY,
    rounds INTEGER NOT NULL, -- of PBKDF2 for a passphrase; 0: a key of 32 bytes
    salt   BLOB    NOT NULL,
    proof  BLOB    NOT NULL  -- a known text, sealed
) STRICT;
