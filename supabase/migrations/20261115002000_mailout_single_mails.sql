-- Mails that programs hand in one at a time: who may, to whom, and what such a message has besides.

create table if not exists companies (
    id             text collate "C" primary key,
    limit_per_hour integer,
    limit_per_day  integer,
    created_at     timestamptz not null
);
comment on table companies is 'Whoever hands in single mails. Limits of its own stand in the place of those for every company.';

alter table api_tokens add column if not exists id text;
alter table api_tokens add column if not exists scopes text not null default 'send,read';
alter table api_tokens add column if not exists limit_per_minute integer;
alter table api_tokens add column if not exists revoked_at timestamptz;
comment on column api_tokens.id is 'The token''s beginning: enough to name it, too little to use it.';

alter table recipients add column if not exists external_id text;
alter table recipients add column if not exists name text;
alter table recipients add column if not exists created_at timestamptz;
alter table recipients add column if not exists updated_at timestamptz;
create unique index if not exists recipients_external on recipients (company_id, external_id);
comment on column recipients.external_id is 'The company''s own name for them.';

alter table email_outbox add column if not exists reply_to text;
alter table email_outbox add column if not exists headers jsonb;
alter table email_outbox add column if not exists fingerprint text;
alter table email_outbox add column if not exists is_rehearsal boolean not null default false;
comment on column email_outbox.fingerprint is 'The same idempotency key must mean the same mail.';
comment on column email_outbox.is_rehearsal is 'Of a message without a mailout: for the folder, never for people.';
create index if not exists email_outbox_single_due
    on email_outbox (company_id collate "C", coalesce(next_attempt_at, '-infinity'::timestamptz), seq)
    where campaign_id is null and state in ('PENDING', 'RETRY_SCHEDULED');
create index if not exists email_outbox_request on email_outbox (request_id) where request_id is not null;

create table if not exists single_turns (
    company_id text collate "C" primary key,
    last_at    timestamptz not null
);
comment on table single_turns is 'When a company''s single mails last had a turn.';

-- ── Handing in ──

create or replace function mailout_accept_single_mails(mails jsonb) returns jsonb
language plpgsql volatile set search_path = public as $$
declare
    mail jsonb;
    verdicts jsonb := '[]';
begin
    for mail in select value from jsonb_array_elements(mails) loop
        verdicts := verdicts || jsonb_build_array(mailout_accept_single_mail(mail));
    end loop;
    return verdicts;
end $$;
comment on function mailout_accept_single_mails is 'Single mails into the outbox, in one commit, each with its own verdict.';

create or replace function mailout_accept_single_mail(mail jsonb) returns jsonb
language plpgsql volatile set search_path = public as $$
declare
    known email_outbox;
    whom record;
    at timestamptz := mailout_now();
    not_before timestamptz := to_timestamp((mail ->> 'send_at')::double precision);
begin
    select * into known from email_outbox o where o.id = (mail ->> 'id')::uuid;
    if found then
        return mailout_repeated(mail, known);
    end if;
    select r.* into whom from mailout_recipient_of(mail, at) r;
    if not whom.agrees then
        return jsonb_build_object('verdict', 'no_recipient', 'id', mail ->> 'id');
    end if;
    insert into contents values (mail ->> 'hash', mail ->> 'subject', mail ->> 'html', mail ->> 'plain', at)
    on conflict do nothing;
    insert into email_outbox (id, company_id, request_id, recipient_id, email, from_name, content_id, next_attempt_at,
                              dedupe_key, created_at, category, reply_to, headers, fingerprint, is_rehearsal)
    values ((mail ->> 'id')::uuid, mail ->> 'company_id', mail ->> 'request_id', whom.found_id, mail ->> 'email',
            mail ->> 'from_name', mail ->> 'hash', case when not_before > at then not_before end,
            mail ->> 'idempotency_key', at, mail ->> 'category', mail ->> 'reply_to',
            nullif(mail -> 'headers', 'null'), mail ->> 'fingerprint', (mail ->> 'is_rehearsal')::boolean)
    on conflict (id) do nothing;
    if not found then  -- somebody else handed it in just now
        select * into known from email_outbox o where o.id = (mail ->> 'id')::uuid;
        return mailout_repeated(mail, known);
    end if;
    return jsonb_build_object('verdict', 'accepted', 'id', mail ->> 'id', 'state', 'PENDING',
                              'request_id', mail ->> 'request_id');
end $$;
comment on function mailout_accept_single_mail is 'One single mail into the outbox.';

create or replace function mailout_repeated(mail jsonb, known email_outbox) returns jsonb
language sql immutable set search_path = public as $$
    select jsonb_build_object(
        'verdict', case when known.fingerprint is not distinct from mail ->> 'fingerprint' then 'repeated' else 'conflict' end,
        'id', known.id, 'state', known.state, 'request_id', known.request_id)
$$;
comment on function mailout_repeated is 'The key is known: the same mail again, or another one.';

create or replace function mailout_recipient_of(mail jsonb, at timestamptz, out agrees boolean, out found_id text)
language plpgsql volatile set search_path = public as $$
declare
    whom recipients;
begin
    agrees := true;
    if mail ->> 'recipient_id' is null and mail ->> 'external_id' is null then
        return;
    end if;
    select * into whom from recipients r
    where r.company_id = mail ->> 'company_id'
      and case when mail ->> 'recipient_id' is not null then r.id = mail ->> 'recipient_id'
               else r.external_id = mail ->> 'external_id' end;
    if not found and mail ->> 'recipient_id' is null then
        insert into recipients (company_id, id, email, external_id, name, created_at, updated_at)
        values (mail ->> 'company_id', mail ->> 'new_recipient_id', mail ->> 'email', mail ->> 'external_id',
                mail ->> 'recipient_name', at, at)
        on conflict do nothing;
        found_id := mail ->> 'new_recipient_id';
        return;
    end if;
    agrees := whom.id is not null and whom.deleted_at is null and whom.email = mail ->> 'email'
              and coalesce(mail ->> 'external_id' = whom.external_id, mail ->> 'external_id' is null);
    found_id := case when agrees then whom.id end;
end $$;
comment on function mailout_recipient_of is 'Whether who is named is there with this address; somebody with a new name is written down.';

-- ── Looking up ──

create or replace function mailout_single_mail(company text, id text) returns jsonb
language sql stable set search_path = public as $$
    select to_jsonb(o) || jsonb_build_object('subject', c.subject)
    from email_outbox o left join contents c on c.hash = o.content_id
    where o.id = mailout_to_uuid($2) and o.company_id = $1 and o.campaign_id is null
$$;
comment on function mailout_single_mail is 'A company''s own message, with its subject.';

create or replace function mailout_find_messages(id text) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(f.id order by f.seq), '[]') from (
        select o.id, o.seq from email_outbox o where o.id = mailout_to_uuid($1)
        union select o.id, o.seq from email_outbox o where o.request_id = $1
        union select o.id, o.seq from email_outbox o where o.ses_message_id = $1) f
$$;
comment on function mailout_find_messages is 'The messages with this id, from this request, or with this id at SES.';

create or replace function mailout_single_mails_waiting(rehearsal boolean) returns jsonb
language plpgsql volatile set search_path = public as $$
declare
    at timestamptz := mailout_now();
begin
    return jsonb_build_object(
        'now', mailout_seconds(at),
        'due_since', (
            select mailout_seconds(min(coalesce(o.next_attempt_at, o.created_at))) from email_outbox o
            where o.campaign_id is null and o.state in ('PENDING', 'RETRY_SCHEDULED')
              and (o.next_attempt_at is null or o.next_attempt_at <= at) and o.is_rehearsal = rehearsal),
        'is_served', mailout_single_mails_served(at, rehearsal),
        'has_tokens', exists (select 1 from api_tokens t where t.revoked_at is null));
end $$;
comment on function mailout_single_mails_waiting is 'Whether somebody has to be started for single mails.';

create or replace function mailout_has_single_mails(session text) returns boolean
language plpgsql volatile set search_path = public as $$
declare
    sender sender_sessions;
    at timestamptz := mailout_now();
begin
    select * into sender from sender_sessions s where s.id = mailout_to_uuid(session);
    return sender.id is null or sender.closed_at is not null or sender.stop_requested
        or exists (select 1 from switches where name = 'all_paused')
        or exists (select 1 from email_outbox o
                   where o.campaign_id is null and o.state in ('PENDING', 'RETRY_SCHEDULED')
                     and (o.next_attempt_at is null or o.next_attempt_at <= at)
                     and o.is_rehearsal = (sender.transport = 'folder'));
end $$;
comment on function mailout_has_single_mails is 'Whether a step of this idle session would have something to do.';

-- ── Companies, tokens, recipients ──

create or replace function mailout_add_company(id text) returns jsonb
language plpgsql volatile set search_path = public as $$
begin
    insert into companies (id, created_at) values ($1, mailout_now()) on conflict do nothing;
    return (select to_jsonb(c) from companies c where c.id = $1);
end $$;
comment on function mailout_add_company is 'The company that is there, or a new one.';

create or replace function mailout_companies() returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(c) order by c.id), '[]') from companies c
$$;
comment on function mailout_companies is 'Every company.';

create or replace function mailout_set_company_limits(id text, per_hour integer, per_day integer) returns jsonb
language sql volatile set search_path = public as $$
    update companies c set limit_per_hour = $2, limit_per_day = $3 where c.id = $1 returning to_jsonb(c)
$$;
comment on function mailout_set_company_limits is 'A company''s own limits; null: those for every company.';

create or replace function mailout_add_token(token jsonb) returns void
language plpgsql volatile set search_path = public as $$
begin
    perform mailout_add_company(token ->> 'company_id');
    insert into api_tokens (token_hash, company_id, created_at, id, scopes, limit_per_minute)
    values (token ->> 'token_hash', token ->> 'company_id', mailout_now(), token ->> 'id', token ->> 'scopes',
            (token ->> 'limit_per_minute')::integer);
end $$;
comment on function mailout_add_token is 'Keeps what is needed to know a token again.';

create or replace function mailout_token(token_hash text) returns jsonb
language sql stable set search_path = public as $$
    select to_jsonb(t) from api_tokens t where t.token_hash = $1
$$;
comment on function mailout_token is 'One token, also a revoked one.';

create or replace function mailout_tokens() returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(t) order by t.company_id collate "C", t.id), '[]') from api_tokens t
$$;
comment on function mailout_tokens is 'Every token.';

create or replace function mailout_revoke_token(id text) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    update api_tokens t set revoked_at = mailout_now() where t.id = $1 and t.revoked_at is null;
    return found;
end $$;
comment on function mailout_revoke_token is 'Ends a token.';

create or replace function mailout_put_recipient(recipient jsonb) returns boolean
language plpgsql volatile set search_path = public as $$
declare
    before recipients;
    at timestamptz := mailout_now();
begin
    select * into before from recipients r
    where r.company_id = recipient ->> 'company_id' and r.external_id = recipient ->> 'external_id' for update;
    insert into recipients as r (company_id, id, email, external_id, name, created_at, updated_at)
    values (recipient ->> 'company_id', coalesce(before.id, recipient ->> 'id'), recipient ->> 'email',
            recipient ->> 'external_id', recipient ->> 'name', at, at)
    on conflict (company_id, id) do update
    set email = excluded.email, name = excluded.name, updated_at = at, deleted_at = null,
        created_at = case when r.deleted_at is null then r.created_at else at end;
    return before.id is null or before.deleted_at is not null;
end $$;
comment on function mailout_put_recipient is 'Makes or changes a recipient; whether it is new.';

create or replace function mailout_recipient(company text, external_id text) returns jsonb
language sql stable set search_path = public as $$
    select to_jsonb(r) from recipients r where r.company_id = $1 and r.external_id = $2 and r.deleted_at is null
$$;
comment on function mailout_recipient is 'One recipient, unless it was deleted.';

create or replace function mailout_delete_recipient(company text, external_id text) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    update recipients r set deleted_at = mailout_now()
    where r.company_id = $1 and r.external_id = $2 and r.deleted_at is null;
    return found;
end $$;
comment on function mailout_delete_recipient is 'Marks a recipient as deleted.';
