"""What is said fits the terminal, breaks between words, and can be said in every alphabet."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from cli.main import main
from cli.output import folded
from mailout.app import wiring
from mailout.base.settings import load_settings
from mailout.letters.audience.port import SubscriberRow
from tests.environment import SENDER
from tests.prefect_server import ROOT

TERMINAL, FILE = Console(force_terminal=True, width=80), Console(force_terminal=False, width=80)
LONG = "A sentence that goes on. " * 6
COMMAND = "  mailout queue settle 3f2a1b00-0000-0000-0000-000000000000 --as sent --message ana@example.org"


def test_a_long_sentence_is_broken_between_words() -> None:
    lines = folded(f"Head\n\n{LONG}", TERMINAL).split("\n")
    assert lines[:2] == ["Head", ""]
    assert all(len(line) <= 80 for line in lines)
    assert " ".join(lines[2:]).split() == LONG.split()


def test_what_is_there_to_be_copied_stays_whole() -> None:
    path = "/".join(["a-long-folder"] * 12)
    assert path in folded(f"It is in {path}.", TERMINAL)
    assert folded(COMMAND, TERMINAL) == COMMAND


def test_a_line_of_a_file_is_as_long_as_it_is() -> None:
    assert folded(LONG, FILE) == LONG


# ── A stdout that is not UTF-8: a redirected one on Windows, or a server without a locale ──

SUBJECT = "Привет, “мир” 🌊"


@pytest.fixture
def greeting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A letter to one person, whose name is in another alphabet, too."""
    monkeypatch.setattr("cli.main.keep_private", lambda: None)  # the umask is the whole process's
    for name, value in {**SENDER, "MAILOUT_HOME": str(folder / "home")}.items():
        monkeypatch.setenv(name, value)
    with closing(wiring.build(load_settings()).store) as store:
        store.import_subscribers([SubscriberRow("ana@example.org", "ana@example.org", from_name="Анна")])
    path = folder / "ru.md"
    path.write_text(f"---\nid: ru\nsubject: {SUBJECT}\n---\nHow are you?\n", encoding="utf-8")
    return path


def printed(monkeypatch: pytest.MonkeyPatch, encoding: str, *arguments: str) -> tuple[int, bytes]:
    """The exit code, and the bytes on a stdout of that encoding."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stdout)
    code = main([*arguments])
    stdout.flush()
    return code, stdout.buffer.getvalue()


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252", "utf-8"])
def test_a_subject_that_the_terminal_has_no_letters_for_ends_no_command(
    greeting: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    said = SUBJECT.encode(encoding, "backslashreplace")
    for command in (["send", str(greeting), "--direct", "--yes"], ["status"], ["status", "ru"]):
        code, shown = printed(monkeypatch, encoding, *command)
        assert code == 0
        assert said in shown
    code, shown = printed(monkeypatch, encoding, "status", "ru", "--json")
    assert json.loads(shown.decode(encoding))["subject"] == SUBJECT


@pytest.mark.usefixtures("greeting")
def test_an_export_is_utf_8_on_every_terminal_and_loses_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    code, table = printed(monkeypatch, "latin-1", "subscribers", "export")
    assert code == 0
    assert "Анна" in table.decode("utf-8")


def ended(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A process of its own, by the shell: only there is stdout a full disk, or closed."""
    line = f"{sys.executable} -m cli {command}"
    env = os.environ | {"PYTHONPATH": str(ROOT), "ORG_NAME": "Library"}
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "command", ["status", "status --json", "doctor --json", "queue --help", "subscribers export"]
)
def test_output_that_cannot_be_written_is_told_in_one_line(command: str, tmp_path: Path) -> None:
    said = ended(f"{command} > /dev/full", tmp_path)
    told = [line for line in said.stderr.splitlines() if "running" not in line]
    assert (said.returncode, len(told)) == (1, 1), said.stderr
    assert "The output cannot be written: No space left on device." in told[0]


@pytest.mark.parametrize("closed", [">&-", "2>&-", "2>/dev/full"])
@pytest.mark.parametrize("command", ["status", "status --json"])
def test_a_stream_that_nobody_wants_ends_no_command(command: str, closed: str, tmp_path: Path) -> None:
    said = ended(f"{command} {closed}", tmp_path)
    assert said.returncode == 0, said.stderr
    assert "Traceback" not in said.stderr


def test_an_argument_that_is_not_text_is_said_so(tmp_path: Path) -> None:
    said = ended("segments show $(printf 'a\\377')", tmp_path)
    assert said.returncode == 2
    assert r"mailout: `a\xff` contains bytes that are not UTF-8 text." in said.stderr
