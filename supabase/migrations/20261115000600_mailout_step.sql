-- `step`: one round of one sender, in one transaction (ARCHITECTURE.md, "The protocol").
-- Locks, always in this order: session, messages by id, usage by key, pacer, mailouts by id. Messages that
-- are claimed after that are skipped when locked, and the usage of the minute is written last of all.

do $$ begin
    if to_regtype('public.mailout_report') is null then
        create type mailout_report as (
            id uuid, epoch integer, state text, message_id text, code text, category text, message text,
            original_code text, retry_in double precision, age double precision,
            give_back boolean, uncharge boolean, withdrawn boolean);
    end if;
end $$;
comment on type mailout_report is 'What a sender says of one attempt: a result, or that it surely never left.';

-- Planning its statements again takes longer than running them: their plans are kept, and (made while a table
-- was small) read no whole table if there is another way. Where there is none, such a plan looks so costly that
-- it would be compiled each time. All three hold for what it calls, triggers too.
create or replace function mailout_step(step jsonb) returns jsonb
language plpgsql set search_path = public
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    sender sender_sessions;
    mailout campaign_queue;
    lane uuid;
    wants boolean;
    fenced boolean;
    reports mailout_report[] := mailout_reports(step);
    uncharged usage[];
    at timestamptz;
    halt text;
    missing jsonb;
    reply jsonb;
begin
    select * into sender from sender_sessions s
    where s.id = mailout_to_uuid(step ->> 'session') and s.closed_at is null and s.step_no < (step ->> 'n')::integer
    for update;
    fenced := not found;
    wants := not fenced and (step ->> 'want')::integer > 0 and not (step ->> 'close')::boolean;
    lane := sender.campaign_id;

    perform mailout_lock_reported(reports, case when (step ->> 'close')::boolean then sender.id end);
    uncharged := mailout_uncharged(reports);
    select * into mailout from campaign_queue q where q.id = lane;
    perform mailout_lock_usage(
        case when wants then step -> 'buckets' else '[]' end, array['all', mailout.company_id], uncharged);
    if wants or (step -> 'pace' ->> 'throttled')::boolean then
        insert into pace (scope) values (step -> 'pace' ->> 'scope') on conflict do nothing;
        perform 1 from pace p where p.scope = step -> 'pace' ->> 'scope' for update;
    end if;
    perform mailout_lock_campaigns(reports, lane);
    select * into mailout from campaign_queue q where q.id = lane;
    at := mailout_now();

    perform mailout_record(reports, at);
    missing := mailout_without_row(reports, at);
    if fenced then
        perform mailout_charge(uncharged);
        return jsonb_build_object('now', mailout_seconds(at), 'fenced', true, 'missing', missing);
    end if;
    update sender_sessions s
    set step_no = (step ->> 'n')::integer,
        lease_until = at + make_interval(secs => (step ->> 'lease')::double precision),
        closed_at = case when (step ->> 'close')::boolean then at end
    where s.id = sender.id;
    reply := jsonb_build_object('now', mailout_seconds(at), 'fenced', false, 'missing', missing,
                                'recovered', mailout_begun(sender.id, (step ->> 'recover')::boolean));
    if (step ->> 'close')::boolean then
        perform mailout_leave_nothing(sender.id, at);
    end if;
    halt := mailout_halt(mailout, lane, sender.stop_requested);
    if halt = 'all_paused' and lane is null and exists (
        select 1 from email_outbox o  -- a mail of our own that waits for its slot: a pause must not take it back
        where o.session_id = sender.id and o.state = 'SENT_ATTEMPT' and o.company_id = 'mailout') then
        halt := null;
    end if;
    if wants and (halt is null or (halt = 'all_paused' and lane is null)) then
        reply := reply || mailout_begin(step, sender, mailout, at, uncharged);
        if reply -> 'rows' = '[]' then
            reply := reply || jsonb_build_object('halt', halt);
        end if;
    else
        reply := reply || jsonb_build_object('halt', halt);
        perform mailout_slow_down(step -> 'pace', at);
        perform mailout_charge(uncharged);
    end if;
    return reply || jsonb_build_object('ledger', mailout_seen(lane, at, (step ->> 'close')::boolean));
end $$;
comment on function mailout_step is 'Renews the session, records what has happened, begins what limits and pacer allow.';

-- ── What has happened ──

create or replace function mailout_reports(step jsonb) returns mailout_report[]
language plpgsql immutable set search_path = public as $$
begin
    -- What may have been sent stays charged, whatever the sender says. A result outweighs a withdrawal.
    return array(
        select (r.id, r.epoch, r.state, r.message_id, r.code, r.category,
                case when r.state = 'UNKNOWN' then coalesce(nullif(r.message, ''), 'no answer') else r.message end,
                r.original_code, r.retry_in, coalesce(r.age, 0),
                (coalesce(r.give_back, false) or r.state = 'PENDING') and r.state <> 'UNKNOWN',
                (coalesce(r.uncharge, false) or coalesce(r.give_back, false) or r.state = 'PENDING')
                    and r.state <> 'UNKNOWN',
                false)::mailout_report
        from jsonb_to_recordset(step -> 'results') as r (  -- a sender leaves out what is null or false
            id uuid, epoch integer, state text, message_id text, code text, category text, message text,
            original_code text, retry_in double precision, age double precision,
            give_back boolean, uncharge boolean)
        union all
        select (w.id, w.epoch, 'PENDING', null, null, null, null, null, null, 0, true, true, true)::mailout_report
        from jsonb_to_recordset(step -> 'withdraw') as w (id uuid, epoch integer)
        where not jsonb_path_exists(step, '$.results[*] ? (@.id == $id && @.epoch == $epoch)',
                                    jsonb_build_object('id', w.id, 'epoch', w.epoch)));
end $$;
comment on function mailout_reports is 'Results and withdrawals as rows of one shape, read once a step.';

create or replace function mailout_lock_reported(reports mailout_report[], closing uuid) returns void
language plpgsql set search_path = public as $$
declare
    ids uuid[] := array(select r.id from unnest(reports) r);
begin
    if exists (
        select 1 from unnest(reports) r
        where r.state not in ('SENT', 'FAILED', 'RETRY_SCHEDULED', 'UNKNOWN', 'VALIDATION_FAILED', 'PENDING')
    ) then
        raise exception 'transition refused: a result must be an outcome' using errcode = 'PT409';
    end if;
    if closing is not null then  -- what this session does not speak of, too
        ids := ids || array(select o.id from email_outbox o
                            where o.session_id = closing and o.state in ('SENT_ATTEMPT', 'UNKNOWN'));
    end if;
    perform 1 from email_outbox o
    where o.id = any(ids) and o.state in ('SENT_ATTEMPT', 'UNKNOWN') order by o.id for update;
end $$;
comment on function mailout_lock_reported is 'The messages of which something is known now, locked in id order.';

create or replace function mailout_uncharged(reports mailout_report[]) returns usage[]
language plpgsql stable set search_path = public as $$
begin
    if not exists (select 1 from unnest(reports) r where r.uncharge) then
        return '{}';
    end if;
    return array(
        select (c.scope, c.kind, c.key, -count(*))::usage
        from email_outbox o
        join unnest(reports) r on r.id = o.id and r.epoch = o.epoch and r.uncharge
        cross join lateral mailout_charges(o.company_id, o.attempt_at, o.charged_hour, o.charged_day) c
        where o.state in ('SENT_ATTEMPT', 'UNKNOWN')
        group by c.scope, c.kind, c.key);
end $$;
comment on function mailout_uncharged is 'What surely-not-sent attempts give back to the counters they were charged to.';

create or replace function mailout_took(begun timestamptz, at timestamptz, age double precision) returns integer
language sql stable as $$  -- no setting of its own, and as stable as what it uses: so it becomes a part of its statement
    select round(1000 * extract(epoch from greatest(begun, at - make_interval(secs => age)) - begun))::integer
$$;
comment on function mailout_took is 'Milliseconds from RECEIVED to the end of an attempt, not of the call alone.';

create or replace function mailout_record(reports mailout_report[], at timestamptz) returns void
language plpgsql set search_path = public as $$
begin
    update email_outbox o
    set state = 'SENT', ses_message_id = r.message_id, duration_ms = mailout_took(o.attempt_at, at, r.age),
        sent_at = greatest(o.attempt_at, at - make_interval(secs => r.age)),
        next_attempt_at = null, unknown_at = null,
        charged_hour = case when not r.uncharge then o.charged_hour end,
        charged_day = case when not r.uncharge then o.charged_day end,
        error_code = null, error_category = null, error_message = null, original_code = null
    from unnest(reports) r
    where o.id = r.id and o.epoch = r.epoch and o.state in ('SENT_ATTEMPT', 'UNKNOWN')
      and r.state = 'SENT' and not r.give_back;
    if not exists (select 1 from unnest(reports) r where r.state <> 'SENT' or r.give_back) then
        return;
    end if;
    -- Surely not accepted, and not the message's fault: as if it had never begun.
    update email_outbox o
    set state = 'PENDING', attempts = o.attempts - 1, attempt_at = null, session_id = null, unknown_at = null,
        charged_hour = null, charged_day = null,
        next_attempt_at = at + make_interval(secs => nullif(r.retry_in, 0)),
        error_code = case when r.withdrawn then o.error_code else r.code end,
        error_category = case when r.withdrawn then o.error_category else r.category end,
        error_message = case when r.withdrawn then o.error_message else r.message end,
        original_code = case when r.withdrawn then o.original_code else r.original_code end,
        history = case when r.code is null then o.history else mailout_given_back_history(o, r, at) end
    from unnest(reports) r
    where o.id = r.id and o.epoch = r.epoch and o.state in ('SENT_ATTEMPT', 'UNKNOWN') and r.give_back;
    update email_outbox o
    set state = 'UNKNOWN', error_code = r.code, error_category = r.category, error_message = r.message,
        original_code = r.original_code, unknown_at = at,
        history = mailout_unknown_history(o, r.code, r.category, r.message, r.original_code, at)
    from unnest(reports) r
    where o.id = r.id and o.epoch = r.epoch and o.state = 'SENT_ATTEMPT' and r.state = 'UNKNOWN';
    update email_outbox o
    set state = r.state, duration_ms = mailout_took(o.attempt_at, at, r.age), unknown_at = null,
        error_code = r.code, error_category = r.category, error_message = r.message, original_code = r.original_code,
        charged_hour = case when not r.uncharge then o.charged_hour end,
        charged_day = case when not r.uncharge then o.charged_day end,
        failed_at = case when r.state = 'RETRY_SCHEDULED' then o.failed_at
                         else greatest(o.attempt_at, at - make_interval(secs => r.age)) end,
        next_attempt_at = case when r.state = 'RETRY_SCHEDULED' then
            at + make_interval(secs => coalesce(r.retry_in, 0))
            else greatest(o.attempt_at, at - make_interval(secs => r.age)) + make_interval(secs => r.retry_in) end,
        history = case when r.state = 'RETRY_SCHEDULED' then
            mailout_remember(o, at, o.epoch, mailout_try_again_entry(o, r, at, o.attempts + 1)) else o.history end
    from unnest(reports) r
    where o.id = r.id and o.epoch = r.epoch and o.state in ('SENT_ATTEMPT', 'UNKNOWN') and not r.give_back
      and r.state in ('FAILED', 'VALIDATION_FAILED', 'RETRY_SCHEDULED');
end $$;
comment on function mailout_record is 'Results count by epoch alone, also from a sender that was given up.';

create or replace function mailout_without_row(reports mailout_report[], at timestamptz) returns jsonb
language plpgsql set search_path = public as $$
declare
    missing uuid[] := array(select distinct r.id from unnest(reports) r
                            where not r.withdrawn and not exists (select 1 from email_outbox o where o.id = r.id));
begin
    if missing = '{}' then
        return '[]';
    end if;
    insert into dead_letters (id, topic, payload, error, created_at)
    select mailout_uuid('dead letter', 'outbox', r.id::text, r.epoch::text), 'outbox',
           jsonb_build_object('message', r.id, 'epoch', r.epoch, 'state', r.state, 'ses_id', r.message_id),
           'OUTBOX_NOT_FOUND', at
    from unnest(reports) r where r.id = any(missing) and not r.withdrawn
    on conflict do nothing;
    return to_jsonb(missing);
end $$;
comment on function mailout_without_row is 'Results of messages that the outbox does not have: each a dead letter.';

create or replace function mailout_remember(o email_outbox, at timestamptz, epoch integer, entry jsonb) returns jsonb
language sql immutable set search_path = public as $$
    select coalesce(o.history, '[]') || (jsonb_build_object(
        'at', mailout_seconds(at), 'attempt', o.attempts, 'epoch', $3,
        'attempt_at', case when (o.history -> -1 -> 'epoch') is distinct from to_jsonb(o.epoch)
                           then mailout_seconds(o.attempt_at) end) || entry)
$$;
comment on function mailout_remember is 'The history with one more line. The first line of an epoch also tells when it began.';

create or replace function mailout_try_again_entry(
    o email_outbox, r mailout_report, at timestamptz, next_attempt integer) returns jsonb
language sql immutable set search_path = public as $$
    select jsonb_build_object(
        'type', r.state, 'errorCode', r.code, 'errorCategory', r.category, 'errorMessage', r.message,
        'originalCode', r.original_code, 'willRetry', true, 'nextAttemptNumber', next_attempt,
        'backoffDelay', round(r.retry_in * 1000), 'durationMs', mailout_took(o.attempt_at, at, r.age))
$$;
comment on function mailout_try_again_entry is 'What went wrong, and when the message is tried again.';

create or replace function mailout_given_back_history(o email_outbox, r mailout_report, at timestamptz) returns jsonb
language plpgsql immutable set search_path = public as $$
declare
    last_entry jsonb := o.history -> -1;
    told jsonb := mailout_remember(
        o, at, o.epoch, mailout_try_again_entry(o, r, at, o.attempts) || '{"type": "PENDING", "count": 1}'::jsonb);
begin
    if last_entry ->> 'type' = 'PENDING' and last_entry ->> 'errorCode' = r.code then
        return (o.history - -1) || ((told -> -1) || jsonb_build_object(
            'count', (last_entry ->> 'count')::integer + 1, 'attempt_at', last_entry -> 'attempt_at'));
    end if;
    return told;
end $$;
comment on function mailout_given_back_history is 'The history with an attempt that was given back. The same answer again counts in the last line: hours of throttling are one.';

create or replace function mailout_unknown_history(
    o email_outbox, code text, category text, why text, original_code text, at timestamptz) returns jsonb
language sql immutable set search_path = public as $$
    select mailout_remember(o, at, o.epoch, jsonb_build_object(
        'type', 'UNKNOWN', 'errorCode', code, 'errorCategory', category, 'errorMessage', why,
        'originalCode', original_code))
$$;
comment on function mailout_unknown_history is 'The history with the moment at which an attempt was lost.';

-- ── What is wanted ──

create or replace function mailout_lock_campaigns(reports mailout_report[], lane uuid) returns void
language sql volatile set search_path = public as $$
    select 1 from campaign_queue q
    where q.id = lane
       or q.id in (select o.campaign_id from email_outbox o join unnest(reports) r on r.id = o.id)
    order by q.id for update
$$;
comment on function mailout_lock_campaigns is 'The mailouts whose ledger this step may change, locked in id order.';

create or replace function mailout_begun(sender uuid, asked boolean) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(jsonb_build_object('id', o.id, 'epoch', o.epoch) order by o.seq), '[]')
    from email_outbox o where asked and o.session_id = sender and o.state = 'SENT_ATTEMPT'
$$;
comment on function mailout_begun is 'What a session has begun, for a sender whose last step was lost.';

create or replace function mailout_leave_nothing(sender uuid, at timestamptz) returns void
language sql volatile set search_path = public as $$
    update email_outbox o
    set state = 'UNKNOWN', error_code = null, error_category = null, original_code = null,
        error_message = 'its sender ended without an answer', unknown_at = at,
        history = mailout_unknown_history(o, null, null, 'its sender ended without an answer', null, at)
    where o.session_id = sender and o.state in ('SENT_ATTEMPT', 'UNKNOWN') and o.state = 'SENT_ATTEMPT'
$$;
comment on function mailout_leave_nothing is 'A closing session leaves no attempt in the air: what it does not speak of is unknown.';

create or replace function mailout_halt(mailout campaign_queue, lane uuid, stop boolean) returns text
language sql stable set search_path = public as $$
    select case
        when stop then 'stop'
        when exists (select 1 from switches where name = 'all_paused') then 'all_paused'
        when lane is null or mailout.id is null then null
        when mailout.status = 'CANCELLED' then 'cancelled'
        when mailout.defer_reason = 'paused' then 'paused'
        when mailout.status = 'PENDING' then 'deferred'
        when mailout.frozen_at is null then 'not_frozen'
    end
$$;
comment on function mailout_halt is 'Why nothing may begin, although something is due.';

create or replace function mailout_begin(
    step jsonb, sender sender_sessions, mailout campaign_queue, at timestamptz, uncharged usage[]) returns jsonb
language plpgsql set search_path = public as $$
declare
    seconds double precision := mailout_seconds(at);
    room integer;
    limited text;
    slots record;
    claimed record;
    companies jsonb := '{}';  -- of messages without a mailout: what each company has left
    rehearsal boolean := sender.transport = 'folder';
    ahead integer;  -- single mails that are due, and somebody is there to send them: they go first
begin
    if sender.campaign_id is null then
        companies := mailout_company_room(step, at, uncharged);
    elsif mailout_single_mails_served(at, rehearsal) then
        ahead := cardinality(mailout_due_in_turn(
            at, rehearsal, mailout_full(mailout_company_room(step, at, uncharged)), (step ->> 'want')::integer));
        step := jsonb_set(step, '{want}', to_jsonb(greatest(0, (step ->> 'want')::integer - ahead)));
    end if;
    select r.* into room, limited from mailout_room(step, mailout.company_id, at, uncharged) r;
    select r.* into slots from pace p
    cross join lateral mailout_reserve(p, step -> 'pace', seconds, least((step ->> 'want')::integer, room)) r
    where p.scope = step -> 'pace' ->> 'scope';
    select c.* into claimed
    from mailout_claim(step, sender, mailout, at, companies, slots.free, slots.next_at, slots.gap) c;
    update pace p
    set next_at = slots.next_at
            + ceil(jsonb_array_length(claimed.rows)::numeric / (step -> 'pace' ->> 'group')::integer) * slots.gap,
        factor = slots.told, factor_at = slots.told_at,
        first_day = case when claimed.rows = '[]' then p.first_day
                         else coalesce(p.first_day, mailout_bucket(step, 'day', at)) end
    where p.scope = step -> 'pace' ->> 'scope';
    perform mailout_charge(claimed.charges || uncharged);
    return jsonb_build_object(
        'rows', claimed.rows, 'suppressed', claimed.suppressed, 'refused', claimed.refused,
        'limited', case when room = 0 then limited end,
        'next_slot_at', case when (step ->> 'want')::integer = 0 then seconds + (step -> 'pace' ->> 'yields')::double precision
                             when room > 0 and slots.free = 0 then slots.next_at end,
        'next_due_at', case when claimed.rows = '[]' then
            mailout_next_due(sender.campaign_id, at, mailout_full(companies), rehearsal) end);
end $$;
comment on function mailout_begin is 'As many messages as limits and pacer allow.';

create or replace function mailout_full(companies jsonb) returns text[]
language sql immutable set search_path = public as $$
    select array(select c.key from jsonb_each_text(companies) c where c.value::bigint <= 0)
$$;
comment on function mailout_full is 'The companies that have nothing left.';

create or replace function mailout_single_mails_served(at timestamptz, rehearsal boolean) returns boolean
language sql stable set search_path = public as $$
    select exists (select 1 from sender_sessions s
                   where s.campaign_id is null and s.closed_at is null and s.lease_until > $1
                     and (s.transport = 'folder') = $2)
$$;
comment on function mailout_single_mails_served is 'Whether somebody alive sends single mails.';

create or replace function mailout_due_in_turn(
    at timestamptz, rehearsal boolean, full_companies text[], most integer) returns bigint[]
language plpgsql stable set search_path = public as $$
begin
    if most <= 0 then
        return '{}';
    end if;
    return array(
        with recursive company (id) as (
            (select o.company_id collate "C" from email_outbox o
             where o.campaign_id is null and o.state in ('PENDING', 'RETRY_SCHEDULED')
             order by o.company_id collate "C" limit 1)
            union all
            select (select o.company_id collate "C" from email_outbox o
                    where o.campaign_id is null and o.state in ('PENDING', 'RETRY_SCHEDULED')
                      and o.company_id collate "C" > c.id
                    order by o.company_id collate "C" limit 1)
            from company c where c.id is not null
        )
        select d.seq from company c
        cross join lateral (
            select o.seq, row_number() over (
                       order by coalesce(o.next_attempt_at, '-infinity'::timestamptz), o.seq) as turn
            from email_outbox o
            where o.campaign_id is null and o.state in ('PENDING', 'RETRY_SCHEDULED')
              and o.company_id collate "C" = c.id
              and coalesce(o.next_attempt_at, '-infinity'::timestamptz) <= at and o.is_rehearsal = rehearsal
            order by coalesce(o.next_attempt_at, '-infinity'::timestamptz), o.seq limit most) d
        left join single_turns t on t.company_id = c.id
        where c.id <> all(full_companies)
        order by d.turn, coalesce(t.last_at, '-infinity'::timestamptz), d.seq limit most);
end $$;
comment on function mailout_due_in_turn is 'Single mails that are due: one of each company, then the second of each; first whoever has waited longest for a turn.';

create or replace function mailout_paused_companies() returns text[]
language plpgsql stable set search_path = public as $$
begin
    if not exists (select 1 from switches where name = 'all_paused') then
        return '{}';
    end if;
    return array(select distinct o.company_id from email_outbox o
                 where o.campaign_id is null and o.state in ('PENDING', 'RETRY_SCHEDULED')
                   and o.company_id <> 'mailout');
end $$;
comment on function mailout_paused_companies is 'Whose single mails wait while everything is paused: all but mailout''s own, to its administrator.';

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
comment on function mailout_claim is 'Due messages in order: who unsubscribed or paused is suppressed, who is wrong is refused, the others are begun.';

create or replace function mailout_bucket(step jsonb, kind text, at timestamptz) returns text
language sql immutable set search_path = public as $$
    select b.key from jsonb_to_recordset(step -> 'buckets') as b (
        kind text, key text, starts_at double precision, ends_at double precision)
    where b.kind = $2 and b.starts_at <= mailout_seconds(at) and mailout_seconds(at) < b.ends_at limit 1
$$;
comment on function mailout_bucket is 'The hour or the day that the store''s time is in, as Python names it.';

create or replace function mailout_next_due(
    lane uuid, at timestamptz, full_companies text[] default '{}', rehearsal boolean default false)
returns double precision
language plpgsql stable set search_path = public as $$
declare
    due timestamptz;
begin
    -- Most often something is due at once, and the first row says so.
    perform 1 from email_outbox o
    where coalesce(o.campaign_id, '00000000-0000-0000-0000-000000000000'::uuid)
              = coalesce(lane, '00000000-0000-0000-0000-000000000000'::uuid)
      and o.state in ('PENDING', 'RETRY_SCHEDULED') and (o.next_attempt_at is null or o.next_attempt_at <= at)
      and o.company_id <> all(full_companies) and (lane is not null or o.is_rehearsal = rehearsal)
    limit 1;
    if found then
        return mailout_seconds(at);
    end if;
    select min(o.next_attempt_at) into due from email_outbox o
    where coalesce(o.campaign_id, '00000000-0000-0000-0000-000000000000'::uuid)
              = coalesce(lane, '00000000-0000-0000-0000-000000000000'::uuid)
      and o.state in ('PENDING', 'RETRY_SCHEDULED') and o.company_id <> all(full_companies)
      and (lane is not null or o.is_rehearsal = rehearsal);
    return mailout_seconds(due);
end $$;
comment on function mailout_next_due is 'When the next waiting message is due; null: none waits.';

create or replace function mailout_seen(lane uuid, at timestamptz, closing boolean) returns jsonb
language sql volatile set search_path = public as $$
    update campaign_queue q set locked_at = case when closing then q.locked_at else at end where q.id = lane
    returning jsonb_build_object('recipients', q.recipients, 'pending', q.pending, 'in_flight', q.in_flight,
                                 'sent', q.sent, 'failed', q.failed, 'suppressed', q.suppressed,
                                 'unknown', q.unknown)
$$;
comment on function mailout_seen is 'The counts after a step; taking them, the mailout is seen to be in somebody''s hands.';
