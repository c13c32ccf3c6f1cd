"""While Notion cannot be read or written letters wait: an alert, `status` and the page itself say so."""

from __future__ import annotations

from typing import Any

import pytest

from mailout.app.engine import Engine
from mailout.base.clock import Clock
from mailout.base.errors import SourceRefused, SourceUnavailable
from mailout.insight.history import notion_troubles
from mailout.insight.history.history_rows import keep_written_pages, note_value
from mailout.insight.history.port import WrittenPage
from mailout.kinds.mailouts import requests
from mailout.kinds.mailouts.requests import Waited, enqueue_ready, enqueue_requested
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Request
from tests.e2e.conftest import Commands
from tests.e2e.notion.conftest import PAGE, Build, Notion, mails
from tests.e2e.notion.test_queue import run_queue
from tests.stubs.notion_pages import hosted, p
from tests.stubs.notion_workspace import mailout_page, schema, workspace

REFUSED: dict[str, Any] = {"body": "{}", "times": 1000}


def away(url: str, *, clock: Clock) -> bytes:
    raise SourceUnavailable("the file's host answered 503")


def told(engine: Engine) -> list[str]:
    return [alert.text.split("\n")[0] for alert, _ in engine.alert_sender.look()]


def test_a_token_that_is_revoked_is_told_at_once_until_notion_answers(
    engine_with: Build, notion: Notion
) -> None:
    notion.load(status="Ready")
    notion.stub.script({"path": "/v1/", "status": 401, **REFUSED})
    engine = engine_with()
    run_queue(engine)
    (said,) = told(engine)
    assert said.startswith("Notion cannot be read since ")
    assert said.endswith("Check NOTION_TOKEN.")
    notion.stub.script()
    run_queue(engine_with())
    assert (told(engine), len(mails(engine))) == ([], 3)


def test_a_status_property_that_was_renamed_is_told_at_once(engine: Engine, notion: Notion) -> None:
    content = workspace(pages={PAGE: mailout_page("Hello", "Ready")})
    properties = schema(subject="title", Status="status", is_test="checkbox")
    next(iter(content["databases"].values()))["properties"] = properties
    notion.stub.load(content)
    run_queue(engine)
    (said,) = told(engine)
    assert said.endswith("has no status or select called 'status'. Add it, or set NOTION_PROP_STATUS.")


def test_pages_that_may_not_be_written_are_told_at_once(engine_with: Build, notion: Notion) -> None:
    notion.load(status="Ready")
    notion.stub.script({"method": "PATCH", "path": "/v1/pages", "status": 403, **REFUSED})
    engine = engine_with()
    run_queue(engine)
    (said,) = told(engine)
    assert said.startswith("Notion cannot be written since ")
    notion.stub.script()
    run_queue(engine_with())
    assert (told(engine), notion.statuses()[-1]) == ([], "Send")


def test_a_note_that_could_not_be_written_once_is_no_trouble(
    engine_with: Build, notion: Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing waits to be written any more: there would never be a success to end it."""
    monkeypatch.setattr(notion_troubles, "PASSING_SECONDS", 0.0)
    notion.stub.script({"path": "/v1/comments", "status": 503, "times": 1000})
    engine = engine_with()
    engine.pages.show_planned(PAGE, 0.0)
    assert len(told(engine)) == 1
    run_queue(engine_with())
    assert told(engine) == []


def test_a_page_that_stays_unreadable_says_so_once(
    engine_with: Build, notion: Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    notion.load(status="Ready")
    notion.stub.script({"path": f"/v1/blocks/{PAGE}", "status": 502, **REFUSED})
    engine = engine_with()
    run_queue(engine)
    assert (told(engine), notion.comments()) == ([], [])
    monkeypatch.setattr(notion_troubles, "PASSING_SECONDS", 0.0)  # ten minutes later
    for _ in range(2):
        run_queue(engine)
    (comment,) = notion.comments()
    assert comment == (
        "Not sent yet: this page cannot be read just now. It is tried again every few minutes."
    )
    (said,) = told(engine)
    assert said.startswith(f"The page {PAGE} waits since ")
    keep_written_pages(engine.store, [WrittenPage(PAGE, "Spring letter", "Ready", is_ready=True)])
    (said,) = told(engine)
    assert said.startswith("“Spring letter” waits since ")
    assert "try again" not in said
    notion.stub.script()
    run_queue(engine)
    assert (told(engine), len(mails(engine))) == ([], 3)
    assert "It no longer waits." in str(notion.stub.comments(PAGE))


def test_a_page_whose_file_stays_away_names_it(
    engine: Engine, notion: Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notion_troubles, "PASSING_SECONDS", 0.0)
    notion.load(hosted("image", "chart.png"), p("Words"), status="Ready")
    monkeypatch.setattr("mailout.adapters.notion.pages.download", away)
    run_queue(engine)
    assert notion.comments() == [
        "Not sent yet: “chart.png” cannot be copied just now. It is tried again every few minutes."
    ]
    (said,) = told(engine)
    assert said.endswith("chart.png could not be copied: the file's host answered 503.")


def test_a_page_that_is_a_draft_again_no_longer_says_that_it_waits(
    engine: Engine, notion: Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notion_troubles, "PASSING_SECONDS", 0.0)
    notion.load(status="Ready")
    notion.stub.script({"path": f"/v1/blocks/{PAGE}", "status": 403, **REFUSED})
    run_queue(engine)
    assert notion.comments()[-1].startswith("Not sent yet: mailout may not read all of this page. Show this")
    notion.stub.edit(PAGE, status="Draft", is_test=False, blocks=[p("Hi")])
    run_queue(engine)
    assert "It no longer waits." in str(notion.stub.comments(PAGE))


def test_a_page_that_cannot_be_read_is_not_read_at_every_look_of_a_run(
    engine_with: Build, notion: Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    notion.load(status="Ready")
    notion.stub.script({"path": f"/v1/blocks/{PAGE}", "status": 502, **REFUSED})
    intake, waited, tries = engine_with().intake, Waited(), list[str]()

    def enqueue(ref: str, test: bool | None, asked_at: float | None) -> Mailout:
        tries.append(ref)
        return intake.enqueue(ref, test, asked_at)

    for _ in range(2):
        enqueue_ready(intake, enqueue, waited)
    (noted,) = note_value(intake.store, notion_troubles.NOTION_TROUBLES)
    assert (tries, noted["page"]) == ([PAGE], PAGE)
    intake.store.ask(Request(PAGE), repeat=0)
    monkeypatch.setattr(requests, "EVENT_SECONDS", 0.0)
    enqueue_requested(intake, enqueue, waited)
    assert tries == [PAGE]
    monkeypatch.setattr(requests, "AGAIN_SECONDS", 0.0)  # a minute later
    enqueue_ready(intake, enqueue, waited)
    assert tries == [PAGE, PAGE]


def test_who_gives_up_notion_hears_no_more_of_it(engine_with: Build, notion: Notion) -> None:
    notion.stub.script({"path": "/v1/", "status": 401, **REFUSED})
    engine = engine_with()
    run_queue(engine)
    assert told(engine) != []
    run_queue(engine_with(NOTION_TOKEN=""))
    assert told(engine) == []


def test_status_says_what_letters_wait_for(mailout: Commands) -> None:
    mailout.people("ana@example.org")
    store = mailout.store()
    why = SourceRefused("Notion answered 401.", remedy="Check NOTION_TOKEN.")
    notion_troubles.keep(store, notion_troubles.READING, {"": why})
    store.close()
    said = " ".join(mailout("status").out.split())
    assert "Notion cannot be read since " in said
    assert "Notion answered 401. Check NOTION_TOKEN." in said
    (told,) = mailout("status", "--json").data["notion"]
    assert (told["what"], told["why"]) == ("Notion cannot be read", str(why))
