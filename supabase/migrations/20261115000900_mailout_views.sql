-- One truth, each seed's vocabulary. `security_invoker`: a view shows nobody more than its tables do.

create or replace view email_logs with (security_invoker = true) as
select o.id as outbox_id,
       o.company_id,
       o.recipient_id,
       o.email as "to",
       coalesce(c.subject, q.subject) as subject,
       o.state as status,
       o.ses_message_id,
       o.error_code,
       o.error_message as error_reason,
       o.attempts,
       o.duration_ms,
       coalesce(o.request_id, o.campaign_id::text, o.id::text) as request_id,  -- what asked for it
       o.created_at,
       o.sent_at,
       o.failed_at
from email_outbox o
left join campaign_queue q on q.id = o.campaign_id
left join contents c on c.hash = coalesce(o.content_id, q.content_hash);
comment on view email_logs is 'The main record of one message.';

-- A line of the history carries the epoch after it: what it has told of that epoch, the columns leave out.
create or replace view message_attempts with (security_invoker = true) as
select o.id, o.seq, h.place - 1 as place,
       h.entry ->> 'type' as type,
       to_timestamp((h.entry ->> 'at')::double precision) as at,
       to_timestamp((h.entry ->> 'attempt_at')::double precision) as attempt_at,
       (h.entry ->> 'attempt')::integer as attempt,
       h.entry - 'type' - 'at' - 'attempt_at' - 'epoch' as metadata
from email_outbox o
cross join lateral jsonb_array_elements(o.history) with ordinality as h (entry, place)
where o.history is not null
union all
select o.id, o.seq, 1000000,
       case when o.state in ('SENT', 'FAILED', 'VALIDATION_FAILED')
             and (told.epoch, told.type) is distinct from (o.epoch, o.state) then o.state end,
       case o.state when 'SENT' then o.sent_at else o.failed_at end,
       case when told.epoch = o.epoch then null
            when o.state = 'VALIDATION_FAILED' then coalesce(o.attempt_at, o.failed_at)
            else o.attempt_at end,
       o.attempts,
       case o.state
           when 'SENT' then jsonb_build_object('sesMessageId', o.ses_message_id, 'durationMs', o.duration_ms,
                                               'attempt', o.attempts)
           else jsonb_build_object('errorCode', o.error_code, 'errorCategory', o.error_category,
                                   'errorMessage', o.error_message, 'originalCode', o.original_code,
                                   'willRetry', false, 'durationMs', o.duration_ms, 'attempt', o.attempts)
       end
from email_outbox o
cross join lateral (select (o.history -> -1 ->> 'epoch')::integer as epoch, o.history -> -1 ->> 'type' as type) told
where o.state in ('SENT_ATTEMPT', 'SENT', 'FAILED', 'VALIDATION_FAILED', 'UNKNOWN');
comment on view message_attempts is 'Every attempt: those that ended otherwise from the history, the last one from its columns.';

create or replace view email_events with (security_invoker = true) as
select a.id as email_log_id, e.type, e.metadata, e.at as created_at, a.seq, a.place, e.step
from message_attempts a
join email_outbox o on o.seq = a.seq
left join campaign_queue q on q.id = o.campaign_id
cross join lateral (values
    (1, 'RECEIVED', a.attempt_at, jsonb_build_object('attempt', a.attempt)),
    (2, 'VALIDATED', a.attempt_at, jsonb_build_object('attempt', a.attempt, 'checks', jsonb_path_query_array(
        jsonb_build_array(
            case when o.campaign_id is null then 'INTEGRITY' end,  -- when it was handed in
            'OUTBOX',  -- it waits, is due, and nobody else has it
            case when o.campaign_id is null or (q.id is not null and not q.is_test) or o.recipient_id is not null then 'RECIPIENT' end,
            case when coalesce(o.content_id, q.content_hash) is not null then 'TEMPLATE' end),
        '$[*] ? (@ != null)'))),
    (3, 'SENT_ATTEMPT', a.attempt_at, jsonb_build_object('attempt', a.attempt)),
    (4, a.type, a.at, a.metadata)
) as e (step, type, at, metadata)
where case e.step
    when 1 then a.attempt_at is not null
    when 4 then a.type is not null
    else a.attempt_at is not null and a.type is distinct from 'VALIDATION_FAILED'
end;
comment on view email_events is 'Every transition, in order. An attempt''s first three are one commit and have one time.';

create or replace view delivery_history with (security_invoker = true) as
select o.id, o.email, q.campaign_tag, q.send_batch_id, o.ses_message_id as provider_message_id, o.sent_at
from email_outbox o
join campaign_queue q on q.id = o.campaign_id
where o.state = 'SENT' and q.campaign_tag is not null;
comment on view delivery_history is 'What an article''s batch has delivered.';

create or replace view send_logs with (security_invoker = true) as
select o.id, o.campaign_id, o.email, s.transport as provider,
       case o.state when 'SENT' then 'sent' else 'failed' end as status,
       o.error_message, o.ses_message_id as message_id, o.sent_at,
       coalesce(o.sent_at, o.failed_at) as created_at
from email_outbox o
left join sender_sessions s on s.id = o.session_id
where o.state in ('SENT', 'FAILED', 'VALIDATION_FAILED');
comment on view send_logs is 'One line for each message that was tried to the end.';

create or replace function mailout_message_events(id text) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(jsonb_build_object(
        'type', e.type, 'metadata', e.metadata,
        'created_at', to_char(e.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
    ) order by e.place, e.created_at, e.step), '[]')
    from email_events e where e.email_log_id = mailout_to_uuid($1)
$$;
comment on function mailout_message_events is 'Every transition of one message.';
