-- A complaint stays on record: who complained is not asked back (status alone would not tell).
ALTER TABLE subscribers ADD COLUMN complained_at REAL;

CREATE INDEX delivery_events_email ON delivery_events (email);
