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
    created_at        REAL NOT NULL,
    -- Why somebody is `unsubscribed`, since only their own act may be undone: when they left by themselves, having been
    -- active; and when they complained, which stays on record for good.
    left_at           REAL,
    complained_at     REAL,
    -- While soft bounces end mail: what the status would be without them. A delivery reported late takes it back.
    hard_status       TEXT CHECK (hard_status IN ('active', 'unsubscribed')),
    hard_status_at    REAL,
    snoozed_until     REAL,  -- their own wish: no letters before
    confirmed_at      REAL   -- their last confirmed sign-up: bounces dated before it no longer count
);

CREATE TABLE subscriptions (
    email           TEXT NOT NULL,  -- normalised
    list_key        TEXT NOT NULL,
    unsubscribed_at REAL,
    joined_at       REAL,  -- by a confirmed sign-up or on the preferences' page; NULL: by an import
    PRIMARY KEY (email, list_key)
) WITHOUT ROWID;

CREATE INDEX subscriptions_list ON subscriptions (list_key, email) WHERE unsubscribed_at IS NULL;

CREATE TABLE lists (
    key         TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    public      INTEGER NOT NULL DEFAULT 0,  -- anybody may join by the sign-up page
    from_name   TEXT,
    reply_to    TEXT,
    footer      TEXT,  -- why readers get it; NULL: as BRAND_FOOTER says
    brand       TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(brand) AND json_type(brand) = 'object'),
    archive     INTEGER NOT NULL DEFAULT 0,  -- its letters are public unless one says otherwise
    welcome_ref TEXT   -- the letter that a new reader gets once
) WITHOUT ROWID;
INSERT INTO lists (key, name, public) VALUES ('general', 'General', 1);

CREATE TABLE consents (
    email    TEXT NOT NULL,  -- normalised
    list_key TEXT NOT NULL,
    at       REAL NOT NULL,
    wording  TEXT NOT NULL,  -- what the reader agreed to
    source   TEXT NOT NULL,  -- the page where
    PRIMARY KEY (email, list_key, at)
) WITHOUT ROWID;

CREATE TABLE recipients (
    company_id  TEXT NOT NULL,
    id          TEXT NOT NULL,
    email       TEXT NOT NULL,
    deleted_at  REAL,
    external_id TEXT,  -- the company's own name for them
    name        TEXT,
    created_at  REAL,
    updated_at  REAL,
    PRIMARY KEY (company_id, id)
) WITHOUT ROWID;

CREATE TABLE api_tokens (
    token_hash       TEXT PRIMARY KEY,
    company_id       TEXT NOT NULL,
    created_at       REAL NOT NULL,
    id               TEXT,  -- the token's beginning
    scopes           TEXT NOT NULL DEFAULT 'send,read',
    limit_per_minute INTEGER,
    revoked_at       REAL
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
    -- Pauses after transient errors grow while nothing is sent between them.
    transient_pauses  INTEGER NOT NULL DEFAULT 0,
    transient_sent    INTEGER NOT NULL DEFAULT 0,
    -- What a person knew of on letting it go on: it is no reason to hold it again.
    acknowledged      TEXT NOT NULL DEFAULT '{}',
    -- A mailout that is over may lie in an archive: its messages and events are there then, its row stays here.
    archived_at       REAL,
    archived_to       TEXT,
    -- How its messages are tried again; NULL: as the process that sends it is set up.
    retry_plan        TEXT,
    -- Whom of its list it is for: a segment's name, and its filter as it was when the audience was frozen.
    segment           TEXT,
    segment_filter    TEXT,
    snoozed           INTEGER NOT NULL DEFAULT 0,  -- not written to when it was frozen: they asked for a pause
    -- The archive on the web: whether it is there, under which name, and since when a person has said so.
    public            INTEGER NOT NULL DEFAULT 0,
    slug              TEXT,
    published_at      REAL,
    unpublished_at    REAL,
    -- The ledger balances at every commit.
    CHECK (recipients = pending + in_flight + sent + failed + suppressed + unknown),
    CHECK (status <> 'COMPLETED' OR pending + in_flight = 0),
    CHECK (archived_at IS NULL OR (status IN ('COMPLETED', 'CANCELLED') AND pending + in_flight + unknown = 0))
);
CREATE INDEX campaign_queue_open ON campaign_queue (status, created_at)
    WHERE status IN ('PENDING', 'PROCESSING');
CREATE INDEX campaign_queue_ref ON campaign_queue (ref);
CREATE INDEX campaign_queue_slug ON campaign_queue (slug) WHERE slug IS NOT NULL;

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
    category        TEXT,  -- without a mailout: 'transactional' goes to who unsubscribed, too; all else does not
    reply_to        TEXT,
    headers         TEXT,
    fingerprint     TEXT,  -- the same idempotency key must mean the same mail
    is_rehearsal    INTEGER NOT NULL DEFAULT 0,  -- without a mailout: for the folder
    list_key        TEXT  -- without a mailout: only to who is on this list
);
CREATE INDEX email_outbox_due ON email_outbox (campaign_id, seq)
    WHERE state IN ('PENDING', 'RETRY_SCHEDULED');
CREATE INDEX email_outbox_doubt ON email_outbox (session_id) WHERE state IN ('SENT_ATTEMPT', 'UNKNOWN');
CREATE INDEX email_outbox_failed ON email_outbox (campaign_id, seq)
    WHERE state IN ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN');
CREATE INDEX email_outbox_campaign ON email_outbox (campaign_id, seq);
CREATE INDEX email_outbox_content ON email_outbox (content_id) WHERE content_id IS NOT NULL;
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
    factor_at REAL NOT NULL DEFAULT 0,
    -- When an account's warm-up began.
    first_day TEXT
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
    asked_at  REAL NOT NULL,
    -- What the provider allows in 24 hours; NULL: no limit, or never told.
    most      INTEGER
) WITHOUT ROWID;

CREATE TABLE switches (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE error_records (
    id          INTEGER PRIMARY KEY,
    at          REAL NOT NULL,
    mailout     TEXT,
    stage       TEXT NOT NULL,
    provider    TEXT,
    email       TEXT,
    code        TEXT NOT NULL,
    message     TEXT NOT NULL,
    attempts    INTEGER,
    -- When an error came into the errors database; NULL: not yet.
    reported_at REAL
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

CREATE INDEX delivery_events_email ON delivery_events (email);

-- Who was forgotten: HMAC-SHA256 of the address, with a key that only this store has. Nobody can read an
-- address from it, nor try out addresses without the key.
CREATE TABLE forgotten (
    hash TEXT PRIMARY KEY,
    at   REAL NOT NULL  -- what was asked for before then is over
) WITHOUT ROWID;
CREATE TABLE store_secrets (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
INSERT INTO store_secrets VALUES ('forgotten', randomblob(32));

-- What a mailout's page has yet to be told: `told` runs after `asked`.
CREATE TABLE page_reports (
    mailout TEXT PRIMARY KEY,
    asked   INTEGER NOT NULL DEFAULT 1,
    told    INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE INDEX error_records_unreported ON error_records (at) WHERE reported_at IS NULL;

CREATE INDEX campaign_queue_content ON campaign_queue (content_hash) WHERE content_hash IS NOT NULL;

-- What was asked for over HTTP. A row stays: the same request within a minute meets it.
CREATE TABLE requests (
    ref         TEXT NOT NULL,
    how         TEXT NOT NULL,
    asked_at    REAL NOT NULL,
    answered_at REAL,
    not_before  REAL,                     -- a person chose when it is sent
    PRIMARY KEY (ref, how)
) WITHOUT ROWID;

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

-- What Prometheus is told, as samples: they only grow, whatever is cleared away elsewhere.
CREATE TABLE counters (
    name   TEXT NOT NULL,
    labels TEXT NOT NULL,  -- as they stand between the braces
    value  REAL NOT NULL,
    PRIMARY KEY (name, labels)
) WITHOUT ROWID;

-- What the row tells is all that is left to tell: it neither changes nor goes, whoever writes.
CREATE TRIGGER campaign_queue_archived_is_final BEFORE UPDATE ON campaign_queue
WHEN OLD.archived_at IS NOT NULL
    AND (NEW.id, NEW.archived_at, NEW.status, NEW.outcome, NEW.metrics, NEW.recipients, NEW.sent, NEW.failed,
         NEW.suppressed)
     IS NOT (OLD.id, OLD.archived_at, OLD.status, OLD.outcome, OLD.metrics, OLD.recipients, OLD.sent, OLD.failed,
         OLD.suppressed)
BEGIN
    SELECT RAISE(ABORT, 'transition refused: an archived mailout does not change any more');
END;
CREATE TRIGGER campaign_queue_archived_stays BEFORE DELETE ON campaign_queue
WHEN OLD.archived_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'transition refused: an archived mailout stays known');
END;

-- Mails that programs hand in one at a time: who may, to whom, and what such a message has besides.
CREATE TABLE companies (
    id             TEXT PRIMARY KEY,
    limit_per_hour INTEGER,  -- NULL: as for every company
    limit_per_day  INTEGER,
    created_at     REAL NOT NULL
) WITHOUT ROWID;

CREATE UNIQUE INDEX recipients_external ON recipients (company_id, external_id);

CREATE INDEX email_outbox_single_due ON email_outbox (company_id, coalesce(next_attempt_at, 0), seq)
    WHERE campaign_id IS NULL AND state IN ('PENDING', 'RETRY_SCHEDULED');
CREATE INDEX email_outbox_request ON email_outbox (request_id) WHERE request_id IS NOT NULL;

-- When a company's single mails last had a turn.
CREATE TABLE single_turns (
    company_id TEXT PRIMARY KEY,
    last_at    REAL NOT NULL
) WITHOUT ROWID;

-- Articles that are put together for each recipient from slices.

CREATE TABLE content_slices (
    id             TEXT PRIMARY KEY,
    article_key    TEXT NOT NULL,
    section_order  INTEGER NOT NULL CHECK (section_order >= 1),
    is_headline    INTEGER NOT NULL DEFAULT 0,
    title          TEXT,
    dek            TEXT,
    body_md        TEXT NOT NULL DEFAULT '',
    link_url       TEXT,
    scope_ocd_id   TEXT,  -- NULL: everywhere
    tags           TEXT NOT NULL DEFAULT '[]',
    publish_status TEXT NOT NULL DEFAULT 'draft' CHECK (publish_status IN ('draft', 'published', 'archived')),
    publish_at     REAL,
    expires_at     REAL,
    sort_index     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE UNIQUE INDEX content_slices_place
    ON content_slices (article_key, section_order, coalesce(scope_ocd_id, ''), sort_index);

-- What a batch was asked to send: the slices as they were then, so that editing them changes nothing any more.
CREATE TABLE article_batches (
    mailout         TEXT PRIMARY KEY,
    article_key     TEXT NOT NULL,
    audience_filter TEXT NOT NULL,
    as_of           REAL NOT NULL,
    slices          TEXT NOT NULL,
    contents        TEXT NOT NULL,  -- the hash of each variant that the census has seen
    census          TEXT NOT NULL
) WITHOUT ROWID;

-- A rehearsal of a batch does not use it up.
CREATE UNIQUE INDEX campaign_queue_batch ON campaign_queue (campaign_tag, send_batch_id) WHERE NOT is_rehearsal;
CREATE UNIQUE INDEX campaign_runs_batch ON campaign_runs (campaign_tag, send_batch_id);

-- A message that failed for good is a dead letter, under its own id, if its mailout says so; whoever tries it again
-- takes it out. Triggers: whichever way a message fails, both are one commit.
CREATE TRIGGER email_outbox_dead_letter AFTER UPDATE OF state ON email_outbox
WHEN NEW.state IN ('FAILED', 'VALIDATION_FAILED') AND OLD.state <> NEW.state AND NEW.campaign_id IS NOT NULL
BEGIN
    INSERT INTO dead_letters (id, topic, payload, error, created_at)
    SELECT NEW.id, 'send',
           json_object('mailout', q.id, 'message', NEW.id, 'email', NEW.email,
                       'variant', coalesce(NEW.content_id, q.content_hash), 'campaign_tag', q.campaign_tag,
                       'send_batch_id', q.send_batch_id, 'attempts', NEW.attempts,
                       'error_code', NEW.error_code),
           coalesce(NEW.error_code, 'FAILED') || coalesce(': ' || NEW.error_message, ''), NEW.failed_at
    FROM campaign_queue q
    WHERE q.id = NEW.campaign_id AND q.retry_plan ->> '$.dead_letters'
    ON CONFLICT (id) DO UPDATE SET payload = excluded.payload, error = excluded.error,
                                   created_at = excluded.created_at;
END;
CREATE TRIGGER email_outbox_requeued AFTER UPDATE OF state ON email_outbox
WHEN OLD.state = 'FAILED' AND NEW.state <> 'FAILED'
BEGIN
    DELETE FROM dead_letters WHERE id = NEW.id AND topic = 'send';
END;

-- Filters over subscribers, by name.
CREATE TABLE segments (
    name       TEXT PRIMARY KEY,
    filter     TEXT NOT NULL,  -- as it was written
    tree       TEXT NOT NULL CHECK (json_valid(tree)),
    hash       TEXT NOT NULL,  -- of the tree
    updated_at REAL NOT NULL
) WITHOUT ROWID;

-- What the dashboard looks back on.
CREATE INDEX campaign_queue_created ON campaign_queue (created_at, id);
CREATE INDEX email_outbox_single_to ON email_outbox (email, seq) WHERE campaign_id IS NULL;
CREATE INDEX email_outbox_notifications ON email_outbox (seq) WHERE campaign_id IS NULL AND variables ->> 'tried_once' = 'yes';
CREATE INDEX subscribers_snoozed ON subscribers (email_norm) WHERE snoozed_until IS NOT NULL;
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

-- Whom somebody unsubscribed on the dashboard. The row goes when anything else ends or renews it.
CREATE TABLE desk_unsubscribes (
    email    TEXT NOT NULL,
    list_key TEXT NOT NULL,  -- '': from everything
    at       REAL NOT NULL,
    PRIMARY KEY (email, list_key)
) WITHOUT ROWID;

CREATE TABLE ended_logins (
    id      TEXT PRIMARY KEY,  -- a hash: of the cookie's text, or of the token of a link to sign in that was used
    ends_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE dashboard_notes (
    name  TEXT PRIMARY KEY,
    at    REAL NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE refused_requests (
    path    TEXT NOT NULL,
    why     TEXT NOT NULL,
    n       INTEGER NOT NULL,
    last_at REAL NOT NULL,
    PRIMARY KEY (path, why)
) WITHOUT ROWID;

CREATE TABLE mailout_runs (
    campaign_id TEXT PRIMARY KEY,
    run_id      TEXT NOT NULL
) WITHOUT ROWID;

-- What each import decided and did; and what it added and nobody else has spoken for since, so that it can be undone.
CREATE TABLE imports (
    id        TEXT PRIMARY KEY,
    at        REAL NOT NULL,
    by        TEXT NOT NULL,
    file      TEXT NOT NULL,
    decisions TEXT NOT NULL,
    counts    TEXT NOT NULL,
    undone_at REAL
);
CREATE INDEX imports_at ON imports (at);

CREATE TABLE import_people (
    email     TEXT NOT NULL,  -- normalised
    list_key  TEXT NOT NULL,  -- '': the person, else a place on this list
    import_id TEXT NOT NULL REFERENCES imports (id),
    PRIMARY KEY (email, list_key)
) WITHOUT ROWID;
CREATE INDEX import_people_import ON import_people (import_id);

-- Sign-ups. One row for each confirmation that was asked for, gone after a day: its limits are counted here. Network and
-- address are keyed hashes.
CREATE TABLE sign_up_marks (
    at      REAL NOT NULL,
    network TEXT NOT NULL,
    address TEXT NOT NULL
);
CREATE INDEX sign_up_marks_at ON sign_up_marks (at);

CREATE TABLE sign_up_days (
    day       TEXT NOT NULL,  -- on which it was asked for
    list_key  TEXT NOT NULL,
    asked     INTEGER NOT NULL DEFAULT 0,
    confirmed INTEGER NOT NULL DEFAULT 0,  -- of these
    PRIMARY KEY (day, list_key)
) WITHOUT ROWID;

-- What came back from strangers whose rows were erased: keyed hashes of their addresses.
CREATE TABLE erased_feedback (
    hash TEXT NOT NULL,
    what TEXT NOT NULL CHECK (what IN ('spamreport', 'bounce')),
    PRIMARY KEY (hash, what)
) WITHOUT ROWID;

CREATE INDEX email_outbox_confirmations ON email_outbox (created_at) WHERE category = 'confirmation';
CREATE INDEX consents_at ON consents (at);
