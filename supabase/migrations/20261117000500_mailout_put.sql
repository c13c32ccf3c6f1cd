-- Since 0.1.0: what is plain is written by one function, as it is read by one. Its names are checked, its values are parameters.

create or replace function mailout_put(relation text, columns jsonb, key jsonb, anew jsonb, moment text, given jsonb) returns void
language plpgsql volatile set search_path = public as $$
declare
    known text := '';
    name text;
begin
    if relation <> all (array['api_tokens', 'companies', 'contents', 'dashboard_acts', 'dashboard_notes', 'error_records',
                              'imports', 'lists', 'mailout_runs', 'segments']) then
        raise exception 'Nothing is put into %.', relation using errcode = 'PT400';
    end if;
    for name in select jsonb_array_elements_text(columns || key || anew) loop
        if not exists (select 1 from pg_attribute a where a.attrelid = format('public.%I', relation)::regclass
                       and a.attname = name and a.attnum > 0 and not a.attisdropped) then
            raise exception 'The table % has no column %.', relation, name using errcode = 'PT400';
        end if;
    end loop;
    if key <> '[]' then
        known := format('on conflict (%s) do ', (select string_agg(format('%I', k), ', ') from jsonb_array_elements_text(key) k))
            || coalesce((select 'update set ' || string_agg(format('%1$I = excluded.%1$I', c), ', ')
                         from jsonb_array_elements_text(anew) c), 'nothing');
    end if;
    execute format(
        'insert into public.%1$I (%2$s) select %3$s from jsonb_array_elements($1) with ordinality as one (value, place)'
        ' cross join lateral jsonb_populate_record(null::public.%1$I, one.value - $2) as r order by one.place %4$s',
        relation,
        (select string_agg(format('%I', c), ', ' order by place) from jsonb_array_elements_text(columns) with ordinality as n (c, place)),
        (select string_agg(case when c = moment
                                then format('coalesce(to_timestamp((one.value ->> %L)::double precision), mailout_now())', c)
                                else format('r.%I', c) end, ', ' order by place)
         from jsonb_array_elements_text(columns) with ordinality as n (c, place)),
        known)
    using given, coalesce(moment, '');
end $$;
comment on function mailout_put is 'Writes rows into one of the plain tables; `moment`: the column that is now where a row has no time.';

drop function if exists mailout_put_content(text, text, text, text), mailout_record_errors(jsonb),
    mailout_write_act(text, text, text, double precision), mailout_keep_written_pages(jsonb), mailout_keep_run(text, text),
    mailout_begin_import(jsonb), mailout_save_list(jsonb), mailout_save_segment(jsonb), mailout_add_company(text),
    mailout_set_company_limits(text, integer, integer), mailout_add_token(jsonb);

select mailout_finish_migration(17);
