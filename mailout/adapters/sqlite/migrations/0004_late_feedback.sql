-- Since 0.1.0: single mails that no event comes back for are noticed like mailouts.
CREATE INDEX email_outbox_single_sent ON email_outbox (sent_at, id)
    WHERE campaign_id IS NULL AND state = 'SENT' AND NOT is_rehearsal;

CREATE VIEW read_single_mails_sent AS
SELECT o.id, o.sent_at,
       coalesce((SELECT max(received_at) FROM events_inbox) > o.sent_at, 0)
           OR EXISTS (SELECT 1 FROM delivery_events e WHERE e.message_id = o.id) AS is_heard
FROM email_outbox o INDEXED BY email_outbox_single_sent
WHERE o.campaign_id IS NULL AND o.state = 'SENT' AND NOT o.is_rehearsal;
