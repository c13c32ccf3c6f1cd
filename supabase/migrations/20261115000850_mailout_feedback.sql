-- What comes back: the inbox of events, what they change, and people who leave.
-- Locks are taken in one order by all: messages, subscribers, mailouts.

create index if not exists delivery_events_email on delivery_events (email);

create or replace function mailout_receive_events(received jsonb) returns integer
language plpgsql set search_path = public as $$
declare
    added integer;
begin
    insert into events_inbox (id, source, payload, received_at)
    select one->>'id', one->>'source', one->>'payload', mailout_now()
    from jsonb_array_elements(received) as one order by one->>'id'
    on conflict (id) do nothing;
    get diagnostics added = row_count;
    return added;
end $$;
comment on function mailout_receive_events is 'Verified messages into the inbox; how many were new.';

-- ── What an event changes ──

create or replace function mailout_change_status(address text, heard jsonb) returns boolean
language plpgsql set search_path = public as $$
declare
    known subscribers;
    soft boolean;
    at timestamptz := to_timestamp((heard->>'at')::double precision);
    complained timestamptz;
    moves boolean;
begin
    delete from desk_unsubscribes d where d.email = address;
    select * into known from subscribers s where s.email_norm = address for update;
    if not found then
        return false;
    end if;
    if not coalesce((heard->>'complained')::boolean, false) and at <= known.confirmed_at then
        return false;  -- it says nothing of the person since their sign-up
    end if;
    complained := case when (heard->>'complained')::boolean then greatest(known.complained_at, at)
                       else known.complained_at end;
    soft := known.hard_status is not null;
    if soft then  -- what the status is without soft bounces: they are laid over it again below
        known.status := known.hard_status;
        known.status_updated_at := known.hard_status_at;
    end if;
    moves := case mailout_rank(heard->>'status') - mailout_rank(known.status)
        when 0 then (at, case known.status when 'bounced' then coalesce(heard->>'bounce_type', '') else '' end collate "C",
                     case known.status when 'bounced' then coalesce(heard->>'bounce_subtype', '') else '' end collate "C")
                  > (coalesce(known.status_updated_at, '-infinity'),
                     case known.status when 'bounced' then coalesce(known.bounce_type, '') else '' end collate "C",
                     case known.status when 'bounced' then coalesce(known.bounce_subtype, '') else '' end collate "C")
        else mailout_rank(heard->>'status') > mailout_rank(known.status)
    end;
    if not moves and complained is not distinct from known.complained_at then
        return false;
    end if;
    if soft and heard->>'status' <> 'bounced' then
        update subscribers s
        set complained_at = complained,
            hard_status = case when moves then heard->>'status' else s.hard_status end,
            hard_status_at = case when moves then at else s.hard_status_at end
        where s.id = known.id;
        return true;
    end if;
    update subscribers s
    set complained_at = complained,
        status = case when moves then heard->>'status' else s.status end,
        status_updated_at = case when moves then at else s.status_updated_at end,
        bounce_type = case when moves and heard->>'status' = 'bounced' then heard->>'bounce_type' else s.bounce_type end,
        bounce_subtype = case when moves and heard->>'status' = 'bounced' then heard->>'bounce_subtype'
                              else s.bounce_subtype end,
        hard_status = null, hard_status_at = null
    where s.id = known.id;
    return true;
end $$;
comment on function mailout_change_status is 'News of a subscriber: by priority, and the latest of equal ones. The law of mailout.outbox.feedback.subscriber_state.';

create or replace function mailout_soft_end(
    address text, enough integer, out type text, out subtype text, out at timestamptz)
language sql stable set search_path = public as $$
    -- A run is what lies between two deliveries, after the last confirmed sign-up. General bounces without a status are out-of-office replies.
    with soft as (
        select e.event_at as at, coalesce(e.message_id::text, e.provider_message_id, e.id) as message,
               coalesce(e.detail->>'bounceType', 'Undetermined') as type, e.detail->>'bounceSubType' as subtype,
               e.detail->>'status' as status,
               (select count(*) from delivery_events d where d.email = e.email and d.event_type = 'delivered'
                 and d.event_at < e.event_at) as run
        from delivery_events e where e.email = address and e.event_type = 'bounce'
          and e.event_at > coalesce((select s.confirmed_at from subscribers s where s.email_norm = address), '-infinity')
    ), counted as (
        select * from soft where soft.type <> 'Permanent'
        and not (soft.type = 'Transient' and coalesce(soft.subtype, '') = 'General' and soft.status is null)
    )
    select c.type, c.subtype, c.at from counted c
    where c.run in (select r.run from counted r group by r.run having count(distinct r.message) >= enough)
    order by c.at desc, c.type collate "C" desc, coalesce(c.subtype, '') collate "C" desc limit 1
$$;
comment on function mailout_soft_end is 'The latest of so many different messages that bounced softly, without a delivery between them.';

create or replace function mailout_count_soft_bounces(address text, enough integer) returns boolean
language plpgsql set search_path = public as $$
declare
    known subscribers;
    soft record;
begin
    select * into known from subscribers s where s.email_norm = address for update;
    if not found or (known.status = 'bounced' and known.hard_status is null) then
        return false;
    end if;
    select * into soft from mailout_soft_end(address, enough);
    if soft.at is null then
        update subscribers s
        set status = s.hard_status, status_updated_at = s.hard_status_at, bounce_type = null, bounce_subtype = null,
            hard_status = null, hard_status_at = null
        where s.id = known.id and s.hard_status is not null;
        return found;
    end if;
    update subscribers s
    set hard_status = coalesce(s.hard_status, s.status),
        hard_status_at = case when s.hard_status is null then s.status_updated_at else s.hard_status_at end,
        status = 'bounced', status_updated_at = soft.at, bounce_type = soft.type, bounce_subtype = soft.subtype
    where s.id = known.id and (s.hard_status is null or (s.status_updated_at, s.bounce_type, s.bounce_subtype)
                               is distinct from (soft.at, soft.type, soft.subtype));
    return found;
end $$;
comment on function mailout_count_soft_bounces is 'So many messages that bounced softly end mail; a delivery that is reported late takes it back.';

create or replace function mailout_change_statuses(news jsonb) returns integer
language plpgsql set search_path = public as $$
declare
    one record;
    changed integer := 0;
begin
    for one in select key, value from jsonb_each(news) order by key collate "C" loop
        changed := changed + mailout_change_status(one.key, one.value)::integer;
    end loop;
    return changed;
end $$;
comment on function mailout_change_statuses is 'News of many, by address; how many stand differently now.';

create or replace function mailout_count_event(campaign uuid, metric text, n integer) returns void
language sql volatile set search_path = public as $$
    update campaign_queue q
    set metrics = jsonb_set(q.metrics, array[metric],
                            to_jsonb(greatest(0, coalesce((q.metrics->>metric)::integer, 0) + n)))
    where q.id = campaign and metric is not null and q.archived_at is null
$$;
comment on function mailout_count_event is 'A mailout''s count of messages with some event; that of an archived one is final.';

create or replace function mailout_event_message(effect jsonb) returns email_outbox
language plpgsql stable set search_path = public as $$
declare
    message email_outbox;
    archived email_outbox;
begin
    select * into message from email_outbox o where o.id = mailout_to_uuid(effect->>'attempt_id');
    if not found and effect->>'ses_message_id' is not null then
        select * into message from email_outbox o where o.ses_message_id = effect->>'ses_message_id' limit 1;
    end if;
    -- One in the archive has a name and no state: the event is kept with it, and nothing moves.
    select coalesce(message.id, mailout_to_uuid(effect->>'attempt_id')), q.id, message.email
    into archived.id, archived.campaign_id, archived.email
    from campaign_queue q
    where q.id = coalesce(message.campaign_id, mailout_to_uuid(effect->>'campaign_id')) and q.archived_at is not null;
    return case when archived.campaign_id is null then message else archived end;
end $$;
comment on function mailout_event_message is 'Which message an event is about: by our tag, else by SES''s own id.';

create or replace function mailout_record_event(message email_outbox, effect jsonb, out added boolean, out first boolean)
language plpgsql set search_path = public as $$
begin
    first := message.id is not null and not exists (
        select 1 from delivery_events e where e.message_id = message.id and e.event_type = effect->>'type');
    -- The address is what the message was sent to: a bounce may name the one that it was forwarded to.
    insert into delivery_events (id, message_id, campaign_id, email, event_type, provider_message_id, detail, event_at)
    values (effect->>'id', message.id, message.campaign_id, coalesce(message.email, effect->>'email'),
            effect->>'type', effect->>'ses_message_id', coalesce(effect->'detail', '{}'),
            to_timestamp((effect->>'at')::double precision))
    on conflict (id) do nothing;
    added := found;
    first := first and added;
end $$;
comment on function mailout_record_event is 'One event; whether it is new, and the first of its kind for its message.';

create or replace function mailout_move_by_event(message email_outbox, effect jsonb, out confirmed boolean, out revoked boolean)
language plpgsql set search_path = public as $$
declare
    tagged boolean := (effect->>'attempt_epoch')::integer is not distinct from message.epoch;
    same boolean := tagged or (effect->>'attempt_id' is null and message.ses_message_id = effect->>'ses_message_id');
begin
    confirmed := false;
    revoked := false;
    -- Asked first: an update of nothing would still wake the ledger's trigger.
    if tagged and message.state in ('PENDING', 'RETRY_SCHEDULED', 'SENT_ATTEMPT', 'UNKNOWN') then
        confirmed := mailout_confirm(message.id::text, message.epoch, effect->>'ses_message_id');
    end if;
    if same and effect->>'revoke_code' is not null and (confirmed or message.state = 'SENT') then
        revoked := mailout_revoke(message.id::text, message.epoch, effect->>'revoke_code', effect->>'revoke_message');
    end if;
end $$;
comment on function mailout_move_by_event is 'Only the attempt that the event is about may move.';

create or replace function mailout_apply_events(readings jsonb, soft_bounces integer) returns jsonb
language plpgsql set search_path = public set statement_timeout = '60s' as $$
declare
    reading jsonb;
    effect jsonb;
    waiting events_inbox;
    message email_outbox;
    recorded record;
    moved record;
    counted text[] := '{}';
    bounced text[] := '{}';
    delivered text[] := '{}';
    one record;
    events integer := 0;  repeated integer := 0;  strangers integer := 0;  confirmed integer := 0;
    revoked integer := 0; statuses integer := 0;  problems integer := 0;   dead integer := 0;
begin
    perform pg_advisory_xact_lock(hashtext('mailout_apply_events'));
    perform 1 from email_outbox o
    where o.id in (
        select (mailout_event_message(e)).id
        from jsonb_array_elements(readings) r, jsonb_array_elements(r->'effects') e)
    order by o.id for update;
    perform 1 from subscribers s
    where s.email_norm in (
        select coalesce((mailout_event_message(e)).email, e->>'email')
        from jsonb_array_elements(readings) r, jsonb_array_elements(r->'effects') e
        where e->'heard' <> 'null' or ((e->>'recount')::boolean and e->>'type' = 'bounce')
        union
        select ended.email_norm
        from jsonb_array_elements(readings) r, jsonb_array_elements(r->'effects') e
        join subscribers ended on ended.email_norm = e->>'email' and ended.hard_status is not null
        where (e->>'recount')::boolean)
    order by s.email_norm for update;
    for reading in select value from jsonb_array_elements(readings) loop
        select * into waiting from events_inbox i
        where i.id = reading->>'inbox_id' and i.applied_at is null for update;
        continue when not found;
        if reading->>'code' is not null then
            problems := problems + 1;
            insert into error_records (at, stage, provider, code, message)
            values (mailout_now(), 'feedback', 'ses', reading->>'code', reading->>'message');
            if (reading->>'dead')::boolean then
                dead := dead + 1;
                insert into dead_letters (id, topic, payload, error, created_at)
                values (mailout_uuid('dead letter', waiting.id), 'ses-events', jsonb_build_object(
                            'inbox_id', waiting.id, 'source', waiting.source, 'body', waiting.payload),
                        reading->>'message', mailout_now())
                on conflict (id) do nothing;
            end if;
        end if;
        for effect in select value from jsonb_array_elements(reading->'effects') loop
            message := mailout_event_message(effect);
            select * into recorded from mailout_record_event(message, effect);
            if not recorded.added then
                repeated := repeated + 1;
                continue;
            end if;
            events := events + 1;
            if effect->'heard' <> 'null' and coalesce(message.email, effect->>'email') is not null then
                statuses := statuses + mailout_change_status(coalesce(message.email, effect->>'email'), effect->'heard')::integer;
            end if;
            if (effect->>'recount')::boolean and effect->>'type' = 'bounce' then
                bounced := bounced || coalesce(message.email, effect->>'email');
            elsif (effect->>'recount')::boolean then
                delivered := delivered || coalesce(message.email, effect->>'email');
            end if;
            if message.id is null then
                strangers := strangers + 1;
                continue;
            end if;
            select * into moved from mailout_move_by_event(message, effect);
            confirmed := confirmed + moved.confirmed::integer;
            revoked := revoked + moved.revoked::integer;
            if recorded.first and message.campaign_id is not null and effect->>'metric' is not null then
                counted := counted || (message.campaign_id || ' ' || (effect->>'metric'));
            end if;
        end loop;
        update events_inbox i
        set payload = null, applied_at = mailout_now(),
            error = (reading->>'code') || ': ' || (reading->>'message')
        where i.id = waiting.id;
    end loop;
    for one in select email from unnest(bounced) as email
               union select s.email_norm from subscribers s
                     where s.email_norm = any(delivered) and s.hard_status is not null order by 1 loop
        statuses := statuses + mailout_count_soft_bounces(one.email, soft_bounces)::integer;
    end loop;
    for one in select split_part(c, ' ', 1)::uuid as campaign, split_part(c, ' ', 2) as metric, count(*)::integer as n
               from unnest(counted) as c group by 1, 2 order by 1, 2 loop
        perform mailout_count_event(one.campaign, one.metric, one.n);
    end loop;
    return jsonb_build_object(
        'events', events, 'repeated', repeated, 'strangers', strangers, 'confirmed', confirmed,
        'revoked', revoked, 'statuses', statuses, 'problems', problems, 'dead', dead);
end $$;
comment on function mailout_apply_events is 'What events mean, applied in one transaction; a row of the inbox counts once.';

-- ── People who leave ──

create or replace function mailout_may_return(address text, list_key text) returns boolean
language sql stable set search_path = public as $$
    select coalesce((
        select s.complained_at is null
           and (s.status = 'active' or ($2 is null and s.status = 'unsubscribed' and s.left_at is not null))
        from subscribers s where s.email_norm = address), false)
$$;
comment on function mailout_may_return is 'Only to where they were: who left by themselves, or is there still.';

create or replace function mailout_left_before(address text, list_key text, moment timestamptz) returns boolean
language sql stable set search_path = public as $$
    select exists (select 1 from subscribers s where $2 is null and s.email_norm = address
                   and s.status = 'unsubscribed' and s.left_at < moment)
        or exists (select 1 from subscriptions l where l.email = address and l.list_key = $2
                   and l.unsubscribed_at < moment)
$$;
comment on function mailout_left_before is 'So long ago that a link does not undo it any more.';

create or replace function mailout_unsubscribe(address text, list_key text, message_id text default null) returns boolean
language plpgsql set search_path = public as $$
declare
    message email_outbox;
    recorded record;
begin
    if exists (select 1 from forgotten f where f.hash = mailout_forgotten_hash(address)) then
        return false;  -- an old letter's link must not write their address down again
    end if;
    delete from desk_unsubscribes d where d.email = address and (d.list_key = coalesce($2, '') or $2 is null);
    if list_key is null then
        insert into subscribers (email, email_norm, status, status_updated_at, created_at)
        values (address, address, 'unsubscribed', mailout_now(), mailout_now())
        on conflict (email_norm) do nothing;
        update subscribers s set status = 'unsubscribed', status_updated_at = mailout_now(), left_at = mailout_now()
        where s.email_norm = address and s.status = 'active';
        -- Soft bounces may be taken back; an unsubscribe stays.
        update subscribers s set hard_status = 'unsubscribed', hard_status_at = mailout_now(), left_at = mailout_now()
        where s.email_norm = address and s.hard_status = 'active';
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
comment on function mailout_unsubscribe is 'From one list, or from everything; whether they may take it back.';

create or replace function mailout_resubscribe(address text, list_key text, within double precision default null)
returns boolean language plpgsql set search_path = public as $$
declare
    one record;
    too_old constant timestamptz := mailout_now() - make_interval(secs => within);
begin
    perform 1 from subscribers s where s.email_norm = address for update;
    if not mailout_may_return(address, list_key) or mailout_left_before(address, list_key, too_old) then
        return false;
    end if;
    delete from desk_unsubscribes d where d.email = address and d.list_key = coalesce($2, '');
    if list_key is null then
        update subscribers s set status = 'active', status_updated_at = mailout_now(), left_at = null
        where s.email_norm = address and s.status = 'unsubscribed';
    else
        update subscriptions l set unsubscribed_at = null where l.email = address and l.list_key = $2;
    end if;
    -- It was a mistake: the mailouts that counted it do so no more.
    for one in delete from delivery_events e
               where e.email = address and e.event_type = 'unsubscribe' and e.detail->>'list_key' is not distinct from $2
               returning e.campaign_id loop
        perform mailout_count_event(one.campaign_id, 'unsubscribed', -1);
    end loop;
    return true;
end $$;
comment on function mailout_resubscribe is 'A person takes their own unsubscribe back; false: it is not theirs to undo.';

create or replace function mailout_without(written text, address text, instead text) returns text
language sql immutable set search_path = '' as $$
    select pg_catalog.regexp_replace(written,
        '(?<![[:alnum:]_.+-])' || pg_catalog.regexp_replace(address, '([^[:alnum:]])', '\\\1', 'g')
            || '(?![[:alnum:]_-]|\.[[:alnum:]_])', instead, 'g')
$$;
comment on function mailout_without is 'Another word wherever an address stands by itself: a longer one that ends or begins with it is another''s.';

create or replace function mailout_forget(address text, instead text) returns jsonb
language plpgsql set search_path = public set statement_timeout = '60s' as $$
declare
    known email_outbox[] := array(
        select o from email_outbox o where o.email = address order by o.id for update);
    quoted text := trim(both '"' from to_jsonb(address)::text);
    people integer;  events integer;  errors integer;
begin
    if exists (select 1 from unnest(known) k where k.state = 'SENT_ATTEMPT') then
        raise exception 'A message to this address is on its way.'
            using errcode = 'PT400', hint = 'Try again in a minute.';
    end if;
    insert into counters (name, labels, value) values ('forgotten', '', 1)  -- for mailout_archive_state
    on conflict (name, labels) do update set value = counters.value + 1;
    perform mailout_keep_feedback(address, array['spamreport']);  -- nobody asks them again
    delete from subscribers s
    where s.email_norm = address or (s.email_problem = 'duplicate' and mailout_email_norm(s.email) = address);
    get diagnostics people = row_count;
    delete from subscriptions l where l.email = address;
    delete from consents c where c.email = address;
    delete from recipients r where r.email = address;
    delete from import_people i where i.email = address;
    delete from desk_unsubscribes d where d.email = address;
    insert into forgotten values (mailout_forgotten_hash(address), mailout_now())
    on conflict (hash) do update set at = excluded.at;
    update email_outbox o set state = 'SUPPRESSED', error_message = 'forgotten', next_attempt_at = null
    where o.email = address and o.state in ('PENDING', 'RETRY_SCHEDULED');
    update email_outbox o
    set email = instead, from_name = null, variables = null, recipient_id = null,
        error_message = mailout_without(o.error_message, address, instead),
        history = mailout_without(o.history::text, quoted, instead)::jsonb, reply_to = null, headers = null, dedupe_key = null,
        content_id = case when o.campaign_id is not null then o.content_id end
    where o.email = address;
    -- What was written to this person alone goes, too.
    delete from contents c
    where c.hash in (select k.content_id from unnest(known) k where k.campaign_id is null)
      and not exists (select 1 from email_outbox o where o.content_id = c.hash)
      and not exists (select 1 from campaign_queue q where q.content_hash = c.hash);
    update delivery_events e set email = instead, detail = '{}' where e.email = address;
    get diagnostics events = row_count;
    update error_records e
    set email = case when e.email = address then instead else e.email end,
        message = mailout_without(e.message, address, instead)
    where e.email = address
       or (strpos(e.message, address) > 0 and mailout_without(e.message, address, instead) <> e.message);
    get diagnostics errors = row_count;
    update dead_letters d set payload = mailout_without(d.payload::text, quoted, instead)::jsonb,
        error = mailout_without(d.error, address, instead)
    where strpos(d.payload::text, quoted) > 0 or strpos(d.error, address) > 0;
    update dashboard_acts a set who = mailout_without(a.who, address, instead) where strpos(a.who, address) > 0;
    return jsonb_build_object(
        'subscribers', people, 'messages', coalesce(array_length(known, 1), 0), 'events', events, 'errors', errors,
        'mailouts', coalesce((select jsonb_agg(distinct k.campaign_id) from unnest(known) k
                              where k.campaign_id is not null), '[]'));
end $$;
comment on function mailout_forget is 'Erases a person: another word stands wherever the address stood. Counts stay.';

-- ── What `reconcile` asks ──
