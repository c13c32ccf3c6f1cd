-- Several machines may send one mailout: whoever ends one of them ends its senders alone.

create or replace function mailout_stop_machine(machine text) returns integer
language plpgsql set search_path = public as $$
declare
    asked integer;
begin
    perform 1 from sender_sessions s
    where s.closed_at is null and s.lease_until > mailout_now() and rtrim(s.worker, '0123456789') = $1 || '-'
    order by s.id for update;
    update sender_sessions s set stop_requested = true
    where s.closed_at is null and s.lease_until > mailout_now() and rtrim(s.worker, '0123456789') = $1 || '-';
    get diagnostics asked = row_count;
    return asked;
end $$;
comment on function mailout_stop_machine is 'Asks the living sessions of one machine''s workers (machine-<pid>) to end.';

create or replace function mailout_schema_version() returns integer
language sql immutable set search_path = '' as $$ select 5 $$;

-- Nobody but the service role, as in mailout_rights.
do $$
declare
    thing text;
    outsider text;
begin
    for thing in
        select 'function ' || p.oid::regprocedure from pg_proc p
        where p.pronamespace = 'public'::regnamespace
          and p.proname in ('mailout_stop_machine', 'mailout_schema_version')
    loop
        execute format('revoke all on %s from public', thing);
        for outsider in select rolname from pg_roles where rolname in ('anon', 'authenticated') loop
            execute format('revoke all on %s from %I', thing, outsider);
        end loop;
        if exists (select 1 from pg_roles where rolname = 'service_role') then
            execute format('grant all on %s to service_role', thing);
        end if;
    end loop;
end $$;
