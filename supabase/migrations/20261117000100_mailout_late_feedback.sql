-- Since 0.1.0: a complaint that comes after its sender was forgotten stays known, and no late event writes their
-- address down again; single mails that no event comes back for are noticed like mailouts.

create or replace function mailout_record_event(message email_outbox, effect jsonb, out added boolean, out first boolean)
language plpgsql set search_path = public as $$
declare
    -- As nearly always nobody was forgotten: then no address is hashed.
    forgotten_as constant bytea := case when exists (select 1 from forgotten) then (
        select f.hash from forgotten f where f.hash = mailout_forgotten_hash(effect->>'email')) end;
begin
    first := message.id is not null and not exists (
        select 1 from delivery_events e where e.message_id = message.id and e.event_type = effect->>'type');
    -- The address is what the message was sent to: a bounce may name the one that it was forwarded to.
    insert into delivery_events (id, message_id, campaign_id, email, event_type, provider_message_id, detail, event_at)
    values (effect->>'id', message.id, message.campaign_id,
            coalesce(message.email, case when forgotten_as is null then effect->>'email' end),
            effect->>'type', effect->>'ses_message_id',
            case when forgotten_as is null then coalesce(effect->'detail', '{}') else '{}' end,
            to_timestamp((effect->>'at')::double precision))
    on conflict (id) do nothing;
    added := found;
    first := first and added;
    if added and forgotten_as is not null and effect->>'type' = 'spamreport' then
        insert into erased_feedback values (forgotten_as, 'spamreport') on conflict do nothing;
    end if;
end $$;

create index if not exists email_outbox_single_sent on email_outbox (sent_at, id)
    where campaign_id is null and state = 'SENT' and not is_rehearsal;

create or replace view read_single_mails_sent with (security_invoker = true) as
select o.id, o.sent_at,
       coalesce((select max(i.received_at) from events_inbox i) > o.sent_at, false)
           or exists (select 1 from delivery_events e where e.message_id = o.id) as is_heard
from email_outbox o
where o.campaign_id is null and o.state = 'SENT' and not o.is_rehearsal;
comment on view read_single_mails_sent is 'Single mails that were sent, and whether any event has come for them or since.';

select mailout_finish_migration(13, array['read_single_mails_sent']);
