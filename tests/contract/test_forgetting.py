"""What `forget` leaves of a person in the store, wherever a program or SES has put the address."""

from __future__ import annotations

from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.insight.history.history_rows import ACT_TABLE
from mailout.insight.history.port import Act
from mailout.letters.content.model import Content
from mailout.outbox.delivery.single_mails import SingleMail
from mailout.store import Store
from tests.contract.scenes import dead_event
from tests.contract.stores import StoreFactory

DAN, OTHER = "dan@example.org", "Jordan@Example.org"


def held(factory: StoreFactory, *tables: str) -> str:
    return str([factory.raw(f"SELECT * FROM {table}") for table in tables])


def test_an_address_is_erased_in_whichever_case_it_was_written(store: Store, factory: StoreFactory) -> None:
    """SES repeats an address as it was given, and an event that nobody can read is kept as it came."""
    dead_event(store, f'{{"broken": "Dan@Example.org", "and": "{OTHER}"', why="Dan@EXAMPLE.org: unreadable")
    store.put(ERROR_TABLE, [ErrorRecord("x", "could not reach Dan@Example.org.", stage="delivery")])
    store.put(ACT_TABLE, [Act("Dan@Example.org (192.0.2.1)", "signed in")])
    store.forget(DAN, "forgotten:1")
    left = held(factory, "dead_letters", "error_records", "dashboard_acts").replace(OTHER, "somebody else")
    assert DAN not in left.lower()
    assert left.count("somebody else") == 1
    assert "could not reach forgotten:1." in left


def test_the_id_that_a_program_gave_its_request_is_erased(store: Store, factory: StoreFactory) -> None:
    """Programs make it of what they know: of the address, too."""
    content = Content("Hi", "<p>Hi</p>", "Hi")
    mail = SingleMail(
        id="0f5e4d2c-0000-4000-8000-000000000001",
        company_id="acme",
        email=DAN,
        content=content,
        fingerprint="f",
        request_id=f"req-{DAN}",
    )
    store.accept_single_mails([mail])
    assert DAN in held(factory, "email_outbox")
    store.forget(DAN, "forgotten:1")
    assert DAN not in held(factory, "email_outbox")
