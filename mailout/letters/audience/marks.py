"""What a cell says about whether a person wants mail. Not understood is never "yes"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from functools import lru_cache

from mailout.base.addresses import TRIM
from mailout.letters.audience import export_words as words


class Meaning(IntEnum):
    """Rising: of several marks in one row, the highest counts."""

    ACTIVE = 0
    UNCONFIRMED = 1  # never said yes: not imported
    UNKNOWN = 2  # nobody knows what it says: a person has to tell
    SKIPPED = 3  # a person said to leave these out
    UNSUBSCRIBED = 4
    BOUNCED = 5


BY_NAME: Mapping[str, Meaning] = {
    "active": Meaning.ACTIVE,
    "unsubscribed": Meaning.UNSUBSCRIBED,
    "bounced": Meaning.BOUNCED,
    "skip": Meaning.SKIPPED,
}
"""What `--map-status WORD=…` may say."""

_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{9,13}|\b(19|20)\d\d\b")


def word_key(written: str) -> str:
    """As `columns.key`, but a cell without letters (`1.0`, `✓`, `-`) is taken as it is."""
    text = unicodedata.normalize("NFKD", written.strip(TRIM)).casefold()
    if not any(sign.isalpha() for sign in text):
        return text
    return "".join(sign for sign in text if sign.isalnum())


def _keys(of: Iterable[str]) -> frozenset[str]:
    return frozenset(word_key(word) for word in of)


_STATUS = {name: Meaning[to.upper()] for to, all_ in words.STATUS_WORDS.items() for name in _keys(all_)}
_YES, _NO = _keys(words.ANSWERS["yes"]), _keys(words.ANSWERS["no"])


def word_meaning(written: str) -> Meaning | None:
    """Of a status word in any of the six languages; None: not one of them."""
    return _STATUS.get(word_key(written))


def is_yes_or_no(written: str) -> bool:
    return _yes(written) is not None


def _yes(written: str) -> bool | None:
    """Also of "Yes, please" and "No, thanks"."""
    name = word_key(written)
    if name in _YES or name in _NO:
        return name in _YES
    first = word_key(re.split(r"[\s,.;:!]+", written.strip(TRIM), maxsplit=1)[0])
    if len(first) > 1 and (first in _YES or first in _NO):
        return first in _YES
    return None


@lru_cache(maxsize=65536)
def meaning(field: str, written: str) -> Meaning:
    """Of one cell in a column of this field."""
    return _OF[field](written.strip(TRIM))


def _of_status(cell: str) -> Meaning:
    if not cell:
        return Meaning.ACTIVE  # a file may name only the exceptions; the plan counts these
    return _STATUS.get(word_key(cell), Meaning.UNKNOWN)


def _of_opted_in(cell: str) -> Meaning:
    if not cell:
        return Meaning.UNCONFIRMED
    if (known := word_meaning(cell)) is not None:
        return known
    answer = _yes(cell)
    if answer is None:
        return Meaning.ACTIVE if _DATE.search(cell) else Meaning.UNKNOWN
    return Meaning.ACTIVE if answer else Meaning.UNSUBSCRIBED


def _of_opted_out(cell: str, then: Meaning = Meaning.UNSUBSCRIBED) -> Meaning:
    against = cell and word_key(cell) not in _NO and word_meaning(cell) is not Meaning.ACTIVE
    return then if against else Meaning.ACTIVE


def _of_confirmed(cell: str) -> Meaning:
    if not cell or _yes(cell) is False:
        return Meaning.UNCONFIRMED
    if (known := word_meaning(cell)) is not None:
        return known
    return Meaning.ACTIVE if _yes(cell) or _DATE.search(cell) else Meaning.UNKNOWN


_OF: Mapping[str, Callable[[str], Meaning]] = {
    "status": _of_status,
    "opted_in": _of_opted_in,
    "opted_out": _of_opted_out,
    "bounced": lambda cell: _of_opted_out(cell, Meaning.BOUNCED),
    "confirmed": _of_confirmed,
    "everybody_unsubscribed": lambda _: Meaning.UNSUBSCRIBED,
    "everybody_bounced": lambda _: Meaning.BOUNCED,
}
