-- A mailout that is over may lie in an archive: its messages and events are there then, its row stays here.
ALTER TABLE campaign_queue ADD COLUMN archived_at REAL
    CHECK (archived_at IS NULL
           OR (status IN ('COMPLETED', 'CANCELLED') AND pending + in_flight + unknown = 0));
ALTER TABLE campaign_queue ADD COLUMN archived_to TEXT;

-- What the row tells is all that is left to tell: it neither changes nor goes, whoever writes.
CREATE TRIGGER campaign_queue_archived_is_final BEFORE UPDATE ON campaign_queue
WHEN OLD.archived_at IS NOT NULL
    AND (NEW.id, NEW.archived_at, NEW.status, NEW.outcome, NEW.metrics, NEW.recipients, NEW.sent, NEW.failed,
         NEW.suppressed)
     IS NOT (OLD.id, OLD.archived_at, OLD.status, OLD.outcome, OLD.metrics, OLD.recipients, OLD.sent, OLD.failed,
         OLD.suppressed)
BEGIN
    SELECT RAISE(ABORT, 'transition refused: an archived mailout does not change any more');
END;
CREATE TRIGGER campaign_queue_archived_stays BEFORE DELETE ON campaign_queue
WHEN OLD.archived_at IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'transition refused: an archived mailout stays known');
END;

-- Who is archiving what; the row goes when the mailout's messages have left the store.
CREATE TABLE archivings (
    mailout   TEXT PRIMARY KEY REFERENCES campaign_queue (id),
    owner     TEXT NOT NULL,
    token     TEXT NOT NULL,
    until     REAL NOT NULL,
    as_it_was TEXT NOT NULL  -- the mailout's row when it was claimed: one that changed is not archived
) WITHOUT ROWID;
