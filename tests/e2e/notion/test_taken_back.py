"""What a page says when its letter is about to be queued counts, not what it said when it was found."""

from __future__ import annotations

import json

import pytest

from mailout.app.engine import Engine
from mailout.base import error_log
from mailout.base.errors import SourceUnavailable
from mailout.kinds.mailouts.readiness import TakenBack
from mailout.kinds.mailouts.requests import Enqueue, answer, enqueue_ready
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Request, RequestKind
from tests.e2e.notion.conftest import PAGE, Notion, mails
from tests.e2e.notion.test_queue import run_queue
from tests.stubs.notion_pages import p

READY = Request(PAGE, RequestKind.IF_READY)


def edited_meanwhile(engine: Engine, notion: Notion, status: str, is_test: bool) -> Enqueue:
    """Its writer changes the page after it was read and before it is in the queue."""

    def enqueue(ref: str, test: bool | None, asked_at: float | None) -> Mailout:
        loaded = engine.intake.load(ref, test, asked_at)
        notion.stub.edit(PAGE, status=status, is_test=is_test, blocks=[p("Half a letter")])
        return engine.intake.enqueue_loaded(loaded)

    return enqueue


@pytest.mark.parametrize(("status", "is_test"), [("Draft", False), ("Ready", True), ("Draft", True)])
def test_a_page_that_is_taken_back_while_it_is_read_goes_to_nobody(
    engine: Engine, notion: Notion, status: str, is_test: bool
) -> None:
    notion.load(status="Ready")
    assert enqueue_ready(engine.intake, edited_meanwhile(engine, notion, status, is_test)) == []
    assert (queue_rows.mailouts(engine.store), error_log.errors(engine.store)) == ([], [])
    assert (notion.written(), notion.comments()) == ([], [])
    notion.stub.edit(PAGE, status="Ready", is_test=False, blocks=[p("A letter")])
    run_queue(engine)
    assert len(mails(engine)) == 3


def test_a_page_that_becomes_a_test_while_a_webhook_has_it_read_is_looked_at_again(
    engine: Engine, notion: Notion
) -> None:
    """The event of that change counts as the one that is being answered."""
    notion.load(status="Ready")
    engine.store.ask(READY, repeat=0)
    with pytest.raises(TakenBack):
        answer(engine.intake, READY, edited_meanwhile(engine, notion, "Ready", True))
    assert READY in queue_rows.asked(engine.store, waiting=0)
    mailout = answer(engine.intake, READY)
    assert mailout is not None
    assert mailout.is_test


def test_a_search_that_tells_what_a_page_was_sends_nothing(engine: Engine, notion: Notion) -> None:
    notion.load(status="Ready")
    assert engine.pages.reporter is not None
    found = {"object": "list", "results": [engine.pages.reporter.page(PAGE)], "has_more": False}  # type: ignore[attr-defined]
    notion.load(status="Draft")
    notion.stub.script({"path": "/query", "status": 200, "body": json.dumps(found)})
    run_queue(engine)
    assert (mails(engine), notion.written()) == ([], [])


def test_while_a_page_cannot_be_asked_again_it_waits(engine: Engine, notion: Notion) -> None:
    notion.load(status="Ready")

    def as_notion_goes_away(ref: str, test: bool | None, asked_at: float | None) -> Mailout:
        loaded = engine.intake.load(ref, test, asked_at)
        notion.stub.script({"path": f"/v1/pages/{PAGE}", "status": 503, "times": 5})
        return engine.intake.enqueue_loaded(loaded)

    engine.store.ask(READY, repeat=0)
    with pytest.raises(SourceUnavailable):
        answer(engine.intake, READY, as_notion_goes_away)
    assert queue_rows.mailouts(engine.store) == []
    assert answer(engine.intake, READY) is not None


def test_what_is_asked_for_over_http_need_not_be_ready(engine: Engine, notion: Notion) -> None:
    request = Request(PAGE)
    engine.store.ask(request, repeat=0)
    assert answer(engine.intake, request) is not None


def test_a_test_does_not_wait_for_the_letters_time(engine: Engine, notion: Notion) -> None:
    """It came on the day, instead of the letter."""
    notion.load(status="Ready", is_test=True, send_at={"start": "2999-01-01"})
    run_queue(engine)
    assert [mail.name.split("--")[0] for mail in mails(engine)] == ["editor@example.org"]
    assert notion.statuses() == ["Sending", "Draft"]
    notion.load(status="Ready", is_test=True, send_at={"start": "2999-01-01"})
    assert answer(engine.intake, READY) is not None, "by a webhook, too"
