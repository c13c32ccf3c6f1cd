"""Which pages are in the menu only where they are used: segments, articles, notifications, and so on."""

from __future__ import annotations

import time
from collections.abc import Callable

from gateway.dashboard.letter_numbers import modes_shown
from mailout.base.errors import StoreError
from mailout.insight.history import history_rows
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.outbox_rows import SINGLE_MAILS
from mailout.outbox.queue import segment_names
from mailout.store import Store

MENU_CHECK_SECONDS = 60.0


class UsedPages:
    """Looked up at most once a minute; what was used once stays in the menu."""

    def __init__(
        self,
        store: Store,
        *,
        has_producer: bool,
        has_sign_ups: bool = False,
        rehearses: bool,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._rehearses = rehearses
        self._monotonic = monotonic
        self._looked: float | None = None
        self._articles = self._segments = False
        self._notifications = has_producer
        self._sign_ups = has_sign_ups
        self._single_mails = False

    def menu(self) -> list[tuple[str, str]]:
        """(address, name) as far as is known; asks nobody."""
        pages = (
            (self._segments, "/segments", "Segments"),
            (self._articles, "/articles", "Articles"),
            (self._notifications, "/notifications", "Notifications"),
            (self._sign_ups, "/signups", "Sign-ups"),
            (self._single_mails, "/single-mails", "Single mails"),
        )
        return [(address, name) for used, address, name in pages if used]

    def look(self) -> None:
        """Never fails: a page that says why the store is silent has a menu, too."""
        now = self._monotonic()
        if self._looked is not None and now - self._looked < MENU_CHECK_SECONDS:
            return
        self._looked = now
        try:
            modes = modes_shown(self._rehearses)
            self._articles = self._articles or bool(
                history_rows.letters(self._store, modes=modes, kind=Kind.ARTICLE, limit=1)
            )
            self._segments = self._segments or bool(segment_names.segments(self._store))
            self._notifications = self._notifications or bool(
                history_rows.notification_states(self._store, rehearsal=self._rehearses)
            )
            self._single_mails = self._single_mails or bool(self._store.select(SINGLE_MAILS, limit=1))
        except StoreError:
            self._looked = None  # the page itself says what is wrong
