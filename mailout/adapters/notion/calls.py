"""Calls to one workspace: one place that waits, tries again, and turns every failure into one of ours."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import httpx
from notion_client import Client
from notion_client.errors import HTTPResponseError, InvalidPathParameterError, NotionClientErrorBase

from mailout.base.clock import Clock
from mailout.base.errors import (
    SettingsError,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceUnavailable,
)
from mailout.base.retries import retried, retry_after_seconds
from mailout.base.settings import Settings
from mailout.insight.page_status.state import PageStatus
from mailout.letters.content.notion.page import KINDS, PROPERTY_NAMES

log = logging.getLogger(__name__)

API_VERSION = "2026-03-11"
BASE_URL = "https://api.notion.com"
PAGE_SIZE = 100
STATUS_NAMES: Mapping[str, str] = {status: status.capitalize() for status in PageStatus}
"""What a workspace calls them, unless `NOTION_STATUS_*` says otherwise."""

TOO_FAST = 429
"""The one answer that promises that nothing was done: even a creation may be tried again."""
PASSING = frozenset({409, 500, 502, 503, 504, 529})
MAX_WAIT = 60.0
PASSES = "This usually passes within minutes: then try again."

Json = Mapping[str, Any]
FAILURES = (NotionClientErrorBase, httpx.HTTPError, json.JSONDecodeError, UnicodeDecodeError)
"""All that a call may raise: the client lets httpx's errors through, and an answer may not be JSON at all."""


@dataclass(frozen=True, slots=True)
class NotionConfig:
    """What is needed to talk to one workspace."""

    token: str
    db_mailouts: str | None = None
    db_errors: str | None = None
    base_url: str | None = None
    properties: Mapping[str, str] = field(default_factory=lambda: PROPERTY_NAMES)
    statuses: Mapping[str, str] = field(default_factory=lambda: STATUS_NAMES)  # by `PageStatus`
    zone: tzinfo = UTC  # where a `send_at` without a time has its midnight
    timeout: float = 30.0
    attempts: int = 5

    @classmethod
    def of(cls, settings: Settings) -> NotionConfig:
        return cls(
            token=settings.notion_token.get_secret_value() if settings.notion_token else "",
            db_mailouts=settings.notion_db_mailouts,
            db_errors=settings.notion_db_errors,
            base_url=settings.notion_base_url,
            properties={key: getattr(settings, f"notion_prop_{key}") for key in KINDS},
            statuses={status: getattr(settings, f"notion_status_{status}") for status in PageStatus},
            zone=ZoneInfo(settings.send_timezone),
        )


class NotionCalls:
    """A client that tries again by our rules. Its own retries are off: they know neither 502 nor 529."""

    def __init__(self, config: NotionConfig, clock: Clock) -> None:
        self._clock = clock
        self._attempts = config.attempts
        self._client = Client(
            auth=config.token,
            base_url=_origin(config.base_url or BASE_URL),
            timeout_ms=int(config.timeout * 1000),
            notion_version=API_VERSION,
            retry=False,
            # Without a logger of ours the client adds a handler at every start.
            logger=logging.getLogger("notion_client"),
            log_level=logging.ERROR,
        )

    def close(self) -> None:
        self._client.close()

    def make(self, what: str, call: Callable[[Client], Any], *, repeatable: bool = True) -> Any:
        """One call's answer. `repeatable=False`: a second one would do the thing twice."""

        def attempt() -> Any:
            try:
                answer = call(self._client)
            except FAILURES as failure:
                raise _error(failure, what) from failure
            if not isinstance(answer, Mapping):
                said = f"{_capital(what)}: no usable answer from Notion (no object)."
                raise SourceUnavailable(said, remedy=PASSES)
            return answer

        def pause_after(error: Exception, attempts: int) -> float | None:
            if not isinstance(error, SourceUnavailable) or attempts == self._attempts:
                return None
            if not (repeatable or _too_fast(error.__cause__)):
                return None
            wait = self._wait(error.__cause__, attempts)
            log.info("%s Trying again in %.0f s (attempt %d)", error.message, wait, attempts)
            return wait

        return retried(attempt, pause_after, self._clock)

    def pages(self, what: str, call: Callable[[Client, dict[str, Any]], Any]) -> Iterator[Json]:
        """Every result of a list, over all of its pages. A page may hold fewer than asked for."""
        paging: dict[str, Any] = {"page_size": PAGE_SIZE}
        asked = set[str]()
        while True:
            answer = self.make(what, lambda api: call(api, paging))
            yield from answer.get("results") or ()
            if not answer.get("has_more"):
                return
            following = answer.get("next_cursor")
            if not following or following in asked:  # half a letter, or twice the same, is no letter
                raise SourceUnavailable(
                    f"{_capital(what)}: Notion says that there is more, and not where.", remedy=PASSES
                )
            asked.add(following)
            paging["start_cursor"] = following

    def _wait(self, failure: BaseException | None, attempt: int) -> float:
        """What Notion asks for, within reason; else 1, 2, 4, 8 seconds."""
        asked = failure.headers.get("retry-after") if isinstance(failure, HTTPResponseError) else None
        return min(MAX_WAIT, retry_after_seconds(asked, self._clock.now()) or float(2 ** (attempt - 1)))


def _origin(base_url: str) -> str:
    """The client adds `/v1/` itself."""
    origin = base_url.strip().rstrip("/").removesuffix("/v1")
    if not origin.startswith(("http://", "https://")):
        raise SettingsError(
            f"NOTION_BASE_URL is not an address: {base_url!r}.",
            remedy=f"Leave it out, or set it to {BASE_URL}.",
        )
    return origin


def _capital(what: str) -> str:
    return what[:1].upper() + what[1:]


def _too_fast(failure: BaseException | None) -> bool:
    return isinstance(failure, HTTPResponseError) and failure.status == TOO_FAST


def _error(failure: Exception, what: str) -> SourceError:
    """What went wrong, in our words. Notion's own are kept: they name the property or the page."""
    what = _capital(what)
    if not isinstance(failure, HTTPResponseError):
        if isinstance(failure, InvalidPathParameterError):
            return SourceError(f"{what}: {failure}.")
        reason = str(failure) or type(failure).__name__
        return SourceUnavailable(f"{what}: no usable answer from Notion ({reason}).", remedy=PASSES)
    said = f"{what}: Notion answered {failure.status} ({failure})."
    match failure.status:
        case 401:
            return SourceRefused(said, remedy="Check NOTION_TOKEN.")
        case 403:
            return SourceRefused(said, remedy="Give the integration the capability it lacks.")
        case 404:
            return SourceNotFound(
                said, remedy="Check the id, and share the page with the integration (••• → Connections)."
            )
        case status if status == TOO_FAST or status in PASSING:
            return SourceUnavailable(said, remedy=PASSES)
        case _:
            return SourceError(said)
