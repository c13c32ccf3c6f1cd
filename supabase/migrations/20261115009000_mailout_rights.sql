-- Nobody but the service role: the publishable key can neither read nor call. Every later migration ends with
-- `select mailout_finish_migration(<its version>, array[<its tables and views>])`: `supabase db push` runs
-- no file twice, so what a file makes has to be closed by that file.

create table if not exists mailout_relations (
    name text primary key
);
comment on table mailout_relations is 'The tables and views of mailout: a project has others beside them.';

create or replace function mailout_examine() returns jsonb
language sql stable set search_path = public as $$
    select coalesce(jsonb_agg(distinct door.name), '[]')
    from pg_roles r
    cross join lateral (
        select c.relname || act.said as name
        from pg_class c
        cross join (values ('select', 'r', ''), ('insert', 'a', ' (insert)'), ('update', 'w', ' (update)'),
                           ('delete', 'd', ' (delete)')) as act (privilege, command, said)
        where c.relnamespace = 'public'::regnamespace and c.relname in (select m.name from mailout_relations m)
          and case act.privilege when 'delete' then has_table_privilege(r.oid, c.oid, act.privilege)
                                 else has_any_column_privilege(r.oid, c.oid, act.privilege) end
          and (c.relkind = 'v' or not c.relrowsecurity or exists (
                  select 1 from pg_policy p cross join unnest(p.polroles) as meant (role)
                  where p.polrelid = c.oid and p.polpermissive and p.polcmd::text in (act.command, '*')
                    and (meant.role = 0 or pg_has_role(r.oid, meant.role, 'usage'))))
          -- A sign-up form may add subscribers: a trigger ignores what else it says. Slices are for readers.
          and not (c.relname = 'subscribers' and act.privilege = 'insert' and c.relrowsecurity)
          and not (c.relname = 'content_slices' and act.privilege = 'select')
        union all
        select p.proname::text from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.proname like 'mailout\_%'
          and has_function_privilege(r.oid, p.oid, 'execute')
    ) door
    where r.rolname in ('anon', 'authenticated')
$$;
comment on function mailout_examine is 'What the publishable key can read, write or call, and should not.';

create or replace function mailout_finish_migration(version integer, relations text[] default '{}') returns void
language plpgsql set search_path = public as $$
declare
    thing text;
    outsider text;
    reached integer := version;
begin
    insert into mailout_relations (name) select unnest(relations) on conflict do nothing;
    foreach thing in array relations loop
        if exists (select 1 from pg_class c where c.oid = format('public.%I', thing)::regclass and c.relkind = 'r') then
            execute format('alter table public.%I enable row level security', thing);
        end if;
    end loop;
    if to_regprocedure('mailout_schema_version()') is not null then
        reached := greatest(version, mailout_schema_version());  -- an old file that is applied again
    end if;
    execute format('create or replace function mailout_schema_version() returns integer'
                   ' language sql immutable set search_path = '''' as $version$ select %s $version$', reached);
    comment on function mailout_schema_version is 'What a program holds against the version it knows: SCHEMA_VERSION.';
    for thing in
        -- Of the relations only those that this migration made: a project may have let its forms into others since.
        select format('table public.%I', name) from unnest(relations) as name
        union all
        select 'function ' || p.oid::regprocedure from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.proname like 'mailout\_%'
        union all
        select 'sequence ' || s.oid::regclass
        from pg_class s join pg_depend d on d.objid = s.oid and d.deptype in ('i', 'a')
        where s.relkind = 'S' and d.refobjid in (select format('public.%I', name)::regclass from unnest(relations) as name)
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
comment on function mailout_finish_migration is 'The last statement of a migration: its version, and nobody but the service role may use what is there.';

select mailout_finish_migration(9, array[
    'subscribers', 'subscriptions', 'lists', 'consents', 'recipients', 'api_tokens', 'contents', 'campaign_queue', 'sender_sessions',
    'email_outbox', 'pace', 'usage', 'provider_quota', 'switches', 'error_records', 'dead_letters',
    'delivery_events', 'events_inbox', 'campaign_runs', 'content_slices', 'state_transitions', 'page_reports',
    'requests', 'article_batches', 'alerts', 'counters', 'forgotten', 'store_secrets', 'mailout_relations',
    'companies', 'single_turns',
    'email_logs', 'message_attempts', 'email_events', 'delivery_history', 'send_logs',
    'people_counts', 'mailout_counts', 'dashboard_acts', 'ended_logins', 'dashboard_notes', 'refused_requests', 'mailout_runs',
    'imports', 'import_people',
    'desk_unsubscribes', 'read_desk_unsubscribes', 'read_people_by_attribute',
    'sign_up_marks', 'sign_up_days', 'erased_feedback',
    'read_consents', 'read_sign_up_days', 'read_welcomes', 'read_confirmations',
    'read_lists',
    'read_ended_logins', 'read_usage_drift',
    'read_mailouts', 'read_open_mailouts', 'read_turns', 'read_switches', 'read_requests', 'read_messages',
    'read_failed_messages', 'read_single_mails', 'read_notifications', 'read_notification_states',
    'read_message_events', 'read_open_attempts', 'read_doubts', 'read_sessions', 'read_usage',
    'read_pace', 'read_quotas', 'read_subscribers', 'read_inactive_subscribers',
    'read_subscriptions', 'read_subscriber_counts', 'read_unreachable', 'read_attributes',
    'read_contents', 'read_errors', 'read_dead_letters', 'read_due_reports', 'read_waiting_events',
    'read_inbox', 'read_delivery_events', 'read_unheard', 'read_alerts', 'read_counters',
    'read_archives_to_empty', 'read_people_counts', 'read_mailout_counts', 'read_acts', 'read_notes',
    'read_refusals', 'read_runs', 'read_imports', 'read_slices', 'read_article_batches', 'read_companies', 'read_tokens',
    'read_recipients',
    'segments', 'read_segments', 'read_attribute_names',
    'read_web_letters']);
