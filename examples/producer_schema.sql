-- A producer's database, as such a program makes it: not ours, and never changed by us.
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
