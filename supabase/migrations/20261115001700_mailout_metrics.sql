-- What Prometheus is told.

create table if not exists counters (
    name   text collate "C" not null,
    labels text collate "C" not null,
    value  double precision not null,
    primary key (name, labels)
) with (fillfactor = 50);
comment on table counters is 'What Prometheus is told, as samples: they only grow, whatever is cleared away elsewhere.';
comment on column counters.labels is 'As they stand between the braces.';

create or replace function mailout_add_counts(counts jsonb) returns void
language sql volatile set search_path = public as $$
    -- In key order: two processes that add at the same time wait for each other, and never both.
    insert into counters as known (name, labels, value)
    select c.name, c.labels, c.value
    from jsonb_to_recordset(counts) as c (name text, labels text, value double precision)
    order by c.name collate "C", c.labels collate "C"
    on conflict (name, labels) do update set value = known.value + excluded.value
$$;
comment on function mailout_add_counts is 'Adds what one process has counted.';

create or replace function mailout_counts() returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(c)), '[]') from counters c
$$;
comment on function mailout_counts is 'All that was counted.';

create or replace function mailout_vitals(scope text) returns jsonb
language sql volatile set search_path = public as $$
    with unfinished as (
        select q.status, count(*) as mailouts, sum(q.pending) as pending, sum(q.in_flight) as in_flight,
               sum(q.sent) as sent, sum(q.failed) as failed, sum(q.suppressed) as suppressed, sum(q.unknown) as unknown
        from campaign_queue q where q.status in ('PENDING', 'PROCESSING') group by q.status
    )
    select jsonb_build_object(
        'queue', (select coalesce(jsonb_object_agg(u.status, u.mailouts), '{}') from unfinished u),
        'messages', (select jsonb_build_object(
                         'pending', coalesce(sum(u.pending), 0), 'in_flight', coalesce(sum(u.in_flight), 0),
                         'sent', coalesce(sum(u.sent), 0), 'failed', coalesce(sum(u.failed), 0),
                         'suppressed', coalesce(sum(u.suppressed), 0), 'unknown', coalesce(sum(u.unknown), 0))
                     from unfinished u),
        'oldest_event_at', (select mailout_seconds(min(e.received_at)) from events_inbox e where e.applied_at is null),
        'sessions', (select count(*) from sender_sessions s where s.closed_at is null and s.lease_until > mailout_now()),
        'pace', (select jsonb_build_array(p.next_at, p.factor, p.factor_at) from pace p where p.scope = $1))
$$;
comment on function mailout_vitals is 'How everything stands, from indexes and single rows.';

-- A step tells whom it passed over, and which request a message belongs to.
create or replace function mailout_claim(
    step jsonb, sender sender_sessions, mailout campaign_queue, at timestamptz,
    free integer, first_slot double precision, gap double precision, out rows jsonb, out charges usage[])
language plpgsql set search_path = public as $$
declare
    hour text := mailout_bucket(step, 'hour', at);
    day text := mailout_bucket(step, 'day', at);
begin
    with picked as materialized (
        select o.seq,
               case
                   when not mailout.is_test and not exists (
                       select 1 from subscribers s where s.email_norm = o.email and s.status = 'active')
                       then 'SUPPRESSED'
                   when not mailout.is_test and mailout.list_key is not null and not exists (
                       select 1 from subscriptions l
                       where l.email = o.email and l.list_key = mailout.list_key and l.unsubscribed_at is null)
                       then 'SUPPRESSED'
                   when o.recipient_id is not null and not exists (
                       select 1 from recipients r
                       where r.company_id = o.company_id and r.id = o.recipient_id
                         and r.deleted_at is null and r.email = o.email)
                       then case o.state when 'RETRY_SCHEDULED' then 'SUPPRESSED' else 'VALIDATION_FAILED' end
                   else 'SENT_ATTEMPT'
               end as verdict
        from email_outbox o
        where coalesce(o.campaign_id, '00000000-0000-0000-0000-000000000000'::uuid)
                  = coalesce(sender.campaign_id, '00000000-0000-0000-0000-000000000000'::uuid)
          and o.state in ('PENDING', 'RETRY_SCHEDULED') and o.seq > (step ->> 'cursor')::bigint
          and (o.next_attempt_at is null or o.next_attempt_at <= at)
        order by o.seq limit free for update of o skip locked
    ), suppressed as (
        update email_outbox o
        set state = 'SUPPRESSED', error_message = 'left in the meantime', next_attempt_at = null
        from picked p where o.seq = p.seq and p.verdict = 'SUPPRESSED'
    ), refused as (
        update email_outbox o
        set state = 'VALIDATION_FAILED', error_code = 'RECIPIENT_NOT_FOUND', error_category = 'VALIDATION_ERROR',
            error_message = 'The recipient is not there, or not this company''s.', failed_at = at
        from picked p where o.seq = p.seq and p.verdict = 'VALIDATION_FAILED'
    ), begun as (
        update email_outbox o
        set state = 'SENT_ATTEMPT', epoch = o.epoch + 1, attempts = o.attempts + 1, session_id = sender.id,
            attempt_at = at, charged_hour = hour, charged_day = day, next_attempt_at = null
        from picked p where o.seq = p.seq and p.verdict = 'SENT_ATTEMPT'
        returning o.*
    ), placed as (
        select b.*, row_number() over (order by b.seq) - 1 as place from begun b
    )
    select coalesce(jsonb_agg(jsonb_build_object(
               'id', b.id, 'epoch', b.epoch, 'seq', b.seq, 'number', b.attempts, 'email', b.email,
               'content_id', coalesce(b.content_id, mailout.content_hash), 'campaign_id', b.campaign_id,
               'company_id', b.company_id, 'from_name', b.from_name, 'variables', b.variables,
               'request_id', b.request_id,
               'slot', case when gap > 0 then first_slot + b.place / (step -> 'pace' ->> 'group')::integer * gap end) order by b.seq), '[]'),
           array(select (c.scope, c.kind, c.key, sum(n))::usage
                 from (select company_id, count(*) as n from begun group by company_id) by_company,
                      mailout_charges(company_id, at, hour, day) c
                 group by c.scope, c.kind, c.key)
    into rows, charges
    from placed b;
end $$;

create or replace function mailout_begin(
    step jsonb, sender sender_sessions, mailout campaign_queue, at timestamptz, uncharged usage[]) returns jsonb
language plpgsql set search_path = public as $$
declare
    seconds double precision := mailout_seconds(at);
    room integer;
    limited text;
    slots record;
    rows jsonb;
    charges usage[];
    before campaign_queue;
    passed campaign_queue;
begin
    select r.* into room, limited from mailout_room(step, mailout.company_id, at) r;
    select r.* into slots from pace p
    cross join lateral mailout_reserve(p, step -> 'pace', seconds, least((step ->> 'want')::integer, room)) r
    where p.scope = step -> 'pace' ->> 'scope';
    select * into before from campaign_queue q where q.id = sender.campaign_id;
    select c.rows, c.charges into rows, charges
    from mailout_claim(step, sender, mailout, at, slots.free, slots.next_at, slots.gap) c;
    select * into passed from campaign_queue q where q.id = sender.campaign_id;
    update pace p
    set next_at = slots.next_at
            + ceil(jsonb_array_length(rows)::numeric / (step -> 'pace' ->> 'group')::integer) * slots.gap,
        factor = slots.told, factor_at = slots.told_at,
        first_day = case when rows = '[]' then p.first_day
                         else coalesce(p.first_day, mailout_bucket(step, 'day', at)) end
    where p.scope = step -> 'pace' ->> 'scope';
    perform mailout_charge(charges || uncharged);
    return jsonb_build_object(
        'rows', rows,
        -- The ledger follows the messages within this transaction, and the mailout is ours alone in it.
        'suppressed', coalesce(passed.suppressed - before.suppressed, 0),
        'refused', coalesce(passed.failed - before.failed, 0),
        'limited', case when room = 0 then limited end,
        'next_slot_at', case when room > 0 and slots.free = 0 then slots.next_at end,
        'next_due_at', case when rows = '[]' then mailout_next_due(sender.campaign_id, at) end);
end $$;

create or replace function mailout_schema_version() returns integer
language sql immutable set search_path = '' as $$ select 6 $$;

-- Nobody but the service role, as in mailout_rights.
do $$
declare
    thing text;
    outsider text;
begin
    alter table public.counters enable row level security;
    for thing in
        select 'table public.counters'
        union all
        select 'function ' || p.oid::regprocedure from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.proname in (
            'mailout_add_counts', 'mailout_counts', 'mailout_vitals', 'mailout_claim', 'mailout_begin',
            'mailout_schema_version')
    loop
        execute format('revoke all on %s from public', thing);
        for outsider in select rolname from pg_roles where rolname in ('anon', 'authenticated') loop
            execute format('revoke all on %s from %I', thing, outsider);
        end loop;
        if exists (select 1 from pg_roles where rolname = 'service_role') then
            execute format('grant all on %s to service_role', thing);
        end if;
    end loop;
end $$;
