"""Take up what is due. Runs every minute; also by hand. Two at once do no harm: the store is the brake."""

from __future__ import annotations

from typing import Any

from prefect import flow, get_run_logger
from prefect.states import Completed, State

from flows.send_mailout import deliver
from mailout import wiring
from mailout.delivery.protocol import Timing
from mailout.requests import take_up_asked, take_up_ready


@flow(name="run_queue", retries=0)
def run_queue() -> State[Any]:
    """Send every mailout whose time has come, one after the other, those of a crashed run included.

    Pages in Notion that are `Ready` are taken up first.
    """
    engine = wiring.engine()
    timing = Timing.of(engine.settings.lock_seconds)
    engine.store.reap(timing.reap_grace)
    if engine.store.all_paused():
        engine.pages.tell_due()
        return Completed(message="Everything is paused.", name="Paused")
    take_up_ready(engine)
    take_up_asked(engine)
    due = engine.store.due_mailouts(stale=timing.lease)
    if not due:
        return Completed(message="Nothing is due.")
    logger = get_run_logger()
    ended = []
    for mailout in due:
        state = deliver(mailout.id)
        logger.info("%s: %s %s", mailout.id, state.name, state.message)
        ended.append(f"{mailout.id}: {state.name}")
    return Completed(message="; ".join(ended))
