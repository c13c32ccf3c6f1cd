"""Reporting to Notion: statuses and counts on the page, errors in their database, and what doctor says."""

from __future__ import annotations

import json
import logging

import pytest

from mailout.base.error_log import ErrorRecord
from mailout.base.errors import SettingsError, SourceError
from mailout.letters.content.notion.page import PROPERTY_NAMES
from tests.stubs.notion_pages import id_of
from tests.stubs.notion_workspace import ERRORS, LETTER, MAILOUTS, schema, workspace
from tests.unit.adapters.notion.conftest import NOW, Notion, Start


def test_what_became_of_a_mailout_is_on_its_page(notion: Notion) -> None:
    notion.update({"status": "Send", "sent_at": NOW, "sent_count": 3, "bounce_rate": 0.25, "is_test": True})
    page = notion.source.load_page(LETTER)
    assert (page.status, page.sent_at, page.is_test) == ("Send", NOW, True)
    (written,) = notion.stub.calls("PATCH")
    assert written["body"]["properties"] == {
        "status": {"status": {"name": "Send"}},
        "sent_at": {"date": {"start": "2026-11-15T00:00:00+00:00"}},
        "sent_count": {"number": 3},
        "bounce_rate": {"number": 0.25},
        "is_test": {"checkbox": True},
    }


def test_a_moment_in_a_text_is_one_that_people_can_read(start: Start) -> None:
    """It said 1794946866.23."""
    content = workspace()
    content["pages"][LETTER]["properties"]["sent_at"] = {"type": "rich_text", "rich_text": []}
    content["databases"][ERRORS]["properties"] |= schema(timestamp="rich_text")
    notion = start(content)
    notion.update({"sent_at": NOW})
    notion.source.create_error_page(ErrorRecord("c", "m", "content", at=NOW), None, None)
    for call in (*notion.stub.calls("PATCH"), *notion.stub.calls("POST")):
        assert "2026-11-15T00:00:00+00:00" in str(call["body"]["properties"])


def test_nothing_clears_a_property(notion: Notion) -> None:
    notion.update({"sent_at": NOW})
    notion.update({"sent_at": None})
    assert notion.source.load_page(LETTER).sent_at is None


def test_properties_that_the_database_lacks_are_skipped_with_one_warning(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """A small database still gets its status; the log is not flooded at every report."""
    content = workspace()
    for name in ("sent_count", "bounce_rate"):
        del content["pages"][LETTER]["properties"][name]
    notion = start(content)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            notion.update({"status": "Send", "sent_count": 1, "bounce_rate": 0.1})
    assert notion.source.load_page(LETTER).status == "Send"
    assert len(caplog.records) == 1
    assert "sent_count, bounce_rate" in caplog.text


def test_properties_may_have_other_names(start: Start) -> None:
    content = workspace()
    properties = content["pages"][LETTER]["properties"]
    properties["Статус"] = properties.pop("status")
    content["databases"] = {}
    notion = start(content, properties={**PROPERTY_NAMES, "status": "Статус"})
    notion.update({"status": "Failed"})
    assert notion.source.load_page(LETTER).status == "Failed"


def test_a_status_that_does_not_exist_is_notions_own_message(notion: Notion) -> None:
    with pytest.raises(SourceError, match="Status option Nearly does not exist"):
        notion.update({"status": "Nearly"})


def test_errors_become_pages_with_everything_known(notion: Notion) -> None:
    row = ErrorRecord(
        code="MessageRejected",
        message="Address, blocked",
        stage="delivery",
        provider="ses",
        mailout="m-1",
        email="a@example.org",
        attempts=2,
        at=NOW,
    )
    notion.source.create_error_page(row, None, "May")
    (call,) = notion.stub.calls("POST")
    assert call["body"]["parent"] == {"type": "data_source_id", "data_source_id": id_of("errors source")}
    text = [{"type": "text", "text": {"content": "Address, blocked"}}]
    assert call["body"]["properties"] == {
        "Name": {"title": [{"type": "text", "text": {"content": "MessageRejected: May, a@example.org"}}]},
        "timestamp": {"date": {"start": "2026-11-15T00:00:00+00:00"}},
        "mailout": {"rich_text": [{"type": "text", "text": {"content": "m-1"}}]},
        "stage": {"select": {"name": "delivery"}},
        "provider": {"select": {"name": "ses"}},
        "email": {"email": "a@example.org"},
        "code": {"select": {"name": "MessageRejected"}},
        "message": {"rich_text": text},
        "attempts": {"number": 2},
    }


def test_long_and_odd_messages_fit_into_notion(notion: Notion) -> None:
    """An error that Notion refuses would be an error that nobody sees."""
    row = ErrorRecord("x, y" * 100, "🙂" * 150_000, "content", at=NOW)
    notion.source.create_error_page(row, None, None)
    (call,) = notion.stub.calls("POST")
    items = call["body"]["properties"]["message"]["rich_text"]
    assert len(items) == 100
    assert {item["text"]["content"] for item in items} == {"🙂" * 1000}
    code = call["body"]["properties"]["code"]["select"]["name"]
    assert len(code) == 100
    assert "," not in code


def test_a_relation_points_to_the_mailouts_page(start: Start) -> None:
    content = workspace()
    content["databases"][ERRORS]["properties"] = schema(title="title", mailout="relation")
    notion = start(content)
    row = ErrorRecord("empty_body", "nothing", "content", mailout="m-1", at=NOW)
    notion.source.create_error_page(row, LETTER, None)
    (call,) = notion.stub.calls("POST")
    assert call["body"]["properties"]["mailout"] == {"relation": [{"id": LETTER}]}


def test_a_missing_setting_is_named(start: Start) -> None:
    notion = start(db_errors=None)
    with pytest.raises(SettingsError, match="NOTION_DB_ERRORS"):
        notion.source.create_error_page(ErrorRecord("x", "y", "content"), None, None)


def verdicts(notion: Notion) -> dict[str, str]:
    return {check.name: check.level for check in notion.source.check()}


def test_doctor_finds_nothing_wrong_with_a_good_workspace(notion: Notion) -> None:
    assert set(verdicts(notion).values()) == {"ok"}


def test_doctor_says_what_is_missing_and_what_to_do(start: Start) -> None:
    content = workspace()
    content["databases"][MAILOUTS]["properties"] = {
        **schema(Name="title", status="status", is_test="number"),
        "status": {"type": "status", "status": {"options": [{"name": "Ready"}]}},
    }
    content["databases"][ERRORS]["properties"] = schema(Name="title", code="select")
    notion = start(content)
    found = verdicts(notion)
    assert found["property subject"] == "ok"  # the title, whatever its name
    assert found["property is_test"] == "fail"
    assert found["property sent_at"] == "fail"
    assert found["property sent_count"] == "warn"
    assert found["property send_at"] == "ok"
    assert found["options of status"] == "fail"
    assert found["properties of the errors database"] == "warn"
    assert all(check.remedy for check in notion.source.check() if check.level != "ok")


@pytest.mark.parametrize("has_property", [False, True])
def test_doctor_says_where_pages_could_not_say_why_a_letter_failed(start: Start, has_property: bool) -> None:
    content = workspace()
    if has_property:
        content["databases"][MAILOUTS]["properties"] |= schema(status_note="rich_text")
    notion = start(content)
    assert verdicts(notion)["comments"] == "ok"
    notion.stub.script({"path": "/comments", "status": 403, "body": "{}", "times": 2})
    (check,) = [one for one in notion.source.check() if one.name == "comments"]
    assert check.level == ("ok" if has_property else "warn")
    if not has_property:
        assert "insert comments" in check.remedy


def test_doctor_names_a_property_that_is_called_almost_right(start: Start) -> None:
    """Its value would be taken for empty."""
    content = workspace()
    properties = content["databases"][MAILOUTS]["properties"]
    properties["Send at"] = properties.pop("send_at")
    properties["Language"] = {"type": "multi_select"}
    (check,) = [one for one in start(content).source.check() if one.level == "fail"]
    assert (check.name, check.remedy) == (
        "property send_at",
        "Call it send_at, or set NOTION_PROP_SEND_AT.",
    )
    assert check.message == "is called Send at"


@pytest.mark.parametrize("kind", ["select", "status"])
@pytest.mark.parametrize("option", ["ready", "Ready ", None])
def test_doctor_says_that_nobody_can_choose_ready(start: Start, kind: str, option: str | None) -> None:
    """A letter that is “ready” is never found."""
    content = workspace()
    others = ["Draft", "Sending", "Send", "Failed"]
    options = {"options": [{"name": name} for name in [*others, option] if name]}
    content["databases"][MAILOUTS]["properties"]["status"] = {"type": kind, kind: options}
    (check,) = [one for one in start(content).source.check() if one.level == "fail"]
    assert (check.name, check.message) == ("options of status", "missing: Ready")


def test_doctor_says_that_only_one_of_two_data_sources_is_read(notion: Notion) -> None:
    first, second = {"id": id_of("mailouts source"), "name": "Letters"}, {"id": id_of("2"), "name": "Drafts"}
    database = json.dumps({"object": "database", "data_sources": [first, second]})
    notion.stub.script({"path": f"/v1/databases/{MAILOUTS}", "status": 200, "body": database})
    (check,) = [one for one in notion.source.check() if one.level == "fail"]
    said = "the database has 2 (“Letters”, “Drafts”); mailout reads only “Letters”"
    assert (check.message, check.remedy) == (said, "Move all letters into “Letters”.")


def test_doctor_tells_a_wrong_token_from_a_wrong_database(start: Start) -> None:
    assert verdicts(start(token="wrong")) == {"NOTION_TOKEN": "fail"}
    found = verdicts(start(db_mailouts=id_of("nowhere"), db_errors=None))
    assert found["NOTION_TOKEN"] == "ok"
    assert found["NOTION_DB_MAILOUTS"] == "fail"
    assert found["NOTION_DB_ERRORS"] == "warn"


def test_what_to_look_at_is_one_comment_that_is_kept_up_to_date(notion: Notion) -> None:
    """Ten tests of a letter must not leave ten comments under it."""
    for text in ("Look: a", "Look: a", "Look: b", None, None):
        notion.source.notes.keep(LETTER, ["Look:"], text, "Look: nothing")
    written = [(call["method"], call["body"]) for call in notion.stub.calls() if call["method"] != "GET"]
    assert [method for method, _ in written] == ["POST", "PATCH", "PATCH"]
    assert [body["rich_text"][0]["text"]["content"] for _, body in written] == [
        "Look: a",
        "Look: b",
        "Look: nothing",
    ]


def test_nothing_to_look_at_leaves_no_comment(notion: Notion) -> None:
    notion.source.notes.keep(LETTER, ["Look:"], None, "Look: nothing")
    assert not [call for call in notion.stub.calls() if call["method"] != "GET"]
