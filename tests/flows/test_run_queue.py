"""`run_queue` sends what people have asked for in Notion."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flows.reconcile import reconcile
from flows.run_queue import run_queue
from flows.send_mailout import send_mailout
from mailout.base import error_log, ids
from mailout.kinds.mailouts import requests
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.port import Request
from mailout.readers import confirmations
from tests.contract.test_join import ask, confirmation
from tests.flows.test_send_mailout import LETTER as FILE
from tests.flows.test_send_mailout import Build, mails, run
from tests.stubs.notion import TOKEN
from tests.stubs.notion_pages import p
from tests.stubs.notion_workspace import ERRORS, LETTER, MAILOUTS, mailout_page, workspace
from tests.stubs.running import NotionStub, notion_stub


@pytest.fixture(scope="module")
def stub() -> Iterator[NotionStub]:
    with notion_stub() as running:
        yield running


def test_a_page_that_is_ready_is_sent_within_a_minute_and_once(
    engine_with: Build, stub: NotionStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    stub.load(workspace(pages={LETTER: mailout_page("Hello", "Ready")}, blocks={LETTER: [p("Words")]}))
    engine = engine_with(
        NOTION_TOKEN=TOKEN, NOTION_BASE_URL=stub.url, NOTION_DB_MAILOUTS=MAILOUTS, NOTION_DB_ERRORS=ERRORS
    )
    assert run(run_queue).message == f"{ids.mailout_id(LETTER)}: Completed"
    assert run(run_queue).message == "Nothing is due."
    assert len(mails(engine)) == 3
    written = [call["body"]["properties"] for call in stub.calls("PATCH")]
    assert [values["status"]["status"]["name"] for values in written] == ["Sending", "Send"]
    engine.pages.reporter.close()  # type: ignore[attr-defined]


def test_a_request_whose_event_was_lost_is_found_by_the_queue_and_once(
    engine_with: Build, letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefect's server was away when the gateway told it: the letter is late, and not lost."""
    engine = engine_with()
    engine.store.ask(Request(letter), repeat=60)
    assert run(run_queue).message == "Nothing is due."  # its event still has time
    monkeypatch.setattr(requests, "EVENT_SECONDS", 0.0)
    assert run(run_queue).message == f"{FILE}: Completed"
    assert run(run_queue).message == "Nothing is due."
    assert len(mails(engine)) == 3


def test_an_event_that_comes_after_the_queue_is_no_failure_and_sends_nothing(
    engine_with: Build, letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A red run makes people look for what went wrong; a late event for a test would be a second mail."""
    monkeypatch.setattr(requests, "EVENT_SECONDS", 0.0)
    engine = engine_with()
    for test, sent in ((True, 1), (None, 4)):
        engine.store.ask(Request.of(letter, test), repeat=60)
        run(run_queue)
        late = run(send_mailout, letter, test, False, True)
        assert (late.is_completed(), late.name, len(mails(engine))) == (True, "Answered", sent)
    assert error_log.errors(engine.store) == []


def test_who_asks_again_for_what_was_sent_is_told_so(engine_with: Build, letter: str) -> None:
    engine = engine_with()
    assert run(send_mailout, letter).name == "Completed"
    engine.store.ask(Request(letter), repeat=60)
    again = run(send_mailout, letter, None, False, True)
    assert (again.is_completed(), again.name) == (True, "Already sent")
    assert "goes out once" in again.message
    assert len(mails(engine)) == 3
    assert queue_rows.asked(engine.store, waiting=0) == []


def test_a_request_that_nobody_can_send_is_told_and_asked_for_no_more(
    engine_with: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "EVENT_SECONDS", 0.0)
    engine = engine_with()
    engine.store.ask(Request("gone.md"), repeat=60)
    assert run(run_queue).message == "Nothing is due."
    assert queue_rows.asked(engine.store, waiting=0) == []
    assert [error.code for error in error_log.errors(engine.store)] == ["cannot_be_sent"]


def test_a_draft_that_a_webhook_names_stays_a_draft(
    engine_with: Build, stub: NotionStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Webhooks tell of every change, also of the first word that somebody writes."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    engine = engine_with(NOTION_TOKEN=TOKEN, NOTION_BASE_URL=stub.url, NOTION_DB_MAILOUTS=MAILOUTS)
    stub.load(workspace(pages={LETTER: mailout_page("Hello", "Draft")}, blocks={LETTER: [p("Words")]}))
    assert run(send_mailout, LETTER, None, True).name == "Not ready"
    assert mails(engine) == []
    stub.load(workspace(pages={LETTER: mailout_page("Hello", "Ready")}, blocks={LETTER: [p("Words")]}))
    assert run(send_mailout, LETTER, None, True).name == "Completed"
    assert len(mails(engine)) == 3
    engine.pages.reporter.close()  # type: ignore[attr-defined]


def test_who_joined_is_welcomed_by_the_queue_and_once(engine_with: Build, letter: str) -> None:
    """Nobody else writes welcome letters: a reader who confirmed would hear nothing."""
    engine = engine_with()
    engine.store.put(LIST_TABLE, [List("news", "News", public=True, welcome_ref=letter)])
    engine.store.confirm_sign_up(confirmation("dora@example.org", "news", at=engine.store.now() - 1))
    assert run(run_queue).message == "Nothing is due."
    assert run(run_queue).message == "Nothing is due."
    (mail,) = mails(engine)
    assert b"To: <dora@example.org>" in mail.read_bytes()


def test_reconcile_erases_sign_ups_that_nobody_confirmed(
    engine_with: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_with()
    ask(engine.store, "dora@example.org")
    monkeypatch.setattr(confirmations, "CONFIRM_SECONDS", -1.0)
    assert run(reconcile).is_completed()
    assert engine.store.select(outbox_rows.MESSAGES) == []
