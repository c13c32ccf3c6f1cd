"""Templates of notifications: one folder a version and a locale; rendered once for the same news."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import (
    ChoiceLoader,
    FileSystemLoader,
    PackageLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
    UndefinedError,
    select_autoescape,
)
from jinja2.exceptions import SecurityError
from jinja2.sandbox import SandboxedEnvironment

from mailout.letters.content.checks import check_content
from mailout.letters.content.document import Document, cut, one_line, preheader_of
from mailout.letters.content.layout import framed
from mailout.letters.content.model import UNSUBSCRIBE_URL, Content, clean, in_every_text, mark

MANAGE_URL = "manage_url"
MARKS = {"manageUrl": MANAGE_URL, "unsubscribeUrl": UNSUBSCRIBE_URL}
"""What differs between recipients of the same news; all else is part of the content."""
PARTS = ("subject.txt.j2", "body.html.j2", "footer.html.j2", "body.txt.j2")
"""The files of each locale."""
SUBJECT_LENGTH = 150
CACHED_TEMPLATES = 512
MISTAKES = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
)
"""What an expression that a person wrote can raise, or a file that is not in UTF-8."""


class TemplateProblem(ValueError):
    """A template cannot be used; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class NotificationTemplates:
    """A person's folder goes before ours: `<folder>/open-seat/v2/en-US/body.html.j2`."""

    def __init__(self, folder: Path, zone: ZoneInfo, sender: str) -> None:
        self._zone = zone
        self._sender = clean(sender)
        self._rendered = lru_cache(maxsize=CACHED_TEMPLATES)(self._render)
        self._templates = SandboxedEnvironment(
            loader=ChoiceLoader(
                [
                    FileSystemLoader(folder, followlinks=True),
                    PackageLoader("mailout.letters.content", "templates/notifications"),
                ]
            ),
            autoescape=select_autoescape(["html.j2"]),
            undefined=StrictUndefined,
        )
        self._templates.filters["moment"] = self._moment

    def render(
        self, template: str, version: str, locales: Sequence[str], variables: Mapping[str, Any]
    ) -> Content:
        """The content with marks where recipients differ, in the first of these locales that there is.

        TemplateProblem: it cannot be rendered.
        """
        locale = next((one for one in locales if self.inside(template, version, one)), locales[0])
        cleaned = in_every_text(variables, clean)  # what a producer wrote can hold no mark
        values = cleaned | {name: mark(MARKS[name]) for name in variables.keys() & MARKS.keys()}
        return self._rendered(template, version, locale, json.dumps(values, sort_keys=True))

    def _render(self, template: str, version: str, locale: str, variables: str) -> Content:
        """`variables`: JSON, so that the same news is known again."""
        folder, values = f"{template}/{version}/{locale}", json.loads(variables)
        try:
            subject, body, footer, text = (self._part(folder, name, values) for name in PARTS)
            subject = one_line(subject)
        except TemplateNotFound as error:
            raise TemplateProblem(
                "template_locale_missing",
                f"Template {template} {version} has no locale {locale}: there is no {error.name}.",
            ) from None
        except (UndefinedError, SecurityError) as error:
            raise TemplateProblem(
                "template_variable_missing", f"Template {folder}: {error.message}."
            ) from None
        except TemplateSyntaxError as error:
            said = (error.message or "").rstrip(".")
            raise TemplateProblem(
                "invalid_template", f"Template {error.name}, line {error.lineno}: {said}."
            ) from None
        except MISTAKES as error:
            raise TemplateProblem(
                "invalid_template", f"Template {folder}: {type(error).__name__}: {error}."
            ) from None
        document = Document(subject, body, text, preheader_of(text), lang=locale, language=locale)
        html = framed(document, self._sender, footer=footer)
        content = Content(cut(subject, SUBJECT_LENGTH), html, f"{text.strip()}\n")
        check_content(content)
        return content

    def inside(self, *folders: str) -> list[str]:
        """What stands directly in this folder, ours and a person's together."""
        path = "/".join((*folders, ""))
        found = self._templates.list_templates(filter_func=lambda name: name.startswith(path))
        return sorted({name.removeprefix(path).split("/")[0] for name in found})

    def _part(self, folder: str, name: str, values: Mapping[str, Any]) -> str:
        return self._templates.get_template(f"{folder}/{name}").render(values)

    def _moment(self, written: str, form: str) -> str:
        moment = datetime.fromisoformat(written)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(self._zone).strftime(form)
