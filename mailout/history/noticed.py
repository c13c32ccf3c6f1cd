"""What was noticed on the way, for the dashboard: pages in Notion, refused requests, Prefect's runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

REFUSALS_KEPT = 100
"""Kinds of refusals, the latest: strangers choose some of the words."""


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """A page in Notion that is a draft or asks to be sent."""

    ref: str
    subject: str
    status: str  # in the database's own words
    is_ready: bool
    is_test: bool = False
    list_key: str | None = None
    send_at: float | None = None
    edited_at: float | None = None


@dataclass(frozen=True, slots=True)
class WrittenPages:
    """The pages as they were read at that moment, the last edited first."""

    read_at: float
    pages: Sequence[WrittenPage]


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was refused for the same reason, counted."""

    path: str
    why: str
    n: int
    first_at: float
    last_at: float


class Noticed(Protocol):
    def keep_written_pages(self, pages: Sequence[WrittenPage]) -> None:
        """These and no others, as of now."""
        ...

    def written_pages(self) -> WrittenPages | None:
        """None: they were never read."""
        ...

    def keep_refusals(self, counts: Mapping[tuple[str, str], int]) -> None:
        """How many more there were, by (path, why); the latest `REFUSALS_KEPT` kinds stay."""
        ...

    def refusals(self, limit: int = 50) -> Sequence[Refusal]:
        """The latest first."""
        ...

    def keep_run(self, mailout_id: str, run_id: str) -> None:
        """Which of Prefect's flow runs sends it; the last one is kept."""
        ...

    def run_of(self, mailout_id: str) -> str | None: ...
