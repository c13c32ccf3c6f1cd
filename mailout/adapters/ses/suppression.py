"""SES's own list of addresses that it no longer delivers to, read and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mailout.base.clock import Clock
from mailout.base.errors import MailoutError
from mailout.outbox.feedback.port import StatusChange
from mailout.outbox.feedback.suppression import Reason

PAGE = 1000
PAUSE = 1.0
"""SES allows about one such call a second."""


class SesSuppression:
    def __init__(self, client: Any, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    def pages(self) -> Iterator[Mapping[str, StatusChange]]:
        """Everybody on the list, a page at a time, as news of subscribers by the address SES has."""
        token: str | None = None
        while True:
            more = {"NextToken": token} if token else {}
            answer = self._ask("list_suppressed_destinations", PageSize=PAGE, **more)
            yield {
                entry["EmailAddress"]: Reason(entry["Reason"]).change(entry["LastUpdateTime"].timestamp())
                for entry in answer.get("SuppressedDestinationSummaries") or []
            }
            token = answer.get("NextToken")
            if not token:
                return
            self._clock.sleep(PAUSE)

    def put(self, email: str, reason: Reason) -> None:
        """Add one address. Again is harmless."""
        self._ask("put_suppressed_destination", EmailAddress=email, Reason=reason.value)
        self._clock.sleep(PAUSE)

    def _ask(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        try:
            answer: Mapping[str, Any] = getattr(self._client, operation)(**parameters)
        except (ClientError, BotoCoreError) as error:
            raise MailoutError(
                f"SES: {error}",
                remedy="Allow ses:ListSuppressedDestinations and ses:PutSuppressedDestination.",
            ) from error
        return answer
