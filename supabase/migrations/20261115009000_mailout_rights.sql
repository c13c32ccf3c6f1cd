-- Nobody but the service role: the publishable key can neither read nor call. Applied last, so that it
-- holds for everything above.

create or replace function mailout_schema_version() returns integer
language sql immutable set search_path = '' as $$ select 9 $$;
comment on function mailout_schema_version is 'What a program holds against the version it knows: SCHEMA_VERSION.';

create or replace function mailout_open_doors() returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(distinct door.name), '[]')
    from pg_roles r
    cross join lateral (
        select c.relname::text as name from pg_class c
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'v')
          and c.relname in ('subscribers', 'subscriptions', 'recipients', 'api_tokens', 'contents', 'campaign_queue',
                            'email_outbox', 'error_records', 'dead_letters', 'delivery_events', 'events_inbox',
                            'page_reports', 'requests', 'alerts', 'counters', 'archivings', 'forgotten', 'store_secrets',
                            'email_logs', 'email_events',
                            'delivery_history', 'send_logs')
          and has_table_privilege(r.oid, c.oid, 'select')
          and (c.relkind = 'v' or not c.relrowsecurity or exists (
                  select 1 from pg_policy p
                  where p.polrelid = c.oid and p.polcmd in ('r', '*') and p.polroles && array[r.oid, 0::oid]))
        union all
        select p.proname::text from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.proname like 'mailout\_%'
          and has_function_privilege(r.oid, p.oid, 'execute')
    ) door
    where r.rolname in ('anon', 'authenticated')
$$;
comment on function mailout_open_doors is 'What the publishable key can read or call, and should not.';

do $$
declare
    tables text[] := array[
        'subscribers', 'subscriptions', 'recipients', 'api_tokens', 'contents', 'campaign_queue', 'sender_sessions',
        'email_outbox', 'pace', 'usage', 'provider_quota', 'switches', 'error_records', 'dead_letters',
        'delivery_events', 'events_inbox', 'campaign_runs', 'content_slices', 'state_transitions', 'page_reports',
        'requests', 'alerts', 'counters', 'archivings', 'forgotten', 'store_secrets'];
    views text[] := array['email_logs', 'message_attempts', 'email_events', 'delivery_history', 'send_logs'];
    thing text;
    outsider text;
begin
    foreach thing in array tables loop
        execute format('alter table public.%I enable row level security', thing);
    end loop;
    for thing in
        select format('table public.%I', name) from unnest(tables || views) as name
        union all
        select 'function ' || p.oid::regprocedure from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.proname like 'mailout\_%'
        union all
        select 'sequence ' || s.oid::regclass
        from pg_class s join pg_depend d on d.objid = s.oid and d.deptype in ('i', 'a')
        where s.relkind = 'S' and d.refobjid in (select format('public.%I', name)::regclass from unnest(tables) as name)
    loop
        execute format('revoke all on %s from public', thing);
        -- A plain Postgres has none of these roles.
        for outsider in select rolname from pg_roles where rolname in ('anon', 'authenticated') loop
            execute format('revoke all on %s from %I', thing, outsider);
        end loop;
        if exists (select 1 from pg_roles where rolname = 'service_role') then
            execute format('grant all on %s to service_role', thing);
        end if;
    end loop;
end $$;
