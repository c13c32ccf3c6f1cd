"""The text of a file that does not say its encoding. Only Unicode can be told for sure; all else is asked."""

from __future__ import annotations

import codecs
import hashlib
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest

from mailout.base.errors import UsageError

USUAL = (
    "cp1252",
    "cp1251",
    "cp1250",
    "koi8_r",
    "cp866",
    "mac_roman",
    "shift_jis",
    "euc_kr",
    "gb18030",
    "big5",
)
SAMPLE_BYTES = 100_000
"""Put to the detection, of lines that have something else than ASCII."""
SHOWN_CHARS = 98

_NAMES = {"cp1252": "Windows-1252", "cp1251": "Windows-1251", "cp1250": "Windows-1250", "koi8_r": "KOI8-R"}
_SAVE = 'Save it as UTF-8 (in Excel: "CSV UTF-8"), or name its encoding with --encoding.'


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text and the encoding it was read by. `readings`: what a line of it would be in each that is
    possible, the likeliest first, if nobody has said which one is right."""

    text: str
    encoding: str
    readings: tuple[tuple[str, str], ...] = ()


def decode(data: bytes, name: str, asked: str | None = None) -> Decoded:
    unicode = _known(asked) if asked else _unicode(data)
    readings = [] if unicode else _readings(data)
    encoding = unicode or readings[0][0]
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name} is not {asked or encoding} (byte 0x{error.object[error.start]:02x}).",
            remedy="Leave --encoding out, or name another." if asked else _SAVE,
        ) from None
    if "\0" in text:
        raise UsageError(f"{name} holds a NUL byte: it is not a text file.", remedy=_SAVE)
    return Decoded(text, _name(encoding), tuple((_name(one), line) for one, line in readings))


def _name(encoding: str) -> str:
    return _NAMES.get(
        encoding, encoding.upper().replace("UTF_", "UTF-").replace("_", "-").removesuffix("-SIG")
    )


def _known(asked: str) -> str:
    try:
        return codecs.lookup(asked).name
    except LookupError:
        raise UsageError(
            f"There is no encoding {asked}.", remedy="For instance: utf-8, utf-16, windows-1251."
        ) from None


def _unicode(data: bytes) -> str | None:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    even, odd = data[:4000:2].count(0), data[1:4000:2].count(0)
    if even + odd >= max(1, min(len(data), 4000) // 4):  # every other byte of Latin text is NUL
        return "utf-16-le" if odd > even else "utf-16-be"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return "utf-8"


def _readings(data: bytes) -> list[tuple[str, str]]:
    """Each possible encoding with what tells it from the others; of those that read the same, the first."""
    from charset_normalizer import from_bytes  # here: most files are UTF-8, and it takes long to load

    lines = re.findall(rb"[^\r\n]*[\x80-\xff][^\r\n]*", data[: 20 * SAMPLE_BYTES])
    likely = from_bytes(b"\n".join(lines)[:SAMPLE_BYTES], threshold=1.0).best()
    texts: dict[bytes, str] = {}
    for encoding in dict.fromkeys([*([likely.encoding] if likely else []), *USUAL, "latin_1"]):
        with suppress(UnicodeError, LookupError):
            texts.setdefault(_digest(data, encoding), encoding)
    found = list(texts.values())
    return list(zip(found, _told_apart(data, found), strict=True))


def _text(data: bytes, encoding: str) -> io.TextIOWrapper:
    """Read piece by piece: a dozen readings of a large file would not fit into memory."""
    return io.TextIOWrapper(io.BytesIO(data), encoding)


def _digest(data: bytes, encoding: str) -> bytes:
    found, text = hashlib.blake2b(), _text(data, encoding)
    while part := text.read(SAMPLE_BYTES):
        found.update(part.encode("utf-8", "surrogatepass"))
    return found.digest()


def _told_apart(data: bytes, encodings: Sequence[str]) -> list[str]:
    """What to show of each reading: the first lines on which they differ, until no two are the same."""
    shown: list[tuple[str, ...]] = [()] * len(encodings)
    for lines in zip(*(_text(data, encoding) for encoding in encodings), strict=False):
        if all(map(str.isascii, lines)):
            continue
        for pieces in zip_longest(*map(_pieces, lines), fillvalue=""):
            more = [(*before, piece) for before, piece in zip(shown, pieces, strict=True)]
            if len(set(more)) > len(set(shown)) or len(encodings) == 1:
                shown = more
            if len(set(shown)) == len(encodings) and shown[0]:
                return [" / ".join(filter(None, one)) for one in shown]
    return [" / ".join(filter(None, one)) for one in shown]


def _pieces(line: str) -> list[str]:
    """A long line in parts that can be shown."""
    line = line.rstrip("\r\n")
    starts = range(0, len(line), SHOWN_CHARS)
    return [
        "…" * (at > 0) + line[at : at + SHOWN_CHARS] + "…" * (at + SHOWN_CHARS < len(line)) for at in starts
    ]
