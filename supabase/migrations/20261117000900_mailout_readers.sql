-- Since 0.1.0: what readers said stays said, whoever imports, undoes or signs up after it.

create or replace function mailout_undo_import(id text) returns jsonb
language plpgsql volatile set search_path = public set statement_timeout = '60s' as $$
declare
    undone imports;  persons text[];  people integer;  lists integer;
begin
    select * into undone from imports i where i.id = mailout_to_uuid($1) for update;
    if undone.id is null then
        raise exception 'There is no import %.', $1 using errcode = 'PT404',
            hint = '`mailout subscribers undo-import` lists them.';
    end if;
    if undone.undone_at is not null then
        raise exception 'This import was undone already.' using errcode = 'PT400';
    end if;
    if exists (
        select 1 from campaign_queue q
        where not q.is_rehearsal and not q.is_test
          and coalesce(q.completed_at, q.locked_at, q.started_at, q.created_at) >= undone.at
          and (q.archived_at is not null and q.sent > 0  -- its messages are elsewhere: nobody can tell to whom
               or exists (select 1 from email_outbox o join import_people p on p.email = o.email
                          where o.campaign_id = q.id and o.state in ('SENT', 'SENT_ATTEMPT', 'UNKNOWN')
                            and p.import_id = undone.id and (p.list_key in ('', q.list_key)
                                or (q.list_key is null and jsonb_exists(q.segment_filter -> 'lists', p.list_key)))))) then
        raise exception 'People of this import were mailed since.' using errcode = 'PT400',
            hint = 'Unsubscribe who should get no more: `mailout subscribers unsubscribe EMAIL`.';
    end if;
    -- Who has said something since stays: also that they want no mail must not be lost.
    persons := array(
        select p.email from import_people p join subscribers s on s.email_norm = p.email
        where p.import_id = undone.id and p.list_key = '' and s.status = 'active' and s.status_updated_at = s.created_at
          and not exists (
              select 1 from subscriptions l where l.email = p.email
                and (l.unsubscribed_at <> s.created_at or not exists (
                    select 1 from import_people i where i.import_id = undone.id
                      and i.email = l.email and i.list_key = l.list_key)))
        order by p.email for update of s);
    update email_outbox o set state = 'SUPPRESSED', error_message = 'import undone', next_attempt_at = null
    from campaign_queue q
    where o.campaign_id = q.id and q.status in ('PENDING', 'PROCESSING') and o.state in ('PENDING', 'RETRY_SCHEDULED')
      and (o.email = any(persons) or exists (
          select 1 from import_people p
          join subscriptions l on l.email = p.email and l.list_key = p.list_key and l.unsubscribed_at is null
          where p.import_id = undone.id and p.email = o.email
            and (p.list_key = q.list_key or (q.list_key is null and jsonb_exists(q.segment_filter -> 'lists', p.list_key)
                -- Who is on another list of the segment, and not by this import, still gets it.
                and not exists (
                    select 1 from jsonb_array_elements_text(q.segment_filter -> 'lists') as asked (key)
                    where mailout_is_subscribed(o.email, asked.key) and (asked.key = 'general' or not exists (
                        select 1 from import_people i
                        where i.import_id = undone.id and i.email = o.email and i.list_key = asked.key)))))));
    with taken as (
        delete from subscriptions l using import_people p
        where p.import_id = undone.id and p.email = l.email and p.list_key = l.list_key and l.unsubscribed_at is null
        returning l.email)
    select count(*) into lists from taken where taken.email <> all(persons);
    delete from subscribers s where s.email_norm = any(persons);
    get diagnostics people = row_count;
    delete from import_people p where p.import_id = undone.id;
    update imports i set undone_at = mailout_now() where i.id = undone.id;
    return jsonb_build_object('people', people, 'lists', lists,
                              'kept', coalesce((undone.counts ->> 'added')::integer, 0) - people);
end $$;

create or replace function mailout_confirm_sign_up(given jsonb) returns text
language plpgsql volatile set search_path = public as $$
declare
    now constant timestamptz := mailout_now();
    address constant text := given ->> 'email';
    chosen constant text[] := array(select jsonb_array_elements_text(given -> 'lists'));
    fresh text[];
    known subscribers;
    was_active boolean;
begin
    perform pg_advisory_xact_lock(hashtext('mailout_confirm_sign_up ' || address));
    if mailout_complained(address) then
        return 'complained';
    end if;
    fresh := array(
        select distinct key collate "C" from unnest(chosen) as list (key)
        where not exists (select 1 from consents c where c.email = address and c.list_key = key
                          and c.at >= to_timestamp((given ->> 'at')::double precision)) order by 1);
    if fresh = '{}' then
        return case when (
            select count(*) from subscriptions l join subscribers s on s.email_norm = l.email
            where l.email = address and s.status = 'active' and l.unsubscribed_at is null and l.list_key = any(chosen))
            = (select count(distinct key) from unnest(chosen) as list (key)) then 'known' else 'over' end;
    end if;
    -- Whoever asked to join and then left, or had their data erased, has changed their mind.
    if exists (select 1 from subscribers s where s.email_norm = address and s.status = 'unsubscribed'
               and s.left_at > to_timestamp((given ->> 'at')::double precision))
       or exists (select 1 from forgotten f where f.hash = mailout_forgotten_hash(address)
                  and f.at > to_timestamp((given ->> 'at')::double precision))
       or exists (select 1 from delivery_events e where e.email = address and e.event_type = 'unsubscribe'
                  and e.event_at > to_timestamp((given ->> 'at')::double precision)
                  and coalesce(e.detail ->> 'list_key' = any(chosen), true)) then
        return 'over';
    end if;
    delete from forgotten f where f.hash = mailout_forgotten_hash(address);
    -- A row that waited for its punycode is the same subscriber.
    update subscribers s set email_norm = address
    where s.email_problem = 'not_ascii' and mailout_trim(s.email) = given ->> 'written'
      and not exists (select 1 from subscribers other where other.email_norm = address);
    insert into subscribers (email, email_norm, status, status_updated_at, created_at)
    values (given ->> 'written', address, 'unsubscribed', now, now) on conflict (email_norm) do nothing;
    select * into known from subscribers s where s.email_norm = address for update;
    was_active := known.status = 'active';
    update subscribers s
    set confirmed_at = now, snoozed_until = null,
        attributes = case when given ->> 'name' <> '' and coalesce(mailout_attributes(s.attributes) ->> 'name', '') = ''
                          then mailout_attributes(s.attributes) || jsonb_build_object('name', given ->> 'name')
                          else s.attributes end
    where s.id = known.id;
    if not was_active then
        update subscribers s
        set status = 'active', status_updated_at = now, left_at = null, bounce_type = null, bounce_subtype = null,
            hard_status = null, hard_status_at = null
        where s.id = known.id;
    end if;
    delete from import_people i where i.email = address;  -- they speak for themselves now
    delete from desk_unsubscribes d where d.email = address and (d.list_key = '' or d.list_key = any(fresh));
    -- `joined_at` is now for who was not on it: those are new, and welcome. `general` is everybody's, also without a row.
    insert into subscriptions as l (email, list_key, joined_at)
    select address, key, case when not (was_active and key = 'general') then now end from unnest(fresh) as list (key)
    on conflict on constraint subscriptions_pkey do update set unsubscribed_at = null,
        joined_at = case when was_active and l.unsubscribed_at is null then l.joined_at else now end;
    if not was_active then
        insert into subscriptions (email, list_key, unsubscribed_at)
        select address, other.key, now from (select t.key from lists t union select 'general') other
        where other.key <> all(chosen) order by 2 on conflict do nothing;
        update subscriptions l set unsubscribed_at = now
        where l.email = address and l.unsubscribed_at is null and l.list_key <> all(chosen);
    end if;
    insert into consents (email, list_key, at, wording, source)
    select address, key, now, given ->> 'wording', given ->> 'page' from unnest(fresh) as list (key)
    on conflict do nothing;
    insert into sign_up_days as d (day, list_key, confirmed)
    select given ->> 'day', key, 1 from unnest(fresh) as list (key)
    on conflict on constraint sign_up_days_pkey do update set confirmed = d.confirmed + 1;
    perform mailout_count_sign_up('joined');
    return 'joined';
end $$;

create or replace function mailout_bounced_for_good(address text) returns boolean
language plpgsql stable set search_path = public
set enable_seqscan = off  -- as for mailout_complained
as $$
begin
    return exists (select 1 from delivery_events e where e.email = address and e.event_type = 'bounce'
                   and e.detail ->> 'bounceType' = 'Permanent')
        or exists (select 1 from erased_feedback f where f.hash = mailout_forgotten_hash(address) and f.what = 'bounce');
end $$;
comment on function mailout_bounced_for_good is 'Mail to this address bounced permanently once, as far as events tell.';

create or replace function mailout_import_subscribers(people jsonb, own_sign_up boolean, for_import text default null)
returns jsonb
language plpgsql set search_path = public as $$
declare
    at timestamptz := mailout_now();
    counts jsonb;
    given_to_us constant integer := jsonb_array_length(people);
begin
    if own_sign_up then
        delete from forgotten f using jsonb_array_elements(people) one (person)
        where f.hash = mailout_forgotten_hash(person ->> 'email_norm');
        update subscribers s set status = 'active', status_updated_at = at, left_at = null
        from jsonb_to_recordset(people) as given (email_norm text)
        where s.email_norm = given.email_norm and s.status = 'unsubscribed' and s.complained_at is null;
        update subscribers s set snoozed_until = null
        from jsonb_to_recordset(people) as given (email_norm text)
        where s.email_norm = given.email_norm and s.snoozed_until is not null;
        update subscriptions l set unsubscribed_at = null
        from jsonb_to_recordset(people) as given (email_norm text, lists jsonb)
        where l.email = given.email_norm and given.lists ? l.list_key;
        delete from desk_unsubscribes d using jsonb_to_recordset(people) as given (email_norm text, lists jsonb)
        where d.email = given.email_norm and (d.list_key = '' or given.lists ? d.list_key);
    elsif exists (select 1 from forgotten) then
        people := coalesce((
            select jsonb_agg(person order by place)
            from jsonb_array_elements(people) with ordinality as one (person, place)
            where not exists (
                select 1 from forgotten f where f.hash = mailout_forgotten_hash(person ->> 'email_norm'))), '[]');
    end if;
    -- Who was added by another import and comes again is nobody's to take back.
    delete from import_people i
    using jsonb_to_recordset(people) as given (email_norm text, lists jsonb)
    where i.email = given.email_norm and (i.list_key = '' or given.lists ? i.list_key)
      and i.import_id is distinct from for_import::uuid;
    -- A row that waited for its punycode is the same subscriber.
    update subscribers s set email_norm = given.email_norm
    from jsonb_to_recordset(people) as given (email text, email_norm text)
    where s.email_problem = 'not_ascii' and mailout_trim(s.email) = given.email
      and not exists (select 1 from subscribers other where other.email_norm = given.email_norm);
    with given as (
        select * from jsonb_to_recordset(people) as r (
            email text, email_norm text, status text, from_name text, bounce_type text, bounce_subtype text,
            ocd_ids jsonb, attributes jsonb, lists jsonb, left_lists jsonb, complained boolean, statuses jsonb)
    ), known as (
        select s.* from subscribers s where s.email_norm in (select g.email_norm from given g)
        order by s.email_norm for update
    ), merged as (
        select g.email_norm, wins,
               case when wins then g.status else s.status end as status,
               case when wins then coalesce(nullif(g.bounce_type, ''), s.bounce_type)
                    else s.bounce_type end as bounce_type,
               case when wins then coalesce(nullif(g.bounce_subtype, ''), s.bounce_subtype)
                    else s.bounce_subtype end as bounce_subtype,
               coalesce(nullif(g.from_name, ''), s.from_name) as from_name,
               case when g.ocd_ids <> '[]' then g.ocd_ids else s.ocd_ids end as ocd_ids,
               mailout_attributes(s.attributes) || g.attributes as attributes,
               coalesce(s.complained_at, case when g.complained then at end) as complained_at
        from given g join known s on s.email_norm = g.email_norm
        cross join lateral (select mailout_rank(g.status) >= mailout_rank(s.status) as wins) compared
    ), updated as (
        update subscribers s
        set status = m.status, bounce_type = m.bounce_type, bounce_subtype = m.bounce_subtype,
            from_name = m.from_name, ocd_ids = m.ocd_ids, attributes = m.attributes, complained_at = m.complained_at,
            status_updated_at = case when m.status = s.status then s.status_updated_at else at end
        from merged m
        where s.email_norm = m.email_norm
          and (m.status, m.bounce_type, m.bounce_subtype, m.from_name, m.ocd_ids, m.attributes, m.complained_at)
              is distinct from
              (s.status, s.bounce_type, s.bounce_subtype, s.from_name, s.ocd_ids, s.attributes, s.complained_at)
        returning s.email_norm
    ), added as (
        insert into subscribers (email, email_norm, status, bounce_type, bounce_subtype, status_updated_at,
                                 from_name, ocd_ids, attributes, created_at, complained_at)
        select g.email, g.email_norm,
               case when told.bounced then 'bounced' when told.complained and g.status = 'active' then 'unsubscribed' else g.status end,
               case when told.bounced then coalesce(g.bounce_type, 'Permanent') else g.bounce_type end, g.bounce_subtype, at,
               g.from_name, g.ocd_ids, g.attributes, at, case when told.complained then at end
        from given g cross join lateral (
            select coalesce(g.complained, false) or mailout_complained(g.email_norm) as complained, mailout_bounced_for_good(g.email_norm) as bounced) told
        where not exists (select 1 from known s where s.email_norm = g.email_norm)
        order by g.email_norm
        returning email_norm, status
    ), joined as (  -- who has left a list stays off it: only they themselves may come back
        insert into subscriptions (email, list_key, unsubscribed_at)
        select g.email_norm, list.key, null::timestamptz from given g, jsonb_array_elements_text(g.lists) as list (key)
        union all select g.email_norm, list.key, at from given g, jsonb_array_elements_text(g.left_lists) as list (key)
        order by 1, 2, 3 on conflict do nothing
        returning email, list_key
    ), gone as (  -- who is on it by their own act stays: the file may be older
        update subscriptions l set unsubscribed_at = at from given g
        where l.email = g.email_norm and g.left_lists ? l.list_key and l.unsubscribed_at is null and l.joined_at is null
        returning l.email
    ), noted as (  -- what is new is this import's, so that it can be undone
        insert into import_people (email, list_key, import_id)
        select new.email, new.list_key, for_import::uuid
        from (select email_norm as email, '' as list_key from added union all select email, list_key from joined) new
        where for_import is not null
        on conflict (email, list_key) do update set import_id = excluded.import_id
    ), changed as (
        select email_norm from updated union select email from joined union select email from gone
        except select email_norm from added
    )
    select jsonb_build_object(
        'added', (select count(*) from added),
        'updated', (select count(*) from changed),
        'unchanged', (select count(*) from given) - (select count(*) from added) - (select count(*) from changed),
        'kept_status', (
            select count(*) from given g cross join lateral jsonb_array_elements_text(g.statuses) as said (status)
            left join merged m on m.email_norm = g.email_norm
            left join added a on a.email_norm = g.email_norm
            where said.status <> coalesce(m.status, a.status, g.status)),
        'stayed_off', (select count(distinct g.email_norm) from given g join subscriptions l on l.email = g.email_norm
                       where l.unsubscribed_at is not null and g.lists ? l.list_key),
        'forgotten', given_to_us - jsonb_array_length(people)
    ) into counts;
    delete from desk_unsubscribes d using jsonb_to_recordset(people) as g (email_norm text, status text)
    where d.email = g.email_norm and g.status <> 'active';
    perform mailout_raise_hard_status(g.email_norm, g.status)
    from jsonb_to_recordset(people) as g (email_norm text, status text) where g.status <> 'active';
    perform mailout_count_import(for_import::uuid, counts);
    return counts;
end $$;

create or replace function mailout_is_subscribed(address text, list_key text) returns boolean
language sql stable set search_path = public as $$
    select exists (select 1 from subscribers s where s.email_norm = address
                   and case when $2 is null then s.status = 'active' else coalesce((
                       select l.unsubscribed_at is null from subscriptions l
                       where l.email = address and l.list_key = $2), $2 = 'general') end)  -- which is everybody's
$$;
comment on function mailout_is_subscribed is 'To a list, or (null) to anything.';

create or replace function mailout_ended_by_hand(address text, list_key text) returns boolean
language sql stable set search_path = public as $$
    select exists (select 1 from desk_unsubscribes d where d.email = address and d.list_key = coalesce($2, ''))
       and not mailout_is_subscribed(address, $2)
$$;
comment on function mailout_ended_by_hand is 'By somebody at the dashboard, and so it stands.';

create or replace function mailout_unsubscribe(address text, list_key text, message_id text default null) returns boolean
language plpgsql set search_path = public as $$
declare
    message email_outbox;
    recorded record;
begin
    if exists (select 1 from forgotten f where f.hash = mailout_forgotten_hash(address))
       and not exists (select 1 from subscribers s where s.email_norm = address) then
        return false;  -- an old letter's link must not write their address down again
    end if;
    -- They unsubscribe, too: the dashboard does not undo that, nor they what the dashboard did before.
    delete from desk_unsubscribes d where d.email = address and (d.list_key = coalesce($2, '') or $2 is null)
      and mailout_is_subscribed(address, nullif(d.list_key, ''));
    update desk_unsubscribes d set at = to_timestamp(0)
    where d.email = address and (d.list_key = coalesce($2, '') or $2 is null);
    if list_key is null then
        insert into subscribers (email, email_norm, status, status_updated_at, created_at)
        values (address, address, 'unsubscribed', mailout_now(), mailout_now())
        on conflict (email_norm) do nothing;
        -- `left_at` is for who was active: a word that we do not know is not made active by taking this back.
        update subscribers s set status = 'unsubscribed', status_updated_at = mailout_now(),
            left_at = case when s.status = 'active' then mailout_now() end
        where s.email_norm = address and coalesce(s.status, '') not in ('unsubscribed', 'bounced');
        -- Soft bounces may be taken back; an unsubscribe stays.
        update subscribers s set hard_status = 'unsubscribed', hard_status_at = mailout_now(),
            left_at = case when s.hard_status = 'active' then mailout_now() end
        where s.email_norm = address and s.hard_status <> 'unsubscribed';
    else
        insert into subscriptions as l (email, list_key, unsubscribed_at) values (address, $2, mailout_now())
        on conflict on constraint subscriptions_pkey
        do update set unsubscribed_at = coalesce(l.unsubscribed_at, excluded.unsubscribed_at);
    end if;
    if $3 is null then
        -- The message that was most likely answered: its id follows from its mailout and the address.
        select o.* into message from campaign_queue q join email_outbox o on o.id = mailout_uuid(q.id::text, address)
        where (q.list_key is not distinct from $2 or (q.list_key is null and $2 = 'general'))
          and o.state = 'SENT' order by o.sent_at desc limit 1;
    else
        -- The message whose link was followed. One that is archived has no count that could still move.
        select o.* into message from email_outbox o where o.id = $3::uuid and o.email = address;
        message.id := $3::uuid;
    end if;
    select * into recorded from mailout_record_event(message, jsonb_build_object(
        'id', mailout_uuid('unsubscribe', address, coalesce($2, ''), coalesce(message.id::text, '')),
        'type', 'unsubscribe', 'at', mailout_seconds(mailout_now()), 'email', address, 'ses_message_id', message.ses_message_id,
        'detail', jsonb_strip_nulls(jsonb_build_object('list_key', $2))));
    if recorded.first and message.campaign_id is not null then
        perform mailout_count_event(message.campaign_id, 'unsubscribed', 1);
    end if;
    return mailout_may_return(address, $2) and not mailout_ended_by_hand(address, $2)
       and not mailout_left_before(address, $2, mailout_now() - interval '1 day');
end $$;

create or replace function mailout_choose(address text, choice jsonb) returns boolean
language plpgsql volatile set search_path = public as $$
declare
    at timestamptz := mailout_now();
begin
    perform 1 from subscribers s
    where s.email_norm = address and s.status = 'active' and s.complained_at is null for update;
    if not found then
        return false;
    end if;
    update subscribers s set
        snoozed_until = case
            when choice ->> 'snooze_seconds' is null then s.snoozed_until
            when (choice ->> 'snooze_seconds')::double precision > 0
                then at + make_interval(secs => (choice ->> 'snooze_seconds')::double precision) end,
        attributes = case
            when choice ->> 'language' is null then s.attributes
            when choice ->> 'language' = '' then mailout_attributes(s.attributes) - 'language'
            else mailout_attributes(s.attributes) || jsonb_build_object('language', choice -> 'language') end
    where s.email_norm = address;
    with joined as (
        insert into subscriptions as l (email, list_key, joined_at)
        select address, one.key, at from jsonb_each_text(choice -> 'joins') one order by one.key
        on conflict on constraint subscriptions_pkey
        do update set unsubscribed_at = null, joined_at = excluded.joined_at where l.unsubscribed_at is not null
        returning l.list_key)
    insert into consents (email, list_key, at, wording, source)
    select address, j.list_key, at, choice -> 'joins' ->> j.list_key, choice ->> 'source' from joined j
    on conflict on constraint consents_pkey do update set wording = excluded.wording, source = excluded.source;
    delete from desk_unsubscribes d where d.email = address and jsonb_exists(choice -> 'joins', d.list_key);
    -- They have spoken for themselves: no import has them to take back any more.
    delete from import_people i where i.email = address;
    return true;
end $$;

create or replace function mailout_resubscribe(address text, list_key text, within double precision default null)
returns boolean language plpgsql set search_path = public as $$
declare
    one record;
    left_at timestamptz;
    too_old constant timestamptz := mailout_now() - make_interval(secs => within);
begin
    perform 1 from subscribers s where s.email_norm = address for update;
    if not mailout_may_return(address, list_key) or mailout_left_before(address, list_key, too_old) then
        return false;
    end if;
    -- What somebody at the dashboard did is not theirs to take back.
    if mailout_ended_by_hand(address, $2) then
        return false;
    end if;
    delete from desk_unsubscribes d where d.email = address and d.list_key = coalesce($2, '');
    delete from import_people i where i.email = address;  -- they have spoken for themselves
    if list_key is null then
        select s.left_at into left_at from subscribers s where s.email_norm = address;
        update subscribers s set status = 'active', status_updated_at = mailout_now(), left_at = null
        where s.email_norm = address and s.status = 'unsubscribed';
    else
        select l.unsubscribed_at into left_at from subscriptions l where l.email = address and l.list_key = $2;
        update subscriptions l set unsubscribed_at = null where l.email = address and l.list_key = $2;
    end if;
    -- It was a mistake: the mailouts that counted it do so no more. An earlier one, after which they came back,
    -- was none; and a message that another unsubscribe answers stays counted. (Times were rounded on their way.)
    for one in delete from delivery_events e
               where e.email = address and e.event_type = 'unsubscribe' and e.detail->>'list_key' is not distinct from $2
                 and e.event_at >= left_at - interval '1 millisecond'
               returning e.campaign_id, e.message_id loop
        if not exists (select 1 from delivery_events e
                       where e.message_id = one.message_id and e.event_type = 'unsubscribe') then
            perform mailout_count_event(one.campaign_id, 'unsubscribed', -1);
        end if;
    end loop;
    return true;
end $$;

create or replace function mailout_undo_unsubscribe(address text, list_key text, within double precision) returns boolean
language plpgsql set search_path = public as $$
begin
    delete from desk_unsubscribes d
    where d.email = address and d.list_key = coalesce($2, '') and d.at > mailout_now() - make_interval(secs => within);
    if not found then
        return false;
    end if;
    return mailout_resubscribe(address, $2);
end $$;

create or replace function mailout_unsubscribe_by_hand(address text, list_key text) returns boolean
language plpgsql set search_path = public as $$
begin
    perform 1 from subscribers s where s.email_norm = address for update;
    if not mailout_is_subscribed(address, $2) then
        return false;
    end if;
    perform mailout_unsubscribe(address, $2);
    insert into desk_unsubscribes (email, list_key, at) values (address, coalesce($2, ''), mailout_now())
    on conflict on constraint desk_unsubscribes_pkey do update set at = excluded.at;
    return true;
end $$;

create or replace function mailout_claim(
    step jsonb, sender sender_sessions, mailout campaign_queue, at timestamptz, companies jsonb,
    free integer, first_slot double precision, gap double precision,
    out rows jsonb, out charges usage[], out suppressed integer, out refused integer)
language plpgsql set search_path = public as $$
declare
    hour text := mailout_bucket(step, 'hour', at);
    day text := mailout_bucket(step, 'day', at);
    due bigint[];
begin
    if sender.campaign_id is null then
        due := mailout_due_in_turn(
            at, sender.transport = 'folder', mailout_full(companies) || mailout_paused_companies(), free);
    else
        due := array(
            select o.seq from email_outbox o
            where coalesce(o.campaign_id, '00000000-0000-0000-0000-000000000000'::uuid) = sender.campaign_id
              and o.state in ('PENDING', 'RETRY_SCHEDULED') and o.seq > (step ->> 'cursor')::bigint
              and (o.next_attempt_at is null or o.next_attempt_at <= at)
            order by o.seq limit free for update skip locked);
    end if;
    with picked as materialized (
        select o.seq, o.company_id, array_position(due, o.seq) as place,
               case
                   -- Without a mailout the recipient need not be a subscriber, but must not have left. Of who is
                   -- none, what came back is known from the events alone.
                   when sender.campaign_id is null and case when o.category = 'confirmation' then mailout_complained(o.email)
                       else coalesce(
                       case when s.email_norm is not null then s.status = 'bounced' or s.complained_at is not null
                            or (s.status <> 'active' and o.category is distinct from 'transactional') end,
                       exists (
                           select 1 from delivery_events e
                           where e.email = o.email and (e.event_type = 'spamreport'
                               or (e.event_type = 'bounce' and e.detail ->> 'bounceType' = 'Permanent')))
                       or exists (select 1 from erased_feedback f where f.hash = mailout_forgotten_hash(o.email))
                       or (o.category is distinct from 'transactional' and exists (
                           select 1 from forgotten f where f.hash = mailout_forgotten_hash(o.email)))) end
                       then 'SUPPRESSED'
                   when sender.campaign_id is null and o.list_key is not null and not exists (
                       select 1 from subscriptions l
                       where l.email = o.email and l.list_key = o.list_key and l.unsubscribed_at is null)
                       then 'SUPPRESSED'
                   when not mailout.is_test and s.status is distinct from 'active' then 'SUPPRESSED'
                   -- `general` is everybody's, and what has no list is general: only who has left it is not on it.
                   when not mailout.is_test and coalesce(mailout.list_key, 'general') = 'general' and exists (
                       select 1 from subscriptions l
                       where l.email = o.email and l.list_key = 'general' and l.unsubscribed_at is not null)
                       -- Without a list of its own it is also for those on a list that its segment asks for.
                       and not (mailout.list_key is null and mailout.segment_filter is not null and exists (
                           select 1 from subscriptions l where l.email = o.email and l.unsubscribed_at is null
                             and jsonb_exists(mailout.segment_filter -> 'lists', l.list_key)))
                       then 'SUPPRESSED'
                   when not mailout.is_test and mailout.list_key <> 'general' and not exists (
                       select 1 from subscriptions l
                       where l.email = o.email and l.list_key = mailout.list_key and l.unsubscribed_at is null)
                       then 'SUPPRESSED'
                   -- Who was taken off a list that its segment asks for since it was planned, and is on no other of them.
                   when not mailout.is_test and mailout.list_key is null and mailout.segment_filter -> 'lists' <> '[]' and exists (
                       select 1 from subscriptions l where l.email = o.email and l.unsubscribed_at >= o.created_at
                         and jsonb_exists(mailout.segment_filter -> 'lists', l.list_key))
                       and not exists (
                           select 1 from subscriptions l where l.email = o.email and l.unsubscribed_at is null
                             and jsonb_exists(mailout.segment_filter -> 'lists', l.list_key))
                       and not (jsonb_exists(mailout.segment_filter -> 'lists', 'general') and not exists (
                           select 1 from subscriptions l
                           where l.email = o.email and l.list_key = 'general' and l.unsubscribed_at is not null))
                       then 'SUPPRESSED'
                   when not mailout.is_test and s.snoozed_until > at then 'SNOOZED'
                   when o.recipient_id is not null and not exists (
                       select 1 from recipients r
                       where r.company_id = o.company_id and r.id = o.recipient_id
                         and r.deleted_at is null and r.email = o.email)
                       then case o.state when 'RETRY_SCHEDULED' then 'SUPPRESSED' else 'VALIDATION_FAILED' end
                   else 'SENT_ATTEMPT'
               end as verdict
        from email_outbox o left join subscribers s on s.email_norm = o.email
        where o.seq = any(due) and o.state in ('PENDING', 'RETRY_SCHEDULED')
        for update of o skip locked
    ), within as (  -- of each company, as many as it has left
        select p.seq, p.place from (
            select q.seq, q.place, (companies ->> q.company_id)::bigint as most,
                   row_number() over (partition by q.company_id order by q.place) as nth
            from picked q where q.verdict = 'SENT_ATTEMPT') p
        where p.most is null or p.nth <= p.most
    ), left_out as (
        update email_outbox o
        set state = 'SUPPRESSED', next_attempt_at = null,
            error_message = case p.verdict when 'SNOOZED' then 'asked for a pause' else 'no longer subscribed' end
        from picked p where o.seq = p.seq and p.verdict in ('SUPPRESSED', 'SNOOZED')
    ), turned_down as (
        update email_outbox o
        set state = 'VALIDATION_FAILED', attempts = o.attempts + 1, attempt_at = at,
            error_code = 'RECIPIENT_NOT_FOUND', error_category = 'VALIDATION_ERROR',
            error_message = 'The recipient is not there, or not this company''s.', failed_at = at
        from picked p where o.seq = p.seq and p.verdict = 'VALIDATION_FAILED'
    ), begun as (
        update email_outbox o
        set state = 'SENT_ATTEMPT', epoch = o.epoch + 1, attempts = o.attempts + 1, session_id = sender.id,
            attempt_at = at, charged_hour = hour, charged_day = day, next_attempt_at = null
        from within w where o.seq = w.seq
        returning o.*, w.place as turn
    ), placed as (
        select b.*, row_number() over (order by b.turn) - 1 as place from begun b
    ), had_turn as (
        insert into single_turns (company_id, last_at)
        select distinct b.company_id, at from begun b where sender.campaign_id is null
        order by b.company_id on conflict (company_id) do update set last_at = excluded.last_at
    )
    -- By their places: names would be most of what is written, sent and read. `adapters/supabase/codec.py` reads them.
    select coalesce(jsonb_agg(jsonb_build_array(
               b.id, b.epoch, b.seq, b.attempts, b.email, coalesce(b.content_id, mailout.content_hash),
               b.campaign_id, b.company_id, b.from_name, b.variables,
               case when gap > 0 then first_slot + b.place / (step -> 'pace' ->> 'group')::integer * gap end,
               case when coalesce(b.request_id, b.category, b.reply_to, b.headers::text, b.list_key) is not null then
                   jsonb_build_array(b.request_id, b.category, b.reply_to, b.headers, b.list_key) end) order by b.place), '[]'),
           array(select (c.scope, c.kind, c.key, sum(n))::usage
                 from (select company_id, count(*) as n from begun group by company_id) by_company,
                      mailout_charges(company_id, at, hour, day) c
                 group by c.scope, c.kind, c.key),
           (select count(*) from picked p where p.verdict in ('SUPPRESSED', 'SNOOZED')),
           (select count(*) from picked p where p.verdict = 'VALIDATION_FAILED')
    into rows, charges, suppressed, refused
    from placed b;
end $$;

-- A pause that is over when a letter is planned for keeps nobody out of it: claiming asks once more.
create or replace function mailout_freeze_subscribers(id text, chunk integer, attributes jsonb default '[]') returns integer
language plpgsql set search_path = public as $$
declare
    at timestamptz := mailout_now();
    mailout campaign_queue;
    filter jsonb;
    last_email text;
    added integer;
begin
    perform mailout_mailout($1);
    -- Whoever is there when it begins, also if the clock has gone back since they came.
    update campaign_queue q set freeze_started_at = coalesce(
        q.freeze_started_at, greatest(at, (select max(s.created_at) from subscribers s)))
    where q.id = mailout_to_uuid($1) returning * into mailout;
    if mailout.frozen_at is not null or mailout.status = 'CANCELLED' then
        return null;
    end if;
    if mailout.segment is not null then  -- taken together with the first part of the audience
        filter := coalesce(mailout.segment_filter, mailout_take_segment(mailout));
        mailout.segment_filter := filter;
    end if;
    -- Everybody (`general`), whoever is on the list, or a segment: two of the three are empty at no cost.
    with part as materialized (
        (select s.email_norm, s.from_name, s.attributes from subscribers s
         where filter is null and coalesce(mailout.list_key, 'general') = 'general' and s.status = 'active'
           and s.email_norm > mailout.freeze_cursor
           and (s.created_at is null or s.created_at <= mailout.freeze_started_at)
           and (s.snoozed_until is null or s.snoozed_until <= greatest(mailout.freeze_started_at, mailout.scheduled_at))
           and not exists (select 1 from subscriptions l where l.email = s.email_norm and l.list_key = 'general'
                           and l.unsubscribed_at is not null)
         order by s.email_norm limit chunk)
        union all
        (select s.email_norm, s.from_name, s.attributes
         from subscriptions l join subscribers s on s.email_norm = l.email
         where filter is null and mailout.list_key <> 'general' and l.list_key = mailout.list_key and l.unsubscribed_at is null and l.email > mailout.freeze_cursor
           and s.status = 'active' and (s.created_at is null or s.created_at <= mailout.freeze_started_at)
           and (s.snoozed_until is null or s.snoozed_until <= greatest(mailout.freeze_started_at, mailout.scheduled_at))
         order by l.email limit chunk)
        union all
        (select * from mailout_segment_part(mailout, filter, chunk) where filter is not null)
    ), written as (
        insert into email_outbox (id, campaign_id, company_id, email, from_name, variables, created_at)
        select mailout_uuid(mailout.id::text, part.email_norm), mailout.id, mailout.company_id,
               part.email_norm, part.from_name,
               -- Only what the content uses: a million rows have to stay narrow.
               case when $3 <> '[]' then (
                   select jsonb_object_agg(a.key, a.value) from jsonb_each_text(mailout_attributes(part.attributes)) a
                   where jsonb_exists($3, a.key)) end, at
        from part order by part.email_norm
        on conflict do nothing returning 1
    )
    select (select max(part.email_norm) from part), (select count(*) from written) into last_email, added;
    update campaign_queue q
    set freeze_cursor = coalesce(last_email, q.freeze_cursor),
        frozen_at = case when last_email is null then at end,
        snoozed = case when last_email is null then mailout_snoozed(mailout) else 0 end
    where q.id = mailout.id;
    return case when last_email is not null then added end;
end $$;

create or replace function mailout_segment_part(mailout campaign_queue, filter jsonb, chunk integer)
returns table (email_norm text, from_name text, attributes jsonb)
language plpgsql set search_path = public as $$
begin
    return query execute 'select s.email_norm, s.from_name, s.attributes from subscribers s where s.email_norm > $1'
        ' and (s.created_at is null or s.created_at <= $2) and ' || mailout_audience(mailout.list_key, filter -> 'tree', greatest(mailout.freeze_started_at, mailout.scheduled_at), true)
        || ' order by s.email_norm limit $3' using mailout.freeze_cursor, mailout.freeze_started_at, chunk;
end $$;

create or replace function mailout_snoozed(mailout campaign_queue) returns bigint
language plpgsql stable set search_path = public as $$
declare
    n bigint;
begin
    execute 'select count(*) from subscribers s where (s.created_at is null or s.created_at <= $1) and '
        || mailout_audience(mailout.list_key, mailout.segment_filter -> 'tree', greatest(mailout.freeze_started_at, mailout.scheduled_at), true, true)
        into n using mailout.freeze_started_at;
    return n;
end $$;

create or replace function mailout_take_segment(mailout campaign_queue) returns jsonb
language plpgsql set search_path = public as $$
declare
    taken jsonb;
    removed text;
    people bigint;
begin
    select jsonb_build_object('text', g.filter, 'hash', g.hash, 'tree', g.tree, 'lists', mailout_segment_lists(g.tree))
    into taken from segments g where g.name = mailout.segment for share;
    if taken is null then
        raise exception 'There is no segment %.', mailout.segment
            using errcode = 'PT404', hint = '`mailout segments list` shows them.';
    end if;
    select coalesce(q.subject, asked.id) into removed
    from (select leaf #>> '{1}' as id from jsonb_path_query(taken -> 'tree', 'strict $.** ? (@.type() == "array" && (@[0] == "got" || @[0] == "clicked"))') leaf) asked
    left join campaign_queue q on q.id = mailout_to_uuid(asked.id)
    where q.id is null or q.archived_at is not null limit 1;
    if removed is not null then
        raise exception 'Nobody knows any more who got “%”: retention has removed its messages.', removed
            using errcode = 'PT400', hint = 'Take this condition out of the filter.';
    end if;
    -- Of whom it takes a part: everybody on the list; without one, on general or on a list that the segment asks for.
    execute 'select count(*) from subscribers s where ' || mailout_audience(mailout.list_key, case when mailout.list_key is null then (
        select jsonb_build_array('or', jsonb_build_array('list', 'general')) || coalesce(jsonb_agg(jsonb_build_array('list', l.key)), '[]')
        from jsonb_array_elements_text(taken -> 'lists') as l (key)) end, greatest(mailout.freeze_started_at, mailout.scheduled_at)) into people;
    taken := taken || jsonb_build_object('of', people);
    update campaign_queue q set segment_filter = taken where q.id = mailout.id;
    return taken;
end $$;

select mailout_finish_migration(21);
