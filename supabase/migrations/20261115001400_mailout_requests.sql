-- What was asked for over HTTP.

create table if not exists requests (
    ref         text not null,
    how         text not null,
    asked_at    timestamptz not null,
    answered_at timestamptz,
    primary key (ref, how)
);
comment on table requests is 'Mailouts asked for from outside. A row stays: the same request within a minute meets it.';
comment on column requests.how is 'as_written, test, real, or if_ready: only if the page asks for it itself.';

create or replace function mailout_ask(ref text, how text, repeat_after double precision) returns boolean
language plpgsql volatile set search_path = public as $$
#variable_conflict use_column
begin
    insert into requests (ref, how, asked_at) values ($1, $2, mailout_now())
    on conflict (ref, how) do update set asked_at = excluded.asked_at, answered_at = null
    where requests.asked_at <= excluded.asked_at - make_interval(secs => $3);
    return found;
end $$;
comment on function mailout_ask is 'Write a request down; false: it was asked for just now.';

create or replace function mailout_asked(waiting double precision) returns jsonb
language sql volatile set search_path = public as $$
    select coalesce(jsonb_agg(jsonb_build_object('ref', r.ref, 'how', r.how) order by r.asked_at, r.ref), '[]')
    from requests r where r.answered_at is null and r.asked_at <= mailout_now() - make_interval(secs => $1)
$$;
comment on function mailout_asked is 'Requests that have waited for so many seconds, the oldest first.';

create or replace function mailout_answered(ref text, how text) returns void
language sql volatile set search_path = public as $$
    update requests r set answered_at = mailout_now() where r.ref = $1 and r.how = $2 and r.answered_at is null
$$;
comment on function mailout_answered is 'It is in the queue, or was refused for good.';
