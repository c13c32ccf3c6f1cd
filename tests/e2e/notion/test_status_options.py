"""A status that lacks an option: the page says what it can, once, and nothing is asked or sent twice."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from mailout.base import error_log
from mailout.kinds.mailouts import readiness
from tests.e2e.notion.conftest import PAGE, PEOPLE, Build, Notion, Refusing, mails
from tests.e2e.notion.test_queue import run_queue
from tests.stubs.notion_pages import p
from tests.stubs.notion_workspace import MAILOUTS, STATUSES, mailout_page, workspace

REFUSED = p("Dear {{ first_name }}")


def lacking(*missing: str) -> dict[str, Any]:
    """The workspace's databases, the status without these options."""
    databases = copy.deepcopy(workspace()["databases"])
    there = [{"name": name} for name in STATUSES if name not in missing]
    databases[MAILOUTS]["properties"]["status"]["status"]["options"] = there
    return databases


def four_minutes(engine_with: Build, monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    monkeypatch.setattr(readiness, "SAME_ASK_SECONDS", 0.0)  # each run is a minute later
    for _ in range(4):
        run_queue(engine_with(**more))


def no_option(name: str) -> str:
    return (
        f"This page should say “{name}” now, but its status has no such option."
        " Your administrator has to add it in Notion."
    )


@pytest.mark.parametrize("missing", [("Send",), ("Sending", "Send")])
def test_a_letter_that_was_sent_has_its_date_and_counts_without_the_option(
    engine_with: Build, notion: Notion, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    """It said Sending, or Ready, for ever, and nothing else."""
    notion.load(status="Ready", databases=lacking(*missing))
    four_minutes(engine_with, monkeypatch)
    assert len(mails(engine_with())) == len(PEOPLE)
    written = {name: value for write in notion.written() for name, value in write.items()}
    assert written.pop("sent_at")
    assert written == {"sent_count": 3, "failed_count": 0} | (
        {"status": "Sending"} if missing == ("Send",) else {}
    )
    assert notion.comments() == [no_option(name) for name in missing]
    assert notion.errors() == []


def test_a_test_that_cannot_begin_says_why(
    engine_with: Build, notion: Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the log knew."""
    notion.load(status="Ready", is_test=True, databases=lacking("Sending"))
    four_minutes(engine_with, monkeypatch)
    assert mails(engine_with()) == []
    assert notion.comments() == [f"{no_option('Sending')} Until then no test is sent."]


@pytest.mark.parametrize("missing", ["option", "comments", "both"])
def test_a_page_that_cannot_be_sent_is_told_once_whatever_it_cannot_show(
    engine_with: Build, notion: Notion, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """One comment and one error a minute, without end."""
    notion.load(REFUSED, status="Ready", databases=lacking(*(["Failed"] if missing != "comments" else [])))
    said = '{"code": "validation_error", "message": "No."}'
    if missing != "option":
        notion.stub.script({"path": "/comments", "status": 400, "body": said, "times": 100})
    four_minutes(engine_with, monkeypatch)
    assert [error["code"] for error in notion.errors()] == ["variable_missing"]
    assert [error.code for error in error_log.errors(engine_with().store)] == ["variable_missing"]
    if missing == "option":
        (comment,) = notion.comments()
        assert comment.endswith(no_option("Failed"))
    assert notion.statuses() == (["Failed"] if missing == "comments" else [])


def test_where_the_property_takes_the_note_it_is_written_once(
    engine_with: Build, notion: Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = mailout_page("Hello", "Ready")
    page["properties"]["status_note"] = {"type": "rich_text", "rich_text": []}
    notion.stub.load(workspace(pages={PAGE: page}, blocks={PAGE: [REFUSED]}, databases=lacking("Failed")))
    notion.stub.script({"path": "/comments", "status": 403, "body": "{}", "times": 100})
    four_minutes(engine_with, monkeypatch)
    (note,) = [write["status_note"] for write in notion.written()]
    assert note.startswith("3 people have no value for {{ first_name }}")
    assert note.endswith(no_option("Failed"))


def test_a_letter_that_did_not_reach_everybody_has_its_date_and_counts_without_the_option(
    engine_with: Build, notion: Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    notion.load(status="Ready", databases=lacking("Failed"))
    four_minutes(engine_with, monkeypatch, refusing=Refusing(PEOPLE[0]))
    last = notion.written()[-1]
    assert last.pop("sent_at")
    assert last == {"sent_count": 2, "failed_count": 1}
    (comment,) = notion.comments()
    assert "2 of 3 messages were sent; 1 failed." in comment
    assert comment.endswith(no_option("Failed"))


def test_once_the_option_is_there_the_page_that_asks_is_brought_up_to_date(
    engine_with: Build, notion: Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    notion.load(status="Ready", databases=lacking("Sending", "Send"))
    four_minutes(engine_with, monkeypatch)
    before = notion.comments()
    notion.load(status="Ready")
    run_queue(engine_with())
    assert notion.statuses() == ["Send"]
    assert len(mails(engine_with())) == len(PEOPLE)
    assert len(before) == 2
