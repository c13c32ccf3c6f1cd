-- Articles that are put together for each recipient from slices.

create table if not exists content_slices (
    id             text collate "C" primary key default gen_random_uuid()::text,
    article_key    text not null check (article_key ~ '^[a-z0-9-]+$'),
    section_order  integer not null check (section_order >= 1),
    is_headline    boolean not null default false,
    title          text,
    dek            text,
    body_md        text not null default '',
    link_url       text,
    scope_ocd_id   text,  -- null: everywhere
    tags           text[] not null default '{}',
    publish_status text not null default 'draft' check (publish_status in ('draft', 'published', 'archived')),
    publish_at     timestamptz,
    expires_at     timestamptz,
    sort_index     integer not null default 0
);
create unique index if not exists content_slices_place
    on content_slices (article_key, section_order, coalesce(scope_ocd_id, ''), sort_index);
comment on table content_slices is 'The parts that personalised articles are made of.';

create table if not exists article_batches (
    mailout         uuid primary key,
    article_key     text not null,
    audience_filter jsonb not null,
    as_of           timestamptz not null,
    slices          jsonb not null,
    contents        jsonb not null,
    census          jsonb not null
);
comment on table article_batches is 'What a batch was asked to send: the slices as they were then.';
comment on column article_batches.contents is 'The hash of each variant that the census has seen.';

create unique index if not exists campaign_queue_batch on campaign_queue (campaign_tag, send_batch_id)
    where not is_rehearsal;
comment on index campaign_queue_batch is 'A rehearsal of a batch does not use it up.';
create unique index if not exists campaign_runs_batch on campaign_runs (campaign_tag, send_batch_id);

-- ── Dead letters ──

create or replace function mailout_keep_dead_letters() returns trigger
language plpgsql set search_path = public as $$
begin
    if exists (select 1 from new_rows n where n.state in ('FAILED', 'VALIDATION_FAILED') and n.campaign_id is not null) then
        insert into dead_letters as d (id, topic, payload, error, created_at)
        select n.id, 'send',
               jsonb_build_object('mailout', q.id, 'message', n.id, 'email', n.email,
                                  'variant', coalesce(n.content_id, q.content_hash), 'campaign_tag', q.campaign_tag,
                                  'send_batch_id', q.send_batch_id, 'attempts', n.attempts, 'error_code', n.error_code),
               coalesce(n.error_code, 'FAILED') || coalesce(': ' || n.error_message, ''), n.failed_at
        from new_rows n
        join old_rows o on o.seq = n.seq and o.state <> n.state
        join campaign_queue q on q.id = n.campaign_id and (q.retry_plan ->> 'dead_letters')::boolean
        where n.state in ('FAILED', 'VALIDATION_FAILED')
        on conflict (id) do update
        set payload = excluded.payload, error = excluded.error, created_at = excluded.created_at;
    end if;
    if exists (select 1 from old_rows o where o.state = 'FAILED') then
        delete from dead_letters d using old_rows o join new_rows n on n.seq = o.seq
        where o.state = 'FAILED' and n.state <> 'FAILED' and d.id = n.id and d.topic = 'send';
    end if;
    return null;
end $$;
comment on function mailout_keep_dead_letters is 'A message that failed for good is a dead letter under its own id, if its mailout says so.';
create or replace trigger email_outbox_dead_letters after update on email_outbox
    referencing old table as old_rows new table as new_rows
    for each statement execute function mailout_keep_dead_letters();

create or replace function mailout_drop_dead_letter(id text) returns boolean
language plpgsql set search_path = public as $$
begin
    delete from dead_letters d where d.id = mailout_to_uuid($1);
    return found;
end $$;
comment on function mailout_drop_dead_letter is 'Takes a dead letter off the list; its message stays as it is.';

-- ── Slices ──

create or replace function mailout_import_slices(slices jsonb) returns jsonb
language plpgsql set search_path = public as $$
declare
    known integer;
    written integer;
    given integer := jsonb_array_length(slices);
begin
    select count(*) into known from content_slices k join jsonb_to_recordset(slices) as s (
        article_key text, section_order integer, scope_ocd_id text, sort_index integer)
      on k.article_key = s.article_key and k.section_order = s.section_order
     and coalesce(k.scope_ocd_id, '') = coalesce(s.scope_ocd_id, '') and k.sort_index = s.sort_index;
    insert into content_slices as k (id, article_key, section_order, is_headline, title, dek, body_md, link_url,
                                     scope_ocd_id, tags, publish_status, publish_at, expires_at, sort_index)
    select s.id, s.article_key, s.section_order, s.is_headline, s.title, s.dek, s.body_md, s.link_url, s.scope_ocd_id,
           array(select jsonb_array_elements_text(s.tags)), s.publish_status, to_timestamp(s.publish_at),
           to_timestamp(s.expires_at), s.sort_index
    from jsonb_to_recordset(slices) as s (
        id text, article_key text, section_order integer, is_headline boolean, title text, dek text, body_md text,
        link_url text, scope_ocd_id text, tags jsonb, publish_status text, publish_at double precision,
        expires_at double precision, sort_index integer)
    on conflict (article_key, section_order, coalesce(scope_ocd_id, ''), sort_index) do update
    set is_headline = excluded.is_headline, title = excluded.title, dek = excluded.dek, body_md = excluded.body_md,
        link_url = excluded.link_url, tags = excluded.tags, publish_status = excluded.publish_status,
        publish_at = excluded.publish_at, expires_at = excluded.expires_at
    where (k.is_headline, k.title, k.dek, k.body_md, k.link_url, k.tags, k.publish_status, k.publish_at, k.expires_at)
        is distinct from
        (excluded.is_headline, excluded.title, excluded.dek, excluded.body_md, excluded.link_url, excluded.tags,
         excluded.publish_status, excluded.publish_at, excluded.expires_at);
    get diagnostics written = row_count;
    return jsonb_build_object('added', given - known, 'updated', written - (given - known), 'unchanged', given - written);
end $$;
comment on function mailout_import_slices is 'Writes slices, each in its place; what has not changed is left alone.';

-- ── Batches and their audience ──

create or replace function mailout_enqueue_article(mailout jsonb, batch jsonb) returns jsonb
language plpgsql set search_path = public as $$
declare
    new_id uuid := (mailout ->> 'id')::uuid;
begin
    perform 1 from campaign_queue q where q.id = new_id;
    if found then
        return mailout_mailout(mailout ->> 'id');
    end if;
    perform mailout_enqueue(mailout);
    insert into article_batches as b (mailout, article_key, audience_filter, as_of, slices, contents, census)
    values (new_id, batch ->> 'article_key', batch -> 'audience_filter', to_timestamp((batch ->> 'as_of')::double precision),
            batch -> 'slices', batch -> 'contents', batch -> 'census')
    on conflict on constraint article_batches_pkey do nothing;
    if not (mailout ->> 'is_rehearsal')::boolean then
        insert into campaign_runs (id, campaign_tag, article_key, actor, send_batch_id, started_at)
        values (mailout ->> 'id', mailout ->> 'campaign_tag', batch ->> 'article_key', mailout ->> 'actor',
                mailout ->> 'send_batch_id', mailout_now())
        on conflict do nothing;
    end if;
    return mailout_mailout(mailout ->> 'id');
end $$;
comment on function mailout_enqueue_article is 'Writes a batch of an article down, with who asked for it, or finds it.';

create or replace function mailout_begin_freezing(id text) returns jsonb
language plpgsql set search_path = public as $$
declare
    mailout campaign_queue;
begin
    perform mailout_mailout($1);
    update campaign_queue q set freeze_started_at = coalesce(
        q.freeze_started_at, greatest(mailout_now(), (select max(s.created_at) from subscribers s)))
    where q.id = mailout_to_uuid($1) and q.frozen_at is null and q.status <> 'CANCELLED' returning * into mailout;
    return case when found then
        jsonb_build_object('up_to', mailout.freeze_cursor, 'began', mailout_seconds(mailout.freeze_started_at)) end;
end $$;
comment on function mailout_begin_freezing is 'Where the writing of an audience has got to; null: it is over.';
