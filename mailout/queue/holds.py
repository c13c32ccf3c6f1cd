"""What holds a mailout until a person has looked: reputation, the same content twice, no test of it."""

from __future__ import annotations

from mailout.queue.limits import Defer
from mailout.queue.mailout import DeferReason, Mailout

ENOUGH_SENT = 100
"""Fewer say nothing: one bounce of ten is a tenth."""
TWICE_WITHIN = 7 * 86_400.0


def bad_reputation(mailout: Mailout, max_bounce_rate: float, max_complaint_rate: float) -> Defer | None:
    """Too many bounces or complaints. What a person has acknowledged is left out, sends and bounces alike."""
    known = mailout.acknowledged
    sent = mailout.ledger.sent - known.get("sent", 0)
    if mailout.is_test or mailout.is_rehearsal or sent < ENOUGH_SENT:
        return None
    for metric, most in (("bounced", max_bounce_rate), ("complained", max_complaint_rate)):
        n = mailout.metrics.get(metric, 0) - known.get(metric, 0)
        if n / sent > most:
            what = "bounced" if metric == "bounced" else "were reported as spam"
            note = f"{n:,} of {sent:,} {what} ({n / sent:.1%}; the line is {most:.1%})."
            return Defer(DeferReason.REPUTATION, None, note)
    return None


def may_be_a_duplicate(mailout: Mailout) -> bool:
    """Whether it is worth asking: a real one that has sent nothing and that no person has let pass."""
    return needs_a_test(mailout) and "duplicate_content" not in mailout.acknowledged


def needs_a_test(mailout: Mailout) -> bool:
    """One to people, with content, of which nothing has left."""
    ledger = mailout.ledger
    return (
        not mailout.is_test
        and not mailout.is_rehearsal
        and mailout.content_hash is not None
        and ledger.sent + ledger.unknown == 0
    )


def untested(tested_at: float | None) -> Defer | None:
    """`REQUIRE_TEST`: nobody has seen exactly this as a mail."""
    return Defer(DeferReason.UNTESTED, None) if tested_at is None else None


def duplicate(other: Mailout | None) -> Defer | None:
    """The same went out to the same list from another page or file."""
    if other is None:
        return None
    return Defer(DeferReason.DUPLICATE_CONTENT, None, f"It went out as {other.ref} (mailout {other.id}).")
