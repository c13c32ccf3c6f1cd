-- Times are seconds since the epoch; the views below turn them into text.

CREATE TABLE state_transitions (
    before TEXT NOT NULL,
    after  TEXT NOT NULL,
    PRIMARY KEY (before, after)
) WITHOUT ROWID;

CREATE TABLE subscribers (
    id                TEXT NOT NULL,  -- follows from email_norm; an index of random ids would be most of an import's work
    email             TEXT NOT NULL,
    email_norm        TEXT NOT NULL PRIMARY KEY,
    status            TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'unsubscribed', 'bounced')),
    bounce_type       TEXT,
    bounce_subtype    TEXT,
    status_updated_at REAL,
    from_name         TEXT,
    ocd_ids           TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(ocd_ids) AND json_type(ocd_ids) = 'array'),
    attributes        TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(attributes) AND json_type(attributes) = 'object'),
    created_at        REAL NOT NULL
);

CREATE TABLE subscriptions (
    email           TEXT NOT NULL,  -- normalised
    list_key        TEXT NOT NULL,
    unsubscribed_at REAL,
    PRIMARY KEY (email, list_key)
) WITHOUT ROWID;

CREATE TABLE recipients (
    company_id TEXT NOT NULL,
    id         TEXT NOT NULL,
    email      TEXT NOT NULL,
    deleted_at REAL,
    PRIMARY KEY (company_id, id)
) WITHOUT ROWID;

CREATE TABLE api_tokens (
    token_hash TEXT PRIMARY KEY,
    company_id TEXT NOT NULL,
    created_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE contents (
    hash       TEXT PRIMARY KEY,
    subject    TEXT NOT NULL,
    html       TEXT NOT NULL,
    text       TEXT NOT NULL,
    created_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE campaign_queue (
    id                TEXT PRIMARY KEY,
    kind              TEXT NOT NULL,
    ref               TEXT NOT NULL,
    subject           TEXT NOT NULL DEFAULT '',
    company_id        TEXT NOT NULL DEFAULT 'default',
    list_key          TEXT,
    from_name         TEXT,
    reply_to          TEXT,
    is_test           INTEGER NOT NULL DEFAULT 0,
    is_rehearsal      INTEGER NOT NULL DEFAULT 0,  -- written to a folder: nobody gets it
    status            TEXT NOT NULL DEFAULT 'PENDING'
                      CHECK (status IN ('PENDING', 'PROCESSING', 'COMPLETED', 'CANCELLED')),
    outcome           TEXT CHECK (outcome IN ('sent', 'failed')),
    priority          INTEGER NOT NULL DEFAULT 0,
    scheduled_at      REAL,
    deferred_until    REAL,
    defer_reason      TEXT,
    defer_note        TEXT,
    campaign_tag      TEXT,
    send_batch_id     TEXT,
    actor             TEXT,
    content_hash      TEXT REFERENCES contents (hash),
    locked_by         TEXT,
    locked_at         REAL,
    recipients        INTEGER NOT NULL DEFAULT 0,
    pending           INTEGER NOT NULL DEFAULT 0 CHECK (pending >= 0),
    in_flight         INTEGER NOT NULL DEFAULT 0 CHECK (in_flight >= 0),
    sent              INTEGER NOT NULL DEFAULT 0 CHECK (sent >= 0),
    failed            INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
    suppressed        INTEGER NOT NULL DEFAULT 0 CHECK (suppressed >= 0),
    unknown           INTEGER NOT NULL DEFAULT 0 CHECK (unknown >= 0),
    metrics           TEXT NOT NULL DEFAULT '{}',
    freeze_cursor     TEXT NOT NULL DEFAULT '',
    freeze_started_at REAL,
    created_at        REAL NOT NULL,
    frozen_at         REAL,
    started_at        REAL,
    completed_at      REAL,
    -- The ledger balances at every commit.
    CHECK (recipients = pending + in_flight + sent + failed + suppressed + unknown),
    CHECK (status <> 'COMPLETED' OR pending + in_flight = 0)
);
CREATE INDEX campaign_queue_open ON campaign_queue (status, created_at)
    WHERE status IN ('PENDING', 'PROCESSING');
CREATE INDEX campaign_queue_ref ON campaign_queue (ref);

CREATE TABLE sender_sessions (
    id             TEXT PRIMARY KEY,
    campaign_id    TEXT,
    worker         TEXT NOT NULL,
    transport      TEXT NOT NULL,
    step_no        INTEGER NOT NULL DEFAULT 0,
    lease_until    REAL NOT NULL,
    stop_requested INTEGER NOT NULL DEFAULT 0,
    opened_at      REAL NOT NULL,
    closed_at      REAL
) WITHOUT ROWID;
CREATE INDEX sender_sessions_open ON sender_sessions (lease_until) WHERE closed_at IS NULL;

-- One message a row, narrow: the happy path lives in columns, `history` only in what went differently.
CREATE TABLE email_outbox (
    seq             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    campaign_id     TEXT REFERENCES campaign_queue (id),
    company_id      TEXT NOT NULL DEFAULT 'default',
    request_id      TEXT,
    recipient_id    TEXT,
    email           TEXT NOT NULL,
    from_name       TEXT,
    content_id      TEXT REFERENCES contents (hash),  -- NULL: the mailout's own
    variables       TEXT,
    state           TEXT NOT NULL DEFAULT 'PENDING',
    attempts        INTEGER NOT NULL DEFAULT 0,
    epoch           INTEGER NOT NULL DEFAULT 0,
    session_id      TEXT,
    next_attempt_at REAL,
    ses_message_id  TEXT,
    error_code      TEXT,
    error_category  TEXT,
    error_message   TEXT,
    original_code   TEXT,
    dedupe_key      TEXT,
    created_at      REAL NOT NULL,
    attempt_at      REAL,
    sent_at         REAL,
    failed_at       REAL,
    unknown_at      REAL,
    duration_ms     INTEGER,
    charged_hour    TEXT,
    charged_day     TEXT,
    history         TEXT,
    category        TEXT  -- without a mailout: 'transactional' goes to who unsubscribed, too; all else does not
);
CREATE INDEX email_outbox_due ON email_outbox (campaign_id, seq)
    WHERE state IN ('PENDING', 'RETRY_SCHEDULED');
CREATE INDEX email_outbox_doubt ON email_outbox (session_id) WHERE state IN ('SENT_ATTEMPT', 'UNKNOWN');
CREATE INDEX email_outbox_failed ON email_outbox (campaign_id, seq)
    WHERE state IN ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN');
CREATE INDEX email_outbox_campaign ON email_outbox (campaign_id, seq);
CREATE INDEX email_outbox_ses ON email_outbox (ses_message_id) WHERE ses_message_id IS NOT NULL;

CREATE TRIGGER email_outbox_begins_pending BEFORE INSERT ON email_outbox
WHEN NEW.state <> 'PENDING'
BEGIN
    SELECT RAISE(ABORT, 'transition refused: a message begins as PENDING');
END;
CREATE TRIGGER email_outbox_step BEFORE UPDATE OF state, epoch ON email_outbox
WHEN NEW.epoch < OLD.epoch
    OR (NEW.state <> OLD.state
        AND NOT EXISTS (SELECT 1 FROM state_transitions WHERE before = OLD.state AND after = NEW.state))
BEGIN
    SELECT RAISE(ABORT, 'transition refused: not in the table of states, or an epoch that falls');
END;

CREATE TABLE pace (
    scope     TEXT PRIMARY KEY,
    next_at   REAL NOT NULL,
    factor    REAL NOT NULL DEFAULT 1,
    factor_at REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE usage (
    scope TEXT NOT NULL,  -- 'all' or a company
    kind  TEXT NOT NULL,  -- 'minute', 'hour', 'day'
    key   TEXT NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (scope, kind, key)
) WITHOUT ROWID;

CREATE TABLE provider_quota (
    scope     TEXT PRIMARY KEY,
    available INTEGER,  -- NULL: unlimited
    asked_at  REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE switches (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE error_records (
    id       INTEGER PRIMARY KEY,
    at       REAL NOT NULL,
    mailout  TEXT,
    stage    TEXT NOT NULL,
    provider TEXT,
    email    TEXT,
    code     TEXT NOT NULL,
    message  TEXT NOT NULL,
    attempts INTEGER
);
CREATE INDEX error_records_mailout ON error_records (mailout);

CREATE TABLE dead_letters (
    id         TEXT PRIMARY KEY,
    topic      TEXT NOT NULL,
    payload    TEXT NOT NULL,
    error      TEXT NOT NULL,
    created_at REAL NOT NULL
) WITHOUT ROWID;

-- Events lie in the order in which they came: ordered by their ids, which are random, each would touch pages of its own.
CREATE TABLE delivery_events (
    id                  TEXT NOT NULL PRIMARY KEY,  -- the SNS id, else a hash of SES id, type, recipient and time
    message_id          TEXT,
    campaign_id         TEXT,
    email               TEXT,
    event_type          TEXT NOT NULL,
    provider_message_id TEXT,
    detail              TEXT NOT NULL DEFAULT '{}',
    event_at            REAL NOT NULL
);
CREATE INDEX delivery_events_message ON delivery_events (message_id);

CREATE TABLE events_inbox (
    id          TEXT NOT NULL PRIMARY KEY,
    source      TEXT NOT NULL,
    payload     TEXT,  -- gone once applied
    received_at REAL NOT NULL,
    applied_at  REAL,
    error       TEXT
);
CREATE INDEX events_inbox_waiting ON events_inbox (received_at) WHERE applied_at IS NULL;

CREATE TABLE campaign_runs (
    id            TEXT PRIMARY KEY,
    campaign_tag  TEXT NOT NULL,
    article_key   TEXT NOT NULL,
    actor         TEXT NOT NULL,
    send_batch_id TEXT NOT NULL,
    started_at    REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE content_slices (
    id           TEXT PRIMARY KEY,
    article_key  TEXT NOT NULL,
    scope_ocd_id TEXT,
    is_headline  INTEGER NOT NULL DEFAULT 0,
    title        TEXT,
    dek          TEXT,
    body_md      TEXT NOT NULL DEFAULT '',
    section_order INTEGER NOT NULL DEFAULT 0,
    sort_index   INTEGER NOT NULL DEFAULT 0,
    published    INTEGER NOT NULL DEFAULT 0,
    starts_at    REAL,
    ends_at      REAL
) WITHOUT ROWID;
CREATE INDEX content_slices_article ON content_slices (article_key);
