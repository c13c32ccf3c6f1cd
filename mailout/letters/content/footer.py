"""The footer that every mailout ends with: who writes, from where, and how to leave."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from urllib.parse import quote

from mailout.letters.content.languages import Language
from mailout.letters.content.model import PREFERENCES_URL, UNSUBSCRIBE_URL, VIEW_URL, clean, mark

UNSUBSCRIBE = "Unsubscribe"
"""The word of the link, unless a language is asked for."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The sender's particulars. Only the address to leave by differs between recipients."""

    org_name: str
    org_address: str
    unsubscribe_base_url: str
    public_url: str | None = None  # where readers find the gateway's other pages; None: they have none
    view_in_browser: bool = False  # the letter has a page there

    def url(self, token: str, message: str | None = None) -> str:
        """Where this recipient leaves, and by which message. Safe as it is in HTML, in text, in a header."""
        base = _quoted(self.unsubscribe_base_url)
        link = f"{base}{'&' if '?' in base else '?'}token={token}"
        return link if message is None else f"{link}&m={message}"

    def urls(self, token: str, message: str | None = None) -> dict[str, str]:
        """Where all of this recipient's own links lead, by their marks.

        Content that was rendered with a link to choose keeps its mark, also if `PUBLIC_URL` is gone since.
        """
        leave = self.url(token, message)
        public = None if self.public_url is None else _quoted(self.public_url.rstrip("/"))
        choose = leave if public is None else f"{public}/preferences?token={token}"
        return {UNSUBSCRIBE_URL: leave, PREFERENCES_URL: choose}

    def reader_links(self, words: Language) -> tuple[tuple[str, str], ...]:
        """(label, mark) of the row above the footer: what a reader can do beside unsubscribing."""
        if self.public_url is None:
            return ()
        view = ((words.pages["view"], mark(VIEW_URL)),) if self.view_in_browser else ()
        return (*view, (words.pages["choose"], mark(PREFERENCES_URL)))

    def html(self, unsubscribe: str = UNSUBSCRIBE) -> str:
        name, address = escape(clean(self.org_name)), escape(clean(self.org_address))
        return (
            f'<hr><p>{name} — {address}</p><p><a href="{mark(UNSUBSCRIBE_URL)}">{escape(unsubscribe)}</a></p>'
        )

    def text(self, unsubscribe: str = UNSUBSCRIBE) -> str:
        name, address = clean(self.org_name), clean(self.org_address)
        return f"\n--\n{name} — {address}\n{unsubscribe}: {mark(UNSUBSCRIBE_URL)}"


@lru_cache(maxsize=8)
def _quoted(base: str) -> str:
    """A setting: the same for every message."""
    return re.sub(r"[\s\"'<>\\^`{|}\x00-\x1f\x7f-\U0010ffff]", lambda c: quote(c[0]), base)
