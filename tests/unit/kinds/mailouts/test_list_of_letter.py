"""A letter names its list by key or name, and looks as its list says; what it says itself wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mailout.base.errors import UsageError
from mailout.letters.audience.list_changes import add_list, edit_list
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.letters.audience.port import Choice, SubscriberRow
from mailout.letters.content import content_rows
from mailout.outbox.delivery.port import Mail
from tests.unit.outbox.queue.driving import Drive, drive

ANA, BEN = "ana@example.org", "ben@example.org"


@pytest.fixture
def made(tmp_path: Path) -> Drive:
    made = drive(
        tmp_path / "home",
        PUBLIC_URL="https://mail.example.org",
        BRAND_COLOR="#111111",
        BRAND_LOGO="https://x.org/l.png",
    )
    made.store.import_subscribers([SubscriberRow(one, one, lists=("weekly",)) for one in (ANA, BEN)])
    weekly: dict[str, Any] = {
        "name": "Weekly news",
        "from_name": "Ann of the weekly",
        "reply_to": "weekly@example.org",
        "footer": "You subscribed to the weekly.",
        "color": "#0b5c8a",
        "language": "de",
    }
    add_list(made.store, "weekly", weekly)
    return made


def write(folder: Path, **properties: str) -> str:
    lines = "".join(f"{name}: {value}\n" for name, value in properties.items())
    path = folder / "letter.md"
    path.write_text(f"---\nsubject: Hello\n{lines}---\nSome words.\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("called", ["weekly", "Weekly news", "WEEKLY NEWS"])
def test_a_letter_goes_to_the_list_it_names_and_looks_like_it(
    made: Drive, tmp_path: Path, called: str
) -> None:
    made.store.choose(BEN, Choice(snooze_seconds=60.0))
    ref = write(tmp_path, list=called)
    made.engine.intake.validate(ref)
    about = made.engine.intake.announcement(ref)
    assert about is not None
    assert (about.people, about.snoozed, about.from_name) == (1, 1, "Ann of the weekly")
    mailout = made.engine.intake.enqueue(ref)
    assert (mailout.list_key, mailout.from_name) == ("weekly", "Ann of the weekly")
    content = content_rows.content(made.store, mailout.content_hash or "")
    assert "You subscribed to the weekly." in content.text
    assert "Auswählen, was Sie bekommen" in content.text
    assert "#0b5c8a" in content.html
    assert "https://x.org/l.png" in content.html
    sent: list[Mail] = []
    made.transport.answer = lambda mail, nth: sent.append(mail)
    made.run_to_the_end(mailout.id)
    (mail,) = sent
    assert (mail.to, mail.reply_to, mail.from_name) == (ANA, "weekly@example.org", "Ann of the weekly")
    assert mail.list_name.endswith(": Weekly news")


def test_what_the_letter_says_itself_wins(made: Drive, tmp_path: Path) -> None:
    ref = write(tmp_path, list="weekly", from_name="Me", reply_to="me@example.org", language="fr")
    mailout = made.engine.intake.enqueue(ref)
    assert (mailout.from_name, mailout.reply_to) == ("Me", "me@example.org")
    assert "Choisir ce que vous recevez" in content_rows.content(made.store, mailout.content_hash or "").text


def test_a_letter_without_a_list_looks_as_general_says(made: Drive, tmp_path: Path) -> None:
    edit_list(made.store, "general", {"from_name": "All of us", "footer": "Because you know us."})
    mailout = made.engine.intake.enqueue(write(tmp_path))
    assert (mailout.list_key, mailout.from_name) == (None, "All of us")
    assert "Because you know us." in content_rows.content(made.store, mailout.content_hash or "").text


def test_a_mistyped_list_stops_the_letter_and_names_the_nearest(made: Drive, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no list is called weakly.*Did you mean Weekly news \(weekly\)\?"):
        made.engine.intake.enqueue(write(tmp_path, list="weakly"))


def test_a_list_that_only_an_import_knows_gets_letters_as_before(made: Drive, tmp_path: Path) -> None:
    made.store.import_subscribers([SubscriberRow(ANA, ANA, lists=("Our Friends",))])
    assert made.engine.intake.enqueue(write(tmp_path, list="Our Friends")).list_key == "Our Friends"


def test_a_look_that_somebody_wrote_past_our_checks_fails_no_letter(made: Drive, tmp_path: Path) -> None:
    made.store.put(LIST_TABLE, [List("weekly", "Weekly", brand={"color": "red;}", "logo": 7, "links": "x"})])
    content = made.engine.intake.enqueue(write(tmp_path, list="weekly")).content_hash
    assert "red;}" not in content_rows.content(made.store, content or "").html
