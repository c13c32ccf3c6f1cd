"""The mails that the tests send."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mailout.letters.content.model import UNSUBSCRIBE_URL, Content, mark
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Attempt, Outcome

CONTENT = Content(
    subject="News for " + mark("name"),
    html=f'<p>Hello {mark("name")}</p><a href="{mark(UNSUBSCRIBE_URL)}">Leave</a>',
    text=f"Hello {mark('name')}\n{mark(UNSUBSCRIBE_URL)}\n",
)


def mail(number: int = 0, **changes: Any) -> Mail:
    link = f"https://example.org/unsubscribe?token=token-{number}"
    made = Mail(
        attempt=Attempt(f"00000000-0000-8000-8000-{number:012d}", 7),
        mailout_id="11111111-1111-8111-8111-111111111111",
        to=f"reader-{number}@example.org",
        from_email="news@example.org",
        from_name="The Example",
        reply_to=None,
        content=CONTENT,
        values={"name": f"Reader {number}", UNSUBSCRIBE_URL: link},
        unsubscribe_url=link,
    )
    return replace(made, **changes)


def one(outcomes: Any) -> Outcome:
    (outcome,) = outcomes
    assert isinstance(outcome, Outcome)
    return outcome
