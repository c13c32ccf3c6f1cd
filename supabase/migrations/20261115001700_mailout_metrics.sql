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
