"""Supabase's HTTP API over the tests' Postgres: npm's `@supabase/lite`, wherever Node is present."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg

from mailout.adapters import supabase
from tests.cache import cached
from tests.chaos.senders import PATIENCE
from tests.contract.postgres import database, migrate
from tests.needs import missing
from tests.ports import free_port

HERE = Path(__file__).parent
PUBLISHABLE, SECRET = "sb_publishable_for_tests_only", "sb_secret_for_tests_only"

CONFIG = """
[api]
port = {port}

[db]
driver = "postgres"
url = "postgres:///{database}?search_path=lite,pg_catalog,public"

[auth]
enabled = true
jwt_secret = "for-tests-only-for-tests-only-for-tests"
publishable_key = "env(SUPABASE_PUBLISHABLE_KEY)"
secret_key = "env(SUPABASE_SECRET_KEY)"
"""

UNWRAP = """
do $$
declare
    f record;
begin
    for f in
        select p.oid::regprocedure as signature, p.proname as name, p.proname || '_itself' as itself,
               pg_get_function_arguments(p.oid) as arguments, pg_get_function_result(p.oid) as result,
               (select string_agg(
                    case t.type when 'jsonb'::regtype then format('public.unwrap($%s)', t.place)
                    else '$' || t.place end, ', ' order by t.place)
                from unnest(p.proargtypes::oid[]) with ordinality as t (type, place)) as passed
        from pg_proc p where p.pronamespace = 'public'::regnamespace and p.proname = any(<names>)
          and 'jsonb'::regtype = any(p.proargtypes::oid[])
    loop
        execute format('alter function %s rename to %I', f.signature, f.itself);
        execute format('create function public.%I(%s) returns %s language sql as %L', f.name, f.arguments,
                       f.result, format('select public.%I(%s)', f.itself, f.passed));
        execute format('revoke all on function public.%I from public, anon, authenticated', f.name);
    end loop;
end $$;
"""
"""lite 0.10 hands a jsonb parameter over as a string of JSON; Supabase does not: so it is undone here."""
UNWRAPPER = """
create function public.unwrap(given jsonb) returns jsonb language sql as $$
    select case jsonb_typeof(given) when 'string' then (given #>> '{}')::jsonb else given end
$$;
"""

VIEWS_WITHOUT_TEXT = """
create schema lite;
create view lite.pg_views as select schemaname, viewname, '' as definition from pg_catalog.pg_views;
"""
"""At every request, lite 0.10 searches each view's text for each of its columns, to find casts to types that
we do not have: half of all its work. So it sees no text."""


class Lite:
    """One server; it can be away for a while, and comes back where it was."""

    def __init__(self, command: Path, folder: Path, database: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.database = database  # the address of its Postgres
        self._command = command
        self._folder = folder
        (folder / "supabase").mkdir()
        (folder / "supabase" / "config.toml").write_text(
            CONFIG.format(port=port, database=urlsplit(database).path[1:]), encoding="utf-8"
        )
        self._environment = os.environ | {
            "LITE_TELEMETRY": "0",
            "PGHOST": parse_qs(urlsplit(database).query)["host"][0],
            "PGUSER": "postgres",
            "SUPABASE_PUBLISHABLE_KEY": PUBLISHABLE,
            "SUPABASE_SECRET_KEY": SECRET,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [self._command, "start"], cwd=self._folder, env=self._environment, stdout=log, stderr=log
            )
        _wait_for(self.url, self._process, self._folder / "log")

    def stop(self) -> None:
        """At once, as an outage is: asked politely, it waits for its clients to hang up first."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def away(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.start()


@contextmanager
def running(folder: Path, name: str = "lite") -> Iterator[Lite]:
    """Over a database of this name."""
    command = _installed()
    address = database(name)
    migrate(address)
    with psycopg.connect(address) as connection:
        connection.execute(UNWRAPPER + VIEWS_WITHOUT_TEXT)
        names = ", ".join(f"'{name}'" for name in _called())
        connection.execute(UNWRAP.replace("<names>", f"array[{names}]"))
    lite = Lite(command, folder, address)
    lite.start()
    try:
        yield lite
    finally:
        lite.stop()


def _called() -> set[str]:
    """The functions that the store calls: by their names, and those of acts that it passes on."""
    sources = (Path(supabase.__file__).parent).glob("*.py")
    named = {name for file in sources for name in re.findall(r'"(mailout_\w+)"', file.read_text("utf-8"))}
    return named | {f"mailout_{act}" for act in dir(supabase.SupabaseStore)}


def _installed() -> Path:
    """Once for each lock file."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        missing("Node is not here")
    lock = (HERE / "package-lock.json").read_bytes()
    with cached(f"supabase-lite-{hashlib.sha256(lock).hexdigest()[:12]}") as folder:
        command = folder / "node_modules" / ".bin" / "lite"
        _install(npm, folder, command)
        return command


def _install(npm: str, folder: Path, command: Path) -> None:
    if not command.exists():
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder / name)
        flags = ["--legacy-peer-deps", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"]
        made = subprocess.run([npm, "ci", *flags], cwd=folder, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            missing(f"npm could not install @supabase/lite: {made.stderr[-300:]}")


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(f"{url}/rest/v1/", headers={"apikey": SECRET}, trust_env=False, timeout=30)
        except httpx.TransportError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"@supabase/lite did not start: {log.read_text()[-2000:]}")
