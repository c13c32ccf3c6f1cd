"""Signing in by a mailed link: asked for in a browser, opened there within 15 minutes, used once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool

from gateway.dashboard.sessions import Role
from gateway.prefect_events import SINGLE_MAILS_EVENT, Emitter
from gateway.wrong_passwords import MOST_FROM_ONE, WrongPasswords
from mailout.base.addresses import normalise
from mailout.base.errors import StoreError
from mailout.base.ids import transactional_id
from mailout.base.settings import Settings
from mailout.base.signed_links import SignedLinks
from mailout.letters.content.model import Content, clean, mark
from mailout.outbox.delivery.single_mails import OURS, SIGNED_LINK, SignedLink, SingleMail, Verdict
from mailout.store import Store

log = logging.getLogger("mailout.gateway")

PURPOSE = "sign-in"
CONFIRM_PATH = "/login/confirm"
LINK_SECONDS = 900.0
USED_LINK_SECONDS = LINK_SECONDS + 3600.0
"""How long it is known that a link was used: longer than it lasts, as the store's clock may be ahead."""
MAILS_PER_WINDOW = 3 * MOST_FROM_ONE
"""To one address in `LINK_SECONDS`, whoever asks, on all gateways together. What one place may ask for is far
less: else a stranger could use it up, and its owner would get no link."""
MAILS_UNDER_WAY = 20

TOO_OLD = "This link does not work: it is older than 15 minutes, or a part of it is missing."
OTHER_BROWSER = "Open this link in the browser in which you asked for it, at"
USED = "This link was used already: each one works once."


class LinkRefused(Exception):
    """Why a link signs nobody in."""


class SignInLinks:
    """Who asks is told the same for every address, and before anything is done: neither words nor time say
    whether an address may sign in."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        rehearses: bool,
        emitter: Emitter | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """The settings see to it that there is an address and a secret where somebody may sign in so."""
        self.people = people_of(settings)
        self.public_url = (settings.public_url or "").rstrip("/")
        self.asked = WrongPasswords()
        self._store = store
        self.signed = SignedLinks(settings.unsubscribe_keys[:1], PURPOSE)  # it lasts minutes: no older secret
        self._content = letter(settings.org_name)
        self._rehearses = rehearses
        self._emitter = emitter
        self._now = now
        self._under_way: set[asyncio.Task[None]] = set()

    def send_soon(self, written: str, browser: str) -> None:
        """After the answer: what an address costs must not be felt by who asks."""
        if len(self._under_way) < MAILS_UNDER_WAY:
            task = asyncio.create_task(self._send(written, browser))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _send(self, written: str, browser: str) -> None:
        email = str(normalise(written))
        if email not in self.people:
            return
        try:
            is_served = await run_in_threadpool(self._hand_in, email, browser)
        except StoreError as error:
            log.warning("a link to sign in was not sent: %s", error)
            return
        if not is_served and self._emitter is not None:
            self._emitter.emit(SINGLE_MAILS_EVENT)  # the watch would find it seconds later

    def _hand_in(self, email: str, browser: str) -> bool:
        """Into the outbox; whether somebody is there to send it. Its id holds the limit on every gateway."""
        now = self._now()
        window = int(now // LINK_SECONDS)
        payload = {"email": email, "at": int(now), "browser": _hash(browser)}
        for number in range(MAILS_PER_WINDOW):
            key = f"sign-in {email} {window} {number}"
            mail = SingleMail(
                id=transactional_id(OURS, key, rehearsal=self._rehearses),
                company_id=OURS,
                request_id=f"sign-in {window} {number}",
                email=email,
                content=self._content,
                from_name="mailout",
                idempotency_key=key,
                is_rehearsal=self._rehearses,
                link=SignedLink(PURPOSE, CONFIRM_PATH, payload),
            )
            if self._store.accept_single_mails([mail])[0].verdict is Verdict.ACCEPTED:
                return self._store.single_mails_waiting(rehearsal=self._rehearses).is_served
        log.warning("no link to sign in was sent: %d were, within 15 minutes", MAILS_PER_WINDOW)
        return True

    def check(self, token: str, browser: str | None) -> str:
        """Whose link it is; or `LinkRefused`. It changes nothing."""
        payload = self.signed.read_fresh(token, self._now(), LINK_SECONDS)
        if payload is None or payload["email"] not in self.people:
            raise LinkRefused(TOO_OLD)
        if not hmac.compare_digest(_hash(browser or ""), payload["browser"]):
            raise LinkRefused(f"{OTHER_BROWSER} {self.public_url}.")
        email: str = payload["email"]
        return email

    def use(self, token: str, browser: str | None) -> str:
        """The same, and it never works again: the store decides between two at the same time."""
        email = self.check(token, browser)
        if not self._store.end_login(_hash(token), self._now() + USED_LINK_SECONDS):
            raise LinkRefused(USED)
        return email


def people_of(settings: Settings) -> dict[str, Role]:
    """Who may sign in by a link. Who is in both lists is an administrator."""
    editors = dict.fromkeys(settings.sign_in_editors, Role.EDITOR)
    return editors | dict.fromkeys(settings.sign_in_admins, Role.ADMIN)


def new_browser() -> str:
    return secrets.token_urlsafe(24)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def letter(org_name: str | None) -> Content:
    """The same for everybody: only the link differs, and it comes in while the mail is sent."""
    subject = f"Sign in to {clean(org_name or 'mailout')}"
    before = "You asked to sign in to the mailout dashboard. Open this link in the same browser:"
    after = "It works once, for 15 minutes. If you did not ask for it, do nothing: nobody gets in without it."
    url = mark(SIGNED_LINK)
    # `ses:no-track` is for SES: it would lead the link over its own address and report it.
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"></head>'
        '<body style="font:16px/1.5 sans-serif;max-width:36em">'
        f'<p>{before}</p><p><a ses:no-track href="{url}">Sign in</a></p><p>{after}</p></body></html>'
    )
    return Content(subject, html, f"{before}\n\n{url}\n\n{after}\n")
