-- Since 0.1.0: what people write into these tables by hand, or by a form of their own, means what they wrote. Whose
-- wish is not known gets no mail, and whoever gets mail can unsubscribe.

-- ── A status that is not ours ──

create or replace function mailout_rank(status text) returns integer
language sql immutable parallel safe set search_path = '' as $$
    select case status when 'bounced' then 4 when 'unsubscribed' then 3 when 'active' then 1 else 2 end
$$;
comment on function mailout_rank is 'bounced > unsubscribed > a word that we do not know, or none > active; equal or higher wins.';

create or replace function mailout_leave_as(address text, status text) returns void
language sql volatile set search_path = public as $$
    -- A word that we do not know takes nobody off the list: a second row may be another sign-up that waits.
    update subscribers s set status = lower($2), status_updated_at = mailout_now()
    where s.email_norm = address and lower($2) in ('unsubscribed', 'bounced') and mailout_rank(lower($2)) > mailout_rank(s.status)
$$;

create or replace function mailout_keep_standing(before subscribers, given subscribers) returns subscribers
language plpgsql set search_path = public as $$
declare
    kept subscribers := before;
begin
    if coalesce(before.status, '') not in ('unsubscribed', 'bounced')
       and not exists (select 1 from forgotten f where f.hash = mailout_forgotten_hash(mailout_email_norm(given.email))) then
        kept.email := left(given.email, 320);  -- else an address would inherit that somebody else has left
    end if;
    if given.attributes is distinct from before.attributes then
        kept.attributes := mailout_sign_up_attributes(given.attributes);
    end if;
    return kept;
end $$;

create or replace function mailout_raise_hard_status(address text, word text) returns void
language sql volatile set search_path = public as $$
    update subscribers s set hard_status = nullif(word, 'bounced'), hard_status_at = mailout_now()
    where s.email_norm = address and s.hard_status is not null and word <> 'active'
      and (s.hard_status <> 'unsubscribed' or word = 'bounced')
$$;

create or replace view read_subscriber_counts with (security_invoker = true) as
select status, count(*) as people from subscribers where email_norm is not null group by status;

create or replace function mailout_keep_counts(day text, listed text, events_come_for double precision) returns void
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    insert into people_counts (day, counts)
    select $1, coalesce(jsonb_object_agg(counted.name, counted.n), '{}') from (
        select coalesce(nullif(s.status::text, ''), 'unknown') as name, count(*) as n from subscribers s group by 1
        union all
        select $2 || l.list_key, count(*) from subscriptions l where l.unsubscribed_at is null and l.email not like '#%' group by l.list_key
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

-- ── Rows that others write ──

create or replace function mailout_normalise_subscriber() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    outsider boolean := tg_nargs > 0;
    norm text;
begin
    if outsider and tg_op = 'INSERT' then
        new := mailout_sign_up(new);
        if exists (select 1 from forgotten f where f.hash = mailout_forgotten_hash(mailout_email_norm(new.email))) then
            -- Anybody can use the form. A row that is missing would tell them who was forgotten: it is nobody's instead.
            new.email := gen_random_uuid() || '@forgotten.invalid';
            new.attributes := '{}';
            new.status := 'unsubscribed';
        end if;
    elsif outsider then
        new := mailout_keep_standing(old, new);
    end if;
    if new.hard_status is not null and new.status is distinct from 'bounced' then
        new.hard_status := null;  -- a person's word: no delivery or complaint may go by what was there before
        new.hard_status_at := null;
        new.bounce_type := null;
        new.bounce_subtype := null;
    end if;
    if (tg_op = 'INSERT' or new.email_norm is distinct from old.email_norm)
       and new.email_norm = lower(mailout_trim(new.email_norm) collate "C") then
        new.email_problem := null;  -- given by a program, which knows punycode
        if tg_op = 'INSERT' then
            return new;  -- and which has asked who complained
        end if;
        if old.email_norm is null and new.status = 'active'
           and exists (select 1 from forgotten f where f.hash = mailout_forgotten_hash(new.email_norm)) then
            new.status := 'unsubscribed';  -- an international domain, which nobody could look up before
        end if;
    elsif tg_op = 'UPDATE' and new.email is not distinct from old.email and new.email_problem is null
          and new.email_norm is not distinct from old.email_norm then
        return new;
    else
        norm := mailout_email_norm(new.email);
        new.email_norm := norm;
        new.email_problem := case when norm is null then mailout_email_problem(new.email) end;
        if exists (select 1 from subscribers s where s.email_norm = norm and (tg_op = 'INSERT' or s.id <> new.id)) then
            new.email_norm := null;
            new.email_problem := 'duplicate';
            if not outsider then
                perform mailout_leave_as(norm, new.status);
            end if;
        end if;
    end if;
    if new.email_norm is not null and new.status = 'active' and mailout_complained(new.email_norm) then
        new.status := 'unsubscribed';
        new.complained_at := mailout_now();
    end if;
    return new;
end $$;

create or replace function mailout_move_lists() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    -- While an address has no key (a typing mistake, an international domain), the row's id stands for it.
    from_key text := coalesce(old.email_norm, '#' || old.id);
    to_key text := coalesce(new.email_norm, '#' || new.id);
begin
    if from_key = to_key then
        return null;
    end if;
    insert into subscriptions as l (email, list_key, unsubscribed_at, joined_at)
    select to_key, o.list_key, o.unsubscribed_at, o.joined_at from subscriptions o where o.email = from_key
    on conflict on constraint subscriptions_pkey
    do update set unsubscribed_at = coalesce(l.unsubscribed_at, excluded.unsubscribed_at);
    insert into consents (email, list_key, at, wording, source)
    select to_key, c.list_key, c.at, c.wording, c.source from consents c where c.email = from_key
    on conflict do nothing;
    delete from subscriptions l where l.email = from_key;
    delete from consents c where c.email = from_key;
    return null;
end $$;
comment on function mailout_move_lists is 'A person whose address was changed stays on their lists, and off those that they left.';

drop trigger if exists subscribers_move_lists on subscribers;
create trigger subscribers_move_lists after update of email, email_norm on subscribers
    for each row when (old.email_norm is distinct from new.email_norm) execute function mailout_move_lists();

create or replace function mailout_follow_subscriber() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
begin
    delete from subscriptions l where l.email = '#' || old.id;
    delete from consents c where c.email = '#' || old.id;
    update subscribers s
    set email_norm = old.email_norm, left_at = old.left_at, complained_at = old.complained_at,
        snoozed_until = old.snoozed_until, confirmed_at = old.confirmed_at,
        hard_status = case when s.status = 'bounced' then s.hard_status else old.hard_status end,
        hard_status_at = case when s.status = 'bounced' then s.hard_status_at else old.hard_status_at end,
        bounce_type = coalesce(s.bounce_type, old.bounce_type), bounce_subtype = coalesce(s.bounce_subtype, old.bounce_subtype),
        status = case when mailout_rank(old.status) > mailout_rank(s.status) then old.status else s.status end
    where s.id = (select d.id from subscribers d
                  where d.email_problem = 'duplicate' and lower(btrim(d.email) collate "C") = old.email_norm
                  order by d.created_at, d.id limit 1);
    return null;
end $$;
comment on function mailout_follow_subscriber is 'Of two spellings the second takes the place of a row that is deleted, and its status: who has left has left.';

-- Of functions that everybody may call: a form's insert works them out.
create index if not exists subscribers_duplicate on subscribers (lower(btrim(email) collate "C")) where email_problem = 'duplicate';
drop trigger if exists subscribers_follow on subscribers;
create trigger subscribers_follow after delete on subscribers
    for each row execute function mailout_follow_subscriber();

create or replace function mailout_normalise_subscription() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
begin
    new.email := coalesce(mailout_email_norm(new.email), new.email);
    return new;
end $$;
comment on function mailout_normalise_subscription is 'Who is put on a list by hand is on it, however the address is written.';

drop trigger if exists subscriptions_normalise on subscriptions;
create trigger subscriptions_normalise before insert or update of email on subscriptions
    for each row when (new.email <> lower(btrim(new.email))) execute function mailout_normalise_subscription();

-- ── The rows that are there ──

update subscribers s set hard_status = null, hard_status_at = null
where s.hard_status is not null and s.status is distinct from 'bounced';
alter table subscribers drop constraint if exists subscribers_hard_status_of_bounced,
    add constraint subscribers_hard_status_of_bounced check (hard_status is null or status = 'bounced');
-- Of two spellings the active one had won, also over a word of the project's own that was there as long.
update subscribers h set status = d.status, status_updated_at = mailout_now()
from subscribers d
where h.email_norm = mailout_email_norm(d.email) and h.status = 'active' and h.confirmed_at is null
  and d.email_problem = 'duplicate' and d.status is not null and mailout_rank(d.status) = 2 and d.created_at <= h.created_at;

-- ── People who leave ──

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
    delete from desk_unsubscribes d where d.email = address and (d.list_key = coalesce($2, '') or $2 is null);
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
    return mailout_may_return(address, $2)
       and not mailout_left_before(address, $2, mailout_now() - interval '1 day');
end $$;

select mailout_finish_migration(18);
