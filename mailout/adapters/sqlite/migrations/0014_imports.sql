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
