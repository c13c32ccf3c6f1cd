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

create or replace function mailout_letters(
    modes jsonb, statuses jsonb, before_at double precision, before_id text, most integer, kind text) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(page) order by page.created_at desc, page.id desc), '[]')
    from (
        select q.* from campaign_queue q
        where ($3 is null or (q.created_at, q.id) < (to_timestamp($3), mailout_to_uuid($4)))
          and q.status in (select jsonb_array_elements_text($2))
          and case when q.is_test then 'test' when q.is_rehearsal then 'rehearsal' else 'real' end
              in (select jsonb_array_elements_text($1))
          and ($6 is null or q.kind = $6)
        order by q.created_at desc, q.id desc limit most
    ) page
$$;
comment on function mailout_letters is 'One page of mailouts, the newest first.';

create or replace function mailout_messages_to(email text, most integer) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(page) - 'mailout_created_at'
                              order by page.mailout_created_at desc, page.campaign_id desc), '[]')
    from (
        select o.*, q.subject, q.is_test, q.is_rehearsal, q.created_at as mailout_created_at
        from campaign_queue q join email_outbox o on o.id = mailout_uuid(q.id::text, $1) and o.email = $1
        order by q.created_at desc, q.id desc limit most
    ) page
$$;
comment on function mailout_messages_to is 'What one person got of mailouts, found by the ids of the messages.';

create index if not exists email_outbox_single_to on email_outbox (email, seq) where campaign_id is null;
create index if not exists notifications_noted on notifications (noted_at);

create or replace function mailout_single_mails_to(email text, most integer) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(page) order by page.seq desc), '[]')
    from (
        select o.*, c.subject from email_outbox o left join contents c on c.hash = o.content_id
        where o.campaign_id is null and o.email = $1 order by o.seq desc limit most
    ) page
$$;
comment on function mailout_single_mails_to is 'What one person got without a mailout, the newest first.';

create or replace function mailout_notification_states(rehearsal boolean, latest integer) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_object_agg(counted.state, counted.n), '{}')
    from (
        select coalesce(o.state::text, 'REQUEUED') as state, count(*) as n
        from (select message_id from notifications order by noted_at desc limit latest) n
        left join email_outbox o on o.id = n.message_id
        where case when n.message_id is null then not $1 else o.is_rehearsal = $1 end
        group by 1
    ) counted
$$;
comment on function mailout_notification_states is 'How many of the latest notifications are in which state.';

create or replace function mailout_latest_notifications(rehearsal boolean, most integer) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(page) - 'key' order by page.noted_at desc, page.key), '[]')
    from (
        select o.*, c.subject, n.requeues, n.noted_at, n.key
        from notifications n join email_outbox o on o.id = n.message_id left join contents c on c.hash = o.content_id
        where o.is_rehearsal = $1 order by n.noted_at desc, n.key limit most
    ) page
$$;
comment on function mailout_latest_notifications is 'Messages of notifications, the last one that was noted first.';

create or replace function mailout_sent_samples(id text, points integer) returns jsonb
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
comment on function mailout_sent_samples is 'When messages at evenly spaced places of a mailout left.';

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

create or replace function mailout_people_over_time(since text) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(p) order by p.day), '[]') from people_counts p where p.day >= $1
$$;
comment on function mailout_people_over_time is 'The counts of people from a day on.';

create or replace function mailout_over_time(id text) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(jsonb_build_object('at', m.at, 'counts', m.counts) order by m.at), '[]')
    from mailout_counts m where m.campaign_id = mailout_to_uuid($1)
$$;
comment on function mailout_over_time is 'How a mailout stood at each look.';

create or replace function mailout_write_act(who text, what text, about text, at double precision) returns void
language sql volatile set search_path = public as $$
    insert into dashboard_acts (at, who, what, about)
    values (case when $4 > 0 then to_timestamp($4) else mailout_now() end, $1, $2, $3)
$$;
comment on function mailout_write_act is 'Somebody did something on the dashboard.';

create or replace function mailout_acts(most integer) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(jsonb_build_object('who', a.who, 'what', a.what, 'about', a.about, 'at', a.at)
                              order by a.id desc), '[]')
    from (select * from dashboard_acts order by id desc limit most) a
$$;
comment on function mailout_acts is 'The latest acts.';

create table if not exists ended_logins (
    id      text primary key,
    ends_at timestamptz not null
);
comment on table ended_logins is 'Sessions of the dashboard that were signed out of, by a hash, until they would have ended.';

create or replace function mailout_end_login(id text, ends_at double precision) returns void
language sql volatile set search_path = public as $$
    delete from ended_logins e where e.ends_at <= mailout_now();
    insert into ended_logins (id, ends_at) values ($1, to_timestamp($2))
    on conflict (id) do update set ends_at = excluded.ends_at
$$;
comment on function mailout_end_login is 'Somebody signed out of the dashboard.';

create or replace function mailout_login_ended(id text) returns boolean
language sql stable set search_path = public as $$
    select exists (select 1 from ended_logins e where e.id = $1)
$$;
comment on function mailout_login_ended is 'Whether a session of the dashboard was signed out of.';

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
    path     text not null,
    why      text not null,
    n        bigint not null,
    first_at timestamptz not null,
    last_at  timestamptz not null,
    primary key (path, why)
);
comment on table refused_requests is 'What the gateway refused, counted by reason; the latest kinds.';

create table if not exists mailout_runs (
    campaign_id uuid primary key,
    run_id      text not null
);
comment on table mailout_runs is 'Which of Prefect''s flow runs sent a mailout last.';

create or replace function mailout_keep_note(name text, value jsonb) returns void
language sql volatile set search_path = public as $$
    insert into dashboard_notes (name, at, value) values ($1, mailout_now(), $2)
    on conflict (name) do update set at = excluded.at, value = excluded.value
$$;
comment on function mailout_keep_note is 'Keeps a note in place of the one before.';

create or replace function mailout_note(name text) returns jsonb
language sql stable set search_path = public as $$
    select jsonb_build_object('at', mailout_seconds(d.at), 'value', d.value) from dashboard_notes d where d.name = $1
$$;
comment on function mailout_note is 'A note, and when it was made.';

create or replace function mailout_keep_refusals(refused jsonb, most integer) returns void
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    insert into refused_requests as r (path, why, n, first_at, last_at)
    select e.path, e.why, e.n, mailout_now(), mailout_now()
    from jsonb_to_recordset($1) as e (path text, why text, n bigint)
    on conflict (path, why) do update set n = r.n + excluded.n, last_at = excluded.last_at;
    delete from refused_requests d where (d.path, d.why) not in (
        select k.path, k.why from refused_requests k
        order by k.last_at desc, k.path collate "C", k.why collate "C" limit $2);
end $$;
comment on function mailout_keep_refusals is 'Counts refusals by reason, and keeps the latest kinds.';

create or replace function mailout_refusals(most integer) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(page) order by page.last_at desc, page.path collate "C", page.why collate "C"), '[]')
    from (select * from refused_requests r
          order by r.last_at desc, r.path collate "C", r.why collate "C" limit most) page
$$;
comment on function mailout_refusals is 'What was refused, the latest first.';

create or replace function mailout_keep_run(id text, run_id text) returns void
language sql volatile set search_path = public as $$
    insert into mailout_runs (campaign_id, run_id) values (mailout_to_uuid($1), $2)
    on conflict (campaign_id) do update set run_id = excluded.run_id
$$;
comment on function mailout_keep_run is 'Which flow run sends a mailout.';

create or replace function mailout_run_of(id text) returns text
language sql stable set search_path = public as $$
    select r.run_id from mailout_runs r where r.campaign_id = mailout_to_uuid($1)
$$;
comment on function mailout_run_of is 'The flow run that sent a mailout last.';
