"""What a released version left behind: a store with people, letters and messages in every state.

    python -m tests.contract.releases 0.1.0

writes `releases/0.1.0.sqlite.sql` and `releases/0.1.0.postgres.sql` from the code as it is; whoever releases
does it once and never again. Of Postgres the data alone: its schema is what the released migrations make.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg
from psycopg import sql

from mailout.adapters.sqlite import SqliteStore
from mailout.adapters.supabase import SupabaseStore
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.port import Received
from mailout.outbox.queue import segment_names
from mailout.store import Store
from tests.clocks import FakeClock
from tests.contract.postgres import MIGRATIONS, PostgresRpc, database, migrate
from tests.contract.scenes import Sender, confirmed, enqueue, freeze, mailout, result, subscribe
from tests.contract.test_imports import CYN, FIRST, bring
from tests.contract.test_join import ANN, ask, confirm
from tests.contract.test_single_mails import mail

FOLDER = Path(__file__).with_name("releases")
PEOPLE = {
    State.FAILED: "a-failed@example.org",
    State.PENDING: "z-pending@example.org",
    State.RETRY_SCHEDULED: "b-retry@example.org",
    State.SENT: "c-sent@example.org",
    State.SENT_ATTEMPT: "y-attempt@example.org",
    State.SUPPRESSED: "d-suppressed@example.org",
    State.UNKNOWN: "e-unknown@example.org",
    State.VALIDATION_FAILED: "f-invalid@example.org",
}
"""Who stands for which state. Their order is the order of sending: those who wait come last."""
STRANGER = "stranger@example.org"
"""Has asked for a list, and not confirmed it."""
SEGMENT = "in list news and not got main"


LAST = "-- after "
"""The first line of a dump of Postgres: the last migration it had."""


TABLES = """select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
    and relname not in ('state_transitions', 'mailout_relations') order by 1"""
"""The migrations fill those two."""
ROWS = sql.SQL("select quote_literal(to_jsonb(t)) from {} t order by 1")
SEQUENCES = """select sequencename, last_value from pg_sequences
    where schemaname = 'public' and last_value is not null"""
INTO = "jsonb_populate_record"


def furnish(store: Store) -> None:
    """One letter with a message in every state, others that wait or are over, people of every kind."""
    subscribe(store, "left@example.org")
    subscribe(store, "bounced@example.org", status="bounced", bounce_type="Permanent")
    store.unsubscribe("left@example.org", None, None)
    main = mailout(store, *PEOPLE.values(), ref="main")
    sender = Sender(store, main)
    begun = {row.email: row for row in sender.begin(3)}
    store.unsubscribe(PEOPLE[State.SUPPRESSED], None, None)
    begun |= {row.email: row for row in sender.begin(4)}
    told = (State.FAILED, State.RETRY_SCHEDULED, State.SENT, State.UNKNOWN, State.VALIDATION_FAILED)
    sender.step(results=[result(begun[PEOPLE[state]], state, retry_in=60.0) for state in told])
    confirmed(store, begun[PEOPLE[State.SENT]].attempt)
    store.receive_events([Received("waiting", "sns", "{}")])
    done = mailout(store, ref="done", list_key="nobody")
    store.complete(done)
    waiting = enqueue(store, "waiting")
    freeze(store, waiting)
    store.cancel(enqueue(store, "cancelled"))
    store.accept_single_mails([mail("a receipt")])
    store.put(LIST_TABLE, [List("news", "News", public=True)])
    for email in (ANN, STRANGER):
        ask(store, email)
    confirm(store, ANN)
    segment_names.save(store, "newcomers", SEGMENT)
    bring(store, FIRST, CYN)


def load(dump: Path, folder: Path) -> Store:
    """The store as that version left it, opened by this one."""
    text = dump.read_text(encoding="utf-8")
    if dump.name.endswith(".sqlite.sql"):
        path = folder / "mailout.db"
        with closing(sqlite3.connect(path)) as db:
            db.executescript(text)
        return SqliteStore(path, FakeClock())
    last, _, data = text.removeprefix(LAST).partition("\n")
    address = database("released")
    migrate(address, [one for one in MIGRATIONS if one.name <= last])
    with psycopg.connect(address) as connection:
        connection.execute("set local session_replication_role = replica")
        for filled in ("lists", "store_secrets"):  # by the migrations; the dump has its own
            connection.execute(sql.SQL("delete from {}").format(sql.Identifier(filled)))
        connection.execute(data)
    migrate(address, [one for one in MIGRATIONS if one.name > last])
    return SupabaseStore.over(PostgresRpc(address, FakeClock()))


def dump_sqlite(version: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mailout.db"
        with closing(SqliteStore(path, FakeClock())) as store:
            furnish(store)
        with closing(sqlite3.connect(path)) as db:
            (schema,) = db.execute("PRAGMA user_version").fetchone()
            text = "\n".join((*db.iterdump(), f"PRAGMA user_version = {schema};", ""))
    (FOLDER / f"{version}.sqlite.sql").write_text(text, encoding="utf-8")


def dump_postgres(version: str) -> None:
    address = database("releasing")
    migrate(address)
    with closing(SupabaseStore.over(PostgresRpc(address, FakeClock()))) as store:
        furnish(store)
    lines = [f"{LAST}{MIGRATIONS[-1].name}"]
    with psycopg.connect(address) as connection:
        for (table,) in connection.execute(TABLES).fetchall():
            rows = connection.execute(ROWS.format(sql.Identifier(table))).fetchall()
            name = sql.Identifier(table).as_string(connection)
            lines += [f"insert into {name} select * from {INTO}(null::{name}, {row});" for (row,) in rows]
        for name, last in connection.execute(SEQUENCES).fetchall():
            lines.append(f"select setval('{name}', {last});")
    (FOLDER / f"{version}.postgres.sql").write_text("\n".join((*lines, "")), encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    dump_sqlite(sys.argv[1])
    dump_postgres(sys.argv[1])
