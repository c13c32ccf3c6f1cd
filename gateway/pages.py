"""The pages that people see: a few kind words in the look of our mails, and nothing that runs."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from fastapi.responses import HTMLResponse, JSONResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request

from gateway.answers import reads_pages, refusal, wants_json
from mailout.base.addresses import as_written
from mailout.base.settings import Settings
from mailout.base.signed_links import TokenData
from mailout.letters.content.brand import DARK_PAPER, PAPER, Brand
from mailout.letters.content.colors import SEEN, readable_on, words_on
from mailout.letters.content.from_settings import brand_of
from mailout.letters.content.languages import Language, language, preferred, shipped

TEMPLATES = Environment(
    loader=PackageLoader("gateway"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
POLICY = "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
NO_INDEX = {"X-Robots-Tag": "noindex, nofollow"}


class Page(StrEnum):
    ASK = "ask"  # shall we?
    LEFT = "left"  # done
    KEPT = "kept"  # and undone
    GONE = "gone"  # cannot be undone here
    BAD = "bad"  # the link is damaged or not ours
    JOIN = "join"  # the form
    ASKED = "asked"  # whatever was posted
    CONFIRM = "confirm"  # was it you?
    JOINED = "joined"  # it was
    OVER = "over"  # the link has had its time
    CHOOSE = "choose"  # lists, pause, language
    NO_CHOICE = "no_choice"  # they get no letters
    MAILED = "mailed"  # confirm it by a mail
    EXPIRED = "expired"  # the link of that mail is too old
    OWN_DATA = "own_data"  # all that is known of them
    ERASE = "erase"  # shall we?
    ERASED = "erased"  # done
    BUSY = "busy"  # not this minute
    LATER = "later"  # something of ours fails
    MISSING = "missing"  # nothing has this address
    LETTERS = "letters"  # the archive on the web
    NO_LETTER = "no_letter"  # none under this address, or not any more


class Pages:
    """In `LANGUAGE`; without it, as the reader's browser wishes."""

    def __init__(self, settings: Settings) -> None:
        brand = brand_of(settings)
        self._org = {
            "org_name": settings.org_name,
            "org_address": settings.org_address,
            "write_to": _mailto(settings.reply_to or settings.from_email),
        }
        self._language = brand.language
        self._look = {"logo": brand.logo, "logo_dark": brand.logo_dark, "style": _style(brand)}
        self._headers = NO_INDEX | {"Content-Security-Policy": _policy(brand, self._look["style"] or "")}

    def show(
        self, request: Request, page: Page, status: int = 200, *, chosen: str | None = None, **values: Any
    ) -> HTMLResponse:
        """`chosen`: the reader's own choice of a language, if they have made one."""
        spoken = self.spoken(request, chosen)
        html = TEMPLATES.select_template([f"{page}.html.j2", "said.html.j2"]).render(
            page=page.value,
            **self._org,
            **self._look,
            words=spoken,
            say=partial(_say, spoken, self._org["org_name"]),
            **values,
        )
        return HTMLResponse(html, status, headers=self._headers | {"Content-Language": spoken.code})

    def answer(self, request: Request, page: Page, status: int = 200, **values: Any) -> Response:
        """The page; for a program, what it comes to in a word."""
        if not wants_json(request):
            return self.show(request, page, status, **values)
        if status >= 400:
            return refusal(status, headers=NO_INDEX)
        told = {"ok": False, "confirm": "POST"} if page in (Page.ASK, Page.CONFIRM) else {"ok": True}
        return JSONResponse(told, headers=NO_INDEX)

    def refusal(self, request: Request, status: int, headers: Mapping[str, str] | None = None) -> Response:
        """Of any request. Who reads it in a browser is told on a page: something fails, or is not here."""
        told = Page.LATER if status >= 500 else Page.MISSING if status in (404, 422) else None
        if told is None or not reads_pages(request):
            return refusal(status, headers)
        page = self.show(request, told, status)
        page.headers.update(headers or {})
        return page

    def spoken(self, request: Request, chosen: str | None = None) -> Language:
        wanted = chosen if chosen in shipped() else self._language
        return language(wanted) if wanted else preferred(request.headers.get("accept-language", ""))


def _style(brand: Brand) -> str:
    """In the sender's colour, as far as words can be read in it."""
    color = brand.color
    look = color and {
        "accent": color,
        "on_accent": words_on(color),
        "link": readable_on(PAPER, color),
        "accent_dark": readable_on(DARK_PAPER, color, SEEN),
        "on_accent_dark": words_on(readable_on(DARK_PAPER, color, SEEN)),
        "link_dark": readable_on(DARK_PAPER, color),
    }
    return TEMPLATES.get_template("page.css").render(look=look)


def _policy(brand: Brand, style: str) -> str:
    """Nothing is loaded but the logo, and the one style is known by its hash."""
    known = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    hosts = sorted(
        {"{0.scheme}://{0.netloc}".format(urlsplit(one)) for one in (brand.logo, brand.logo_dark) if one}
    )
    pictures = f"; img-src {' '.join(hosts)}" if hosts else ""
    return f"{POLICY}; style-src 'sha256-{known}'{pictures}"


def _say(spoken: Language, org: str | None, key: str, who: TokenData | None = None, **values: str) -> Markup:
    """A sentence with its values escaped. About a person there are four: with a list or without, and the same
    for the sender's name."""
    if who is not None:
        named = (key, *(["list"] if who.list_key else ()), *(["of"] if org else ()))
        key = "_".join(named) if "_".join(named) in spoken.pages else key
        values |= {
            "email": _strong(as_written(who.email)),
            "list": _strong(who.list_key or ""),
            "org": org or "",
        }
    return escape(spoken.pages[key]).format(**values)


def _mailto(address: str | None) -> Markup | None:
    """Leads where every mail program understands it, and reads as people write it."""
    link = Markup('<a href="mailto:{}">{}</a>')
    return link.format(address, as_written(address)) if address else None


def _strong(text: str) -> Markup:
    return Markup("<strong>{}</strong>").format(text)
