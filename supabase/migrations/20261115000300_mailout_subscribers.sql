-- Subscribers: a table that may be older than mailout, with whatever people have put into it.
-- No row is ever deleted. A row without `email_norm` gets no mail, and `email_problem` says why:
--   invalid     not an address
--   not_ascii   its domain needs punycode: mailout normalises it before it freezes an audience
--   duplicate   another row holds the same address; the stronger status has gone to that row

alter table subscribers add column if not exists email text;
alter table subscribers add column if not exists status text default 'active';
do $$ begin  -- a status that was an enum: the words are the same, and text lets them be compared by rank
    if exists (select 1 from pg_attribute a join pg_type t on t.oid = a.atttypid
               where a.attrelid = 'subscribers'::regclass and a.attname = 'status' and t.typtype = 'e') then
        alter table subscribers alter column status drop default,
            alter column status type text using status::text, alter column status set default 'active';
    end if;
end $$;
alter table subscribers add column if not exists bounce_type text;
alter table subscribers add column if not exists bounce_subtype text;
alter table subscribers add column if not exists status_updated_at timestamptz;
alter table subscribers add column if not exists from_name text;
alter table subscribers add column if not exists created_at timestamptz default now();
-- Why somebody is `unsubscribed`, since only their own act may be undone: when they left by themselves, having been
-- active; and when they complained, which stays on record for good.
alter table subscribers add column if not exists left_at timestamptz;
alter table subscribers add column if not exists complained_at timestamptz;
alter table subscribers add column if not exists email_norm text collate "C";
alter table subscribers add column if not exists email_problem text;
alter table subscribers add column if not exists ocd_ids jsonb not null default '[]';
alter table subscribers add column if not exists attributes jsonb not null default '{}';
-- While soft bounces end mail: what the status would be without them. A delivery reported late takes it back.
alter table subscribers add column if not exists hard_status text;
alter table subscribers add column if not exists hard_status_at timestamptz;
alter table subscribers add column if not exists snoozed_until timestamptz;
alter table subscribers add column if not exists confirmed_at timestamptz;

comment on table subscribers is 'Who gets mail: those whose status is active and whose email_norm is set.';
comment on column subscribers.email_norm is 'Lower-case, punycode, ASCII: the key. Filled by trigger.';
comment on column subscribers.snoozed_until is 'Their own wish: no letters before.';
comment on column subscribers.confirmed_at is 'Their last confirmed sign-up: bounces dated before it no longer count.';
comment on column subscribers.email_problem is 'Why there is no email_norm: invalid, not_ascii or duplicate.';

-- Others write into this table too. Every reader of these two columns goes through these functions: one row that is
-- wrong costs its own values, never the letter of everybody else. Without a search_path, so that they are inlined.
create or replace function mailout_attributes(written jsonb) returns jsonb
language sql immutable parallel safe as $$
    select case when pg_catalog.jsonb_typeof(written) = 'object' then written else '{}' end
$$;
comment on function mailout_attributes is 'The attributes of a subscriber, whatever the column holds.';

create or replace function mailout_places(written jsonb) returns jsonb
language sql immutable parallel safe as $$
    select case when pg_catalog.jsonb_typeof(written) = 'array'
                then pg_catalog.jsonb_path_query_array(written, 'strict $[*] ? (@.type() == "string")') else '[]' end
$$;
comment on function mailout_places is 'The places (OCD ids) of a subscriber, whatever the column holds.';

update subscribers s set attributes = mailout_attributes(s.attributes), ocd_ids = mailout_places(s.ocd_ids)
where (s.attributes, s.ocd_ids) is distinct from (mailout_attributes(s.attributes), mailout_places(s.ocd_ids));
-- Kept only while soft bounces hold the status at bounced: anything else was written by a stranger.
update subscribers s set hard_status = null, hard_status_at = null
where s.hard_status is not null and s.status is distinct from 'bounced';
alter table subscribers
    alter column attributes set default '{}', alter column attributes set not null,
    alter column ocd_ids set default '[]', alter column ocd_ids set not null,
    drop constraint if exists subscribers_attributes_object,
    add constraint subscribers_attributes_object check (jsonb_typeof(attributes) = 'object'),
    drop constraint if exists subscribers_ocd_ids_strings,
    add constraint subscribers_ocd_ids_strings check (jsonb_typeof(ocd_ids) = 'array'
        and not jsonb_path_exists(ocd_ids, 'strict $[*] ? (@.type() <> "string")'));

create or replace function mailout_trim(written text) returns text
language sql immutable parallel safe set search_path = '' as $$
    select regexp_replace(written, '^[\s\u00a0\u200b\ufeff]+|[\s\u00a0\u200b\ufeff]+$', '', 'g')
$$;
comment on function mailout_trim is 'Without the white space around it, the invisible kind included.';

create or replace function mailout_email_norm(written text) returns text
language plpgsql immutable parallel safe as $$
declare
    address text := lower(public.mailout_trim(written) collate "C");
    atom constant text := '[a-z0-9!#$%&''*+/=?^_`{|}~-]+';
    label constant text := '[a-z0-9]([a-z0-9-]*[a-z0-9])?';
begin
    if address ~ ('^' || atom || '(\.' || atom || ')*@(' || label || '\.)+' || label || '$')
       and length(address) <= 254 and strpos(address, '@') <= 65
       and address !~ '@.*[^.@]{64}' and address !~ '\.[0-9]+$' then
        return address;
    end if;
    return null;
end $$;
comment on function mailout_email_norm is 'The address as a key; null if it is none, or if only Python can tell.';

create or replace function mailout_email_problem(written text) returns text
language sql immutable parallel safe set search_path = public as $$
    select case
        when mailout_email_norm(written) is not null then null
        when mailout_trim(written) ~ '^[\x21-\x7e]+@[^@\s]+\.[^@\s]+$' and written ~ '@.*[^\x01-\x7f]' then 'not_ascii'
        else 'invalid'
    end
$$;
comment on function mailout_email_problem is 'Why there is no key for this address; null if there is one.';

create or replace function mailout_rank(status text) returns integer
language sql immutable parallel safe set search_path = '' as $$
    select case status when 'bounced' then 3 when 'unsubscribed' then 2 when 'active' then 1 else 0 end
$$;
comment on function mailout_rank is 'bounced > unsubscribed > active; equal or higher wins.';

create or replace function mailout_leave_as(address text, status text) returns void
language sql volatile set search_path = public as $$
    update subscribers s set status = $2, status_updated_at = mailout_now()
    where s.email_norm = address and mailout_rank($2) > greatest(1, mailout_rank(s.status))
$$;
comment on function mailout_leave_as is 'Who has left under one spelling has left under all.';

-- A policy lets web pages write rows. What decides who gets mail is not theirs to give: whoever holds the
-- publishable key could otherwise mark anybody as bounced, and learn from a conflict who is on the list.
create or replace function mailout_sign_up_attributes(written jsonb) returns jsonb
language sql immutable parallel safe set search_path = public as $$
    select case when count(*) <= 20 and bool_and(jsonb_typeof(a.value) = 'string' and length(a.value #>> '{}') <= 200
                                                 and length(a.key) <= 200) then written else '{}' end
    from jsonb_each(mailout_attributes(written)) a
$$;
comment on function mailout_sign_up_attributes is 'What a stranger may say of themselves: at most 20 strings of 200 characters, or nothing.';

create or replace function mailout_sign_up(given subscribers) returns subscribers
language plpgsql set search_path = public as $$
declare
    clean subscribers;
    -- From the catalogue: a column that is added later is not the stranger's to write either.
    usual text := (
        select string_agg(case
                   when a.attname = 'email' then 'left(($1).email, 320)'  -- longer than any address
                   when a.attname = 'attributes' then 'mailout_sign_up_attributes(($1).attributes)'
                   when a.attidentity <> '' then format('nextval(%L)', pg_get_serial_sequence('subscribers', a.attname))
                   when a.atthasdef and a.attgenerated = '' then pg_get_expr(d.adbin, d.adrelid)
                   when a.attnotnull then format('($1).%I', a.attname)  -- a project's own, without a default
                   else 'null' end, ', ' order by a.attnum)
        from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where a.attrelid = 'subscribers'::regclass and a.attnum > 0 and not a.attisdropped);
begin
    execute 'select ' || usual into clean using given;
    clean.status := coalesce(clean.status, 'active');  -- a project may begin with a word of its own
    clean.created_at := now();
    return clean;
end $$;
comment on function mailout_sign_up is 'A new row as a role under row level security may write it: the address and attributes; the rest is the default.';

create or replace function mailout_keep_standing(before subscribers, given subscribers) returns subscribers
language plpgsql set search_path = public as $$
declare
    kept subscribers := before;
begin
    if mailout_rank(before.status) <= 1 then
        kept.email := left(given.email, 320);  -- else an address would inherit that somebody else has left
    end if;
    if given.attributes is distinct from before.attributes then
        kept.attributes := mailout_sign_up_attributes(given.attributes);
    end if;
    return kept;
end $$;
comment on function mailout_keep_standing is 'A changed row as a role under row level security may write it.';

-- As its owner: a sign-up form that may insert a row may call none of our functions.
create or replace function mailout_normalise_subscriber() returns trigger
language plpgsql security definer set search_path = public, pg_temp as $$
declare
    outsider boolean := tg_nargs > 0;
    norm text;
begin
    if outsider and tg_op = 'INSERT' then
        new := mailout_sign_up(new);
    elsif outsider then
        new := mailout_keep_standing(old, new);
    end if;
    norm := mailout_email_norm(new.email);
    if new.email_norm is not null and (tg_op = 'INSERT' or new.email_norm is distinct from old.email_norm) then
        new.email_problem := null;  -- given by a program, which knows punycode
        return new;
    end if;
    if tg_op = 'UPDATE' and new.email is not distinct from old.email and new.email_problem is null then
        return new;
    end if;
    new.email_norm := norm;
    new.email_problem := case when norm is null then mailout_email_problem(new.email) end;
    if exists (select 1 from subscribers s where s.email_norm = norm and (tg_op = 'INSERT' or s.id <> new.id)) then
        new.email_norm := null;
        new.email_problem := 'duplicate';
        if not outsider then
            perform mailout_leave_as(norm, new.status);
        end if;
    end if;
    return new;
end $$;
comment on function mailout_normalise_subscriber is 'Fills email_norm, whoever writes the row.';

-- The rows that were there before: of equal addresses the strongest status stays, then the oldest.
drop trigger if exists subscribers_normalise on subscribers;
drop trigger if exists subscribers_sign_up on subscribers;
create unique index if not exists subscribers_email_norm on subscribers (email_norm);
update subscribers s
set email_norm = ranked.kept, email_problem = ranked.problem
from (
    select id, case when place = 1 then norm end as kept,
           case when norm is null then mailout_email_problem(email) when place > 1 then 'duplicate' end as problem
    from (
        select id, email, norm,
               row_number() over (partition by norm order by (email_norm is not null) desc,
                                  mailout_rank(status) desc, created_at nulls last, id) as place
        from (select *, coalesce(email_norm, mailout_email_norm(email)) as norm from subscribers) known
    ) placed
) ranked
where s.id = ranked.id and s.email_norm is null and s.email_problem is null;
create trigger subscribers_normalise before insert or update of email, email_norm, status on subscribers
    for each row when (not (row_security_active('subscribers'::regclass) or current_user in ('anon', 'authenticated')))
    execute function mailout_normalise_subscriber();
create trigger subscribers_sign_up before insert or update on subscribers
    for each row when (row_security_active('subscribers'::regclass) or current_user in ('anon', 'authenticated'))
    execute function mailout_normalise_subscriber('outsider');

create index if not exists subscribers_active on subscribers (email_norm) where status = 'active';
create index if not exists subscribers_snoozed on subscribers (email_norm) where snoozed_until is not null;
create index if not exists subscribers_gone on subscribers (email_norm) where status <> 'active';
create index if not exists subscribers_problem on subscribers (email_problem) where email_problem is not null;
create index if not exists subscribers_waiting on subscribers ((id::text) collate "C") where email_problem = 'not_ascii';

do $$ begin
    if not exists (select 1 from pg_constraint where conname = 'subscribers_status_known')
       and not exists (select 1 from subscribers where mailout_rank(status::text) = 0) then
        alter table subscribers add constraint subscribers_status_known
            check (status in ('active', 'unsubscribed', 'bounced'));
        update subscribers s set hard_status = null, hard_status_at = null
        where s.hard_status not in ('active', 'unsubscribed');
        alter table subscribers add constraint subscribers_hard_status_known
            check (hard_status in ('active', 'unsubscribed'));
    end if;
end $$;

create or replace function mailout_raise_hard_status(address text, word text) returns void
language sql volatile set search_path = public as $$
    update subscribers s set hard_status = nullif(word, 'bounced'), hard_status_at = mailout_now()
    where s.email_norm = address and s.hard_status is not null and word <> 'active'
      and (s.hard_status = 'active' or word = 'bounced')
$$;
comment on function mailout_raise_hard_status is 'Soft bounces may be taken back; what a file or a person says besides is not lost with them.';

-- Who was forgotten: HMAC-SHA256 of the address, with a key that only this store has. Nobody can read an address
-- from it, nor try out addresses without the key. The key is kept as the two blocks that HMAC makes of it.
create table if not exists forgotten (hash bytea primary key, at timestamptz not null);
create table if not exists store_secrets (name text primary key, inner_pad bytea not null, outer_pad bytea not null);
comment on table forgotten is 'Whom an import must not bring back: keyed hashes of addresses, which tell nobody whose.';
comment on table store_secrets is 'Keys that never leave the store.';
do $$
declare
    key constant bytea := sha256(convert_to(
        gen_random_uuid()::text || gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8'));
    inside bytea := decode(repeat('36', 64), 'hex');
    outside bytea := decode(repeat('5c', 64), 'hex');
begin
    for i in 0 .. length(key) - 1 loop
        inside := set_byte(inside, i, get_byte(inside, i) # get_byte(key, i));
        outside := set_byte(outside, i, get_byte(outside, i) # get_byte(key, i));
    end loop;
    insert into store_secrets values ('forgotten', inside, outside) on conflict do nothing;
end $$;

create or replace function mailout_forgotten_hash(address text) returns bytea
language sql stable set search_path = public as $$
    select sha256(outer_pad || sha256(inner_pad || convert_to(address, 'UTF8')))
    from store_secrets where name = 'forgotten'
$$;
comment on function mailout_forgotten_hash is 'By what a forgotten address is known.';

create or replace function mailout_import_subscribers(people jsonb, own_sign_up boolean, for_import text default null)
returns jsonb
language plpgsql set search_path = public as $$
declare
    at timestamptz := mailout_now();
    counts jsonb;
    given_to_us constant integer := jsonb_array_length(people);
begin
    if own_sign_up then
        delete from forgotten f using jsonb_array_elements(people) one (person)
        where f.hash = mailout_forgotten_hash(person ->> 'email_norm');
    elsif exists (select 1 from forgotten) then
        people := coalesce((
            select jsonb_agg(person order by place)
            from jsonb_array_elements(people) with ordinality as one (person, place)
            where not exists (
                select 1 from forgotten f where f.hash = mailout_forgotten_hash(person ->> 'email_norm'))), '[]');
    end if;
    -- Who was added by another import and comes again is nobody's to take back.
    delete from import_people i
    using jsonb_to_recordset(people) as given (email_norm text, lists jsonb)
    where i.email = given.email_norm and (i.list_key = '' or given.lists ? i.list_key)
      and i.import_id is distinct from for_import::uuid;
    -- A row that waited for its punycode is the same subscriber.
    update subscribers s set email_norm = given.email_norm
    from jsonb_to_recordset(people) as given (email text, email_norm text)
    where s.email_problem = 'not_ascii' and mailout_trim(s.email) = given.email
      and not exists (select 1 from subscribers other where other.email_norm = given.email_norm);
    with given as (
        select * from jsonb_to_recordset(people) as r (
            email text, email_norm text, status text, from_name text, bounce_type text, bounce_subtype text,
            ocd_ids jsonb, attributes jsonb, lists jsonb, statuses jsonb)
    ), known as (
        select s.* from subscribers s where s.email_norm in (select g.email_norm from given g)
        order by s.email_norm for update
    ), merged as (
        select g.email_norm, wins,
               case when wins then g.status else s.status end as status,
               case when wins then coalesce(nullif(g.bounce_type, ''), s.bounce_type)
                    else s.bounce_type end as bounce_type,
               case when wins then coalesce(nullif(g.bounce_subtype, ''), s.bounce_subtype)
                    else s.bounce_subtype end as bounce_subtype,
               coalesce(nullif(g.from_name, ''), s.from_name) as from_name,
               case when g.ocd_ids <> '[]' then g.ocd_ids else s.ocd_ids end as ocd_ids,
               mailout_attributes(s.attributes) || g.attributes as attributes
        from given g join known s on s.email_norm = g.email_norm
        cross join lateral (select mailout_rank(g.status) >= mailout_rank(s.status) as wins) compared
    ), updated as (
        update subscribers s
        set status = m.status, bounce_type = m.bounce_type, bounce_subtype = m.bounce_subtype,
            from_name = m.from_name, ocd_ids = m.ocd_ids, attributes = m.attributes,
            status_updated_at = case when m.status = s.status then s.status_updated_at else at end
        from merged m
        where s.email_norm = m.email_norm
          and (m.status, m.bounce_type, m.bounce_subtype, m.from_name, m.ocd_ids, m.attributes)
              is distinct from
              (s.status, s.bounce_type, s.bounce_subtype, s.from_name, s.ocd_ids, s.attributes)
        returning s.email_norm
    ), added as (
        insert into subscribers (email, email_norm, status, bounce_type, bounce_subtype, status_updated_at,
                                 from_name, ocd_ids, attributes, created_at, complained_at)
        select g.email, g.email_norm, case when complained and g.status = 'active' then 'unsubscribed' else g.status end,
               g.bounce_type, g.bounce_subtype, at, g.from_name, g.ocd_ids, g.attributes, at, case when complained then at end
        from given g cross join lateral (select mailout_complained(g.email_norm) as complained) of_single_mails
        where not exists (select 1 from known s where s.email_norm = g.email_norm)
        order by g.email_norm
        returning email_norm, status
    ), joined as (  -- who has left a list stays off it: only they themselves may come back
        insert into subscriptions (email, list_key)
        select g.email_norm, list.key from given g, jsonb_array_elements_text(g.lists) as list (key)
        order by 1, 2 on conflict do nothing
        returning email, list_key
    ), noted as (  -- what is new is this import's, so that it can be undone
        insert into import_people (email, list_key, import_id)
        select new.email, new.list_key, for_import::uuid
        from (select email_norm as email, '' as list_key from added union all select email, list_key from joined) new
        where for_import is not null
        on conflict (email, list_key) do update set import_id = excluded.import_id
    ), changed as (
        select email_norm from updated union select email from joined except select email_norm from added
    )
    select jsonb_build_object(
        'added', (select count(*) from added),
        'updated', (select count(*) from changed),
        'unchanged', (select count(*) from given) - (select count(*) from added) - (select count(*) from changed),
        'kept_status', (
            select count(*) from given g cross join lateral jsonb_array_elements_text(g.statuses) as said (status)
            left join merged m on m.email_norm = g.email_norm
            left join added a on a.email_norm = g.email_norm
            where said.status <> coalesce(m.status, a.status, g.status)),
        'forgotten', given_to_us - jsonb_array_length(people)
    ) into counts;
    delete from desk_unsubscribes d using jsonb_to_recordset(people) as g (email_norm text, status text)
    where d.email = g.email_norm and g.status <> 'active';
    perform mailout_raise_hard_status(g.email_norm, g.status)
    from jsonb_to_recordset(people) as g (email_norm text, status text) where g.status <> 'active';
    perform mailout_count_import(for_import::uuid, counts);
    return counts;
end $$;
comment on function mailout_import_subscribers is 'Adds what a file knows, each address once. A status is never lowered.';

create or replace function mailout_unnormalised(after text, most integer) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(page order by page.id collate "C"), '[]')
    from (select id::text as id, email from subscribers
          where email_problem = 'not_ascii' and id::text collate "C" > after
          order by id::text collate "C" limit most) page
$$;
comment on function mailout_unnormalised is 'One page, by id, of those whose domain needs punycode.';

create or replace function mailout_normalise_addresses(addresses jsonb) returns integer
language plpgsql set search_path = public as $$
declare
    one record;
    done integer := 0;
begin
    for one in select * from jsonb_to_recordset(addresses) as r (id text, email_norm text) order by email_norm, id loop
        if one.email_norm is null then
            update subscribers s set email_problem = 'invalid' where s.id::text collate "C" = one.id and s.email_problem = 'not_ascii';
        elsif exists (select 1 from subscribers s where s.email_norm = one.email_norm) then
            perform mailout_leave_as(one.email_norm, s.status) from subscribers s
            where s.id::text collate "C" = one.id and s.email_problem = 'not_ascii';
            update subscribers s set email_problem = 'duplicate' where s.id::text collate "C" = one.id and s.email_problem = 'not_ascii';
        else
            update subscribers s set email_norm = one.email_norm where s.id::text collate "C" = one.id and s.email_problem = 'not_ascii';
            done := done + 1;
        end if;
    end loop;
    return done;
end $$;
comment on function mailout_normalise_addresses is 'Writes what Python has normalised; equal addresses keep one row.';
