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
where o.state = 'SENT' and q.campaign_tag is not null and not q.is_rehearsal;
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

-- ── One function reads all views: names are checked, values are parameters ──

create or replace function mailout_select_value(type text, place integer, many boolean) returns text
language sql immutable set search_path = '' as $$
    select case
        when many then format('any (array(select %s from unnest($1[%s]::text[]) as given (value)))',
                              case type when 'uuid' then 'public.mailout_to_uuid(given.value)'
                                        when 'timestamp with time zone' then 'to_timestamp(given.value::double precision)'
                                        else format('given.value::%s', type) end, place)
        when type = 'uuid' then format('public.mailout_to_uuid($1[%s])', place)
        when type = 'timestamp with time zone' then format('to_timestamp($1[%s]::double precision)', place)
        else format('$1[%s]::%s', place, type)
    end
$$;
comment on function mailout_select_value is 'A parameter of mailout_select as its column compares it: `type` is the column''s.';

create or replace function mailout_select(
    relation text, columns jsonb, filters jsonb, sort jsonb, descending boolean, after jsonb, most integer) returns jsonb
language plpgsql stable set search_path = public as $$
declare
    types jsonb;
    given text[] := '{}';
    conditions text[] := '{true}';
    filter jsonb;
    name text;
    operator text;
    way text := case when descending then ' desc' else '' end;
    found_rows jsonb;
begin
    select jsonb_object_agg(a.attname, format_type(a.atttypid, null)) into types
    from mailout_relations r
    join pg_class c on c.relname = r.name and c.relnamespace = 'public'::regnamespace and c.relkind = 'v'
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where r.name = relation and r.name like 'read\_%';
    if types is null then
        raise exception 'There is no view % to select from.', relation using errcode = 'PT400';
    end if;
    for name in select jsonb_array_elements_text(columns || sort) union all
                select f.value ->> 0 from jsonb_array_elements(filters) f loop
        if not types ? name then
            raise exception 'The view % has no column %.', relation, name using errcode = 'PT400';
        end if;
    end loop;
    if most not between 1 and 1000 then
        raise exception '% rows of %: it is between 1 and 1000 at a time.', most, relation using errcode = 'PT400';
    end if;
    for filter in select f.value from jsonb_array_elements(filters) f loop
        name := filter ->> 0;
        operator := filter ->> 1;
        if operator not in ('=', '!=', '<', '<=', '>', '>=', 'in', 'has') then
            raise exception 'There is no filter %.', operator using errcode = 'PT400';
        end if;
        if jsonb_typeof(filter -> 2) = 'null' then
            conditions := conditions || format('%I is %s null', name, case operator when '=' then '' else 'not' end);
            continue;
        end if;
        given := given || case operator when 'in' then (select array_agg(v)::text from jsonb_array_elements_text(filter -> 2) v)
                                        else filter ->> 2 end;
        conditions := conditions || case operator
            when 'in' then format('%I = %s', name, mailout_select_value(types ->> name, cardinality(given), true))
            when 'has' then format('strpos(%I, $1[%s]) > 0', name, cardinality(given))
            else format('%I %s %s', name, operator, mailout_select_value(types ->> name, cardinality(given), false)) end;
    end loop;
    if jsonb_typeof(after) = 'array' then
        conditions := conditions || (
            select format('(%s) %s (%s)', string_agg(format('%I', s.name), ', ' order by s.place),
                          case when descending then '<' else '>' end,
                          string_agg(mailout_select_value(types ->> s.name, cardinality(given) + s.place::integer, false),
                                     ', ' order by s.place))
            from jsonb_array_elements_text(sort) with ordinality as s (name, place));
        given := given || array(select jsonb_array_elements_text(after));
    end if;
    execute format(
        'select coalesce(jsonb_agg(to_jsonb(page)), ''[]'') from (select %s from public.%I where %s order by %s limit %s) page',
        (select string_agg(format('%I', c), ', ') from jsonb_array_elements_text(columns) c), relation,
        array_to_string(conditions, ' and '),
        (select string_agg(format('%I', s.name) || way, ', ' order by s.place)
         from jsonb_array_elements_text(sort) with ordinality as s (name, place)), most)
    into found_rows using given;
    return found_rows;
end $$;
comment on function mailout_select is 'Rows of one of the views read_*: at most 1,000, in a unique order, after a row that is known.';

-- ── What `mailout_select` reads. The names and columns are those of mailout/adapters/sqlite/migrations ──

create or replace view read_mailouts with (security_invoker = true) as
select id, kind, ref, subject, company_id, list_key, from_name, reply_to, is_test, is_rehearsal, status, outcome, priority,
       scheduled_at, deferred_until, defer_reason, defer_note, campaign_tag, send_batch_id, actor, content_hash, locked_by,
       locked_at, recipients, pending, in_flight, sent, failed, suppressed, unknown, metrics, transient_pauses,
       transient_sent, acknowledged, created_at, frozen_at, started_at, completed_at, archived_at, archived_to, retry_plan, snoozed,
       segment, segment_filter,
       public, slug, published_at, unpublished_at,
       case when is_test then 'test' when is_rehearsal then 'rehearsal' else 'real' end as mode,
       coalesce(completed_at, locked_at, started_at) as active_at,
       -- In the order in which they would be sent, then the newest first.
       case status when 'PROCESSING' then 0 when 'PENDING' then 1 else 2 end as place,
       case when status in ('PROCESSING', 'PENDING') then -priority else 0 end as urgency,
       case when status in ('PROCESSING', 'PENDING') then mailout_seconds(created_at) else -mailout_seconds(created_at) end as age
from campaign_queue;
comment on view read_mailouts is 'Mailouts, with the order in which they are sent: place, urgency, age.';

create or replace view read_open_mailouts with (security_invoker = true) as
select status, count(*) as mailouts, sum(pending)::bigint as pending, sum(in_flight)::bigint as in_flight, sum(sent)::bigint as sent,
       sum(failed)::bigint as failed, sum(suppressed)::bigint as suppressed, sum(unknown)::bigint as unknown
from campaign_queue where status in ('PENDING', 'PROCESSING') group by status;
comment on view read_open_mailouts is 'Unfinished mailouts by status, with their ledgers added up.';

create or replace view read_turns with (security_invoker = true) as
select company_id, max(locked_at) as at from campaign_queue where locked_at is not null group by company_id;
comment on view read_turns is 'When each company last sent.';

create or replace view read_switches with (security_invoker = true) as
select name, value from switches;
comment on view read_switches is 'What is on for everything.';

create or replace view read_requests with (security_invoker = true) as
select ref, how, asked_at, not_before from requests where answered_at is null;
comment on view read_requests is 'What was asked for and is not answered.';

create or replace view read_messages with (security_invoker = true) as
select seq, id, campaign_id, company_id, request_id, recipient_id, email, from_name, content_id, variables, state, attempts,
       epoch, session_id, next_attempt_at, ses_message_id, error_code, error_category, error_message, original_code,
       dedupe_key, created_at, attempt_at, sent_at, failed_at, unknown_at, duration_ms, charged_hour, charged_day, history,
       category, reply_to, headers, fingerprint, is_rehearsal
from email_outbox;
comment on view read_messages is 'Messages, as the outbox has them.';

create or replace view read_failed_messages with (security_invoker = true) as
select seq, id, campaign_id, company_id, request_id, recipient_id, email, from_name, content_id, variables, state, attempts,
       epoch, session_id, next_attempt_at, ses_message_id, error_code, error_category, error_message, original_code,
       dedupe_key, created_at, attempt_at, sent_at, failed_at, unknown_at, duration_ms, charged_hour, charged_day, history,
       category, reply_to, headers, fingerprint, is_rehearsal
from email_outbox where state in ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN');
comment on view read_failed_messages is 'Messages that failed or are in doubt: the few have an index of their own.';

create or replace view read_single_mails with (security_invoker = true) as
select m.*, c.subject from read_messages m left join contents c on c.hash = m.content_id where m.campaign_id is null;
comment on view read_single_mails is 'Messages without a mailout, with their subject.';

create or replace view read_notifications with (security_invoker = true) as
select * from read_single_mails where variables ->> 'tried_once' = 'yes';
comment on view read_notifications is 'Messages of notifications, with their subject: their producer''s queue counts the attempts.';

create or replace view read_notification_states with (security_invoker = true) as
select state, is_rehearsal, count(*) as n
from (select state, is_rehearsal from read_notifications order by seq desc limit 10000) latest group by 1, 2;
comment on view read_notification_states is 'How many of the latest 10,000 notifications are in which state.';

create or replace view read_message_events with (security_invoker = true) as
select email_log_id as message_id, place, step, type, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at, metadata from email_events;
comment on view read_message_events is 'Every transition of a message.';

create or replace view read_open_attempts with (security_invoker = true) as
select seq, id, epoch, session_id from email_outbox where state in ('SENT_ATTEMPT', 'UNKNOWN');
comment on view read_open_attempts is 'Attempts whose end is not written down.';

create or replace view read_doubts with (security_invoker = true) as
select count(*) as unknown, min(unknown_at) as oldest from email_outbox
where state = 'UNKNOWN' and state in ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN')
having count(*) > 0;
comment on view read_doubts is 'How many messages are in doubt, and since when.';

create or replace view read_sessions with (security_invoker = true) as
select s.id, s.campaign_id, s.worker, s.transport, s.step_no, s.lease_until, s.opened_at, s.closed_at,
       q.archived_at is not null as is_archived
from sender_sessions s left join campaign_queue q on q.id = s.campaign_id;
comment on view read_sessions is 'Senders, and whether what they sent is in an archive.';

create or replace view read_usage with (security_invoker = true) as
select scope, kind, key, n from usage;
comment on view read_usage is 'How many attempts were begun, by minute, hour and day.';

create or replace view read_usage_drift with (security_invoker = true) as
with charged (company, kind, key, n) as (
    select company_id, 'hour', charged_hour, count(*) from email_outbox
    where charged_hour is not null group by company_id, charged_hour
    union all
    select company_id, 'day', charged_day, count(*) from email_outbox
    where charged_day is not null group by company_id, charged_day
), expected (scope, kind, key, n) as (
    select company, kind, key, n from charged
    union all
    select 'all', kind, key, sum(n)::bigint from charged group by kind, key
)
select e.scope collate "C" as scope, e.kind collate "C" as kind, e.key collate "C" as key, coalesce(u.n, 0) as counted, e.n as charged
from expected e left join usage u on u.scope = e.scope and u.kind = e.kind and u.key = e.key
where coalesce(u.n, 0) < e.n;
comment on view read_usage_drift is 'Counters that say less than the messages charged to them. A row knows its last attempt only, so more is no drift.';

create or replace view read_pace with (security_invoker = true) as
select scope, next_at, factor, factor_at, first_day from pace;
comment on view read_pace is 'The pacer of each account, and when its warm-up began.';

create or replace view read_quotas with (security_invoker = true) as
select q.scope, q.most, mailout_quota_left(q.scope) as available from provider_quota q;
comment on view read_quotas is 'What the provider allows in 24 hours, and what is available: what it had, less what was begun here since it was asked.';

create or replace view read_subscribers with (security_invoker = true) as
select s.id::text as id, s.email, s.email_norm, s.status, s.bounce_type, s.bounce_subtype, s.status_updated_at, s.from_name,
       mailout_places(s.ocd_ids) as ocd_ids, mailout_attributes(s.attributes) as attributes, s.created_at, s.left_at, s.complained_at, s.snoozed_until,
       (select coalesce(jsonb_agg(l.list_key order by l.list_key), '[]') from subscriptions l
        where l.email = s.email_norm and l.unsubscribed_at is null) as lists,
       concat_ws(E'\n', s.email_norm, lower(s.email), lower(concat_ws(' ', s.attributes ->> 'name', s.attributes ->> 'first_name',
                                                                    s.attributes ->> 'last_name'))) as searched,
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
       concat_ws(E'\n', s.email_norm, lower(s.email), lower(concat_ws(' ', s.attributes ->> 'name', s.attributes ->> 'first_name',
                                                                    s.attributes ->> 'last_name'))) as searched,
       -- A line each; `general` is everybody's who has not unsubscribed from it.
       E'\n' || case when exists (select 1 from subscriptions g where g.email = s.email_norm and g.list_key = 'general'
                                  and g.unsubscribed_at is not null) then '' else E'general\n' end
           || coalesce((select string_agg(l.list_key, E'\n') || E'\n' from subscriptions l where l.email = s.email_norm
                        and l.unsubscribed_at is null and l.list_key <> 'general'), '') as on_lists
from subscribers s where s.email_norm is not null and s.status <> 'active';
comment on view read_inactive_subscribers is 'Subscribers who unsubscribed or bounced: they have an index of their own.';

create or replace view read_subscriptions with (security_invoker = true) as
select email, list_key, unsubscribed_at, joined_at from subscriptions;
comment on view read_subscriptions is 'Who is on which list, and who unsubscribed from it.';

create or replace view read_lists with (security_invoker = true) as
select key, name, description, public, from_name, reply_to, footer, brand, archive, welcome_ref, true as is_saved from lists
union all
select used.key, used.key, '', false, null, null, null, '{}', false, null, false from (
    with recursive walk (key) as (
        select min(list_key) from subscriptions where unsubscribed_at is null
        union all
        select (select min(s.list_key) from subscriptions s where s.list_key > walk.key and s.unsubscribed_at is null)
        from walk where walk.key is not null)
    select key from walk where key is not null) used
where not exists (select 1 from lists l where l.key = used.key);
comment on view read_lists is 'Lists. A key that people are on is one, also if nobody has described it.';

create or replace view read_subscriber_counts with (security_invoker = true) as
select status, count(*) as people from subscribers where email_norm is not null and status is not null group by status;
comment on view read_subscriber_counts is 'How many subscribers have which status.';

create or replace view read_unreachable with (security_invoker = true) as
select email_problem as reason, count(*) as people from subscribers
where email_problem is not null and status = 'active' group by email_problem;
comment on view read_unreachable is 'How many active subscribers get no mail because of their address, by reason.';

create or replace view read_attributes with (security_invoker = true) as
select s.email_norm as email, had.name from subscribers s cross join lateral jsonb_object_keys(mailout_attributes(s.attributes)) as had (name)
where s.email_norm is not null;
comment on view read_attributes is 'Which attributes a subscriber has.';

create or replace view read_attribute_names with (security_invoker = true) as
select distinct had.name from subscribers s cross join lateral jsonb_object_keys(mailout_attributes(s.attributes)) as had (name);
comment on view read_attribute_names is 'The attributes that anybody has.';

create or replace view read_segments with (security_invoker = true) as
select name, filter, tree, updated_at from segments;
comment on view read_segments is 'Filters over subscribers, by name.';

create or replace view read_desk_unsubscribes with (security_invoker = true) as
select email, list_key, at from desk_unsubscribes;
comment on view read_desk_unsubscribes is 'Whom somebody unsubscribed on the dashboard, and when.';

create or replace view read_people_by_attribute with (security_invoker = true) as
select s.*, had.key as attribute, lower(had.value) as attribute_value
from read_subscribers s cross join lateral jsonb_each_text(s.attributes) as had (key, value) where had.value ~ '\S';
comment on view read_people_by_attribute is 'Whoever has an attribute, once for each, with its value as text.';

create or replace view read_imports with (security_invoker = true) as
select id, at, by, file, decisions, counts, undone_at from imports;
comment on view read_imports is 'Imports of people, and on whose word somebody became active.';

create or replace view read_contents with (security_invoker = true) as
select hash, subject, html, text from contents;
comment on view read_contents is 'Rendered contents.';

create or replace view read_errors with (security_invoker = true) as
select id, code, message, stage, provider, mailout, email, attempts, at, reported_at from error_records;
comment on view read_errors is 'What went wrong, for people.';

create or replace view read_dead_letters with (security_invoker = true) as
select id, topic, payload, error, created_at from dead_letters;
comment on view read_dead_letters is 'What could not be delivered, or read.';

create or replace view read_due_reports with (security_invoker = true) as
select mailout, asked from page_reports where told < asked;
comment on view read_due_reports is 'Mailouts whose page does not show yet how they stand.';

create or replace view read_waiting_events with (security_invoker = true) as
select id, source, payload, received_at from events_inbox where applied_at is null;
comment on view read_waiting_events is 'Events that are not applied yet.';

create or replace view read_inbox with (security_invoker = true) as
select count(*) as waiting, min(received_at) as oldest from events_inbox where applied_at is null
having count(*) > 0;  -- no row: who may see none of the events is told nothing
comment on view read_inbox is 'How many events wait, and since when.';

create or replace view read_delivery_events with (security_invoker = true) as
select id, message_id, campaign_id, email, event_type, provider_message_id, detail, event_at from delivery_events;
comment on view read_delivery_events is 'What SES reported.';

create or replace view read_unheard with (security_invoker = true) as
select min(s.opened_at) as since
from sender_sessions s join campaign_queue q on q.id = s.campaign_id
where s.transport = 'ses' and s.opened_at > coalesce((select max(received_at) from events_inbox), '-infinity')
  and q.sent > 2 * (coalesce((q.metrics ->> 'delivered')::integer, 0)
                    + coalesce((q.metrics ->> 'bounced')::integer, 0))
having count(*) > 0;
comment on view read_unheard is 'Since when mail has been sent through SES and no event has come.';

create or replace view read_alerts with (security_invoker = true) as
select key, since_at from alerts where ended_at is null;
comment on view read_alerts is 'What needs a person now.';

create or replace view read_counters with (security_invoker = true) as
select name, labels, value from counters;
comment on view read_counters is 'What Prometheus gets.';

create or replace view read_archives_to_empty with (security_invoker = true) as
select q.id, q.archived_at from campaign_queue q
where q.archived_at is not null and exists (select 1 from email_outbox o where o.campaign_id = q.id);
comment on view read_archives_to_empty is 'Archived mailouts whose messages are still here.';

create or replace view read_people_counts with (security_invoker = true) as
select day, counts from people_counts;
comment on view read_people_counts is 'How many people there were, day by day.';

create or replace view read_mailout_counts with (security_invoker = true) as
select campaign_id, at, counts from mailout_counts;
comment on view read_mailout_counts is 'How a mailout stood at each look.';

create or replace view read_acts with (security_invoker = true) as
select id, at, who, what, about from dashboard_acts;
comment on view read_acts is 'What people did on the dashboard.';

create or replace view read_ended_logins with (security_invoker = true) as
select id, ends_at from ended_logins;
comment on view read_ended_logins is 'Sessions of the dashboard that were signed out of, and links to sign in that were used.';

create or replace view read_notes with (security_invoker = true) as
select name, at, value from dashboard_notes;
comment on view read_notes is 'What was read elsewhere, with its time.';

create or replace view read_refusals with (security_invoker = true) as
select path, why, n, last_at from refused_requests;
comment on view read_refusals is 'What the gateway refused, by reason.';

create or replace view read_runs with (security_invoker = true) as
select campaign_id, run_id from mailout_runs;
comment on view read_runs is 'Which of Prefects flow runs sent a mailout last.';

create or replace view read_slices with (security_invoker = true) as
select id, article_key, section_order, is_headline, title, dek, body_md, link_url, scope_ocd_id, tags, publish_status,
       publish_at, expires_at, sort_index, coalesce(scope_ocd_id, '') as scope
from content_slices;
comment on view read_slices is 'The parts that articles are made of.';

create or replace view read_article_batches with (security_invoker = true) as
select mailout, article_key, audience_filter, as_of, slices, contents, census from article_batches;
comment on view read_article_batches is 'What a batch was asked to send.';

create or replace view read_companies with (security_invoker = true) as
select id, limit_per_hour, limit_per_day, created_at from companies;
comment on view read_companies is 'Whoever hands in single mails.';

create or replace view read_tokens with (security_invoker = true) as
select id, company_id, token_hash, to_jsonb(string_to_array(scopes, ',')) as scopes, limit_per_minute, created_at,
       revoked_at
from api_tokens;
comment on view read_tokens is 'Tokens, also revoked ones.';

create or replace view read_recipients with (security_invoker = true) as
select company_id, id, external_id, email, name, deleted_at, created_at, updated_at from recipients
where deleted_at is null;
comment on view read_recipients is 'Who a company writes to, without those it deleted.';

-- ── Sign-ups ──

create or replace view read_consents with (security_invoker = true) as
select email, list_key, at, wording, source from consents;
comment on view read_consents is 'Who agreed to which list, when, to which words and on which page.';

create or replace view read_sign_up_days with (security_invoker = true) as
select day, list_key, asked, confirmed from sign_up_days;
comment on view read_sign_up_days is 'How many asked to join a list on a day, and how many of these confirmed it.';

create or replace view read_welcomes with (security_invoker = true) as
select l.email, l.list_key collate "C" as list_key, said.at as joined_at, c.welcome_ref,
       mailout_attributes(s.attributes) as attributes, s.from_name as own_from_name, c.from_name, c.reply_to,
       exists (select 1 from email_outbox o where o.id = mailout_uuid('welcome', l.list_key, l.email)) as is_written,
       exists (select 1 from email_outbox o where o.id = mailout_uuid('welcome', l.list_key, l.email, 'rehearsal')) as is_rehearsed
from consents said
join subscriptions l on l.email = said.email and l.list_key = said.list_key and l.joined_at = said.at and l.unsubscribed_at is null
join lists c on c.key = l.list_key and c.welcome_ref is not null
join subscribers s on s.email_norm = l.email and s.status = 'active';
comment on view read_welcomes is 'Who joined a list that has a welcome letter, and whether it is in the outbox.';

create or replace view read_confirmations with (security_invoker = true) as
select count(*) as sent, count(*) filter (where exists (
           select 1 from delivery_events e where e.message_id = o.id and e.event_type = 'bounce')) as bounced
from email_outbox o
where o.category = 'confirmation' and o.state = 'SENT' and not o.is_rehearsal and o.email not like '%@simulator.amazonses.com'
  and o.created_at > (select max(l.created_at) from email_outbox l where l.category = 'confirmation') - interval '7 days'
having count(*) > 0;  -- no row: who may see none of the messages is told nothing
comment on view read_confirmations is 'Confirmations of the last seven days in which one was sent, and how many bounced.';

create or replace view read_web_letters with (security_invoker = true) as
select q.id, q.slug, q.content_hash, c.subject, coalesce(q.list_key, 'general') as list_key, l.name as list_name,
       coalesce(l.public, false) as joinable, q.public, coalesce(q.started_at, q.created_at) as sent_at, q.published_at,
       greatest(q.published_at, q.unpublished_at,
                coalesce(q.completed_at, q.locked_at, q.started_at, q.created_at)) as changed_at
from campaign_queue q join contents c on c.hash = q.content_hash
left join lists l on l.key = coalesce(q.list_key, 'general')
where q.slug is not null and (q.public or q.unpublished_at is not null) and q.sent > 0
  and not q.is_test and not q.is_rehearsal;
comment on view read_web_letters is 'Letters on the web, from the first message on; those that were taken off it, too.';
