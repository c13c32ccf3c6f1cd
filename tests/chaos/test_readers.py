"""The judges of what readers do see what is wrong: a row that cannot fail would prove nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.chaos import report
from tests.chaos.joining import MODE, judge_joined, strangers_come, welcoming
from tests.chaos.places import Place, Stage
from tests.chaos.publishing import Readers
from tests.chaos.report import SOAK, write_page, write_soak
from tests.chaos.runner import Run

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Where a few strangers have joined, and all is well."""
    stage = Stage(tmp_path_factory.mktemp("chaos"), "judges", seed="judges")
    with strangers_come(stage, MODE, "sqlite", 12) as made:
        welcoming(made, 1)
        made.finish()
        assert not judge_joined(made, 1).problems
        assert made.rows("select 1 from subscribers")
        yield made
    stage.close()


WRONG, LOST, OFF = "recorded or reported wrongly", "lost", "ledgers or counters off"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("insert into subscribers (id, email, email_norm, status_updated_at, created_at)"
         " values ('1', 'new@example.org', 'new@example.org', 1, 1)", WRONG),
        ("delete from consents", LOST),
        ("update subscriptions set unsubscribed_at = 1", LOST),
        ("update subscribers set status = 'unsubscribed'", LOST),
        ("update subscribers set confirmed_at = null", WRONG),
        ("delete from subscriptions where joined_at is null", WRONG),
        ("delete from email_outbox where category = 'confirmation'", LOST),
        ("delete from email_outbox where category <> 'confirmation'", LOST),
        ("update sign_up_days set confirmed = confirmed + 1", OFF),
        ("update counters set value = value + 1", OFF),
        ("delete from sign_up_marks", OFF),
    ],
)  # fmt: skip
def test_a_stranger_who_is_lost_or_written_by_half_is_seen(place: Place, change: str, problem: str) -> None:
    file = place.job.address.removeprefix("sqlite:")
    with closing(sqlite3.connect(file)) as db, closing(sqlite3.connect(":memory:")) as kept:
        db.backup(kept)
        try:
            with db:
                db.execute(change)
            assert any(problem in one for one in judge_joined(place, 1).problems)
        finally:
            kept.backup(db)


def test_a_second_confirmation_or_welcome_letter_is_seen(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the receiver's record: two mails of one kind, whatever the store believes."""
    (mail, *_), counted = place.ses.messages(), place.ses.by_message()
    counted[mail["tags"]["mailout_message"]] += 1
    monkeypatch.setattr(place.ses, "by_message", lambda: counted)
    assert "1 accepted twice" in judge_joined(place, 1).problems


SENT = {"subject": "Open", "public": 1, "published_at": None, "unpublished_at": None, "sent": 1}
PAGE = "<p>The words of Open.</p></html>"


@pytest.mark.parametrize(
    ("letter", "status", "text", "is_right"),
    [
        ({}, 200, PAGE, True),
        ({}, 404, "", False),
        ({}, 200, PAGE[:-7], False),
        ({"public": 0}, 404, "", True),
        ({"public": 0}, 200, PAGE, False),
        ({"sent": 0}, 404, "", True),
        ({"sent": 0}, 200, PAGE, False),
        ({"public": 0, "unpublished_at": 5.0}, 410, "", True),
        ({"public": 0, "unpublished_at": 5.0}, 200, PAGE, False),
    ],
)
def test_a_page_that_shows_too_much_or_too_little_is_seen(
    place: Place, letter: dict[str, Any], status: int, text: str, is_right: bool
) -> None:
    readers = Readers(place, 0)
    readers.compare({**SENT, **letter}, httpx.Response(status, text=text))
    assert (readers.wrong == []) is is_right


def test_neither_run_loses_what_the_other_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "PAGE", tmp_path / "reliability.md")
    write_soak("An hour.\n")
    write_page(Run())
    write_soak("Another hour.\n")
    write_page(Run())
    text = (tmp_path / "reliability.md").read_text()
    assert text.count(SOAK) == text.count("# What survives what") == text.count("| fault |") == 1
    assert text.endswith(f"one by one.\n\n{SOAK}\n\nAnother hour.\n")
