"""The text of a file that does not say its encoding: UTF-8, UTF-16, or one of the older one-byte tables."""

from __future__ import annotations

import codecs
import io
import re
from dataclasses import dataclass

from mailout.base.errors import UsageError

SINGLE_BYTE = ["cp1252", "cp1251", "koi8_r", "cp866"]
SAMPLE = 200_000
"""Bytes put to the detection; of lines that have something else than ASCII."""

_NAMES = {"cp1252": "Windows-1252", "cp1251": "Windows-1251", "koi8_r": "KOI8-R"}


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text, the encoding it was read by, and a line that shows whether that was right."""

    text: str
    encoding: str
    sample: str | None


def decode(data: bytes, name: str, asked: str | None = None) -> Decoded:
    encoding = _known(asked) if asked else _encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name} is not {asked or encoding} (byte 0x{error.object[error.start]:02x}).",
            remedy="Leave --encoding out, or name another." if asked else _SAVE,
        ) from None
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        raise UsageError(f"{name} holds a NUL byte: it is not a text file.", remedy=_SAVE)
    spoken = _NAMES.get(encoding, encoding.upper().replace("UTF_", "UTF-").removesuffix("-SIG"))
    return Decoded(text, spoken, None if text.isascii() else _sample_line(text))


_SAVE = 'Save it as UTF-8 (in Excel: "CSV UTF-8"), or name its encoding with --encoding.'


def _known(asked: str) -> str:
    try:
        return codecs.lookup(asked).name
    except LookupError:
        raise UsageError(
            f"There is no encoding {asked}.", remedy="For instance: utf-8, utf-16, windows-1251."
        ) from None


def _encoding(data: bytes) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if without_bom := _utf16_without_bom(data[:4000]):
        return without_bom
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _single_byte(data)
    return "utf-8"


def _utf16_without_bom(start: bytes) -> str | None:
    """Every other byte of Latin text in UTF-16 is NUL."""
    even, odd = start[0::2].count(0), start[1::2].count(0)
    if even + odd < len(start) // 4 or not start:
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _single_byte(data: bytes) -> str:
    """What charset-normalizer finds most likely, if it is possible: short samples mislead it."""
    from charset_normalizer import from_bytes  # here: most files are UTF-8, and it takes long to load

    lines = re.findall(rb"[^\r\n]*[\x80-\xff][^\r\n]*", data[: 20 * SAMPLE])
    sample = b"\n".join(lines)[:SAMPLE]
    found = from_bytes(sample, cp_isolation=SINGLE_BYTE, threshold=1.0).best()
    likely = found.encoding if found is not None and _may_be_cyrillic(sample) else "cp1252"
    for encoding in (likely, "cp1252"):
        try:
            data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin_1"  # decodes every byte


def _may_be_cyrillic(sample: bytes) -> bool:
    """Cyrillic words have no ASCII letters in them; Latin ones with an accent mostly do."""
    whole = len(re.findall(rb"(?<![A-Za-z\x80-\xff])[\x80-\xff]{2,}(?![A-Za-z\x80-\xff])", sample))
    mixed = len(re.findall(rb"[A-Za-z][\x80-\xff]|[\x80-\xff][A-Za-z]", sample))
    return whole > mixed


def _sample_line(text: str) -> str:
    """The first line that the encoding matters for."""
    line = next(line for line in io.StringIO(text) if not line.isascii()).rstrip("\r\n")
    return line if len(line) <= 100 else line[:99] + "…"
