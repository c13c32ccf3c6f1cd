"""The migrations: on an empty project, twice, on one that has lived; and who may see what they made."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from mailout.adapters.supabase import SupabaseStore
from mailout.delivery.pacing import PaceState, reserve
from mailout.delivery.protocol import Bucket, Claimed, Pace, Step
from mailout.delivery.states import COLUMN_OF, TRANSITIONS, State
from mailout.errors import StoreMismatch
from mailout.ids import uuid_of
from tests.clocks import NOON
from tests.contract.postgres import MIGRATIONS, PostgresRpc, database, empty, migrate, migrated
from tests.contract.scenes import ACCOUNT, LEASE, enqueue, freeze, mailout, result

OUTSIDERS = ("anon", "authenticated")


@pytest.fixture
def admin() -> Iterator[psycopg.Connection[Any]]:
    """The shared database, seen by its owner."""
    empty(migrated())
    with psycopg.connect(migrated(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def store(admin: psycopg.Connection[Any]) -> Iterator[SupabaseStore]:
    made = SupabaseStore(PostgresRpc(migrated()))
    yield made
    made.close()


# ── applying them ──


def test_they_may_be_applied_twice_and_lose_nothing() -> None:
    """`supabase db push` after a restored migration table must not cost anybody a row."""
    address = database("twice")
    migrate(address)
    store = SupabaseStore(PostgresRpc(address))
    id = mailout(store, "ann@example.org", "bob@example.org", list_key="weekly")
    before = (store.mailout(id), store.messages(id), store.subscribers())
    migrate(address)
    assert (store.mailout(id), store.messages(id), store.subscribers()) == before
    store.check()
    store.close()


def test_a_project_without_them_is_told_which_command_to_run() -> None:
    store = SupabaseStore(PostgresRpc(database("bare")))
    with pytest.raises(StoreMismatch, match="supabase db push"):
        store.check()
    store.close()


@pytest.mark.parametrize(("version", "remedy"), [(0, "supabase db push"), (99, "newer mailout")])
def test_another_schema_is_refused_before_anything_is_sent(version: int, remedy: str) -> None:
    class Answers:
        def __call__(self, name: str, params: object) -> int:
            return version

        def close(self) -> None: ...

    with pytest.raises(StoreMismatch, match=remedy):
        SupabaseStore(Answers()).check()


def test_a_plain_postgres_without_supabases_roles_is_enough() -> None:
    """Whoever runs Postgres himself has none of these roles, and need not invent them."""
    with psycopg.connect(database("plain")) as connection:
        for role in (*OUTSIDERS, "service_role"):
            connection.execute(
                sql.SQL("alter role {} rename to {}").format(
                    sql.Identifier(role), sql.Identifier(f"no {role}")
                )
            )
        for script in MIGRATIONS:
            connection.execute(script.read_text(encoding="utf-8"))
        version = connection.execute("select mailout_schema_version()").fetchone()
        connection.rollback()
    assert version == (1,)


# ── a project that has lived ──

OLD_TABLE = """
create table subscribers (
    id bigint generated always as identity primary key, email text, status text default 'active',
    bounce_type text, bounce_subtype text, status_updated_at timestamptz, from_name text,
    created_at timestamptz default now()
);
insert into subscribers (email, status, from_name, created_at) values
    ('Ann@Example.org', 'active', 'Older', '2024-01-01'),
    ('ann@example.org', 'active', 'Newer', '2025-01-01'),
    ('  bob@example.org ', 'active', null, '2024-01-01'),
    ('BOB@example.org', 'unsubscribed', null, '2025-01-01'),
    (E'\\tcat@example.org\\u00a0', 'active', null, null),
    ('not an address', 'active', null, '2024-01-01'),
    ('two@@example.org', 'active', null, '2024-01-01'),
    (null, 'active', null, '2024-01-01'),
    ('dora@пример.рф', 'active', null, '2024-01-01'),
    ('Dora@Пример.рф', 'bounced', null, '2025-01-01'),
    ('eva@bücher.example', 'active', null, '2024-01-01'),
    ('fay@example.org', 'paused by hand', null, '2024-01-01');
"""


@pytest.fixture
def lived() -> Iterator[psycopg.Connection[Any]]:
    address = database("lived")
    with psycopg.connect(address, autocommit=True, row_factory=dict_row) as connection:
        connection.execute(OLD_TABLE)
        migrate(address)
        yield connection


@pytest.fixture
def lived_store(lived: psycopg.Connection[Any]) -> Iterator[SupabaseStore]:
    made = SupabaseStore(PostgresRpc(str(lived.info.dsn)))
    yield made
    made.close()


def _column(connection: psycopg.Connection[Any], column: str) -> list[tuple[Any, Any]]:
    rows = connection.execute(f"select email, {column} as value from subscribers order by id").fetchall()
    return [(row["email"], row["value"]) for row in rows]


def test_rows_from_before_keep_one_for_each_address_and_say_why_the_others_wait(
    lived: psycopg.Connection[Any],
) -> None:
    """Who had left under one spelling gets no mail under another, and nobody's row is deleted."""
    norms = [norm for _, norm in _column(lived, "email_norm")]
    problems = [problem for _, problem in _column(lived, "email_problem")]
    assert norms == [
        *("ann@example.org", None, None, "bob@example.org", "cat@example.org"),
        *(None, None, None, None, None, None, "fay@example.org"),
    ]
    assert problems == [
        *(None, "duplicate", "duplicate", None, None),
        *("invalid", "invalid", "invalid", "not_ascii", "not_ascii", "not_ascii", None),
    ]
    migrate(str(lived.info.dsn))
    assert [norm for _, norm in _column(lived, "email_norm")] == norms


def test_only_the_active_ones_with_an_address_are_written_to(lived_store: SupabaseStore) -> None:
    id = enqueue(lived_store)
    freeze(lived_store, id)
    rows = lived_store.messages(id)
    assert [row["email"] for row in rows] == ["ann@example.org", "cat@example.org"]
    assert rows[0]["from_name"] == "Older"


def test_python_frees_the_rows_whose_domain_needs_punycode(
    lived: psycopg.Connection[Any], lived_store: SupabaseStore
) -> None:
    """A subscriber with an IDN domain would otherwise never get mail; a bounce under one spelling counts."""

    def punycode(email: str) -> str:
        local, _, domain = email.strip().lower().partition("@")
        return f"{local}@{domain.encode('idna').decode()}"

    assert lived_store.normalise_addresses(punycode) == 2
    assert lived_store.subscriber("dora@xn--e1afmkfd.xn--p1ai")["status"] == "bounced"
    assert lived_store.subscriber("eva@xn--bcher-kva.example")["status"] == "active"
    assert lived_store.normalise_addresses(punycode) == 0
    assert [email for email, problem in _column(lived, "email_problem") if problem == "not_ascii"] == []


def test_an_import_meets_the_rows_that_were_there(
    lived: psycopg.Connection[Any], lived_store: SupabaseStore
) -> None:
    from mailout.ports import SubscriberRow

    (before,) = lived.execute("select count(*) as n from subscribers").fetchall()
    counts = lived_store.import_subscribers(
        [
            SubscriberRow("ann@example.org", "ann@example.org", from_name="Imported"),
            SubscriberRow("eva@bücher.example", "eva@xn--bcher-kva.example", from_name="Eva"),
        ]
    )
    (after,) = lived.execute("select count(*) as n from subscribers").fetchall()
    assert (counts.added, counts.updated, after) == (0, 2, before)


def test_whoever_writes_a_row_the_key_is_filled(admin: psycopg.Connection[Any], store: SupabaseStore) -> None:
    """People add and edit subscribers in Supabase's table editor; a second spelling is a second row."""
    admin.execute(
        "insert into subscribers (email) values (' Ann@Example.ORG '), ('nobody'), ('bob@example.org')"
    )
    admin.execute("insert into subscribers (email, status) values ('ANN@example.org', 'unsubscribed')")
    assert store.subscriber("ann@example.org")["status"] == "unsubscribed"
    admin.execute("update subscribers set email = 'Bobby@example.org' where email = 'bob@example.org'")
    assert [row["email_norm"] for row in store.subscribers()] == ["ann@example.org", "bobby@example.org"]
    admin.execute("update subscribers set email = 'nobody@example.org' where email = 'nobody'")
    assert store.subscriber_counts() == {"active": 2, "unsubscribed": 1, "bounced": 0}


# ── who may see it ──


def _ours(admin: psycopg.Connection[Any]) -> Sequence[str]:
    rows = admin.execute(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v')"
    )
    return [name for (name,) in rows]


@pytest.mark.parametrize("role", OUTSIDERS)
def test_a_publishable_key_can_read_nothing(admin: psycopg.Connection[Any], role: str) -> None:
    """It stands in every web page of the project: one readable table is every subscriber's address."""
    names = _ours(admin)
    assert {"subscribers", "email_outbox", "email_logs", "send_logs", "state_transitions"} <= set(names)
    admin.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
    for name in names:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            admin.execute(sql.SQL("select * from {}").format(sql.Identifier(name)))


@pytest.mark.parametrize("role", OUTSIDERS)
def test_a_publishable_key_can_call_nothing(admin: psycopg.Connection[Any], role: str) -> None:
    callable_ones = admin.execute(
        "select oid::regprocedure::text from pg_proc where pronamespace = 'public'::regnamespace"
        " and has_function_privilege(%s, oid, 'execute')",
        (role,),
    ).fetchall()
    (ours,) = admin.execute(
        "select count(*) from pg_proc where pronamespace = 'public'::regnamespace"
        " and has_function_privilege('service_role', oid, 'execute')"
    ).fetchone() or (0,)
    assert callable_ones == []
    assert ours > 50


def test_every_table_has_row_level_security_and_every_view_its_callers_rights(
    admin: psycopg.Connection[Any],
) -> None:
    """The second lock: a later `grant` to everybody still shows no row."""
    open_tables = admin.execute(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'"
        " and not relrowsecurity"
    ).fetchall()
    open_views = admin.execute(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'v'"
        " and not coalesce('security_invoker=true' = any(reloptions), false)"
    ).fetchall()
    assert (open_tables, open_views) == ([], [])


def test_everything_says_what_it_is_for(admin: psycopg.Connection[Any]) -> None:
    """In Supabase's editor the comment is all that a person sees of the intention."""
    silent = admin.execute(
        "select relname::text from pg_class where relnamespace = 'public'::regnamespace"
        " and relkind in ('r', 'v') and obj_description(oid, 'pg_class') is null"
        " union all select proname::text from pg_proc where pronamespace = 'public'::regnamespace"
        " and obj_description(oid, 'pg_proc') is null"
    ).fetchall()
    assert silent == []


# ── what Python says too ──


def test_the_table_of_states_is_pythons(admin: psycopg.Connection[Any]) -> None:
    """A step that only one side knows is a message that cannot move, or moves where it must not."""
    rows = admin.execute("select before, after from state_transitions").fetchall()
    assert set(rows) == {(before, after) for before, afters in TRANSITIONS.items() for after in afters}


def test_the_ledgers_columns_are_pythons(admin: psycopg.Connection[Any]) -> None:
    for state in State:
        (column,) = admin.execute("select mailout_column(%s)", (state.value,)).fetchone() or ()
        assert column == COLUMN_OF.get(state)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(TEXTS, min_size=1, max_size=4))
def test_ids_made_in_sql_are_those_made_in_python(parts: list[str]) -> None:
    """Otherwise a replay from the other side would meet nobody, and send twice."""
    with psycopg.connect(migrated()) as connection:
        made = connection.execute("select mailout_uuid(variadic %s::text[])::text", (parts,)).fetchone()
    assert made == (uuid_of(*parts),)


@settings(max_examples=100, deadline=None)
@given(
    next_in=st.floats(-5, 10),
    factor=st.floats(0.05, 1),
    factor_ago=st.floats(-2, 900),
    rate=st.sampled_from([0.0, 0.5, 5.0, 14.0, 200.0]),
    group=st.sampled_from([1, 14, 50]),
    throttled=st.booleans(),
    want=st.integers(0, 300),
)
def test_the_pacer_in_sql_reserves_what_the_one_in_python_does(
    next_in: float, factor: float, factor_ago: float, rate: float, group: int, throttled: bool, want: int
) -> None:
    """Two stores, one pace: whoever moves from SQLite to Supabase must not suddenly send faster."""
    state = PaceState(NOON + next_in, factor, NOON - factor_ago)
    pace = Pace(ACCOUNT, rate, group=group, throttled=throttled)
    wanted = reserve(state, pace, NOON, want)
    wish = Jsonb(asdict(pace))
    with psycopg.connect(migrated(), row_factory=dict_row) as connection:
        found = connection.execute(
            "select * from mailout_reserve((%s, %s, %s, %s)::pace, %s, %s, %s)",
            (ACCOUNT, state.next_at, state.factor, state.factor_at, wish, NOON, want),
        ).fetchone()
    assert found is not None
    assert found["free"] == pytest.approx(wanted.slots_free, abs=1e-9)
    assert (found["next_at"], found["gap"]) == pytest.approx((wanted.next_at, wanted.interval), rel=1e-12)
    assert (found["told"], found["told_at"]) == pytest.approx((wanted.factor, wanted.factor_at), rel=1e-12)


# ── size and company ──


def test_two_hundred_thousand_subscribers_are_frozen_in_order(
    admin: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    """A list of any size is written inside the database, by address, each once."""
    admin.execute("alter table subscribers disable trigger subscribers_normalise")
    admin.execute(
        "insert into subscribers (email, email_norm, status)"
        " select email, email, case when i % 1000 = 0 then 'unsubscribed' else 'active' end"
        " from (select i, md5(i::text) || '@example.org' as email from generate_series(1, 200000) i) made"
    )
    admin.execute("alter table subscribers enable trigger subscribers_normalise")
    id = enqueue(store)
    assert freeze(store, id) == 199_800
    assert store.mailout(id).ledger.pending == 199_800
    (out_of_order,) = admin.execute(
        "select count(*) from (select email, lag(email) over (order by seq) as before from email_outbox) o"
        ' where before collate "C" >= email collate "C"'
    ).fetchone() or (None,)
    assert out_of_order == 0


class Racer(threading.Thread):
    """One sender on a connection of its own: steps until nothing is pending, sending everything it gets."""

    def __init__(self, id: str) -> None:
        super().__init__()
        self.store = SupabaseStore(PostgresRpc(migrated()))
        self.id = id
        self.got: list[Claimed] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._send_all()
        except BaseException as error:  # noqa: BLE001 (shown by the test)
            self.error = error
        finally:
            self.store.close()

    def _send_all(self) -> None:
        session = self.store.open_session(self.id, worker="racer", transport="folder", lease=LEASE)
        n, held, buckets = 0, list[Claimed](), _buckets()
        while True:
            n += 1
            sent, back = held[::2], held[1::2] if n % 3 == 0 else []
            kept = [one for one in held if one not in sent and one not in back]
            reply = self.store.step(
                Step(
                    session,
                    n,
                    LEASE,
                    Pace(ACCOUNT, 0.0),
                    results=[result(one) for one in [*sent, *kept]],
                    withdraw=[one.attempt for one in back],
                    want=20,
                    buckets=buckets,
                )
            )
            self.got += [*sent, *kept]
            held = list(reply.rows)
            if not held and reply.ledger is not None and reply.ledger.settled:
                return


def _buckets() -> list[Bucket]:
    return [Bucket("hour", "always", 0.0, 1e12, 10**6), Bucket("day", "always", 0.0, 1e12, 10**6)]


@pytest.mark.parametrize("senders", [2, 3])
def test_senders_at_once_begin_every_message_once(store: SupabaseStore, senders: int) -> None:
    """Two machines, one mailout: nobody gets it twice, nobody is left out, no step dies of a deadlock."""
    emails = [f"p{number:04}@example.org" for number in range(600)]
    id = mailout(store, *emails)
    racers = [Racer(id) for _ in range(senders)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert [racer.error for racer in racers] == [None] * senders
    accepted = Counter(claimed.email for racer in racers for claimed in racer.got)
    assert accepted == Counter(emails)
    ledger = store.mailout(id).ledger
    assert (ledger.sent, ledger.pending, ledger.in_flight, ledger.recipients) == (600, 0, 0, 600)
    assert store.usage("all", "day", "always") == 600


def test_a_cancel_among_senders_leaves_nothing_waiting(store: SupabaseStore) -> None:
    """Steps, a cancel and a reap lock the same rows from different ends: none may wait for ever."""
    id = mailout(store, *(f"p{number:04}@example.org" for number in range(400)))
    racers = [Racer(id) for _ in range(3)]
    for racer in racers:
        racer.start()
    other = SupabaseStore(PostgresRpc(migrated()))
    other.reap(0.0)
    other.cancel(id)
    for racer in racers:
        racer.join()
    other.close()
    assert [racer.error for racer in racers] == [None] * 3
    ledger = store.mailout(id).ledger
    assert (ledger.pending, ledger.in_flight) == (0, 0)
    assert ledger.sent + ledger.suppressed == 400
    assert ledger.sent == sum(len(racer.got) for racer in racers)
