"""Sees that somebody sends single mails: else Prefect is asked for a run that does."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool

from gateway.prefect_events import Emitter
from mailout.delivery.single_mails import SingleMails, SingleMailsWaiting
from mailout.errors import StoreError

log = logging.getLogger("mailout.gateway")

EVENT = "mailout.single_mails.waiting"
LOOK_EVERY = 2.0
TOO_LONG = 5.0
"""Seconds that a mail may wait with nobody sending."""
START_SECONDS = 20.0
"""What a run may take to start, before another one is asked for."""


def needs_a_sender(waiting: SingleMailsWaiting) -> bool:
    """Nobody sends, and a mail has waited too long; or one may come at any moment."""
    if waiting.is_served:
        return False
    waited = 0.0 if waiting.due_since is None else waiting.now - waiting.due_since
    return waiting.has_tokens or waited > TOO_LONG


class SingleMailWatch:
    def __init__(
        self,
        store: SingleMails,
        emitter: Emitter,
        *,
        rehearsal: bool,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._emitter = emitter
        self._rehearsal = rehearsal
        self._monotonic = monotonic
        self._next = 0.0

    async def look(self) -> None:
        now = self._monotonic()
        if now < self._next:
            return
        try:
            waiting = await run_in_threadpool(self._store.single_mails_waiting, rehearsal=self._rehearsal)
        except StoreError as error:
            log.warning("single mails could not be looked after: %s", error)
            return
        if needs_a_sender(waiting):
            self._next = now + START_SECONDS
            self._emitter.emit(EVENT)

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY)
