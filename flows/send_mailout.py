"""Send one mailout, from the source to the report."""

from __future__ import annotations

from typing import Any

from prefect import State, flow
from prefect.states import Completed

from flows.delivery import Delivery, let_go_if_ended
from flows.heartbeats import heartbeats
from flows.outcome import outcome_of
from mailout import wiring
from mailout.errors import Abort, AbortCode
from mailout.intake.requests import still_asked
from mailout.queue.port import Request
from tasks.content import enqueue
from tasks.logs import redacted


@flow(name="send_mailout", retries=0, log_prints=False)
@heartbeats
@redacted
def send_mailout(
    ref: str, test: bool | None = None, if_ready: bool = False, asked: bool = False
) -> State[Any]:
    """Send one mailout to everyone who should have it, once.

    Run again after a crash, it goes on where it stopped. A mailout that has to wait ends this run as
    `Deferred`, with the reason; `run_queue` continues it.

    Args:
        ref: A Notion page (its id or address), or the path of a Markdown file.
        test: Yes: only to TEST_EMAILS. No: for real. Empty: as the page or file says.
        if_ready: Yes: only if the Notion page is Ready and its time has come; else nothing happens.
        asked: Yes: a request from outside has started it. If the queue was faster, nothing happens.
    """
    if asked and not still_asked(wiring.engine().intake, Request.of(ref, test, if_ready)):
        return Completed(message="The queue was faster: it has answered this request.", name="Answered")
    try:
        mailout_id = enqueue(ref, test, if_ready)
    except Abort as abort:
        if asked and abort.code is AbortCode.MAILOUT_ALREADY_SENT:
            return Completed(message=str(abort), name="Already sent")
        raise
    if mailout_id is None:
        return Completed(message="The page does not ask to be sent.", name="Not ready")
    return deliver(mailout_id)


def deliver(mailout_id: str) -> State[Any]:
    """The rest of the steps, for whoever has a mailout's id."""
    steps = Delivery()
    with let_go_if_ended([mailout_id]):
        if steps.begin(mailout_id):
            while steps.send_time_slice(mailout_id):
                continue
        steps.end(mailout_id)
    return outcome_of(mailout_id)
