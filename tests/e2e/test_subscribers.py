"""People in and out at the command line: what was recognised is shown first, and a no is a no."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mailout.adapters.sqlite import SqliteStore
from mailout.base.clock import SystemClock
from mailout.letters.audience import subscriber_rows
from tests.contract.test_join import confirmation
from tests.e2e.conftest import Commands

FILE = (
    "Email Address,First Name,No newsletter\nana@example.org,Ana,\nbo@example.org,Bo,x\ncy@example.org,Cy,\n"
)


@pytest.fixture
def people(mailout: Commands) -> Path:
    path = mailout.folder / "people.csv"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_dry_run_shows_what_is_asked_and_writes_nothing(mailout: Commands, people: Path) -> None:
    ended = mailout("subscribers", "import", people, "--dry-run")
    assert ended.code == 2
    assert "“No newsletter” may say who wants mail: (empty) 2, x 1." in ended.one_line
    told = mailout("subscribers", "import", people, "--dry-run", "--mail-if", "No newsletter=")
    assert told.out.startswith("Email Address → email, First Name → first_name: 2 active, 1 left out\n")
    assert (told.code, mailout.home.exists()) == (0, False)
    plan = mailout(
        "subscribers", "import", people, "--dry-run", "--json", "--mail-if", "No newsletter="
    ).data["plan"]
    assert (plan["people"], plan["left_out"]) == ({"active": 2}, {"unconfirmed": 1})


def test_a_column_of_wishes_is_answered_by_nothing_but_an_answer(mailout: Commands, people: Path) -> None:
    """`--yes` in a script would mail everybody who said no."""
    ended = mailout("subscribers", "import", people, "--yes")
    assert ended.code == 2
    for option in ("--mail-if 'No newsletter=VALUE'", "--no-mail-if", "--ignore-column 'No newsletter'"):
        assert option in ended.one_line
    assert mailout("subscribers", "list", "--json").data == []
    told = ("--mail-if", "No newsletter=", "--no-mail-if", "No newsletter=x")
    done = mailout("subscribers", "import", people, *told, "--answers", "kept.json", "--json").data
    assert (done["added"], done["plan"]["people"]) == (3, {"active": 2, "unsubscribed": 1})
    again = mailout("subscribers", "import", people, "--answers", "kept.json", "--json").data
    assert again["unchanged"] == 3


def test_a_list_without_any_wish_is_one_question_that_yes_answers(mailout: Commands, people: Path) -> None:
    people.write_text("Email,City\nana@example.org,Lima\n", encoding="utf-8")
    ended = mailout("subscribers", "import", people)
    assert (ended.code, "agree to that?" in ended.one_line, "--yes" in ended.one_line) == (2, True, True)
    assert mailout("subscribers", "list", "--json").data == []
    assert mailout("subscribers", "import", people, "--yes").code == 0
    (one,) = mailout("subscribers", "undo-import", "--json").data
    assert (one["file"], one["decisions"]["agreed"].endswith("by --yes")) == ("people.csv", True)


def test_an_import_is_taken_back_by_its_id(mailout: Commands, people: Path) -> None:
    mailout.people("cy@example.org")
    done = mailout("subscribers", "import", people, "--mail-if", "No newsletter=", "--json").data
    assert done["import"] in mailout("subscribers", "undo-import").out
    assert "There is no import 77." in mailout("subscribers", "undo-import", "77").one_line
    asked = mailout("subscribers", "undo-import", done["import"])
    assert "Remove the 1 person that the import of people.csv added?" in asked.one_line
    ended = mailout("subscribers", "undo-import", done["import"], "--yes")
    assert (ended.code, "1 person and 0 list entries removed." in ended.out) == (0, True)
    assert [one["email"] for one in mailout("subscribers", "list", "--json").data] == ["cy@example.org"]


@pytest.mark.parametrize(
    ("answer", "code", "known"),
    [
        ("3\ny\n", 0, {"ana": "active", "cy": "active", "bo": "unsubscribed"}),
        ("2\ny\n", 0, {"bo": "active"}),
        ("4\nn\ny\ny\n", 0, {"bo": "active"}),
        ("1\nn\n", 1, {}),
        ("9\n1\ny\n", 0, dict.fromkeys(["ana", "bo", "cy"], "active")),
    ],
)
def test_on_a_terminal_a_person_is_asked(
    mailout: Commands, people: Path, answer: str, code: int, known: dict[str, str]
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
    found = mailout("subscribers", "list", "--json").data
    assert {one["email"].partition("@")[0]: one["status"] for one in found} == known


def test_a_value_that_no_row_has_decides_about_nobody(mailout: Commands, people: Path) -> None:
    asked = ("subscribers", "import", people, "--yes", "--mail-if", "No newsletter=")
    refused = mailout(*asked, "--no-mail-if", "No newsletter=y")
    assert refused.code == 2
    assert "No row has “y” in “No newsletter”. Nothing was imported." in refused.one_line
    assert "It has: (empty) 2, x 1." in refused.one_line
    assert mailout(*asked, "--no-mail-if", "no newsletter=X").code == 0


def test_who_would_stop_getting_mail_is_said(mailout: Commands, people: Path) -> None:
    assert mailout("subscribers", "import", people, "--yes", "--ignore-column", "No newsletter").code == 0
    answers = ("--mail-if", "No newsletter=", "--no-mail-if", "No newsletter=x")
    stops = mailout("subscribers", "import", people, *answers)
    assert "1 person who gets mail now stops getting it" in stops.out


def test_ctrl_c_ends_a_question(mailout: Commands, people: Path) -> None:
    """Once polars is there, a terminal goes on waiting unless it is told not to."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "cli", "subscribers", "import", str(people)]
    with subprocess.Popen(
        command, stdin=theirs, stderr=theirs, stdout=theirs, cwd=mailout.folder, env=mailout.environment
    ) as asks:
        said = b""
        while b"Ctrl-C: stop" not in said:
            said += os.read(ours, 1000)
        asks.send_signal(signal.SIGINT)
        assert asks.wait(300) == 130
    os.close(theirs)
    os.close(ours)


def test_a_person_is_added_with_the_places_where_they_live(mailout: Commands) -> None:
    us, oh = "ocd-division/country:us", "ocd-division/country:us/state:oh"
    added = mailout("subscribers", "add", "ana@example.org", "--place", f"{us},{oh}", "--json").data
    assert added["ocd_ids"] == [us, oh]
    ended = mailout("subscribers", "add", "bo@example.org", "--place", "Ohio")
    assert (ended.code, "Ohio is not an OCD id" in ended.one_line) == (2, True)


def test_one_person_is_added_leaves_and_comes_back_by_their_own_wish(mailout: Commands) -> None:
    added = mailout("subscribers", "add", "Ana@Example.org", "--name", "Ana", "--list", "news")
    assert (added.code, "The list news is new" in added.out) == (0, True)
    assert "is new" not in mailout("subscribers", "add", "ana@example.org", "--list", "news").out
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
    mailout("subscribers", "unsubscribe", "ana@example.org", "--list", "news")
    to_news = ("subscribers", "add", "ana@example.org", "--list", "news")
    assert "is off the list news and stays off it." in mailout(*to_news).out
    assert "is on the list." in mailout(*to_news, "--signed-up").out


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
    done = mailout("subscribers", "import", people, "--mail-if", "No newsletter=")
    assert "1 had asked to be forgotten: not brought back." in done.out
    assert "asked to be forgotten" in mailout("subscribers", "add", "ana@example.org").one_line
    with closing(mailout.store()) as store:
        assert [person["email"] for person in subscriber_rows.subscribers(store, search="ana")] == []
    assert mailout("subscribers", "add", "ana@example.org", "--signed-up").code == 0


def test_what_people_agreed_to_can_be_shown_and_exported(mailout: Commands) -> None:
    """A proof of consent that cannot be handed over proves nothing."""
    assert mailout("subscribers", "add", "bo@example.org").code == 0
    with closing(SqliteStore(mailout.home / "mailout.db", SystemClock())) as store:
        store.confirm_sign_up(
            confirmation("ana@example.org", "news", at=store.now() - 1, wording="=News, yes")
        )
    shown = mailout("subscribers", "show", "ana@example.org")
    assert "agreed to" in shown.out
    assert "=News, yes" in shown.out
    (told,) = mailout("subscribers", "show", "ana@example.org", "--json").data["consents"]
    assert (told["list_key"], told["source"]) == ("news", "https://shop.example.org/about")
    lines = mailout("subscribers", "export", "--consents").out.splitlines()
    assert lines[0] == "email,list_key,at,wording,source"
    assert len(lines) == 2
    assert "'=News, yes" in lines[1], "a spreadsheet runs nothing"


def test_forget_names_the_copy_of_the_store_that_an_upgrade_has_kept(mailout: Commands) -> None:
    """Everybody is in it, and nothing else says that it is still there."""
    mailout.people("ana@example.org", "bo@example.org")
    copy = mailout.home / "mailout.db.v3"
    copy.write_bytes((mailout.home / "mailout.db").read_bytes())
    said = mailout("subscribers", "forget", "ana@example.org", "--yes")
    assert said.code == 0
    assert f"may still hold the address: {copy}. Delete it" in said.err
    told = mailout("subscribers", "forget", "bo@example.org", "--yes", "--json").data
    assert told["store_copies"] == [str(copy)]
    assert str(copy) in mailout("subscribers", "forget", "cy@example.org", "--yes").err
