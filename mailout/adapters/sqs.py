"""The SQS queue, which keeps events while the gateway is down. A message is deleted after our commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mailout.errors import MailoutError
from mailout.feedback.ingest import QueueMessage

BATCH = 10  # SQS's own limit, for receiving and for deleting
LONG_POLL = 20


class SqsQueue:
    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url

    def receive(self, wait: int = LONG_POLL) -> Sequence[QueueMessage]:
        try:
            answer = self._client.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=BATCH, WaitTimeSeconds=wait
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
