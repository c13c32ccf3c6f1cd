"""The mail as a reader sees it: who it is from, its subject, and at an address of its own, where nothing can
run, the mail itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request
from fastapi.responses import HTMLResponse

from gateway.dashboard.desk import Desk, signed_in
from mailout.base.addresses import address_of
from mailout.base.errors import NotFound
from mailout.base.select import Reads
from mailout.letters.audience import subscriber_rows
from mailout.letters.content import content_rows
from mailout.letters.content.layout import preheader_in
from mailout.letters.content.model import Content
from mailout.letters.content.sample import SAMPLE_READER, shown_to
from mailout.outbox.queue.mailout import Mailout

HEADERS = {
    "Cache-Control": "no-store",
    # `sandbox` takes the page its origin: what is in a mail can neither run nor reach our cookie.
    "Content-Security-Policy": (
        "sandbox; default-src 'none'; img-src 'self' https: data:; style-src 'unsafe-inline';"
        " form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    ),
    "X-Frame-Options": "SAMEORIGIN",
    "X-Robots-Tag": "noindex, nofollow",
}
_KEPT = re.compile(r"""(?<=["'(])[^"'()\s]*/([0-9a-f]{64}\.[a-z0-9]{1,5})(?=["')])""")
_DARK, _LIGHT = (
    re.compile(rf"\(\s*prefers-color-scheme\s*:\s*{scheme}\s*\)", re.IGNORECASE)
    for scheme in ("dark", "light")
)
NOTHING = "<!doctype html><html lang='en'><title>Mail</title><p>Its content is not rendered yet.</p>"


@dataclass(frozen=True, slots=True)
class MailView:
    """One content for one reader."""

    subject: str
    preheader: str
    sender: str
    reader: str  # the address
    is_sample: bool
    html: str
    text: str
    problem: str = ""  # why another reader is shown than was asked for


def mail_view(desk: Desk, request: Request, content: Content, from_name: str | None) -> MailView:
    """For the sample reader; an administrator may name a real one (`as`)."""
    wanted, problem = request.query_params.get("as", "").strip(), ""
    session = signed_in(request)
    reader: Mapping[str, object] | None = None
    if wanted and session is not None and session.is_admin:
        try:
            person = subscriber_rows.subscriber(desk.store, address_of(wanted) or "")
            from_name = person["from_name"] or from_name
            reader = {**person["attributes"], "email": person["email"]}
        except NotFound:
            problem = f"{wanted} is not on your list: this is the sample reader."
    name = from_name or desk.settings.from_name or ""
    address = desk.settings.from_email or "FROM_EMAIL is not set"
    values = shown_to(content, reader, name or address)
    html = content.html_segments.fill(values)
    return MailView(
        subject=content.subject_segments.fill(values),
        preheader=preheader_in(html),
        sender=f"{name} <{address}>" if name else address,
        reader=str(reader["email"]) if reader else SAMPLE_READER["email"],
        is_sample=reader is None,
        html=html,
        text=content.text_segments.fill(values),
        problem=problem,
    )


def letter_view(desk: Desk, request: Request, mailout: Mailout) -> MailView | None:
    """None: nothing of it is rendered yet, or it is archived."""
    content = content_of(desk.store, mailout)
    return mail_view(desk, request, content, mailout.from_name) if content else None


def mail_page(desk: Desk, view: MailView | None, *, dark: bool = False) -> HTMLResponse:
    if view is None:
        return HTMLResponse(NOTHING, headers=HEADERS)
    html = in_scheme(view.html, dark=dark)
    return HTMLResponse(with_own_pictures(html, desk.settings.mailout_home / "media"), headers=HEADERS)


def content_of(store: Reads, mailout: Mailout) -> Content | None:
    if mailout.content_hash is None:
        return None
    try:
        return content_rows.content(store, mailout.content_hash)
    except NotFound:  # archived with its mailout
        return None


def in_scheme(html: str, *, dark: bool) -> str:
    """As a reader with this scheme sees it, whatever the scheme of whoever looks."""
    always, never = "(min-width: 0)", "not all"
    html = _DARK.sub(always if dark else never, html)
    return _LIGHT.sub(never if dark else always, html)


def with_own_pictures(html: str, media: Path) -> str:
    """Pictures that lie on this machine are shown from here, wherever the mail's readers find them."""
    return _KEPT.sub(lambda found: f"/media/{found[1]}" if (media / found[1]).is_file() else found[0], html)
