-- Beside the outbox: which message belongs to a row of a producer's queue, and what that row was told.

create table if not exists notifications (
    key        text primary key,
    message_id uuid,
    requeues   integer not null default 0,
    told_epoch integer not null default -1,
    ended      boolean not null default false,
    noted_at   timestamptz not null
);
comment on table notifications is 'Rows of a producer''s queue: their message here, and what the producer was told of it.';
comment on column notifications.key is 'Of (source, dedupe_key, subscription, row).';
comment on column notifications.message_id is 'Null: requeued, and not in the outbox yet.';
comment on column notifications.told_epoch is 'The last attempt whose result the producer''s row holds.';
comment on column notifications.ended is 'The producer''s row was told its end: pending again, it was requeued.';

create or replace function mailout_recall_notifications(keys jsonb, requeue boolean) returns jsonb
language plpgsql volatile set search_path = public as $$
declare
    at timestamptz := mailout_now();
    old uuid[];
begin
    if requeue then
        -- Another message takes their place: what is in doubt counts as not sent, what waits is not sent.
        old := array(select n.message_id from notifications n
                     where n.key in (select jsonb_array_elements_text(keys)) and n.ended and n.message_id is not null);
        perform 1 from email_outbox o where o.id = any(old) order by o.id for update;
        update email_outbox o
        set state = 'FAILED', epoch = o.epoch + 1, unknown_at = null, failed_at = at,
            history = mailout_remember(o, at, o.epoch + 1, jsonb_build_object('type', 'FAILED', 'settled', true))
        where o.id = any(old) and o.state = 'UNKNOWN';
        update email_outbox o
        set state = 'SUPPRESSED', error_message = 'its notification was requeued', next_attempt_at = null
        where o.id = any(old) and o.state in ('PENDING', 'RETRY_SCHEDULED');
        update notifications n
        set requeues = n.requeues + 1, message_id = null, told_epoch = -1, ended = false, noted_at = at
        where n.key in (select jsonb_array_elements_text(keys)) and n.ended;
    end if;
    return (
        select coalesce(jsonb_agg(jsonb_build_object(
            'key', n.key, 'requeues', n.requeues, 'told_epoch', n.told_epoch, 'id', o.id, 'state', o.state,
            'epoch', o.epoch, 'ses_message_id', o.ses_message_id, 'error_code', o.error_code,
            'error_category', o.error_category, 'error_message', o.error_message,
            'retry_after', extract(epoch from o.next_attempt_at - o.failed_at)::double precision,
            'given_up_for', case when o.state = 'UNKNOWN' and o.error_code is null then
                extract(epoch from at - o.unknown_at)::double precision end)), '[]')
        from notifications n left join email_outbox o on o.id = n.message_id
        where n.key in (select jsonb_array_elements_text(keys)));
end $$;
comment on function mailout_recall_notifications is 'What is known of rows that are pending at the producer.';

create or replace function mailout_put_notifications(given jsonb) returns void
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
declare
    at timestamptz := mailout_now();
begin
    insert into email_outbox (id, email, content_id, variables, category, dedupe_key, request_id, created_at,
        is_rehearsal)
    select g.id, g.email, g.content_hash, g.variables, 'transactional', g.dedupe_key, g.request_id, at,
           g.is_rehearsal
    from jsonb_to_recordset(given) as g (
        id uuid, email text, content_hash text, variables jsonb, dedupe_key text, request_id text, is_rehearsal boolean)
    on conflict (id) do nothing;
    insert into notifications (key, message_id, noted_at)
    select g.key, g.id, at from jsonb_to_recordset(given) as g (key text, id uuid)
    on conflict (key) do update
    set message_id = excluded.message_id, told_epoch = -1, ended = false, noted_at = excluded.noted_at
    where notifications.message_id is distinct from excluded.message_id;
    update email_outbox o
    set state = 'PENDING', attempts = 0, attempt_at = null, failed_at = null, sent_at = null, next_attempt_at = null,
        history = mailout_remember(o, o.failed_at, o.epoch, jsonb_build_object(
            'type', 'FAILED', 'errorCode', o.error_code, 'errorCategory', o.error_category,
            'errorMessage', o.error_message, 'originalCode', o.original_code, 'willRetry', false,
            'durationMs', o.duration_ms))
    from notifications n
    where n.key in (select g.key from jsonb_to_recordset(given) as g (key text))
      and o.id = n.message_id and o.state = 'FAILED' and o.epoch = n.told_epoch and not n.ended;
end $$;
comment on function mailout_put_notifications is 'Into the outbox, each once; one whose last attempt failed and was told waits again.';

create or replace function mailout_take_back_notifications(messages jsonb) returns jsonb
language plpgsql volatile set search_path = public as $$
declare
    wanted uuid[] := array(select mailout_to_uuid(given.value) from jsonb_each_text(messages) as given);
begin
    perform 1 from email_outbox o where o.id = any(wanted) order by o.id for update;
    update email_outbox o
    set state = 'SUPPRESSED', error_message = 'its subscription does not want it now', next_attempt_at = null
    where o.id = any(wanted) and o.state in ('PENDING', 'RETRY_SCHEDULED');
    update notifications n set ended = true
    from jsonb_each_text(messages) as given
    join email_outbox o on o.id = mailout_to_uuid(given.value) and o.state = 'SUPPRESSED'
    where n.key = given.key and n.message_id = o.id;
    return (select coalesce(jsonb_object_agg(o.id, o.state), '{}') from email_outbox o where o.id = any(wanted));
end $$;
comment on function mailout_take_back_notifications is 'Those that nobody has begun become SUPPRESSED; the state of each afterwards.';

create or replace function mailout_note_told(told jsonb) returns void
language sql volatile set search_path = public as $$
    update notifications n set told_epoch = t.epoch, ended = t.ended, noted_at = mailout_now()
    from jsonb_to_recordset(told) as t (key text, epoch integer, ended boolean)
    where n.key = t.key
$$;
comment on function mailout_note_told is 'After the producer''s commit: a crash in between is never taken for a requeue.';
