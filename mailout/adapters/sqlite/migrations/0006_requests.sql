-- What was asked for over HTTP. A row stays: the same request within a minute meets it.
CREATE TABLE requests (
    ref         TEXT NOT NULL,
    how         TEXT NOT NULL,
    asked_at    REAL NOT NULL,
    answered_at REAL,
    PRIMARY KEY (ref, how)
) WITHOUT ROWID;
