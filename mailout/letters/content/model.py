"""Content: rendered once, kept by its hash, shared by every message that uses it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MARK_OPEN, MARK_CLOSE = "\ue000", "\ue001"
"""Around a variable's name in content. Private-use characters: `clean` takes them out of what people wrote,
so nothing that a person types can be mistaken for a mark."""
ANY_MARK = f"{MARK_OPEN}[^{MARK_CLOSE}]*{MARK_CLOSE}"
_AS_REFERENCES = re.compile(r"&#(?:x0*e00[01](?![0-9a-f])|0*5734[45](?![0-9]));?", re.IGNORECASE)
UNSHOWABLE = "\ufffd"


def mark(name: str) -> str:
    return f"{MARK_OPEN}{name}{MARK_CLOSE}"


def clean(written: str) -> str:
    """What people wrote, without the two characters that are ours, however they are written."""
    return without_references(written.replace(MARK_OPEN, "").replace(MARK_CLOSE, ""))


def without_references(html: str) -> str:
    """Whoever decodes this HTML gets no mark that was not there. Something takes the place of a reference, or
    what stood around it could make another one."""
    return _AS_REFERENCES.sub(UNSHOWABLE, html) if "&#" in html else html  # mostly not, for each recipient


def in_every_text(value: Any, change: Callable[[str], str]) -> Any:
    """The same JSON, every text in it changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: in_every_text(one, change) for key, one in value.items()}
    return [in_every_text(one, change) for one in value] if isinstance(value, list | tuple) else value


UNSUBSCRIBE_URL = "unsubscribe_url"
PREFERENCES_URL = "preferences_url"
"""Marks of links that differ between recipients."""
VIEW_URL = "view_url"
"""The mark of the letter's page on the web: one for all its readers, known when it is sent."""


@dataclass(frozen=True)
class Segments:
    """Text cut at its marks: literals at even places, variable names at odd ones."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Segments:
        """One half of a mark alone is text like any other."""
        before, *pieces = text.split(MARK_OPEN)
        parts = [before]
        for piece in pieces:
            name, closed, literal = piece.partition(MARK_CLOSE)
            if closed:
                parts += (name, literal)
            else:
                parts[-1] += MARK_OPEN + piece
        return cls(tuple(parts))

    @property
    def names(self) -> tuple[str, ...]:
        return self.parts[1::2]

    def fill(self, values: Mapping[str, str]) -> str:
        return "".join(part if index % 2 == 0 else values[part] for index, part in enumerate(self.parts))


@dataclass(frozen=True)
class Content:
    """A rendered subject, HTML and text, with marks where recipients differ."""

    subject: str
    html: str
    text: str

    @cached_property
    def hash(self) -> str:
        """What it is kept under. NUL separates: it can stand in none of the three."""
        return hashlib.sha256("\0".join((self.subject, self.html, self.text)).encode()).hexdigest()

    @cached_property
    def subject_segments(self) -> Segments:
        return Segments.of(self.subject)

    @cached_property
    def html_segments(self) -> Segments:
        return Segments.of(self.html)

    @cached_property
    def text_segments(self) -> Segments:
        return Segments.of(self.text)
