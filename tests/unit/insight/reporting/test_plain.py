from __future__ import annotations

from zoneinfo import ZoneInfo

from mailout.insight.reporting.plain import ledger_line, ledger_lines, status_lines, summary_lines
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.queue.mailout import DeferReason, Status
from tests.unit.insight.reporting.conftest import START
from tests.unit.insight.reporting.scenes import LEDGER, NASTY, mailout, summary

BERLIN = ZoneInfo("Europe/Berlin")


def test_the_ledger_in_one_line() -> None:
    assert ledger_line(LEDGER) == "sent 290  failed 6  unknown 2  suppressed 2"
    assert ledger_line(Ledger()) == "sent 0  failed 0"


def test_the_ledger_in_a_column_is_aligned_and_ends_with_the_sum() -> None:
    lines = ledger_lines(Ledger(recipients=1271, sent=1271))
    assert lines == ["sent        1,271", "failed          0", "recipients  1,271"]


def test_status_says_why_it_waits_and_until_when_on_the_readers_clock() -> None:
    """Else a person cannot tell a wait from a fault."""
    deferred = mailout(
        status=Status.PENDING, outcome=None, defer_reason=DeferReason.OUTSIDE_HOURS, deferred_until=START
    )
    lines = status_lines(deferred, BERLIN)
    assert "It waits until 15 Nov 2026 10:00 CET: it is outside the hours for sending." in lines


def test_the_summary_ends_with_what_to_do() -> None:
    lines = summary_lines(summary(), BERLIN)
    assert lines[0] == "News of November"
    assert "  6 × said no (REJECTED): a@example.org, b@example.org and 4 more" in lines
    assert lines[-1] == f"  mailout queue retry {mailout().id}"


def test_a_subject_cannot_steer_the_terminal() -> None:
    for lines in (
        status_lines(mailout(subject=NASTY)),
        summary_lines(summary(mailout(subject=NASTY, ref=NASTY))),
    ):
        assert all(line.isprintable() for line in lines)
