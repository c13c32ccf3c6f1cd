-- What `select` reads. The names and columns are those of supabase/migrations.

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

-- The few that failed have an index of their own. Without statistics the one of all messages looks as good.
CREATE VIEW read_failed_messages AS
SELECT seq, id, campaign_id, company_id, request_id, recipient_id, email, from_name, content_id, variables, state, attempts,
       epoch, session_id, next_attempt_at, ses_message_id, error_code, error_category, error_message, original_code,
       dedupe_key, created_at, attempt_at, sent_at, failed_at, unknown_at, duration_ms, charged_hour, charged_day, history,
       category, reply_to, headers, fingerprint, is_rehearsal
FROM email_outbox INDEXED BY email_outbox_failed WHERE state IN ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN');

CREATE VIEW read_single_mails AS
SELECT m.*, c.subject FROM read_messages m LEFT JOIN contents c ON c.hash = m.content_id WHERE m.campaign_id IS NULL;

-- Messages whose attempts a producer's queue counts. Without statistics the index of all messages looks as good.
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

-- A row remembers the buckets of its last attempt alone: a counter may say more than the rows, never less.
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

-- Whoever unsubscribed or bounced has an index of their own.
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

-- A key that people are on is a list, also if nobody has described it. Each step of the walk is one look into the index.
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

CREATE VIEW read_unreachable AS SELECT 'none' AS reason, 0 AS people WHERE false;  -- every row has come through an import

CREATE VIEW read_attributes AS
SELECT s.email_norm AS email, had.key AS name FROM subscribers s, json_each(s.attributes) had;

CREATE VIEW read_attribute_names AS SELECT DISTINCT had.key AS name FROM subscribers s, json_each(s.attributes) had;

CREATE VIEW read_segments AS SELECT name, filter, tree, updated_at FROM segments;

CREATE VIEW read_desk_unsubscribes AS SELECT email, list_key, at FROM desk_unsubscribes;

-- Whoever has an attribute, once for each, with its value as text.
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

-- Since when mail has been sent and no event has come. A retry after which nothing was sent is no sign: of a
-- mailout that SES has reported on, most is known.
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

-- Sign-ups: proofs, counts by day and list, welcome letters that are owed, and what came back from confirmations.
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

-- Of the last seven days in which one was sent: SES's simulator and rehearsals are nobody.
CREATE VIEW read_confirmations AS
SELECT count(*) AS sent, count(*) FILTER (WHERE EXISTS (
           SELECT 1 FROM delivery_events e WHERE e.message_id = o.id AND e.event_type = 'bounce')) AS bounced
FROM email_outbox o
WHERE o.category = 'confirmation' AND o.state = 'SENT' AND NOT o.is_rehearsal AND o.email NOT LIKE '%@simulator.amazonses.com'
  AND o.created_at > (SELECT max(l.created_at) FROM email_outbox l WHERE l.category = 'confirmation') - 604800;

-- Letters on the web, from the first message on; those that were taken off it, too.
CREATE VIEW read_web_letters AS
SELECT q.id, q.slug, q.content_hash, c.subject, coalesce(q.list_key, 'general') AS list_key, l.name AS list_name,
       coalesce(l.public, 0) AS joinable, q.public, coalesce(q.started_at, q.created_at) AS sent_at, q.published_at,
       max(coalesce(q.published_at, 0), coalesce(q.unpublished_at, 0),
           coalesce(q.completed_at, q.locked_at, q.started_at, q.created_at)) AS changed_at
FROM campaign_queue q JOIN contents c ON c.hash = q.content_hash
LEFT JOIN lists l ON l.key = coalesce(q.list_key, 'general')
WHERE q.slug IS NOT NULL AND (q.public OR q.unpublished_at IS NOT NULL) AND q.sent > 0
  AND NOT q.is_test AND NOT q.is_rehearsal;
