"""One line of the errors table, and the part of the store that keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """One line of the errors database; equal ones are grouped when they are shown."""

    code: str
    message: str
    stage: str  # content, audience, delivery, feedback, report
    provider: str | None = None
    mailout: str | None = None
    email: str | None = None
    attempts: int | None = None
    at: float = 0.0


class ErrorLog(Protocol):
    """The errors table and the dead letters."""

    def record_errors(self, errors: Sequence[ErrorRecord]) -> None: ...
    def errors(self, mailout: str | None = None, limit: int = 100) -> Sequence[ErrorRecord]: ...
    def dead_letters(self, limit: int = 100) -> Sequence[Mapping[str, Any]]: ...
    def get_dead_letter(self, id: str) -> Mapping[str, Any]: ...
    def drop_dead_letter(self, id: str) -> bool:
        """Take it off the list; what it tells of stays as it is. False: there is none."""
        ...
