"""SNS itself: confirming that a topic may send to us. Over its API, never by opening the address it sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mailout.errors import MailoutError


class SnsTopics:
    def __init__(self, client_of: Callable[[str], Any]) -> None:
        """`client_of(region)`: a topic is confirmed in its own region."""
        self._client_of = client_of

    def confirm(self, topic: str, token: str) -> None:
        """A token that was used before confirms the same subscription again."""
        region = topic.split(":")[3]
        try:
            self._client_of(region).confirm_subscription(TopicArn=topic, Token=token)
        except (ClientError, BotoCoreError) as error:
            raise MailoutError(
                f"SNS: the subscription of {topic} could not be confirmed: {error}",
                remedy="Allow sns:ConfirmSubscription; SNS asks again by itself.",
            ) from error
