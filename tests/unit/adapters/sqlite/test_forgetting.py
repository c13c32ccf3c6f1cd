"""What `forget` leaves of a person in SQLite's file, wherever a program or SES has put the address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mailout.adapters.sqlite import SqliteStore
from mailout.base.error_log import ErrorRecord
from mailout.insight.history.port import Act
from mailout.letters.content.model import Content
from mailout.outbox.delivery.single_mails import SingleMail
from tests.clocks import FakeClock
from tests.contract.scenes import dead_event
from tests.new_sqlite import open_new

DAN, OTHER = "dan@example.org", "Jordan@Example.org"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(open_new(tmp_path / "mailout.db", FakeClock())) as store:
        yield store


def held(store: SqliteStore, *tables: str) -> str:
    return str([tuple(row) for table in tables for row in store.db.read(f"SELECT * FROM {table}")])


def test_an_address_is_erased_in_whichever_case_it_was_written(store: SqliteStore) -> None:
    """SES repeats an address as it was given, and an event that nobody can read is kept as it came."""
    dead_event(store, f'{{"broken": "Dan@Example.org", "and": "{OTHER}"', why="Dan@EXAMPLE.org: unreadable")
    store.record_errors([ErrorRecord("x", "could not reach Dan@Example.org.", stage="delivery")])
    store.write_act(Act("Dan@Example.org (192.0.2.1)", "signed in"))
    store.forget(DAN, "forgotten:1")
    left = held(store, "dead_letters", "error_records", "dashboard_acts").replace(OTHER, "somebody else")
    assert DAN not in left.lower()
    assert left.count("somebody else") == 1
    assert "could not reach forgotten:1." in left


def test_the_id_that_a_program_gave_its_request_is_erased(store: SqliteStore) -> None:
    """Programs make it of what they know: of the address, too."""
    mail = SingleMail(
        id="m1",
        company_id="acme",
        email=DAN,
        content=Content("Hi", "<p>Hi</p>", "Hi"),
        fingerprint="f",
        request_id=f"req-{DAN}",
    )
    store.accept_single_mails([mail])
    assert DAN in held(store, "email_outbox")
    store.forget(DAN, "forgotten:1")
    assert DAN not in held(store, "email_outbox")
