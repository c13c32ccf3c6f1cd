-- Since 0.1.0: what readers said stays said, whoever imports, undoes or signs up after it.

create or replace function mailout_undo_import(id text) returns jsonb
language plpgsql volatile set search_path = public set statement_timeout = '60s' as $$
declare
    undone imports;  persons text[];  people integer;  lists integer;
begin
    select * into undone from imports i where i.id = mailout_to_uuid($1) for update;
    if undone.id is null then
        raise exception 'There is no import %.', $1 using errcode = 'PT404',
            hint = '`mailout subscribers undo-import` lists them.';
    end if;
    if undone.undone_at is not null then
        raise exception 'This import was undone already.' using errcode = 'PT400';
    end if;
    if exists (
        select 1 from campaign_queue q
        where not q.is_rehearsal and not q.is_test
          and coalesce(q.completed_at, q.locked_at, q.started_at, q.created_at) >= undone.at
          and (q.archived_at is not null and q.sent > 0  -- its messages are elsewhere: nobody can tell to whom
               or exists (select 1 from email_outbox o join import_people p on p.email = o.email
                          where o.campaign_id = q.id and o.state in ('SENT', 'SENT_ATTEMPT', 'UNKNOWN')
                            and p.import_id = undone.id and p.list_key in ('', q.list_key)))) then
        raise exception 'People of this import were mailed since.' using errcode = 'PT400',
            hint = 'Unsubscribe who should get no more: `mailout subscribers unsubscribe EMAIL`.';
    end if;
    -- Who has said something since stays: also that they want no mail must not be lost.
    persons := array(
        select p.email from import_people p join subscribers s on s.email_norm = p.email
        where p.import_id = undone.id and p.list_key = '' and s.status = 'active' and s.status_updated_at = s.created_at
          and not exists (
              select 1 from subscriptions l where l.email = p.email
                and (l.unsubscribed_at is not null or not exists (
                    select 1 from import_people i where i.import_id = undone.id
                      and i.email = l.email and i.list_key = l.list_key)))
        order by p.email for update of s);
    update email_outbox o set state = 'SUPPRESSED', error_message = 'import undone', next_attempt_at = null
    from campaign_queue q
    where o.campaign_id = q.id and q.status in ('PENDING', 'PROCESSING') and o.state in ('PENDING', 'RETRY_SCHEDULED')
      and (o.email = any(persons) or exists (
          select 1 from import_people p
          where p.import_id = undone.id and p.email = o.email and p.list_key = q.list_key));
    with taken as (
        delete from subscriptions l using import_people p
        where p.import_id = undone.id and p.email = l.email and p.list_key = l.list_key and l.unsubscribed_at is null
        returning l.email)
    select count(*) into lists from taken where taken.email <> all(persons);
    delete from subscribers s where s.email_norm = any(persons);
    get diagnostics people = row_count;
    delete from import_people p where p.import_id = undone.id;
    update imports i set undone_at = mailout_now() where i.id = undone.id;
    return jsonb_build_object('people', people, 'lists', lists,
                              'kept', coalesce((undone.counts ->> 'added')::integer, 0) - people);
end $$;

select mailout_finish_migration(21);
