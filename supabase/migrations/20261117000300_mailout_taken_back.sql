-- Since 0.1.0: what a person asked for and has taken back, or put off, while its page was being read is not written.

create or replace function mailout_enqueue(mailout jsonb) returns jsonb
language plpgsql set search_path = public as $$
begin
    if mailout ->> 'requested' is not null then
        -- Whoever takes it back at this moment waits, and finds the mailout.
        perform 1 from requests r
        where r.ref = mailout ->> 'requested' and r.how = 'real' and r.answered_at is null
          and coalesce(r.not_before, '-infinity') <= mailout_now()
        for update;
        if not found then
            return mailout_mailout(mailout ->> 'id');
        end if;
    end if;
    insert into campaign_queue (id, kind, ref, subject, company_id, list_key, from_name, reply_to, is_test, is_rehearsal, priority,
                                scheduled_at, campaign_tag, send_batch_id, actor, retry_plan, segment, public, slug, content_hash, created_at)
    select n.id, n.kind, n.ref, n.subject, n.company_id, n.list_key, n.from_name, n.reply_to, n.is_test, n.is_rehearsal, n.priority,
           to_timestamp(n.scheduled_at), n.campaign_tag, n.send_batch_id, n.actor,
           nullif(n.retry_plan, 'null'), n.segment,
           coalesce(n.public, (select l.archive from lists l where l.key = coalesce(n.list_key, 'general')), false), n.slug,
           n.content_hash, mailout_now()
    from jsonb_to_record(mailout) as n (
        id uuid, kind text, ref text, subject text, company_id text, list_key text, from_name text, reply_to text,
        is_test boolean, is_rehearsal boolean, priority integer, scheduled_at double precision, campaign_tag text,
        send_batch_id text, actor text, retry_plan jsonb, segment text, public boolean, slug text, content_hash text)
    on conflict (id) do nothing;
    return mailout_mailout(mailout ->> 'id');
end $$;

select mailout_finish_migration(15);
