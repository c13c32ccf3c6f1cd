-- What a mailout's page and the errors database have yet to be told.

create table if not exists page_reports (
    mailout text primary key,
    asked   integer not null default 1,
    told    integer not null default 0
);
comment on table page_reports is 'Whose page has yet to be told how its mailout stands: told runs after asked.';

create or replace function mailout_ask_report(mailout text) returns void
language sql volatile set search_path = public as $$
    insert into page_reports (mailout) values ($1)
    on conflict on constraint page_reports_pkey do update set asked = page_reports.asked + 1
$$;
comment on function mailout_ask_report is 'There is something to tell of a mailout.';

create or replace function mailout_due_reports() returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_object_agg(r.mailout, r.asked), '{}') from page_reports r where r.told < r.asked
$$;
comment on function mailout_due_reports is 'Mailouts that have yet to be told of, and how often that was asked for.';

create or replace function mailout_report_made(mailout text, asked integer) returns void
language sql volatile set search_path = public as $$
    update page_reports r set told = greatest(r.told, least($2, r.asked)) where r.mailout = $1
$$;
comment on function mailout_report_made is 'Told, as it was asked for then; what was asked for since stays due.';

create or replace function mailout_unreported_errors(since double precision, most integer) returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(to_jsonb(page) - 'reported_at' order by page.id), '[]')
    from (select * from error_records e where e.reported_at is null and e.at >= to_timestamp(since)
          order by e.id limit most) page
$$;
comment on function mailout_unreported_errors is 'Errors that the errors database does not have yet, the oldest first.';

create or replace function mailout_errors_reported(numbers jsonb) returns void
language sql volatile set search_path = public as $$
    update error_records e set reported_at = mailout_now()
    from jsonb_array_elements_text(numbers) as number where e.id = number::bigint
$$;
comment on function mailout_errors_reported is 'The errors database has them now.';
