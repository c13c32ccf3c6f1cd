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
        perform mailout_mailout($1);
    end if;
    insert into sender_sessions (campaign_id, worker, transport, lease_until, opened_at)
    values (mailout_to_uuid($1), $2, $3, at + make_interval(secs => lease), at)
    returning sender_sessions.id into opened;
    return opened;
end $$;
comment on function mailout_open_session is 'A sender''s session; its id is the fencing token.';

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
                              where o.id = mailout_to_uuid(given.id) and o.state = of_state
                                and o.campaign_id is not distinct from mailout_to_uuid($1))
            limit 5
        ) left_over;
        if strangers is not null then
            raise exception 'Not a message in state % %: %.', of_state,
                case when $1 is null then 'without a mailout' else 'of this mailout' end, strangers
                using errcode = 'PT404';
        end if;
    end if;
    if $1 is null then  -- single mails, which are always named
        select array_agg(o.seq) into seqs from email_outbox o
        where o.id in (select mailout_to_uuid(given.id) from jsonb_array_elements_text(ids) as given (id));
        perform 1 from email_outbox o where o.seq = any(seqs) order by o.id for update;
        return seqs;
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
    where ($1 is null or o.campaign_id = mailout_to_uuid($1)) and o.state = 'UNKNOWN' and to_state = 'PENDING'
      and o.unknown_at > at - make_interval(secs => wait) and ((ids is null and $1 is not null) or o.seq = any(seqs));
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
    set state = 'PENDING', attempts = 0, attempt_at = null, failed_at = null, sent_at = null, next_attempt_at = null,
        history = case
            when o.history -> -1 ->> 'type' = 'FAILED' and o.history -> -1 -> 'epoch' = to_jsonb(o.epoch)
                then o.history  -- a person had settled it so
            else mailout_remember(o, o.failed_at, o.epoch, jsonb_build_object(
                'type', 'FAILED', 'errorCode', o.error_code, 'errorCategory', o.error_category,
                'errorMessage', o.error_message, 'originalCode', o.original_code, 'willRetry', false,
                'durationMs', o.duration_ms))
        end
    where o.seq = any(seqs) and o.state = 'FAILED'
      and not exists (select 1 from campaign_queue q where q.id = o.campaign_id and q.status = 'CANCELLED');
    get diagnostics moved = row_count;
    return jsonb_build_object('moved', moved, 'last', (select max(seq) from unnest(seqs) as seq));
end $$;
comment on function mailout_retry_failed is 'FAILED messages (all, or these) wait again, with all their attempts before them.';

create or replace function mailout_cancel_single_mails(ids jsonb, why text) returns integer
language plpgsql volatile set search_path = public as $$
declare
    wanted uuid[] := array(select mailout_to_uuid(given.id) from jsonb_array_elements_text(ids) as given (id));
    moved integer;
begin
    perform 1 from email_outbox o where o.id = any(wanted) order by o.id for update;
    update email_outbox o set state = 'SUPPRESSED', error_message = why, next_attempt_at = null
    where o.id = any(wanted) and o.campaign_id is null and o.state in ('PENDING', 'RETRY_SCHEDULED');
    get diagnostics moved = row_count;
    return moved;
end $$;
comment on function mailout_cancel_single_mails is 'Single mails that wait become SUPPRESSED; how many.';

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

create or replace function mailout_set_quota(
    scope text, available bigint, asked_at double precision, most bigint) returns void
language sql volatile set search_path = public as $$
    insert into provider_quota (scope, available, asked_at, most)
    values ($1, $2, to_timestamp($3), $4)
    on conflict (scope) do update
    set available = excluded.available, asked_at = excluded.asked_at, most = excluded.most
$$;
comment on function mailout_set_quota is 'What the provider had left, of how many (null: unlimited), and from when on attempts count against it.';

-- ── Mails that programs hand in one at a time: who may, to whom, and what such a message has besides ──

create table if not exists companies (
    id             text collate "C" primary key,
    limit_per_hour integer,
    limit_per_day  integer,
    created_at     timestamptz not null
);
comment on table companies is 'Whoever hands in single mails. Limits of its own stand in the place of those for every company.';

create unique index if not exists recipients_external on recipients (company_id, external_id);

create index if not exists email_outbox_single_due
    on email_outbox (company_id collate "C", coalesce(next_attempt_at, '-infinity'::timestamptz), seq)
    where campaign_id is null and state in ('PENDING', 'RETRY_SCHEDULED');
create index if not exists email_outbox_request on email_outbox (request_id) where request_id is not null;

create table if not exists single_turns (
    company_id text collate "C" primary key,
    last_at    timestamptz not null
);
comment on table single_turns is 'When a company''s single mails last had a turn.';

-- ── Handing in ──

create or replace function mailout_accept_single_mails(mails jsonb) returns jsonb
language plpgsql volatile set search_path = public as $$
declare
    mail jsonb;
    verdicts jsonb := '[]';
begin
    for mail in select value from jsonb_array_elements(mails) loop
        verdicts := verdicts || jsonb_build_array(mailout_accept_single_mail(mail));
    end loop;
    return verdicts;
end $$;
comment on function mailout_accept_single_mails is 'Single mails into the outbox, in one commit, each with its own verdict.';

create or replace function mailout_accept_single_mail(mail jsonb) returns jsonb
language plpgsql volatile set search_path = public as $$
declare
    known email_outbox;
    whom record;
    at timestamptz := mailout_now();
    not_before timestamptz := to_timestamp((mail ->> 'send_at')::double precision);
begin
    select * into known from email_outbox o where o.id = (mail ->> 'id')::uuid;
    if found then
        return mailout_repeated(mail, known);
    end if;
    select r.* into whom from mailout_recipient_of(mail, at) r;
    if not whom.agrees then
        return jsonb_build_object('verdict', 'no_recipient', 'id', mail ->> 'id');
    end if;
    insert into contents values (mail ->> 'hash', mail ->> 'subject', mail ->> 'html', mail ->> 'plain', at)
    on conflict do nothing;
    insert into email_outbox (id, company_id, request_id, recipient_id, email, from_name, content_id, next_attempt_at,
                              dedupe_key, created_at, category, reply_to, headers, variables, fingerprint, is_rehearsal,
                              list_key)
    values ((mail ->> 'id')::uuid, mail ->> 'company_id', mail ->> 'request_id', whom.found_id, mail ->> 'email',
            mail ->> 'from_name', mail ->> 'hash', case when not_before > at then not_before end,
            mail ->> 'idempotency_key', at, mail ->> 'category', mail ->> 'reply_to',
            nullif(mail -> 'headers', 'null'), nullif(mail -> 'variables', 'null'), mail ->> 'fingerprint',
            (mail ->> 'is_rehearsal')::boolean, mail ->> 'list_key')
    on conflict (id) do nothing;
    if not found then  -- somebody else handed it in just now
        select * into known from email_outbox o where o.id = (mail ->> 'id')::uuid;
        return mailout_repeated(mail, known);
    end if;
    return jsonb_build_object('verdict', 'accepted', 'id', mail ->> 'id', 'state', 'PENDING',
                              'request_id', mail ->> 'request_id');
end $$;
comment on function mailout_accept_single_mail is 'One single mail into the outbox.';

create or replace function mailout_repeated(mail jsonb, known email_outbox) returns jsonb
language sql immutable set search_path = public as $$
    select jsonb_build_object(
        'verdict', case when known.fingerprint is not distinct from mail ->> 'fingerprint' then 'repeated' else 'conflict' end,
        'id', known.id, 'state', known.state, 'request_id', known.request_id)
$$;
comment on function mailout_repeated is 'The key is known: the same mail again, or another one.';

create or replace function mailout_recipient_of(mail jsonb, at timestamptz, out agrees boolean, out found_id text)
language plpgsql volatile set search_path = public as $$
declare
    whom recipients;
begin
    agrees := true;
    if mail ->> 'recipient_id' is null and mail ->> 'external_id' is null then
        return;
    end if;
    select * into whom from recipients r
    where r.company_id = mail ->> 'company_id'
      and case when mail ->> 'recipient_id' is not null then r.id = mail ->> 'recipient_id'
               else r.external_id = mail ->> 'external_id' end;
    if not found and mail ->> 'recipient_id' is null then
        insert into recipients (company_id, id, email, external_id, name, created_at, updated_at)
        values (mail ->> 'company_id', mail ->> 'new_recipient_id', mail ->> 'email', mail ->> 'external_id',
                mail ->> 'recipient_name', at, at)
        on conflict do nothing;
        found_id := mail ->> 'new_recipient_id';
        return;
    end if;
    agrees := whom.id is not null and whom.deleted_at is null and whom.email = mail ->> 'email'
              and coalesce(mail ->> 'external_id' = whom.external_id, mail ->> 'external_id' is null);
    found_id := case when agrees then whom.id end;
end $$;
comment on function mailout_recipient_of is 'Whether who is named is there with this address; somebody with a new name is written down.';

-- ── Looking up ──

create or replace function mailout_single_mails_waiting(rehearsal boolean) returns jsonb
language plpgsql volatile set search_path = public as $$
declare
    at timestamptz := mailout_now();
    waiting record;
begin
    select count(*) filter (where o.company_id <> 'mailout') as due, mailout_seconds(min(coalesce(o.next_attempt_at, o.created_at))) as since into waiting
    from email_outbox o
    where o.campaign_id is null and o.state in ('PENDING', 'RETRY_SCHEDULED')
      and (o.next_attempt_at is null or o.next_attempt_at <= at) and o.is_rehearsal = rehearsal;
    return jsonb_build_object(
        'now', mailout_seconds(at),
        'due', waiting.due,
        'due_since', waiting.since,
        'is_served', mailout_single_mails_served(at, rehearsal),
        'has_tokens', exists (select 1 from api_tokens t where t.revoked_at is null),
        'held', (select s.value::jsonb from switches s where s.name = mailout_hold_switch(rehearsal)));
end $$;
comment on function mailout_single_mails_waiting is 'Whether somebody has to be started for single mails, and what holds them up.';

create or replace function mailout_hold_switch(rehearsal boolean) returns text
language sql immutable set search_path = '' as $$
    select 'single_mails_held' || case when rehearsal then ' rehearsal' else '' end
$$;
comment on function mailout_hold_switch is 'Which switch says why single mails wait.';

create or replace function mailout_hold_single_mails(held jsonb, rehearsal boolean) returns void
language plpgsql volatile set search_path = public as $$
begin
    if held is null or jsonb_typeof(held) = 'null' then
        delete from switches where name = mailout_hold_switch(rehearsal);
    else
        insert into switches as s values (mailout_hold_switch(rehearsal), held::text)
        on conflict (name) do update
        set value = (held || jsonb_build_object('since', s.value::jsonb -> 'since'))::text;
    end if;
end $$;
comment on function mailout_hold_single_mails is 'Single mails cannot be sent, and why; null: they can. While it lasts, the first time stays.';

create or replace function mailout_has_single_mails(session text) returns boolean
language plpgsql volatile set search_path = public as $$
declare
    sender sender_sessions;
    at timestamptz := mailout_now();
begin
    select * into sender from sender_sessions s where s.id = mailout_to_uuid(session);
    return sender.id is null or sender.closed_at is not null or sender.stop_requested
        or exists (select 1 from switches where name = 'all_paused')
        or exists (select 1 from email_outbox o
                   where o.campaign_id is null and o.state in ('PENDING', 'RETRY_SCHEDULED')
                     and (o.next_attempt_at is null or o.next_attempt_at <= at)
                     and o.is_rehearsal = (sender.transport = 'folder'));
end $$;
comment on function mailout_has_single_mails is 'Whether a step of this idle session would have something to do.';

-- ── Companies, tokens, recipients ──

create or replace function mailout_add_company(id text) returns jsonb
language plpgsql volatile set search_path = public as $$
begin
    insert into companies (id, created_at) values ($1, mailout_now()) on conflict do nothing;
    return (select to_jsonb(c) from companies c where c.id = $1);
end $$;
comment on function mailout_add_company is 'The company that is there, or a new one.';

create or replace function mailout_set_company_limits(id text, per_hour integer, per_day integer) returns jsonb
language plpgsql volatile set search_path = public as $$
declare
    changed jsonb;
begin
    update companies c set limit_per_hour = $2, limit_per_day = $3 where c.id = $1 returning to_jsonb(c) into changed;
    if changed is null then
        raise exception 'There is no company %.', $1 using errcode = 'PT404', hint = '`mailout companies list` shows them.';
    end if;
    return changed;
end $$;
comment on function mailout_set_company_limits is 'A company''s own limits; null: those for every company.';

create or replace function mailout_add_token(token jsonb) returns void
language plpgsql volatile set search_path = public as $$
begin
    perform mailout_add_company(token ->> 'company_id');
    insert into api_tokens (token_hash, company_id, created_at, id, scopes, limit_per_minute)
    values (token ->> 'token_hash', token ->> 'company_id', mailout_now(), token ->> 'id',
            array_to_string(array(select jsonb_array_elements_text(token -> 'scopes')), ','),
            (token ->> 'limit_per_minute')::integer);
end $$;
comment on function mailout_add_token is 'Keeps what is needed to know a token again.';

create or replace function mailout_revoke_token(id text) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    update api_tokens t set revoked_at = mailout_now() where t.id = $1 and t.revoked_at is null;
    return found;
end $$;
comment on function mailout_revoke_token is 'Ends a token.';

create or replace function mailout_put_recipient(recipient jsonb) returns boolean
language plpgsql volatile set search_path = public as $$
declare
    before recipients;
    at timestamptz := mailout_now();
begin
    select * into before from recipients r
    where r.company_id = recipient ->> 'company_id' and r.external_id = recipient ->> 'external_id' for update;
    insert into recipients as r (company_id, id, email, external_id, name, created_at, updated_at)
    values (recipient ->> 'company_id', coalesce(before.id, recipient ->> 'id'), recipient ->> 'email',
            recipient ->> 'external_id', recipient ->> 'name', at, at)
    on conflict (company_id, id) do update
    set email = excluded.email, name = excluded.name, updated_at = at, deleted_at = null,
        created_at = case when r.deleted_at is null then r.created_at else at end;
    return before.id is null or before.deleted_at is not null;
end $$;
comment on function mailout_put_recipient is 'Makes or changes a recipient; whether it is new.';

create or replace function mailout_delete_recipient(company text, external_id text) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    update recipients r set deleted_at = mailout_now()
    where r.company_id = $1 and r.external_id = $2 and r.deleted_at is null;
    return found;
end $$;
comment on function mailout_delete_recipient is 'Marks a recipient as deleted.';
