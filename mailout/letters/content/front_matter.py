"""What an author says of a letter beside its words: a page's properties, or the front matter of a Markdown
file, in `key: value` lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import yaml

from mailout.base.addresses import Dropped, normalise
from mailout.base.errors import UsageError
from mailout.letters.content.document import (
    UNFILLED,
    Document,
    Media,
    Problem,
    language_of,
    one_line,
    preheader_of,
)
from mailout.letters.content.languages import LANGUAGE_CODE
from mailout.letters.content.port import Kind, SourceMailout
from mailout.letters.content.variables import literal_braces, marked

_KEYS = (
    "id subject test from_name list segment public preheader date language reply_to title headline excerpt"
)
KEYS = [*_KEYS.split(), "byline"]
NEVER_WITH_SIGNS = frozenset({"id", "test", "public", "date", "language", "reply_to"})
"""Their values hold no ` #` that could be meant: what follows is a comment."""
_WORDS_FOR_NONE = frozenset({"tag:yaml.org,2002:null", "tag:yaml.org,2002:bool"})
_LINE_END = re.compile(r"[\r\n\x85\u2028\u2029]")


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
        if "{{" in (self.from_name or ""):
            unfilled = "The sender's name takes no variables: readers would see its braces. Take them out."
            problems = (*problems, Problem(UNFILLED, unfilled, self.from_name))
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
        raise _unreadable(error, source, name) from error
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
        where = f"{name}, line {line}"
        if not node.flow_style:  # `{subject: x, id: y}` says where each value ends
            _require_whole(key, value, source, where)
        found[key.value] = _value(key.value, value, where)
    return _options({key: value for key, value in found.items() if value is not None})


def _unreadable(error: yaml.YAMLError, source: str, name: str) -> UsageError:
    """The line that is wrong, in its author's words: a parser's own say nothing to most people."""
    begun, stopped = getattr(error, "context_mark", None), getattr(error, "problem_mark", None)
    # Of an open quote or bracket it is where it begins; "a block mapping" is the whole front matter.
    mark = stopped if begun is None or "block" in str(getattr(error, "context", "")) else begun
    lines = source.splitlines()
    if mark is None or mark.line >= len(lines):
        said = f"{name}: the front matter cannot be read: {error}."
    else:
        said = f"{name}, line {mark.line + 2}: “{lines[mark.line].strip()}” cannot be read."
    return UsageError(said, remedy='Write one `key: value` a line, and put this value in quotes: `key: "…"`.')


def _require_whole(key: yaml.Node, value: yaml.Node, source: str, where: str) -> None:
    """YAML takes ` #` for the beginning of a comment, and `!` or `&` for more than a word: a subject would
    lose it without a word. In quotes everything is meant as it stands, and a comment behind them is one."""
    if key.value in NEVER_WITH_SIGNS or not isinstance(value, yaml.ScalarNode):
        return
    if value.style and source.startswith(value.style, value.start_mark.index):
        return
    start, end = source.index(":", key.end_mark.index) + 1, _LINE_END.search(source, value.end_mark.index)
    first, *others = source[start : end.start() if end else None].splitlines() or [""]
    lines = [first, *(line for line in others if not line.lstrip().startswith("#"))]
    written, kept = " ".join(" ".join(lines).split()), " ".join(value.value.split())
    # `headline: No #1 after all` is a sentence, `headline: no # none here` is not.
    says_none = written.removeprefix(kept).startswith(" # ") and value.tag in _WORDS_FOR_NONE
    if not kept:
        says_none = key.value not in ("subject", "title")
    if written != kept and not says_none:
        said = f"of `{key.value}`, only “{kept}” would be read" if kept else f"`{key.value}` would be empty"
        quoted = json.dumps(written, ensure_ascii=False)
        raise UsageError(
            f"{where}: {said}.",
            remedy=f"Put it in quotes: `{key.value}: {quoted}`. A comment goes on a line of its own.",
        )


def _options(given: dict[str, Any]) -> LetterOptions:
    """`title` is another word for a headline; `headline: true` is what a letter has anyway."""
    is_test, title, headline = given.pop("test", False), given.pop("title", ""), given.pop("headline", True)
    shown = "" if headline is False else title or (None if headline is True else headline)
    return LetterOptions(**given, is_test=is_test, headline=shown)


def _value(key: str, node: yaml.Node, where: str) -> str | bool | date | None:
    if not isinstance(node, yaml.ScalarNode):
        raise UsageError(f"{where}: `{key}` takes one value.", remedy=f'Put it in quotes: `{key}: "…"`.')
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
