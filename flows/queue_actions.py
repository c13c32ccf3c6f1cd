"""What a person can do with a mailout, as flows: by hand from Prefect's pages, or by an automation.

Prefect takes the descriptions of parameters from `Args:` alone.
"""

from __future__ import annotations

from typing import Any

from prefect import State
from prefect.states import Completed

from flows.runs import mailout_flow
from mailout.app.engine import Engine
from mailout.insight.reporting.phrases import headline, waiting
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.queue import actions
from mailout.outbox.queue.actions import SettleVerdict
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.short_ids import with_id
from tasks.logs import hidden


@mailout_flow()
def cancel_mailout(engine: Engine, mailout_id: str) -> State[Any]:
    """Cancel a mailout. Mail already sent stays sent; nobody else gets it, and it cannot be resumed.

    Args:
        mailout_id: The mailout's id, as `mailout queue list` shows it.
    """
    cancelled = actions.cancel(engine.store, with_id(engine.store, mailout_id))
    engine.pages.update(cancelled.id)
    return _done(engine, cancelled)


@mailout_flow()
def pause_mailout(engine: Engine, mailout_id: str, note: str | None = None) -> State[Any]:
    """Hold a mailout until somebody resumes it. What is in hand is finished.

    Args:
        mailout_id: The mailout's id, as `mailout queue list` shows it.
        note: Why, for whoever comes to resume it.
    """
    return _done(engine, actions.pause(engine.store, with_id(engine.store, mailout_id), note))


@mailout_flow()
def resume_mailout(engine: Engine, mailout_id: str) -> State[Any]:
    """Let a mailout go on, whatever it waited for; `run_queue` continues it within seconds.

    Args:
        mailout_id: The mailout's id, as `mailout queue list` shows it.
    """
    return _done(engine, actions.resume(engine.store, with_id(engine.store, mailout_id)))


@mailout_flow()
def retry_mailout(engine: Engine, mailout_id: str) -> State[Any]:
    """Try the failed messages of a mailout again, and no others; `run_queue` sends them.

    Args:
        mailout_id: The mailout's id, as `mailout queue list` shows it.
    """
    id = with_id(engine.store, mailout_id)
    actions.retry(engine.store, id)
    engine.report(id)
    return _done(engine, engine.store.mailout(id))


@mailout_flow()
def settle_mailout(
    engine: Engine, mailout_id: str, verdict: SettleVerdict, messages: list[str] | None = None
) -> State[Any]:
    """Say what became of messages that were handed over and never answered for.

    Args:
        mailout_id: The mailout's id, as `mailout queue list` shows it.
        verdict: What became of the messages in doubt; `pending` sends them again.
        messages: Only these messages, by their ids. Empty: all that are in doubt.
    """
    id = with_id(engine.store, mailout_id)
    actions.settle(engine.store, id, verdict, Timing.of(engine.settings.lock_seconds), messages or None)
    engine.report(id)
    return _done(engine, engine.store.mailout(id))


@mailout_flow()
def pause_everything(engine: Engine, paused: bool = True) -> State[Any]:
    """Hold everything, also what comes later, or let it go on.

    Args:
        paused: Yes: nothing is sent any more. No: sending goes on.
    """
    engine.store.pause_all(paused)
    return Completed(message="Everything is paused." if paused else "Sending goes on.")


def _done(engine: Engine, mailout: Mailout) -> State[Any]:
    """The sentence is what Prefect's pages show of the run."""
    why = waiting(mailout, engine.limits.timezone)
    return Completed(message=hidden(" ".join(filter(None, (headline(mailout), why)))))
