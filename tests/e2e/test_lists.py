"""Lists and pauses on the command line, as a person types them."""

from __future__ import annotations

import csv
from contextlib import closing

from mailout.letters.audience.port import Choice, SubscriberRow
from tests.e2e.conftest import Commands

ANA, BEN = "ana@example.org", "ben@example.org"


def test_a_list_is_added_changed_shown_and_joined_by_its_form(mailout: Commands) -> None:
    assert mailout("lists", "add", "weekly", "--name", "Weekly news", "--color", "#abc").code == 0
    refused = mailout("lists", "form", "weekly")
    assert (refused.code, "--public" in refused.one_line) == (2, True)
    edited = mailout("lists", "edit", "weekly news", "--public", "--color", "", "--json").data
    assert (edited["key"], edited["public"], edited["brand"]) == ("weekly", True, {})
    assert "PUBLIC_URL" in mailout("lists", "form", "weekly").one_line
    form = mailout("lists", "form", "weekly", PUBLIC_URL="https://mail.example.org/").out
    assert '<form action="https://mail.example.org/join" method="post"' in form
    assert all(f'name="{name}"' in form for name in ("email", "name", "list", "website"))
    assert [one["key"] for one in mailout("lists", "list", "--json").data] == ["general", "weekly"]
    mistyped = mailout("lists", "show", "wekly")
    assert (mistyped.code, "Did you mean Weekly news (weekly)?" in mistyped.one_line) == (2, True)


def test_a_welcome_letter_is_found_from_every_folder(mailout: Commands) -> None:
    """What sends it (`mailout up`, a service) runs in another folder than the person who named it."""
    file = mailout.folder / "hello.md"
    file.write_text("---\nsubject: Welcome\n---\nHello.\n", encoding="utf-8")
    added = mailout("lists", "add", "weekly", "--public", "--welcome", "hello.md", "--json").data
    assert added["welcome_ref"] == str(file)
    page = "https://www.notion.so/Hello-0123456789abcdef0123456789abcdef"
    assert mailout("lists", "edit", "weekly", "--welcome", page, "--json").data["welcome_ref"] == page
    edited = mailout("lists", "edit", "weekly", "--welcome", "./hello.md", "--json").data
    assert edited["welcome_ref"] == str(file)


def test_a_pause_is_told_wherever_a_person_looks(mailout: Commands) -> None:
    with closing(mailout.store()) as store:
        store.import_subscribers([SubscriberRow(one, one) for one in (ANA, BEN)])
        store.choose(BEN, Choice(joins={"weekly": "Weekly"}, snooze_seconds=86_400.0))
    shown = mailout("subscribers", "show", BEN).out
    assert "pause until" in shown
    assert "weekly (joined " in shown
    assert mailout("subscribers", "show", BEN, "--json").data["snoozed_until"].endswith("Z")
    mailout("subscribers", "export", "--out", "people.csv")
    with (mailout.folder / "people.csv").open(encoding="utf-8") as file:
        told = {row["email"]: row["snoozed_until"] for row in csv.DictReader(file)}
    assert (told[ANA], told[BEN][:2]) == ("", "20")
    assert mailout("subscribers", "import", "people.csv", "--json").data["unchanged"] == 2
    mailout("send", mailout.letter(), "--direct")
    assert len(mailout.mails()) == 1
    report = mailout("status", "letter", "--json").data
    assert report["snoozed"] == 1
    assert "asked for a pause" in mailout("status", "letter").out


def test_a_list_is_meant_by_its_name_too_and_never_made_a_second_time(mailout: Commands) -> None:
    """A second list of the same name would get its letters, and nobody's unsubscribe."""
    mailout("lists", "add", "weekly", "--name", "Weekly news")
    file = mailout.folder / "people.csv"
    file.write_text(f"email,lists\n{ANA},WEEKLY NEWS\n{BEN},Weekly news|weekly\n", encoding="utf-8")
    mailout("subscribers", "import", file, "--yes", "--list", "weekly News")
    mailout("subscribers", "add", "cat@example.org", "--list", "Weekly News")
    gone = mailout("subscribers", "unsubscribe", ANA, "--list", "weekly news")
    assert gone.out.strip() == f"{ANA} gets no more mail of the list weekly."
    assert [one["key"] for one in mailout("lists", "list", "--json").data] == ["general", "weekly"]
    told = [mailout("subscribers", "show", one, "--json").data["lists"] for one in (ANA, BEN)]
    assert [[(one["list_key"], one["unsubscribed_at"] is None) for one in lists] for lists in told] == [
        [("weekly", False)],
        [("weekly", True)],
    ]
    counted = mailout("segments", "count", "--filter", "never mailed", "--list", "Weekly news", "--json")
    assert counted.data["people"] == 2


def test_a_list_that_is_mistyped_is_not_taken_for_done(mailout: Commands) -> None:
    mailout("lists", "add", "weekly", "--name", "Weekly news")
    mailout.people(ANA)
    for command in (
        ("subscribers", "unsubscribe", ANA, "--list", "wekly"),
        ("segments", "count", "--filter", "never mailed", "--list", "wekly"),
        ("subscribers", "add", BEN, "--list", "Wekly news"),
    ):
        refused = mailout(*command)
        assert (refused.code, "Did you mean Weekly news" in refused.one_line) == (2, True), command
    long = mailout.folder / "long.csv"
    long.write_text(f"email,lists\n{BEN},{'x' * 201}\n", encoding="utf-8")
    refused = mailout("subscribers", "import", long, "--yes")
    assert (refused.code, "Nothing was imported" in refused.one_line) == (2, True)
    assert [one["email"] for one in mailout("subscribers", "list", "--json").data] == [ANA]
    unknown = mailout("subscribers", "unsubscribe", BEN)
    assert unknown.out.strip() == f"{BEN} was not known. No import will subscribe them."
    assert "is new" in mailout("subscribers", "import", _one(mailout), "--yes", "--list", "monthly").err


def _one(mailout: Commands) -> str:
    (mailout.folder / "one.csv").write_text("email\neve@example.org\n", encoding="utf-8")
    return "one.csv"
