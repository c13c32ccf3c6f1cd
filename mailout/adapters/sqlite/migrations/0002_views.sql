-- One truth, each seed's vocabulary.

-- The main record of one message.
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

-- Every attempt of every message: those that ended otherwise from `history`, the last one from its columns.
-- A line of the history carries the epoch after it: what it has told of that epoch, the columns leave out.
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

-- Every transition, in order. An attempt's first three are one commit and have one time.
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

-- What an article's batch has delivered.
CREATE VIEW delivery_history AS
SELECT o.id, o.email, q.campaign_tag, q.send_batch_id, o.ses_message_id AS provider_message_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.sent_at, 'unixepoch') AS sent_at
FROM email_outbox o
JOIN campaign_queue q ON q.id = o.campaign_id
WHERE o.state = 'SENT' AND q.campaign_tag IS NOT NULL AND NOT q.is_rehearsal;

-- seeds 000 and 001: one line for each message that was tried to the end.
CREATE VIEW send_logs AS
SELECT o.id, o.campaign_id, o.email, s.transport AS provider,
       CASE o.state WHEN 'SENT' THEN 'sent' ELSE 'failed' END AS status,
       o.error_message, o.ses_message_id AS message_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.sent_at, 'unixepoch') AS sent_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(o.sent_at, o.failed_at), 'unixepoch') AS created_at
FROM email_outbox o
LEFT JOIN sender_sessions s ON s.id = o.session_id
WHERE o.state IN ('SENT', 'FAILED', 'VALIDATION_FAILED');
