"""Summaries made by hand, for what only shows them."""

from __future__ import annotations

from typing import Any

from mailout.insight.reporting.summary import FailureGroup, Summary, Timeline
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.queue.mailout import Mailout, MailoutOutcome, Status
from tests.unit.insight.reporting.conftest import START

LEDGER = Ledger(recipients=300, sent=290, failed=6, suppressed=2, unknown=2)
NASTY = "<script>alert(1)</script> | `x` [a](http://b) **c** & \x1b[2J\n# d"


def mailout(**changes: Any) -> Mailout:
    given: dict[str, Any] = {
        "id": "0a269e76-2f1a-8f0b-8373-610214f48517",
        "kind": Kind.MARKDOWN,
        "ref": "letter.md",
        "subject": "News of November",
        "status": Status.COMPLETED,
        "outcome": MailoutOutcome.FAILED,
        "ledger": LEDGER,
        "created_at": START,
        "started_at": START,
        "completed_at": START + 60,
        "content_hash": "c0ffee",
    }
    return Mailout(**given | changes)


def summary(of: Mailout | None = None, **changes: Any) -> Summary:
    given: dict[str, Any] = {
        "as_of": START + 120,
        "transport": "folder",
        "failures": (FailureGroup("REJECTED", 6, "said no", ("a@example.org", "b@example.org")),),
        "unknown_addresses": ("c@example.org", "d@example.org"),
        "suppressed": {"no longer subscribed": 2},
        "timeline": Timeline(START, START + 58, (100, 0, 150, 40)),
        "rate": 5.0,
    }
    return Summary(of or mailout(), **given | changes)
