-- Everything else that moves a message, and the sessions that do. Locks as in `step`: sessions, messages by id,
-- mailouts by id (in the trigger).

create or replace function mailout_open_session(
    campaign_id text, worker text, transport text, lease double precision) returns uuid
language plpgsql set search_path = public as $$
declare
    at timestamptz := mailout_now();
    opened uuid;
begin
    if $1 is not null then
        perform mailout_get($1);
    end if;
    insert into sender_sessions (campaign_id, worker, transport, lease_until, opened_at)
    values (mailout_to_uuid($1), $2, $3, at + make_interval(secs => lease), at)
    returning sender_sessions.id into opened;
    return opened;
end $$;
comment on function mailout_open_session is 'A sender''s session; its id is the fencing token.';

create or replace function mailout_session_step(session text) returns integer
language sql stable set search_path = public as $$
    select step_no from sender_sessions where id = mailout_to_uuid(session)
$$;
comment on function mailout_session_step is 'The last step a session made; null: never heard of it.';

create or replace function mailout_stop_machine(machine text) returns integer
language plpgsql set search_path = public as $$
declare
    asked integer;
begin
    perform 1 from sender_sessions s
    where s.closed_at is null and s.lease_until > mailout_now() and rtrim(s.worker, '0123456789') = $1 || '-'
    order by s.id for update;
    update sender_sessions s set stop_requested = true
    where s.closed_at is null and s.lease_until > mailout_now() and rtrim(s.worker, '0123456789') = $1 || '-';
    get diagnostics asked = row_count;
    return asked;
end $$;
comment on function mailout_stop_machine is 'Asks the living sessions of one machine''s workers (machine-<pid>) to end.';

create or replace function mailout_doubts(session text) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(jsonb_build_object('id', o.id, 'epoch', o.epoch, 'state', o.state) order by o.seq), '[]')
    from email_outbox o
    where o.session_id = mailout_to_uuid(session) and o.state in ('SENT_ATTEMPT', 'UNKNOWN')
$$;
comment on function mailout_doubts is 'Attempts of a session whose end is not written down.';

create or replace function mailout_epochs(ids jsonb) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_object_agg(o.id, o.epoch), '{}') from email_outbox o
    where o.id in (select mailout_to_uuid(given.id) from jsonb_array_elements_text(ids) as given (id))
$$;
comment on function mailout_epochs is 'The epoch of each message that there is.';

create or replace function mailout_reap(grace double precision) returns integer
language plpgsql set search_path = public as $$
declare
    at timestamptz := mailout_now();
    dead uuid[];
    lost integer;
begin
    with gone as (
        select s.id from sender_sessions s
        where s.closed_at is null and s.lease_until < at - make_interval(secs => grace)
        order by s.id for update skip locked  -- locked: it makes a step just now, and lives
    ), closed as (
        update sender_sessions s set closed_at = at from gone where s.id = gone.id returning s.id
    )
    select array_agg(closed.id) into dead from closed;
    perform 1 from email_outbox o
    where o.session_id = any(dead) and o.state in ('SENT_ATTEMPT', 'UNKNOWN') and o.state = 'SENT_ATTEMPT'
    order by o.id for update;
    update email_outbox o
    set state = 'UNKNOWN', error_code = null, error_category = null, original_code = null,
        error_message = 'its sender disappeared', unknown_at = at,
        history = mailout_unknown_history(o, null, null, 'its sender disappeared', null, at)
    where o.session_id = any(dead) and o.state in ('SENT_ATTEMPT', 'UNKNOWN') and o.state = 'SENT_ATTEMPT';
    get diagnostics lost = row_count;
    return lost;
end $$;
comment on function mailout_reap is 'Closes sessions whose lease ran out; what they had begun becomes UNKNOWN, never PENDING.';

create or replace function mailout_chosen(campaign_id text, of_state text, ids jsonb, after bigint, most integer)
returns bigint[]
language plpgsql set search_path = public as $$
declare
    seqs bigint[];
    strangers text;
begin
    if ids is not null then
        select string_agg(left_over.id, ', ') into strangers
        from (
            select given.id from jsonb_array_elements_text(ids) as given (id)
            where not exists (select 1 from email_outbox o
                              where o.id = mailout_to_uuid(given.id) and o.campaign_id = mailout_to_uuid($1)
                                and o.state = of_state)
            limit 5
        ) left_over;
        if strangers is not null then
            raise exception 'Not a message in state % of this mailout: %.', of_state, strangers using errcode = 'PT404';
        end if;
    end if;
    select array_agg(o.seq) into seqs from (
        select c.seq from email_outbox c
        where c.campaign_id = mailout_to_uuid($1) and c.state = of_state
          and c.state in ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN') and c.seq > after
          and (ids is null or c.id in (select mailout_to_uuid(given.id)
                                       from jsonb_array_elements_text(ids) as given (id)))
        order by c.seq limit most
    ) o;
    perform 1 from email_outbox o where o.seq = any(seqs) order by o.id for update;
    return seqs;
end $$;
comment on function mailout_chosen is 'One part of a mailout''s messages in a state (all, or these), locked in id order.';

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
    where o.campaign_id = mailout_to_uuid($1) and o.state = 'UNKNOWN' and to_state = 'PENDING'
      and o.unknown_at > at - make_interval(secs => wait) and (ids is null or o.seq = any(seqs));
    if early > 0 then
        raise exception '% messages became unknown too recently to be sent again.', early
            using errcode = 'PT400', hint = format('Their outcome may still arrive: wait %s minutes more.',
                round(extract(epoch from since - at + make_interval(secs => wait)) / 60));
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
comment on function mailout_settle is 'A person''s word on UNKNOWN messages. The epoch rises: a late result of the old attempt changes nothing.';

create or replace function mailout_retry_failed(
    campaign_id text, after bigint, most integer, ids jsonb default null) returns jsonb
language plpgsql set search_path = public as $$
declare
    seqs bigint[] := mailout_chosen($1, 'FAILED', ids, after, most);
    moved integer;
begin
    update email_outbox o
    set state = 'PENDING', attempts = 0, attempt_at = null, failed_at = null, sent_at = null,
        history = case
            when o.history -> -1 ->> 'type' = 'FAILED' and o.history -> -1 -> 'epoch' = to_jsonb(o.epoch)
                then o.history  -- a person had settled it so
            else mailout_remember(o, o.failed_at, o.epoch, jsonb_build_object(
                'type', 'FAILED', 'errorCode', o.error_code, 'errorCategory', o.error_category,
                'errorMessage', o.error_message, 'originalCode', o.original_code, 'willRetry', false,
                'durationMs', o.duration_ms))
        end
    where o.seq = any(seqs) and o.state = 'FAILED'
      and exists (select 1 from campaign_queue q where q.id = o.campaign_id and q.status <> 'CANCELLED');
    get diagnostics moved = row_count;
    return jsonb_build_object('moved', moved, 'last', (select max(seq) from unnest(seqs) as seq));
end $$;
comment on function mailout_retry_failed is 'FAILED messages (all, or these) wait again, with all their attempts before them.';

create or replace function mailout_confirm(id text, epoch integer, message_id text) returns boolean
language plpgsql set search_path = public as $$
begin
    update email_outbox o
    set state = 'SENT', ses_message_id = coalesce(nullif($3, ''), o.ses_message_id), sent_at = mailout_now(),
        duration_ms = mailout_took(o.attempt_at, mailout_now(), 0), next_attempt_at = null, unknown_at = null,
        error_code = null, error_category = null, error_message = null, original_code = null
    where o.id = mailout_to_uuid($1) and o.epoch = $2 and $2 > 0  -- 0: nothing has begun under it
      and o.state in ('PENDING', 'RETRY_SCHEDULED', 'SENT_ATTEMPT', 'UNKNOWN');
    return found;
end $$;
comment on function mailout_confirm is 'An event says that this attempt was accepted.';

create or replace function mailout_revoke(id text, epoch integer, code text, message text) returns boolean
language plpgsql set search_path = public as $$
begin
    update email_outbox o
    set state = 'FAILED', error_code = code, error_category = 'PERMANENT_ERROR', error_message = message,
        failed_at = mailout_now(),
        history = mailout_remember(o, o.sent_at, o.epoch, jsonb_build_object(
            'type', 'SENT', 'sesMessageId', o.ses_message_id, 'durationMs', o.duration_ms))
    where o.id = mailout_to_uuid($1) and o.epoch = $2 and $2 > 0 and o.state = 'SENT';
    return found;
end $$;
comment on function mailout_revoke is 'An event says that an accepted message was then rejected.';

create or replace function mailout_message(id text) returns jsonb
language sql stable set search_path = public as $$
    select to_jsonb(o) from email_outbox o where o.id = mailout_to_uuid($1)
$$;
comment on function mailout_message is 'One message, whole.';

create or replace function mailout_messages(campaign_id text, after bigint, most integer, states jsonb) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(page) order by page.seq), '[]')
    from (
        -- Only one of the two is run. The few that failed have an index of their own.
        (select o.* from email_outbox o
         where states <@ '["FAILED", "VALIDATION_FAILED", "UNKNOWN"]'
           and o.state in ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN')
           and o.campaign_id = mailout_to_uuid($1) and o.seq > after
           and o.state in (select jsonb_array_elements_text(states))
         order by o.seq limit most)
        union all
        (select o.* from email_outbox o
         where not coalesce(states <@ '["FAILED", "VALIDATION_FAILED", "UNKNOWN"]', false)
           and o.campaign_id = mailout_to_uuid($1) and o.seq > after
           and (states is null or o.state in (select jsonb_array_elements_text(states)))
         order by o.seq limit most)
    ) page
$$;
comment on function mailout_messages is 'One page of a mailout''s messages, by seq.';

create or replace function mailout_usage(scope text, kind text, key text) returns integer
language sql stable set search_path = public as $$
    select coalesce((select u.n from usage u where u.scope = $1 and u.kind = $2 and u.key = $3), 0)
$$;
comment on function mailout_usage is 'How many attempts one counter holds.';

create or replace function mailout_set_quota(
    scope text, available bigint, asked_at double precision, most bigint) returns void
language sql volatile set search_path = public as $$
    insert into provider_quota (scope, available, asked_at, most)
    values ($1, $2, to_timestamp($3), $4)
    on conflict (scope) do update
    set available = excluded.available, asked_at = excluded.asked_at, most = excluded.most
$$;
comment on function mailout_set_quota is 'What the provider had left, of how many (null: unlimited), and from when on attempts count against it.';
