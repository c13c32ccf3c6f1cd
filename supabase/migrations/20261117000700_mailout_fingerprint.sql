-- Since 0.1.0: a file that was skipped, or an old one that was applied again, is noticed. Both leave old functions
-- behind, below a version that is right.

create or replace function mailout_fingerprint() returns text
language sql stable set search_path = public as $$
    select md5(string_agg(one.hash, '' order by one.hash collate "C"))
    from (select md5(p.oid::regprocedure || replace(p.prosrc, chr(13), '')) as hash  -- pasted on Windows: the same
          from pg_proc p
          where p.pronamespace = 'public'::regnamespace and p.proname like 'mailout\_%'
            and p.proname <> 'mailout_schema_version') one
$$;
comment on function mailout_fingerprint is 'What a program holds against the functions it knows: FINGERPRINT.';

select mailout_finish_migration(19);
