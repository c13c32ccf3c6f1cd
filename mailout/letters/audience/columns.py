"""Which column of a foreign table holds the address, the name, or something of ours; and which one may hold
a wish about mail, so that a person has to be asked what it means."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mailout.base.addresses import TRIM
from mailout.base.errors import UsageError
from mailout.letters.audience.tables import key

ATTRIBUTE, DROP = "attribute", "drop"
LISTS, BOUNCE_TYPE = "lists", "bounce_type"
SILENT = (DROP, "ocd_ids", "bounce_subtype")
"""Whose cells never tell who wants no mail. All others may, e.g. a list called "Unsubscribed"."""
NAMES = ("name", "first_name", "last_name")
"""Kept as attributes under these names, whatever the file calls them."""
PERSONAL = (*NAMES, "from_name")
"""Any word may be a name, so these are asked about only where a refusal stands beside one."""

Cells = Callable[[int], Collection[str]]
"""The different cells of the column at this position."""


@dataclass(frozen=True, slots=True)
class FileColumn:
    """One column of the file and the field that it was recognised as."""

    position: int
    header: str
    field: str  # one of FIELDS


def value_key(cell: str) -> str:
    """By what two cells are the same answer: white space around it and case make no difference."""
    return cell.strip(TRIM).casefold()


def _words(joined: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in joined.split(",") if word.strip()))


_DATA = tomllib.loads(Path(__file__).with_name("column_words.toml").read_text(encoding="utf-8"))
_WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    table: {name: _words(joined) for name, joined in rows.items()} for table, rows in _DATA.items()
}


@lru_cache
def _keys(table: str, name: str) -> tuple[str, ...]:
    return tuple(key(word) for word in _WORDS[table][name])


FIELDS = (*_WORDS["fields"], ATTRIBUTE, DROP)
ONCE = tuple(field for field in _WORDS["fields"] if field not in (*NAMES, "email"))
_FIELD_OF = {name: field for field in _WORDS["fields"] for name in _keys("fields", field)}
_FIELD_OF["snoozeduntil"] = DROP  # of our own export: a pause is its owner's act, and no import's
_EMAIL_RANK = {name: rank for rank, name in enumerate(_keys("fields", "email"))}
_ADDRESS = re.compile(r"[^\s@]@[^\s@]+\.[^\s@]")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{9,13}\Z|\b(19|20)\d\d\b.*\d")
_LINK = re.compile(r"(?i)(https?://|mailto:|www\.)")
_ANSWERS = frozenset(map(value_key, _WORDS["cells"]["answers"]))
_STATUSES, _PHRASES = frozenset(_keys("cells", "statuses")), _keys("cells", "phrases")


# ── Addresses and names ──


EMAIL_HEADERS = frozenset(_EMAIL_RANK)


def has_address(cell: str) -> bool:
    return _ADDRESS.search(cell) is not None


def _is_word(cell: str) -> bool:
    return not has_address(cell)


def looks_like_a_row(header: Sequence[str]) -> bool:
    """An address where a header should be, and no header for it."""
    return any(map(has_address, header)) and not EMAIL_HEADERS.intersection(map(key, header))


def recognise(headers: Sequence[str], cells: Cells, asked: Mapping[str, str]) -> list[FileColumn]:
    """Every column with its field. `asked` (header → field) comes from a person and goes before all else.

    Several may hold addresses: the first of the result's is the address, the next where it is empty.
    """
    wanted = {at: asked[header] for at, header in enumerate(headers) if header in asked}
    columns = [
        FileColumn(at, header, wanted.get(at) or _FIELD_OF.get(key(header), ATTRIBUTE))
        for at, header in enumerate(headers)
    ]
    columns = _with_addresses(columns, cells, wanted)
    several = sum(column.field == "email" for column in columns) > 1

    def order(column: FileColumn) -> tuple[bool, bool, tuple[int, int]]:
        poor = several and column.field == "email" and _mostly(_is_word, cells(column.position))
        return (column.position not in wanted, poor, _rank(column))

    seen: set[str] = set()
    result = []
    for column in sorted(columns, key=order):
        if column.field in seen and column.field in ONCE:
            raise UsageError(f"There is more than one column {column.field}.", remedy="Rename or remove one.")
        if column.field in seen and column.field in NAMES:
            column = FileColumn(column.position, column.header, ATTRIBUTE)
        seen.add(column.field)
        result.append(column)
    return result


def _rank(column: FileColumn) -> tuple[int, int]:
    """Addresses by how surely the header means one, all others as they stand in the file."""
    of_email = _EMAIL_RANK.get(key(column.header), -1) if column.field == "email" else len(_EMAIL_RANK)
    return (of_email, column.position)


def _with_addresses(columns: list[FileColumn], cells: Cells, wanted: Mapping[int, str]) -> list[FileColumn]:
    """A column headed `Mail` may hold a yes or a no: an attribute, if the addresses are in another one."""

    def bare(column: FileColumn) -> bool:
        filled = [cell for cell in cells(column.position) if cell.strip(TRIM)]
        return column.position not in wanted and bool(filled) and not any(map(has_address, filled))

    without = [c.position for c in columns if c.field == "email" and bare(c)]
    if all(c.position in without for c in columns if c.field == "email"):
        columns = _found_by_cells(columns, cells, wanted)
    if all(c.position in without for c in columns if c.field == "email"):
        return columns
    return [FileColumn(c.position, c.header, ATTRIBUTE) if c.position in without else c for c in columns]


def _found_by_cells(
    columns: Sequence[FileColumn], cells: Cells, wanted: Mapping[int, str]
) -> list[FileColumn]:
    """No header says where the addresses are: the column that is full of them."""
    others = [column for column in columns if column.field == ATTRIBUTE and column.position not in wanted]
    full = [column for column in others if _mostly(has_address, cells(column.position))]
    if len(full) > 1:
        raise UsageError(
            f"There is more than one column of addresses: {', '.join(column.header for column in full)}.",
            remedy=f'Say which one it is: --map "{full[0].header}=email"',
        )
    return [FileColumn(c.position, c.header, "email") if c in full else c for c in columns]


def _mostly(holds: Callable[[str], bool], cells: Collection[str]) -> bool:
    filled = [cell for cell in cells if cell.strip(TRIM)]
    return bool(filled) and 2 * sum(map(holds, filled)) > len(filled)


# ── Wishes ──


def may_hold_wishes(column: FileColumn, cells: Collection[str]) -> bool:
    """Whether a person must be asked what this column means. Too often is better than once too little."""
    if column.field == "email":  # a second one: what stands there beside addresses
        words = list(filter(_is_word, cells))
        if _mostly(has_address, cells):
            return _refuses({value_key(cell) for cell in words})
        cells = words
    header, filled = column.header, {value_key(cell) for cell in cells} - {""}
    if column.field == LISTS:  # a cell may have several
        return _refuses({value_key(one) for cell in cells for one in re.split(r"[|;]", cell)} - {""})
    if column.field == BOUNCE_TYPE:
        return bool(filled)
    if column.field in PERSONAL:
        return next(refusals(cells), None) is not None
    if not filled or all(_LINK.match(cell) for cell in filled):
        return False
    if _is_about(header, "channels"):
        return False
    if _is_about(header, "matters") and not _speaks_of_leaving(header, filled):
        return False
    if _smells(header, "asks"):
        return True
    if len(filled) <= 3 and filled <= _ANSWERS:
        return True
    if len(filled) < len(set(map(value_key, cells))) and all(map(_DATE.search, filled)):
        return True  # dates beside blanks
    return _refuses(filled)


def _refuses(cells: Collection[str]) -> bool:
    """A status as a whole cell, or words of refusal in one."""
    text = _folded(cells)
    return not _STATUSES.isdisjoint(text.split("\n")) or any(phrase in text for phrase in _PHRASES)


def _speaks_of_leaving(header: str, cells: Collection[str]) -> bool:
    text = _folded([header, *cells])
    return any(phrase in text for phrase in _PHRASES)


def _folded(cells: Collection[str]) -> str:
    """All at once: there may be a million."""
    return re.sub(r"[^\w\n]|_", "", unicodedata.normalize("NFKD", "\n".join(cells)).casefold())


def refusals(cells: Iterable[str]) -> Iterator[str]:
    """Those that hold words of refusal, as words of their own: `Bo (unsubscribed)`, but nobody called No."""
    written = list(cells)
    text = _plain("\n".join(cell.replace("\n", " ") for cell in written))
    begins, unspaced = _beginnings()
    if begins.isdisjoint({word[:4] for word in re.findall(r"[^\W_]+", text)}) and not any(
        one in text for one in unspaced
    ):
        return
    search = _refusal().search
    yield from (cell for cell, line in zip(written, text.split("\n"), strict=True) if search(line))


def _plain(text: str) -> str:
    """Without case and accents."""
    return re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text).casefold())


@lru_cache
def _beginnings() -> tuple[frozenset[str], tuple[str, ...]]:
    """How a refusal begins, up to four letters of a word; and those that are written without spaces."""
    said = [_plain(one) for name in ("statuses", "phrases") for one in _WORDS["cells"][name]]
    begins = (begin[:4] for one in said for begin in (re.split(r"[\W_]+", one)[0], key(one)))
    return frozenset(begins), tuple(filter(_is_unspaced, said))


@lru_cache
def _refusal() -> re.Pattern[str]:
    def any_of(words: Iterable[str]) -> str:
        return "|".join(r"[\W_]*".join(re.split(r"[\W_]+", word)) for word in words)

    statuses, namesakes, phrases = (
        set(map(_plain, _WORDS["cells"][name])) for name in ("statuses", "namesakes", "phrases")
    )
    unspaced = set(filter(_is_unspaced, phrases))
    return re.compile(
        rf"(?<![^\W_])(?:(?:{any_of(statuses - namesakes)})(?![^\W_])|{any_of(phrases - unspaced)})"
        rf"|[(\[{{]\s*(?:{any_of(namesakes)})\s*[)\]}}]|{any_of(unspaced)}"
    )


def _is_unspaced(word: str) -> bool:
    return word[0] >= "\u1100"  # Korean, Japanese, Chinese


def name_may_tell(name: str) -> bool:
    """Whether the name of a file, a sheet or a folder may tell that its people do not want mail."""
    return _smells(name, "names")


def _smells(name: str, table: str) -> bool:
    parts, words = _keys(table, "parts"), _keys(table, "words")
    return any(part in key(name) for part in parts) or bool(set(_split(name)) & set(words))


def _is_about(header: str, others: str) -> bool:
    """Another channel, or another matter, than mail."""
    words, whole = _split(header), key(header)
    about = any(
        word.startswith(part) if len(part) > 4 else word in (part, f"{part}s")
        for part in _keys("never", others)
        for word in (*words, whole)
    )
    return about and not any(part in whole for part in _keys("never", "email"))


def _split(name: str) -> list[str]:
    """The words of `HasOptedOutOfFax`, `left_on` and `Left on`."""
    spaced = re.sub(r"(?<=[a-zа-я])(?=[A-ZА-Я])", " ", unicodedata.normalize("NFC", name))
    return [word for part in re.split(r"[\W_]+", spaced) if (word := key(part))]


def unique(headers: Iterable[str]) -> list[str]:
    """Headers by which each column can be named: an empty one and one that comes again get a number."""
    seen: set[str] = set()
    result = []
    for at, header in enumerate(headers, start=1):
        name, n = header or f"column {at}", 2
        while name in seen:
            name, n = f"{header or f'column {at}'} {n}", n + 1
        seen.add(name)
        result.append(name)
    return result
