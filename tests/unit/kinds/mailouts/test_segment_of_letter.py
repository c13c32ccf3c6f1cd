"""A letter for a part of its list: asked for by name, counted before it is sent, and told afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailout.base.errors import Abort, AbortCode, UsageError
from mailout.insight.reporting.details import details
from mailout.insight.reporting.summary import Summary
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery.port import Mail
from mailout.outbox.queue import segment_names
from mailout.outbox.queue.mailout import DeferReason, Status
from tests.unit.outbox.queue.driving import Drive, drive

ANA, BEN, CLEO = "ana@example.org", "ben@example.org", "cleo@example.org"


@pytest.fixture
def made(tmp_path: Path) -> Drive:
    made = drive(tmp_path / "home", PUBLIC_URL="https://mail.example.org")
    cities = {
        ANA: {"city": "Porto", "name": "Ana"},
        BEN: {"city": "Porto", "name": "Ben"},
        CLEO: {"city": "Oslo"},
    }
    made.store.import_subscribers([SubscriberRow(one, one, attributes=had) for one, had in cities.items()])
    segment_names.save(made.store, "porto", 'city = "Porto"')
    return made


def write(folder: Path, segment: str, words: str = "Some words.", name: str = "letter.md") -> str:
    path = folder / name
    path.write_text(f"---\nsubject: Hello\nsegment: {segment}\n---\n{words}\n", encoding="utf-8")
    return str(path)


def test_it_goes_to_these_people_alone_and_says_of_how_many(made: Drive, tmp_path: Path) -> None:
    ref = write(tmp_path, "porto")
    made.engine.intake.validate(ref)
    about = made.engine.intake.announcement(ref)
    assert about is not None
    assert about.reach == "2 of 3 people (the segment “porto”)"
    mailout = made.engine.intake.enqueue(ref)
    sent: list[Mail] = []
    made.transport.answer = lambda mail, nth: sent.append(mail)
    made.run_to_the_end(mailout.id)
    assert sorted(mail.to for mail in sent) == [ANA, BEN]
    ended = made.store.mailout(mailout.id)
    told = dict(details(Summary(ended, as_of=0.0), made.engine.limits.timezone))
    assert (told["segment"], told["filter"]) == ("porto", '2 of 3 people: city = "Porto"')


def test_what_only_others_lack_does_not_stop_it(made: Drive, tmp_path: Path) -> None:
    words = "Dear {{ name }}."
    assert made.engine.intake.enqueue(write(tmp_path, "porto", words)).segment == "porto"
    segment_names.save(made.store, "all", "has city")
    with pytest.raises(Abort) as stopped:
        made.engine.intake.enqueue(write(tmp_path, "all", words, "other.md"))
    assert stopped.value.code is AbortCode.VARIABLE_MISSING


@pytest.mark.parametrize("test", [True, False])
def test_a_mistyped_segment_stops_it_and_names_the_nearest(made: Drive, tmp_path: Path, test: bool) -> None:
    with pytest.raises(UsageError, match=r"no segment “prto”. Did you mean “porto”\?"):
        made.engine.intake.enqueue(write(tmp_path, "prto"), test)


def test_a_segment_of_nobody_stops_it(made: Drive, tmp_path: Path) -> None:
    segment_names.save(made.store, "none", 'city = "Atlantis"')
    with pytest.raises(UsageError, match="no active subscriber is in the segment “none”"):
        made.engine.intake.enqueue(write(tmp_path, "none"))


def test_what_became_unusable_while_it_waited_waits_for_a_person_and_says_why(
    made: Drive, tmp_path: Path
) -> None:
    """The other letters are sent meanwhile."""
    mailout = made.engine.intake.enqueue(write(tmp_path, "porto"))
    other = made.add("other", 2)
    with made.store.db.write() as tx:
        tx.execute("DELETE FROM segments")
    made.run()
    held = made.store.mailout(mailout.id)
    assert (held.status, held.defer_reason) == (Status.PENDING, DeferReason.CONFIGURATION_ERROR)
    assert "no segment “porto”" in (held.defer_note or "")
    assert made.store.mailout(other).status is Status.COMPLETED
