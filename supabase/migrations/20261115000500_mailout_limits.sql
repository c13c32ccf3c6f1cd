-- What `step` may begin: as much as the counters and the pacer leave.

-- ── Counters: hours, days, the provider's quota ──

create or replace function mailout_minute(at timestamptz) returns text
language sql immutable set search_path = '' as $$
    select lpad(floor(extract(epoch from at) / 60)::bigint::text, 10, '0')
$$;
comment on function mailout_minute is 'The key of a minute.';

create or replace function mailout_charges(company text, at timestamptz, hour text, day text)
returns table (scope text, kind text, key text)
language sql immutable as $$
    select c.* from (values
        (case when hour like '% rehearsal' then 'rehearsal' else 'all' end, 'minute', mailout_minute(at)),
        ('all', 'hour', hour), ('all', 'day', day), (company, 'hour', hour), (company, 'day', day)
    ) as c (scope, kind, key)
    where c.key is not null
$$;
comment on function mailout_charges is 'The counters that one attempt is charged to; a rehearsal takes nothing from the provider''s quota.';

create or replace function mailout_lock_usage(buckets jsonb, scopes text[], uncharged usage[]) returns void
language plpgsql set search_path = public as $$
declare
    keys usage[] := array(
        select distinct (s.scope collate "C", b.kind collate "C", b.key collate "C", 0)::usage
        from unnest(scopes) as s (scope), jsonb_to_recordset(buckets) as b (kind text, key text)
        where s.scope is not null
        union
        select distinct (u.scope, u.kind, u.key, 0)::usage from unnest(uncharged) u where u.kind <> 'minute'
    );
begin
    if cardinality(keys) = 0 then
        return;
    end if;
    insert into usage select k.scope, k.kind, k.key, 0 from unnest(keys) k order by 1, 2, 3 on conflict do nothing;
    perform 1 from usage u join unnest(keys) k using (scope, kind, key)
    order by u.scope, u.kind, u.key for update of u;
end $$;
comment on function mailout_lock_usage is 'The counters of the hour and the day, locked in key order.';

create or replace function mailout_charge(charges usage[]) returns void
language sql volatile set search_path = public as $$
    insert into usage (scope, kind, key, n)
    select c.scope, c.kind, c.key, sum(c.n) from unnest(charges) c
    group by c.scope, c.kind, c.key having sum(c.n) <> 0 order by c.scope, c.kind, c.key
    on conflict (scope, kind, key) do update set n = usage.n + excluded.n
$$;
comment on function mailout_charge is 'Writes the counters, in key order.';

create or replace function mailout_quota_left(scope text, uncharged usage[] default '{}') returns bigint
language sql stable set search_path = public as $$
    select greatest(0, q.available - coalesce((
        select sum(u.n) from (select * from usage union all select * from unnest(uncharged)) u
        where u.scope = 'all' and u.kind = 'minute' and u.key >= mailout_minute(q.asked_at)), 0))::bigint
    from provider_quota q where q.scope = $1 and q.available is not null
$$;
comment on function mailout_quota_left is 'What the provider had, less what was begun here since it was asked.';

create or replace function mailout_room(
    step jsonb, company text, at timestamptz, uncharged usage[], out room integer, out limited text)
language plpgsql stable set search_path = public as $$
declare
    one record;
    quota bigint := mailout_quota_left(step -> 'pace' ->> 'scope', uncharged);
begin
    room := (step ->> 'want')::integer;
    for one in
        -- What this very step gives back is free again: a limit would end a run short of it otherwise.
        select b.kind, mailout_limit(s.scope, b.kind, b."limit") - coalesce(u.n, 0) - coalesce((
            select sum(c.n) from unnest(uncharged) c
            where c.scope = s.scope and c.kind = b.kind and c.key = b.key), 0) as free
        from rows from (jsonb_to_recordset(step -> 'buckets') as (
                 kind text, key text, starts_at double precision, ends_at double precision, "limit" integer))
             with ordinality as b (kind, key, starts_at, ends_at, "limit", place)
        cross join unnest(array['all', company]) with ordinality as s (scope, place)
        left join usage u on u.scope = s.scope and u.kind = b.kind and u.key = b.key
        where mailout_limit(s.scope, b.kind, b."limit") is not null
          and b.starts_at <= mailout_seconds(at) and mailout_seconds(at) < b.ends_at
        order by b.place, s.place
    loop
        if one.free < room then
            room := greatest(0, one.free);
            limited := one.kind;
        end if;
    end loop;
    if quota < room then
        room := quota;
        limited := 'quota';
    end if;
end $$;
comment on function mailout_room is 'How many more the counters allow, and which of them is the tightest.';

create or replace function mailout_limit(scope text, kind text, for_every integer) returns integer
language plpgsql stable set search_path = public as $$
begin
    return coalesce((select case $2 when 'hour' then c.limit_per_hour when 'day' then c.limit_per_day end
                     from companies c where c.id = $1), $3);
end $$;
comment on function mailout_limit is 'A company''s own limit for an hour or a day, else the one for every company.';

create or replace function mailout_company_room(step jsonb, at timestamptz, uncharged usage[]) returns jsonb
language plpgsql stable set search_path = public as $$
begin
    return (
        select coalesce(jsonb_object_agg(c.scope, c.free), '{}') from (
            select s.scope, greatest(0, min(mailout_limit(s.scope, b.kind, b."limit") - coalesce(u.n, 0) - coalesce((
                select sum(g.n) from unnest(uncharged) g
                where g.scope = s.scope and g.kind = b.kind and g.key = b.key), 0))) as free
            from jsonb_to_recordset(step -> 'buckets') as b (
                     kind text, key text, starts_at double precision, ends_at double precision, "limit" integer)
            cross join lateral (
                select v.scope from usage v where v.kind = b.kind and v.key = b.key and v.scope <> 'all'
                union select m.id from companies m) s
            left join usage u on u.scope = s.scope and u.kind = b.kind and u.key = b.key
            where mailout_limit(s.scope, b.kind, b."limit") is not null
              and b.starts_at <= mailout_seconds(at) and mailout_seconds(at) < b.ends_at
            group by s.scope) c);
end $$;
comment on function mailout_company_room is 'How many more each company may begin; those without an entry: as many as all together.';

-- ── The pacer: seconds ──

create or replace function mailout_reserve(
    state pace, wish jsonb, at double precision, want integer,
    out free integer, out next_at double precision, out gap double precision,
    out told double precision, out told_at double precision)
language plpgsql immutable set search_path = public as $$
declare
    factor double precision;
    rate double precision := wish ->> 'rate';
    size integer := wish ->> 'group';
    starts_at double precision := at + (wish ->> 'lead')::double precision;
    ends_at double precision := starts_at + (wish ->> 'horizon')::double precision;
begin
    factor := least(1.0, state.factor + greatest(0.0, at - state.factor_at) * (wish ->> 'recovery')::double precision);
    told := state.factor;
    told_at := least(state.factor_at, at);
    if (wish ->> 'throttled')::boolean and at - state.factor_at >= 1.0 then  -- one throttled second slows once
        factor := greatest((wish ->> 'slowest')::double precision, factor * (wish ->> 'slower')::double precision);
        told := factor;
        told_at := at;
    end if;
    if rate = 0 and factor = 1.0 then
        free := greatest(0, want);
        next_at := at;
        gap := 0;
        return;
    end if;
    gap := size * (wish ->> 'slack')::double precision
           / (case when rate = 0 then (wish ->> 'unlimited_rate')::double precision else rate end * factor);
    next_at := greatest(state.next_at, starts_at);
    if next_at > ends_at + greatest(2.0, 2 * gap) then
        next_at := starts_at;  -- the store's clock went back
    end if;
    free := greatest(0, least(want, (floor((ends_at - next_at) / gap) + 1) * size));
end $$;
comment on function mailout_reserve is 'Slots start a round trip from now and end within the horizon: mailout.outbox.delivery.pacing.reserve.';

create or replace function mailout_slow_down(wish jsonb, at timestamptz) returns void
language sql volatile set search_path = public as $$
    update pace p set next_at = r.next_at, factor = r.told, factor_at = r.told_at
    from pace q cross join lateral mailout_reserve(q, wish, mailout_seconds(at), 0) r
    where p.scope = q.scope and q.scope = wish ->> 'scope' and (wish ->> 'throttled')::boolean
$$;
comment on function mailout_slow_down is 'A step that begins nothing may still be the one that tells of a throttle.';

