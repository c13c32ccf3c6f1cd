"""The short form of `make chaos`: a few strikes of every kind of fault, in turns over modes and stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.matrix import ROWS, Row
from tests.chaos.places import Stage
from tests.chaos.report import table
from tests.chaos.runner import Run, play_one
from tests.chaos.verdict import Verdict

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
    "events": (2, [("bulk", "sqlite"), ("single", "supabase")]),
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
    played = play_one(row, stage, mode, store, dose)
    assert played.is_good, played.line() + played.failure
    assert played.verdict.hits >= dose
    assert played.verdict.accepted > 0


def test_every_fault_has_a_name_of_its_own_and_a_line_in_the_table() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert set(SHORT) <= {row.name for row in ROWS}
    assert "ledger" in table(Run())


@pytest.mark.parametrize("wrong", [{"twice": 1}, {"lost": 1}, {"stuck": 1}, {"unbalanced": 1}])
def test_a_verdict_with_anything_wrong_in_it_is_a_bad_one(wrong: dict[str, int]) -> None:
    assert (Verdict(scenes=1) + Verdict(hits=3)).is_good
    assert not (Verdict(scenes=1) + Verdict(**wrong)).is_good


def test_a_mail_that_is_accepted_twice_is_seen(stage: Stage) -> None:
    """The judge itself: a receiver that has two of one mail, and a sender that believes it sent a third."""
    place = stage.place("folder", "sqlite", 3)
    place.finish()
    assert place.judge(0).is_good
    mails = sorted((place.job.home / "outbox").glob("*/*.eml"))
    mails[0].with_name(mails[0].name.replace(".eml", ".2.eml")).write_bytes(b"again")
    mails[1].unlink()
    verdict = place.judge(0)
    assert (verdict.twice, verdict.lost) == (1, 1)
