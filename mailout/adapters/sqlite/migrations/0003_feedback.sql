-- Why somebody is `unsubscribed`, since only his own act may be undone: when he left by himself, having been
-- active; and when he complained, which stays on record for good.
ALTER TABLE subscribers ADD COLUMN left_at REAL;
ALTER TABLE subscribers ADD COLUMN complained_at REAL;

CREATE INDEX delivery_events_email ON delivery_events (email);
