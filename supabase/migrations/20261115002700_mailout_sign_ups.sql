-- Strangers who want to join: their limits, confirming a sign-up, erasing those that nobody has confirmed.

create table if not exists sign_up_marks (
    at      timestamptz not null,
    network bytea not null,
    address bytea not null
);
create index if not exists sign_up_marks_at on sign_up_marks (at);
comment on table sign_up_marks is 'One row for each confirmation that was asked for, gone after a day: its limits are counted here. Network and address are keyed hashes.';

create table if not exists sign_up_days (
    day       text collate "C" not null,
    list_key  text collate "C" not null,
    asked     integer not null default 0,
    confirmed integer not null default 0,
    primary key (day, list_key)
);
comment on table sign_up_days is 'How many asked to join a list on a day, and how many of these confirmed it.';

create table if not exists erased_feedback (
    hash bytea not null,
    what text not null check (what in ('spamreport', 'bounce')),
    primary key (hash, what)
);
comment on table erased_feedback is 'What came back from strangers whose rows were erased: keyed hashes of their addresses.';

create index if not exists email_outbox_confirmations on email_outbox (created_at) where category = 'confirmation';
create index if not exists consents_at on consents (at);

create or replace function mailout_complained(address text) returns boolean
language sql stable set search_path = public as $$
    select exists (select 1 from subscribers s where s.email_norm = address and s.complained_at is not null)
        or exists (select 1 from delivery_events e where e.email = address and e.event_type = 'spamreport')
        or exists (select 1 from erased_feedback f where f.hash = mailout_forgotten_hash(address) and f.what = 'spamreport')
$$;
comment on function mailout_complained is 'Whoever has this address complained once, a subscriber or not.';

create or replace function mailout_keep_feedback(address text, kinds text[]) returns void
language sql volatile set search_path = public as $$
    insert into erased_feedback
    select mailout_forgotten_hash(address), told.what from (
        select e.event_type as what from delivery_events e
        where e.email = address and (e.event_type = 'spamreport'
            or (e.event_type = 'bounce' and e.detail ->> 'bounceType' = 'Permanent'))
        union select 'spamreport' from subscribers s where s.email_norm = address and s.complained_at is not null) told
    where told.what = any(kinds)
    on conflict do nothing
$$;
comment on function mailout_keep_feedback is 'Before an address is erased: that somebody complained, or that mail bounced for good, stays known.';

create or replace function mailout_count_sign_up(result text) returns void
language sql volatile set search_path = public as $$
    insert into counters as c (name, labels, value) values ('mailout_sign_ups_total', result, 1)
    on conflict (name, labels) do update set value = c.value + 1
$$;
comment on function mailout_count_sign_up is 'With the act itself, so that no count is lost with a process.';

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
        select $4, key, 1 from jsonb_array_elements_text(lists) as list (key) order by 2
        on conflict on constraint sign_up_days_pkey do update set asked = d.asked + 1;
    elsif verdict = 'all' then
        insert into dashboard_notes (name, at, value) values (brake_note, now, '{}')
        on conflict (name) do update set at = excluded.at;
    end if;
    perform mailout_count_sign_up(verdict);
    return verdict;
end $$;
comment on function mailout_ask_sign_up is 'Looks at the limits, in order; if none is spent, puts the confirmation into the outbox. What became of it.';

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
                  and f.at > to_timestamp((given ->> 'at')::double precision)) then
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
    set confirmed_at = now,
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
comment on function mailout_confirm_sign_up is 'Active, on the chosen lists alone if they were not active before, with a record of their consent.';

create or replace function mailout_erase_sign_ups(before double precision, most integer) returns integer
language plpgsql volatile set search_path = public set statement_timeout = '60s' as $$
declare
    old email_outbox[];
begin
    delete from sign_up_marks m where m.at <= mailout_now() - interval '1 day';
    update email_outbox o set variables = null
    where o.category = 'confirmation' and o.created_at <= to_timestamp(before) and o.variables is not null
      and o.state <> 'SENT_ATTEMPT'
      and exists (select 1 from consents c where c.email = o.email and c.at >= o.created_at);
    old := array(
        select o from email_outbox o
        where o.category = 'confirmation' and o.created_at <= to_timestamp(before) and o.state <> 'SENT_ATTEMPT'
          and not exists (select 1 from consents c where c.email = o.email and c.at >= o.created_at)
        order by o.created_at limit most for update);
    perform mailout_keep_feedback(k.email, array['spamreport', 'bounce']) from unnest(old) k;
    delete from delivery_events e where e.message_id in (select k.id from unnest(old) k);
    delete from error_records r where r.mailout is null and r.email in (select k.email from unnest(old) k);
    delete from email_outbox o where o.id in (select k.id from unnest(old) k);
    return coalesce(array_length(old, 1), 0);
end $$;
comment on function mailout_erase_sign_ups is 'The next confirmations that nobody has confirmed; how many. Of the confirmed ones, what their link said is erased.';
