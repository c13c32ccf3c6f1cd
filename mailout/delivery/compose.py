"""A claimed message becomes a mail: its content (read once), its own link to leave by, its sender's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

from mailout.content.footer import Footer
from mailout.content.model import UNSUBSCRIBE_URL, Content
from mailout.content.tokens import Tokens
from mailout.content.variables import filled, placeholders, variables_of
from mailout.delivery.port import Mail
from mailout.delivery.protocol import Claimed

CONTENTS_KEPT = 256
GENERAL = "general"


class Composer:
    """For one mailout: everything that its messages share is fixed here."""

    def __init__(
        self,
        contents: Callable[[str], Content],
        *,
        footer: Footer,
        tokens: Tokens,
        from_email: str,
        from_name: str,
        reply_to: str | None,
        list_key: str | None,
        is_test: bool = False,
        test_word: str = "Test",
        unsubscribe_mailbox: str | None = None,
    ) -> None:
        self._content = lru_cache(CONTENTS_KEPT)(
            partial(_as_test, contents, test_word) if is_test else contents
        )
        self._footer = footer
        self._tokens = tokens
        self._from_email = from_email
        self._from_name = from_name
        self._reply_to = reply_to
        self._list_key = list_key
        self._is_test = is_test
        self._unsubscribe_mailbox = unsubscribe_mailbox
        self._list_id = list_id(list_key, from_email)

    def __call__(self, row: Claimed) -> Mail:
        token = self._tokens.make(row.email, self._list_key)
        url = self._footer.url(token, self._tokens.make_message(row.attempt.id))
        content, from_name = self._content(row.content_hash), row.from_name or self._from_name
        values = {**row.variables, UNSUBSCRIBE_URL: url}
        if variables := variables_of(content):
            shown = placeholders(variables) if self._is_test else row.variables
            own = {**shown, "email": row.email, "from_name": from_name or self._from_email}
            values |= filled(variables, own)
        return Mail(
            attempt=row.attempt,
            mailout_id=row.mailout_id,
            to=row.email,
            from_email=self._from_email,
            from_name=from_name,
            reply_to=self._reply_to,
            content=content,
            values=values,
            unsubscribe_url=url,
            unsubscribe_mailbox=self._unsubscribe_mailbox,
            list_id=self._list_id,
        )


def list_id(list_key: str | None, from_email: str) -> str:
    """RFC 2919: the list's name under the sender's domain. A mailout without a list is everybody's."""
    label = re.sub(r"[^a-z0-9]+", "-", (list_key or GENERAL).lower()).strip("-") or GENERAL
    domain = from_email.rpartition("@")[2]
    return f"{label[:60]}.{domain if domain.isascii() else domain.encode('idna').decode()}"


def _as_test(contents: Callable[[str], Content], word: str, hash: str) -> Content:
    """Nobody should take a test for the letter. Added here, so that a test has the hash of what it tests."""
    content = contents(hash)
    return replace(content, subject=f"[{word}] {content.subject}")
