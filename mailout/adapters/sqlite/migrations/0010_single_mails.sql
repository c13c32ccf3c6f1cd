-- Mails that programs hand in one at a time: who may, to whom, and what such a message has besides.
CREATE TABLE companies (
    id             TEXT PRIMARY KEY,
    limit_per_hour INTEGER,  -- NULL: as for every company
    limit_per_day  INTEGER,
    created_at     REAL NOT NULL
) WITHOUT ROWID;

ALTER TABLE api_tokens ADD COLUMN id TEXT;  -- the token's beginning
ALTER TABLE api_tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT 'send,read';
ALTER TABLE api_tokens ADD COLUMN limit_per_minute INTEGER;
ALTER TABLE api_tokens ADD COLUMN revoked_at REAL;

ALTER TABLE recipients ADD COLUMN external_id TEXT;  -- the company's own name for them
ALTER TABLE recipients ADD COLUMN name TEXT;
ALTER TABLE recipients ADD COLUMN created_at REAL;
ALTER TABLE recipients ADD COLUMN updated_at REAL;
CREATE UNIQUE INDEX recipients_external ON recipients (company_id, external_id);

ALTER TABLE email_outbox ADD COLUMN reply_to TEXT;
ALTER TABLE email_outbox ADD COLUMN headers TEXT;
ALTER TABLE email_outbox ADD COLUMN fingerprint TEXT;  -- the same idempotency key must mean the same mail
ALTER TABLE email_outbox ADD COLUMN is_rehearsal INTEGER NOT NULL DEFAULT 0;  -- without a mailout: for the folder
CREATE INDEX email_outbox_single_due ON email_outbox (company_id, coalesce(next_attempt_at, 0), seq)
    WHERE campaign_id IS NULL AND state IN ('PENDING', 'RETRY_SCHEDULED');
CREATE INDEX email_outbox_request ON email_outbox (request_id) WHERE request_id IS NOT NULL;

-- When a company's single mails last had a turn.
CREATE TABLE single_turns (
    company_id TEXT PRIMARY KEY,
    last_at    REAL NOT NULL
) WITHOUT ROWID;
