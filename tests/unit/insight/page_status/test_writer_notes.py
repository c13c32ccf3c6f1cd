"""What a page tells its writer: what to do, without a shell and without the list of readers."""

from __future__ import annotations

import re
from datetime import UTC

import pytest

from mailout.base.errors import Abort, AbortCode, MailoutError, UsageError
from mailout.insight.page_status.writer_notes import failure, refusal, tried_out, waiting
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, DeferReason, Mailout, MailoutOutcome, Status

COMMAND = re.compile(r"mailout \w+|--\w|`")


def mailout(**more: object) -> Mailout:
    given = {"id": "m", "kind": Kind.NOTION, "ref": "page", "subject": "Hello"}
    return Mailout(**(given | more))  # type: ignore[arg-type]


@pytest.mark.parametrize("code", AbortCode)
def test_whatever_stops_a_page_says_what_to_do_and_names_no_command(code: AbortCode) -> None:
    said = refusal(Abort(code, "It is so.", remedy="Run: mailout queue retry ID"), None)
    assert said.startswith("It is so. ")
    assert "Ready again" in said or "administrator" in said or "another page" in said
    assert not COMMAND.search(said)


@pytest.mark.parametrize(
    "error", [UsageError("No.", remedy="Run: mailout x"), MailoutError("No."), KeyError("x")]
)
def test_what_only_an_administrator_can_mend_is_for_the_administrator(error: Exception) -> None:
    said = refusal(error, "https://mail.example.org/problems")
    assert "Show this to your administrator." in said
    assert not COMMAND.search(said)


@pytest.mark.parametrize("reason", sorted(WAITS_FOR_A_PERSON))
def test_what_waits_for_a_person_says_who_can_let_it_go_on(reason: DeferReason) -> None:
    held = mailout(defer_reason=reason, defer_note="ana@example.org was refused: run `mailout doctor`")
    said = waiting(held, "https://mail.example.org/letters/m", UTC) or ""
    assert said.startswith("Waits for a person: ")
    assert said.endswith("On the dashboard: https://mail.example.org/letters/m")
    assert "administrator" in said or "is_test" in said
    assert "@" not in said
    assert not COMMAND.search(said)


@pytest.mark.parametrize("reason", sorted(set(DeferReason) - WAITS_FOR_A_PERSON))
def test_what_goes_on_by_itself_says_until_when(reason: DeferReason) -> None:
    said = waiting(mailout(defer_reason=reason, deferred_until=1_794_830_400.0), None, UTC) or ""
    assert said.startswith("Waits until 16 Nov 2026 12:00 UTC: ")
    assert said.endswith(". Then it goes on by itself.")


def test_what_waits_for_its_turn_alone_needs_no_note() -> None:
    assert waiting(mailout(), None, UTC) is None
    begun = mailout(status=Status.PROCESSING, defer_reason=DeferReason.DAILY_LIMIT, deferred_until=9.0)
    assert waiting(begun, None, UTC, all_paused=True) is None


def test_while_everything_is_paused_what_the_letter_itself_waits_for_comes_first() -> None:
    said = waiting(mailout(), None, UTC, all_paused=True)
    assert said == "Waits for a person: everything is paused. Your administrator can let it go on."
    limited = mailout(defer_reason=DeferReason.DAILY_LIMIT, deferred_until=9.0)
    assert waiting(limited, None, UTC, all_paused=True) == said
    held = mailout(defer_reason=DeferReason.REPUTATION)
    assert waiting(held, None, UTC, all_paused=True) == waiting(held, None, UTC)


@pytest.mark.parametrize(
    ("ledger", "said"),
    [
        (Ledger(recipients=2, sent=1, failed=1), "Test run. 1 of 2 messages was sent; 1 failed."),
        (Ledger(recipients=1, unknown=1), "Test run. 0 of 1 message were sent; 1 is in doubt."),
        (
            Ledger(recipients=1, suppressed=1),
            "Test run. Nothing was sent: 1 person was no longer subscribed.",
        ),
    ],
)
def test_a_test_that_did_not_reach_everybody_says_so(ledger: Ledger, said: str) -> None:
    ended = mailout(status=Status.COMPLETED, is_test=True, ledger=ledger)
    assert tried_out(ended, None) == f"{said} Your administrator can see why."


def test_a_test_that_reached_everybody_needs_no_note() -> None:
    ledger = Ledger(recipients=2, sent=2)
    assert tried_out(mailout(status=Status.COMPLETED, is_test=True, ledger=ledger), None) is None


def test_a_stopped_letter_says_how_many_it_reached() -> None:
    """62 of 215 are not “most people”."""
    ledger = Ledger(recipients=215, sent=62, suppressed=153)
    said = failure(mailout(status=Status.CANCELLED, ledger=ledger), None)
    assert said == "It was cancelled. 62 of 215 messages had been sent by then."
    for ledger in (Ledger(), Ledger(recipients=3, suppressed=3)):
        said = failure(mailout(status=Status.CANCELLED, ledger=ledger), None)
        assert said == "It was cancelled before anything was sent."


def test_a_letter_with_failures_and_doubts_tells_both() -> None:
    ledger = Ledger(recipients=5, sent=2, failed=2, unknown=1)
    ended = mailout(status=Status.COMPLETED, outcome=MailoutOutcome.FAILED, ledger=ledger)
    said = failure(ended, None)
    assert "2 of 5 messages were sent; 2 failed and 1 is in doubt." in said
    assert "Whether 1 person got it is not known" in said
    assert not COMMAND.search(said)
