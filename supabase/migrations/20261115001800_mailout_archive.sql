-- Retention: mailouts that are over go to an archive outside; their rows in the queue stay.

-- ── What the row tells is all that is left to tell ──

create or replace function mailout_refuse_archived() returns trigger
language plpgsql as $$
begin
    raise exception 'transition refused: an archived mailout does not change any more' using errcode = 'PT409';
end $$;
comment on function mailout_refuse_archived is 'The counts of an archived mailout are final, whoever writes.';

create or replace trigger campaign_queue_archived_is_final before update on campaign_queue
    for each row when (
        old.archived_at is not null
        and (new.id, new.archived_at, new.status, new.outcome, new.metrics, new.recipients, new.sent, new.failed,
             new.suppressed)
            is distinct from
            (old.id, old.archived_at, old.status, old.outcome, old.metrics, old.recipients, old.sent, old.failed,
             old.suppressed))
    execute function mailout_refuse_archived();

-- ── Archiving ──

create or replace function mailout_is_over(q campaign_queue) returns boolean
language sql immutable set search_path = '' as $$
    select q.status in ('COMPLETED', 'CANCELLED') and q.pending + q.in_flight + q.unknown = 0 and q.archived_at is null
$$;
comment on function mailout_is_over is 'Nothing of it waits, is on its way or in doubt, and it is not archived yet.';

create or replace function mailout_archive_state(id text) returns text
language sql stable set search_path = public as $$
    select md5(to_jsonb(q)::text || coalesce((select c.value::text from counters c where c.name = 'forgotten'), ''))
    from campaign_queue q where q.id = mailout_to_uuid($1) and mailout_is_over(q)
$$;
comment on function mailout_archive_state is 'Changes with the mailout, and when anybody is forgotten: an archive that is being written may have the address already. Null: it is not over, or archived.';

create or replace function mailout_mark_archived(id text, as_it_was text, place text) returns boolean
language plpgsql set search_path = public as $$
#variable_conflict use_column
begin
    perform 1 from campaign_queue q where q.id = mailout_to_uuid($1) for update;
    update campaign_queue q set archived_at = mailout_now(), archived_to = $3
    where q.id = mailout_to_uuid($1) and mailout_archive_state($1) = $2;
    return found;
end $$;
comment on function mailout_mark_archived is 'The archive is complete: from here on it is the truth; false: the mailout changed, or another was first.';

create or replace function mailout_delete_archived_events(id text, ids jsonb) returns integer
language plpgsql set search_path = public as $$
declare
    gone integer;
begin
    delete from delivery_events e using campaign_queue q
    where e.id in (select jsonb_array_elements_text(ids)) and q.id = e.campaign_id
      and q.id = mailout_to_uuid($1) and q.archived_at is not null;
    get diagnostics gone = row_count;
    return gone;
end $$;
comment on function mailout_delete_archived_events is 'Events that the archive has; one that came later is not named, and stays.';

create or replace function mailout_delete_archived_messages(id text, most integer) returns integer
language plpgsql set search_path = public as $$
declare
    gone integer;
begin
    delete from email_outbox o
    where o.seq = any(array(
        select c.seq from email_outbox c join campaign_queue q on q.id = c.campaign_id
        where c.campaign_id = mailout_to_uuid($1) and q.archived_at is not null
        order by c.seq limit most));
    get diagnostics gone = row_count;
    return gone;
end $$;
comment on function mailout_delete_archived_messages is 'The next part of an archived mailout''s messages; how many. After the last, nothing of it is here but its row in the queue.';

create or replace function mailout_trim_inbox(before double precision, most integer) returns integer
language plpgsql set search_path = public as $$
declare
    gone integer;
begin
    delete from events_inbox i
    where i.id = any(array(select c.id from events_inbox c where c.applied_at < to_timestamp(before) limit most));
    get diagnostics gone = row_count;
    return gone;
end $$;
comment on function mailout_trim_inbox is 'Events that were applied so long ago that nobody will send them again; how many.';

create or replace function mailout_discard_unbegun(id text) returns boolean
language plpgsql set search_path = public set statement_timeout = '60s' as $$
declare
    unbegun uuid;
begin
    perform 1 from email_outbox o where o.campaign_id = mailout_to_uuid($1) order by o.id for update;
    select q.id into unbegun from campaign_queue q
    where q.id = mailout_to_uuid($1) and q.status = 'CANCELLED' and q.archived_at is null
      and q.recipients = q.suppressed
      and not exists (select 1 from email_outbox o where o.campaign_id = q.id and o.epoch > 0)
    for update of q;
    if unbegun is null then
        return false;
    end if;
    delete from email_outbox o where o.campaign_id = unbegun;
    delete from page_reports r where r.mailout = unbegun::text;
    delete from campaign_queue q where q.id = unbegun;
    return true;
end $$;
comment on function mailout_discard_unbegun is 'Lets go of a mailout that was cancelled before its first message: it may be sent after all.';
