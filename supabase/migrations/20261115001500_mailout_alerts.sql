-- What a person is told of, once.

create table if not exists alerts (
    key      text primary key,
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

create or replace function mailout_needing_a_person(held jsonb) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(q) order by q.created_at, q.id::text collate "C"), '[]')
    from campaign_queue q
    where (q.unknown > 0 and q.status <> 'CANCELLED') or (q.status = 'PENDING' and held ? q.defer_reason)
$$;
comment on function mailout_needing_a_person is 'Mailouts that wait for a person, or have messages in doubt. `held`: the reasons that do.';

create or replace function mailout_alert_signs(scope text) returns jsonb
language sql volatile set search_path = public as $$
    select jsonb_build_object(
        'now', mailout_seconds(mailout_now()),
        'quota_most', (select q.most from provider_quota q where q.scope = $1),
        'events_waiting', (select count(*) from events_inbox i where i.applied_at is null),
        'events_waiting_since', (select mailout_seconds(min(i.received_at)) from events_inbox i where i.applied_at is null),
        -- A retry after which nothing left is no sign: of a mailout that SES has told of, most is known.
        'unheard_since', (
            select mailout_seconds(min(s.opened_at))
            from sender_sessions s join campaign_queue q on q.id = s.campaign_id
            where s.transport = 'ses'
              and s.opened_at > coalesce((select max(i.received_at) from events_inbox i), '-infinity')
              and q.sent > 2 * (coalesce((q.metrics ->> 'delivered')::integer, 0)
                                + coalesce((q.metrics ->> 'bounced')::integer, 0))),
        'holding', (select coalesce(jsonb_agg(a.key), '[]') from alerts a where a.ended_at is null))
$$;
comment on function mailout_alert_signs is 'What there is to see besides the mailouts that need a person.';

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

create or replace function mailout_alert_told(key text) returns void
language sql volatile set search_path = public as $$
    update alerts a set failed = 0, told_at = mailout_now() where a.key = $1
$$;
comment on function mailout_alert_told is 'The last try to tell it succeeded.';
