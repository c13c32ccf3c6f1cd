"""SNS itself: confirming that a topic may send to us, and who is subscribed to it.

Over its API, never by opening the address it sends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError

from mailout.base.errors import CheckSkipped, MailoutError, ProviderUnreachable
from mailout.insight.doctor.event_path import Policy, TopicSubscription

DENIED_CODES = frozenset({"AuthorizationError", "AccessDenied", "AccessDeniedException"})
WE_READ = frozenset({"http", "https", "sqs"})
UNCONFIRMED = frozenset({"PendingConfirmation", "Deleted"})


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

    def subscriptions(self, topic: str) -> Sequence[TopicSubscription]:
        """Those by which events could reach us. `CheckSkipped` if we may not know."""
        client = self._client_of(topic.split(":")[3])
        try:
            pages = client.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
            found = [one for page in pages for one in page.get("Subscriptions") or []]
        except (ClientError, BotoCoreError) as error:
            if _code(error) in DENIED_CODES:
                remedy = f"Allow sns:ListSubscriptionsByTopic on {topic}."
                raise CheckSkipped("we may not see who is subscribed", remedy=remedy) from error
            if isinstance(error, ConnectionError):
                raise ProviderUnreachable.named("SNS", str(error)) from error
            remedy = "Correct SNS_TOPIC_ARNS, or create the topic."
            raise MailoutError(f"SNS: {error}", remedy=remedy) from error
        return [
            TopicSubscription(
                protocol=one["Protocol"],
                endpoint=one["Endpoint"],
                confirmed=one["SubscriptionArn"] not in UNCONFIRMED,
                raw=self._raw(client, one["SubscriptionArn"]),
            )
            for one in found
            if one.get("Protocol") in WE_READ
        ]

    def policy(self, topic: str) -> Policy:
        """Who may publish to it. `CheckSkipped` if we may not know."""
        try:
            answer = self._client_of(topic.split(":")[3]).get_topic_attributes(TopicArn=topic)
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ConnectionError):
                raise ProviderUnreachable.named("SNS", str(error)) from error
            remedy = f"Allow sns:GetTopicAttributes on {topic}."
            raise CheckSkipped("we may not see who may publish to it", remedy=remedy) from error
        policy: Policy = json.loads((answer.get("Attributes") or {}).get("Policy") or "{}")
        return policy

    def _raw(self, client: Any, subscription: str) -> bool | None:
        """Without SNS's envelope? None: we may not know."""
        if subscription in UNCONFIRMED:
            return None
        try:
            answer = client.get_subscription_attributes(SubscriptionArn=subscription)
        except (ClientError, BotoCoreError):
            return None
        return bool(answer.get("Attributes", {}).get("RawMessageDelivery") == "true")


def _code(error: ClientError | BotoCoreError) -> str:
    return str(error.response["Error"].get("Code", "")) if isinstance(error, ClientError) else ""
