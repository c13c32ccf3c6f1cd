-- Whether a list has anybody on it. `general` is everybody's, and what has no list is general.

create or replace function mailout_anybody_on(list_key text) returns boolean
language sql stable set search_path = public as $$
    select case when $1 = 'general' then exists (
        select 1 from subscribers s where s.status = 'active' and s.email_norm > '' and not exists (
            select 1 from subscriptions l
            where l.email = s.email_norm and l.list_key = 'general' and l.unsubscribed_at is not null))
    else exists (
        select 1 from subscriptions l join subscribers s on s.email_norm = l.email
        where l.list_key = $1 and l.unsubscribed_at is null and s.status = 'active') end
$$;
comment on function mailout_anybody_on is 'Whether a mailout to this list would reach anybody.';

create or replace function mailout_audience_size(list_key text) returns bigint
language sql stable set search_path = public as $$
    select count(*) from subscribers s
    where s.status = 'active' and s.email_norm > ''
      and case when coalesce($1, 'general') = 'general' then not exists (
              select 1 from subscriptions l
              where l.email = s.email_norm and l.list_key = 'general' and l.unsubscribed_at is not null)
          else exists (
              select 1 from subscriptions l
              where l.email = s.email_norm and l.list_key = $1 and l.unsubscribed_at is null) end
$$;
comment on function mailout_audience_size is 'How many would get a mailout to this list, or (null) to everybody.';

create or replace function mailout_lacking(attribute text, list_key text) returns jsonb
language sql stable set search_path = public as $$
    with lacking as materialized (
        select s.email_norm from subscribers s
        where s.status = 'active' and s.email_norm > '' and coalesce(s.attributes ->> $1, '') !~ '\S'
          and case when coalesce($2, 'general') = 'general' then not exists (
                  select 1 from subscriptions l
                  where l.email = s.email_norm and l.list_key = 'general' and l.unsubscribed_at is not null)
              else exists (
                  select 1 from subscriptions l
                  where l.email = s.email_norm and l.list_key = $2 and l.unsubscribed_at is null) end
    )
    select jsonb_build_object('people', (select count(*) from lacking), 'examples', coalesce(
        (select jsonb_agg(e.email_norm order by e.email_norm collate "C")
         from (select * from lacking order by email_norm collate "C" limit 3) e), '[]'))
$$;
comment on function mailout_lacking is 'How many of an audience have no value for an attribute, and the first three.';
