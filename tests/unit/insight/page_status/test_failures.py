"""Which failed addresses have a line of their own in the errors database."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mailout.base.select import View
from mailout.insight.page_status.failures import EVERY_ADDRESS, LISTED_ADDRESSES, new_failures
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.mailout import Mailout


def failed(n: int) -> list[str]:
    """The addresses that have a line, of so many that failed."""
    rows = [
        {
            "seq": number + 1,
            "state": State.FAILED,
            "email": f"p{number:03}@example.org",
            "error_code": "MESSAGE_REJECTED",
            "error_message": "No such box",
            "attempts": 1,
            "failed_at": 1.0,
        }
        for number in range(n)
    ]

    def select(
        view: View[Any], *_: Any, after: Any = None, limit: int = 1000, **__: Any
    ) -> list[dict[str, Any]]:
        known = rows if view.name == "read_failed_messages" else []
        return [row for row in known if after is None or int(str(row["seq"])) > after[0]][:limit]

    store: Any = SimpleNamespace(select=select)
    mailout = Mailout(id="m", kind=Kind.MARKDOWN, ref="may.md", subject="May", ledger=Ledger(failed=n))
    return [error.email for error in new_failures(store, mailout, "ses") if error.email]


@pytest.mark.parametrize("n", [1, EVERY_ADDRESS])
def test_up_to_a_hundred_have_a_line_each(n: int) -> None:
    assert failed(n) == [f"p{number:03}@example.org" for number in range(n)]


def test_of_more_only_the_first_have_one() -> None:
    assert len(failed(EVERY_ADDRESS + 1)) == LISTED_ADDRESSES
