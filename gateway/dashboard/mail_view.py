"""The mail itself, at an address of its own where nothing can run; and what to look at before it goes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fastapi.responses import HTMLResponse

from gateway.dashboard.desk import Desk
from gateway.dashboard.letter_numbers import is_counted
from mailout.base import error_log
from mailout.base.errors import Abort, NotFound
from mailout.insight.reporting.phrases import count
from mailout.letters.audience.segment_tree import SegmentError
from mailout.letters.content import content_rows
from mailout.letters.content.checks import check_content
from mailout.letters.content.model import Content, Segments
from mailout.letters.content.port import Contents
from mailout.outbox.queue import queue_rows, segment_names
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


def mail_page(desk: Desk, mailout: Mailout, *, dark: bool = False) -> HTMLResponse:
    content = content_of(desk.store, mailout)
    if content is None:
        return HTMLResponse(NOTHING, headers=HEADERS)
    html = in_scheme(_filled(content.html_segments), dark=dark)
    return HTMLResponse(with_own_pictures(html, desk.settings.mailout_home / "media"), headers=HEADERS)


def mail_text(store: Contents, mailout: Mailout) -> str:
    content = content_of(store, mailout)
    return "" if content is None else _filled(content.text_segments)


def content_of(store: Contents, mailout: Mailout) -> Content | None:
    if mailout.content_hash is None:
        return None
    try:
        return content_rows.content(store, mailout.content_hash)
    except NotFound:  # archived with its mailout
        return None


def _filled(segments: Segments) -> str:
    """Nobody's link to leave by stands in a preview."""
    return segments.fill({name: "#" if name.endswith("url") else f"[{name}]" for name in segments.names})


def in_scheme(html: str, *, dark: bool) -> str:
    """As a reader with this scheme sees it, whatever the scheme of whoever looks."""
    always, never = "(min-width: 0)", "not all"
    html = _DARK.sub(always if dark else never, html)
    return _LIGHT.sub(never if dark else always, html)


def with_own_pictures(html: str, media: Path) -> str:
    """Pictures that lie on this machine are shown from here, wherever the mail's readers find them."""
    return _KEPT.sub(lambda found: f"/media/{found[1]}" if (media / found[1]).is_file() else found[0], html)


def findings(desk: Desk, mailout: Mailout, size: int) -> Sequence[tuple[str, str]]:
    """(level, sentence) of what to look at before it is sent."""
    found: list[tuple[str, str]] = []
    content = content_of(desk.store, mailout)
    if content is not None:
        try:
            found += [("warn", f"{p.message} {p.where or ''}".strip()) for p in check_content(content)]
        except Abort as error:
            found.append(("fail", error.message))
    known = {said for _, said in found}
    for one in error_log.errors(desk.store, mailout.id, limit=50):
        if one.stage == "content" and one.message not in known:
            known.add(one.message)
            found.append(("warn", one.message))
    if not mailout.is_test and content is not None:
        tested = queue_rows.last_test(desk.store, content_hash=mailout.content_hash)
        found.append(
            ("ok", "A test of exactly this content has gone out.")
            if tested is not None
            else ("warn", "No test of exactly this content has gone out.")
        )
    whom = f" on the list {mailout.list_key}" if mailout.list_key else ""
    if mailout.segment is not None:
        whom += f" in the segment {mailout.segment}"
        if not size:
            found += _segment_problems(desk, mailout.segment)
    found.append(("ok" if size else "fail", f"{count(size, 'person', 'people')}{whom} would get it."))
    if is_counted(mailout) and (snoozed := desk.store.audience_size(mailout.list_key, snoozed=True)):
        found.append(("ok", f"{count(snoozed, 'person', 'people')} asked for a pause and would not get it."))
    return found


def _segment_problems(desk: Desk, name: str) -> list[tuple[str, str]]:
    """Why a segment cannot be used, if so."""
    try:
        segment_names.usable_segment(desk.store, name)
    except SegmentError as error:
        return [("fail", str(error))]
    return []
