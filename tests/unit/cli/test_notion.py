"""`mailout notion init`: the command itself, against a Notion over HTTP, as somebody new runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from mailout.base.settings import load_settings
from tests.stubs.notion import TOKEN
from tests.stubs.notion_pages import id_of
from tests.stubs.notion_workspace import LETTER, MAILOUTS, workspace
from tests.stubs.running import NotionStub, notion_stub
from tests.unit.cli.conftest import Run
from tests.unit.cli.test_init import ANSWERS


@pytest.fixture(scope="module")
def running() -> Iterator[NotionStub]:
    with notion_stub() as stub:
        yield stub


@pytest.fixture
def stub(running: NotionStub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> NotionStub:
    running.load(workspace())
    monkeypatch.setenv("NOTION_BASE_URL", running.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return running


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is typed where the token is asked for, one answer a question."""
    answers: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: answers.pop(0))
    return answers


def made(stub: NotionStub) -> list[str]:
    return [call["path"] for call in stub.calls("POST") if call["path"] == "/v1/databases"]


def test_both_databases_are_made_and_their_ids_are_in_env(
    run: Run, folder: Path, stub: NotionStub, typed: list[str]
) -> None:
    run("init", *ANSWERS, "--yes")
    before = (folder / ".env").read_text("utf-8")
    typed.append(TOKEN)
    ended = run("notion", "init", f"https://www.notion.so/Letters-{LETTER.replace('-', '')}")
    assert (ended.code, len(made(stub))) == (0, 2)
    assert "NOTION_DB_MAILOUTS is written to .env" in ended.out
    assert TOKEN not in ended.out + ended.err
    env = folder / ".env"
    assert env.read_text("utf-8").startswith(before), "what was there stays"
    assert env.stat().st_mode & 0o077 == 0
    settings = load_settings({}, env)
    assert settings.notion_token is not None
    assert settings.notion_db_mailouts != settings.notion_db_errors
    assert settings.notion_status_send == "Sent", "a letter that was sent says so"
    (mailouts, _) = (call["body"] for call in stub.calls("POST") if call["path"] == "/v1/databases")
    options = mailouts["initial_data_source"]["properties"]["status"]["select"]["options"]
    assert [one["name"] for one in options] == ["Draft", "Ready", "Sending", "Sent", "Failed"]
    checks = {one["name"]: one for one in run("doctor", "--json").data["checks"]}
    assert {one["level"] for name, one in checks.items() if "Notion" in name or "NOTION" in name} == {"ok"}

    again = run("notion", "init", LETTER, "--json")
    assert again.data == {
        "made": {},
        "mailouts": settings.notion_db_mailouts,
        "errors": settings.notion_db_errors,
    }
    assert len(made(stub)) == 2, "a database that is there stays the one"


def test_a_token_that_does_not_work_is_not_kept(
    run: Run, folder: Path, stub: NotionStub, typed: list[str]
) -> None:
    (folder / ".env").write_text("ORG_NAME=Harbour\n", encoding="utf-8")
    typed.append("secret_mistyped")
    ended = run("notion", "init", LETTER)
    assert (ended.code, made(stub)) == (2, [])
    assert "Check NOTION_TOKEN" in ended.err
    assert (folder / ".env").read_text("utf-8") == "ORG_NAME=Harbour\n"


def test_what_was_made_is_known_when_the_second_one_fails(
    run: Run, folder: Path, stub: NotionStub, typed: list[str]
) -> None:
    (folder / ".env").write_text("ORG_NAME=Harbour\n", encoding="utf-8")
    typed.append(TOKEN)
    stub.script({"method": "GET", "path": "/databases/", "status": 400, "body": "{}", "times": 9})
    assert run("notion", "init", LETTER).code != 0
    settings = load_settings({}, folder / ".env")
    assert settings.notion_db_mailouts is not None
    assert settings.notion_db_errors is None
    stub.script()
    assert run("notion", "init", LETTER).code == 0
    assert len(made(stub)) == 2


@pytest.mark.parametrize(
    ("page", "said"), [("newsletter", "is no Notion page"), (id_of("x"), "share the page")]
)
def test_a_page_that_is_none_or_not_shared_is_said(
    run: Run, folder: Path, stub: NotionStub, typed: list[str], page: str, said: str
) -> None:
    (folder / ".env").write_text(f"NOTION_TOKEN={TOKEN}\n", encoding="utf-8")
    ended = run("notion", "init", page)
    assert (ended.code, made(stub)) == (2, [])
    assert said in ended.err


def test_a_name_for_done_that_somebody_chose_stays(
    run: Run, folder: Path, stub: NotionStub, typed: list[str]
) -> None:
    (folder / ".env").write_text(f"NOTION_TOKEN={TOKEN}\nNOTION_STATUS_SEND=Verschickt\n", encoding="utf-8")
    assert run("notion", "init", LETTER).code == 0
    assert load_settings({}, folder / ".env").notion_status_send == "Verschickt"


def test_a_database_that_is_there_keeps_seed_000s_word(
    run: Run, folder: Path, stub: NotionStub, typed: list[str]
) -> None:
    (folder / ".env").write_text(f"NOTION_TOKEN={TOKEN}\nNOTION_DB_MAILOUTS={MAILOUTS}\n", encoding="utf-8")
    assert run("notion", "init", LETTER).code == 0
    assert load_settings({}, folder / ".env").notion_status_send == "Send"
