"""Files of a page that cannot be copied just now: waited for, for an hour, and not without a word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mailout.base.error_log import ERROR_TABLE, ErrorRecord, errors
from mailout.base.errors import Abort, AbortCode, SourceUnavailable
from mailout.insight.history import history_rows
from mailout.insight.page_status.updates import PageReports
from mailout.kinds.articles.port import IntakeStore

FILE_HOST_SECONDS = 3_600.0
FILES_AWAITED = "Notion's file host does not answer. The page is read again every minute, for an hour."


@contextmanager
def files_awaited(store: IntakeStore, pages: PageReports, ref: str, asked_at: float | None) -> Iterator[None]:
    """What nobody waits for (`asked_at`) is read again in a minute, with new addresses."""
    try:
        yield
    except SourceUnavailable as away:
        if asked_at is None:
            raise
        last = next(iter(errors(store, ref, limit=1)), None)
        since = same_ask_since(store, ref, 2 * FILE_HOST_SECONDS)
        if last is None or last.message != FILES_AWAITED or last.at < since:
            waits = ErrorRecord(AbortCode.MEDIA_UNAVAILABLE, FILES_AWAITED, stage="content", mailout=ref)
            store.put(ERROR_TABLE, [waits])
            pages.report_errors()
        elif last.at < store.now() - FILE_HOST_SECONDS:
            raise Abort(
                AbortCode.MEDIA_UNAVAILABLE,
                f"Notion's file host has not answered for an hour: {away.message}",
                remedy="Put the file in again, or wait; then send again.",
                for_writer=f"{away.message} Notion's file host has not answered for an hour. Put the file in"
                " again, or wait; then set the page to Ready again.",
            ) from away
        raise


def same_ask_since(store: IntakeStore, ref: str, seconds: float) -> float:
    """Errors of the last `seconds` are about the same ask, unless it became a letter meanwhile."""
    letter = history_rows.latest_of(store, [ref]).get(ref)
    return max(store.now() - seconds, letter.created_at if letter else 0.0)
