-- What the dashboard looks back on.

create index if not exists campaign_queue_created on campaign_queue (created_at, id);

create table if not exists people_counts (
    day    text primary key,
    counts jsonb not null
);
comment on table people_counts is 'How many people there are by status and by list (`list:…`), a row a day.';

create table if not exists mailout_counts (
    campaign_id uuid not null,
    at          timestamptz not null,
    counts      jsonb not null,
    primary key (campaign_id, at)
);
comment on table mailout_counts is 'What had become of a mailout by then: a row for each change that a look found.';

create table if not exists dashboard_acts (
    id    bigint generated always as identity primary key,
    at    timestamptz not null,
    who   text not null,
    what  text not null,
    about text not null default ''
);
comment on table dashboard_acts is 'What people did on the dashboard.';

create index if not exists email_outbox_single_to on email_outbox (email, seq) where campaign_id is null;
create index if not exists email_outbox_notifications on email_outbox (seq)
    where campaign_id is null and variables ->> 'tried_once' = 'yes';

create or replace function mailout_sent_over_time(id text, points integer) returns jsonb
language sql stable set search_path = public as $$
    with ends as (
        select (select o.seq from email_outbox o where o.campaign_id = mailout_to_uuid($1) order by o.seq limit 1) as first,
               (select o.seq from email_outbox o where o.campaign_id = mailout_to_uuid($1) order by o.seq desc limit 1) as last
    )
    select jsonb_build_object(
        'sent', (select q.sent from campaign_queue q where q.id = mailout_to_uuid($1)),
        'moments', (select coalesce(jsonb_agg(mailout_seconds(sample.sent_at)) filter (where sample.sent_at is not null), '[]')
                    from ends cross join generate_series(0, points) as place (n)
                    cross join lateral (
                        select o.sent_at from email_outbox o
                        where o.campaign_id = mailout_to_uuid($1)
                          and o.seq >= ends.first + (ends.last - ends.first) * place.n / points
                        order by o.seq limit 1) sample))
$$;
comment on function mailout_sent_over_time is 'When messages at evenly spaced places of a mailout left.';

create or replace function mailout_keep_counts(day text, listed text, events_come_for double precision) returns void
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    insert into people_counts (day, counts)
    select $1, coalesce(jsonb_object_agg(counted.name, counted.n), '{}') from (
        select s.status::text as name, count(*) as n from subscribers s group by s.status
        union all
        select $2 || l.list_key, count(*) from subscriptions l where l.unsubscribed_at is null group by l.list_key
    ) counted
    on conflict (day) do update set counts = excluded.counts;
    insert into mailout_counts (campaign_id, at, counts)
    select q.id, mailout_now(), stands.counts
    from campaign_queue q
    cross join lateral (select jsonb_build_object('sent', q.sent, 'failed', q.failed) || q.metrics as counts) stands
    where not q.is_test and (q.sent > 0 or q.failed > 0)
      and coalesce(q.completed_at, mailout_now()) >= mailout_now() - make_interval(secs => $3)
      and stands.counts is distinct from (
          select m.counts from mailout_counts m where m.campaign_id = q.id order by m.at desc limit 1)
    on conflict (campaign_id, at) do update set counts = excluded.counts;
end $$;
comment on function mailout_keep_counts is 'Write down how many people there are, and how each recent mailout stands.';

create or replace function mailout_write_act(who text, what text, about text, at double precision) returns void
language sql volatile set search_path = public as $$
    insert into dashboard_acts (at, who, what, about)
    values (case when $4 > 0 then to_timestamp($4) else mailout_now() end, $1, $2, $3)
$$;
comment on function mailout_write_act is 'Somebody did something on the dashboard.';

create table if not exists ended_logins (
    id      text collate "C" primary key,
    ends_at timestamptz not null
);
comment on table ended_logins is 'Sessions of the dashboard that were signed out of, and links to sign in that were used, by a hash, until they would have ended.';

create or replace function mailout_end_login(id text, ends_at double precision) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    delete from ended_logins e where e.ends_at <= mailout_now();
    insert into ended_logins (id, ends_at) values ($1, to_timestamp($2)) on conflict (id) do nothing;
    return found;
end $$;
comment on function mailout_end_login is 'Somebody signed out of the dashboard, or used a link to sign in; false: it had ended before.';

create or replace function mailout_requeue_dead_letter(id text) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    insert into events_inbox (id, source, payload, received_at)
    select d.payload->>'inbox_id', d.payload->>'source', d.payload->>'body', mailout_now()
    from dead_letters d where d.id = mailout_to_uuid($1) and d.topic = 'ses-events'
    on conflict (id) do update
    set payload = excluded.payload, applied_at = null, error = null, received_at = excluded.received_at;
    if not found then
        return false;
    end if;
    delete from dead_letters d where d.id = mailout_to_uuid($1);
    return true;
end $$;
comment on function mailout_requeue_dead_letter is 'An event that could not be read goes back into the inbox.';

create table if not exists dashboard_notes (
    name  text primary key,
    at    timestamptz not null,
    value jsonb not null
);
comment on table dashboard_notes is 'What was read elsewhere and is shown with its time: the pages in Notion.';

create table if not exists refused_requests (
    path    text collate "C" not null,
    why     text collate "C" not null,
    n       bigint not null,
    last_at timestamptz not null,
    primary key (path, why)
);
comment on table refused_requests is 'What the gateway refused, counted by reason; the latest kinds.';

create table if not exists mailout_runs (
    campaign_id uuid primary key,
    run_id      text not null
);
comment on table mailout_runs is 'Which of Prefect''s flow runs sent a mailout last.';

create or replace function mailout_keep_written_pages(pages jsonb) returns void
language sql volatile set search_path = public as $$
    insert into dashboard_notes (name, at, value) values ('written_pages', mailout_now(), $1)
    on conflict (name) do update set at = excluded.at, value = excluded.value
$$;
comment on function mailout_keep_written_pages is 'Keeps the pages that were read in place of those before.';

create or replace function mailout_keep_refusals(refused jsonb, most integer) returns void
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    insert into refused_requests as r (path, why, n, last_at)
    select e.path, e.why, e.n, mailout_now()
    from jsonb_to_recordset($1) as e (path text, why text, n bigint)
    on conflict (path, why) do update set n = r.n + excluded.n, last_at = excluded.last_at;
    delete from refused_requests d where (d.path, d.why) not in (
        select k.path, k.why from refused_requests k
        order by k.last_at desc, k.path collate "C", k.why collate "C" limit $2);
end $$;
comment on function mailout_keep_refusals is 'Counts refusals by reason, and keeps the latest kinds.';

create or replace function mailout_keep_run(id text, run_id text) returns void
language sql volatile set search_path = public as $$
    insert into mailout_runs (campaign_id, run_id) values (mailout_to_uuid($1), $2)
    on conflict (campaign_id) do update set run_id = excluded.run_id
$$;
comment on function mailout_keep_run is 'Which flow run sends a mailout.';

