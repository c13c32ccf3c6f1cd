"""Letters on the web: the archive with its feed, and each letter in a browser.

Everything is made of the content that was sent. Nothing in an answer is about who asks, so any cache may keep
it; a minute later at the latest it is asked for again.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache, partial
from threading import Lock
from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from markupsafe import Markup
from starlette.staticfiles import StaticFiles

from gateway.answers import errors
from gateway.pages import NO_INDEX, TEMPLATES, Page, Pages
from gateway.parts import own
from mailout.base.errors import NotFound
from mailout.base.settings import Settings
from mailout.letters.content import content_rows
from mailout.letters.content.from_settings import view_links_of
from mailout.letters.content.languages import FALLBACK, Language, language
from mailout.letters.content.signup_form import signup_form
from mailout.letters.content.web import WebPage, description_of, web_page
from mailout.outbox.queue.port import Queue, mailout_or_none
from mailout.readers import web_archive
from mailout.readers.web_archive import ArchivedLetter

PAGE_LETTERS = 20
FEED_LETTERS = 20
LISTING_SECONDS = 20.0
"""So long the list of letters is not read again: for a thousand that takes some 40 ms. With the caches' time,
what is unpublished is gone within a minute; its own page sooner."""
CACHE_SECONDS = 30
TRIAL_DAYS = 30
"""For which a test or a rehearsal can be seen in a browser."""
CONTENTS_KEPT = 128

LETTER_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; img-src 'self' https: http: data:; form-action 'self';"
    " style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
}
"""Of a letter's page: it shares the dashboard's origin, so nothing may run; its looks are its own."""
_NUMBER = re.compile("[0-9]{1,5}")
_SLUG = re.compile(r"[a-z0-9-]{1,100}")
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

ListKey = Annotated[str, Query(alias="list", description="Only letters of this list")]


class WebArchive:
    def __init__(self, settings: Settings, store: Queue) -> None:
        self._settings = settings
        self._store = store
        self._zone = ZoneInfo(settings.send_timezone)
        self._public_url = (settings.public_url or "").rstrip("/")
        self._root = urlsplit(self._public_url).path  # links inside: the same host, whatever it is called
        self._org = settings.org_name or ""
        self._signs_up = settings.signup
        self._pages = Pages(settings)
        self._view_links = view_links_of(settings) if settings.unsubscribe_keys else None
        self._content = lru_cache(CONTENTS_KEPT)(partial(content_rows.content, store))
        self._reading = Lock()
        self._known: Sequence[ArchivedLetter] = ()
        self._known_at = float("-inf")

    # ── answers ──

    def view(
        self: Own,
        request: Request,
        token: Annotated[str, Path(description="Signed: a mailout, and its variant")],
    ) -> Response:
        """A letter in a browser, as nobody in particular reads it."""
        payload = self._view_links.read(token) if self._view_links and self._public_url else None
        if payload is None:
            return self._none(request)
        content_hash = payload.get("variant")
        if "mailout" in payload:  # else a letter to one reader at a time
            mailout = mailout_or_none(self._store, payload["mailout"])
            if mailout is None:
                return self._none(request)
            is_trial = mailout.is_test or mailout.is_rehearsal
            if is_trial and self._store.now() > mailout.created_at + TRIAL_DAYS * 86_400:
                return self._none(request, was_here=True)
            content_hash = content_hash or mailout.content_hash
        page = self._page(content_hash)
        return (
            self._none(request) if page is None else cached(request, page.html(), LETTER_HEADERS | NO_INDEX)
        )

    def letters(
        self: Own,
        request: Request,
        key: ListKey = "",
        page: Annotated[str, Query(description="From 1 on")] = "1",
    ) -> Response:
        """Public letters, the newest first."""
        number = int(page) if _NUMBER.fullmatch(page) else 0  # what is no number has a page of ours, too
        known = self._letters()
        shown = [one for one in known if not key or one.list_key == key]
        first = (number - 1) * PAGE_LETTERS
        part = shown[first : first + PAGE_LETTERS]
        if not self._public_url or number < 1 or (not part and (key or number > 1)):
            return self._none(request)
        words = self._pages.spoken(request)
        lists = dict(sorted({(one.list_key, one.list_title) for one in known}, key=lambda one: one[1]))
        response = self._pages.show(
            request,
            Page.LETTERS,
            title=self._title(words, lists.get(key)),
            address=self._public_url + self._list("", key, number),
            feed=self._public_url + self._feed(key),
            number=number,
            lists=self._choices(lists, key, words.pages["every_list"]) if len(lists) > 1 else (),
            letters=[
                {
                    "link": self._link(one),
                    "title": one.title,
                    "day": words.day(datetime.fromtimestamp(one.sent_at, self._zone).date()),
                    "list": one.list_title if len(lists) > 1 and not key else "",
                    "description": description_of(self._content(one.content_hash)),
                }
                for one in part
            ],
            newer=self._list(self._root, key, number - 1) if number > 1 else "",
            older=self._list(self._root, key, number + 1) if len(shown) > first + PAGE_LETTERS else "",
        )
        kept = ("Content-Security-Policy", "Content-Language")
        more = {name: response.headers[name] for name in kept}
        if not self._settings.language:
            more["Vary"] = "Accept-Language"
        return cached(request, bytes(response.body).decode(), more)

    def letter(self: Own, request: Request, slug: str) -> Response:
        """One public letter."""
        asked = self._public_url and _SLUG.fullmatch(slug)
        found = web_archive.web_letter(self._store, slug) if asked else None
        if found is None or not found.public:
            return self._none(request, was_here=found is not None)
        page = self._page(found.content_hash)
        if page is None:
            return self._none(request)
        words = language(page.language or self._settings.language or page.lang)
        known = [one for one in self._letters() if one.list_key == found.list_key]
        place = next((n for n, one in enumerate(known) if one.id == found.id), None)
        newer = known[place - 1] if place else None
        older = known[place + 1] if place is not None and place + 1 < len(known) else None
        around: Any = TEMPLATES.get_template("web_letter.html.j2").module
        address, feed = self._address(found), self._public_url + self._feed("")
        html = page.html(
            head=around.head(page, address, feed, self._org, _iso(found.sent_at)),
            above=around.above(f"{self._root}/archive", words),
            below=around.below(self._named(newer), self._named(older), self._join(found, words), words),
        )
        return cached(request, html, LETTER_HEADERS)

    def feed(self: Own, request: Request, key: ListKey = "") -> Response:
        """The newest public letters as Atom, whole."""
        part = [one for one in self._letters() if key in ("", one.list_key)][:FEED_LETTERS]
        known = [one for one in self._known if key in ("", one.list_key)]  # also what was unpublished
        if not self._public_url or (key and not known):
            return self._none(request)
        changed = max((one.changed_at for one in known), default=0.0)
        words = language(self._settings.language or FALLBACK)
        xml = TEMPLATES.get_template("feed.xml.j2").render(
            lang=words.code,
            title=self._title(words, known[0].list_title if key else None),
            author=self._org,
            address=self._public_url + self._feed(key),
            archive=self._public_url + self._list("", key, 1),
            updated=_iso(max((one.updated_at for one in part), default=0.0)),
            entries=[(one, web_page(self._content(one.content_hash)), self._address(one)) for one in part],
            iso=_iso,
        )
        return cached(request, _NOT_IN_XML.sub("", xml), kind="application/atom+xml", changed=changed)

    def sitemap(self: Own, request: Request) -> Response:
        """The address of every public letter, for search engines."""
        if not self._public_url:
            return self._none(request)
        letters = [(self._address(one), _iso(one.updated_at)) for one in self._letters()]
        pages = [(f"{self._public_url}/archive", ""), *letters]
        xml = TEMPLATES.get_template("sitemap.xml.j2").render(pages=pages)
        return cached(request, xml, kind="application/xml")

    # ── what they need ──

    def _letters(self) -> list[ArchivedLetter]:
        """The public ones; `_known` are also those that were."""
        with self._reading:  # who comes meanwhile waits, instead of reading it as well
            if time.monotonic() > self._known_at + LISTING_SECONDS:
                self._known = web_archive.web_letters(self._store)
                self._known_at = time.monotonic()
        return [one for one in self._known if one.public]

    def _page(self, content_hash: str | None) -> WebPage | None:
        try:
            return None if content_hash is None else web_page(self._content(content_hash))
        except NotFound:
            return None

    def _none(self, request: Request, *, was_here: bool = False) -> Response:
        request.state.why = "no letter, or not any more"
        status, archive = 410 if was_here else 404, f"{self._root}/archive"
        return self._pages.show(request, Page.NO_LETTER, status, was_here=was_here, archive=archive)

    def _title(self, words: Language, list_title: str | None) -> str:
        title = words.pages["letters_of"].format(org=self._org) if self._org else words.pages["letters"]
        return f"{title}: {list_title}" if list_title else title

    def _choices(self, lists: dict[str, str], key: str, every: str) -> list[tuple[str, str, bool]]:
        named = [("", every), *lists.items()]
        return [(self._list(self._root, one, 1), name, one == key) for one, name in named]

    def _list(self, base: str, key: str, number: int) -> str:
        asked = ({"list": key} if key else {}) | ({"page": number} if number > 1 else {})
        return f"{base}/archive{'?' if asked else ''}{urlencode(asked)}"

    def _feed(self, key: str) -> str:
        return f"/archive/feed.xml{'?' if key else ''}{urlencode({'list': key} if key else {})}"

    def _link(self, letter: ArchivedLetter) -> str:
        return f"{self._root}/archive/{letter.slug}"

    def _address(self, letter: ArchivedLetter) -> str:
        return f"{self._public_url}/archive/{letter.slug}"

    def _named(self, letter: ArchivedLetter | None) -> tuple[str, str] | None:
        return None if letter is None else (self._link(letter), letter.title)

    def _join(self, letter: ArchivedLetter, words: Language) -> Markup | None:
        """The form to sign up for what this letter is one of."""
        if not self._signs_up or not letter.joinable:
            return None
        return Markup(signup_form(letter.list_key, self._public_url, words))  # noqa: S704 (escaped there)


Own = Annotated[WebArchive, own(WebArchive)]
routes = APIRouter(tags=["archive"])
for _path, _answer, _kind in (
    ("/view/{token}", WebArchive.view, "text/html"),
    ("/archive", WebArchive.letters, "text/html"),
    ("/archive/feed.xml", WebArchive.feed, "application/atom+xml"),
    ("/archive/sitemap.xml", WebArchive.sitemap, "application/xml"),
    ("/archive/{slug}", WebArchive.letter, "text/html"),
):
    _responses: dict[int | str, dict[str, Any]] = {
        200: {"description": "What is asked for", "content": {_kind: {}}},
        304: {"description": "As it was"},
        404: {"description": "None is there", "content": {"text/html": {}}},
        410: {"description": "It was here", "content": {"text/html": {}}},
        **errors(503),
    }
    routes.get(_path, response_class=Response, responses=_responses)(_answer)
    routes.head(_path, include_in_schema=False)(_answer)


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def cached(
    request: Request,
    text: str,
    more: Mapping[str, str] | None = None,
    *,
    kind: str = "text/html",
    changed: float | None = None,
) -> Response:
    """An answer that caches may keep; 304, if whoever asks has it."""
    data = text.encode()
    headers = {
        "ETag": f'"{hashlib.sha256(data).hexdigest()[:32]}"',
        "Cache-Control": f"public, max-age={CACHE_SECONDS}",
        **(more or {}),
    }
    if changed is not None:
        headers["Last-Modified"] = formatdate(changed, usegmt=True)
    answer = Response(data, headers=headers, media_type=kind)
    has_it = StaticFiles(check_dir=False).is_not_modified(answer.headers, request.headers)
    # With all its headers: a cache takes over those of a 304.
    return Response(status_code=304, headers=headers) if has_it else answer
