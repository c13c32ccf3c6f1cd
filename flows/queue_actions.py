"""What a person can do with a mailout, as flows: by hand from Prefect's pages, or by an automation.

Prefect takes the descriptions of parameters from `Args:` alone.
"""

from __future__ import annotations

from prefect import flow

from flows.heartbeats import heartbeats
from mailout.app import wiring
from mailout.insight.reporting.phrases import headline, waiting
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.queue import actions
from mailout.outbox.queue.actions import Verdict
from mailout.outbox.queue.mailout import Mailout
from tasks.logs import redacted


@flow(name="cancel_mailout", retries=0)
@heartbeats
@redacted
def cancel_mailout(mailout_id: str) -> str:
    """Take a mailout back. What has left has left; nobody else gets it, and it cannot be resumed.

    Args:
        mailout_id: The mailout's id, as `mailout queue list` shows it.
    """
    engine = wiring.engine()
    cancelled = actions.cancel(engine.store, mailout_id)
    engine.pages.update(mailout_id)
    return _summary(cancelled)


@flow(name="pause_mailout", retries=0)
@heartbeats
@redacted
def pause_mailout(mailout_id: str, note: str | None = None) -> str:
    """Hold a mailout until somebody resumes it. What is in hand is finished.

    Args:
        mailout_id: The mailout's id, as `mailout queue list` shows it.
        note: Why, for whoever comes to resume it.
    """
    return _summary(actions.pause(wiring.engine().store, mailout_id, note))


@flow(name="resume_mailout", retries=0)
@heartbeats
@redacted
def resume_mailout(mailout_id: str) -> str:
    """Let a mailout go on, whatever it waited for; `run_queue` continues it within seconds.

    Args:
        mailout_id: The mailout's id, as `mailout queue list` shows it.
    """
    return _summary(actions.resume(wiring.engine().store, mailout_id))


@flow(name="retry_mailout", retries=0)
@heartbeats
@redacted
def retry_mailout(mailout_id: str) -> str:
    """Try the failed messages of a mailout again, and no others; `run_queue` sends them.

    Args:
        mailout_id: The mailout's id, as `mailout queue list` shows it.
    """
    engine = wiring.engine()
    actions.retry(engine.store, mailout_id)
    engine.report(mailout_id)
    return _summary(engine.store.mailout(mailout_id))


@flow(name="settle_mailout", retries=0)
@heartbeats
@redacted
def settle_mailout(mailout_id: str, verdict: Verdict, messages: list[str] | None = None) -> str:
    """Say what became of messages that were handed over and never answered for.

    Args:
        mailout_id: The mailout's id, as `mailout queue list` shows it.
        verdict: What became of the messages in doubt; `pending` sends them again.
        messages: Only these messages, by their ids. Empty: all that are in doubt.
    """
    engine = wiring.engine()
    actions.settle(
        engine.store, mailout_id, verdict, Timing.of(engine.settings.lock_seconds), messages or None
    )
    engine.report(mailout_id)
    return _summary(engine.store.mailout(mailout_id))


@flow(name="pause_everything", retries=0)
@heartbeats
@redacted
def pause_everything(paused: bool = True) -> str:
    """Hold everything, also what comes later, or let it go on.

    Args:
        paused: Yes: nothing leaves any more. No: sending goes on.
    """
    wiring.engine().store.pause_all(paused)
    return "Everything is paused." if paused else "Sending goes on."


def _summary(mailout: Mailout) -> str:
    why = waiting(mailout, wiring.engine().limits.timezone)
    return " ".join(filter(None, (headline(mailout), why)))
