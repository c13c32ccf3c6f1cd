"""Send one mailout, from the manuscript to the report."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.states import Completed, State

from flows.outcome import outcome_of
from tasks.audience import freeze
from tasks.content import take_up
from tasks.delivery import send_stretch, start
from tasks.reporting import report, show_progress


@flow(name="send_mailout", retries=0, log_prints=False)
def send_mailout(ref: str, test: bool | None = None, if_ready: bool = False) -> State[Any]:
    """Send one mailout to everyone who should have it, once.

    Run again after a crash, it goes on where it stopped. A mailout that has to wait ends this run as
    `Deferred`, with the reason; `run_queue` takes it up again.

    Args:
        ref: A Notion page (id or URL), or the path of a Markdown file.
        test: True: only to TEST_EMAILS. False: for real. Empty: as the page or file says.
        if_ready: True: only if the Notion page is Ready and its time has come; else nothing happens.
    """
    mailout_id = take_up(ref, test, if_ready)
    if mailout_id is None:
        return Completed(message="The page does not ask to be sent.", name="Not ready")
    return deliver(mailout_id)


def deliver(mailout_id: str) -> State[Any]:
    """The rest of the story, for whoever has a mailout's id."""
    freeze(mailout_id)
    progress = show_progress(mailout_id)
    if start(mailout_id):
        while send_stretch(mailout_id, progress):
            continue
    report(mailout_id, progress)
    return outcome_of(mailout_id)
