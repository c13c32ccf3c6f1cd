"""What pages and the errors database do not show yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from mailout.base.error_log import ERRORS, ErrorRecord
from mailout.base.select import Reads, View, every


class DueReport(TypedDict):
    mailout: str
    asked: int


DUE_REPORTS = View("read_due_reports", DueReport, ("mailout",))


def due_reports(store: Reads) -> Mapping[str, int]:
    """Mailouts, and how often they have been asked for: what `report_made` needs."""
    return {row["mailout"]: row["asked"] for row in every(store, DUE_REPORTS)}


def unreported_errors(store: Reads, since: float, limit: int = 100) -> Mapping[int, ErrorRecord]:
    """The oldest first, by their number."""
    found = every(store, ERRORS, {"reported_at": None, "at >=": since}, limit=limit)
    return {error.id: error for error in found}
