"""The footer that every mailout ends with: who writes, from where, and how to leave."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from mailout.letters.content.model import UNSUBSCRIBE_URL, clean, mark

UNSUBSCRIBE = "Unsubscribe"
"""The word of the link, unless a language is asked for."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The sender's particulars. Only the address to leave by differs between recipients."""

    org_name: str
    org_address: str
    unsubscribe_base_url: str

    def url(self, token: str, message: str | None = None) -> str:
        """Where this recipient leaves, and by which message. Safe as it is in HTML, in text, in a header."""
        base = re.sub(
            r"[\s\"'<>\\^`{|}\x00-\x1f\x7f-\U0010ffff]", lambda c: quote(c[0]), self.unsubscribe_base_url
        )
        link = f"{base}{'&' if '?' in base else '?'}token={token}"
        return link if message is None else f"{link}&m={message}"

    def html(self, unsubscribe: str = UNSUBSCRIBE) -> str:
        name, address = escape(clean(self.org_name)), escape(clean(self.org_address))
        return (
            f'<hr><p>{name} — {address}</p><p><a href="{mark(UNSUBSCRIBE_URL)}">{escape(unsubscribe)}</a></p>'
        )

    def text(self, unsubscribe: str = UNSUBSCRIBE) -> str:
        name, address = clean(self.org_name), clean(self.org_address)
        return f"\n--\n{name} — {address}\n{unsubscribe}: {mark(UNSUBSCRIBE_URL)}"
