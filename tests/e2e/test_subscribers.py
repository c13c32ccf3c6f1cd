"""People in and out at the command line: what was recognised is shown first, and a no is a no."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mailout.letters.audience import subscriber_rows
from tests.e2e.conftest import Commands

EXPORT = (
    "Email Address,First Name,STATUS\nana@example.org,Ana,Subscribed\nbo@example.org,Bo,Unsubscribed\n"
    "cy@example.org,Cy,Cleaned\ndi@example.org,Di,Pending\n"
)


@pytest.fixture
def people(mailout: Commands) -> Path:
    path = mailout.folder / "people.csv"
    path.write_text(EXPORT, encoding="utf-8")
    return path


def test_a_dry_run_shows_what_was_recognised_and_writes_nothing(mailout: Commands, people: Path) -> None:
    ended = mailout("subscribers", "import", people, "--dry-run")
    assert ended.out.startswith(
        "Email Address → email, First Name → first_name, STATUS → status:"
        " 1 active, 1 unsubscribed, 1 bounced, 1 left out\n"
    )
    assert (ended.code, mailout.home.exists()) == (0, False)
    plan = mailout("subscribers", "import", people, "--dry-run", "--json").data["plan"]
    assert plan["people"] == {"active": 1, "unsubscribed": 1, "bounced": 1}
    assert plan["left_out"] == {"unconfirmed": 1}


def test_an_unknown_status_imports_nobody_until_somebody_says_what_it_means(
    mailout: Commands, people: Path
) -> None:
    people.write_text(EXPORT + "ed@example.org,Ed,Gold\n", encoding="utf-8")
    ended = mailout("subscribers", "import", people, "--yes")
    assert ended.code == 2
    assert '--map-status "Gold=unsubscribed"' in ended.one_line
    assert mailout("subscribers", "list", "--json").data == []
    done = mailout("subscribers", "import", people, "--map-status", "gold=active", "--json").data
    assert (done["added"], done["plan"]["people"]["active"]) == (4, 2)


@pytest.mark.parametrize(("answer", "code", "known"), [("n\n", 1, 0), ("y\n", 0, 3)])
def test_on_a_terminal_a_person_is_asked(
    mailout: Commands, people: Path, answer: str, code: int, known: int
) -> None:
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer.encode())
        done = subprocess.run(
            [sys.executable, "-m", "cli", "subscribers", "import", str(people)],
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.PIPE,
            cwd=mailout.folder,
            env=mailout.environment,
            check=False,
        )
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == code
    assert b"1 active, 1 unsubscribed" in done.stdout
    assert len(mailout("subscribers", "list", "--json").data) == known


def test_one_person_is_added_leaves_and_comes_back_by_their_own_wish(mailout: Commands) -> None:
    assert mailout("subscribers", "add", "Ana@Example.org", "--name", "Ana", "--list", "news").code == 0
    found = mailout("subscribers", "list", "--search", "ana", "--json").data
    assert [(one["email_norm"], one["status"], one["lists"]) for one in found] == [
        ("ana@example.org", "active", ["news"])
    ]
    assert mailout("subscribers", "unsubscribe", "ANA@example.org").code == 0
    assert mailout("subscribers", "list", "--status", "active", "--json").data == []
    assert "stays so" in mailout("subscribers", "add", "ana@example.org").out
    assert (
        mailout("subscribers", "add", "ana@example.org", "--signed-up", "--json").data["status"] == "active"
    )


def test_everything_known_of_a_person_is_shown(mailout: Commands) -> None:
    (mailout.folder / "people.csv").write_text(
        "email,ocd_ids,lists,city\nAna@example.org,ocd-division/country:us|ocd-division/country:br,news,Lima\n",
        encoding="utf-8",
    )
    mailout("subscribers", "import", "people.csv", "--yes")
    shown = mailout("subscribers", "show", "ana@example.org").out
    for fact in (
        "ocd-division/country:us",
        "ocd-division/country:br",
        "news",
        "Lima",
        "known since",
        "active",
    ):
        assert fact in shown


def test_whom_we_forgot_an_import_and_a_colleague_cannot_bring_back(mailout: Commands, people: Path) -> None:
    with closing(mailout.store()) as store:
        store.forget("ana@example.org", "forgotten:1")
    done = mailout("subscribers", "import", people)
    assert "1 had asked to be forgotten: not brought back." in done.out
    assert "asked to be forgotten" in mailout("subscribers", "add", "ana@example.org").one_line
    with closing(mailout.store()) as store:
        assert [person["email"] for person in subscriber_rows.subscribers(store, search="ana")] == []
    assert mailout("subscribers", "add", "ana@example.org", "--signed-up").code == 0
