-- Why somebody is `unsubscribed`, since only their own act may be undone: when they left by themselves, having been
-- active; and when they complained, which stays on record for good.
ALTER TABLE subscribers ADD COLUMN left_at REAL;
ALTER TABLE subscribers ADD COLUMN complained_at REAL;

-- While soft bounces end mail: what the status would be without them. A delivery reported late takes it back.
ALTER TABLE subscribers ADD COLUMN hard_status TEXT CHECK (hard_status IN ('active', 'unsubscribed'));
ALTER TABLE subscribers ADD COLUMN hard_status_at REAL;

CREATE INDEX delivery_events_email ON delivery_events (email);

-- Who was forgotten: HMAC-SHA256 of the address, with a key that only this store has. Nobody can read an
-- address from it, nor try out addresses without the key.
CREATE TABLE forgotten (
    hash TEXT PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE store_secrets (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
INSERT INTO store_secrets VALUES ('forgotten', randomblob(32));
