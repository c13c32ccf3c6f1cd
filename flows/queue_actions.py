"""What a person can do with a mailout, as flows: by hand from Prefect's pages, or by an automation."""

from __future__ import annotations

from typing import Annotated

from prefect import flow
from pydantic import Field

from mailout import wiring
from mailout.delivery.protocol import Timing
from mailout.queue import acts
from mailout.queue.acts import Verdict
from mailout.queue.model import Mailout
from mailout.reporting.words import headline, waiting

MailoutId = Annotated[str, Field(description="The mailout's id, as `mailout queue list` shows it")]


@flow(name="cancel_mailout", retries=0)
def cancel_mailout(mailout_id: MailoutId) -> str:
    """Take a mailout back. What has left has left; nobody else gets it, and it cannot be resumed."""
    engine = wiring.engine()
    cancelled = acts.cancel(engine.store, mailout_id)
    engine.pages.tell(mailout_id)
    return _told(cancelled)


@flow(name="pause_mailout", retries=0)
def pause_mailout(
    mailout_id: MailoutId,
    note: Annotated[str | None, Field(description="Why, for whoever comes to resume it")] = None,
) -> str:
    """Hold a mailout until somebody resumes it. What is in hand is finished."""
    return _told(acts.pause(wiring.engine().store, mailout_id, note))


@flow(name="resume_mailout", retries=0)
def resume_mailout(mailout_id: MailoutId) -> str:
    """Let a mailout go on, whatever it waited for; `run_queue` takes it up within a minute."""
    return _told(acts.resume(wiring.engine().store, mailout_id))


@flow(name="retry_mailout", retries=0)
def retry_mailout(mailout_id: MailoutId) -> str:
    """Try the failed messages of a mailout again, and no others; `run_queue` sends them."""
    engine = wiring.engine()
    acts.retry(engine.store, mailout_id)
    engine.report(mailout_id)
    return _told(engine.store.mailout(mailout_id))


@flow(name="settle_mailout", retries=0)
def settle_mailout(
    mailout_id: MailoutId,
    verdict: Annotated[
        Verdict,
        Field(description="What became of the messages in doubt; `pending` sends them again"),
    ],
    messages: Annotated[
        list[str] | None, Field(description="Only these messages, by their ids; empty: all in doubt")
    ] = None,
) -> str:
    """Say what became of messages that were handed over and never answered for."""
    engine = wiring.engine()
    acts.settle(engine.store, mailout_id, verdict, Timing.of(engine.settings.lock_seconds), messages or None)
    engine.report(mailout_id)
    return _told(engine.store.mailout(mailout_id))


@flow(name="pause_everything", retries=0)
def pause_everything(
    paused: Annotated[
        bool, Field(description="True: nothing leaves any more. False: sending goes on")
    ] = True,
) -> str:
    """Hold everything, also what comes later, or let it go on."""
    wiring.engine().store.pause_all(paused)
    return "Everything is paused." if paused else "Sending goes on."


def _told(mailout: Mailout) -> str:
    why = waiting(mailout, wiring.engine().limits.timezone)
    return " ".join(filter(None, (headline(mailout), why)))
