"""The pages that people see: a few kind words in the look of our mails, and nothing that runs."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from enum import StrEnum
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

TEMPLATES = Environment(
    loader=PackageLoader("gateway"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
STYLE: str = TEMPLATES.get_template("page.css").render()
_STYLE_HASH = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

HEADERS = {
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
    "Referrer-Policy": "no-referrer",  # the address of the page is the right to unsubscribe
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    ),
}


class Page(StrEnum):
    ASK = "ask"  # shall we?
    LEFT = "left"  # done
    KEPT = "kept"  # and undone
    GONE = "gone"  # cannot be undone here
    BAD = "bad"  # the link is damaged or not ours


class Pages:
    def __init__(self, org_name: str | None, org_address: str | None, write_to: str | None) -> None:
        self._org = {"org_name": org_name, "org_address": org_address, "write_to": write_to}

    def show(self, page: Page, status: int = 200, **values: Any) -> HTMLResponse:
        html = TEMPLATES.get_template(f"{page}.html.j2").render(**self._org, style=STYLE, **values)
        return HTMLResponse(html, status, headers=HEADERS)
