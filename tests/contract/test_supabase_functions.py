"""The Supabase store's own: what its SQL must share with Python, and what many rows and senders do to it."""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from mailout.adapters.supabase import SupabaseStore
from mailout.adapters.supabase.acts import SQL_NAMES
from mailout.adapters.supabase.client import LONG_ACTS
from mailout.app.engine import Engine
from mailout.app.forgetting import forget
from mailout.base.errors import StoreError
from mailout.base.ids import uuid_of
from mailout.base.settings import load_settings
from mailout.letters.audience.list_rows import LIST_TABLE, List, lists
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.pacing import PaceState, reserve
from mailout.outbox.delivery.protocol import Bucket, Claimed, Pace, Step
from mailout.outbox.delivery.states import COLUMN_OF, TRANSITIONS, State
from tests.clocks import NOON
from tests.contract.postgres import PostgresRpc, borrowed, empty, migrated
from tests.contract.scenes import ACCOUNT, LEASE, enqueue, freeze, mailout, result


@pytest.fixture
def admin() -> Iterator[psycopg.Connection[Any]]:
    """The shared database, seen by its owner."""
    empty(migrated())
    with psycopg.connect(migrated(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def store(admin: psycopg.Connection[Any]) -> Iterator[SupabaseStore]:
    made = SupabaseStore.over(PostgresRpc(migrated()))
    yield made
    made.close()


# ── what is put where ──


@pytest.mark.parametrize(
    "name", ["subscribers", "store_secrets", "read_lists", "lists; drop table lists", ""]
)
def test_rows_are_put_into_plain_tables_alone(store: SupabaseStore, name: str) -> None:
    with pytest.raises(StoreError, match="Nothing is put into"):
        store.put(replace(LIST_TABLE, name=name), [List("news", "News")])


@pytest.mark.parametrize("column", ["key) select 1; --", "key, name", "nothing", "ctid", ""])
@pytest.mark.parametrize("part", ["columns", "key", "anew"])
def test_rows_are_put_into_columns_that_there_are(store: SupabaseStore, part: str, column: str) -> None:
    names = {"columns": ["key", "name"], "key": ["key"], "anew": ["name"]}
    names[part] = [*names[part], column]
    given = [{"key": "news", "name": "News", column: "News"}]
    with pytest.raises(StoreError, match="has no column"):
        store.rpc("mailout_put", {"relation": "lists", **names, "moment": None, "given": given})
    assert [one.key for one in lists(store)] == ["general"]


# ── what Python says too ──


def test_the_table_of_states_is_pythons(admin: psycopg.Connection[Any]) -> None:
    """A step that only one side knows is a message that cannot move, or moves where it must not."""
    rows = admin.execute("select before, after from state_transitions").fetchall()
    assert set(rows) == {(before, after) for before, afters in TRANSITIONS.items() for after in afters}


def test_the_ledgers_columns_are_pythons(admin: psycopg.Connection[Any]) -> None:
    for state in State:
        (column,) = admin.execute("select mailout_column(%s)", (state.value,)).fetchone()
        assert column == COLUMN_OF.get(state)


def test_the_client_waits_for_who_may_take_a_minute(admin: psycopg.Connection[Any]) -> None:
    named = admin.execute("select proname from pg_proc where 'statement_timeout=60s' = any(proconfig)")
    assert {name for (name,) in named} == set(LONG_ACTS)


def test_every_act_that_is_passed_on_finds_its_function(admin: psycopg.Connection[Any]) -> None:
    """Else the first use of an act fails, at whoever needs it."""
    known = {
        name: set(parameters or ())
        for name, parameters in admin.execute(
            "select proname, proargnames from pg_proc where pronamespace = 'public'::regnamespace"
        )
    }
    own = {name: act for name, act in vars(SupabaseStore).items() if inspect.isfunction(act)}
    acts = {name: act for name, act in own.items() if hasattr(act, "__wrapped__")}
    assert "start" in acts
    for name, act in acts.items():
        ours = set(inspect.signature(act).parameters) - {"self"}
        assert known.get(f"mailout_{name}") == {SQL_NAMES.get(one, one) for one in ours}, name


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(TEXTS, min_size=1, max_size=4))
def test_ids_made_in_sql_are_those_made_in_python(parts: list[str]) -> None:
    """Otherwise a replay from the other side would meet nobody, and send twice."""
    with borrowed(migrated()) as connection:
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
    with borrowed(migrated()) as connection, connection.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(
            "select * from mailout_reserve((%s, %s, %s, %s, null)::pace, %s, %s, %s)",
            (ACCOUNT, state.next_at, state.factor, state.factor_at, wish, NOON, want),
        ).fetchone()
    assert found is not None
    assert found["free"] == pytest.approx(wanted.slots_free, abs=1e-9)
    assert (found["next_at"], found["gap"]) == pytest.approx((wanted.next_at, wanted.interval), rel=1e-12)
    assert (found["told"], found["told_at"]) == pytest.approx((wanted.factor, wanted.factor_at), rel=1e-12)


# ── what holds whoever writes ──


def test_a_message_has_its_mailout_and_keeps_it(admin: psycopg.Connection[Any], store: SupabaseStore) -> None:
    """A message without a mailout is in no ledger: nobody would ever learn that it was not sent."""
    id = mailout(store, "ann@example.org")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        admin.execute(
            "insert into email_outbox (id, campaign_id, email) values (%s, %s, 'bob@example.org')",
            (uuid_of("a message"), uuid_of("no mailout")),
        )
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        admin.execute("delete from campaign_queue")
    with pytest.raises(psycopg.Error, match="transition refused"):
        admin.execute("update email_outbox set campaign_id = null")
    assert store.mailout(id).ledger.recipients == 1


# ── size and company ──


def test_sixty_thousand_subscribers_are_frozen_in_order(
    admin: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    """A list of any size is written inside the database, by address, each once. These fill more than 8 MB:
    beyond that Postgres plans as for any larger table."""
    admin.execute("alter table subscribers disable trigger subscribers_normalise")
    admin.execute(
        "insert into subscribers (email, email_norm, status)"
        " select email, email, case when i % 1000 = 0 then 'unsubscribed' else 'active' end"
        " from (select i, md5(i::text) || '@example.org' as email from generate_series(1, 60000) i) made"
    )
    admin.execute("alter table subscribers enable trigger subscribers_normalise")
    id = enqueue(store)
    assert freeze(store, id) == 59_940
    assert store.mailout(id).ledger.pending == 59_940
    (out_of_order,) = admin.execute(
        "select count(*) from (select email, lag(email) over (order by seq) as before from email_outbox) o"
        ' where before collate "C" >= email collate "C"'
    ).fetchone() or (None,)
    assert out_of_order == 0


class Racer(threading.Thread):
    """One sender on a connection of its own: steps until nothing is pending, sending everything it gets."""

    def __init__(self, id: str) -> None:
        super().__init__()
        self.store = SupabaseStore.over(PostgresRpc(migrated()))
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
    assert outbox_rows.usage(store, "all", "day", "always") == 600


def test_a_cancel_among_senders_leaves_nothing_waiting(store: SupabaseStore) -> None:
    """Steps, a cancel and a reap lock the same rows from different ends: none may wait for ever."""
    id = mailout(store, *(f"p{number:04}@example.org" for number in range(400)))
    racers = [Racer(id) for _ in range(3)]
    for racer in racers:
        racer.start()
    other = SupabaseStore.over(PostgresRpc(migrated()))
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


def test_who_is_forgotten_before_their_address_was_understood_does_not_come_back(
    admin: psycopg.Connection[Any], store: SupabaseStore, tmp_path: Path
) -> None:
    """SQL cannot make punycode: what a form wrote waits for the next mailout, which would mail them."""
    admin.execute("insert into subscribers (email) values ('ann@bücher.example')")
    settings = load_settings({"MAILOUT_HOME": str(tmp_path)})
    engine = cast(
        Engine,
        SimpleNamespace(store=store, settings=settings, reporting=Mock(**{"forget.return_value": set()})),
    )
    assert forget(engine, "ann@xn--bcher-kva.example").done.subscribers == 1
    assert admin.execute("select count(*) from subscribers").fetchone() == (0,)
