-- What the dashboard looks back on.
CREATE INDEX campaign_queue_created ON campaign_queue (created_at, id);
CREATE INDEX email_outbox_single_to ON email_outbox (email, seq) WHERE campaign_id IS NULL;
CREATE INDEX notifications_noted ON notifications (noted_at);
CREATE INDEX subscribers_gone ON subscribers (email_norm) WHERE status <> 'active';

CREATE TABLE people_counts (
    day    TEXT PRIMARY KEY,
    counts TEXT NOT NULL  -- by status, and by list (`list:…`)
) WITHOUT ROWID;

CREATE TABLE mailout_counts (
    campaign_id TEXT NOT NULL,
    at          REAL NOT NULL,
    counts      TEXT NOT NULL,
    PRIMARY KEY (campaign_id, at)
) WITHOUT ROWID;

CREATE TABLE dashboard_acts (
    id    INTEGER PRIMARY KEY,
    at    REAL NOT NULL,
    who   TEXT NOT NULL,
    what  TEXT NOT NULL,
    about TEXT NOT NULL DEFAULT ''
);

CREATE TABLE ended_logins (
    id      TEXT PRIMARY KEY,  -- a hash of the cookie's text
    ends_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE dashboard_notes (
    name  TEXT PRIMARY KEY,
    at    REAL NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE refused_requests (
    path     TEXT NOT NULL,
    why      TEXT NOT NULL,
    n        INTEGER NOT NULL,
    first_at REAL NOT NULL,
    last_at  REAL NOT NULL,
    PRIMARY KEY (path, why)
) WITHOUT ROWID;

CREATE TABLE mailout_runs (
    campaign_id TEXT PRIMARY KEY,
    run_id      TEXT NOT NULL
) WITHOUT ROWID;
