"""When Notion is slow, busy or away: reads are tried again, creations never twice, and errors are ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mailout.adapters.notion import NotionConfig, NotionSource
from mailout.base.error_log import ErrorRecord
from mailout.base.errors import (
    SettingsError,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceUnavailable,
)
from tests.stubs.notion_workspace import LETTER
from tests.unit.adapters.notion.conftest import Notion, Start, TestClock

ROW = ErrorRecord("empty_body", "nothing to send", "content")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_a_read_survives_a_passing_fault(notion: Notion, status: int) -> None:
    notion.stub.script({"status": status, "times": 2})
    assert notion.source.load_page(LETTER).subject
    assert notion.clock.slept == [1.0, 2.0]
    assert len(notion.stub.calls()) == 3


@pytest.mark.parametrize("body", ["", "<html>Bad gateway</html>", '{"code": "rate_limited"}'])
def test_an_answer_that_is_not_notions_own_is_a_passing_fault_too(notion: Notion, body: str) -> None:
    """Proxies answer in their own words."""
    notion.stub.script({"status": 502, "body": body}, {"status": 200, "body": "<html>login</html>"})
    assert notion.source.load_page(LETTER).subject
    assert len(notion.stub.calls()) == 3


def test_a_dropped_connection_is_tried_again(notion: Notion) -> None:
    notion.stub.script({"drop": True, "times": 2})
    assert notion.source.load_page(LETTER).subject


def test_a_slow_answer_is_given_up_and_asked_for_again(start: Start) -> None:
    notion = start(timeout=0.2)
    notion.stub.script({"delay": 1.0})
    assert notion.source.load_page(LETTER).subject
    assert len(notion.stub.calls()) > 1


@pytest.mark.parametrize(
    ("asked", "waited"),
    [("7", 7.0), ("0.5", 0.5), ("3600", 60.0), ("Sun, 15 Nov 2026 00:00:09 GMT", 9.0), ("soon", 1.0)],
)
def test_notion_says_how_long_to_wait_within_reason(notion: Notion, asked: str, waited: float) -> None:
    notion.stub.script({"status": 429, "headers": {"Retry-After": asked}})
    notion.source.load_page(LETTER)
    assert notion.clock.slept == [waited]


def test_patience_ends(notion: Notion) -> None:
    notion.stub.script({"status": 529, "times": 99})
    with pytest.raises(SourceUnavailable, match="529") as raised:
        notion.source.load_page(LETTER)
    assert raised.value.message.endswith(")."), "another sentence follows"
    assert "try again" in (raised.value.remedy or "")
    assert len(notion.stub.calls()) == 5
    assert sum(notion.clock.slept) == 15.0


@pytest.mark.parametrize("fault", [{"status": 502}, {"status": 503}, {"status": 529}, {"drop": True}])
def test_a_creation_that_may_have_worked_is_not_repeated(notion: Notion, fault: dict[str, Any]) -> None:
    """Two pages for one error would make the errors database lie."""
    notion.stub.script(fault | {"method": "POST", "path": "/pages", "times": 9})
    with pytest.raises(SourceUnavailable):
        notion.source.create_error_page(ROW, None, None)
    assert len(notion.stub.calls("POST")) == 1


def test_a_creation_that_was_surely_refused_is_repeated(notion: Notion) -> None:
    notion.stub.script({"status": 429, "method": "POST", "headers": {"Retry-After": "3"}})
    notion.source.create_error_page(ROW, None, None)
    assert notion.clock.slept == [3.0]


def test_writing_the_same_values_again_is_harmless_so_it_is_done(notion: Notion) -> None:
    notion.stub.script({"drop": True, "method": "PATCH"})
    notion.update({"status": "Sending"})
    assert notion.source.load_page(LETTER).status == "Sending"


@pytest.mark.parametrize(
    ("status", "error", "remedy"),
    [
        (401, SourceRefused, "NOTION_TOKEN"),
        (403, SourceRefused, "capability"),
        (404, SourceNotFound, "share"),
    ],
)
def test_what_waiting_cannot_cure_is_said_at_once_with_its_remedy(
    notion: Notion, status: int, error: type[SourceError], remedy: str
) -> None:
    notion.stub.script({"status": status})
    with pytest.raises(error) as raised:
        notion.source.load_page(LETTER)
    assert remedy in (raised.value.remedy or "")
    assert raised.value.exit_code == 2
    assert notion.clock.slept == []


def test_a_wrong_token_is_named_and_never_shown(start: Start) -> None:
    notion = start(token="secret_that_must_not_leak")
    with pytest.raises(SourceRefused) as raised:
        notion.source.load_page(LETTER)
    assert "secret_that" not in str(raised.value)


def test_nobody_there_is_worth_waiting_for() -> None:
    clock = TestClock()
    source = NotionSource(NotionConfig("t", base_url="http://127.0.0.1:9"), clock)
    with pytest.raises(SourceUnavailable):
        source.load_page(LETTER)
    assert len(clock.slept) == 4
    source.close()


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_the_base_url_may_be_written_as_people_write_it(start: Start, suffix: str) -> None:
    notion = start()
    again = Notion(notion.stub, base_url=notion.stub.url + suffix)
    assert again.source.load_page(LETTER).subject
    again.source.close()


def test_a_list_that_says_there_is_more_and_not_where_is_no_whole_letter(notion: Notion) -> None:
    """The rest of the letter was left out, without a word."""
    half = '{"object": "list", "results": [], "has_more": true, "next_cursor": null}'
    notion.stub.script({"path": "/children", "status": 200, "body": half})
    with pytest.raises(SourceUnavailable, match="there is more"):
        notion.source.load_blocks(LETTER)


def test_a_list_that_leads_back_to_where_it_was_is_no_letter(notion: Notion) -> None:
    """One paragraph stood forty times in the mail."""
    again = {"object": "list", "results": [], "has_more": True, "next_cursor": "A"}
    notion.stub.script({"path": "/children", "status": 200, "body": json.dumps(again), "times": 40})
    with pytest.raises(SourceUnavailable, match="there is more"):
        notion.source.load_blocks(LETTER)
    assert len(notion.stub.calls()) == 2


@pytest.mark.parametrize("body", ["null", "[]", '"busy"'])
def test_an_answer_that_is_no_object_is_a_passing_fault(notion: Notion, body: str) -> None:
    notion.stub.script({"status": 200, "body": body})
    assert notion.source.load_page(LETTER).subject
    notion.stub.script({"status": 200, "body": body, "times": 5})
    with pytest.raises(SourceUnavailable, match="no usable answer"):
        notion.source.load_blocks(LETTER)


def test_a_base_url_that_is_none_is_named() -> None:
    with pytest.raises(SettingsError, match="NOTION_BASE_URL"):
        NotionSource(NotionConfig("t", base_url="api.notion.com"), TestClock())


def test_an_id_cannot_lead_out_of_the_api(notion: Notion) -> None:
    with pytest.raises(SourceError, match="traversal"):
        notion.source.load_page("../users/me")
    assert notion.stub.calls() == []
