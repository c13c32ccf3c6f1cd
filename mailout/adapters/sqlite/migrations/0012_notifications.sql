-- Beside the outbox: which message belongs to a row of a producer's queue, and what that row was told.
CREATE TABLE notifications (
    key        TEXT PRIMARY KEY,  -- of (source, dedupe_key, subscription, row)
    message_id TEXT,              -- NULL: requeued, and not in the outbox yet
    requeues   INTEGER NOT NULL DEFAULT 0,
    told_epoch INTEGER NOT NULL DEFAULT -1,  -- the last attempt whose result the producer's row holds
    ended      INTEGER NOT NULL DEFAULT 0,   -- and that row was told its end
    noted_at   REAL NOT NULL
) WITHOUT ROWID;
