-- Since 0.1.0: archiving keeps what soft bounces are counted by, an unsubscribe that is taken back is only that one,
-- and confirmations and links that wait are counted with the single mails.

create or replace function mailout_delete_archived_events(id text, ids jsonb) returns integer
language plpgsql set search_path = public as $$
declare
    gone integer;
begin
    delete from delivery_events e using campaign_queue q
    where e.id in (select jsonb_array_elements_text(ids)) and q.id = e.campaign_id
      and q.id = mailout_to_uuid($1) and q.archived_at is not null
      and not (e.event_type in ('bounce', 'delivered') and exists (
          select 1 from delivery_events b where b.email = e.email and b.event_type = 'bounce'
             and coalesce(b.detail ->> 'bounceType', '') <> 'Permanent'));
    get diagnostics gone = row_count;
    return gone;
end $$;

create or replace function mailout_resubscribe(address text, list_key text, within double precision default null)
returns boolean language plpgsql set search_path = public as $$
declare
    one record;
    left_at timestamptz;
    too_old constant timestamptz := mailout_now() - make_interval(secs => within);
begin
    perform 1 from subscribers s where s.email_norm = address for update;
    if not mailout_may_return(address, list_key) or mailout_left_before(address, list_key, too_old) then
        return false;
    end if;
    delete from desk_unsubscribes d where d.email = address and d.list_key = coalesce($2, '');
    if list_key is null then
        select s.left_at into left_at from subscribers s where s.email_norm = address;
        update subscribers s set status = 'active', status_updated_at = mailout_now(), left_at = null
        where s.email_norm = address and s.status = 'unsubscribed';
    else
        select l.unsubscribed_at into left_at from subscriptions l where l.email = address and l.list_key = $2;
        update subscriptions l set unsubscribed_at = null where l.email = address and l.list_key = $2;
    end if;
    -- It was a mistake: the mailouts that counted it do so no more. An earlier one, after which they came back,
    -- was none; and a message that another unsubscribe answers stays counted. (Times were rounded on their way.)
    for one in delete from delivery_events e
               where e.email = address and e.event_type = 'unsubscribe' and e.detail->>'list_key' is not distinct from $2
                 and e.event_at >= left_at - interval '1 millisecond'
               returning e.campaign_id, e.message_id loop
        if not exists (select 1 from delivery_events e
                       where e.message_id = one.message_id and e.event_type = 'unsubscribe') then
            perform mailout_count_event(one.campaign_id, 'unsubscribed', -1);
        end if;
    end loop;
    return true;
end $$;

create or replace function mailout_single_mails_waiting(rehearsal boolean) returns jsonb
language plpgsql volatile set search_path = public as $$
declare
    at timestamptz := mailout_now();
    waiting record;
begin
    select count(*) filter (where o.company_id <> 'mailout' or o.variables is not null) as due,
           mailout_seconds(min(coalesce(o.next_attempt_at, o.created_at))) as since into waiting
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

select mailout_finish_migration(11);
