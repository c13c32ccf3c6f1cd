-- Since 0.1.0: addresses after a line break in JSON are erased, too, and nobody's complaint is looked for by
-- reading all subscribers.

create or replace function mailout_without(written text, address text, instead text) returns text
language sql immutable set search_path = '' as $$
    select pg_catalog.regexp_replace(written,
        '(?:(?<![[:alnum:]_.+-])|(?<=\\[bfnrt])|(?<=\\u[0-9a-f]{4}))'
            || pg_catalog.regexp_replace(address, '([^[:alnum:]])', '\\\1', 'g')
            || '(?![[:alnum:]_-]|\.[[:alnum:]_])', instead, 'g')
$$;

create or replace function mailout_complained(address text) returns boolean
language plpgsql stable set search_path = public
set enable_seqscan = off  -- to whoever thinks that the table is still empty, reading all of it looks cheap
as $$
begin
    return exists (select 1 from subscribers s where s.email_norm = address and s.complained_at is not null)
        or exists (select 1 from delivery_events e where e.email = address and e.event_type = 'spamreport')
        or exists (select 1 from erased_feedback f where f.hash = mailout_forgotten_hash(address) and f.what = 'spamreport');
end $$;

select mailout_finish_migration(10);
