"""What `make soak` would call wrong: an hour that cannot fail would prove nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from mailout.outbox.delivery.states import State
from tests.chaos.places import Place, Stage
from tests.chaos.soak_judging import Asked, wrong_books, wrong_numbers
from tests.chaos.soak_looks import PARTS, Look, Part, growing

OPEN = Counter({"prefect.db": 60, "socket": 20})
FILES = Counter({"journal/store": 20, "logs": 20})
PART = Part((7,), 100.0, OPEN)
LOOK = Look(0.0, dict.fromkeys(PARTS, PART), 40, FILES, 12.0, 4.0)
STEADY = [replace(LOOK, at=60.0 * minute) for minute in range(60)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"parts": {**LOOK.parts, "gateway": Part((7,), 120.0, OPEN)}}, "memory of the gateway grew by 20%"),
        (
            {"parts": {**LOOK.parts, "server": Part((7,), 100.0, OPEN + Counter(socket=40))}},
            "open files of the server grew by 50% (socket +40)",
        ),
        ({"parts": {**LOOK.parts, "gateway": Part((8,), 120.0, OPEN + OPEN)}}, None),
        ({"own_files": FILES + FILES}, "40 more files, of no letter (journal/store +20, logs +20)"),
        ({"files": 300}, None),
        ({"wal_mb": 200.0}, "200 MB in write-ahead logs"),
    ],
)
def test_what_grows_within_an_hour_is_named(change: dict[str, object], words: str | None) -> None:
    looks = [*STEADY[:40], *(replace(one, **change) for one in STEADY[40:])]  # type: ignore[arg-type]
    assert list(growing(looks)) == ([words] if words else [])


def test_what_grew_before_all_had_started_is_no_growth() -> None:
    small = [
        replace(
            one, parts=dict.fromkeys(PARTS, Part((7,), 10.0, Counter(socket=8))), own_files=Counter(logs=1)
        )
        for one in STEADY[:3]
    ]
    assert list(growing([*small, *STEADY[3:]])) == []


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One letter to three people, sent."""
    stage = Stage(tmp_path_factory.mktemp("soak"), "soak-judge")
    made = stage.place("single", "sqlite", 3)
    made.finish()
    yield made
    stage.close()


def test_a_letter_or_a_welcome_that_is_missing_is_named(place: Place) -> None:
    assert list(wrong_numbers(place, Asked(3, letters=1))) == []
    asked = Asked(4, letters=2, singles=1, strangers=["a@example.org"], confirmed={"a@example.org"})
    assert list(wrong_numbers(place, asked)) == [
        "1 letters instead of 2",
        "0 single mails instead of 1",
        "0 confirmations instead of 1",
        "0 welcome letters instead of 1",
        "1 letters to less than 4 people",
        "0 have joined, 1 have confirmed it",
    ]


def test_a_message_whose_books_differ_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = place.ses.by_message()
    states = dict.fromkeys(accepted, State.SENT)
    assert list(wrong_books(place, states)) == []
    first, second, _ = accepted
    monkeypatch.setattr(place.ses, "by_message", lambda: accepted - Counter([second]) + Counter([first]))
    assert set(wrong_books(place, {**states, first: State.FAILED})) == {
        "1 × FAILED",
        "1 accepted twice",
        "1 recorded as sent, and not accepted",
        "1 accepted, and not recorded so",
        "1 ledgers off",
    }
