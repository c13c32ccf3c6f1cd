-- Time, ids, and what holds whoever writes: the table of states and the ledger that follows it.

create or replace function mailout_now() returns timestamptz
language sql volatile set search_path = '' as $$
    select coalesce(
        to_timestamp(nullif(current_setting('mailout.now', true), '')::double precision),
        clock_timestamp()
    )
$$;
comment on function mailout_now is 'The store''s time. A test sets it for its connection: set mailout.now = seconds.';

create or replace function mailout_seconds(moment timestamptz) returns double precision
language sql immutable parallel safe set search_path = '' as $$
    select extract(epoch from moment)::double precision
$$;
comment on function mailout_seconds is 'Seconds since the epoch, as the programs count.';

create or replace function mailout_uuid(variadic parts text[]) returns uuid
language plpgsql immutable parallel safe as $$
declare
    bytes bytea := sha256(convert_to(array_to_string(parts, E'\n'), 'UTF8'));
begin
    bytes := set_byte(set_byte(bytes, 6, get_byte(bytes, 6) & 15 | 128), 8, get_byte(bytes, 8) & 63 | 128);
    return encode(substring(bytes for 16), 'hex')::uuid;
end $$;
comment on function mailout_uuid is 'A UUID version 8 from the SHA-256 of the parts, one a line: the same bytes as mailout.base.ids.uuid_of.';

create or replace function mailout_to_uuid(written text) returns uuid
language sql immutable parallel safe set search_path = '' as $$
    select case when written ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then written::uuid end
$$;
comment on function mailout_to_uuid is 'An id as a program writes it; null if it can be none of ours.';

create table if not exists state_transitions (
    before text not null,
    after  text not null,
    primary key (before, after)
);
comment on table state_transitions is 'The only steps a message can take: TRANSITIONS in mailout/outbox/delivery/states.py.';

delete from state_transitions;
insert into state_transitions (before, after)
select step.before, unnest(step.afters)
from (values
    ('PENDING', array['SENT_ATTEMPT', 'SUPPRESSED', 'VALIDATION_FAILED', 'SENT']),
    ('RETRY_SCHEDULED', array['SENT_ATTEMPT', 'SUPPRESSED', 'SENT']),
    ('SENT_ATTEMPT', array['SENT', 'FAILED', 'RETRY_SCHEDULED', 'UNKNOWN', 'PENDING', 'VALIDATION_FAILED']),
    ('UNKNOWN', array['SENT', 'FAILED', 'RETRY_SCHEDULED', 'PENDING', 'VALIDATION_FAILED']),
    ('FAILED', array['PENDING']),
    ('SENT', array['FAILED'])
) as step (before, afters);

create or replace function mailout_check_begin() returns trigger
language plpgsql as $$
begin
    raise exception 'transition refused: a message begins as PENDING' using errcode = 'PT409';
end $$;
comment on function mailout_check_begin is 'A message begins as PENDING, whoever writes it.';

create or replace function mailout_check_steps() returns trigger
language plpgsql set search_path = public as $$
begin
    if not exists (select 1 from old_rows) then
        return null;  -- a step's statements often move nobody
    end if;
    -- All rows of a statement at once. A row whose seq was changed meets nobody, and is refused, too.
    perform 1 from old_rows o full join new_rows n on n.seq = o.seq
    where o.seq is null or n.seq is null or n.epoch < o.epoch or n.campaign_id is distinct from o.campaign_id
       or (n.state <> o.state and (o.state, n.state) not in (select t.before, t.after from state_transitions t));
    if found then
        raise exception 'transition refused: not in the table of states, or an epoch that falls'
            using errcode = 'PT409';
    end if;
    return null;
end $$;
comment on function mailout_check_steps is 'Only steps of the table, whoever moves a message.';

create or replace function mailout_column(state text) returns text
language sql immutable parallel safe as $$
    select case
        when state in ('PENDING', 'RETRY_SCHEDULED') then 'pending'
        when state = 'SENT_ATTEMPT' then 'in_flight'
        when state = 'SENT' then 'sent'
        when state in ('FAILED', 'VALIDATION_FAILED') then 'failed'
        when state = 'SUPPRESSED' then 'suppressed'
        when state = 'UNKNOWN' then 'unknown'
    end
$$;
comment on function mailout_column is 'What a state counts as in the ledger.';

create or replace function mailout_count_new() returns trigger
language plpgsql set search_path = public as $$
declare
    counted integer;
begin
    update campaign_queue q set recipients = recipients + added.n, pending = pending + added.n
    from (select campaign_id, count(*) as n from new_rows where campaign_id is not null group by 1) added
    where q.id = added.campaign_id;
    get diagnostics counted = row_count;
    if counted <> (select count(distinct campaign_id) from new_rows) then
        raise foreign_key_violation using message = 'a message needs its mailout';
    end if;
    return null;
end $$;
comment on function mailout_count_new is 'The ledger counts new messages; there is none without its mailout.';

create or replace function mailout_keep_campaigns() returns trigger
language plpgsql set search_path = public as $$
begin
    if exists (select 1 from old_rows q join email_outbox o on o.campaign_id = q.id) then
        raise foreign_key_violation using message = 'a mailout that has messages stays';
    end if;
    if exists (select 1 from old_rows q where q.archived_at is not null) then
        raise exception 'transition refused: an archived mailout stays known' using errcode = 'PT409';
    end if;
    return null;
end $$;
comment on function mailout_keep_campaigns is 'A mailout that has messages, here or in an archive, is not deleted.';

create or replace function mailout_keep_ledger() returns trigger
language plpgsql set search_path = public as $$
declare
    campaigns uuid[] := array(select distinct campaign_id from new_rows where campaign_id is not null);
begin
    if campaigns = '{}' then
        return null;
    end if;
    if cardinality(campaigns) > 1 then  -- a single one is locked by its update
        perform 1 from campaign_queue where id = any(campaigns) order by id for update;
    end if;
    -- A completed mailout follows its ledger back into the queue.
    update campaign_queue q set
        pending = q.pending + d.pending, in_flight = q.in_flight + d.in_flight, sent = q.sent + d.sent,
        failed = q.failed + d.failed, suppressed = q.suppressed + d.suppressed, unknown = q.unknown + d.unknown,
        status = case when q.status = 'COMPLETED' and q.pending + d.pending > 0 then 'PENDING' else q.status end,
        completed_at = case when q.status = 'COMPLETED' and q.pending + d.pending > 0 then null else q.completed_at end,
        outcome = case when q.outcome is null or q.pending + d.pending > 0 then null
                       when q.failed + d.failed + q.unknown + d.unknown = 0 then 'sent' else 'failed' end
    from (
        select campaign_id,
               coalesce(sum(n) filter (where column_name = 'pending'), 0) as pending,
               coalesce(sum(n) filter (where column_name = 'in_flight'), 0) as in_flight,
               coalesce(sum(n) filter (where column_name = 'sent'), 0) as sent,
               coalesce(sum(n) filter (where column_name = 'failed'), 0) as failed,
               coalesce(sum(n) filter (where column_name = 'suppressed'), 0) as suppressed,
               coalesce(sum(n) filter (where column_name = 'unknown'), 0) as unknown
        from (
            select campaign_id, mailout_column(state) as column_name, 1 as n from new_rows
            union all
            select campaign_id, mailout_column(state), -1 from old_rows
        ) moved
        group by campaign_id
    ) d
    where q.id = d.campaign_id
      and (d.pending, d.in_flight, d.sent, d.failed, d.suppressed, d.unknown) <> (0, 0, 0, 0, 0, 0);
    if pg_trigger_depth() < 2 then  -- sweeping moves messages, and so comes by here again
        perform mailout_sweep(q.id, 10000) from campaign_queue q
        where q.id = any(campaigns) and q.status = 'CANCELLED' and q.pending > 0;
    end if;
    return null;
end $$;
comment on function mailout_keep_ledger is 'The ledger follows its messages, whoever moves them. Mailouts are locked in id order.';

create or replace function mailout_sweep(campaign uuid, most integer) returns integer
language plpgsql set search_path = public as $$
declare
    swept integer;
begin
    -- Skipping what is locked: whoever holds it either begins it or sweeps in its turn.
    with waiting as (
        select o.seq from email_outbox o
        where coalesce(o.campaign_id, '00000000-0000-0000-0000-000000000000'::uuid) = campaign
          and o.state in ('PENDING', 'RETRY_SCHEDULED')
        order by o.seq limit most for update skip locked
    )
    update email_outbox o
    set state = 'SUPPRESSED', error_message = 'the mailout was cancelled', next_attempt_at = null
    from waiting where o.seq = waiting.seq;
    get diagnostics swept = row_count;
    return swept;
end $$;
comment on function mailout_sweep is 'What waits in a cancelled mailout waits for nothing.';

create or replace trigger email_outbox_begins before insert on email_outbox
    for each row when (new.state <> 'PENDING') execute function mailout_check_begin();
create or replace trigger email_outbox_counted after insert on email_outbox
    referencing new table as new_rows for each statement execute function mailout_count_new();
create or replace trigger campaign_queue_kept after delete on campaign_queue
    referencing old table as old_rows for each statement execute function mailout_keep_campaigns();
-- In the order of their names: what is refused is not counted.
create or replace trigger email_outbox_checked after update on email_outbox
    referencing old table as old_rows new table as new_rows
    for each statement execute function mailout_check_steps();
create or replace trigger email_outbox_ledger after update on email_outbox
    referencing old table as old_rows new table as new_rows
    for each statement execute function mailout_keep_ledger();
