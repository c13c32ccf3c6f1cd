-- Since 0.1.0: a page that is set to Ready, and a batch of an article, are asked for again as soon as the last
-- time was answered. Both can be asked for as often as anybody likes and are sent once; a test is not.

create or replace function mailout_ask(
    ref text, how text, repeat_after double precision, not_before double precision) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    insert into requests (ref, how, asked_at, not_before) values ($1, $2, mailout_now(), to_timestamp($4))
    on conflict (ref, how) do update
    set asked_at = excluded.asked_at, answered_at = null, not_before = excluded.not_before
    where requests.asked_at <= excluded.asked_at - make_interval(secs => $3)
       or requests.not_before is distinct from excluded.not_before
       or (requests.answered_at is not null and requests.how in ('if_ready', 'article'));
    return found;
end $$;

select mailout_finish_migration(12);
