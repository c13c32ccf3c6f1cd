"""Imported by processes that fork others: what mailout imports late, boto3 reads of AWS and jinja2 compiles
is done once, not by each of a thousand processes."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any, cast

import boto3
from botocore.loaders import Loader

from mailout.insight.reporting.rendering import _HTML, _MARKDOWN
from mailout.letters.content.layout import TEMPLATES

for _late in ("mailout.adapters.ses", "mailout.adapters.notion", "jsonschema", "httpcore", "email_validator"):
    import_module(_late)

for _templates, _name in (
    (TEMPLATES, "layout.html.j2"),
    (TEMPLATES, "layout.txt.j2"),
    (_HTML, "report.html.j2"),
    (_MARKDOWN, "report.md.j2"),
):
    _templates.get_template(_name)

_init, _known = Loader.__init__, dict[Any, Any]()


def _share_what_is_known(self: Loader, *args: Any, **named: Any) -> None:
    _init(self, *args, **named)
    cast(Any, self)._cache = _known


cast(Any, Loader).__init__ = _share_what_is_known
boto3.Session("test", "test", region_name="eu-west-1").client("sesv2").close()

gc.collect()
gc.freeze()  # what is there already stays shared
