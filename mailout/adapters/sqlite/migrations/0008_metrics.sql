-- What Prometheus is told, as samples: they only grow, whatever is cleared away elsewhere.
CREATE TABLE counters (
    name   TEXT NOT NULL,
    labels TEXT NOT NULL,  -- as they stand between the braces
    value  REAL NOT NULL,
    PRIMARY KEY (name, labels)
) WITHOUT ROWID;
