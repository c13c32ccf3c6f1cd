-- Whether a list has anybody on it.

create or replace function mailout_anybody_on(list_key text) returns boolean
language sql stable set search_path = public as $$
    select exists (
        select 1 from subscriptions l join subscribers s on s.email_norm = l.email
        where l.list_key = mailout_anybody_on.list_key and l.unsubscribed_at is null and s.status = 'active')
$$;
comment on function mailout_anybody_on is 'Whether a mailout to this list would reach anybody.';
