-- Since 0.1.0: what SQLite and Postgres had answered differently. People are found by a name or a value in any case, in
-- every script; a value that shows nothing is none, as for the renderer; what is named twice counts once; a wait is said
-- in minutes rounded up.

create or replace view read_subscribers with (security_invoker = true) as
select s.id::text as id, s.email, s.email_norm, s.status, s.bounce_type, s.bounce_subtype, s.status_updated_at, s.from_name,
       mailout_places(s.ocd_ids) as ocd_ids, mailout_attributes(s.attributes) as attributes, s.created_at, s.left_at, s.complained_at, s.snoozed_until,
       (select coalesce(jsonb_agg(l.list_key order by l.list_key), '[]') from subscriptions l
        where l.email = s.email_norm and l.unsubscribed_at is null) as lists,
       concat_ws(E'\n', s.email_norm, mailout_fold(s.email), mailout_fold(concat_ws(' ', nullif(s.attributes ->> 'name', ''),
           nullif(s.attributes ->> 'first_name', ''), nullif(s.attributes ->> 'last_name', '')))) as searched,
       -- A line each; `general` is everybody's who has not unsubscribed from it.
       E'\n' || case when exists (select 1 from subscriptions g where g.email = s.email_norm and g.list_key = 'general'
                                  and g.unsubscribed_at is not null) then '' else E'general\n' end
           || coalesce((select string_agg(l.list_key, E'\n') || E'\n' from subscriptions l where l.email = s.email_norm
                        and l.unsubscribed_at is null and l.list_key <> 'general'), '') as on_lists
from subscribers s where s.email_norm is not null;
comment on view read_subscribers is 'Subscribers with an address, the lists they are on, and the text that a search looks through.';

create or replace view read_inactive_subscribers with (security_invoker = true) as
select s.id::text as id, s.email, s.email_norm, s.status, s.bounce_type, s.bounce_subtype, s.status_updated_at, s.from_name,
       mailout_places(s.ocd_ids) as ocd_ids, mailout_attributes(s.attributes) as attributes, s.created_at, s.left_at, s.complained_at, s.snoozed_until,
       (select coalesce(jsonb_agg(l.list_key order by l.list_key), '[]') from subscriptions l
        where l.email = s.email_norm and l.unsubscribed_at is null) as lists,
       concat_ws(E'\n', s.email_norm, mailout_fold(s.email), mailout_fold(concat_ws(' ', nullif(s.attributes ->> 'name', ''),
           nullif(s.attributes ->> 'first_name', ''), nullif(s.attributes ->> 'last_name', '')))) as searched,
       -- A line each; `general` is everybody's who has not unsubscribed from it.
       E'\n' || case when exists (select 1 from subscriptions g where g.email = s.email_norm and g.list_key = 'general'
                                  and g.unsubscribed_at is not null) then '' else E'general\n' end
           || coalesce((select string_agg(l.list_key, E'\n') || E'\n' from subscriptions l where l.email = s.email_norm
                        and l.unsubscribed_at is null and l.list_key <> 'general'), '') as on_lists
from subscribers s where s.email_norm is not null and s.status <> 'active';
comment on view read_inactive_subscribers is 'Subscribers who unsubscribed or bounced: they have an index of their own.';

create or replace function mailout_is_blank(written text) returns boolean
language sql immutable parallel safe as $$
    select coalesce(written !~ '[^\u0001-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ue000\ue001]', true)
$$;
comment on function mailout_is_blank is 'Nothing of it is left in a letter: white space as Python has it, control characters, the marks of variables.';

create or replace view read_people_by_attribute with (security_invoker = true) as
select s.*, had.key as attribute, mailout_fold(had.value) as attribute_value
from read_subscribers s cross join lateral jsonb_each_text(s.attributes) as had (key, value) where not mailout_is_blank(had.value);
comment on view read_people_by_attribute is 'Whoever has an attribute, once for each, with its value as text.';

create or replace function mailout_lacking(attribute text, list_key text, segment jsonb default null) returns jsonb
language plpgsql stable set search_path = public set work_mem = '128MB' as $$
declare
    answer jsonb;
begin
    execute 'with lacking as materialized (select s.email_norm from subscribers s where mailout_is_blank(s.attributes ->> $1) and '
        || mailout_audience($2, $3, mailout_now())
        || ') select jsonb_build_object(''attribute'', $1, ''people'', (select count(*) from lacking), ''examples'', coalesce('
           '(select jsonb_agg(e.email_norm order by e.email_norm collate "C")'
           ' from (select * from lacking order by email_norm collate "C" limit 3) e), ''[]''))' into answer using attribute;
    return answer;
end $$;

create or replace function mailout_settle(
    campaign_id text, to_state text, wait double precision, ids jsonb, after bigint, most integer) returns jsonb
language plpgsql set search_path = public as $$
declare
    at timestamptz := mailout_now();
    seqs bigint[] := mailout_chosen($1, 'UNKNOWN', ids, after, most);
    early integer;
    since timestamptz;
    moved integer;
begin
    select count(*), max(o.unknown_at) into early, since from email_outbox o
    where ($1 is null or o.campaign_id = mailout_to_uuid($1)) and o.state = 'UNKNOWN' and to_state = 'PENDING'
      and o.unknown_at > at - make_interval(secs => wait) and ((ids is null and $1 is not null) or o.seq = any(seqs));
    if early > 0 then
        raise exception '% messages became unknown too recently to be sent again.', early
            using errcode = 'PT400', hint = format('Their outcome may still arrive: wait %s minutes more.',
                ceil(extract(epoch from since - at + make_interval(secs => wait)) / 60));
    end if;
    update email_outbox o
    set state = to_state, epoch = o.epoch + 1, unknown_at = null,
        sent_at = case when to_state = 'SENT' then at else o.sent_at end,
        failed_at = case when to_state = 'FAILED' then at else o.failed_at end,
        attempt_at = case when to_state <> 'PENDING' then o.attempt_at end,
        error_code = case when to_state <> 'SENT' then o.error_code end,
        error_category = case when to_state <> 'SENT' then o.error_category end,
        error_message = case when to_state <> 'SENT' then o.error_message end,
        original_code = case when to_state <> 'SENT' then o.original_code end,
        history = mailout_remember(o, at, o.epoch + 1, jsonb_build_object('type', to_state, 'settled', true))
    where o.seq = any(seqs) and o.state = 'UNKNOWN';
    get diagnostics moved = row_count;
    return jsonb_build_object('moved', moved, 'last', (select max(seq) from unnest(seqs) as seq));
end $$;

create or replace function mailout_alerts_hold(keys jsonb, seen_at double precision) returns jsonb
language plpgsql volatile set search_path = public as $$
begin
    lock table alerts in share row exclusive mode;  -- two at once would wait for each other's rows
    update alerts a set ended_at = to_timestamp($2)
    where a.ended_at is null and a.since_at <= to_timestamp($2) and not $1 ? a.key;
    insert into alerts as a (key, since_at)
    select distinct held, to_timestamp($2) from jsonb_array_elements_text($1) as held
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

create or replace function mailout_ask_sign_up(mail jsonb, network text, lists jsonb, day text, limits jsonb, brake_note text)
returns text
language plpgsql volatile set search_path = public as $$
declare
    now constant timestamptz := mailout_now();
    from_there constant bytea := mailout_forgotten_hash('sign-up network ' || network);
    to_whom constant bytea := mailout_forgotten_hash('sign-up address ' || (mail ->> 'email'));
    verdict text;
begin
    perform pg_advisory_xact_lock(hashtext('mailout_ask_sign_up'));
    delete from sign_up_marks m where m.at <= now - interval '1 day';
    -- All of them are counted, whichever decides: each post costs the same.
    select spent.name into verdict from (
        select l.place, l.value ->> 'of' as name, (l.value ->> 'most')::integer as most, (
            select count(*) from sign_up_marks m
            where m.at > now - make_interval(secs => (l.value ->> 'seconds')::double precision)
              and case l.value ->> 'of' when 'network' then m.network = from_there
                                        when 'address' then m.address = to_whom else true end) as n
        from jsonb_array_elements(limits) with ordinality as l (value, place)) spent
    where spent.n >= spent.most order by spent.place limit 1;
    verdict := coalesce(verdict, 'sent');
    if verdict = 'sent' and mailout_accept_single_mail(mail) ->> 'verdict' <> 'accepted' then
        verdict := 'address';  -- the same ask, in the outbox already
    end if;
    if verdict = 'sent' then
        insert into sign_up_marks values (now, from_there, to_whom);
        insert into sign_up_days as d (day, list_key, asked)
        select distinct $4, key, 1 from jsonb_array_elements_text(lists) as list (key) order by 2
        on conflict on constraint sign_up_days_pkey do update set asked = d.asked + 1;
    elsif verdict = 'all' then
        insert into dashboard_notes (name, at, value) values (brake_note, now, '{}')
        on conflict (name) do update set at = excluded.at;
    end if;
    perform mailout_count_sign_up(verdict);
    return verdict;
end $$;

select mailout_finish_migration(14);
