"""`run_queue` takes up what people have asked for in Notion."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flows.run_queue import run_queue
from mailout import ids
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
    engine.pages.reporter.close()  # type: ignore[union-attr]
