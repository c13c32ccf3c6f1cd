"""A page that a webhook names: read by itself, sent if it asks for it, and never forgotten over an outage."""

from __future__ import annotations

import pytest

from mailout.adapters.notion.pages import NotionPages
from mailout.app.engine import Engine
from mailout.base import error_log
from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.base.errors import SettingsError, SourceUnavailable
from mailout.insight.page_status import report_rows
from mailout.kinds.mailouts.requests import answer
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.port import Request, RequestKind
from tests.e2e.notion.conftest import PAGE, Build, Notion
from tests.stubs.notion_pages import id_of
from tests.stubs.notion_workspace import ERRORS, mailout_page, schema, workspace

READY = Request(PAGE, RequestKind.IF_READY)


def ask(engine: Engine) -> bool:
    """Whether it was enqueued."""
    engine.store.ask(READY, repeat=0)
    return answer(engine.intake, READY) is not None


def waits(engine: Engine) -> bool:
    return READY in queue_rows.asked(engine.store, waiting=0)


@pytest.mark.parametrize("database", [{}, {"NOTION_DB_MAILOUTS": ""}])
def test_one_page_is_read_with_a_database_or_without(
    engine_with: Build, notion: Notion, database: dict[str, str]
) -> None:
    engine = engine_with(**database)
    notion.load(status="Draft")
    assert (ask(engine), waits(engine)) == (False, False)
    notion.load(status="Ready")
    assert (ask(engine), waits(engine)) == (True, False)
    assert notion.statuses() == ["Sending"]
    assert not [call for call in notion.stub.calls("POST") if "query" in call["path"]]


@pytest.mark.parametrize("away", [f"/v1/pages/{PAGE}", "/children"])
def test_while_notion_is_away_the_request_waits(engine_with: Build, notion: Notion, away: str) -> None:
    engine = engine_with()
    notion.load(status="Ready")
    notion.stub.script({"path": away, "status": 503, "times": 5})
    with pytest.raises(SourceUnavailable):
        ask(engine)
    assert waits(engine)
    assert answer(engine_with().intake, READY) is not None


def test_a_page_of_tomorrow_waits_with_its_request_where_nobody_else_would_find_it(
    engine_with: Build, notion: Notion
) -> None:
    notion.load(status="Ready", send_at={"start": "2999-01-01"})
    alone, watched = engine_with(NOTION_DB_MAILOUTS=""), engine_with()
    assert (ask(alone), waits(alone)) == (False, True)
    assert (ask(watched), waits(watched)) == (False, False)


@pytest.mark.parametrize("away", [False, True])
def test_a_page_that_is_set_to_ready_while_it_is_read_is_found(
    engine_with: Build, notion: Notion, monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    """Its event counts as the one that is being answered, and there is no database to find it in."""
    engine = engine_with(NOTION_DB_MAILOUTS="")
    notion.load(status="Draft")
    read = NotionPages.ready_at

    def set_to_ready_meanwhile(source: NotionPages, ref: str) -> float | None:
        monkeypatch.undo()
        ready_at = read(source, ref)
        notion.load(status="Ready")
        assert not engine.store.ask(READY, repeat=60)
        if away:
            notion.stub.script({"path": f"/v1/pages/{PAGE}", "status": 503, "times": 5})
        return ready_at

    monkeypatch.setattr(NotionPages, "ready_at", set_to_ready_meanwhile)
    if away:
        with pytest.raises(SourceUnavailable):
            ask(engine)
        assert waits(engine)
    else:
        assert (ask(engine), waits(engine)) == (True, False)


def test_a_page_of_another_database_is_never_a_mailout(engine: Engine, notion: Notion) -> None:
    """Tasks can be Ready, too."""
    content = workspace()
    content["databases"][id_of("tasks")] = {
        "data_source": id_of("tasks source"),
        "properties": schema(subject="title", status="status"),
    }
    notion.load(status="Ready", databases=content["databases"])
    assert engine.pages.reporter is not None
    assert engine.pages.reporter.ready_at(PAGE) == 0.0
    for page, parent in ((PAGE, id_of("tasks")), (PAGE, None)):
        moved = workspace(databases=content["databases"])
        moved["pages"][page] = {**mailout_page("Hello", "Ready"), "database": parent}
        notion.stub.load(moved)
        assert (ask(engine), waits(engine)) == (False, False)


def test_without_notion_the_request_says_what_is_missing(engine_with: Build) -> None:
    engine = engine_with(NOTION_TOKEN="")
    with pytest.raises(SettingsError, match="NOTION_TOKEN"):
        ask(engine)
    assert [error.code for error in error_log.errors(engine.store)] == ["cannot_be_sent"]


# ── The errors database ──


def test_a_markdown_file_is_no_relation_and_holds_nothing_back(engine: Engine, notion: Notion) -> None:
    databases = workspace()["databases"]
    databases[ERRORS]["properties"] = schema(title="title", mailout="relation", message="rich_text")
    notion.load(databases=databases)
    record = [
        ErrorRecord("cannot_be_sent", "There is no such file.", "content", mailout="letters/gone.md"),
        ErrorRecord("empty_body", "Nothing to send.", "content", mailout=PAGE),
    ]
    engine.store.put(ERROR_TABLE, record)
    engine.pages.report_errors()
    told = [call["body"]["properties"] for call in notion.stub.calls("POST") if call["path"] == "/v1/pages"]
    assert told[0]["message"]["rich_text"][0]["text"]["content"] == "letters/gone.md: There is no such file."
    assert "mailout" not in told[0]
    assert told[1]["mailout"] == {"relation": [{"id": PAGE}]}
    titles = [one["title"]["title"][0]["text"]["content"] for one in told]
    assert titles == ["cannot_be_sent: letters/gone.md", "empty_body: Hello"]
    assert not report_rows.unreported_errors(engine.store, 0.0)


def test_a_record_that_notion_refuses_holds_back_no_other(engine: Engine, notion: Notion) -> None:
    engine.store.put(ERROR_TABLE, [ErrorRecord("odd", "x", "content"), ErrorRecord("plain", "y", "content")])
    said = '{"code": "validation_error", "message": "No."}'
    notion.stub.script({"path": "/v1/pages", "status": 400, "body": said, "times": 1})
    engine.pages.report_errors()
    assert [error["code"] for error in notion.errors()][-1] == "plain"
    assert not report_rows.unreported_errors(engine.store, 0.0)
