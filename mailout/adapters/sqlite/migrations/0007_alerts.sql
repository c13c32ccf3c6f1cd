-- What a person is told of. A row stays when it has ended: should it come back, it is told again.
CREATE TABLE alerts (
    key      TEXT PRIMARY KEY,
    since_at REAL NOT NULL,
    ended_at REAL,                        -- NULL: it lasts
    tries    INTEGER NOT NULL DEFAULT 0,  -- to tell it, ever
    failed   INTEGER NOT NULL DEFAULT 0,  -- since it was last told
    tried_at REAL,
    told_at  REAL
) WITHOUT ROWID;

-- When the last event came, of millions.
CREATE INDEX events_inbox_received ON events_inbox (received_at);

-- What the provider allows in 24 hours; NULL: no limit, or never told.
ALTER TABLE provider_quota ADD COLUMN most INTEGER;
