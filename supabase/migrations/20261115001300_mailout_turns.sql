-- The queue's turns: growing pauses, what a person has acknowledged, the same content twice, warm-up.

alter table campaign_queue add column if not exists transient_pauses integer not null default 0;
alter table campaign_queue add column if not exists transient_sent integer not null default 0;
alter table campaign_queue add column if not exists acknowledged jsonb not null default '{}';
create index if not exists campaign_queue_content on campaign_queue (content_hash) where content_hash is not null;
alter table pace add column if not exists first_day text;  -- when an account's warm-up began

create or replace function mailout_defer(id text, reason text, until double precision, note text, held jsonb)
returns jsonb
language plpgsql set search_path = public as $$
begin
    -- A person's hold is never replaced by a mere wait. Pauses after transient errors are counted while nothing is sent.
    update campaign_queue q
    set status = 'PENDING', defer_reason = reason, deferred_until = to_timestamp(until), defer_note = note,
        transient_pauses = case when reason <> 'transient_errors' or q.status = 'PENDING' then q.transient_pauses
                                when q.sent > q.transient_sent then 1 else q.transient_pauses + 1 end,
        transient_sent = case when reason = 'transient_errors' then q.sent else q.transient_sent end
    where q.id = mailout_to_uuid($1) and q.status in ('PENDING', 'PROCESSING')
      and (until is null or q.defer_reason is null or not held ? q.defer_reason);
    return mailout_get($1);
end $$;
comment on function mailout_defer is 'A mailout waits, for a reason. `held`: the reasons that wait for a person.';

create or replace function mailout_resume(id text) returns jsonb
language plpgsql set search_path = public as $$
begin
    update campaign_queue q
    set deferred_until = null, defer_reason = null, defer_note = null,
        acknowledged = q.acknowledged || case q.defer_reason
            when 'reputation' then jsonb_build_object(
                'sent', q.sent,
                'bounced', coalesce((q.metrics ->> 'bounced')::integer, 0),
                'complained', coalesce((q.metrics ->> 'complained')::integer, 0))
            when 'duplicate_content' then jsonb_build_object('duplicate_content', 1)
            else '{}'::jsonb end
    where q.id = mailout_to_uuid($1) and q.status = 'PENDING';
    return mailout_get($1);
end $$;
comment on function mailout_resume is 'It waits for nothing but its turn; what held it for a person is acknowledged.';

create or replace function mailout_release(id text) returns jsonb
language plpgsql set search_path = public as $$
begin
    update campaign_queue q set status = 'PENDING', locked_by = null
    where q.id = mailout_to_uuid($1) and q.status = 'PROCESSING' and not exists (
        select 1 from sender_sessions s
        where s.campaign_id = q.id and s.closed_at is null and s.lease_until > mailout_now());
    return mailout_get($1);
end $$;
comment on function mailout_release is 'Whoever sent it has stopped; nothing changes while another one is sending it.';

create or replace function mailout_same_content(id text, since double precision) returns jsonb
language sql stable set search_path = public as $$
    select to_jsonb(other)
    from campaign_queue this
    join campaign_queue other on other.content_hash = this.content_hash
     and other.list_key is not distinct from this.list_key and other.ref <> this.ref and not other.is_test
    where this.id = mailout_to_uuid($1) and other.status <> 'CANCELLED'
      and (other.status = 'PROCESSING' or other.sent + other.unknown > 0)
      and coalesce(other.completed_at, other.locked_at, other.started_at) >= to_timestamp(since)
      and (other.started_at, other.id) < (coalesce(this.started_at, 'infinity'::timestamptz), this.id)
    order by other.started_at desc, other.id limit 1
$$;
comment on function mailout_same_content is 'The latest real mailout from another page that took the same to the same list, and began first.';

create or replace function mailout_last_turns() returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_object_agg(turn.company_id, mailout_seconds(turn.at)), '{}')
    from (select q.company_id, max(q.locked_at) as at from campaign_queue q
          where q.locked_at is not null group by q.company_id) turn
$$;
comment on function mailout_last_turns is 'When each company last sent.';

create or replace function mailout_begun_since(moment double precision) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(jsonb_build_array(60 * u.key::bigint, u.n) order by u.key), '[]')
    from usage u
    where u.scope = 'all' and u.kind = 'minute' and u.n > 0 and u.key >= mailout_minute(to_timestamp(moment))
$$;
comment on function mailout_begun_since is 'Minutes in which attempts were begun, and how many.';

create or replace function mailout_first_day(scope text) returns text
language sql stable set search_path = public as $$
    select p.first_day from pace p where p.scope = $1
$$;
comment on function mailout_first_day is 'The day on which the first message of an account left.';

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
begin
    select r.* into room, limited from mailout_room(step, mailout.company_id, at) r;
    select r.* into slots from pace p
    cross join lateral mailout_reserve(p, step -> 'pace', seconds, least((step ->> 'want')::integer, room)) r
    where p.scope = step -> 'pace' ->> 'scope';
    select c.rows, c.charges into rows, charges
    from mailout_claim(step, sender, mailout, at, slots.free, slots.next_at, slots.gap) c;
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
        'limited', case when room = 0 then limited end,
        'next_slot_at', case when room > 0 and slots.free = 0 then slots.next_at end,
        'next_due_at', case when rows = '[]' then mailout_next_due(sender.campaign_id, at) end);
end $$;
comment on function mailout_begin is 'As many messages as limits and pacer allow.';

-- ── Nobody but the service role ──

create or replace function mailout_schema_version() returns integer
language sql immutable set search_path = '' as $$ select 2 $$;

do $$
declare
    thing text;
    outsider text;
begin
    for thing in
        select 'function ' || p.oid::regprocedure from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.proname like 'mailout\_%'
    loop
        execute format('revoke all on %s from public', thing);
        -- A plain Postgres has none of these roles.
        for outsider in select rolname from pg_roles where rolname in ('anon', 'authenticated') loop
            execute format('revoke all on %s from %I', thing, outsider);
        end loop;
        if exists (select 1 from pg_roles where rolname = 'service_role') then
            execute format('grant all on %s to service_role', thing);
        end if;
    end loop;
end $$;
