"""What an import would do, as a value that the command line prints and a page can show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mailout.base.addresses import Dropped
from mailout.base.errors import UsageError
from mailout.letters.audience.marks import Meaning

IN_WORDS: Mapping[Dropped, str] = {
    Dropped.EMPTY: "no address",
    Dropped.NO_AT: "no @ in the address",
    Dropped.DISPLAY_NAME: "a name beside the address",
    Dropped.BAD_LOCAL: "wrong before the @",
    Dropped.NON_ASCII_LOCAL: "a letter before the @ that mail services refuse",
    Dropped.BAD_DOMAIN: "wrong after the @",
    Dropped.TOO_LONG: "too long for an address",
    Dropped.DUPLICATE: "there already (merged into one)",
    Dropped.BAD_STATUS: "a status that nobody knows, or that you chose to leave out",
    Dropped.BAD_ROW: "more fields than the file has columns",
    Dropped.UNCONFIRMED: "not confirmed, or never subscribed",
}


@dataclass(frozen=True, slots=True)
class Recognised:
    """A column of the file and what it was taken for."""

    column: str
    field: str


@dataclass(frozen=True, slots=True)
class StatusWord:
    """A word of the file about wanting mail, what it was taken for, and in how many rows."""

    column: str
    word: str
    meaning: Meaning
    rows: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A file understood, and nothing written yet. `people` and `left_out` with `merged` make up `rows`."""

    file: str
    rows: int  # in the file, the blank ones not counted
    columns: tuple[Recognised, ...]
    attributes: tuple[str, ...]  # all other columns, kept under these names
    people: Mapping[str, int]  # by status
    left_out: Mapping[Dropped, int]
    merged: int  # rows that repeat an address
    words: tuple[StatusWord, ...]
    encoding: str | None = None
    sample: str | None = None
    sheet: str | None = None

    @property
    def unknown(self) -> tuple[StatusWord, ...]:
        return tuple(word for word in self.words if word.meaning is Meaning.UNKNOWN)

    def require_understood(self) -> None:
        """Nobody becomes active by not being understood: an unknown word stops the import."""
        if not self.unknown:
            return
        found = ", ".join(f"“{word.word}” ({word.rows:,})" for word in self.unknown[:10])
        more = f" and {len(self.unknown) - 10:,} more" if len(self.unknown) > 10 else ""
        first = self.unknown[0]
        columns = " and ".join(dict.fromkeys(word.column for word in self.unknown))
        options = " ".join(f'--map-status "{word.word}=unsubscribed"' for word in self.unknown[:3])
        raise UsageError(
            f"{self.file}: the column {columns} has words that are no known status: {found}{more}.",
            remedy=f"Say what each means (active, unsubscribed, bounced, skip): {options}."
            f' If the column is about something else: --map "{first.column}=attribute".',
        )

    def summary(self) -> str:
        """`Email Address → email, STATUS → status: 1,204 active, 31 unsubscribed, 4 left out`."""
        columns = ", ".join(
            one.field if one.column == one.field else f"{one.column} → {one.field}" for one in self.columns
        )
        counts = [f"{n:,} {status}" for status, n in self.people.items()] or ["nobody"]
        if left := sum(self.left_out.values()):
            counts.append(f"{left:,} left out")
        if self.merged:
            counts.append(f"{self.merged:,} merged")
        return f"{columns}: {', '.join(counts)}"

    def details(self) -> list[str]:
        """What a person should see before saying yes, a line each."""
        lines = []
        if self.sheet is not None:
            lines.append(f"Sheet: {self.sheet}")
        if self.sample is not None:
            lines.append(f"Read as {self.encoding}; for instance: {self.sample}")
        words = [word for word in self.words if word.meaning is not Meaning.UNKNOWN]
        if 0 < len(words) <= 20:
            said = (f"{word.word or '(empty)'} → {_MEANS[word.meaning]} ({word.rows:,})" for word in words)
            lines.append("Statuses: " + ", ".join(said))
        if self.attributes:
            lines.append("Kept as attributes: " + ", ".join(self.attributes))
        lines += [f"{n:,} left out: {IN_WORDS[reason]}" for reason, n in self.left_out.items()]
        return lines

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        data = asdict(self)
        words = [word | {"meaning": _MEANS[word["meaning"]]} for word in data.pop("words")]
        return data | {"status_words": words}


_MEANS: Mapping[Meaning, str] = {
    Meaning.ACTIVE: "active",
    Meaning.UNCONFIRMED: "left out",
    Meaning.UNKNOWN: "unknown",
    Meaning.SKIPPED: "left out",
    Meaning.UNSUBSCRIBED: "unsubscribed",
    Meaning.BOUNCED: "bounced",
}
