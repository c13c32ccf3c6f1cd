"""Pages: rendered from templates, with headers under which nothing runs but what we serve ourselves: a style
sheet, htmx and its event extension, named by their hash. Some are in the menu only where they are used."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from importlib.resources import files
from typing import Any
from urllib.parse import quote, unquote

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException

from gateway.dashboard.sessions import LoginSession
from mailout.base.errors import StoreError
from mailout.base.redact import redact_text
from mailout.base.settings import Settings
from mailout.base.time_format import spoken
from mailout.insight.history import history_rows
from mailout.insight.reporting.phrases import came_back, count, headline, share, waiting
from mailout.insight.reporting.plot import STYLE
from mailout.insight.reporting.rendering import badge
from mailout.letters.content.port import Kind
from mailout.letters.content.sample import plain_subject
from mailout.outbox.delivery.outbox_rows import SINGLE_MAILS
from mailout.outbox.queue import segment_names
from mailout.store import Store

TEMPLATES = Environment(
    loader=PackageLoader("gateway.dashboard"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

TEMPLATES.filters["unquoted"] = unquote

HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
}
SAID = "mailout_said"
"""A cookie with the sentence that the next page shows once."""
MOST_SAID_BYTES = 3000
"""Beside the session's cookie: the edge drops cookies that are too long together."""
MAY_BE_USED = {
    "/segments": "Segments",
    "/articles": "Articles",
    "/notifications": "Notifications",
    "/signups": "Sign-ups",
    "/single-mails": "Single mails",
}
MENU_CHECK_SECONDS = 60.0
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
NAMES = ("dashboard.css", "dashboard.js", "htmx.min.js", "sse.min.js", "icon.svg")
_FILES = {name: (files("gateway.dashboard") / "static" / name).read_bytes() for name in NAMES}
_FILES["dashboard.css"] += STYLE.encode()
_ADDRESSES = {
    name: f"/assets/{name}?{hashlib.sha256(data).hexdigest()[:12]}" for name, data in _FILES.items()
}
routes = APIRouter(include_in_schema=False)


@routes.get("/assets/{name}")
async def asset(name: str) -> Response:
    if name not in _FILES:
        raise HTTPException(404)
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(_FILES[name], media_type=TYPES[name.rpartition(".")[2]], headers=headers)


class Views:
    def __init__(
        self,
        zone: tzinfo,
        org_name: str | None,
        *,
        rehearses: bool,
        more_pages: Callable[[], Sequence[tuple[str, str]]],
    ) -> None:
        self._zone = zone
        self._shared: dict[str, Any] = {
            "org_name": org_name,
            "rehearses": rehearses,
            "asset": _ADDRESSES.__getitem__,
            "badge": badge,
            "count": count,
            "headline": headline,
            "came_back": came_back,
            "titled": titled,
            "more_pages": more_pages,  # (address, name) in the menu, where they are used
            "share": share,
            "waiting": lambda mailout, all_paused=False, untaken=False: waiting(
                mailout,
                zone,
                all_paused=all_paused,
                now=0.0 if all_paused else time.time(),
                untaken=untaken,
            ),
            "when": self.when,
            "marked": marked,
            "n": "{:,}".format,
        }

    def page(
        self,
        request: Request,
        template: str,
        session: LoginSession | None = None,
        status: int = 200,
        **values: Any,
    ) -> HTMLResponse:
        said = unquote(request.cookies.get(SAID, ""))
        html = TEMPLATES.get_template(template).render(
            **self._shared, session=session, said=said, path=request.url.path, **values
        )
        response = HTMLResponse(html, status, headers=dict(HEADERS))
        if said:
            response.delete_cookie(SAID)
        return response

    def when(self, moment: float | None) -> str:
        return "" if moment is None else spoken(moment, self._zone)


class UsedPages:
    """Looked up at most once a minute; what was used once stays in the menu."""

    def __init__(self, settings: Settings, store: Store, modes: Sequence[str], *, rehearses: bool) -> None:
        self._store = store
        self._modes = modes
        self._rehearses = rehearses
        self._looked: float | None = None
        known = {"/notifications": settings.notify_db is not None, "/signups": settings.signup}
        self._used = {address for address, is_used in known.items() if is_used}

    def menu(self) -> list[tuple[str, str]]:
        """(address, name) as far as is known; asks nobody."""
        return [(address, name) for address, name in MAY_BE_USED.items() if address in self._used]

    def look(self) -> None:
        """Never fails: a page that says why the store is silent has a menu, too."""
        now, store = time.monotonic(), self._store
        if self._looked is not None and now - self._looked < MENU_CHECK_SECONDS:
            return
        self._looked = now
        asks: Mapping[str, Callable[[], Any]] = {
            "/segments": lambda: segment_names.segments(store),
            "/articles": lambda: history_rows.letters(store, modes=self._modes, kind=Kind.ARTICLE, limit=1),
            "/notifications": lambda: history_rows.notification_states(store, rehearsal=self._rehearses),
            "/single-mails": lambda: store.select(SINGLE_MAILS, limit=1),
        }
        try:
            self._used |= {address for address, ask in asks.items() if address not in self._used and ask()}
        except StoreError:
            self._looked = None  # the page itself says what is wrong


def titled(one: Any) -> str:
    """The subject of a letter, a page or a message."""
    written = one["subject"] if isinstance(one, Mapping) else one.subject
    return plain_subject(written or "") or "No subject"


@pass_context
def marked(context: Context, text: object) -> Markup:
    """A message for the one who reads it: what stands in backticks, as code; everything is escaped, and an
    address is the administrator's alone."""
    said = str(text) if context["session"] and context["session"].is_admin else redact_text(str(text))
    parts = str(escape(said)).split("`")
    return Markup("").join(
        Markup(f"<code>{part}</code>" if n % 2 else part)  # noqa: S704
        for n, part in enumerate(parts)
    )


def go_to(path: str, said: str = "") -> RedirectResponse:
    """After an act: another page, so that reloading it does nothing twice."""
    response = RedirectResponse(path, 303, headers={"Cache-Control": "no-store"})
    while len(quoted := quote(said)) > MOST_SAID_BYTES:
        said = said[: len(said) * MOST_SAID_BYTES // len(quoted)]
    if said:
        response.set_cookie(SAID, quoted, max_age=60, httponly=True, samesite="lax")
    return response
