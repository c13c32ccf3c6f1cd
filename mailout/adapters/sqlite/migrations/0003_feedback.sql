-- Why somebody is `unsubscribed`, since only his own act may be undone: when he left by himself, having been
-- active; and when he complained, which stays on record for good.
ALTER TABLE subscribers ADD COLUMN left_at REAL;
ALTER TABLE subscribers ADD COLUMN complained_at REAL;

-- While soft bounces end mail: what the status would be without them. A delivery reported late takes it back.
ALTER TABLE subscribers ADD COLUMN hard_status TEXT;
ALTER TABLE subscribers ADD COLUMN hard_status_at REAL;

CREATE INDEX delivery_events_email ON delivery_events (email);
