-- Segments: filters over subscribers, by name. A client hands in a tree (mailout/letters/audience/segment_tree.py), never
-- SQL. What is in the tree becomes a quoted literal; the words of the condition are all written here.

create table if not exists segments (
    name       text collate "C" primary key,
    filter     text not null,
    tree       jsonb not null,
    hash       text not null,
    updated_at timestamptz not null
);
comment on table segments is 'Filters over subscribers, by name.';
comment on column segments.filter is 'As it was written.';
comment on column segments.hash is 'Of the tree: the same for every spelling of the same filter.';

-- ── The leaves: how one value is read. The same as in mailout/letters/audience/segment_tree.py ──

create or replace function mailout_fold(written text) returns text
language sql immutable parallel safe as $$
    select pg_catalog.translate(
        pg_catalog.lower(pg_catalog.translate(normalize(written, NFC), 'İ', 'i')), 'ς', 'σ')
$$;
comment on function mailout_fold is 'Text without case: a letter for a letter, composed (NFC), and one sigma.';

create or replace function mailout_number(written text) returns double precision
language sql immutable parallel safe as $$
    select case when written ~ '^-?[0-9]{1,15}(\.[0-9]{1,15})?$' then written::double precision end
$$;
comment on function mailout_number is 'Null: it is none, or a name made of digits.';

create or replace function mailout_day(written text) returns text
language sql immutable parallel safe as $$
    select case when written ~ '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ]|$)'
                then pg_catalog.substr(written, 1, 10) end
$$;
comment on function mailout_day is 'The day of an ISO date, with a time or without; null: it is none.';

create or replace function mailout_value(attributes jsonb, name text) returns text
language sql immutable parallel safe as $$
    select case when pg_catalog.jsonb_typeof(attributes -> name) in ('string', 'number', 'boolean')
                then nullif(pg_catalog.btrim(attributes ->> name, E' \t\n\r\f\u000b'), '') end
$$;
comment on function mailout_value is 'An attribute as text, without white space around it; null: blank. Lists and objects are no values.';

-- ── The condition ──

create or replace function mailout_segment_comparison(name text, operator text, wanted jsonb) returns text
language plpgsql immutable set search_path = public as $$
declare
    had text := case name when 'email' then 's.email_norm' else format('mailout_value(s.attributes, %L)', name) end;
    kind text := wanted -> 0 ->> 0;
    value text := wanted -> 0 ->> 1;
begin
    if operator = 'contains' then
        return format('strpos(mailout_fold(%s), %L) > 0', had, value);
    elsif operator = 'in' then
        return (
            select string_agg(case
                       when of.kind = 'text' then format('mailout_fold(%s) = any (%L::text[])', had, of.found)
                       -- Of what is no number or no day, no number or day is the equal; of a blank, nothing is known.
                       when of.kind = 'number' then format('coalesce(mailout_number(%1$s) = any (%2$L::double precision[]),'
                           ' case when %1$s is not null then false end)', had, of.found)
                       when of.kind = 'day' then format('coalesce(mailout_day(%1$s) = any (%2$L::text[]),'
                           ' case when %1$s is not null then false end)', had, of.found) end, ' or ')
            from (select w.value ->> 0 as kind, array_agg(w.value ->> 1) as found
                  from jsonb_array_elements(wanted) w group by 1) of);
    elsif operator not in ('<', '<=', '>', '>=') or operator is null then
        return null;
    end if;
    return case kind
        when 'text' then format('mailout_fold(%s) collate "C" %s %L', had, operator, value)
        when 'number' then format('mailout_number(%s) %s %L::double precision', had, operator, value)
        when 'day' then format('mailout_day(%s) collate "C" %s %L', had, operator, value) end;
end $$;
comment on function mailout_segment_comparison is 'The condition on one attribute, or on the address; null: this is none.';

create or replace function mailout_segment_joined(operator text, wanted jsonb) returns text
language sql immutable set search_path = public as $$
    select string_agg(case operator
               when 'in' then format('(s.created_at >= %1$s and s.created_at < %1$s + interval ''24 hours'')', at.begins)
               when '<' then format('s.created_at < %s', at.begins)
               when '<=' then format('s.created_at < %s + interval ''24 hours''', at.begins)
               when '>' then format('s.created_at >= %s + interval ''24 hours''', at.begins)
               when '>=' then format('s.created_at >= %s', at.begins) end, ' or ')
    from (select format('(%L::date::timestamp at time zone ''UTC'')', w.value ->> 1) as begins from jsonb_array_elements(wanted) w) at
$$;
comment on function mailout_segment_joined is 'The condition on the day in UTC on which somebody became a subscriber.';

create or replace function mailout_segment_history(leaf jsonb, in_parts boolean) returns text
language sql immutable set search_path = public as $$
    select case
        when leaf ->> 0 = 'mailed' then  -- who was there when a letter went out that retention has removed counts as mailed
            'exists (select 1 from campaign_queue q where not q.is_test and not q.is_rehearsal and q.sent > 0'
            ' and (s.created_at is null or coalesce(q.freeze_started_at, q.frozen_at) >= s.created_at) and (q.archived_at is not null or exists ('
            'select 1 from email_outbox o where o.id = mailout_uuid(q.id::text, s.email_norm) and o.state = ''SENT'')))'
        when in_parts then
            format('exists (select 1 from email_outbox o where o.id = mailout_uuid(%L, s.email_norm) and %s)', leaf ->> 1, told.so)
        else
            format('s.email_norm in (select o.email from email_outbox o where o.campaign_id = %L::uuid and %s)', leaf ->> 1, told.so)
    end
    from (select case leaf ->> 0
              when 'got' then 'o.state = ''SENT'''
              when 'clicked' then 'exists (select 1 from delivery_events e where e.message_id = o.id and e.event_type = ''click'')'
              when 'mailed' then '' end as so) told
$$;
comment on function mailout_segment_history is 'The condition on what somebody got or clicked. in_parts: for a few people at a time, where a look at each message is less work than to collect all of a letter.';

create or replace function mailout_on_list(address text, key text) returns text
language sql immutable set search_path = public as $$
    select case when key = 'general' then format(
        'not exists (select 1 from subscriptions l where l.email = %s and l.list_key = ''general'' and l.unsubscribed_at is not null)', address)
    else format('exists (select 1 from subscriptions l where l.email = %s and l.list_key = %L and l.unsubscribed_at is null)', address, key) end
$$;
comment on function mailout_on_list is 'The condition that an address (a column of ours) is on a list. general is everybody''s.';

create or replace function mailout_segment_condition(tree jsonb, in_parts boolean) returns text
language plpgsql immutable set search_path = public as $$
declare
    made text;
begin
    made := case tree ->> 0
        when 'and' then (select '(' || string_agg(mailout_segment_condition(p.part, in_parts), ' and ') || ')'
                         from jsonb_array_elements(tree) with ordinality as p (part, place) where p.place > 1)
        when 'or' then (select '(' || string_agg(mailout_segment_condition(p.part, in_parts), ' or ') || ')'
                        from jsonb_array_elements(tree) with ordinality as p (part, place) where p.place > 1)
        when 'not' then 'not (' || mailout_segment_condition(tree -> 1, in_parts) || ')'
        when 'has' then case tree ->> 1
            when 'email' then 'true'
            when 'joined' then 's.created_at is not null'
            else format('mailout_value(s.attributes, %L) is not null', tree ->> 1) end
        when 'compare' then case tree ->> 1
            when 'joined' then '(' || mailout_segment_joined(tree ->> 2, tree -> 3) || ')'
            else '(' || mailout_segment_comparison(tree ->> 1, tree ->> 2, tree -> 3) || ')' end
        when 'list' then mailout_on_list('s.email_norm', tree ->> 1)
        when 'place' then format(
            'exists (select 1 from jsonb_array_elements_text(mailout_places(s.ocd_ids)) as p (place)'
            ' where (p.place = %1$L or starts_with(p.place, %1$L || ''/''))'
            ' and (%2$L = '''' or right(p.place, length(%2$L)) = %2$L or strpos(p.place, %2$L || ''/'') > 0))', tree ->> 1, tree ->> 2)
        when 'got' then mailout_segment_history(tree, in_parts)
        when 'clicked' then mailout_segment_history(tree, in_parts)
        when 'mailed' then mailout_segment_history(tree, in_parts)
    end;
    if made is null then
        raise exception 'This is no part of a segment: %.', tree using errcode = 'PT400';
    end if;
    return made;
end $$;
comment on function mailout_segment_condition is 'A tree as a condition over `subscribers s`. Names and values of the tree are only ever literals in it.';

create or replace function mailout_segment_lists(tree jsonb, wanted boolean default true) returns jsonb
language sql immutable set search_path = public as $$
    select case tree ->> 0
        when 'list' then case when wanted then jsonb_build_array(tree ->> 1) else '[]' end
        when 'not' then mailout_segment_lists(tree -> 1, not wanted)
        when 'and' then (select coalesce(jsonb_agg(distinct l.key), '[]') from jsonb_array_elements(tree) with ordinality as p (part, place)
                         cross join lateral jsonb_array_elements_text(mailout_segment_lists(p.part, wanted)) as l (key) where p.place > 1)
        when 'or' then (select coalesce(jsonb_agg(distinct l.key), '[]') from jsonb_array_elements(tree) with ordinality as p (part, place)
                        cross join lateral jsonb_array_elements_text(mailout_segment_lists(p.part, wanted)) as l (key) where p.place > 1)
        else '[]'::jsonb end
$$;
comment on function mailout_segment_lists is 'The lists whose readers a segment asks for: those that do not stand below a not.';

create or replace function mailout_audience(
    list_key text, segment jsonb, at timestamptz, in_parts boolean default false, snoozed boolean default false) returns text
language sql immutable set search_path = public as $$
    select 's.status = ''active'' and s.email_norm > '''' and '
        || format(case when snoozed then 's.snoozed_until > %1$L::timestamptz'
                       else '(s.snoozed_until is null or s.snoozed_until <= %1$L::timestamptz)' end, at)
        || ' and (' || mailout_on_list('s.email_norm', coalesce($1, 'general'))
        || coalesce((select string_agg(' or ' || mailout_on_list('s.email_norm', l.key), '' order by l.key)
                     from jsonb_array_elements_text(mailout_segment_lists(segment)) as l (key) where $1 is null), '')
        || ')' || case when coalesce(segment, 'null') = 'null' then '' else ' and ' || mailout_segment_condition(segment, in_parts) end
$$;
comment on function mailout_audience is 'The condition over `subscribers s`: who would get a mailout, or (snoozed) who would not because of a pause. Without a list it is for those on general, and for those on a list that the segment asks for.';

-- ── What is asked with it ──

create or replace function mailout_audience_size(list_key text, segment jsonb default null, snoozed boolean default false) returns bigint
language plpgsql stable set search_path = public set work_mem = '128MB' as $$
declare
    n bigint;
begin
    execute 'select count(*) from subscribers s where ' || mailout_audience($1, $2, mailout_now(), false, $3) into n;
    return n;
end $$;
comment on function mailout_audience_size is 'How many would get a mailout to this list, or (null) to everybody; of a segment, if one is given; snoozed: who would not, because of a pause.';

create or replace function mailout_snoozed(mailout campaign_queue) returns bigint
language plpgsql stable set search_path = public as $$
declare
    n bigint;
begin
    execute 'select count(*) from subscribers s where (s.created_at is null or s.created_at <= $1) and '
        || mailout_audience(mailout.list_key, mailout.segment_filter -> 'tree', mailout.freeze_started_at, true, true)
        into n using mailout.freeze_started_at;
    return n;
end $$;
comment on function mailout_snoozed is 'How many would be in the audience, had they not asked for a pause.';

create or replace function mailout_audience_sample(list_key text, segment jsonb, most integer) returns jsonb
language plpgsql stable set search_path = public as $$
declare
    found_people jsonb;
begin
    execute 'select coalesce(jsonb_agg(e.email_norm order by e.email_norm), ''[]'') from (select s.email_norm from subscribers s where '
        || mailout_audience($1, $2, mailout_now(), true) || ' order by s.email_norm limit $1) e' into found_people using most;
    return found_people;
end $$;
comment on function mailout_audience_sample is 'The first addresses of an audience.';

create or replace function mailout_lacking(attribute text, list_key text, segment jsonb default null) returns jsonb
language plpgsql stable set search_path = public set work_mem = '128MB' as $$
declare
    answer jsonb;
begin
    execute 'with lacking as materialized (select s.email_norm from subscribers s where coalesce(s.attributes ->> $1, '''') !~ ''\S'' and '
        || mailout_audience($2, $3, mailout_now())
        || ') select jsonb_build_object(''attribute'', $1, ''people'', (select count(*) from lacking), ''examples'', coalesce('
           '(select jsonb_agg(e.email_norm order by e.email_norm collate "C")'
           ' from (select * from lacking order by email_norm collate "C" limit 3) e), ''[]''))' into answer using attribute;
    return answer;
end $$;
comment on function mailout_lacking is 'How many of an audience have no value for an attribute, and the first three.';

create or replace function mailout_members(
    after text, most integer, list_key text, segment jsonb, existed_at double precision,
    snoozed boolean default false) returns jsonb
language plpgsql stable set search_path = public as $$
declare
    answer jsonb;
begin
    execute 'select coalesce(jsonb_agg(jsonb_build_array(page.email_norm, page.from_name, mailout_places(page.ocd_ids))'
        ' order by page.email_norm), ''[]'') from (select s.email_norm, s.from_name, s.ocd_ids from subscribers s'
        ' where s.email_norm > $1 and ($3 is null or s.created_at is null or s.created_at <= to_timestamp($3)) and '
        || mailout_audience($3, $4, coalesce(to_timestamp(existed_at), mailout_now()), true, snoozed) || ' order by s.email_norm limit $2) page' into answer using after, most, existed_at;
    return answer;
end $$;
comment on function mailout_members is 'One page of an audience, with the places that each belongs to.';

create or replace function mailout_take_segment(mailout campaign_queue) returns jsonb
language plpgsql set search_path = public as $$
declare
    taken jsonb;
    removed text;
begin
    select jsonb_build_object('text', g.filter, 'hash', g.hash, 'tree', g.tree, 'lists', mailout_segment_lists(g.tree))
    into taken from segments g where g.name = mailout.segment for share;
    if taken is null then
        raise exception 'There is no segment %.', mailout.segment
            using errcode = 'PT404', hint = '`mailout segments list` shows them.';
    end if;
    select coalesce(q.subject, asked.id) into removed
    from (select leaf #>> '{1}' as id from jsonb_path_query(taken -> 'tree', 'strict $.** ? (@.type() == "array" && (@[0] == "got" || @[0] == "clicked"))') leaf) asked
    left join campaign_queue q on q.id = mailout_to_uuid(asked.id)
    where q.id is null or q.archived_at is not null limit 1;
    if removed is not null then
        raise exception 'Nobody knows any more who got “%”: retention has removed its messages.', removed
            using errcode = 'PT400', hint = 'Take this condition out of the filter.';
    end if;
    -- Of whom it takes a part: everybody on the list; without one, on general or on a list that the segment asks for.
    taken := taken || jsonb_build_object('of', mailout_audience_size(mailout.list_key, case when mailout.list_key is null then (
        select jsonb_build_array('or', jsonb_build_array('list', 'general')) || coalesce(jsonb_agg(jsonb_build_array('list', l.key)), '[]')
        from jsonb_array_elements_text(taken -> 'lists') as l (key)) end));
    update campaign_queue q set segment_filter = taken where q.id = mailout.id;
    return taken;
end $$;
comment on function mailout_take_segment is 'The filter of a mailout''s segment as it is now: from here on it does not change for this mailout.';

create or replace function mailout_segment_part(mailout campaign_queue, filter jsonb, chunk integer)
returns table (email_norm text, from_name text, attributes jsonb)
language plpgsql set search_path = public as $$
begin
    return query execute 'select s.email_norm, s.from_name, s.attributes from subscribers s where s.email_norm > $1'
        ' and (s.created_at is null or s.created_at <= $2) and ' || mailout_audience(mailout.list_key, filter -> 'tree', mailout.freeze_started_at, true)
        || ' order by s.email_norm limit $3' using mailout.freeze_cursor, mailout.freeze_started_at, chunk;
end $$;
comment on function mailout_segment_part is 'The next part of a segment''s audience.';

create or replace function mailout_save_segment(given jsonb) returns void
language sql volatile set search_path = public as $$
    insert into segments (name, filter, tree, hash, updated_at)
    values (given ->> 'name', given ->> 'filter', given -> 'tree', given ->> 'hash', mailout_now())
    on conflict (name) do update
    set filter = excluded.filter, tree = excluded.tree, hash = excluded.hash, updated_at = excluded.updated_at
$$;
comment on function mailout_save_segment is 'Adds a segment, or changes its filter.';

create or replace function mailout_delete_segment(name text) returns boolean
language plpgsql set search_path = public as $$
begin
    delete from segments g where g.name = $1 and not exists (
        select 1 from campaign_queue q
        where q.segment = $1 and q.segment_filter is null and not q.is_test and q.status in ('PENDING', 'PROCESSING'));
    return found;
end $$;
comment on function mailout_delete_segment is 'False: there is none, or a letter waits that has not taken its filter yet.';
