-- Since 0.1.0: what was asked for by a clock that was ahead is asked for again, once the clock is right.

create or replace function mailout_ask(
    ref text, how text, repeat_after double precision, not_before double precision) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    insert into requests (ref, how, asked_at, not_before) values ($1, $2, mailout_now(), to_timestamp($4))
    on conflict (ref, how) do update
    set asked_at = excluded.asked_at, answered_at = null, not_before = excluded.not_before
    where requests.asked_at <= excluded.asked_at - make_interval(secs => $3)
       or requests.asked_at > excluded.asked_at + make_interval(secs => $3)
       or requests.not_before is distinct from excluded.not_before
       or (requests.answered_at is not null and requests.how in ('if_ready', 'article'));
    return found;
end $$;

select mailout_finish_migration(18);
