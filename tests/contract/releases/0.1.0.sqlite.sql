BEGIN TRANSACTION;
CREATE TABLE alerts (
    key      TEXT PRIMARY KEY,
    since_at REAL NOT NULL,
    ended_at REAL,                        -- NULL: it lasts
    tries    INTEGER NOT NULL DEFAULT 0,  -- to tell it, ever
    failed   INTEGER NOT NULL DEFAULT 0,  -- since it was last told
    tried_at REAL,
    told_at  REAL
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
CREATE TABLE article_batches (
    mailout         TEXT PRIMARY KEY,
    article_key     TEXT NOT NULL,
    audience_filter TEXT NOT NULL,
    as_of           REAL NOT NULL,
    slices          TEXT NOT NULL,
    contents        TEXT NOT NULL,  -- the hash of each variant that the census has seen
    census          TEXT NOT NULL
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
INSERT INTO "campaign_queue" VALUES('1e37047e-f4ba-8f84-bdac-4422683af349','notion','main','News','default',NULL,NULL,NULL,0,0,'PROCESSING',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'dc772a51044c1f01d9ee6ba48a657d58286ee685f9183a9317d9ea08ace5222f','worker',1794830400.0,8,2,1,1,2,1,1,'{}','z-pending@example.org',1794830400.0,1794830400.0,1794830400.0,1794830400.0,NULL,0,0,'{}',NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL);
INSERT INTO "campaign_queue" VALUES('3784f6f7-62b3-8808-b5b3-35a2fb46b059','notion','done','News','default','nobody',NULL,NULL,0,0,'COMPLETED','sent',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'dc772a51044c1f01d9ee6ba48a657d58286ee685f9183a9317d9ea08ace5222f','worker',1794830400.0,0,0,0,0,0,0,0,'{}','',1794830400.0,1794830400.0,1794830400.0,1794830400.0,1794830400.0,0,0,'{}',NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL);
INSERT INTO "campaign_queue" VALUES('53c9fb0c-512a-8f7d-abb0-503fe316933f','notion','waiting','News','default',NULL,NULL,NULL,0,0,'PENDING',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'dc772a51044c1f01d9ee6ba48a657d58286ee685f9183a9317d9ea08ace5222f',NULL,NULL,7,7,0,0,0,0,0,'{}','z-pending@example.org',1794830400.0,1794830400.0,1794830400.0,NULL,NULL,0,0,'{}',NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL);
INSERT INTO "campaign_queue" VALUES('a27c855d-4cac-83d2-9b75-473697be3520','notion','cancelled','News','default',NULL,NULL,NULL,0,0,'CANCELLED',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'dc772a51044c1f01d9ee6ba48a657d58286ee685f9183a9317d9ea08ace5222f',NULL,NULL,0,0,0,0,0,0,0,'{}','',NULL,1794830400.0,NULL,NULL,1794830400.0,0,0,'{}',NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL);
CREATE TABLE campaign_runs (
    id            TEXT PRIMARY KEY,
    campaign_tag  TEXT NOT NULL,
    article_key   TEXT NOT NULL,
    actor         TEXT NOT NULL,
    send_batch_id TEXT NOT NULL,
    started_at    REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE companies (
    id             TEXT PRIMARY KEY,
    limit_per_hour INTEGER,  -- NULL: as for every company
    limit_per_day  INTEGER,
    created_at     REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE consents (
    email    TEXT NOT NULL,  -- normalised
    list_key TEXT NOT NULL,
    at       REAL NOT NULL,
    wording  TEXT NOT NULL,  -- what the reader agreed to
    source   TEXT NOT NULL,  -- the page where
    PRIMARY KEY (email, list_key, at)
) WITHOUT ROWID;
INSERT INTO "consents" VALUES('ann@example.org','news',1794830400.0,'I want to get News by e-mail.','https://shop.example.org/about');
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
CREATE TABLE contents (
    hash       TEXT PRIMARY KEY,
    subject    TEXT NOT NULL,
    html       TEXT NOT NULL,
    text       TEXT NOT NULL,
    created_at REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO "contents" VALUES('70f08839016d39581c21ae3e71e4f06aa887e7d03fcc39e5c3d8d6d6a1e08271','Please confirm','<p>signed_link</p>','signed_link',1794830400.0);
INSERT INTO "contents" VALUES('b5c0b5e4322a2b9a900a0e4d4e81b39ed885ec82eff2f2cf752126f8c12cb8d6','Your receipt','<p>Thank you</p>','Thank you',1794830400.0);
INSERT INTO "contents" VALUES('dc772a51044c1f01d9ee6ba48a657d58286ee685f9183a9317d9ea08ace5222f','News','<p>Hello</p>','Hello',1794830400.0);
CREATE TABLE counters (
    name   TEXT NOT NULL,
    labels TEXT NOT NULL,  -- as they stand between the braces
    value  REAL NOT NULL,
    PRIMARY KEY (name, labels)
) WITHOUT ROWID;
INSERT INTO "counters" VALUES('mailout_sign_ups_total','joined',1.0);
INSERT INTO "counters" VALUES('mailout_sign_ups_total','sent',2.0);
CREATE TABLE dashboard_acts (
    id    INTEGER PRIMARY KEY,
    at    REAL NOT NULL,
    who   TEXT NOT NULL,
    what  TEXT NOT NULL,
    about TEXT NOT NULL DEFAULT ''
);
CREATE TABLE dashboard_notes (
    name  TEXT PRIMARY KEY,
    at    REAL NOT NULL,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE dead_letters (
    id         TEXT PRIMARY KEY,
    topic      TEXT NOT NULL,
    payload    TEXT NOT NULL,
    error      TEXT NOT NULL,
    created_at REAL NOT NULL
) WITHOUT ROWID;
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
INSERT INTO "delivery_events" VALUES('8ff2f3c4-304a-82c0-b17c-2c9609fd5fd0',NULL,NULL,'left@example.org','unsubscribe',NULL,'{}',1794830400.0);
INSERT INTO "delivery_events" VALUES('3a80893c-80fa-8690-b0b3-3ba4f8429c62',NULL,NULL,'d-suppressed@example.org','unsubscribe',NULL,'{}',1794830400.0);
INSERT INTO "delivery_events" VALUES('eba9b359-df07-82ce-8269-0aecef69ba35','b4803c42-b514-8dba-ac1b-e0f34c61ffed','1e37047e-f4ba-8f84-bdac-4422683af349','c-sent@example.org','send','ses-1','{}',1794830395.0);
CREATE TABLE desk_unsubscribes (
    email    TEXT NOT NULL,
    list_key TEXT NOT NULL,  -- '': from everything
    at       REAL NOT NULL,
    PRIMARY KEY (email, list_key)
) WITHOUT ROWID;
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
INSERT INTO "email_outbox" VALUES(1,'08281d1c-1cb9-8a34-b182-964223d2a7df','1e37047e-f4ba-8f84-bdac-4422683af349','default',NULL,NULL,'a-failed@example.org',NULL,NULL,NULL,'FAILED',1,1,'3282a795-8646-4b7b-b1be-4befde471b03',1794830460.0,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,1794830400.0,NULL,1794830400.0,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(2,'74f7c9e2-7362-8c36-9784-e4ee0d978905','1e37047e-f4ba-8f84-bdac-4422683af349','default',NULL,NULL,'b-retry@example.org',NULL,NULL,NULL,'RETRY_SCHEDULED',1,1,'3282a795-8646-4b7b-b1be-4befde471b03',1794830460.0,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,1794830400.0,NULL,NULL,NULL,0,NULL,NULL,'[{"at":1794830400.0,"attempt":1,"epoch":1,"attempt_at":1794830400.0,"type":"RETRY_SCHEDULED","errorCode":null,"errorCategory":null,"errorMessage":null,"originalCode":null,"willRetry":true,"nextAttemptNumber":2,"backoffDelay":60000,"durationMs":0}]',NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(3,'b4803c42-b514-8dba-ac1b-e0f34c61ffed','1e37047e-f4ba-8f84-bdac-4422683af349','default',NULL,NULL,'c-sent@example.org',NULL,NULL,NULL,'SENT',1,1,'3282a795-8646-4b7b-b1be-4befde471b03',NULL,'ses-b4803c42-1',NULL,NULL,NULL,NULL,NULL,1794830400.0,1794830400.0,1794830400.0,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(4,'da3439b9-e4da-8bdf-b48b-59bedc0a7997','1e37047e-f4ba-8f84-bdac-4422683af349','default',NULL,NULL,'d-suppressed@example.org',NULL,NULL,NULL,'SUPPRESSED',0,0,NULL,NULL,NULL,NULL,NULL,'no longer subscribed',NULL,NULL,1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(5,'e7494c2a-343b-8d5c-9bfb-b4221c98f4d0','1e37047e-f4ba-8f84-bdac-4422683af349','default',NULL,NULL,'e-unknown@example.org',NULL,NULL,NULL,'UNKNOWN',1,1,'3282a795-8646-4b7b-b1be-4befde471b03',NULL,NULL,NULL,NULL,'no answer',NULL,NULL,1794830400.0,1794830400.0,NULL,NULL,1794830400.0,NULL,NULL,NULL,'[{"at":1794830400.0,"attempt":1,"epoch":1,"attempt_at":1794830400.0,"type":"UNKNOWN","errorCode":null,"errorCategory":null,"errorMessage":"no answer","originalCode":null}]',NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(6,'08115d5a-bca5-8760-b31a-bd48b3329d11','1e37047e-f4ba-8f84-bdac-4422683af349','default',NULL,NULL,'f-invalid@example.org',NULL,NULL,NULL,'VALIDATION_FAILED',1,1,'3282a795-8646-4b7b-b1be-4befde471b03',1794830460.0,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,1794830400.0,NULL,1794830400.0,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(7,'c9dc5a69-f43d-84b9-9a18-371d86c155f2','1e37047e-f4ba-8f84-bdac-4422683af349','default',NULL,NULL,'y-attempt@example.org',NULL,NULL,NULL,'SENT_ATTEMPT',1,1,'3282a795-8646-4b7b-b1be-4befde471b03',NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(8,'7fed3938-d880-868c-a425-20e30595f881','1e37047e-f4ba-8f84-bdac-4422683af349','default',NULL,NULL,'z-pending@example.org',NULL,NULL,NULL,'PENDING',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(9,'923a95bd-eacf-8b83-8d63-6072ca942381','53c9fb0c-512a-8f7d-abb0-503fe316933f','default',NULL,NULL,'a-failed@example.org',NULL,NULL,NULL,'PENDING',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(10,'13174650-9bc0-8902-9713-a68375e28bb2','53c9fb0c-512a-8f7d-abb0-503fe316933f','default',NULL,NULL,'b-retry@example.org',NULL,NULL,NULL,'PENDING',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(11,'e989815d-c57f-8701-9718-de74e6a3c23d','53c9fb0c-512a-8f7d-abb0-503fe316933f','default',NULL,NULL,'c-sent@example.org',NULL,NULL,NULL,'PENDING',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(12,'3010ad15-5d63-8e84-961c-1a26620b088f','53c9fb0c-512a-8f7d-abb0-503fe316933f','default',NULL,NULL,'e-unknown@example.org',NULL,NULL,NULL,'PENDING',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(13,'1d2b89ef-b82b-8e59-902d-8f968c6a0fb5','53c9fb0c-512a-8f7d-abb0-503fe316933f','default',NULL,NULL,'f-invalid@example.org',NULL,NULL,NULL,'PENDING',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(14,'5f055819-56e3-8761-8819-a3148cf89488','53c9fb0c-512a-8f7d-abb0-503fe316933f','default',NULL,NULL,'y-attempt@example.org',NULL,NULL,NULL,'PENDING',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(15,'e320b9da-7a31-8a44-8fc4-721093b47532','53c9fb0c-512a-8f7d-abb0-503fe316933f','default',NULL,NULL,'z-pending@example.org',NULL,NULL,NULL,'PENDING',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "email_outbox" VALUES(16,'72b8c9fb-6d9e-8999-9c90-d12a4ffd0e32',NULL,'acme','request a receipt',NULL,'ana@example.org',NULL,'b5c0b5e4322a2b9a900a0e4d4e81b39ed885ec82eff2f2cf752126f8c12cb8d6',NULL,'PENDING',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'a receipt',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'transactional',NULL,NULL,'one',1,NULL);
INSERT INTO "email_outbox" VALUES(17,'f4ac0a4b-69c9-8c2a-9926-26525306f529',NULL,'mailout','f8da63ca-08e3-8a46-88f6-a739eabba546',NULL,'ann@example.org',NULL,'70f08839016d39581c21ae3e71e4f06aa887e7d03fcc39e5c3d8d6d6a1e08271','{"signed_link": "{\"path\": \"/join/confirm\", \"payload\": {\"at\": 1794830400.0, \"email\": \"ann@example.org\", \"lists\": [\"news\"]}, \"purpose\": \"join\"}"}','PENDING',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'f8da63ca-08e3-8a46-88f6-a739eabba546',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'confirmation',NULL,NULL,NULL,1,NULL);
INSERT INTO "email_outbox" VALUES(18,'020ce12b-03ba-8ca4-b5a3-9dc1d4636627',NULL,'mailout','1b0053f3-eafe-827c-a0ef-20451476c29b',NULL,'stranger@example.org',NULL,'70f08839016d39581c21ae3e71e4f06aa887e7d03fcc39e5c3d8d6d6a1e08271','{"signed_link": "{\"path\": \"/join/confirm\", \"payload\": {\"at\": 1794830400.0, \"email\": \"stranger@example.org\", \"lists\": [\"news\"]}, \"purpose\": \"join\"}"}','PENDING',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'1b0053f3-eafe-827c-a0ef-20451476c29b',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'confirmation',NULL,NULL,NULL,1,NULL);
CREATE TABLE ended_logins (
    id      TEXT PRIMARY KEY,  -- a hash: of the cookie's text, or of the token of a link to sign in that was used
    ends_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE erased_feedback (
    hash TEXT NOT NULL,
    what TEXT NOT NULL CHECK (what IN ('spamreport', 'bounce')),
    PRIMARY KEY (hash, what)
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
CREATE TABLE events_inbox (
    id          TEXT NOT NULL PRIMARY KEY,
    source      TEXT NOT NULL,
    payload     TEXT,  -- gone once applied
    received_at REAL NOT NULL,
    applied_at  REAL,
    error       TEXT
);
INSERT INTO "events_inbox" VALUES('979ced72-0c38-8642-8bd9-6b9e8c7c78c4','sns',NULL,1794830400.0,1794830400.0,NULL);
INSERT INTO "events_inbox" VALUES('waiting','sns','{}',1794830400.0,NULL,NULL);
CREATE TABLE forgotten (
    hash TEXT PRIMARY KEY,
    at   REAL NOT NULL  -- what was asked for before then is over
) WITHOUT ROWID;
CREATE TABLE import_people (
    email     TEXT NOT NULL,  -- normalised
    list_key  TEXT NOT NULL,  -- '': the person, else a place on this list
    import_id TEXT NOT NULL REFERENCES imports (id),
    PRIMARY KEY (email, list_key)
) WITHOUT ROWID;
INSERT INTO "import_people" VALUES('cyn@example.org','','603674f0-1ea9-8173-bb36-65750e2d2ebd');
CREATE TABLE imports (
    id        TEXT PRIMARY KEY,
    at        REAL NOT NULL,
    by        TEXT NOT NULL,
    file      TEXT NOT NULL,
    decisions TEXT NOT NULL,
    counts    TEXT NOT NULL,
    undone_at REAL
);
INSERT INTO "imports" VALUES('603674f0-1ea9-8173-bb36-65750e2d2ebd',1794830400.0,'ops (command line)','people.csv','{"columns": {"No newsletter": "(empty) \u2192 gets mail (2), x \u2192 unsubscribed (1)"}, "agreed": "ops"}','{"rows": 1, "added": 1, "updated": 0, "unchanged": 0, "kept_status": 0, "forgotten": 0}',NULL);
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
INSERT INTO "lists" VALUES('general','General','',1,NULL,NULL,NULL,'{}',0,NULL);
INSERT INTO "lists" VALUES('news','News','',1,NULL,NULL,NULL,'{}',0,NULL);
CREATE TABLE mailout_counts (
    campaign_id TEXT NOT NULL,
    at          REAL NOT NULL,
    counts      TEXT NOT NULL,
    PRIMARY KEY (campaign_id, at)
) WITHOUT ROWID;
CREATE TABLE mailout_runs (
    campaign_id TEXT PRIMARY KEY,
    run_id      TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE pace (
    scope     TEXT PRIMARY KEY,
    next_at   REAL NOT NULL,
    factor    REAL NOT NULL DEFAULT 1,
    factor_at REAL NOT NULL DEFAULT 0,
    -- When an account's warm-up began.
    first_day TEXT
) WITHOUT ROWID;
INSERT INTO "pace" VALUES('ses:eu-west-1',1794830400.0,1.0,0.0,NULL);
CREATE TABLE page_reports (
    mailout TEXT PRIMARY KEY,
    asked   INTEGER NOT NULL DEFAULT 1,
    told    INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE people_counts (
    day    TEXT PRIMARY KEY,
    counts TEXT NOT NULL  -- by status, and by list (`list:…`)
) WITHOUT ROWID;
CREATE TABLE provider_quota (
    scope     TEXT PRIMARY KEY,
    available INTEGER,  -- NULL: unlimited
    asked_at  REAL NOT NULL,
    -- What the provider allows in 24 hours; NULL: no limit, or never told.
    most      INTEGER
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
CREATE TABLE refused_requests (
    path    TEXT NOT NULL,
    why     TEXT NOT NULL,
    n       INTEGER NOT NULL,
    last_at REAL NOT NULL,
    PRIMARY KEY (path, why)
) WITHOUT ROWID;
CREATE TABLE requests (
    ref         TEXT NOT NULL,
    how         TEXT NOT NULL,
    asked_at    REAL NOT NULL,
    answered_at REAL,
    not_before  REAL,                     -- a person chose when it is sent
    PRIMARY KEY (ref, how)
) WITHOUT ROWID;
CREATE TABLE segments (
    name       TEXT PRIMARY KEY,
    filter     TEXT NOT NULL,  -- as it was written
    tree       TEXT NOT NULL CHECK (json_valid(tree)),
    hash       TEXT NOT NULL,  -- of the tree
    updated_at REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO "segments" VALUES('newcomers','in list news and not got main','["and", ["list", "news"], ["not", ["got", "1e37047e-f4ba-8f84-bdac-4422683af349"]]]','3c8bfafaa754e72b7cd8d45559f521dbeca74784f2d8e171bd2be39852d332a3',1794830400.0);
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
INSERT INTO "sender_sessions" VALUES('3282a795-8646-4b7b-b1be-4befde471b03','1e37047e-f4ba-8f84-bdac-4422683af349','worker','folder',3,1794830460.0,0,1794830400.0,NULL);
CREATE TABLE sign_up_days (
    day       TEXT NOT NULL,  -- on which it was asked for
    list_key  TEXT NOT NULL,
    asked     INTEGER NOT NULL DEFAULT 0,
    confirmed INTEGER NOT NULL DEFAULT 0,  -- of these
    PRIMARY KEY (day, list_key)
) WITHOUT ROWID;
INSERT INTO "sign_up_days" VALUES('2026-11-16','news',2,1);
CREATE TABLE sign_up_marks (
    at      REAL NOT NULL,
    network TEXT NOT NULL,
    address TEXT NOT NULL
);
INSERT INTO "sign_up_marks" VALUES(1794830400.0,'9711fc0d69060ff857e5af2ace06cf0099c3f6e1f4b885fabc496e1dfaa4ba6d','ecba6144d4b372e2d56b3be9bb76c961cff009a0803c1a4b830e48c13051482e');
INSERT INTO "sign_up_marks" VALUES(1794830400.0,'9711fc0d69060ff857e5af2ace06cf0099c3f6e1f4b885fabc496e1dfaa4ba6d','a09e7925fc06084c7e9c1ec3da49ee4aa44494d2d41c35feb81cfe2b03142b38');
CREATE TABLE single_turns (
    company_id TEXT PRIMARY KEY,
    last_at    REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE state_transitions (
    before TEXT NOT NULL,
    after  TEXT NOT NULL,
    PRIMARY KEY (before, after)
) WITHOUT ROWID;
INSERT INTO "state_transitions" VALUES('FAILED','PENDING');
INSERT INTO "state_transitions" VALUES('PENDING','SENT');
INSERT INTO "state_transitions" VALUES('PENDING','SENT_ATTEMPT');
INSERT INTO "state_transitions" VALUES('PENDING','SUPPRESSED');
INSERT INTO "state_transitions" VALUES('PENDING','VALIDATION_FAILED');
INSERT INTO "state_transitions" VALUES('RETRY_SCHEDULED','SENT');
INSERT INTO "state_transitions" VALUES('RETRY_SCHEDULED','SENT_ATTEMPT');
INSERT INTO "state_transitions" VALUES('RETRY_SCHEDULED','SUPPRESSED');
INSERT INTO "state_transitions" VALUES('SENT','FAILED');
INSERT INTO "state_transitions" VALUES('SENT_ATTEMPT','FAILED');
INSERT INTO "state_transitions" VALUES('SENT_ATTEMPT','PENDING');
INSERT INTO "state_transitions" VALUES('SENT_ATTEMPT','RETRY_SCHEDULED');
INSERT INTO "state_transitions" VALUES('SENT_ATTEMPT','SENT');
INSERT INTO "state_transitions" VALUES('SENT_ATTEMPT','UNKNOWN');
INSERT INTO "state_transitions" VALUES('SENT_ATTEMPT','VALIDATION_FAILED');
INSERT INTO "state_transitions" VALUES('UNKNOWN','FAILED');
INSERT INTO "state_transitions" VALUES('UNKNOWN','PENDING');
INSERT INTO "state_transitions" VALUES('UNKNOWN','RETRY_SCHEDULED');
INSERT INTO "state_transitions" VALUES('UNKNOWN','SENT');
INSERT INTO "state_transitions" VALUES('UNKNOWN','VALIDATION_FAILED');
CREATE TABLE store_secrets (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
INSERT INTO "store_secrets" VALUES('forgotten',X'669EADCEB8F71BDCF3397C12A82F3B5EE2B5ADE59679A0A6787CE6B8F5F9F481');
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
INSERT INTO "subscribers" VALUES('7af2ac2e-c531-8a61-8ab1-09a0b9fc6f1a','left@example.org','left@example.org','unsubscribed',NULL,NULL,1794830400.0,NULL,'[]','{}',1794830400.0,1794830400.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "subscribers" VALUES('5d0f383f-9f57-84b1-9403-77fc0ee36558','bounced@example.org','bounced@example.org','bounced','Permanent',NULL,1794830400.0,NULL,'[]','{}',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "subscribers" VALUES('2d767025-673b-87fd-8e8e-36bfba3f8477','a-failed@example.org','a-failed@example.org','active',NULL,NULL,1794830400.0,NULL,'[]','{}',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "subscribers" VALUES('46cface4-ca83-8ec6-9448-64a411fa655e','z-pending@example.org','z-pending@example.org','active',NULL,NULL,1794830400.0,NULL,'[]','{}',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "subscribers" VALUES('5218fdc4-a4ae-8ba1-80e0-11c53ae674a3','b-retry@example.org','b-retry@example.org','active',NULL,NULL,1794830400.0,NULL,'[]','{}',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "subscribers" VALUES('84201568-96e5-8bfd-9411-ef8c526dbe37','c-sent@example.org','c-sent@example.org','active',NULL,NULL,1794830400.0,NULL,'[]','{}',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "subscribers" VALUES('7bab4eb5-668c-8980-aacc-db629e467bef','y-attempt@example.org','y-attempt@example.org','active',NULL,NULL,1794830400.0,NULL,'[]','{}',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "subscribers" VALUES('ca9db176-0b54-82cc-8910-b116bf972a45','d-suppressed@example.org','d-suppressed@example.org','unsubscribed',NULL,NULL,1794830400.0,NULL,'[]','{}',1794830400.0,1794830400.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "subscribers" VALUES('20bd848b-821d-8cab-8c16-366b99bb08ba','e-unknown@example.org','e-unknown@example.org','active',NULL,NULL,1794830400.0,NULL,'[]','{}',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "subscribers" VALUES('09a191f1-5a1d-86b6-be93-93e2c87dcd63','f-invalid@example.org','f-invalid@example.org','active',NULL,NULL,1794830400.0,NULL,'[]','{}',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "subscribers" VALUES('c897f050-5afa-8129-ab40-dee77e778d47','ann@example.org','ann@example.org','active',NULL,NULL,1794830400.0,NULL,'[]','{"name":"Ann"}',1794830400.0,NULL,NULL,NULL,NULL,NULL,1794830400.0);
INSERT INTO "subscribers" VALUES('80f21733-fd1e-8ae2-9485-19087fc1d963','cyn@example.org','cyn@example.org','active',NULL,NULL,1794830400.0,NULL,'[]','{}',1794830400.0,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE subscriptions (
    email           TEXT NOT NULL,  -- normalised
    list_key        TEXT NOT NULL,
    unsubscribed_at REAL,
    joined_at       REAL,  -- by a confirmed sign-up or on the preferences' page; NULL: by an import
    PRIMARY KEY (email, list_key)
) WITHOUT ROWID;
INSERT INTO "subscriptions" VALUES('ann@example.org','general',1794830400.0,NULL);
INSERT INTO "subscriptions" VALUES('ann@example.org','news',NULL,1794830400.0);
CREATE TABLE switches (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE usage (
    scope TEXT NOT NULL,  -- 'all' or a company
    kind  TEXT NOT NULL,  -- 'minute', 'hour', 'day'
    key   TEXT NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (scope, kind, key)
) WITHOUT ROWID;
INSERT INTO "usage" VALUES('all','minute','0029913840',6);
CREATE INDEX subscriptions_list ON subscriptions (list_key, email) WHERE unsubscribed_at IS NULL;
CREATE INDEX campaign_queue_open ON campaign_queue (status, created_at)
    WHERE status IN ('PENDING', 'PROCESSING');
CREATE INDEX campaign_queue_ref ON campaign_queue (ref);
CREATE INDEX campaign_queue_slug ON campaign_queue (slug) WHERE slug IS NOT NULL;
CREATE INDEX sender_sessions_open ON sender_sessions (lease_until) WHERE closed_at IS NULL;
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
CREATE INDEX error_records_mailout ON error_records (mailout);
CREATE INDEX delivery_events_message ON delivery_events (message_id);
CREATE INDEX events_inbox_waiting ON events_inbox (received_at) WHERE applied_at IS NULL;
CREATE INDEX delivery_events_email ON delivery_events (email);
CREATE INDEX error_records_unreported ON error_records (at) WHERE reported_at IS NULL;
CREATE INDEX campaign_queue_content ON campaign_queue (content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX events_inbox_received ON events_inbox (received_at);
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
CREATE UNIQUE INDEX recipients_external ON recipients (company_id, external_id);
CREATE INDEX email_outbox_single_due ON email_outbox (company_id, coalesce(next_attempt_at, 0), seq)
    WHERE campaign_id IS NULL AND state IN ('PENDING', 'RETRY_SCHEDULED');
CREATE INDEX email_outbox_request ON email_outbox (request_id) WHERE request_id IS NOT NULL;
CREATE UNIQUE INDEX content_slices_place
    ON content_slices (article_key, section_order, coalesce(scope_ocd_id, ''), sort_index);
CREATE UNIQUE INDEX campaign_queue_batch ON campaign_queue (campaign_tag, send_batch_id) WHERE NOT is_rehearsal;
CREATE UNIQUE INDEX campaign_runs_batch ON campaign_runs (campaign_tag, send_batch_id);
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
CREATE INDEX campaign_queue_created ON campaign_queue (created_at, id);
CREATE INDEX email_outbox_single_to ON email_outbox (email, seq) WHERE campaign_id IS NULL;
CREATE INDEX email_outbox_notifications ON email_outbox (seq) WHERE campaign_id IS NULL AND variables ->> 'tried_once' = 'yes';
CREATE INDEX subscribers_snoozed ON subscribers (email_norm) WHERE snoozed_until IS NOT NULL;
CREATE INDEX subscribers_gone ON subscribers (email_norm) WHERE status <> 'active';
CREATE INDEX imports_at ON imports (at);
CREATE INDEX import_people_import ON import_people (import_id);
CREATE INDEX sign_up_marks_at ON sign_up_marks (at);
CREATE INDEX email_outbox_confirmations ON email_outbox (created_at) WHERE category = 'confirmation';
CREATE INDEX consents_at ON consents (at);
CREATE VIEW email_logs AS
SELECT o.id AS outbox_id,
       o.company_id,
       o.recipient_id,
       o.email AS "to",
       coalesce(c.subject, q.subject) AS subject,
       o.state AS status,
       o.ses_message_id,
       o.error_code,
       o.error_message AS error_reason,
       o.attempts,
       o.duration_ms,
       coalesce(o.request_id, o.campaign_id, o.id) AS request_id,  -- what asked for it
       strftime('%Y-%m-%dT%H:%M:%fZ', o.created_at, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.sent_at, 'unixepoch') AS sent_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.failed_at, 'unixepoch') AS failed_at
FROM email_outbox o
LEFT JOIN campaign_queue q ON q.id = o.campaign_id
LEFT JOIN contents c ON c.hash = coalesce(o.content_id, q.content_hash);
CREATE VIEW message_attempts AS
SELECT o.id, o.seq, h.key AS place,
       json_extract(h.value, '$.type') AS type,
       json_extract(h.value, '$.at') AS at,
       json_extract(h.value, '$.attempt_at') AS attempt_at,
       json_extract(h.value, '$.attempt') AS attempt,
       json_remove(h.value, '$.type', '$.at', '$.attempt_at', '$.epoch') AS metadata
FROM email_outbox o, json_each(o.history) h
WHERE o.history IS NOT NULL
UNION ALL
SELECT o.id, o.seq, 1000000,
       CASE WHEN o.state IN ('SENT', 'FAILED', 'VALIDATION_FAILED')
             AND NOT (json_extract(o.history, '$[#-1].epoch') IS o.epoch
                      AND json_extract(o.history, '$[#-1].type') IS o.state) THEN o.state END,
       CASE o.state WHEN 'SENT' THEN o.sent_at ELSE o.failed_at END,
       CASE WHEN json_extract(o.history, '$[#-1].epoch') IS o.epoch THEN NULL
            WHEN o.state = 'VALIDATION_FAILED' THEN coalesce(o.attempt_at, o.failed_at)
            ELSE o.attempt_at END,
       o.attempts,
       CASE o.state
           WHEN 'SENT' THEN json_object('sesMessageId', o.ses_message_id, 'durationMs', o.duration_ms,
                                        'attempt', o.attempts)
           ELSE json_object('errorCode', o.error_code, 'errorCategory', o.error_category,
                            'errorMessage', o.error_message, 'originalCode', o.original_code,
                            'willRetry', json('false'), 'durationMs', o.duration_ms, 'attempt', o.attempts)
       END
FROM email_outbox o
WHERE o.state IN ('SENT_ATTEMPT', 'SENT', 'FAILED', 'VALIDATION_FAILED', 'UNKNOWN');
CREATE VIEW email_events AS
SELECT e.id AS email_log_id, e.type, e.metadata,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.at, 'unixepoch') AS created_at,
       e.seq, e.place, e.step
FROM (
    SELECT id, seq, place, 1 AS step, 'RECEIVED' AS type, attempt_at AS at,
           json_object('attempt', attempt) AS metadata
    FROM message_attempts WHERE attempt_at IS NOT NULL
    UNION ALL
    SELECT a.id, a.seq, a.place, 2, 'VALIDATED', a.attempt_at, json_object('attempt', a.attempt, 'checks', (
               SELECT json_group_array(made.value) FROM json_each(json_array(
                   CASE WHEN o.campaign_id IS NULL THEN 'INTEGRITY' END,  -- when it was handed in
                   'OUTBOX',  -- it waits, is due, and nobody else has it
                   CASE WHEN o.campaign_id IS NULL OR NOT q.is_test OR o.recipient_id IS NOT NULL THEN 'RECIPIENT' END,
                   CASE WHEN coalesce(o.content_id, q.content_hash) IS NOT NULL THEN 'TEMPLATE' END)) made
               WHERE made.value IS NOT NULL))
    FROM message_attempts a JOIN email_outbox o ON o.seq = a.seq LEFT JOIN campaign_queue q ON q.id = o.campaign_id
    WHERE a.attempt_at IS NOT NULL AND coalesce(a.type, '') <> 'VALIDATION_FAILED'
    UNION ALL
    SELECT id, seq, place, 3, 'SENT_ATTEMPT', attempt_at, json_object('attempt', attempt)
    FROM message_attempts WHERE attempt_at IS NOT NULL AND coalesce(type, '') <> 'VALIDATION_FAILED'
    UNION ALL
    SELECT id, seq, place, 4, type, at, metadata FROM message_attempts WHERE type IS NOT NULL
) e;
CREATE VIEW delivery_history AS
SELECT o.id, o.email, q.campaign_tag, q.send_batch_id, o.ses_message_id AS provider_message_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.sent_at, 'unixepoch') AS sent_at
FROM email_outbox o
JOIN campaign_queue q ON q.id = o.campaign_id
WHERE o.state = 'SENT' AND q.campaign_tag IS NOT NULL AND NOT q.is_rehearsal;
CREATE VIEW send_logs AS
SELECT o.id, o.campaign_id, o.email, s.transport AS provider,
       CASE o.state WHEN 'SENT' THEN 'sent' ELSE 'failed' END AS status,
       o.error_message, o.ses_message_id AS message_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.sent_at, 'unixepoch') AS sent_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(o.sent_at, o.failed_at), 'unixepoch') AS created_at
FROM email_outbox o
LEFT JOIN sender_sessions s ON s.id = o.session_id
WHERE o.state IN ('SENT', 'FAILED', 'VALIDATION_FAILED');
CREATE VIEW read_mailouts AS
SELECT id, kind, ref, subject, company_id, list_key, from_name, reply_to, is_test, is_rehearsal, status, outcome, priority,
       scheduled_at, deferred_until, defer_reason, defer_note, campaign_tag, send_batch_id, actor, content_hash, locked_by,
       locked_at, recipients, pending, in_flight, sent, failed, suppressed, unknown, metrics, transient_pauses,
       transient_sent, acknowledged, created_at, frozen_at, started_at, completed_at, archived_at, archived_to, retry_plan, snoozed,
       segment, segment_filter,
       public, slug, published_at, unpublished_at,
       CASE WHEN is_test THEN 'test' WHEN is_rehearsal THEN 'rehearsal' ELSE 'real' END AS mode,
       coalesce(completed_at, locked_at, started_at) AS active_at,
       -- In the order in which they would be sent, then the newest first.
       CASE status WHEN 'PROCESSING' THEN 0 WHEN 'PENDING' THEN 1 ELSE 2 END AS place,
       CASE WHEN status IN ('PROCESSING', 'PENDING') THEN -priority ELSE 0 END AS urgency,
       CASE WHEN status IN ('PROCESSING', 'PENDING') THEN created_at ELSE -created_at END AS age
FROM campaign_queue;
CREATE VIEW read_open_mailouts AS
SELECT status, count(*) AS mailouts, sum(pending) AS pending, sum(in_flight) AS in_flight, sum(sent) AS sent,
       sum(failed) AS failed, sum(suppressed) AS suppressed, sum(unknown) AS unknown
FROM campaign_queue INDEXED BY campaign_queue_open WHERE status IN ('PENDING', 'PROCESSING') GROUP BY status;
CREATE VIEW read_turns AS
SELECT company_id, max(locked_at) AS at FROM campaign_queue WHERE locked_at IS NOT NULL GROUP BY company_id;
CREATE VIEW read_switches AS SELECT name, value FROM switches;
CREATE VIEW read_requests AS SELECT ref, how, asked_at, not_before FROM requests WHERE answered_at IS NULL;
CREATE VIEW read_messages AS
SELECT seq, id, campaign_id, company_id, request_id, recipient_id, email, from_name, content_id, variables, state, attempts,
       epoch, session_id, next_attempt_at, ses_message_id, error_code, error_category, error_message, original_code,
       dedupe_key, created_at, attempt_at, sent_at, failed_at, unknown_at, duration_ms, charged_hour, charged_day, history,
       category, reply_to, headers, fingerprint, is_rehearsal
FROM email_outbox;
CREATE VIEW read_failed_messages AS
SELECT seq, id, campaign_id, company_id, request_id, recipient_id, email, from_name, content_id, variables, state, attempts,
       epoch, session_id, next_attempt_at, ses_message_id, error_code, error_category, error_message, original_code,
       dedupe_key, created_at, attempt_at, sent_at, failed_at, unknown_at, duration_ms, charged_hour, charged_day, history,
       category, reply_to, headers, fingerprint, is_rehearsal
FROM email_outbox INDEXED BY email_outbox_failed WHERE state IN ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN');
CREATE VIEW read_single_mails AS
SELECT m.*, c.subject FROM read_messages m LEFT JOIN contents c ON c.hash = m.content_id WHERE m.campaign_id IS NULL;
CREATE VIEW read_notifications AS
SELECT o.seq, o.id, campaign_id, company_id, request_id, recipient_id, email, from_name, content_id, variables, state, attempts,
       epoch, session_id, next_attempt_at, ses_message_id, error_code, error_category, error_message, original_code,
       dedupe_key, o.created_at, attempt_at, sent_at, failed_at, unknown_at, duration_ms, charged_hour, charged_day, history,
       category, reply_to, headers, fingerprint, is_rehearsal, c.subject
FROM email_outbox o INDEXED BY email_outbox_notifications LEFT JOIN contents c ON c.hash = o.content_id
WHERE campaign_id IS NULL AND variables ->> 'tried_once' = 'yes';
CREATE VIEW read_notification_states AS
SELECT state, is_rehearsal, count(*) AS n
FROM (SELECT state, is_rehearsal FROM read_notifications ORDER BY seq DESC LIMIT 10000) GROUP BY 1, 2;
CREATE VIEW read_message_events AS
SELECT email_log_id AS message_id, place, step, type, created_at, metadata FROM email_events;
CREATE VIEW read_open_attempts AS
SELECT seq, id, epoch, session_id FROM email_outbox WHERE state IN ('SENT_ATTEMPT', 'UNKNOWN');
CREATE VIEW read_doubts AS
SELECT count(*) AS unknown, min(unknown_at) AS oldest FROM email_outbox INDEXED BY email_outbox_failed
WHERE state = 'UNKNOWN' AND state IN ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN');
CREATE VIEW read_sessions AS
SELECT s.id, s.campaign_id, s.worker, s.transport, s.step_no, s.lease_until, s.opened_at, s.closed_at,
       q.archived_at IS NOT NULL AS is_archived
FROM sender_sessions s LEFT JOIN campaign_queue q ON q.id = s.campaign_id;
CREATE VIEW read_usage AS SELECT scope, kind, key, n FROM usage;
CREATE VIEW read_usage_drift AS
WITH charged (company, kind, key, n) AS (
    SELECT company_id, 'hour', charged_hour, count(*) FROM email_outbox
    WHERE charged_hour IS NOT NULL GROUP BY company_id, charged_hour
    UNION ALL
    SELECT company_id, 'day', charged_day, count(*) FROM email_outbox
    WHERE charged_day IS NOT NULL GROUP BY company_id, charged_day
), expected (scope, kind, key, n) AS (
    SELECT company, kind, key, n FROM charged
    UNION ALL
    SELECT 'all', kind, key, sum(n) FROM charged GROUP BY kind, key
)
SELECT e.scope, e.kind, e.key, coalesce(u.n, 0) AS counted, e.n AS charged
FROM expected e LEFT JOIN usage u ON u.scope = e.scope AND u.kind = e.kind AND u.key = e.key
WHERE coalesce(u.n, 0) < e.n;
CREATE VIEW read_pace AS SELECT scope, next_at, factor, factor_at, first_day FROM pace;
CREATE VIEW read_quotas AS
SELECT q.scope, q.most, max(0, q.available - (
           SELECT coalesce(sum(u.n), 0) FROM usage u
           WHERE u.scope = 'all' AND u.kind = 'minute' AND u.key >= printf('%010d', CAST(q.asked_at / 60 AS INTEGER)))) AS available
FROM provider_quota q;
CREATE VIEW read_subscribers AS
SELECT s.id, s.email, s.email_norm, s.status, s.bounce_type, s.bounce_subtype, s.status_updated_at, s.from_name, s.ocd_ids,
       s.attributes, s.created_at, s.left_at, s.complained_at, s.snoozed_until,
       (SELECT json_group_array(l.list_key) FROM subscriptions l
        WHERE l.email = s.email_norm AND l.unsubscribed_at IS NULL) AS lists,
       mailout_searched(s.email_norm, s.email, s.attributes) AS searched,
       -- A line each; `general` is everybody's who has not unsubscribed from it.
       char(10) || iif(EXISTS (SELECT 1 FROM subscriptions g WHERE g.email = s.email_norm AND g.list_key = 'general'
                               AND g.unsubscribed_at IS NOT NULL), '', 'general' || char(10))
           || coalesce((SELECT group_concat(l.list_key, char(10)) || char(10) FROM subscriptions l WHERE l.email = s.email_norm
                        AND l.unsubscribed_at IS NULL AND l.list_key <> 'general'), '') AS on_lists
FROM subscribers s;
CREATE VIEW read_inactive_subscribers AS
SELECT s.id, s.email, s.email_norm, s.status, s.bounce_type, s.bounce_subtype, s.status_updated_at, s.from_name, s.ocd_ids,
       s.attributes, s.created_at, s.left_at, s.complained_at, s.snoozed_until,
       (SELECT json_group_array(l.list_key) FROM subscriptions l
        WHERE l.email = s.email_norm AND l.unsubscribed_at IS NULL) AS lists,
       mailout_searched(s.email_norm, s.email, s.attributes) AS searched,
       -- A line each; `general` is everybody's who has not unsubscribed from it.
       char(10) || iif(EXISTS (SELECT 1 FROM subscriptions g WHERE g.email = s.email_norm AND g.list_key = 'general'
                               AND g.unsubscribed_at IS NOT NULL), '', 'general' || char(10))
           || coalesce((SELECT group_concat(l.list_key, char(10)) || char(10) FROM subscriptions l WHERE l.email = s.email_norm
                        AND l.unsubscribed_at IS NULL AND l.list_key <> 'general'), '') AS on_lists
FROM subscribers s INDEXED BY subscribers_gone WHERE s.status <> 'active';
CREATE VIEW read_subscriptions AS SELECT email, list_key, unsubscribed_at, joined_at FROM subscriptions;
CREATE VIEW read_lists AS
SELECT key, name, description, public, from_name, reply_to, footer, brand, archive, welcome_ref, 1 AS is_saved FROM lists
UNION ALL
SELECT used.key, used.key, '', 0, NULL, NULL, NULL, '{}', 0, NULL, 0 FROM (
    WITH RECURSIVE walk (key) AS (
        SELECT min(list_key) FROM subscriptions WHERE unsubscribed_at IS NULL
        UNION ALL
        SELECT (SELECT min(s.list_key) FROM subscriptions s WHERE s.list_key > walk.key AND s.unsubscribed_at IS NULL)
        FROM walk WHERE walk.key IS NOT NULL)
    SELECT key FROM walk WHERE key IS NOT NULL) used
WHERE NOT EXISTS (SELECT 1 FROM lists l WHERE l.key = used.key);
CREATE VIEW read_subscriber_counts AS SELECT status, count(*) AS people FROM subscribers GROUP BY status;
CREATE VIEW read_unreachable AS SELECT 'none' AS reason, 0 AS people WHERE false;
CREATE VIEW read_attributes AS
SELECT s.email_norm AS email, had.key AS name FROM subscribers s, json_each(s.attributes) had;
CREATE VIEW read_attribute_names AS SELECT DISTINCT had.key AS name FROM subscribers s, json_each(s.attributes) had;
CREATE VIEW read_segments AS SELECT name, filter, tree, updated_at FROM segments;
CREATE VIEW read_desk_unsubscribes AS SELECT email, list_key, at FROM desk_unsubscribes;
CREATE VIEW read_people_by_attribute AS
SELECT s.*, had.key AS attribute, lower(CAST(had.value AS TEXT)) AS attribute_value
FROM read_subscribers s, json_each(s.attributes) had WHERE trim(CAST(had.value AS TEXT)) <> '';
CREATE VIEW read_imports AS SELECT id, at, by, file, decisions, counts, undone_at FROM imports;
CREATE VIEW read_contents AS SELECT hash, subject, html, text FROM contents;
CREATE VIEW read_errors AS
SELECT id, code, message, stage, provider, mailout, email, attempts, at, reported_at FROM error_records;
CREATE VIEW read_dead_letters AS SELECT id, topic, payload, error, created_at FROM dead_letters;
CREATE VIEW read_due_reports AS SELECT mailout, asked FROM page_reports WHERE told < asked;
CREATE VIEW read_waiting_events AS SELECT id, source, payload, received_at FROM events_inbox WHERE applied_at IS NULL;
CREATE VIEW read_inbox AS
SELECT count(*) AS waiting, min(received_at) AS oldest FROM events_inbox WHERE applied_at IS NULL;
CREATE VIEW read_delivery_events AS
SELECT id, message_id, campaign_id, email, event_type, provider_message_id, detail, event_at FROM delivery_events;
CREATE VIEW read_unheard AS
SELECT min(s.opened_at) AS since
FROM sender_sessions s JOIN campaign_queue q ON q.id = s.campaign_id
WHERE s.transport = 'ses' AND s.opened_at > coalesce((SELECT max(received_at) FROM events_inbox), 0)
  AND q.sent > 2 * (coalesce(json_extract(q.metrics, '$.delivered'), 0)
                    + coalesce(json_extract(q.metrics, '$.bounced'), 0));
CREATE VIEW read_alerts AS SELECT key, since_at FROM alerts WHERE ended_at IS NULL;
CREATE VIEW read_counters AS SELECT name, labels, value FROM counters;
CREATE VIEW read_archives_to_empty AS
SELECT q.id, q.archived_at FROM campaign_queue q
WHERE q.archived_at IS NOT NULL AND EXISTS (SELECT 1 FROM email_outbox o WHERE o.campaign_id = q.id);
CREATE VIEW read_people_counts AS SELECT day, counts FROM people_counts;
CREATE VIEW read_mailout_counts AS SELECT campaign_id, at, counts FROM mailout_counts;
CREATE VIEW read_acts AS SELECT id, at, who, what, about FROM dashboard_acts;
CREATE VIEW read_ended_logins AS SELECT id, ends_at FROM ended_logins;
CREATE VIEW read_notes AS SELECT name, at, value FROM dashboard_notes;
CREATE VIEW read_refusals AS SELECT path, why, n, last_at FROM refused_requests;
CREATE VIEW read_runs AS SELECT campaign_id, run_id FROM mailout_runs;
CREATE VIEW read_slices AS
SELECT id, article_key, section_order, is_headline, title, dek, body_md, link_url, scope_ocd_id, tags, publish_status,
       publish_at, expires_at, sort_index, coalesce(scope_ocd_id, '') AS scope
FROM content_slices;
CREATE VIEW read_article_batches AS
SELECT mailout, article_key, audience_filter, as_of, slices, contents, census FROM article_batches;
CREATE VIEW read_companies AS SELECT id, limit_per_hour, limit_per_day, created_at FROM companies;
CREATE VIEW read_tokens AS
SELECT id, company_id, token_hash, '["' || replace(scopes, ',', '","') || '"]' AS scopes, limit_per_minute, created_at,
       revoked_at
FROM api_tokens;
CREATE VIEW read_recipients AS
SELECT company_id, id, external_id, email, name, deleted_at, created_at, updated_at FROM recipients
WHERE deleted_at IS NULL;
CREATE VIEW read_consents AS SELECT email, list_key, at, wording, source FROM consents;
CREATE VIEW read_sign_up_days AS SELECT day, list_key, asked, confirmed FROM sign_up_days;
CREATE VIEW read_welcomes AS
SELECT l.email, l.list_key, said.at AS joined_at, c.welcome_ref, s.attributes, s.from_name AS own_from_name,
       c.from_name, c.reply_to,
       EXISTS (SELECT 1 FROM email_outbox o WHERE o.id = mailout_uuid('welcome', l.list_key, l.email)) AS is_written,
       EXISTS (SELECT 1 FROM email_outbox o WHERE o.id = mailout_uuid('welcome', l.list_key, l.email, 'rehearsal')) AS is_rehearsed
FROM consents said
JOIN subscriptions l ON l.email = said.email AND l.list_key = said.list_key AND l.joined_at = said.at AND l.unsubscribed_at IS NULL
JOIN lists c ON c.key = l.list_key AND c.welcome_ref IS NOT NULL
JOIN subscribers s ON s.email_norm = l.email AND s.status = 'active';
CREATE VIEW read_confirmations AS
SELECT count(*) AS sent, count(*) FILTER (WHERE EXISTS (
           SELECT 1 FROM delivery_events e WHERE e.message_id = o.id AND e.event_type = 'bounce')) AS bounced
FROM email_outbox o
WHERE o.category = 'confirmation' AND o.state = 'SENT' AND NOT o.is_rehearsal AND o.email NOT LIKE '%@simulator.amazonses.com'
  AND o.created_at > (SELECT max(l.created_at) FROM email_outbox l WHERE l.category = 'confirmation') - 604800;
CREATE VIEW read_web_letters AS
SELECT q.id, q.slug, q.content_hash, c.subject, coalesce(q.list_key, 'general') AS list_key, l.name AS list_name,
       coalesce(l.public, 0) AS joinable, q.public, coalesce(q.started_at, q.created_at) AS sent_at, q.published_at,
       max(coalesce(q.published_at, 0), coalesce(q.unpublished_at, 0),
           coalesce(q.completed_at, q.locked_at, q.started_at, q.created_at)) AS changed_at
FROM campaign_queue q JOIN contents c ON c.hash = q.content_hash
LEFT JOIN lists l ON l.key = coalesce(q.list_key, 'general')
WHERE q.slug IS NOT NULL AND (q.public OR q.unpublished_at IS NOT NULL) AND q.sent > 0
  AND NOT q.is_test AND NOT q.is_rehearsal;
COMMIT;
PRAGMA user_version = 3;
