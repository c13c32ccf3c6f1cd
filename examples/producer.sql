-- What `mailout demo --notify` works on: a producer's tables, and a few notifications of every kind.
PRAGMA journal_mode = WAL;
CREATE TABLE terms (term_id TEXT PRIMARY KEY, name TEXT);
CREATE TABLE campuses (campus_code TEXT PRIMARY KEY, name TEXT);
CREATE TABLE courses (
    course_id INTEGER PRIMARY KEY AUTOINCREMENT, term_id TEXT NOT NULL, campus_code TEXT NOT NULL,
    subject_code TEXT NOT NULL, course_number TEXT NOT NULL, course_string TEXT NOT NULL, title TEXT NOT NULL
);
CREATE TABLE sections (
    section_id INTEGER PRIMARY KEY AUTOINCREMENT, course_id INTEGER NOT NULL REFERENCES courses (course_id),
    term_id TEXT NOT NULL, campus_code TEXT NOT NULL, subject_code TEXT NOT NULL, section_number TEXT,
    index_number TEXT NOT NULL, open_status TEXT, is_open INTEGER NOT NULL DEFAULT 0,
    open_status_updated_at TEXT, meeting_mode_summary TEXT
);
CREATE TABLE section_meetings (
    meeting_id INTEGER PRIMARY KEY AUTOINCREMENT, section_id INTEGER NOT NULL REFERENCES sections (section_id),
    meeting_day TEXT, start_minutes INTEGER, end_minutes INTEGER, campus_abbrev TEXT, campus_location_desc TEXT,
    building_code TEXT, room_number TEXT
);
CREATE TABLE subscriptions (
    subscription_id INTEGER PRIMARY KEY AUTOINCREMENT, section_id INTEGER REFERENCES sections (section_id),
    term_id TEXT NOT NULL, campus_code TEXT NOT NULL, index_number TEXT NOT NULL, contact_type TEXT NOT NULL,
    contact_value TEXT NOT NULL, contact_hash TEXT, locale TEXT, status TEXT NOT NULL DEFAULT 'pending',
    is_verified INTEGER NOT NULL DEFAULT 0, created_at TEXT NOT NULL DEFAULT (datetime('now')),
    updated_at TEXT NOT NULL DEFAULT (datetime('now')), last_notified_at TEXT, last_known_section_status TEXT,
    unsubscribe_token TEXT, metadata TEXT
);
CREATE TABLE subscription_events (
    event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    subscription_id INTEGER NOT NULL REFERENCES subscriptions (subscription_id), event_type TEXT NOT NULL,
    section_status_snapshot TEXT, payload TEXT, created_at TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE TABLE open_events (
    open_event_id INTEGER PRIMARY KEY AUTOINCREMENT, section_id INTEGER REFERENCES sections (section_id),
    term_id TEXT NOT NULL, campus_code TEXT NOT NULL, index_number TEXT NOT NULL, status_before TEXT,
    status_after TEXT NOT NULL, seat_delta INTEGER, event_at TEXT NOT NULL, detected_by TEXT, snapshot_id INTEGER,
    dedupe_key TEXT NOT NULL, trace_id TEXT, payload TEXT, created_at TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE TABLE open_event_notifications (
    notification_id INTEGER PRIMARY KEY AUTOINCREMENT,
    open_event_id INTEGER NOT NULL REFERENCES open_events (open_event_id),
    subscription_id INTEGER NOT NULL REFERENCES subscriptions (subscription_id),
    dedupe_key TEXT NOT NULL, fanout_status TEXT NOT NULL DEFAULT 'pending',
    fanout_attempts INTEGER NOT NULL DEFAULT 0, last_attempt_at TEXT, locked_by TEXT, locked_at TEXT, error TEXT,
    created_at TEXT NOT NULL DEFAULT (datetime('now')), UNIQUE (open_event_id, subscription_id)
);

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
