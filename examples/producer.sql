-- What `mailout demo --notify` works on: a few notifications of every kind, in the tables of producer_schema.sql.
INSERT INTO courses VALUES (1, '92026', 'NB', '198', '111', '01:198:111', 'Introduction to Computer Science');
INSERT INTO sections VALUES (1, 1, '92026', 'NB', '198', '07', '12345', 'OPEN', 1, NULL, NULL);
INSERT INTO section_meetings (section_id, meeting_day, start_minutes, end_minutes, building_code, room_number)
VALUES (1, 'M', 540, 600, 'TIL', '124'), (1, 'W', 540, 600, 'TIL', '124');
INSERT INTO open_events VALUES
    (1, 1, '92026', 'NB', '12345', 'CLOSED', 'OPEN', 1, '2026-11-15T11:59:00.000Z', 'poller', NULL, 'demo-1', 'trace-demo',
     '{"courseTitle": "Introduction to Computer Science", "sectionNumber": "07", "snapshotHash": "a1b2"}', datetime('now'));
INSERT INTO subscriptions (subscription_id, section_id, term_id, campus_code, index_number, contact_type, contact_value,
                           locale, status, unsubscribe_token, metadata)
VALUES (1, 1, '92026', 'NB', '12345', 'email', 'ana@example.org', 'en-US', 'active', 'token-ana', NULL),
       (2, 1, '92026', 'NB', '12345', 'email', 'lucia@example.org', 'es-US', 'active', 'token-lucia', NULL),
       (3, 1, '92026', 'NB', '12345', 'email', 'wei@example.org', 'zh-CN', 'pending', 'token-wei', NULL),
       (4, 1, '92026', 'NB', '12345', 'email', 'bo@example.org', NULL, 'unsubscribed', 'token-bo', NULL),
       (5, 1, '92026', 'NB', '12345', 'sms', '+1 555 0100', NULL, 'active', NULL, NULL),
       (6, 1, '92026', 'NB', '12345', 'email', 'claire@example.org', 'fr-FR', 'active', 'token-claire', NULL),
       (7, 1, '92026', 'NB', '12345', 'email', 'dora@example.org', NULL, 'active', 'token-dora',
        '{"preferences": {"snoozeUntil": "2099-01-01T00:00:00Z"}}');
INSERT INTO open_event_notifications (open_event_id, subscription_id, dedupe_key)
SELECT 1, subscription_id, 'demo-1' FROM subscriptions;
