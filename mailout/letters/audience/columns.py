"""Which column of a foreign table is which: its header decides, and where that says two things, its cells.

And what a whole row says about whether its person wants mail: of all its marks, the one against it counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from mailout.base.addresses import TRIM
from mailout.base.errors import UsageError
from mailout.letters.audience import export_words as words
from mailout.letters.audience.marks import Meaning, is_yes_or_no, meaning, word_key, word_meaning
from mailout.letters.audience.tables import key

MARKS = frozenset(
    {"status", "opted_in", "opted_out", "bounced", "confirmed", "everybody_unsubscribed", "everybody_bounced"}
)
"""Fields that say whether a person wants mail. A file may have several: the one against mail counts."""

ANSWERS = ("status", "opted_in", "confirmed")
"""Of these, the ones in which a word may be unknown; a person may say what it means."""

ONCE = ("email", "from_name", "lists", "ocd_ids", "bounce_type", "bounce_subtype")
FIELDS = (*words.HEADERS, "attribute", "ignore")
FILE_NAME = "file name"
"""Stands for a column when the name of the file says something about everybody in it."""

Cells = Callable[[int], Collection[str]]
"""The different cells of the column at this position."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the file and the field that it was recognised as."""

    position: int
    header: str
    field: str  # one of FIELDS


def _keys(of: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key(word) for word in of))


_FIELD_OF = {name: field for field, headers in words.HEADERS.items() for name in _keys(headers)}
_EMAIL_RANK = {name: rank for rank, name in enumerate(_keys(words.HEADERS["email"]))}
EMAIL_HEADERS = frozenset(_EMAIL_RANK)
_EMAIL_PERHAPS = frozenset(_keys(words.HEADERS_IF_CELLS_AGREE["email"]))
_STATUS_PERHAPS = frozenset(_keys(words.HEADERS_IF_CELLS_AGREE["status"]))
_PARTS = {to: _keys(words.PARTS_OF_HEADERS[to]) for to in ("opted_out", "status", "opted_in")}
_NOT_ABOUT_MAIL = re.compile(
    r"(?<!\w)(?:"
    + "|".join(re.escape(part) for part in words.PARTS_OF_HEADERS["not_about_mail"])
    + r")(?!\w)"
)


def is_email_header(header: str) -> bool:
    return key(header) in EMAIL_HEADERS


def looks_like_a_row(header: Sequence[str]) -> bool:
    """An address where a header should be, and no header for it."""
    return any(_ADDRESS.search(cell) for cell in header) and not any(map(is_email_header, header))


def recognise(headers: Sequence[str], cells: Cells, asked: Mapping[str, str]) -> list[Column]:
    """Every column with its field. `asked` (header → field) comes from a person and goes before all else."""
    wanted = _wanted(headers, asked)
    columns = [
        Column(at, header, wanted.get(at) or _field(header, at, cells)) for at, header in enumerate(headers)
    ]
    columns = _one_email(columns, cells, set(wanted))
    return _one_of_each_name(columns, set(wanted))


def _wanted(headers: Sequence[str], asked: Mapping[str, str]) -> dict[int, str]:
    found: dict[int, str] = {}
    for header, field in asked.items():
        if field not in FIELDS:
            raise UsageError(
                f"There is no field `{field}` to map {header} to.", remedy=f"There are: {', '.join(FIELDS)}."
            )
        exact = [at for at, name in enumerate(headers) if name == header]
        at = exact or [at for at, name in enumerate(headers) if key(name) == key(header)]
        if not at and header != FILE_NAME:
            raise UsageError(f"The file has no column {header}.", remedy=f"It has: {', '.join(headers)}.")
        found.update(dict.fromkeys(at, field))
    return found


def _field(header: str, at: int, cells: Cells) -> str:
    name = key(header)
    if field := _FIELD_OF.get(name):
        return field
    if name in _STATUS_PERHAPS:
        return "status" if _speaks_of_status(cells(at)) else "attribute"
    if _NOT_ABOUT_MAIL.search(re.sub(r"[\W_]+", " ", header).casefold()):
        return "attribute"
    for field, parts in _PARTS.items():
        if any(part in name for part in parts):
            if field == "opted_out":
                return field
            if field == "status" and _speaks_of_status(cells(at)):
                return field
            if field == "opted_in" and _answers(cells(at)):
                return field
    return "attribute"


def _speaks_of_status(cells: Collection[str]) -> bool:
    """Every cell is a status; or one is a status that ends mail, and then the others are asked about."""
    meanings = {word_meaning(cell) for cell in cells if cell.strip(TRIM)}
    against = meanings & {Meaning.UNSUBSCRIBED, Meaning.BOUNCED, Meaning.UNCONFIRMED}
    return bool(against) or (bool(meanings) and None not in meanings)


def _answers(cells: Collection[str]) -> bool:
    return any(is_yes_or_no(cell) for cell in cells) or _speaks_of_status(cells)


def _one_email(columns: Sequence[Column], cells: Cells, wanted: set[int]) -> list[Column]:
    """The one column of addresses; the others become attributes, unless a person has to choose."""
    found = [column for column in columns if column.field == "email"]
    asked = [column for column in found if column.position in wanted]
    chosen = asked or _best(found) or _with_addresses(columns, cells)
    if len(chosen) > 1:
        names = ", ".join(column.header for column in chosen)
        raise UsageError(
            f"There is more than one column email: {names}.",
            remedy=f'Say which one it is: --map "{chosen[0].header}=email"'
            if len({column.header for column in chosen}) > 1
            else "Rename or remove one.",
        )
    return [
        Column(column.position, column.header, "email")
        if column in chosen
        else Column(column.position, column.header, "attribute")
        if column.field == "email"
        else column
        for column in columns
    ]


def _best(found: Sequence[Column]) -> list[Column]:
    ranks = [_EMAIL_RANK.get(key(column.header), len(_EMAIL_RANK)) for column in found]
    return [column for column, rank in zip(found, ranks, strict=True) if rank == min(ranks)]


def _with_addresses(columns: Sequence[Column], cells: Cells) -> list[Column]:
    """No header says email: a column whose header may mean it, or any column, if it is full of addresses."""
    others = (column for column in columns if column.field == "attribute")
    full = [column for column in others if _addresses(cells(column.position))]
    likely = [column for column in full if key(column.header) in _EMAIL_PERHAPS]
    return likely or full


def _addresses(cells: Collection[str]) -> bool:
    filled = [cell for cell in cells if cell.strip(TRIM)]
    return bool(filled) and 2 * sum(bool(_ADDRESS.search(cell)) for cell in filled) > len(filled)


_ADDRESS = re.compile(r"[^\s@]@[^\s@]+\.[^\s@]")


def _one_of_each_name(columns: Sequence[Column], wanted: set[int]) -> list[Column]:
    """Names come once: of `Name` and `Full name` the first stands. Our own columns may not come twice."""
    seen: dict[str, Column] = {}
    result = []
    for column in sorted(columns, key=lambda column: column.position not in wanted):
        if column.field in seen and column.field in ONCE:
            raise UsageError(f"There is more than one column {column.field}.", remedy="Rename or remove one.")
        if column.field in seen and column.field in ("name", "first_name", "last_name"):
            column = Column(column.position, column.header, "attribute")
        seen.setdefault(column.field, column)
        result.append(column)
    return sorted(result, key=lambda column: column.position)


@lru_cache(maxsize=64)
def file_name_meaning(name: str) -> Meaning | None:
    """What the name of a file says about everybody in it: `unsubscribed_members_export_1a2b.csv`."""
    parts = {key(part) for part in re.split(r"[\W_]+", unicodedata.normalize("NFC", name))}
    for to, names in words.FILE_NAMES.items():
        if parts & set(_keys(names)):
            return Meaning[to.upper()]
    return None


class RowMarks:
    """What the columns about wanting mail say of each row, and every word with what it was taken for."""

    def __init__(
        self, columns: Sequence[Column], chosen: Mapping[str, Meaning], of_file: Meaning | None
    ) -> None:
        self.columns = [column for column in columns if column.field in MARKS]
        self.chosen = {word_key(word): to for word, to in chosen.items()}
        self.of_file = of_file or Meaning.ACTIVE
        self.words: Counter[tuple[str, str, Meaning]] = Counter()

    def read(self, rows: pl.DataFrame) -> pl.Series:
        """The strongest mark of each row, as a `Meaning`."""
        found = [pl.repeat(int(self.of_file), rows.height, dtype=pl.Int8, eager=True)]
        for column in self.columns:
            counts = rows[str(column.position)].value_counts()
            means = {cell: self._meaning(column, cell) for cell in counts.to_series(0)}
            for cell, n in counts.iter_rows() if column.field in ANSWERS else ():
                self.words[column.header, cell.strip(TRIM), means[cell]] += n
            cells = rows[str(column.position)]
            found.append(cells.replace_strict(means, default=int(Meaning.UNKNOWN), return_dtype=pl.Int8))
        return pl.DataFrame([s.alias(str(n)) for n, s in enumerate(found)]).max_horizontal()

    def _meaning(self, column: Column, cell: str) -> Meaning:
        if column.field in ANSWERS and (chosen := self.chosen.get(word_key(cell))) is not None:
            return chosen
        return meaning(column.field, cell)
