-- Since 0.1.0: what was written by a clock that was ahead holds nothing up once the clock is right: what was asked for
-- is asked for again, and a wait that is longer than its reason can make it is over.

create or replace function mailout_ask(
    ref text, how text, repeat_after double precision, not_before double precision) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    insert into requests (ref, how, asked_at, not_before) values ($1, $2, mailout_now(), to_timestamp($4))
    on conflict (ref, how) do update
    set asked_at = excluded.asked_at, answered_at = null, not_before = excluded.not_before
    where requests.asked_at <= excluded.asked_at - make_interval(secs => $3)
       or requests.asked_at > excluded.asked_at + make_interval(secs => $3)
       or requests.not_before is distinct from excluded.not_before
       or (requests.answered_at is not null and requests.how in ('if_ready', 'article'));
    return found;
end $$;

create or replace function mailout_is_due(q campaign_queue, at timestamptz) returns boolean
language sql immutable set search_path = '' as $$
    select q.status = 'PENDING' and (q.scheduled_at is null or q.scheduled_at <= at)
       and (q.defer_reason is null or coalesce(q.deferred_until <= at or q.deferred_until > at + make_interval(secs =>
            case when q.defer_reason in ('rate_per_hour', 'quota_exhausted', 'transient_errors') then 3900
                 when q.defer_reason in ('daily_limit', 'outside_hours') then 691200 end), false))
$$;

create or replace function mailout_start(id text, worker text) returns jsonb
language plpgsql set search_path = public as $$
declare
    at timestamptz := mailout_now();
begin
    update campaign_queue q
    set status = 'PROCESSING', locked_by = worker, locked_at = at,
        -- One that has sent nothing begins anew: of two copies it is the later one then.
        started_at = case when q.status = 'PENDING' and q.sent + q.unknown + q.in_flight = 0 then at
                          else coalesce(q.started_at, at) end,
        deferred_until = null, defer_reason = null, defer_note = null
    where q.id = mailout_to_uuid($1) and (q.status = 'PROCESSING' or mailout_is_due(q, at));
    return mailout_mailout($1);
end $$;

select mailout_finish_migration(20);
