"""A claimed notification becomes a mail: the producer's link to leave by, and what the producer calls it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from mailout.content.model import UNSUBSCRIBE_URL, Content
from mailout.delivery.compose import CONTENTS_KEPT
from mailout.delivery.port import Mail
from mailout.delivery.protocol import Claimed

TAGS = ("traceId", "subscriptionId", "openEventId", "term", "campus")
"""Of a notification's variables: they stand in no text, and travel as tags."""


class NotificationComposer:
    """Without a mailout, without our footer."""

    def __init__(
        self,
        contents: Callable[[str], Content],
        *,
        from_email: str,
        from_name: str,
        reply_to: str | None,
    ) -> None:
        self._content = lru_cache(CONTENTS_KEPT)(contents)
        self._from_email = from_email
        self._from_name = from_name
        self._reply_to = reply_to

    def __call__(self, row: Claimed) -> Mail:
        return Mail(
            attempt=row.attempt,
            mailout_id=None,
            to=row.email,
            from_email=self._from_email,
            from_name=row.from_name or self._from_name,
            reply_to=self._reply_to,
            content=self._content(row.content_hash),
            values=row.variables,
            unsubscribe_url=row.variables.get(UNSUBSCRIBE_URL),
            one_click=False,  # the link is the producer's, and nobody promised that it understands a POST
            tags={name: row.variables[name] for name in TAGS if row.variables.get(name)},
        )
