-- Pauses after transient errors grow while nothing is sent between them.
ALTER TABLE campaign_queue ADD COLUMN transient_pauses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE campaign_queue ADD COLUMN transient_sent INTEGER NOT NULL DEFAULT 0;
-- What a person knew of on letting it go on: it is no reason to hold it again.
ALTER TABLE campaign_queue ADD COLUMN acknowledged TEXT NOT NULL DEFAULT '{}';
CREATE INDEX campaign_queue_content ON campaign_queue (content_hash) WHERE content_hash IS NOT NULL;

-- When an account's warm-up began.
ALTER TABLE pace ADD COLUMN first_day TEXT;
