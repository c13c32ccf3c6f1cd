"""People whose status is a word of somebody else's: they get no mail, and every command says so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mailout.app import wiring
from mailout.base.settings import load_settings
from mailout.letters.audience.port import SubscriberRow
from tests.environment import SENDER
from tests.unit.cli.conftest import Run


@pytest.fixture
def ann(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """“Active”, as a table in Supabase may hold it that is older than mailout."""
    for name, value in {**SENDER, "MAILOUT_HOME": str(folder / "home")}.items():
        monkeypatch.setenv(name, value)
    with closing(wiring.build(load_settings()).store) as store:
        store.import_subscribers([SubscriberRow("ann@example.org", "ann@example.org")])
    with closing(sqlite3.connect(folder / "home" / "mailout.db")) as table:
        table.execute("PRAGMA ignore_check_constraints = ON")
        table.execute("UPDATE subscribers SET status = 'Active'")
        table.commit()
    return folder


@pytest.mark.usefixtures("ann")
def test_they_are_listed_counted_and_named(run: Run) -> None:
    listed = run("subscribers", "list")
    assert (listed.code, "ann@example.org  Active" in listed.out) == (0, True)
    assert "0 active, 0 unsubscribed, 0 bounced, 1 Active" in run("status").out
    checked = " ".join(run("doctor").out.split())
    assert "1 person has a status that mailout does not know (“Active”)" in checked


def test_a_letter_that_reaches_nobody_because_of_it_says_so(run: Run, ann: Path) -> None:
    letter = ann / "letter.md"
    letter.write_text("---\nid: l1\nsubject: Hello\n---\n\nHow are you?\n", encoding="utf-8")
    ended = run("send", letter, "--direct")
    said = " ".join(ended.err.split())
    assert (ended.code, "Some have a status that mailout does not know" in said) == (2, True)
