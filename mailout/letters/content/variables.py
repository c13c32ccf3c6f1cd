r"""Variables in what people write: `{{ first_name }}`, `{{ first_name | friend }}`; `\{{` is a literal brace.

Each becomes a mark in the content, so a mailout stays one content for everybody. A recipient's values are
put in once, escaped for the place where they stand; nothing that anybody wrote is ever run as a template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from html import escape
from itertools import accumulate, pairwise
from urllib.parse import quote, unquote

from mailout.letters.content.document import one_line
from mailout.letters.content.model import MARK_CLOSE, MARK_OPEN, Content, Segments, clean, mark

_NAME = r"[^\W\d_][\w \u00a0.\-]{0,63}"
_SPACES = r"[ \t\u00a0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff]*"
"""What word processors and keyboards put between words; none of it can be told from a space."""
_INSIDE = rf"{_SPACES}({_NAME}?){_SPACES}(?:\|([^{{}}\n]*))?"
_WRITTEN = re.compile(rf"\\\{{\{{|\{{\{{{_INSIDE}\}}\}}")
_MEANT = re.compile(rf"\{{\{{?{_INSIDE}\}}\}}?")
_IN_ADDRESS = re.compile(r"(?:\{\{|%7B%7B)(.{0,600}?)(?:\}\}|%7D%7D)", re.IGNORECASE)
_LITERAL = re.compile(r"\\(\{\{[^{}]{0,80}\}\}?)")
_HIDDEN = re.compile(rf"{MARK_OPEN}(\d+){MARK_CLOSE}")
_HIDDEN_IN_ADDRESS = re.compile(rf"(?:{MARK_OPEN}|%EE%80%80)(\d+)(?:{MARK_CLOSE}|%EE%80%81)")
_TAG = re.compile(r'(<[a-zA-Z/][^<>"]*(?:"[^"]*"[^<>"]*)*>)')


class VariablePlace(StrEnum):
    """Where a variable stands, which decides how its value is escaped."""

    TEXT = "var"  # subject and text
    HTML = "html"
    ADDRESS = "url"  # percent-encoded: safe in HTML and in text


_MARKED = re.compile(rf"{MARK_OPEN}((?:{'|'.join(VariablePlace)}):[^{MARK_CLOSE}]*){MARK_CLOSE}")


@dataclass(frozen=True, slots=True)
class Variable:
    """One use of an attribute."""

    name: str
    fallback: str | None = None  # None: whoever lacks it cannot be written to
    place: VariablePlace = VariablePlace.TEXT

    @property
    def key(self) -> str:
        """What stands between the two characters of its mark; plain ASCII and letters in any context."""
        fallback = "" if self.fallback is None else f"|{quote(self.fallback, safe='')}"
        return f"{self.place}:{self.name}{fallback}"

    @property
    def written(self) -> str:
        """As its author wrote it, more or less."""
        return f"{{{{ {self.name}{'' if self.fallback is None else f' | {self.fallback}'} }}}}"

    @classmethod
    def of_key(cls, key: str) -> Variable | None:
        """None: a mark that is no variable."""
        place, colon, rest = key.partition(":")
        if not colon or place not in set(VariablePlace):
            return None
        name, bar, fallback = rest.partition("|")
        return cls(name, unquote(fallback) if bar else None, VariablePlace(place))


# ── From what is written to marks ────────────────────────────────────────────────────────────────


def marked(written: str) -> str:
    """Plain text with its variables as marks. What it holds of our own characters must be gone before."""
    return _WRITTEN.sub(_stands_for, written)


def gathered(pieces: Sequence[str]) -> list[str]:
    """The same words in as many pieces, each variable whole in the piece in which it begins."""
    text, ends = "".join(pieces), list(accumulate(map(len, pieces)))
    for found in _WRITTEN.finditer(text):
        ends = [found.end() if found.start() < end < found.end() else end for end in ends]
    return [text[begin:end] for begin, end in pairwise((0, *ends))]


def meant_variable(unfilled: str) -> Variable | None:
    """What somebody wanted to write who forgot a brace, or changed the style in the middle."""
    found = _MEANT.search(unfilled)
    return _variable(found) if found else None


def marked_address(address: str) -> str:
    """A link with its variables as marks. They are percent-encoded, so they cannot change where it leads."""

    def put(found: re.Match[str]) -> str:
        written = _WRITTEN.fullmatch(f"{{{{{unquote(found[1])}}}}}")
        return mark(_variable(written, VariablePlace.ADDRESS).key) if written else found[0]

    return _IN_ADDRESS.sub(put, address)


def literal_braces(*written: str) -> frozenset[str]:
    r"""What stands behind `\{{`, with its braces: meant to be read, so nobody need be told of it."""
    return frozenset(" ".join(found.split()) for text in written for found in _LITERAL.findall(text))


def marked_for_html(html: str) -> str:
    """Finished HTML: values must be escaped from here on."""
    return html.replace(f"{MARK_OPEN}{VariablePlace.TEXT}:", f"{MARK_OPEN}{VariablePlace.HTML}:")


def _stands_for(found: re.Match[str]) -> str:
    return "{{" if found[1] is None else mark(_variable(found).key)


def _variable(found: re.Match[str], place: VariablePlace = VariablePlace.TEXT) -> Variable:
    return Variable(
        found[1].replace("\u00a0", " ").strip(), None if found[2] is None else found[2].strip(), place
    )


class HiddenVariables:
    """The variables of one text in a markup language: hidden while it is read, so that no character of them
    means anything there (a `|` in a table), and put back where they stand in words. Code keeps them as
    written."""

    def __init__(self) -> None:
        self._found: list[re.Match[str]] = []

    def hide(self, written: str) -> str:
        """`written` must hold none of our own characters."""

        def number(found: re.Match[str]) -> str:
            self._found.append(found)
            return mark(str(len(self._found) - 1))

        return _WRITTEN.sub(number, written)

    def in_address(self, address: str) -> str:
        """Of a link or a picture, whether it was percent-encoded meanwhile or not."""

        def put(found: re.Match[str]) -> str:
            original = self._found[int(found[1])]
            if original[1] is None:
                return "%7B%7B"
            return mark(_variable(original, VariablePlace.ADDRESS).key)

        return _HIDDEN_IN_ADDRESS.sub(put, address)

    def as_written(self, text: str) -> str:
        """For a finding, which quotes what its author wrote."""
        return as_written(_HIDDEN_IN_ADDRESS.sub(lambda found: self._found[int(found[1])][0], text))

    def show(self, html: str) -> str:
        """In well-formed HTML: marks in words and attributes, the author's own letters inside code."""
        parts, code = [], 0

        def put(found: re.Match[str]) -> str:
            original = self._found[int(found[1])]
            return escape(original[0], quote=False) if code else _stands_for(original)

        for part in _TAG.split(html):
            if part.startswith(("<code", "<pre")):
                code += 1
            elif part.startswith(("</code", "</pre")):
                code -= 1
            parts.append(_HIDDEN.sub(put, part))
        return "".join(parts)


# ── From marks to one recipient's mail ───────────────────────────────────────────────────────────


@lru_cache(maxsize=64)
def variables_of(content: Content) -> tuple[Variable, ...]:
    """Every one that the content uses, each place and fallback once."""
    names = (*content.subject_segments.names, *content.html_segments.names, *content.text_segments.names)
    found = (Variable.of_key(name) for name in dict.fromkeys(names))
    return tuple(variable for variable in found if variable is not None)


FROM_THE_MESSAGE = frozenset({"email", "from_name"})
"""Every message has these itself."""


def attributes_of(variables: Iterable[Variable]) -> tuple[str, ...]:
    """The subscribers' attributes that they need, in order."""
    return tuple(sorted({one.name for one in variables} - FROM_THE_MESSAGE))


def required_of(variables: Iterable[Variable]) -> tuple[str, ...]:
    """Attributes that everybody must have, since somewhere they stand without a fallback."""
    return attributes_of(one for one in variables if one.fallback is None)


def without_fallback(content: Content) -> tuple[str, ...]:
    """What a reader without a name would miss: with one of these the letter has no page on the web."""
    return tuple(dict.fromkeys(one.written for one in variables_of(content) if one.fallback is None))


def filled(variables: Iterable[Variable], values: Mapping[str, object]) -> dict[str, str]:
    """By mark, for one recipient. One without a value or a fallback is not in it: that mail is refused."""
    put = {}
    for variable in variables:
        given = values.get(variable.name)
        value = one_line(clean("" if given is None else str(given))) or variable.fallback
        if value is not None:
            put[variable.key] = _escaped(value, variable.place)
    return put


def by_fallback(text: str) -> str:
    """As somebody reads it who is nobody in particular: a subject, or the whole letter."""
    names = Segments.of(text).names
    found = [one for one in map(Variable.of_key, names) if one is not None]
    return Segments.of(text).fill(dict.fromkeys(names, "") | filled(found, {}))


def placeholders(variables: Iterable[Variable]) -> dict[str, str]:
    """`[first_name]`, for a test: nobody in particular reads it."""
    return {one.name: f"[{one.name}]" for one in variables if one.name not in FROM_THE_MESSAGE}


def as_written(text: str) -> str:
    """With `{{ name }}` where marks stand, for people to read."""
    return _with_variables(text, lambda one: one.written)


def roughly_as_read(text: str) -> str:
    """With a fallback or a name where marks stand, to measure it."""
    return _with_variables(text, lambda one: one.fallback or one.name)


def _with_variables(text: str, words: Callable[[Variable], str]) -> str:
    def put(found: re.Match[str]) -> str:
        variable = Variable.of_key(found[1])
        return found[0] if variable is None else words(variable)

    return _MARKED.sub(put, text)


def _escaped(value: str, place: VariablePlace) -> str:
    match place:
        case VariablePlace.HTML:
            return escape(value)
        case VariablePlace.ADDRESS:
            return quote(value, safe="")
        case VariablePlace.TEXT:
            return value
