-- Since 0.1.0: an address is erased in whichever case it was written, and so is the id that a program gave its request.

create or replace function mailout_without(written text, address text, instead text) returns text
language sql immutable set search_path = '' as $$
    select pg_catalog.regexp_replace(written,
        '(?:(?<![[:alnum:]_.+-])|(?<=\\[bfnrt])|(?<=\\u[0-9a-f]{4}))'
            || pg_catalog.regexp_replace(address, '([^[:alnum:]])', '\\\1', 'g')
            || '(?![[:alnum:]_-]|\.[[:alnum:]_])', instead, 'gi')
$$;

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
        request_id = null,
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
       or (strpos(lower(e.message), address) > 0 and mailout_without(e.message, address, instead) <> e.message);
    get diagnostics errors = row_count;
    update dead_letters d set payload = mailout_without(d.payload::text, quoted, instead)::jsonb,
        error = mailout_without(d.error, address, instead)
    where strpos(lower(d.payload::text), quoted) > 0 or strpos(lower(d.error), address) > 0;
    update dashboard_acts a set who = mailout_without(a.who, address, instead) where strpos(lower(a.who), address) > 0;
    return jsonb_build_object(
        'subscribers', people, 'messages', coalesce(array_length(known, 1), 0), 'events', events, 'errors', errors,
        'mailouts', coalesce((select jsonb_agg(distinct k.campaign_id) from unnest(known) k
                              where k.campaign_id is not null), '[]'));
end $$;

select mailout_finish_migration(16);
