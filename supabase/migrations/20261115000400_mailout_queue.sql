-- The queue: mailouts, why they wait, and the freezing of their audience.

create or replace function mailout_mailout(id text) returns jsonb
language plpgsql set search_path = public as $$
declare
    found_row jsonb;
begin
    select to_jsonb(q) into found_row from campaign_queue q where q.id = mailout_to_uuid($1);
    if found_row is null then
        raise exception 'There is no mailout %.', $1
            using errcode = 'PT404', hint = '`mailout queue list` shows those that there are.';
    end if;
    return found_row;
end $$;
comment on function mailout_mailout is 'One mailout.';

create or replace function mailout_enqueue(mailout jsonb) returns jsonb
language plpgsql set search_path = public as $$
begin
    insert into campaign_queue (id, kind, ref, subject, company_id, list_key, from_name, reply_to, is_test, is_rehearsal, priority,
                                scheduled_at, campaign_tag, send_batch_id, actor, retry_plan, segment, public, slug, content_hash, created_at)
    select n.id, n.kind, n.ref, n.subject, n.company_id, n.list_key, n.from_name, n.reply_to, n.is_test, n.is_rehearsal, n.priority,
           to_timestamp(n.scheduled_at), n.campaign_tag, n.send_batch_id, n.actor,
           nullif(n.retry_plan, 'null'), n.segment,
           coalesce(n.public, (select l.archive from lists l where l.key = coalesce(n.list_key, 'general')), false), n.slug,
           n.content_hash, mailout_now()
    from jsonb_to_record(mailout) as n (
        id uuid, kind text, ref text, subject text, company_id text, list_key text, from_name text, reply_to text,
        is_test boolean, is_rehearsal boolean, priority integer, scheduled_at double precision, campaign_tag text, send_batch_id text, actor text, retry_plan jsonb, segment text, public boolean, slug text,
        content_hash text)
    on conflict (id) do nothing;
    return mailout_mailout(mailout ->> 'id');
end $$;
comment on function mailout_enqueue is 'Writes a mailout down, or finds it.';

create or replace function mailout_is_due(q campaign_queue, at timestamptz) returns boolean
language sql immutable set search_path = '' as $$
    select q.status = 'PENDING' and (q.scheduled_at is null or q.scheduled_at <= at)
       and (q.defer_reason is null or (q.deferred_until is not null and q.deferred_until <= at))
$$;
comment on function mailout_is_due is 'It waits for nothing any more.';

create or replace function mailout_start(id text, worker text) returns jsonb
language plpgsql set search_path = public as $$
declare
    at timestamptz := mailout_now();
begin
    update campaign_queue q
    set status = 'PROCESSING', locked_by = worker, locked_at = at, started_at = coalesce(q.started_at, at),
        deferred_until = null, defer_reason = null, defer_note = null
    where q.id = mailout_to_uuid($1) and (q.status = 'PROCESSING' or mailout_is_due(q, at));
    return mailout_mailout($1);
end $$;
comment on function mailout_start is 'Takes a mailout up, if it is due.';

create or replace function mailout_release(id text) returns jsonb
language plpgsql set search_path = public as $$
begin
    update campaign_queue q set status = 'PENDING', locked_by = null
    where q.id = mailout_to_uuid($1) and q.status = 'PROCESSING' and not exists (
        select 1 from sender_sessions s
        where s.campaign_id = q.id and s.closed_at is null and s.lease_until > mailout_now());
    return mailout_mailout($1);
end $$;
comment on function mailout_release is 'Whoever sent it has stopped; nothing changes while another one is sending it.';

create or replace function mailout_defer(id text, reason text, until double precision, note text, held jsonb)
returns jsonb
language plpgsql set search_path = public as $$
begin
    -- A person's hold is never replaced by a mere wait. Pauses after transient errors are counted while nothing is sent.
    update campaign_queue q
    set status = 'PENDING', defer_reason = reason, deferred_until = to_timestamp(until), defer_note = note,
        transient_pauses = case when reason <> 'transient_errors' or q.status = 'PENDING' then q.transient_pauses
                                when q.sent > q.transient_sent then 1 else q.transient_pauses + 1 end,
        transient_sent = case when reason = 'transient_errors' then q.sent else q.transient_sent end
    where q.id = mailout_to_uuid($1) and q.status in ('PENDING', 'PROCESSING')
      and (until is null or q.defer_reason is null or not held ? q.defer_reason);
    return mailout_mailout($1);
end $$;
comment on function mailout_defer is 'A mailout waits, for a reason. `held`: the reasons that wait for a person.';

create or replace function mailout_resume(id text) returns jsonb
language plpgsql set search_path = public as $$
begin
    update campaign_queue q
    set deferred_until = null, defer_reason = null, defer_note = null,
        acknowledged = q.acknowledged || case q.defer_reason
            when 'reputation' then jsonb_build_object(
                'sent', q.sent,
                'bounced', coalesce((q.metrics ->> 'bounced')::integer, 0),
                'complained', coalesce((q.metrics ->> 'complained')::integer, 0))
            when 'duplicate_content' then jsonb_build_object('duplicate_content', 1)
            else '{}'::jsonb end
    where q.id = mailout_to_uuid($1) and q.status = 'PENDING';
    return mailout_mailout($1);
end $$;
comment on function mailout_resume is 'It waits for nothing but its turn; what held it for a person is acknowledged.';

create or replace function mailout_cancel(id text) returns jsonb
language plpgsql set search_path = public as $$
begin
    update campaign_queue q
    set status = 'CANCELLED', completed_at = mailout_now(),
        deferred_until = null, defer_reason = null, defer_note = null
    where q.id = mailout_to_uuid($1) and q.status in ('PENDING', 'PROCESSING');
    perform mailout_sweep(q.id, 10000) from campaign_queue q
    where q.id = mailout_to_uuid($1) and q.status = 'CANCELLED' and q.pending > 0;
    return mailout_mailout($1);
end $$;
comment on function mailout_cancel is 'Takes a mailout back; a long one is swept by calling this until nothing is pending.';

create or replace function mailout_complete(id text) returns jsonb
language plpgsql set search_path = public as $$
begin
    update campaign_queue q
    set status = 'COMPLETED', completed_at = mailout_now(),
        deferred_until = null, defer_reason = null, defer_note = null,
        outcome = case when q.failed + q.unknown = 0 then 'sent' else 'failed' end
    where q.id = mailout_to_uuid($1) and q.status in ('PENDING', 'PROCESSING') and q.frozen_at is not null
      and q.pending + q.in_flight = 0;
    return mailout_mailout($1);
end $$;
comment on function mailout_complete is 'COMPLETED, if nothing is pending or in flight.';

create or replace function mailout_set_content(id text, content_id text, subject text, instead boolean) returns jsonb
language plpgsql set search_path = public set statement_timeout = '60s' as $$
declare
    before text;
begin
    if instead then
        perform 1 from email_outbox o where o.campaign_id = mailout_to_uuid($1) order by o.id for update;
    end if;
    select q.content_hash into before from campaign_queue q where q.id = mailout_to_uuid($1) for update;
    update campaign_queue q set content_hash = content_id, subject = $3
    where q.id = mailout_to_uuid($1) and (q.content_hash is null or (
        instead and q.status = 'PENDING' and q.in_flight + q.sent + q.failed + q.unknown = 0
        and not exists (select 1 from email_outbox o where o.campaign_id = q.id and o.epoch > 0)));
    if found and before <> content_id then
        delete from email_outbox o where o.campaign_id = mailout_to_uuid($1);
        update campaign_queue q set frozen_at = null, freeze_started_at = null, freeze_cursor = '', segment_filter = null,
            recipients = 0, pending = 0, suppressed = 0
        where q.id = mailout_to_uuid($1);
    end if;
    return mailout_mailout($1);
end $$;
comment on function mailout_set_content is 'What is sent; the first one stays, or (instead) until a message of it has been tried. Another one needs other attributes of its readers: the audience is written again.';

create or replace function mailout_set_public(id text, public boolean) returns jsonb
language plpgsql set search_path = public as $$
begin
    update campaign_queue q
    set public = $2, published_at = case when $2 then mailout_now() else q.published_at end,
        unpublished_at = case when not $2 then mailout_now() end
    where q.id = mailout_to_uuid($1) and q.public <> $2;
    return mailout_mailout($1);
end $$;
comment on function mailout_set_public is 'Into the archive on the web, or out of it.';

create or replace function mailout_pause_all(paused boolean) returns void
language plpgsql set search_path = public as $$
begin
    if paused then
        insert into switches values ('all_paused', '1') on conflict do nothing;
    else
        delete from switches where name = 'all_paused';
    end if;
end $$;
comment on function mailout_pause_all is 'Everything waits for a person, or no longer.';

create or replace function mailout_freeze_subscribers(id text, chunk integer, attributes jsonb default '[]') returns integer
language plpgsql set search_path = public as $$
declare
    at timestamptz := mailout_now();
    mailout campaign_queue;
    filter jsonb;
    last_email text;
    added integer;
begin
    perform mailout_mailout($1);
    -- Whoever is there when it begins, also if the clock has gone back since they came.
    update campaign_queue q set freeze_started_at = coalesce(
        q.freeze_started_at, greatest(at, (select max(s.created_at) from subscribers s)))
    where q.id = mailout_to_uuid($1) returning * into mailout;
    if mailout.frozen_at is not null or mailout.status = 'CANCELLED' then
        return null;
    end if;
    if mailout.segment is not null then  -- taken together with the first part of the audience
        filter := coalesce(mailout.segment_filter, mailout_take_segment(mailout));
        mailout.segment_filter := filter;
    end if;
    -- Everybody (`general`), whoever is on the list, or a segment: two of the three are empty at no cost.
    with part as materialized (
        (select s.email_norm, s.from_name, s.attributes from subscribers s
         where filter is null and coalesce(mailout.list_key, 'general') = 'general' and s.status = 'active'
           and s.email_norm > mailout.freeze_cursor
           and (s.created_at is null or s.created_at <= mailout.freeze_started_at)
           and (s.snoozed_until is null or s.snoozed_until <= mailout.freeze_started_at)
           and not exists (select 1 from subscriptions l where l.email = s.email_norm and l.list_key = 'general'
                           and l.unsubscribed_at is not null)
         order by s.email_norm limit chunk)
        union all
        (select s.email_norm, s.from_name, s.attributes
         from subscriptions l join subscribers s on s.email_norm = l.email
         where filter is null and mailout.list_key <> 'general' and l.list_key = mailout.list_key and l.unsubscribed_at is null and l.email > mailout.freeze_cursor
           and s.status = 'active' and (s.created_at is null or s.created_at <= mailout.freeze_started_at)
           and (s.snoozed_until is null or s.snoozed_until <= mailout.freeze_started_at)
         order by l.email limit chunk)
        union all
        (select * from mailout_segment_part(mailout, filter, chunk) where filter is not null)
    ), written as (
        insert into email_outbox (id, campaign_id, company_id, email, from_name, variables, created_at)
        select mailout_uuid(mailout.id::text, part.email_norm), mailout.id, mailout.company_id,
               part.email_norm, part.from_name,
               -- Only what the content uses: a million rows have to stay narrow.
               case when $3 <> '[]' then (
                   select jsonb_object_agg(a.key, a.value) from jsonb_each_text(mailout_attributes(part.attributes)) a
                   where jsonb_exists($3, a.key)) end, at
        from part order by part.email_norm
        on conflict do nothing returning 1
    )
    select (select max(part.email_norm) from part), (select count(*) from written) into last_email, added;
    update campaign_queue q
    set freeze_cursor = coalesce(last_email, q.freeze_cursor),
        frozen_at = case when last_email is null then at end,
        snoozed = case when last_email is null then mailout_snoozed(mailout) else 0 end
    where q.id = mailout.id;
    return case when last_email is not null then added end;
end $$;
comment on function mailout_freeze_subscribers is 'Writes the next part of the audience, with these attributes; null once all are in.';

create or replace function mailout_freeze_recipients(id text, audience jsonb, up_to text) returns integer
language plpgsql set search_path = public as $$
declare
    at timestamptz := mailout_now();
    mailout campaign_queue;
    added integer;
begin
    perform mailout_mailout($1);
    select * into mailout from campaign_queue q where q.id = mailout_to_uuid($1) for update;
    if mailout.frozen_at is not null or mailout.status = 'CANCELLED' then
        return 0;
    end if;
    insert into email_outbox (id, campaign_id, company_id, recipient_id, email, from_name, content_id,
                              variables, created_at)
    select mailout_uuid(mailout.id::text, r.email), mailout.id, mailout.company_id, r.recipient_id, r.email,
           r.from_name, r.content_id, r.variables, at
    from jsonb_to_recordset(audience) as r (
        email text, from_name text, content_id text, variables jsonb, recipient_id text)
    -- Those with the same content stand together: neighbours fill one bulk call.
    order by coalesce(r.content_id, '') collate "C", r.email collate "C"
    on conflict do nothing;
    get diagnostics added = row_count;
    update campaign_queue q
    set frozen_at = case when up_to is null then at end, freeze_cursor = greatest(q.freeze_cursor, coalesce(up_to, ''))
    where q.id = mailout.id;
    return added;
end $$;
comment on function mailout_freeze_recipients is 'Writes a part of an audience that is handed in, and up to where it goes (null: that was the last); nothing may be sent before the last.';

-- ── What was asked for over HTTP ──

create table if not exists requests (
    ref         text collate "C" not null,
    how         text collate "C" not null,
    asked_at    timestamptz not null,
    answered_at timestamptz,
    not_before  timestamptz,
    primary key (ref, how)
);
comment on table requests is 'Mailouts asked for from outside. A row stays: the same request within a minute meets it.';
comment on column requests.how is 'as_written, test, real, or if_ready: only if the page asks for it itself.';

comment on column requests.not_before is 'A person chose when it is sent.';

create or replace function mailout_ask(
    ref text, how text, repeat_after double precision, not_before double precision) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    insert into requests (ref, how, asked_at, not_before) values ($1, $2, mailout_now(), to_timestamp($4))
    on conflict (ref, how) do update
    set asked_at = excluded.asked_at, answered_at = null, not_before = excluded.not_before
    where requests.asked_at <= excluded.asked_at - make_interval(secs => $3)
       or requests.not_before is distinct from excluded.not_before;
    return found;
end $$;
comment on function mailout_ask is 'Write a request down; false: it was asked for just now.';

create or replace function mailout_answered(ref text, how text) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    update requests r set answered_at = mailout_now(), not_before = null
    where r.ref = $1 and r.how = $2 and r.answered_at is null;
    return found;
end $$;
comment on function mailout_answered is 'It is in the queue, was refused for good, or was taken back; false: it did not wait any more.';
