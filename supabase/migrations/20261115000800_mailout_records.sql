-- Contents by hash, errors, dead letters, reports that are due, alerts, counters.

create or replace function mailout_put_content(hash text, subject text, html text, plain text) returns text
language plpgsql set search_path = public as $$
begin
    insert into contents values ($1, $2, $3, $4, mailout_now()) on conflict do nothing;
    return $1;
end $$;
comment on function mailout_put_content is 'Keeps a content, once.';

create or replace function mailout_record_errors(errors jsonb) returns void
language sql volatile set search_path = public as $$
    insert into error_records (at, mailout, stage, provider, email, code, message, attempts)
    select coalesce(to_timestamp(nullif(e.at, 0)), clock.at), e.mailout, e.stage, e.provider, e.email, e.code,
           e.message, e.attempts
    from (select mailout_now() as at) clock,
         rows from (jsonb_to_recordset(errors) as (
             at double precision, mailout text, stage text, provider text, email text, code text, message text,
             attempts integer)) with ordinality
             as e (at, mailout, stage, provider, email, code, message, attempts, place)
    order by e.place
$$;
comment on function mailout_record_errors is 'Writes errors down, for people.';

-- ── What a mailout's page and the errors database have yet to be told ──

create table if not exists page_reports (
    mailout text primary key,
    asked   integer not null default 1,
    told    integer not null default 0
);
comment on table page_reports is 'Whose page has yet to be told how its mailout stands: told runs after asked.';

create or replace function mailout_ask_report(mailout text) returns void
language sql volatile set search_path = public as $$
    insert into page_reports (mailout) values ($1)
    on conflict on constraint page_reports_pkey do update set asked = page_reports.asked + 1
$$;
comment on function mailout_ask_report is 'There is something to tell of a mailout.';

create or replace function mailout_report_made(mailout text, asked integer) returns void
language sql volatile set search_path = public as $$
    update page_reports r set told = greatest(r.told, least($2, r.asked)) where r.mailout = $1
$$;
comment on function mailout_report_made is 'Told, as it was asked for then; what was asked for since stays due.';

create or replace function mailout_errors_reported(numbers jsonb) returns void
language sql volatile set search_path = public as $$
    update error_records e set reported_at = mailout_now()
    from jsonb_array_elements_text(numbers) as number where e.id = number::bigint
$$;
comment on function mailout_errors_reported is 'The errors database has them now.';

-- ── What a person is told of, once ──

create table if not exists alerts (
    key      text collate "C" primary key,
    since_at timestamptz not null,
    ended_at timestamptz,
    tries    integer not null default 0,
    failed   integer not null default 0,
    tried_at timestamptz,
    told_at  timestamptz
);
comment on table alerts is 'What needs a person, and how often it was told. A row stays when it has ended: should it come back, it is told again.';
comment on column alerts.ended_at is 'Null: it lasts.';
comment on column alerts.tries is 'To tell it, ever; failed: those since it was last told.';

create or replace function mailout_alerts_hold(keys jsonb, seen_at double precision) returns jsonb
language plpgsql volatile set search_path = public as $$
begin
    lock table alerts in share row exclusive mode;  -- two at once would wait for each other's rows
    update alerts a set ended_at = to_timestamp($2)
    where a.ended_at is null and a.since_at <= to_timestamp($2) and not $1 ? a.key;
    insert into alerts as a (key, since_at)
    select held, to_timestamp($2) from jsonb_array_elements_text($1) as held
    on conflict on constraint alerts_pkey do update
    set since_at = excluded.since_at, ended_at = null, failed = 0, tried_at = null, told_at = null
    where a.ended_at < excluded.since_at;
    return (
        select coalesce(jsonb_agg(jsonb_build_object(
            'key', a.key, 'since', mailout_seconds(a.since_at), 'tries', a.tries, 'failed', a.failed,
            'tried_at', mailout_seconds(a.tried_at), 'told_at', mailout_seconds(a.told_at))
            order by a.key collate "C"), '[]')
        from alerts a where a.ended_at is null and $1 ? a.key);
end $$;
comment on function mailout_alerts_hold is 'These hold, and no others, as was seen then; who comes late neither ends nor revives any.';

create or replace function mailout_claim_alert(key text, tries integer) returns boolean
language plpgsql volatile set search_path = public as $$
begin
    update alerts a set tries = a.tries + 1, failed = a.failed + 1, tried_at = mailout_now()
    where a.key = $1 and a.tries = $2 and a.ended_at is null;
    return found;
end $$;
comment on function mailout_claim_alert is 'Whether nobody else has tried to tell it meanwhile.';

create or replace function mailout_alert_sent(key text) returns void
language sql volatile set search_path = public as $$
    update alerts a set failed = 0, told_at = mailout_now() where a.key = $1
$$;
comment on function mailout_alert_sent is 'The last try to tell it succeeded.';

-- ── What Prometheus is told ──

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
