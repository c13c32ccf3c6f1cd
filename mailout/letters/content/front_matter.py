"""What an author says of a letter beside its words: a page's properties, or the front matter of a Markdown
file, in `key: value` lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import yaml

from mailout.base.addresses import Dropped, normalise
from mailout.base.errors import UsageError
from mailout.letters.content.document import Document, Media, Problem, language_of, one_line, preheader_of
from mailout.letters.content.languages import LANGUAGE_CODE
from mailout.letters.content.port import Kind, SourceMailout
from mailout.letters.content.variables import literal_braces, marked

_KEYS = (
    "id subject test from_name list segment public preheader date language reply_to title headline excerpt"
)
KEYS = [*_KEYS.split(), "byline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterOptions:
    """How to send a letter, and what stands around its words."""

    id: str | None = None
    subject: str = ""
    is_test: bool = False
    from_name: str | None = None
    list: str | None = None
    segment: str | None = None
    public: bool | None = None  # None: as its list says
    preheader: str = ""
    date: date | None = None
    language: str | None = None
    reply_to: str | None = None
    headline: str | None = None  # None: the subject; empty: none
    excerpt: str = ""
    byline: str = ""

    def document(
        self,
        html: str,
        text: str,
        problems: Iterable[Problem],
        media: Iterable[Media],
        literals: frozenset[str],
        styles: str = "",
    ) -> Document:
        """The letter itself: its HTML and its text have marks for variables already."""
        said = (self.subject, self.preheader, self.headline or "", self.excerpt, self.byline)
        return Document(
            subject=marked(self.subject),
            html_body=html,
            text_body=text,
            preheader=marked(self.preheader or self.excerpt) or preheader_of(text),
            problems=tuple(problems),
            media=tuple(media),
            lang=language_of(text),
            language=self.language,
            date=self.date,
            literals=literals | literal_braces(*said),
            headline=None if self.headline is None else marked(self.headline),
            excerpt=marked(self.excerpt),
            byline=marked(self.byline),
            styles=styles,
        )

    def mailout(
        self,
        kind: Kind,
        ref: str,
        document: Document,
        read_media: Callable[[str], bytes],
        *,
        already_sent: bool = False,
    ) -> SourceMailout:
        return SourceMailout(
            kind=kind,
            ref=ref,
            document=document,
            is_test=self.is_test,
            list_key=self.list,
            segment=self.segment,
            from_name=self.from_name,
            reply_to=self.reply_to,
            public=self.public,
            already_sent=already_sent,
            read_media=read_media,
        )


def split(written: str, name: str) -> tuple[str, str]:
    lines = written.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return "", written
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            return "".join(lines[1:number]), "".join(lines[number + 1 :])
    raise UsageError(
        f"{name}: the front matter that begins in line 1 has no end.",
        remedy="Put a line with --- alone after it.",
    )


def front_matter(source: str, name: str) -> LetterOptions:
    """Read by nodes, not by values: each key knows its line, and `id: 007` stays 007."""
    try:
        node = yaml.compose(source, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark else ""
        what = getattr(error, "problem", None) or error
        raise UsageError(
            f"{name}: the front matter cannot be read{where}: {what}.",
            remedy="Write one `key: value` a line; put a value that holds a colon in quotes.",
        ) from error
    if node is None:
        return LetterOptions()
    if not isinstance(node, yaml.MappingNode):
        raise UsageError(
            f"{name}: the front matter is not a list of `key: value` lines.",
            remedy=f"Write one a line; known keys are {', '.join(KEYS)}.",
        )
    found: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 2
        if key.value not in KEYS:
            raise UsageError(
                f"{name}, line {line}: `{key.value}` is no key of the front matter.",
                remedy=f"Known are {', '.join(KEYS)}.",
            )
        if key.value in found:
            raise UsageError(
                f"{name}, line {line}: `{key.value}` is given twice.", remedy="Remove one of the two lines."
            )
        found[key.value] = _value(key.value, value, f"{name}, line {line}")
    return _options({key: value for key, value in found.items() if value is not None})


def _options(given: dict[str, Any]) -> LetterOptions:
    """`title` is another word for a headline; `headline: true` is what a letter has anyway."""
    is_test, title, headline = given.pop("test", False), given.pop("title", ""), given.pop("headline", True)
    shown = "" if headline is False else title or (None if headline is True else headline)
    return LetterOptions(**given, is_test=is_test, headline=shown)


def _value(key: str, node: yaml.Node, where: str) -> str | bool | date | None:
    if not isinstance(node, yaml.ScalarNode):
        raise UsageError(f"{where}: `{key}` takes one value.", remedy=f"Write it as `{key}: value`.")
    if node.tag == "tag:yaml.org,2002:null":
        return None
    if key == "date":
        return _date(node.value, where)
    if key == "language" and not LANGUAGE_CODE.fullmatch(node.value):
        raise UsageError(
            f"{where}: `language` is no language's code: {node.value!r}.",
            remedy="Write it as `language: en`.",
        )
    is_bool = node.tag == "tag:yaml.org,2002:bool"
    if key == "reply_to" and isinstance(normalise(node.value), Dropped):
        raise UsageError(
            f"{where}: `reply_to` is no address: {node.value!r}.",
            remedy="Write it as `reply_to: office@example.org`.",
        )
    if key not in ("test", "public") and not (key == "headline" and is_bool):
        return one_line(node.value)
    if not is_bool:
        raise UsageError(
            f"{where}: `{key}` is true or false, not {node.value!r}.",
            remedy=f"Write `{key}: true` or leave it out.",
        )
    return str(node.value).lower() in ("true", "yes", "on")


def _date(written: str, where: str) -> date:
    try:
        return datetime.fromisoformat(written.strip()).date()
    except ValueError:
        raise UsageError(
            f"{where}: `date` is no day: {written!r}.", remedy="Write it as `date: 2026-12-04`."
        ) from None
