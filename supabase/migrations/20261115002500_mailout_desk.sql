-- What somebody at the dashboard does for a person.

create table if not exists desk_unsubscribes (
    email    text collate "C" not null,
    list_key text collate "C" not null,
    at       timestamptz not null,
    primary key (email, list_key)
);
comment on table desk_unsubscribes is 'Whom somebody unsubscribed on the dashboard. The row goes when anything else ends or renews it.';
comment on column desk_unsubscribes.list_key is 'Empty: from everything.';

create or replace function mailout_unsubscribe_by_hand(address text, list_key text) returns boolean
language plpgsql set search_path = public as $$
begin
    perform 1 from subscribers s where s.email_norm = address for update;
    if not exists (select 1 from subscribers s where $2 is null and s.email_norm = address and s.status = 'active')
       and not exists (select 1 from subscriptions l
                       where l.email = address and l.list_key = $2 and l.unsubscribed_at is null) then
        return false;
    end if;
    perform mailout_unsubscribe(address, $2);
    insert into desk_unsubscribes (email, list_key, at) values (address, coalesce($2, ''), mailout_now())
    on conflict on constraint desk_unsubscribes_pkey do update set at = excluded.at;
    return true;
end $$;
comment on function mailout_unsubscribe_by_hand is 'On the dashboard; false: they are not subscribed.';

create or replace function mailout_undo_unsubscribe(address text, list_key text, within double precision) returns boolean
language plpgsql set search_path = public as $$
begin
    if not exists (select 1 from desk_unsubscribes d
                   where d.email = address and d.list_key = coalesce($2, '')
                     and d.at > mailout_now() - make_interval(secs => within)) then
        return false;
    end if;
    return mailout_resubscribe(address, $2);
end $$;
comment on function mailout_undo_unsubscribe is 'Takes back what was done on the dashboard; false: too late, or something else ended it.';

create or replace function mailout_edit_subscriber(address text, attributes jsonb) returns boolean
language plpgsql set search_path = public as $$
begin
    update subscribers s set attributes = $2 where s.email_norm = address;
    return found;
end $$;
comment on function mailout_edit_subscriber is 'These attributes and no others; false: there is no such subscriber.';
