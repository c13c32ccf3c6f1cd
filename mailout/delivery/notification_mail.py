"""What a notification's mail has besides: the producer's link to leave by, and what the producer calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mailout.content.model import UNSUBSCRIBE_URL
from mailout.delivery.port import Mail

TAGS = ("traceId", "subscriptionId", "openEventId", "term", "campus")
"""Of a notification's variables: they stand in no text, and travel as tags, and through the log."""


def notification_tags(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: variables[name] for name in TAGS if variables.get(name)}


def as_notification(mail: Mail, variables: Mapping[str, str]) -> Mail:
    return replace(
        mail,
        unsubscribe_url=variables.get(UNSUBSCRIBE_URL),
        one_click=False,  # the link is the producer's, and nobody promised that it understands a POST
        tags=notification_tags(variables),
    )
