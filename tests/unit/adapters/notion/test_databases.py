"""`mailout notion init`: what it makes in Notion is what mailout itself needs there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mailout.adapters.notion import NotionConfig, NotionDatabases, NotionSource
from mailout.adapters.notion.calls import STATUS_NAMES
from mailout.base.error_log import ErrorRecord
from mailout.base.errors import SourceNotFound, SourceUnavailable, UsageError
from mailout.letters.content.notion.page import PROPERTY_NAMES
from tests.stubs.notion import TOKEN
from tests.stubs.notion_pages import id_of
from tests.stubs.notion_workspace import LETTER, workspace
from tests.stubs.running import NotionStub
from tests.unit.adapters.notion.conftest import TestClock

RUSSIAN = {**PROPERTY_NAMES, "subject": "Тема", "status": "Статус"}
STATUSES = {**STATUS_NAMES, "ready": "Готово"}


@pytest.fixture
def databases(stub: NotionStub, monkeypatch: pytest.MonkeyPatch) -> Iterator[NotionDatabases]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    stub.load(workspace())
    config = NotionConfig(token=TOKEN, base_url=stub.url, properties=RUSSIAN, statuses=STATUSES)
    made = NotionDatabases(config, TestClock())
    yield made
    made.close()


def test_doctor_finds_everything_in_the_databases_that_were_made(
    stub: NotionStub, databases: NotionDatabases
) -> None:
    page = databases.parent(f"https://www.notion.so/Letters-{LETTER.replace('-', '')}")
    mailouts = databases.make_mailouts(page)
    errors = databases.make_errors(page, mailouts)
    config = NotionConfig(
        token=TOKEN,
        base_url=stub.url,
        db_mailouts=mailouts,
        db_errors=errors,
        properties=RUSSIAN,
        statuses=STATUSES,
    )
    source = NotionSource(config, TestClock())
    try:
        assert {check.level for check in source.check()} == {"ok"}
        error = ErrorRecord("SES_REJECTED", "No such box", "sending", email="ana@example.org", attempts=1)
        source.create_error_page(error, LETTER, "Hello")
    finally:
        source.close()
    first = stub.calls("POST")[0]["body"]["initial_data_source"]["properties"]
    options = [option["name"] for option in first["Статус"]["select"]["options"]]
    assert options == ["Draft", "Готово", "Sending", "Send", "Failed"], (
        "a select: the API can make its options"
    )
    assert first["bounce_rate"] == {"number": {"format": "percent"}}


def test_a_page_that_is_not_shared_is_said_before_anything_is_made(
    stub: NotionStub, databases: NotionDatabases
) -> None:
    with pytest.raises(SourceNotFound, match="share the page"):
        databases.parent(id_of("elsewhere"))
    with pytest.raises(UsageError, match="is no Notion page"):
        databases.parent("newsletter")
    assert stub.calls("POST") == []


def test_a_database_whose_answer_was_lost_is_not_made_twice(
    stub: NotionStub, databases: NotionDatabases
) -> None:
    stub.script({"method": "POST", "path": "/databases", "drop": True})
    with pytest.raises(SourceUnavailable, match="Look under the page"):
        databases.make_mailouts(LETTER)
    assert len(stub.calls("POST")) == 1
