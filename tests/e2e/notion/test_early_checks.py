"""A letter with a time of its own is checked when it is set to Ready, not when everybody waits for it."""

from __future__ import annotations

from typing import Any

import pytest

from mailout.app.engine import Engine
from mailout.kinds.mailouts.early_checks import check_early
from mailout.kinds.mailouts.requests import enqueue_ready
from tests.e2e.notion.conftest import PAGE, Build, Notion, mails
from tests.e2e.notion.test_queue import run_queue
from tests.stubs.notion_pages import Json, id_of, p
from tests.stubs.notion_workspace import mailout_page, workspace

EDITED = ("2026-11-14T08:00:00.000Z", "2026-11-14T08:05:00.000Z")


def load(notion: Notion, block: Json, edited: str, **more: Any) -> None:
    page = mailout_page("Hello", "Ready", send_at={"start": "2999-01-01"}, **more)
    page["last_edited_time"] = edited
    notion.stub.load(workspace(pages={PAGE: page}, blocks={PAGE: [block]}))


def readings(notion: Notion) -> int:
    return sum("/children" in call["path"] for call in notion.stub.calls("GET"))


def test_what_would_stop_a_letter_of_later_is_said_once_and_again_after_an_edit(
    engine: Engine, notion: Notion
) -> None:
    load(notion, p("Dear {{ code }}"), EDITED[0])
    run_queue(engine)
    run_queue(engine)
    (comment,) = notion.comments()
    assert comment.startswith("Worth checking in this letter:\n• This letter would not be sent. 3 people")
    assert (readings(notion), notion.written(), mails(engine)) == (1, [], [])
    load(notion, p("Dear {{ name }}"), EDITED[1])
    run_queue(engine)
    assert "{{ name }}" in notion.comments()[0]


def test_a_page_that_cannot_be_read_as_a_letter_says_so_before_its_time(
    engine: Engine, notion: Notion
) -> None:
    load(notion, p("Hi"), EDITED[0], list={"name": "nobody"})
    run_queue(engine)
    (comment,) = notion.comments()
    assert "would not be sent. No list is called nobody." in comment


def test_what_would_stop_a_letter_of_later_is_said_once_without_a_step_that_is_done(
    engine: Engine, notion: Notion
) -> None:
    load(notion, p("Dear {{ name | you }} and {{ name | you }"), EDITED[0])
    run_queue(engine)
    (comment,) = notion.comments()
    assert comment.count("“{{ name | you }”") == 1
    assert "Ready again" not in comment
    assert not comment.endswith("..")


def test_a_good_letter_of_later_is_read_once_and_gets_no_comment(engine: Engine, notion: Notion) -> None:
    load(notion, p("How are you?"), EDITED[0])
    run_queue(engine)
    run_queue(engine)
    assert (readings(notion), notion.comments(), notion.written()) == (1, [], [])


def test_an_outage_has_the_letter_of_later_checked_again(engine: Engine, notion: Notion) -> None:
    load(notion, p("Dear {{ code }}"), EDITED[0])
    notion.stub.script({"path": "/children", "status": 503, "times": 5})
    run_queue(engine)
    assert notion.comments() == []
    run_queue(engine)
    assert len(notion.comments()) == 1


def test_what_could_not_be_said_is_said_a_minute_later(engine_with: Build, notion: Notion) -> None:
    load(notion, p("Dear {{ code }}"), EDITED[0])
    notion.stub.script({"path": "/v1/comments", "status": 503, "times": 100})
    run_queue(engine_with())
    notion.stub.script()
    before = len(notion.comments())
    run_queue(engine_with())
    assert len(notion.comments()) == before + 1


def test_what_nobody_foresaw_in_a_letter_of_later_stops_no_other(
    engine: Engine, notion: Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(notion, p("Hi"), EDITED[0])
    monkeypatch.setattr(engine.intake, "refusals", lambda reading: 1 // 0)
    run_queue(engine)
    assert "Something went wrong that nobody has foreseen." in notion.comments()[0]


def test_a_letter_of_later_for_an_unknown_segment_stops_no_other(engine: Engine, notion: Notion) -> None:
    page = mailout_page("Hello", "Ready", send_at={"start": "2999-01-01"})
    page["properties"]["segment"] = {"type": "select", "select": {"name": "porto"}}
    good = id_of("a good page")
    pages = {PAGE: page, good: mailout_page("Good", "Ready")}
    notion.stub.load(workspace(pages=pages, blocks={PAGE: [p("Hi")], good: [p("Hi")]}))
    run_queue(engine)
    assert "There is no segment “porto”." in notion.comments()[0]
    assert len(mails(engine)) == 3


def test_letters_of_later_are_checked_a_few_at_a_time_and_one_that_fails_holds_up_no_other(
    engine: Engine, notion: Notion
) -> None:
    ids = [id_of(f"page {number}") for number in range(5)]
    pages = {one: mailout_page("Hello", "Ready", send_at={"start": "2999-01-01"}) for one in ids}
    for page in pages.values():
        page["last_edited_time"] = EDITED[0]
    notion.stub.load(workspace(pages=pages, blocks={one: [p("Dear {{ code }}")] for one in ids}))
    notion.stub.script({"path": f"/v1/blocks/{ids[0]}", "status": 502, "times": 1000})

    def told() -> list[bool]:
        return [bool(notion.stub.comments(one)) for one in ids]

    run_queue(engine)
    assert told() == [False] * 5
    run_queue(engine)
    assert told() == [False, True, True, True, False]
    run_queue(engine)
    assert told() == [False, True, True, True, True]
    notion.stub.script()
    run_queue(engine)
    assert told() == [True] * 5


def test_letters_of_later_are_checked_after_everything_is_sent(engine: Engine, notion: Notion) -> None:
    load(notion, p("Dear {{ code }}"), EDITED[0])
    enqueue_ready(engine.intake)
    assert notion.comments() == []
    check_early(engine.intake)
    assert len(notion.comments()) == 1


def test_while_notion_was_not_asked_nothing_is_forgotten(engine_with: Build, notion: Notion) -> None:
    load(notion, p("Dear {{ code }}"), EDITED[0])
    run_queue(engine_with())
    check_early(engine_with().intake)
    run_queue(engine_with())
    assert readings(notion) == 1
