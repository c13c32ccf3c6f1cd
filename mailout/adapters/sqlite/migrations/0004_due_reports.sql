-- What a mailout's page has yet to be told: `told` runs after `asked`.
CREATE TABLE page_reports (
    mailout TEXT PRIMARY KEY,
    asked   INTEGER NOT NULL DEFAULT 1,
    told    INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- When an error came into the errors database; NULL: not yet.
ALTER TABLE error_records ADD COLUMN reported_at REAL;
CREATE INDEX error_records_unreported ON error_records (at) WHERE reported_at IS NULL;
