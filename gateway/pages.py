"""The pages that people see: a few kind words in the look of our mails, and nothing that runs."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from enum import StrEnum
from functools import partial
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from mailout.letters.content.languages import Language, language, preferred
from mailout.letters.content.tokens import TokenData

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
    """In `LANGUAGE`; without it, as the reader's browser wishes."""

    def __init__(
        self,
        org_name: str | None,
        org_address: str | None,
        write_to: str | None,
        language: str | None = None,
    ) -> None:
        self._org = {"org_name": org_name, "org_address": org_address, "write_to": write_to}
        self._language = language

    def show(
        self, page: Page, status: int = 200, *, accept_language: str = "", **values: Any
    ) -> HTMLResponse:
        spoken = language(self._language) if self._language else preferred(accept_language)
        html = TEMPLATES.get_template(f"{page}.html.j2").render(
            **self._org, style=STYLE, words=spoken, say=partial(_say, spoken, self._org["org_name"]), **values
        )
        return HTMLResponse(html, status, headers=HEADERS | {"Content-Language": spoken.code})


def _say(spoken: Language, org: str | None, key: str, who: TokenData | None = None, **values: str) -> Markup:
    """A sentence with its values escaped. About a person there are four: with a list or without, and the same
    for the sender's name."""
    if who is not None:
        named = (key, *(["list"] if who.list_key else ()), *(["of"] if org else ()))
        key = "_".join(named) if "_".join(named) in spoken.pages else key
        values |= {"email": _strong(who.email), "list": _strong(who.list_key or ""), "org": org or ""}
    return escape(spoken.pages[key]).format(**values)


def _strong(text: str) -> Markup:
    return Markup("<strong>{}</strong>").format(text)
