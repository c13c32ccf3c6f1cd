-- Articles that are put together for each recipient from slices.

DROP TABLE content_slices;  -- its first shape, which nothing has used
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

-- How its messages are tried again; NULL: as the process that sends it is set up.
ALTER TABLE campaign_queue ADD COLUMN retry_plan TEXT;

-- A rehearsal of a batch does not use it up.
CREATE UNIQUE INDEX campaign_queue_batch ON campaign_queue (campaign_tag, send_batch_id) WHERE NOT is_rehearsal;
CREATE UNIQUE INDEX campaign_runs_batch ON campaign_runs (campaign_tag, send_batch_id);

DROP VIEW delivery_history;
CREATE VIEW delivery_history AS
SELECT o.id, o.email, q.campaign_tag, q.send_batch_id, o.ses_message_id AS provider_message_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.sent_at, 'unixepoch') AS sent_at
FROM email_outbox o
JOIN campaign_queue q ON q.id = o.campaign_id
WHERE o.state = 'SENT' AND q.campaign_tag IS NOT NULL AND NOT q.is_rehearsal;

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
