-- Lists, and what readers choose for themselves.

create or replace function mailout_save_list(given jsonb) returns void
language sql volatile set search_path = public as $$
    insert into lists (key, name, description, public, from_name, reply_to, footer, brand, archive, welcome_ref)
    select r.key, r.name, r.description, r.public, r.from_name, r.reply_to, r.footer, r.brand, r.archive, r.welcome_ref
    from jsonb_populate_record(null::lists, given) r
    on conflict (key) do update set name = excluded.name, description = excluded.description, public = excluded.public,
        from_name = excluded.from_name, reply_to = excluded.reply_to, footer = excluded.footer, brand = excluded.brand,
        archive = excluded.archive, welcome_ref = excluded.welcome_ref
$$;
comment on function mailout_save_list is 'Adds a list, or writes all of it anew.';
