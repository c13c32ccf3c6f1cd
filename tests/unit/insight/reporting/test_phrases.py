from __future__ import annotations

from datetime import UTC

import pytest

from mailout.insight.reporting.phrases import (
    MEANINGS,
    OWN_LIMITS,
    first_of,
    headline,
    next_steps,
    share,
    waiting,
)
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.delivery.states import Column
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, DeferReason, MailoutOutcome, Status
from tests.unit.insight.reporting.conftest import START
from tests.unit.insight.reporting.scenes import mailout

SENT = MailoutOutcome.SENT


@pytest.mark.parametrize(
    ("status", "ledger", "said"),
    [
        (Status.COMPLETED, Ledger(5, sent=5), "All 5 messages were sent."),
        (Status.COMPLETED, Ledger(1, sent=1), "The message was sent."),
        (
            Status.COMPLETED,
            Ledger(6, sent=5, suppressed=1),
            "All 5 messages were sent. 1 person was no longer subscribed.",
        ),
        (Status.COMPLETED, Ledger(2, suppressed=2), "Nothing was sent: 2 people were no longer subscribed."),
        (Status.COMPLETED, Ledger(), "There was nobody to send it to."),
        (Status.COMPLETED, Ledger(2, sent=1, unknown=1), "1 of 2 messages was sent; 1 is in doubt."),
        (Status.PROCESSING, Ledger(9, pending=5, sent=4), "It is being sent: 4 of 9 messages so far."),
        (Status.PENDING, Ledger(9, pending=5, sent=4), "It waits with 4 of 9 messages sent."),
        (Status.PENDING, Ledger(9, pending=9), "It waits to be sent."),
        (
            Status.CANCELLED,
            Ledger(9, sent=4, suppressed=5),
            "It was cancelled. 4 of 9 messages had been sent by then.",
        ),
    ],
)
def test_the_headline_says_how_it_stands(status: Status, ledger: Ledger, said: str) -> None:
    assert headline(mailout(status=status, ledger=ledger, outcome=SENT)) == said
    assert headline(mailout(status=status, ledger=ledger, is_test=True)) == f"Test run. {said}"


@pytest.mark.parametrize("reason", DeferReason)
def test_every_reason_has_a_sentence_and_those_for_a_person_have_a_way_on(reason: DeferReason) -> None:
    """Else a mailout waits for somebody who is not told so."""
    until = None if reason in WAITS_FOR_A_PERSON else START
    waits = mailout(
        status=Status.PENDING,
        defer_reason=reason,
        deferred_until=until,
        defer_note="Said so.",
        ledger=Ledger(),
    )
    said = waiting(waits, UTC)
    assert said is not None
    assert said.startswith(
        "It waits for a person: " if until is None else "It waits until 15 Nov 2026 09:00 UTC: "
    )
    assert said.endswith(". Said so.")
    assert [step.command for step in next_steps(waits)] == (
        [f"mailout queue resume {waits.id}"] if until is None or reason in OWN_LIMITS else []
    )


def test_one_that_is_planned_says_for_when() -> None:
    planned = mailout(status=Status.PENDING, scheduled_at=START, started_at=None)
    assert waiting(planned, UTC) == "It is planned for 15 Nov 2026 09:00 UTC."
    assert waiting(mailout(status=Status.PENDING), UTC) == "It waits for its turn."
    assert waiting(mailout(status=Status.COMPLETED), UTC) is None


@pytest.mark.parametrize("reason", [None, DeferReason.DAILY_LIMIT])
def test_one_whose_time_has_passed_is_not_planned_any_more(reason: DeferReason | None) -> None:
    at = {"deferred_until": START, "defer_reason": reason} if reason else {"scheduled_at": START}
    late = mailout(status=Status.PENDING, started_at=None, created_at=START - 60, **at)
    said = "It was due 15 Nov 2026 09:00 UTC, and nobody has taken it up yet."
    assert waiting(late, UTC, now=START + 600, untaken=True) == said
    assert waiting(late, UTC, now=START + 600) == "It waits for its turn."
    assert waiting(late, UTC, now=START + 60) == waiting(late, UTC) != said


def test_a_cancelled_mailout_is_not_to_be_retried() -> None:
    """`retry` would put messages back into a mailout that somebody took back."""
    assert next_steps(mailout(status=Status.CANCELLED, ledger=Ledger(1, failed=1))) == []


def test_every_column_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Column)


def test_a_share_never_rounds_trouble_away() -> None:
    assert share(1, 1_000_000) == "0.1 %"
    assert share(999_999, 1_000_000) == "99.9 %"
    assert (share(0, 5), share(5, 5), share(0, 0)) == ("0 %", "100 %", "0 %")


def test_addresses_end_with_how_many_more_there_are() -> None:
    assert first_of(("a", "b"), 2) == "a, b"
    assert first_of(("a", "b"), 1_002) == "a, b and 1,000 more"
