"""Contents by hash, error records, dead letters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mailout.base import error_log
from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.base.errors import NotFound
from mailout.letters.content import content_rows
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content, mark
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import dead_event, enqueue
from tests.contract.stores import StoreFactory


def test_content_comes_back_to_the_byte(store: Store) -> None:
    """Two renders of the same page are byte-identical, so what is kept must be too."""
    content = Content("Жизнь 📨", f"<p>{mark('unsubscribe_url')}</p>\r\n\t", "line\n\n" + mark("name"))
    id = keep_content(store, content)
    assert id == content.hash
    assert content_rows.content(store, id) == content
    assert keep_content(store, content) == id


def test_content_that_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(NotFound, match="no-such-hash"):
        content_rows.content(store, "no-such-hash")


def test_errors_are_read_newest_first_and_by_mailout(store: Store, factory: StoreFactory) -> None:
    id = enqueue(store)
    full = ErrorRecord(
        "INVALID_RECIPIENT", "No such user", "delivery", "ses", id, "a@example.org", 3, NOON - 9
    )
    store.put(ERROR_TABLE, [full])
    factory.set_now(NOON + 5)
    store.put(ERROR_TABLE, [ErrorRecord("first", "", "content"), ErrorRecord("second", "", "content")])
    assert [error.code for error in error_log.errors(store)] == ["second", "first", "INVALID_RECIPIENT"]
    assert [error.at for error in error_log.errors(store)] == [NOON + 5, NOON + 5, NOON - 9]
    assert error_log.errors(store, id) == [full]
    assert len(error_log.errors(store, limit=2)) == 2


def test_the_same_refusal_of_a_letter_is_recorded_once_within_the_time(
    store: Store, factory: StoreFactory
) -> None:
    """A page that asks every minute must not fill the errors database."""
    refused = ErrorRecord("variable_missing", "3 people have no “name”.", "content", mailout="page")
    for now in (NOON, NOON + 60, NOON + 7_200):
        factory.set_now(now)
        error_log.record_once(store, refused, since=now - 3_600)
    error_log.record_once(store, replace(refused, message="2 people have no “name”."), since=NOON)
    error_log.record_once(store, replace(refused, mailout="another"), since=NOON)
    assert [error.at - NOON for error in error_log.errors(store, "page")] == [7_200, 7_200, 0]
    assert len(error_log.errors(store)) == 4


def test_a_dead_letter_is_kept_whole(store: Store, factory: StoreFactory) -> None:
    body = '{"email": "ann@example.org", "deep": {"list": [1, null, "ж"]}}'
    dead_event(store, body, "permanent failure", id="first")
    factory.set_now(NOON + 1)
    dead_event(store, body, "later", id="second")
    later, first = error_log.dead_letters(store)
    assert (first["topic"], first["error"]) == ("ses-events", "permanent failure")
    assert first["payload"] == {"inbox_id": "first", "source": "sns", "body": body}
    assert first["created_at"] == NOON
    assert later["error"] == "later"
    assert len(error_log.dead_letters(store, limit=1)) == 1


def test_a_store_says_what_it_is_and_that_it_answers(store: Store, factory: StoreFactory) -> None:
    store.check()
    assert store.name
    factory.set_now(NOON + 3)
    assert store.now() == NOON + 3
