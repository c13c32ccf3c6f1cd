"""What holds a mailout until a person has looked."""

from __future__ import annotations

from typing import Any

import pytest

from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.queue.deferrals import bad_reputation, duplicate, may_be_a_duplicate
from mailout.outbox.queue.mailout import DeferReason, Mailout


def mailout(sent: int = 0, **fields: Any) -> Mailout:
    ledger = Ledger(recipients=sent + 1000, pending=1000, sent=sent)
    return Mailout(id="1", kind=Kind.MARKDOWN, ref="a", content_hash="h", ledger=ledger, **fields)


def hold(one: Mailout) -> DeferReason | None:
    wait = bad_reputation(one, 0.05, 0.003)
    return wait.reason if wait else None


@pytest.mark.parametrize(
    ("sent", "metrics", "held"),
    [
        (99, {"bounced": 99}, False),  # too few to say anything
        (100, {"bounced": 5}, False),  # on the line is not over it
        (100, {"bounced": 6}, True),
        (1000, {"complained": 3}, False),
        (1000, {"complained": 4}, True),
        (1000, {"opened": 900, "delivered": 1000}, False),
    ],
)
def test_too_many_bounces_or_complaints_hold_it(sent: int, metrics: dict[str, int], held: bool) -> None:
    """A provider closes accounts that go on sending to such a list."""
    assert (hold(mailout(sent, metrics=metrics)) is DeferReason.REPUTATION) is held


def test_what_a_person_has_acknowledged_holds_no_more_and_what_is_new_does() -> None:
    known = {"sent": 100, "bounced": 10, "complained": 0}
    assert hold(mailout(100, metrics={"bounced": 10}, acknowledged=known)) is None
    assert hold(mailout(250, metrics={"bounced": 17}, acknowledged=known)) is None
    assert hold(mailout(199, metrics={"bounced": 60}, acknowledged=known)) is None
    assert hold(mailout(200, metrics={"bounced": 16}, acknowledged=known)) is DeferReason.REPUTATION


def test_the_note_says_the_numbers() -> None:
    wait = bad_reputation(mailout(1000, metrics={"bounced": 80}), 0.05, 0.003)
    assert wait is not None
    assert wait.note == "80 of 1,000 bounced (8.0%; the line is 5.0%)."


def test_only_a_real_one_that_has_not_begun_can_be_a_duplicate() -> None:
    assert may_be_a_duplicate(mailout())
    assert not may_be_a_duplicate(mailout(sent=1))
    assert not may_be_a_duplicate(mailout(is_test=True))
    assert not may_be_a_duplicate(mailout(acknowledged={"duplicate_content": 1}))


def test_a_duplicate_is_held_with_the_name_of_the_other() -> None:
    assert duplicate(None) is None
    wait = duplicate(mailout())
    assert wait is not None
    assert (wait.reason, wait.until) == (DeferReason.DUPLICATE_CONTENT, None)
    assert "as a (mailout 1)" in (wait.note or "")
