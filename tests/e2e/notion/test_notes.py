"""What waits for a person is told on the page itself: whoever writes there looks nowhere else."""

from __future__ import annotations

from mailout.app.engine import Engine
from mailout.kinds.mailouts.requests import enqueue_ready
from mailout.outbox.queue import actions
from tests.e2e.notion.conftest import PAGE, Build, Notion, plain
from tests.e2e.notion.test_queue import run_queue
from tests.stubs.notion_pages import p
from tests.stubs.notion_workspace import mailout_page, workspace


def waiting(engine: Engine) -> str:
    (mailout,) = enqueue_ready(engine.intake)
    actions.pause(engine.store, mailout.id)
    return mailout.id


def test_what_it_waits_for_is_told_once_however_often_the_queue_looks(
    engine_with: Build, notion: Notion
) -> None:
    notion.load(status="Ready")
    id = waiting(engine_with())
    for _ in range(3):
        run_queue(engine_with())  # each in a process of its own
    assert notion.comments() == [
        f"Waits for a person: somebody paused it. To go on sending: mailout queue resume {id}"
    ]
    assert notion.statuses() == ["Sending"]


def test_where_it_may_not_comment_the_property_says_it_until_it_goes_on(
    engine_with: Build, notion: Notion
) -> None:
    page = mailout_page("Hello", "Ready")
    page["properties"]["status_note"] = {"type": "rich_text", "rich_text": []}
    notion.stub.load(workspace(pages={PAGE: page}, blocks={PAGE: [p("Hi")]}))
    notion.stub.script({"path": "/comments", "status": 403, "body": "{}", "times": 99})
    id = waiting(engine_with())
    for _ in range(2):
        run_queue(engine_with())
    actions.resume(engine_with().store, id)
    run_queue(engine_with())
    notes = [
        plain(call["body"]["properties"]["status_note"])
        for call in notion.stub.calls("PATCH")
        if "status_note" in call["body"]["properties"]
    ]
    assert [note[:19] for note in notes] == ["Waits for a person:", ""]


def test_why_a_page_was_refused_is_told_beside_it(engine: Engine, notion: Notion) -> None:
    notion.load(subject="", status="Ready")
    run_queue(engine)
    assert notion.statuses() == ["Failed"]
    (said,) = notion.comments()
    assert said == "There is no subject. Give it one, then send again. (subject_required)"
