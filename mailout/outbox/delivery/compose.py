"""A claimed message becomes a mail: its content (read once), its own unsubscribe link, its sender's name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from mailout.base.addresses import punycode
from mailout.base.errors import UsageError
from mailout.base.signed_links import SignedLinks, Tokens
from mailout.letters.audience.list_rows import GENERAL
from mailout.letters.content.footer import Footer
from mailout.letters.content.languages import FALLBACK, language
from mailout.letters.content.layout import language_asked_for
from mailout.letters.content.model import UNSUBSCRIBE_URL, VIEW_URL, Content
from mailout.letters.content.variables import filled, placeholders, variables_of
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Claimed
from mailout.outbox.delivery.single_mails import SIGNED_LINK, Category, SignedLink

CONTENTS_KEPT = 256
SINGLE_CONTENTS_KEPT = 8
"""Hardly any two single mails have the same."""


@dataclass(repr=False)
class Composer:
    """For one mailout: everything that its messages share is fixed here."""

    contents: Callable[[str], Content]
    footer: Footer
    tokens: Tokens
    from_email: str
    from_name: str
    reply_to: str | None
    list_key: str | None
    view_url: Callable[[str], str]  # of a content: where everybody sees it in a browser
    list_name: str | None = None  # None: its key
    is_test: bool = False
    unsubscribe_mailbox: str | None = None

    def __post_init__(self) -> None:
        read = partial(_as_test, self.contents) if self.is_test else self.contents
        self._content = lru_cache(CONTENTS_KEPT)(read)
        self._view_url = lru_cache(CONTENTS_KEPT)(self.view_url)
        self._list_id = list_id(self.list_key, self.from_email)
        self._list_name = list_name(self.list_key, self.footer.org_name, self.list_name)

    def __call__(self, row: Claimed) -> Mail:
        token = self.tokens.make(row.email, self.list_key)
        links = self.footer.urls(token, self.tokens.make_message(row.attempt.id))
        content, from_name = self._content(row.content_hash), row.from_name or self.from_name
        values = {**row.variables, **links, VIEW_URL: self._view_url(row.content_hash)}
        if variables := variables_of(content):
            shown = placeholders(variables) if self.is_test else row.variables
            own = {**shown, "email": row.email, "from_name": from_name or self.from_email}
            values |= filled(variables, own)
        return Mail(
            attempt=row.attempt,
            mailout_id=row.mailout_id,
            to=row.email,
            from_email=self.from_email,
            from_name=from_name,
            reply_to=self.reply_to,
            content=content,
            values=values,
            unsubscribe_url=links[UNSUBSCRIBE_URL],
            unsubscribe_mailbox=self.unsubscribe_mailbox,
            list_id=self._list_id,
            list_name=self._list_name,
        )


@dataclass(repr=False)
class SingleComposer:
    """For mails without a mailout: each brings its own content, and what else differs."""

    contents: Callable[[str], Content]
    footer: Callable[[], Footer]
    tokens: Tokens | None
    from_email: str
    from_name: str
    reply_to: str | None
    transactional_from_email: str | None = None  # None: the same
    link_secrets: Sequence[str] = ()
    public_url: str | None = None
    view_url: Callable[[str], str] = lambda content: "#"  # of a letter to one reader at a time

    def __post_init__(self) -> None:
        self._content = lru_cache(SINGLE_CONTENTS_KEPT)(self.contents)

    def __call__(self, row: Claimed) -> Mail:
        is_transactional = row.category in (Category.TRANSACTIONAL, Category.CONFIRMATION)
        given = row.variables.get(UNSUBSCRIBE_URL)  # somebody else's link: it may not understand a POST
        own = {} if is_transactional else self._own_links(row)
        values = {**row.variables, **own}
        if described := row.variables.get(SIGNED_LINK):
            values[SIGNED_LINK] = self._secret_link(SignedLink.read(described))
        if not row.content_hash:  # its recipient was forgotten while it was in doubt
            raise UsageError("its content was erased.")
        content = self._content(row.content_hash)
        if VIEW_URL in content.html_segments.names:
            values[VIEW_URL] = self.view_url(row.content_hash)
        return Mail(
            attempt=row.attempt,
            mailout_id=None,
            to=row.email,
            from_email=(is_transactional and self.transactional_from_email) or self.from_email,
            from_name=row.from_name or self.from_name,
            reply_to=row.reply_to or self.reply_to,
            content=content,
            values=values,
            unsubscribe_url=own.get(UNSUBSCRIBE_URL) or given,
            one_click=bool(own),
            list_id=None if is_transactional else list_id(row.list_key, self.from_email),
            list_name="" if is_transactional else list_name(row.list_key, self.footer().org_name),
            tags=row.tags,
            headers=row.headers or {},
        )

    def _own_links(self, row: Claimed) -> Mapping[str, str]:
        """Marketing never goes without an unsubscribe link: without its settings, the message fails."""
        if self.tokens is None:
            raise UsageError("marketing needs UNSUBSCRIBE_SECRET.")
        token = self.tokens.make(row.email, row.list_key)
        return self.footer().urls(token, self.tokens.make_message(row.attempt.id))

    def _secret_link(self, link: SignedLink) -> str:
        """Signed here and nowhere before. The address is the setting's: a request could name a stranger's."""
        if not self.public_url or not self.link_secrets:
            raise UsageError("a mail with a secret link needs PUBLIC_URL and UNSUBSCRIBE_SECRET.")
        token = SignedLinks(self.link_secrets, link.purpose).make(link.payload)
        return f"{self.public_url.rstrip('/')}{link.path}?token={token}"


def list_id(list_key: str | None, from_email: str) -> str:
    """RFC 2919: the list's name under the sender's domain. A mailout without a list is everybody's."""
    label = re.sub(r"[^a-z0-9]+", "-", (list_key or GENERAL).lower()).strip("-") or GENERAL
    domain = from_email.rpartition("@")[2]
    return f"{label[:60]}.{domain if domain.isascii() else punycode(domain)}"


def list_name(list_key: str | None, org_name: str, name: str | None = None) -> str:
    """What mail programs show of it."""
    return org_name if list_key in (None, GENERAL) else f"{org_name}: {name or list_key}"


def _as_test(contents: Callable[[str], Content], hash: str) -> Content:
    """Nobody should take a test for the letter. Added here, so that a test has the hash of what it tests."""
    content = contents(hash)
    word = language(language_asked_for(content) or FALLBACK).test
    return replace(content, subject=f"[{word}] {content.subject}")
