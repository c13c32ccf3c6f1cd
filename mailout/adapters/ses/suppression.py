"""SES's own list of addresses that it no longer delivers to, read and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mailout.adapters.ses import error_map
from mailout.base.clock import Clock
from mailout.base.errors import MailoutError
from mailout.outbox.delivery import error_codes as codes
from mailout.outbox.feedback.port import StatusChange
from mailout.outbox.feedback.suppression import Reason

PAGE = 1000
PAUSE = 1.0
"""SES allows about one such call a second."""
THROTTLED_SECONDS = (5.0, 15.0, 30.0)
"""How long to wait when somebody else of the account asks as well."""


class SesSuppression:
    def __init__(self, client: Any, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._done = 0  # addresses

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
            self._done += len(answer.get("SuppressedDestinationSummaries") or [])
            token = answer.get("NextToken")
            if not token:
                return
            self._clock.sleep(PAUSE)

    def put(self, email: str, reason: Reason) -> None:
        """Add one address. Again is harmless."""
        self._ask("put_suppressed_destination", EmailAddress=email, Reason=reason.value)
        self._done += 1
        self._clock.sleep(PAUSE)

    def _ask(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        """boto3 has tried it a few times already, within a second or two."""
        waits = iter(THROTTLED_SECONDS)
        while True:
            try:
                answer: Mapping[str, Any] = getattr(self._client, operation)(**parameters)
            except (ClientError, BotoCoreError) as error:
                meaning = error_map.TABLE.get(_code(error))
                wait = next(waits, None) if meaning is codes.THROTTLING else None
                if wait is None:
                    raise self._failed(error, is_denied=meaning is codes.ACCESS) from error
                self._clock.sleep(wait)
            else:
                return answer

    def _failed(self, error: Exception, *, is_denied: bool) -> MailoutError:
        remedy = "Run it again when that has passed or is put right: doing it twice is harmless."
        if is_denied:
            remedy = "Allow ses:ListSuppressedDestinations and ses:PutSuppressedDestination."
        so_far = f"After {self._done:,} address{'' if self._done == 1 else 'es'}: " if self._done else ""
        return MailoutError(f"{so_far}SES: {error}", remedy=remedy)


def _code(error: ClientError | BotoCoreError) -> str:
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""
