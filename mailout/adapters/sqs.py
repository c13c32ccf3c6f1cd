"""The SQS queue, which keeps events while the gateway is down. A message is deleted after our commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError

from mailout.base.errors import CheckSkipped, MailoutError, ProviderUnreachable
from mailout.insight.doctor.event_path import QueueLook
from mailout.outbox.feedback.ingest import QueueMessage

SQS_BATCH_MESSAGES = 10  # SQS's own limit, for receiving and for deleting
LONG_POLL_SECONDS = 20
QUEUE_FIELDS = ["QueueArn", "Policy", "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
DENIED_CODES = frozenset({"AccessDenied", "AccessDeniedException", "AWS.SimpleQueueService.AccessDenied"})


class SqsQueue:
    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url

    def receive(self, wait: int = LONG_POLL_SECONDS) -> Sequence[QueueMessage]:
        try:
            answer = self._client.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=SQS_BATCH_MESSAGES, WaitTimeSeconds=wait
            )
        except (ClientError, BotoCoreError) as error:
            raise MailoutError(
                f"SQS: {error}", remedy="Check SQS_QUEUE_URL and allow sqs:ReceiveMessage on it."
            ) from error
        return [
            QueueMessage(message["MessageId"], message.get("Body", ""), message["ReceiptHandle"])
            for message in answer.get("Messages") or []
        ]

    def delete(self, messages: Sequence[QueueMessage]) -> None:
        """What cannot be deleted comes again, and meets itself in the inbox."""
        entries = [{"Id": str(n), "ReceiptHandle": m.receipt} for n, m in enumerate(messages)]
        try:
            self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
        except (ClientError, BotoCoreError) as error:
            raise MailoutError(f"SQS: {error}", remedy="Allow sqs:DeleteMessage on the queue.") from error

    def look(self) -> QueueLook:
        """How full it is, and who may write to it. `CheckSkipped` if we may not know."""
        try:
            answer = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=QUEUE_FIELDS)
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and error.response["Error"].get("Code") in DENIED_CODES:
                remedy = "Allow sqs:GetQueueAttributes on it."
                raise CheckSkipped("we may not look at the queue", remedy=remedy) from error
            if isinstance(error, ConnectionError):
                raise ProviderUnreachable.named("SQS", str(error)) from error
            remedy = "Correct SQS_QUEUE_URL and AWS_REGION, or create the queue."
            raise MailoutError(f"SQS: {error}", remedy=remedy) from error
        attributes = answer.get("Attributes") or {}
        return QueueLook(
            arn=attributes.get("QueueArn", ""),
            waiting=int(attributes.get("ApproximateNumberOfMessages", 0)),
            taken=int(attributes.get("ApproximateNumberOfMessagesNotVisible", 0)),
            policy=json.loads(attributes.get("Policy") or "{}"),
        )
