"""`select`: what rooms may read, in which order, and what it refuses."""

from __future__ import annotations

from typing import Any, TypedDict

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.adapters.sqlite import SqliteStore
from mailout.adapters.supabase import SupabaseStore
from mailout.base.error_log import ERROR_TABLE, ERRORS, ErrorRecord
from mailout.base.errors import StoreError
from mailout.base.select import SELECT_LIMIT, View, every
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.audience.subscriber_rows import SUBSCRIBERS
from mailout.store import Store
from tests.contract.postgres import migrated


class Line(TypedDict):
    """A few columns of an error, of each kind: a number, words, a moment."""

    id: int
    code: str
    mailout: str | None
    attempts: int | None
    at: float


LINES = View("read_errors", Line, ("id",))
HOSTILE = [
    "id; drop table error_records",
    "id) from error_records; --",
    'id" from error_records --',
    "(select value from store_secrets)",
    "*",
    "count(*)",
    "",
]


def write(store: Store, *errors: tuple[str, str | None, int | None, float]) -> None:
    store.put(
        ERROR_TABLE,
        [
            ErrorRecord(code, "It failed.", "delivery", mailout=mailout, attempts=attempts, at=at)
            for code, mailout, attempts, at in errors
        ],
    )


# ── what it refuses ──


@pytest.mark.parametrize("name", ["read_nothing", "error_records", "store_secrets", "email_logs", *HOSTILE])
def test_only_a_view_that_is_meant_for_it_can_be_read(store: Store, name: str) -> None:
    """A table holds what no room should see: secrets, tokens, what was forgotten."""
    with pytest.raises(StoreError, match="no view"):
        store.select(View(name, Line, ("id",)))


@pytest.mark.parametrize("column", ["nothing", "payload", *HOSTILE])
def test_an_unknown_column_is_refused_wherever_it_stands(store: Store, column: str) -> None:
    """A column's name is part of the statement: one that is not checked could be any statement."""
    Other = TypedDict("Other", {column: str})  # type: ignore[misc]
    write(store, ("A", None, None, 1.0))
    with pytest.raises(StoreError, match="no column"):
        store.select(View("read_errors", Other, ("id",)))
    with pytest.raises(StoreError, match="no column"):
        store.select(View("read_errors", Line, (column,)))
    with pytest.raises(StoreError, match="no column"):
        store.select(LINES, order=[column])
    if " " not in column:
        with pytest.raises(StoreError, match="no column"):
            store.select(LINES, {column: "x"})
    assert len(store.select(LINES)) == 1


@pytest.mark.parametrize("operator", ["or", "like", "= 1 or id", "; --", "is not"])
def test_an_unknown_operator_is_refused(store: Store, operator: str) -> None:
    with pytest.raises(StoreError, match="no filter"):
        store.select(LINES, {f"code {operator}": "x"})


@pytest.mark.parametrize(
    "value", ["' or 1=1 --", "x'); drop table error_records; --", "$1", "?", "%s", "\\", '"']
)
def test_a_value_is_never_part_of_the_statement(store: Store, value: str) -> None:
    """Whoever searches the dashboard chooses these words."""
    write(store, ("A", None, None, 1.0), (value, None, None, 2.0))
    for filters in ({"code": value}, {"code in": [value]}, {"code has": value}):
        assert [row["code"] for row in store.select(LINES, filters)] == [value]
    assert len(store.select(LINES, {"code !=": value})) == 1


@pytest.mark.parametrize("limit", [0, -1, SELECT_LIMIT + 1])
def test_more_than_a_page_at_a_time_is_refused_instead_of_cut(store: Store, limit: int) -> None:
    """A silent cap would end an audience or a report at its thousandth row."""
    with pytest.raises(StoreError, match="between 1 and 1000"):
        store.select(LINES, limit=limit)


def test_nothing_beyond_the_page_is_lost_and_every_goes_on(store: Store) -> None:
    people = [SubscriberRow(f"p{n:04}@example.org", f"p{n:04}@example.org") for n in range(SELECT_LIMIT + 3)]
    store.import_subscribers(people)
    assert len(store.select(SUBSCRIBERS)) == SELECT_LIMIT
    assert [row["email_norm"] for row in every(store, SUBSCRIBERS)] == [one.email_norm for one in people]
    assert len(list(every(store, SUBSCRIBERS, limit=SELECT_LIMIT + 1))) == SELECT_LIMIT + 1


def test_up_and_down_at_once_has_no_next_page_and_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="not both"):
        store.select(LINES, order=["-at", "code"])
    with pytest.raises(StoreError, match="After which row"):
        store.select(LINES, order=["at"], after=[1.0])


@pytest.mark.parametrize("role", ["anon", "authenticated"])
def test_a_publishable_key_cannot_call_it(role: str) -> None:
    """It reads every view: whoever could call it would have every address."""
    call = "select mailout_select('read_subscribers', '[\"email\"]', '[]', '[\"email\"]', false, null, 1)"
    with psycopg.connect(migrated()) as connection:
        connection.execute(f"set role {role}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(call)


@pytest.mark.parametrize(
    ("change", "match"),
    [({"most": 1001}, "between 1 and 1000"), ({"filters": [["id", ";", 1]]}, "no filter")],
)
def test_the_function_checks_for_itself(change: dict[str, Any], match: str) -> None:
    """Another program with the service key has no Python to check before it."""
    from tests.contract.postgres import PostgresRpc

    rpc = PostgresRpc(migrated())
    asked = {"relation": "read_errors", "columns": ["id"], "filters": [], "sort": ["id"]}
    with pytest.raises(StoreError, match=match):
        rpc("mailout_select", asked | {"descending": False, "after": None, "most": 1} | change)
    rpc.close()


# ── what it gives ──


def test_filters_mean_the_same_in_every_store(store: Store) -> None:
    write(store, ("A", "m1", None, 10.0), ("B", "m1", 2, 20.5), ("C", None, 3, 30.25))

    def found(**filters: object) -> str:
        return "".join(row["code"] for row in store.select(LINES, filters))

    assert found(mailout="m1") == "AB"
    assert (found(mailout=None), found(**{"mailout !=": None})) == ("C", "AB")
    assert (found(**{"attempts >=": 2}), found(**{"attempts <": 3}), found(attempts=None)) == ("BC", "B", "A")
    assert (found(at=20.5), found(**{"at >": 10.0}), found(**{"at in": [10.0, 30.25]})) == ("B", "BC", "AC")
    assert (found(**{"code in": []}), found(**{"code in": ["C", "A"]}), found(**{"code has": "B"})) == (
        "",
        "AC",
        "B",
    )


def test_an_id_that_can_be_none_of_ours_finds_nothing(store: Store) -> None:
    """A person types the beginning of one, or a word: that is no error of the store."""
    from mailout.outbox.delivery.outbox_rows import MESSAGES

    assert store.select(MESSAGES, {"id": "not a uuid"}) == []
    assert store.select(MESSAGES, {"id in": ["not a uuid", "x"]}) == []


def test_a_row_has_the_types_it_says(store: Store) -> None:
    write(store, ("A", None, 2, 1_700_000_000.25))
    (row,) = store.select(LINES)
    assert row == {"id": row["id"], "code": "A", "mailout": None, "attempts": 2, "at": 1_700_000_000.25}
    (error,) = store.select(ERRORS)
    assert error == ErrorRecord("A", "It failed.", "delivery", attempts=2, at=1_700_000_000.25)


ROWS = st.lists(
    st.tuples(st.sampled_from("abAB_é "), st.none(), st.integers(0, 3), st.integers(0, 3).map(float)),
    max_size=25,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=ROWS,
    order=st.sampled_from([(), ("at",), ("attempts", "at"), ("code",)]),
    down=st.booleans(),
    page=st.integers(1, 7),
)
def test_pages_put_together_are_the_whole_in_one_order(
    store: Store, rows: list[tuple[str, None, int, float]], order: tuple[str, ...], down: bool, page: int
) -> None:
    """A row between two pages would be a person who is shown nowhere; one on both is mailed twice."""
    clear(store)
    write(store, *rows)
    way = [f"-{name}" if down else name for name in order]
    columns = [*order, "id"]
    whole = store.select(LINES, order=way)
    paged: list[Line] = []
    after = None
    while found := store.select(LINES, order=way, after=after, limit=page):
        paged += found
        after = [found[-1][name] for name in columns]  # type: ignore[literal-required]
    assert paged == whole
    ordered = sorted(whole, key=lambda row: place(row, order, down), reverse=down)
    assert [row["id"] for row in whole] == [row["id"] for row in ordered]
    assert len(whole) == len(rows)


def place(row: Line, order: tuple[str, ...], down: bool) -> tuple[Any, ...]:
    """Words by their bytes, in every store and language."""
    values = [row[name] for name in order]  # type: ignore[literal-required]
    return (*(value.encode() if isinstance(value, str) else value for value in values), row["id"])


def clear(store: Store) -> None:
    if isinstance(store, SqliteStore):
        store.db.change("DELETE FROM error_records")
    else:
        assert isinstance(store, SupabaseStore)
        with psycopg.connect(migrated(), autocommit=True) as admin:
            admin.execute("delete from error_records")


def test_both_stores_have_the_same_views_with_the_same_columns(tmp_path: Any) -> None:
    """A room is written once: a column that one store lacks is a page that fails in production alone."""
    from tests.clocks import FakeClock

    sqlite = SqliteStore(tmp_path / "mailout.db", FakeClock())
    rows = sqlite.db.read(
        "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c"
        " WHERE m.type = 'view' AND m.name LIKE 'read!_%' ESCAPE '!'"
    )
    ours = {(view, column) for view, column in rows}
    sqlite.close()
    with psycopg.connect(migrated()) as connection:
        theirs = connection.execute(
            "select table_name::text, column_name::text from information_schema.columns"
            " where table_schema = 'public' and table_name like 'read\\_%'"
        ).fetchall()
    assert ours == set(theirs)
    assert ("read_messages", "email") in ours
