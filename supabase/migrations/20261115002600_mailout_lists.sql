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

create or replace function mailout_choose(address text, choice jsonb) returns boolean
language plpgsql volatile set search_path = public as $$
declare
    at timestamptz := mailout_now();
begin
    perform 1 from subscribers s
    where s.email_norm = address and s.status = 'active' and s.complained_at is null for update;
    if not found then
        return false;
    end if;
    update subscribers s set
        snoozed_until = case
            when choice ->> 'snooze_seconds' is null then s.snoozed_until
            when (choice ->> 'snooze_seconds')::double precision > 0
                then at + make_interval(secs => (choice ->> 'snooze_seconds')::double precision) end,
        attributes = case
            when choice ->> 'language' is null then s.attributes
            when choice ->> 'language' = '' then mailout_attributes(s.attributes) - 'language'
            else mailout_attributes(s.attributes) || jsonb_build_object('language', choice -> 'language') end
    where s.email_norm = address;
    with joined as (
        insert into subscriptions as l (email, list_key, joined_at)
        select address, one.key, at from jsonb_each_text(choice -> 'joins') one order by one.key
        on conflict on constraint subscriptions_pkey
        do update set unsubscribed_at = null, joined_at = excluded.joined_at where l.unsubscribed_at is not null
        returning l.list_key)
    insert into consents (email, list_key, at, wording, source)
    select address, j.list_key, at, choice -> 'joins' ->> j.list_key, choice ->> 'source' from joined j
    on conflict on constraint consents_pkey do update set wording = excluded.wording, source = excluded.source;
    -- They have spoken for themselves: no import has them to take back any more.
    delete from import_people i where i.email = address;
    return true;
end $$;
comment on function mailout_choose is 'A reader''s own choice: lists to join, a pause, a language. False: they get no letters, and nothing changes.';
