"""The short form of `make chaos`: a few strikes of every kind of fault, in turns over modes and stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.chaos.__main__ import conclusion, scenes_named
from tests.chaos.judging import judge
from tests.chaos.matrix import ROWS, Row
from tests.chaos.places import Stage
from tests.chaos.report import page, table
from tests.chaos.runner import Played, Run, Scene, play_one
from tests.chaos.verdict import Verdict, is_told_rightly

SHORT = {
    "kill": (6, [("folder", "sqlite"), ("single", "supabase"), ("bulk", "sqlite"), ("articles", "supabase"),
                 ("single mails", "sqlite"), ("notifications", "supabase"), ("notifications", "sqlite")]),
    "stop": (1, [("single", "sqlite")]),
    "term": (3, [("folder", "supabase"), ("single mails", "sqlite")]),
    "two-senders": (2, [("single", "sqlite"), ("notifications", "supabase")]),
    "machine-lost": (1, [("single", "sqlite")]),
    "power-cut": (3, [("bulk", "sqlite"), ("single mails", "sqlite")]),
    "disk-full": (1, [("single", "sqlite"), ("bulk", "supabase")]),
    "clock": (2, [("articles", "supabase"), ("folder", "sqlite")]),
    "ses-5xx": (1, [("bulk", "supabase")]),
    "ses-reset-after": (1, [("single", "sqlite")]),
    "ses-garbage": (1, [("single mails", "supabase")]),
    "ses-same-id": (1, [("bulk", "sqlite")]),
    "gateway-kill": (2, [("single mails", "sqlite"), ("articles", "sqlite"), ("folder", "supabase")]),
    "webhooks": (2, [("single", "sqlite")]),
    "events": (2, [("bulk", "sqlite"), ("single", "supabase")]),
    "sign-up": (4, [("sign-ups", "sqlite"), ("sign-ups", "supabase")]),
    "confirmation": (3, [("sign-ups", "supabase")]),
    "welcome": (3, [("sign-ups", "sqlite")]),
    "web-archive": (4, [("single", "sqlite"), ("single", "supabase")]),
}  # fmt: skip
"""How many strikes, and where."""
CASES = [
    pytest.param(row, dose, mode, store, id=f"{row.name}-{mode}-{store}")
    for row in ROWS
    for dose, pairs in [SHORT.get(row.name, (0, []))]
    for mode, store in pairs
]

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    made = Stage(tmp_path_factory.mktemp("chaos"), "short")
    yield made
    made.close()


@pytest.mark.parametrize(("row", "dose", "mode", "store"), CASES)
def test_nobody_gets_it_twice_is_lost_or_gets_stuck(
    stage: Stage, row: Row, dose: int, mode: str, store: str
) -> None:
    if not row.possible():
        pytest.skip("this user may not mount a file system")
    played = play_one(Scene(row, mode, store, dose), stage)
    assert not played.problems, played.line() + played.failure
    assert played.verdict.accepted > 0


def test_every_fault_has_a_name_of_its_own_and_a_line_in_the_table() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert set(SHORT) <= {row.name for row in ROWS}
    assert "ledger" in table(Run())


KILL = next(row for row in ROWS if row.name == "kill")


@pytest.mark.parametrize(
    ("verdict", "problem"),
    [
        (Verdict(hits=3, twice=1), "1 accepted twice"),
        (Verdict(hits=3, lost=1), "1 lost"),
        (Verdict(hits=3, stuck=1), "1 stuck"),
        (Verdict(hits=3, misreported=1), "1 recorded or reported wrongly"),
        (Verdict(hits=3, unbalanced=1), "1 ledgers or counters off"),
        (Verdict(hits=3, unknown=61), "61 unknown, more than 20 for each strike"),
        (Verdict(hits=2), "struck 2 of 3 times"),
    ],
)
def test_whatever_is_wrong_is_named_with_the_way_to_see_it_again(
    verdict: Verdict, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = Verdict(scenes=1, accepted=5, failed=Counter({"SES_REJECTED": 2}))
    scene = Scene(KILL, "single mails", "sqlite", dose=3, seed=2)
    played = [Played(scene, good + Verdict(hits=3), 1.0), Played(scene, good + verdict, 1.0)]
    assert conclusion(Run(2, [played[0], played[0]])) == 0
    capsys.readouterr()
    assert conclusion(Run(2, played)) == 1
    said = capsys.readouterr().out
    assert problem in said
    assert 'make chaos ARGS="kill:sqlite:single-mails --dose 3 --seed 2"' in said
    assert problem in page(Run(2, played))


def test_a_scene_that_breaks_off_or_a_run_that_is_interrupted_is_no_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = Scene(KILL, "bulk", "sqlite")
    broken = Played(scene, Verdict(), 1.0, failure="Traceback:\nAssertionError: it hangs")
    assert conclusion(Run(1, [broken])) == 1
    assert "broke off: AssertionError: it hangs" in capsys.readouterr().out
    assert conclusion(Run(2, [Played(scene, Verdict(hits=84), 1.0)])) == 130
    assert "1 of 2 scenes" in capsys.readouterr().out


def test_one_scene_can_be_played_by_its_name() -> None:
    (one,) = scenes_named(["stop:supabase:single-mails"], seed=7)
    assert (one.row.name, one.mode, one.store, one.seed) == ("stop", "single mails", "supabase", 7)
    assert scenes_named([one.name], seed=7) == [one]
    with pytest.raises(ValueError, match="no such row or scene: stop:mysql"):
        scenes_named(["kill", "stop:mysql"])


ACCEPTED, NOT = True, False


@pytest.mark.parametrize(
    ("status", "attempts", "code", "events", "accepted", "is_right"),
    [
        ("sent", 1, None, 1, ACCEPTED, True),
        ("sent", 1, None, 1, NOT, False),
        ("sent", 1, None, 2, ACCEPTED, False),
        ("sent", 0, None, 1, ACCEPTED, False),
        ("sent", 4, None, 1, ACCEPTED, False),
        ("failed", 3, "SES_TIMEOUT", 1, NOT, True),
        ("failed", 3, "SES_TIMEOUT", 1, ACCEPTED, False),
        ("failed", 3, None, 1, NOT, False),
        ("failed", 1, "outcome_unknown", 1, ACCEPTED, True),
        ("failed", 1, "outcome_unknown", 1, NOT, True),
        ("skipped", 1, "unsubscribed", 1, NOT, False),
    ],
)
def test_a_producer_that_is_told_something_wrong_is_seen(
    status: str, attempts: int, code: str | None, events: int, accepted: bool, is_right: bool
) -> None:
    row, error = {"fanout_status": status, "fanout_attempts": attempts}, {"code": code}
    assert is_told_rightly(row, error, events, accepted=accepted, attempts=3) is is_right


def test_a_mail_that_is_accepted_twice_is_seen(stage: Stage) -> None:
    """The judge itself: a receiver that has two of one mail, and a sender that believes it sent a third."""
    place = stage.place("folder", "sqlite", 3)
    place.finish()
    assert not judge(place, 0).problems
    mails = sorted((place.job.home / "outbox").glob("*/*.eml"))
    mails[0].with_name(mails[0].name.replace(".eml", ".2.eml")).write_bytes(b"again")
    mails[1].unlink()
    verdict = judge(place, 0)
    assert (verdict.twice, verdict.lost) == (1, 1)
