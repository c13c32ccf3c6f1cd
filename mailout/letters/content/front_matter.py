"""The front matter of a Markdown file: how to send it, in `key: value` lines."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any

import yaml

from mailout.base.addresses import Dropped, normalise
from mailout.base.errors import UsageError
from mailout.letters.content.document import one_line
from mailout.letters.content.languages import LANGUAGE_CODE


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What stands between the two `---` lines at the top of the file."""

    id: str | None = None
    subject: str = ""
    test: bool | None = None
    from_name: str | None = None
    list: str | None = None
    segment: str | None = None
    public: bool | None = None
    preheader: str = ""
    date: date | None = None
    language: str | None = None
    reply_to: str | None = None
    title: str = ""
    headline: str | bool = True
    excerpt: str = ""
    byline: str = ""

    @property
    def shown_headline(self) -> str | None:
        """None: the subject; empty: none."""
        if self.headline is False:
            return ""
        return self.title or (self.headline if isinstance(self.headline, str) else None)


KEYS = [field.name for field in fields(FrontMatter)]


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


def front_matter(source: str, name: str) -> FrontMatter:
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
        return FrontMatter()
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
    return FrontMatter(**{key: value for key, value in found.items() if value is not None})


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
