"""A mailout in plain lines, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, tzinfo

from mailout.insight.reporting.codes import remedy_of
from mailout.insight.reporting.details import details, identifiers
from mailout.insight.reporting.phrases import (
    archived,
    came_back,
    first_of,
    headline,
    ledger_shown,
    next_steps,
    waiting,
)
from mailout.insight.reporting.summary import FailureGroup, Summary
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.queue.mailout import Mailout


def ledger_line(ledger: Ledger) -> str:
    """`sent 271  failed 0  suppressed 2`."""
    return "  ".join(f"{name} {n:,}" for _, name, n in ledger_shown(ledger))


def ledger_lines(ledger: Ledger) -> Sequence[str]:
    """One number a line, aligned to the right, with their sum."""
    shown = [(name, n) for _, name, n in ledger_shown(ledger)] + [("recipients", ledger.recipients)]
    width = max(len(f"{n:,}") for _, n in shown)
    return [f"{name:<10}  {n:>{width},}" for name, n in shown]


def status_lines(
    mailout: Mailout,
    zone: tzinfo = UTC,
    interrupted: str | None = None,
    now: float = 0.0,
    *,
    untaken: bool = False,
) -> Sequence[str]:
    """One mailout of the queue: what it is, how it stands, why it waits, what to do."""
    heading = _heading(mailout, zone, interrupted, now, untaken=untaken)
    return [*heading, ledger_line(mailout.ledger), *_steps(mailout)]


def _came_back(mailout: Mailout) -> Sequence[str]:
    if not (came := came_back(mailout)):
        return ()
    if not mailout.metrics:
        return ("Deliveries and bounces are not reported yet.",)
    return (", ".join(f"{number} {word}" for word, number, _ in came),)


def summary_lines(summary: Summary, zone: tzinfo = UTC) -> Sequence[str]:
    """Everything that a report says, without the picture."""
    mailout = summary.mailout
    lines = [
        *_heading(mailout, zone, summary.interrupted, summary.as_of),
        *_came_back(mailout),
        "",
        *(f"  {line}" for line in ledger_lines(mailout.ledger)),
        "",
    ]
    said = (*details(summary, zone), *identifiers(summary))
    lines += [f"  {label:<12}  {printable(text)}" for label, text in said]
    if summary.failures:
        lines += ["", "Failed:"]
        for group in summary.failures:
            lines.append(f"  {printable(_failure(group))}")
            if remedy := remedy_of(group.code, failed=True):
                lines.append(f"    {remedy}")
    if summary.unknown_addresses:
        unknown = first_of(summary.unknown_addresses, mailout.ledger.unknown)
        lines += ["", "Unknown:", f"  {printable(unknown)}"]
    return [*lines, *_steps(mailout)]


def _heading(
    mailout: Mailout, zone: tzinfo, interrupted: str | None, now: float, *, untaken: bool = False
) -> Sequence[str]:
    lines = (
        mailout.subject or "(no subject yet)",
        headline(mailout) if interrupted is None else f"It {interrupted}",
        waiting(mailout, zone, now=now, untaken=untaken) if interrupted is None else None,
        archived(mailout, zone),
    )
    return [printable(line) for line in lines if line]


def _failure(group: FailureGroup) -> str:
    """`3 × Address blocked (MESSAGE_REJECTED): a@example.org, b@example.org and 1 more`."""
    said = f"{group.message.rstrip('.')} ({group.code})" if group.message else group.code
    return f"{group.count:,} × {said}: {first_of(group.addresses, group.count)}"


def _steps(mailout: Mailout) -> Sequence[str]:
    lines = []
    for step in next_steps(mailout):
        lines += ["", step.advice, f"  {step.command}"]
    return lines


def printable(text: str) -> str:
    """On one line and without control characters: a subject cannot move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
