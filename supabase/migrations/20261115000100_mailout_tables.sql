-- The tables of mailout. They may stand beside a `subscribers` table that is already there: see the
-- migration that fits it. Every file may be applied twice.

create table if not exists subscribers (
    id                uuid primary key default gen_random_uuid(),
    email             text not null,
    status            text not null default 'active',
    bounce_type       text,
    bounce_subtype    text,
    status_updated_at timestamptz,
    from_name         text,
    created_at        timestamptz not null default now()
);

create table if not exists subscriptions (
    email           text collate "C" not null,  -- normalised
    list_key        text not null,
    unsubscribed_at timestamptz,
    joined_at       timestamptz,
    primary key (email, list_key)
);
alter table subscriptions add column if not exists joined_at timestamptz;

create index if not exists subscriptions_list on subscriptions (list_key, email) where unsubscribed_at is null;

create table if not exists lists (
    key         text collate "C" primary key,
    name        text not null,
    description text not null default '',
    public      boolean not null default false,
    from_name   text,
    reply_to    text,
    footer      text,
    brand       jsonb not null default '{}' check (jsonb_typeof(brand) = 'object'),
    archive     boolean not null default false,
    welcome_ref text
);
insert into lists (key, name, public) values ('general', 'General', true) on conflict do nothing;

create table if not exists consents (
    email    text collate "C" not null,  -- normalised
    list_key text collate "C" not null,
    at       timestamptz not null,
    wording  text not null,
    source   text not null,
    primary key (email, list_key, at)
);

create table if not exists recipients (
    company_id  text collate "C" not null,
    id          text collate "C" not null,
    email       text not null,
    deleted_at  timestamptz,
    external_id text,
    name        text,
    created_at  timestamptz,
    updated_at  timestamptz,
    primary key (company_id, id)
);

create table if not exists api_tokens (
    token_hash       text collate "C" primary key,
    company_id       text collate "C" not null,
    created_at       timestamptz not null default now(),
    id               text collate "C",
    scopes           text not null default 'send,read',
    limit_per_minute integer,
    revoked_at       timestamptz
);

create table if not exists contents (
    hash       text primary key,
    subject    text not null,
    html       text not null,
    text       text not null,
    created_at timestamptz not null default now()
);

create table if not exists campaign_queue (
    id                uuid primary key,
    kind              text not null,
    ref               text not null,
    subject           text not null default '',
    company_id        text not null default 'default',
    list_key          text,
    from_name         text,  -- for recipients who have none of their own
    reply_to          text,  -- null: as REPLY_TO says
    is_test           boolean not null default false,
    is_rehearsal      boolean not null default false,  -- written to a folder: nobody gets it
    status            text not null default 'PENDING'
                      check (status in ('PENDING', 'PROCESSING', 'COMPLETED', 'CANCELLED')),
    outcome           text check (outcome in ('sent', 'failed')),
    priority          integer not null default 0,
    scheduled_at      timestamptz,
    deferred_until    timestamptz,
    defer_reason      text,
    defer_note        text,
    campaign_tag      text,
    send_batch_id     text,
    actor             text,
    content_hash      text references contents (hash),
    locked_by         text,
    locked_at         timestamptz,
    recipients        integer not null default 0,
    pending           integer not null default 0 check (pending >= 0),
    in_flight         integer not null default 0 check (in_flight >= 0),
    sent              integer not null default 0 check (sent >= 0),
    failed            integer not null default 0 check (failed >= 0),
    suppressed        integer not null default 0 check (suppressed >= 0),
    unknown           integer not null default 0 check (unknown >= 0),
    metrics           jsonb not null default '{}',
    transient_pauses  integer not null default 0,
    transient_sent    integer not null default 0,
    acknowledged      jsonb not null default '{}',  -- by a person: what held it, and how it stood then
    freeze_cursor     text collate "C" not null default '',
    freeze_started_at timestamptz,
    created_at        timestamptz not null default now(),
    frozen_at         timestamptz,
    started_at        timestamptz,
    completed_at      timestamptz,
    archived_at       timestamptz,
    archived_to       text,
    retry_plan        jsonb,  -- null: as the process that sends it is set up
    segment           text,   -- whom of its list it is for: a segment's name,
    segment_filter    jsonb,  -- and its filter as it was when the audience was frozen
    snoozed           integer not null default 0,  -- not written to when it was frozen: they asked for a pause
    public            boolean not null default false,
    slug              text,
    published_at      timestamptz,
    unpublished_at    timestamptz,
    constraint campaign_queue_ledger_balances
        check (recipients = pending + in_flight + sent + failed + suppressed + unknown),
    constraint campaign_queue_completes_when_settled
        check (status <> 'COMPLETED' or pending + in_flight = 0),
    constraint campaign_queue_archived_is_over
        check (archived_at is null or (status in ('COMPLETED', 'CANCELLED') and pending + in_flight + unknown = 0))
) with (fillfactor = 50);  -- its counters are written at every step, in place
create index if not exists campaign_queue_open on campaign_queue (status, created_at)
    where status in ('PENDING', 'PROCESSING');
create index if not exists campaign_queue_ref on campaign_queue (ref);
create index if not exists campaign_queue_slug on campaign_queue (slug) where slug is not null;
create index if not exists campaign_queue_content on campaign_queue (content_hash) where content_hash is not null;
comment on column campaign_queue.public is 'Whether it is in the archive on the web; since when, if a person has said so: published_at.';
comment on column campaign_queue.slug is 'Its name in the archive on the web, for good.';
comment on column campaign_queue.archived_at is 'Since then its messages and events are in the archive; the counts here are final.';
comment on column campaign_queue.archived_to is 'Where the archive lies: machine and folder.';

create table if not exists sender_sessions (
    id             uuid primary key default gen_random_uuid(),
    campaign_id    uuid,
    worker         text not null,
    transport      text not null,
    step_no        integer not null default 0,
    lease_until    timestamptz not null,
    stop_requested boolean not null default false,
    opened_at      timestamptz not null,
    closed_at      timestamptz
);
create index if not exists sender_sessions_open on sender_sessions (lease_until) where closed_at is null;

-- One message a row, narrow: the happy path lives in columns, `history` only in what went differently.
create table if not exists email_outbox (
    seq             bigint generated by default as identity primary key,
    id              uuid not null unique,
    campaign_id     uuid,  -- of campaign_queue: triggers hold it, a statement's rows together (a key would check each)
    company_id      text not null default 'default',
    request_id      text,
    recipient_id    text,
    email           text collate "C" not null,
    from_name       text,
    content_id      text references contents (hash),  -- null: the mailout's own
    variables       jsonb,
    state           text not null default 'PENDING',
    attempts        integer not null default 0,
    epoch           integer not null default 0,
    session_id      uuid,
    next_attempt_at timestamptz,
    ses_message_id  text,
    error_code      text,
    error_category  text,
    error_message   text,
    original_code   text,
    dedupe_key      text,
    created_at      timestamptz not null default now(),
    attempt_at      timestamptz,
    sent_at         timestamptz,
    failed_at       timestamptz,
    unknown_at      timestamptz,
    duration_ms     integer,
    charged_hour    text,
    charged_day     text,
    history         jsonb,
    category        text,  -- without a mailout: 'transactional' goes to who unsubscribed, too; all else does not
    reply_to        text,
    headers         jsonb,
    fingerprint     text,
    is_rehearsal    boolean not null default false,
    list_key        text  -- without a mailout: only to who is on this list
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
create index if not exists email_outbox_content on email_outbox (content_id) where content_id is not null;
-- Mails without a mailout share one lane, so that one index serves both.
create index if not exists email_outbox_due
    on email_outbox (coalesce(campaign_id, '00000000-0000-0000-0000-000000000000'::uuid), seq)
    where state in ('PENDING', 'RETRY_SCHEDULED');
create index if not exists email_outbox_doubt on email_outbox (session_id)
    where state in ('SENT_ATTEMPT', 'UNKNOWN');
create index if not exists email_outbox_failed on email_outbox (campaign_id, seq)
    where state in ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN');
create index if not exists email_outbox_campaign on email_outbox (campaign_id, seq);
create index if not exists email_outbox_ses on email_outbox (ses_message_id) where ses_message_id is not null;

-- Seconds since the epoch: the pacer calculates with them.
create table if not exists pace (
    scope     text primary key,
    next_at   double precision not null default 0,
    factor    double precision not null default 1,
    factor_at double precision not null default 0,
    first_day text  -- when an account's warm-up began
) with (fillfactor = 50);

create table if not exists usage (
    scope text collate "C" not null,  -- 'all' or a company
    kind  text collate "C" not null,  -- 'minute', 'hour', 'day'
    key   text collate "C" not null,
    n     integer not null,
    primary key (scope, kind, key)
) with (fillfactor = 50);

create table if not exists provider_quota (
    scope     text primary key,
    available bigint,  -- null: unlimited
    asked_at  timestamptz not null,
    most      bigint
);

create table if not exists switches (
    name  text collate "C" primary key,
    value text not null
);

create table if not exists error_records (
    id          bigint generated by default as identity primary key,
    at          timestamptz not null,
    mailout     text,
    stage       text not null,
    provider    text,
    email       text,
    code        text collate "C" not null,
    message     text not null,
    attempts    integer,
    reported_at timestamptz
);
create index if not exists error_records_mailout on error_records (mailout);
create index if not exists error_records_unreported on error_records (at) where reported_at is null;
comment on column error_records.reported_at is 'When it came into the errors database; null: not yet.';

create table if not exists dead_letters (
    id         uuid primary key default gen_random_uuid(),
    topic      text not null,
    payload    jsonb not null,
    error      text not null,
    created_at timestamptz not null
);

create table if not exists delivery_events (
    id                  text collate "C" primary key,  -- the SNS id, else a hash of SES id, type, recipient and time
    message_id          uuid,
    campaign_id         uuid,
    email               text collate "C",  -- as everywhere: else no index serves what compares the two
    event_type          text not null,
    provider_message_id text,
    detail              jsonb not null default '{}',
    event_at            timestamptz not null
);
create index if not exists delivery_events_message on delivery_events (message_id);

create table if not exists events_inbox (
    id          text collate "C" primary key,
    source      text not null,
    payload     text,  -- gone once applied
    received_at timestamptz not null,
    applied_at  timestamptz,
    error       text
);
create index if not exists events_inbox_received on events_inbox (received_at);
create index if not exists events_inbox_waiting on events_inbox (received_at) where applied_at is null;

create table if not exists campaign_runs (
    id            text primary key,
    campaign_tag  text not null,
    article_key   text not null,
    actor         text not null,
    send_batch_id text not null,
    started_at    timestamptz not null
);

comment on table campaign_queue is 'Mailouts: the single source of truth for why anything waits. Its ledger follows email_outbox by trigger.';
comment on table email_outbox is 'Messages: one mailout for one recipient, with a state. Only steps in state_transitions are possible.';
comment on table contents is 'Rendered subject, HTML and text by their hash.';
comment on table sender_sessions is 'Senders. The id is the fencing token of the protocol.';
comment on table subscriptions is 'Who is on which list.';
comment on column subscriptions.joined_at is 'By a confirmed sign-up or on the preferences'' page; null: by an import.';
comment on table lists is 'What people can subscribe to. general is everybody''s.';
comment on column lists.public is 'Anybody may join by the sign-up page.';
comment on column lists.footer is 'Why readers get it; null: as BRAND_FOOTER says.';
comment on column lists.archive is 'Its letters are public unless one says otherwise.';
comment on column lists.welcome_ref is 'The letter that a new reader gets once.';
comment on table consents is 'Who agreed to which list, when, to which words and on which page.';
comment on table recipients is 'Who a company may write single mails to.';
comment on table api_tokens is 'Hashes of the tokens that may ask for single mails.';
comment on table pace is 'The pacer: when the next attempt of an account may start.';
comment on table usage is 'How many attempts were begun, by minute, hour and day.';
comment on table provider_quota is 'What the provider had left when it was asked.';
comment on column provider_quota.most is 'What the provider allows in 24 hours; null: no limit, or never told.';
comment on table switches is 'What is on for everything: all_paused.';
comment on table error_records is 'What went wrong, for people.';
comment on table dead_letters is 'What could not be delivered after its last attempt.';
comment on table delivery_events is 'What SES reported of a message.';
comment on table events_inbox is 'Events as they arrived, until they are applied.';
comment on table campaign_runs is 'Which article was sent, by whom, in which batch.';
comment on column api_tokens.id is 'The token''s beginning: enough to name it, too little to use it.';
comment on column recipients.external_id is 'The company''s own name for them.';
comment on column email_outbox.fingerprint is 'The same idempotency key must mean the same mail.';
comment on column email_outbox.is_rehearsal is 'Of a message without a mailout: for the folder, never for people.';
comment on column email_outbox.list_key is 'Of a message without a mailout: only to who is on this list when it leaves.';
