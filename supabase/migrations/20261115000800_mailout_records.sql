-- Contents by hash, errors, dead letters.

create or replace function mailout_put_content(hash text, subject text, html text, plain text) returns text
language plpgsql set search_path = public as $$
begin
    insert into contents values ($1, $2, $3, $4, mailout_now()) on conflict do nothing;
    return $1;
end $$;
comment on function mailout_put_content is 'Keeps a content, once.';

create or replace function mailout_content(hash text) returns jsonb
language sql stable set search_path = public as $$
    select jsonb_build_object('subject', c.subject, 'html', c.html, 'text', c.text) from contents c where c.hash = $1
$$;
comment on function mailout_content is 'One content.';

create or replace function mailout_record_errors(errors jsonb) returns void
language sql volatile set search_path = public as $$
    insert into error_records (at, mailout, stage, provider, email, code, message, attempts)
    select coalesce(to_timestamp(nullif(e.at, 0)), clock.at), e.mailout, e.stage, e.provider, e.email, e.code,
           e.message, e.attempts
    from (select mailout_now() as at) clock,
         rows from (jsonb_to_recordset(errors) as (
             at double precision, mailout text, stage text, provider text, email text, code text, message text,
             attempts integer)) with ordinality
             as e (at, mailout, stage, provider, email, code, message, attempts, place)
    order by e.place
$$;
comment on function mailout_record_errors is 'Writes errors down, for people.';

create or replace function mailout_errors(mailout text, most integer) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(page) - '{id,reported_at}'::text[] order by page.id desc), '[]')
    from (select * from error_records e where $1 is null or e.mailout = $1 order by e.id desc limit most) page
$$;
comment on function mailout_errors is 'The latest errors, of one mailout or of all.';

create or replace function mailout_dead_letters(most integer) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(page) order by page.created_at desc, page.id), '[]')
    from (select * from dead_letters order by created_at desc, id limit most) page
$$;
comment on function mailout_dead_letters is 'The latest dead letters.';
