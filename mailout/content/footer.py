"""The footer that every mailout ends with: who writes, from where, and how to leave."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from mailout.content.model import UNSUBSCRIBE_URL, clean, mark
from mailout.errors import Abort, AbortCode

UNSUBSCRIBE = "Unsubscribe"
"""The word of the link, unless a language is asked for."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The sender's particulars. Only the address to leave by differs between recipients."""

    org_name: str
    org_address: str
    unsubscribe_base_url: str

    @classmethod
    def required(
        cls,
        *,
        org_name: str | None,
        org_address: str | None,
        unsubscribe_base_url: str | None,
        unsubscribe_secret: str | None,
    ) -> Footer:
        """The footer, or an abort that names every setting it lacks. The secret signs its links."""
        settings = {
            "ORG_NAME": (org_name or "").strip(),
            "ORG_ADDRESS": (org_address or "").strip(),
            "UNSUBSCRIBE_BASE_URL": (unsubscribe_base_url or "").strip(),
            "UNSUBSCRIBE_SECRET": (unsubscribe_secret or "").strip(),
        }
        missing = [name for name, value in settings.items() if not value]
        if missing:
            raise Abort(
                AbortCode.FOOTER_ENV_MISSING,
                f"The footer needs {', '.join(missing)}, and {'it is' if len(missing) == 1 else 'they are'}"
                " not set.",
                remedy="Set what is missing in the environment or in .env, then send again.",
            )
        return cls(settings["ORG_NAME"], settings["ORG_ADDRESS"], settings["UNSUBSCRIBE_BASE_URL"])

    def url(self, token: str, message: str | None = None) -> str:
        """Where this recipient leaves, and by which message. Safe as it is in HTML, in text, in a header."""
        base = re.sub(
            r"[\s\"'<>\\^`{|}\x00-\x1f\x7f-\U0010ffff]", lambda c: quote(c[0]), self.unsubscribe_base_url
        )
        link = f"{base}{'&' if '?' in base else '?'}token={token}"
        return link if message is None else f"{link}&m={message}"

    def html(self, url: str = mark(UNSUBSCRIBE_URL), *, unsubscribe: str = UNSUBSCRIBE) -> str:
        name, address = escape(clean(self.org_name)), escape(clean(self.org_address))
        return f'<hr><p>{name} — {address}</p><p><a href="{url}">{escape(unsubscribe)}</a></p>'

    def text(self, url: str = mark(UNSUBSCRIBE_URL), *, unsubscribe: str = UNSUBSCRIBE) -> str:
        return f"\n--\n{clean(self.org_name)} — {clean(self.org_address)}\n{unsubscribe}: {url}"
