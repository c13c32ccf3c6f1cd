"""Content made ready for SES once and used for every message that shares it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from mailout.adapters.ses.headers import one_line
from mailout.letters.content.model import Content, Segments

_BRACES = re.compile(r"[{}\\]+")


@dataclass(frozen=True)
class PreparedContent:
    """One content, cut at its marks."""

    subject: Segments
    html: Segments
    text: Segments

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset((*self.subject.names, *self.html.names, *self.text.names))

    @cached_property
    def template(self) -> BulkTemplate:
        return BulkTemplate.of(self)

    def simple(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Subject and Body of a SendEmail call."""
        body: dict[str, Any] = {}
        if self.html.parts != ("",):
            body["Html"] = {"Data": self.html.fill(values), "Charset": "UTF-8"}
        if self.text.parts != ("",):
            body["Text"] = {"Data": self.text.fill(values), "Charset": "UTF-8"}
        subject = one_line(self.subject.fill(values))
        return {"Subject": {"Data": subject, "Charset": "UTF-8"}, "Body": body}


@lru_cache(maxsize=64)
def prepare(content: Content) -> PreparedContent:
    return PreparedContent(content.subject_segments, content.html_segments, content.text_segments)


@dataclass(frozen=True, slots=True)
class BulkTemplate:
    """The same content as an inline template of SendBulkEmail.

    SES reads `{{name}}` as a variable, and a brace or a backslash beside one changes its meaning. So every
    run of braces that could be read so is itself carried by a variable: values are put in once and not read
    again. Variables are numbered, because a name with a dot would be a path.
    """

    content: Mapping[str, str]
    variables: tuple[tuple[str, str], ...]  # SES's name, ours
    subject_variables: tuple[tuple[str, str], ...]  # the same, on one line
    fixed: Mapping[str, str]  # runs of braces
    default_data: str
    size: int  # of the template in a request, in bytes

    @classmethod
    def of(cls, prepared: PreparedContent) -> BulkTemplate:
        fixed: dict[str, str] = {}  # run → SES's name
        names = tuple(dict.fromkeys((*prepared.html.names, *prepared.text.names)))
        in_body = {name: f"v{index}" for index, name in enumerate(names)}
        in_subject = {name: f"s{index}" for index, name in enumerate(dict.fromkeys(prepared.subject.names))}
        content = {
            "Subject": one_line(_template(prepared.subject, in_subject, fixed)),
            "Html": _template(prepared.html, in_body, fixed),
            "Text": _template(prepared.text, in_body, fixed),
        }
        content = {part: text for part, text in content.items() if text or part == "Subject"}
        runs = {name: run for run, name in fixed.items()}
        default_data = json.dumps(runs)
        return cls(
            content=content,
            variables=tuple((theirs, ours) for ours, theirs in in_body.items()),
            subject_variables=tuple((theirs, ours) for ours, theirs in in_subject.items()),
            fixed=runs,
            default_data=default_data,
            size=len(json.dumps(content)) + len(json.dumps(default_data)),
        )

    def data(self, values: Mapping[str, str]) -> str:
        """One recipient's values: all of them, since SES does not promise to merge defaults in."""
        filled = {theirs: values[ours] for theirs, ours in self.variables}
        for theirs, ours in self.subject_variables:
            filled[theirs] = one_line(values[ours])
        filled.update(self.fixed)
        return json.dumps(filled)


def _template(segments: Segments, names: Mapping[str, str], fixed: dict[str, str]) -> str:
    last = len(segments.parts) - 1
    written: list[str] = []
    for index, part in enumerate(segments.parts):
        if index % 2:
            written.append("{{" + names[part] + "}}")
        else:
            written.append(_literal(part, fixed, after_mark=index > 0, before_mark=index < last))
    return "".join(written)


def _literal(text: str, fixed: dict[str, str], *, after_mark: bool, before_mark: bool) -> str:
    def carried(match: re.Match[str]) -> str:
        run = match.group()
        touches = (after_mark and match.start() == 0) or (before_mark and match.end() == len(text))
        if len(run) == 1 and not touches:
            return run
        return "{{" + fixed.setdefault(run, f"b{len(fixed)}") + "}}"

    return _BRACES.sub(carried, text)
