"""What a person sees who mistypes, looks around, or stands in the wrong folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mailout import __version__
from tests.unit.cli.conftest import Run


def test_it_says_its_version(run: Run) -> None:
    assert run("--version").out == f"mailout {__version__}\n"


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["sned"], "Did you mean `mailout send`?"),
        (["queu", "list"], "Did you mean `mailout queue`?"),
        (["import"], "Did you mean `mailout subscribers import`"),
        (["list"], "`mailout queue list`"),
        (["queue", "cancle"], "Did you mean `mailout queue cancel`?"),
        (["xyzzy"], "There are: init, demo, send"),
        (["queue", "xyzzy"], "There are: list, show"),
    ],
    ids=" ".join,
)
def test_every_mistyped_command_gets_a_hint(run: Run, typed: list[str], hint: str) -> None:
    ended = run(*typed)
    assert (ended.code, ended.out) == (2, "")
    assert hint in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_mistyped_command_is_said_in_json_to_whoever_asked_for_json(run: Run) -> None:
    ended = run("sned", "--json")
    said = json.loads(ended.err)
    assert (ended.code, said["code"], said["exit_code"]) == (2, "usage_error", 2)


@pytest.mark.parametrize(
    "command",
    [
        ["companies", "limits", "shop", "--per-hour"],
        ["companies", "limits", "shop", "--per-day"],
        ["tokens", "create", "--company", "shop", "--limit-per-minute"],
    ],
    ids=" ".join,
)
def test_a_limit_that_not_every_store_can_keep_is_refused(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("MAILOUT_HOME", str(folder / "home"))
    run("companies", "add", "shop")
    ended = run(*command, "2147483648")
    assert ended.code == 2
    assert "less than or equal to 2147483647" in ended.err
    assert run(*command, "2147483647").code == 0


@pytest.mark.parametrize("group", ["queue", "subscribers", "notion"])
def test_a_group_alone_shows_its_help_as_it_is(run: Run, group: str) -> None:
    ended = run(group)
    assert ended.out.startswith(f"Usage: mailout {group}")
    assert not any(line.startswith("mailout:") for line in (ended.out + ended.err).splitlines())


def test_a_shell_can_complete_commands(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--install-completion" in run("--help").out
    monkeypatch.setenv("_MAILOUT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "mailout queue c")
    monkeypatch.setenv("COMP_CWORD", "2")
    with pytest.raises(SystemExit):
        run()
    assert capsys.readouterr().out.split() == ["cancel"]


@pytest.mark.parametrize(
    "command",
    [["status"], ["queue", "list"], ["subscribers", "list"], ["send", "x.md"], ["up"], ["doctor"]],
    ids=" ".join,
)
def test_a_folder_without_anything_is_said_and_nothing_is_made(
    run: Run, folder: Path, command: list[str]
) -> None:
    """The wrong folder shows an empty queue otherwise, and whoever looks believes that all is lost."""
    ended = run(*command)
    assert ended.code in (1, 2)
    assert f"There is no mailout in {folder}" in ended.err + ended.out
    assert "mailout init" in ended.err + ended.out
    assert list(folder.iterdir()) == []


def test_settings_in_the_environment_are_a_place_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAILOUT_HOME", "elsewhere")
    assert run("status").code == 0


def test_every_command_says_where_it_is_at_work(run: Run, folder: Path) -> None:
    (folder / ".env").touch()
    ended = run("queue", "list")
    assert ended.err == "SQLite in .mailout · mail goes to a folder · mailout up is not running\n"
    assert run("queue", "list", "--json").err == "", "a program is told nothing that it has not asked for"


def test_a_running_mailout_up_is_seen(run: Run, folder: Path) -> None:
    import fcntl

    (folder / ".mailout").mkdir()
    with (folder / ".mailout/up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "mailout up is running" in run("status").err
    assert "mailout up is not running" in run("status").err


def test_a_json_error_names_its_code(run: Run, folder: Path) -> None:
    (folder / ".env").write_text("ORG_NAME=Club\nFROM_EMAIL=a@example.org\n", encoding="utf-8")
    (folder / "letter.md").write_text("---\nsubject: Hello\n---\nHi\n", encoding="utf-8")
    told = json.loads(run("send", "letter.md", "--test", "--direct", "--json").err)
    assert (told["code"], told["exit_code"]) == ("test_emails_empty", 1)
    assert json.loads(run("status", "abcd", "--json").err)["code"] == "not_found"
    assert json.loads(run("queue", "list", "--limit", "x", "--json").err)["code"] == "usage_error"


def test_a_code_comes_after_the_sentence(run: Run, folder: Path) -> None:
    (folder / ".env").write_text("FROM_EMAIL=a@example.org\n", encoding="utf-8")
    (folder / "letter.md").write_text("---\nsubject: Hello\n---\nHi\n", encoding="utf-8")
    said = run("send", "letter.md", "--test", "--direct").err.splitlines()[-1]
    assert said.startswith("mailout: A test run goes to TEST_EMAILS")
    assert said.endswith("(test_emails_empty)")
