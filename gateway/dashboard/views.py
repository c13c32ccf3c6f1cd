"""Pages: rendered from templates, with headers under which nothing runs but what we serve ourselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any
from urllib.parse import quote, unquote

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gateway.dashboard.sessions import LoginSession
from gateway.dashboard.static import address_of_asset
from mailout.base.time_format import lasting, spoken
from mailout.insight.reporting.phrases import came_back, count, headline, share, waiting
from mailout.insight.reporting.rendering import badge
from mailout.letters.content.sample import sample_subject

TEMPLATES = Environment(
    loader=PackageLoader("gateway.dashboard"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

TEMPLATES.filters["unquoted"] = unquote
TEMPLATES.filters["combined"] = lambda one, other: {**one, **other}

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


class Views:
    def __init__(
        self,
        zone: tzinfo,
        org_name: str | None,
        *,
        rehearses: bool,
        more_pages: Callable[[], Sequence[tuple[str, str]]] = tuple,
    ) -> None:
        self._zone = zone
        self._shared: dict[str, Any] = {
            "org_name": org_name,
            "rehearses": rehearses,
            "asset": address_of_asset,
            "badge": badge,
            "count": count,
            "headline": headline,
            "came_back": came_back,
            "titled": titled,
            "lasting": lasting,
            "more_pages": more_pages,  # (address, name) in the menu, where they are used
            "share": share,
            "waiting": lambda mailout: waiting(mailout, zone),
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


def titled(one: Any) -> str:
    """The subject of a letter, a page or a message, as a reader would see it."""
    written = one["subject"] if isinstance(one, Mapping) else one.subject
    return sample_subject(written or "") or "No subject"


def marked(text: str) -> Markup:
    """What stands in backticks, as code; everything is escaped."""
    parts = str(escape(text)).split("`")
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
