"""Apply what SES has reported: every minute, and soon after the gateway has heard of something."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.states import Completed, State

from tasks.feedback import apply_events, poll_queue


@flow(name="ingest_ses_events", retries=0)
def ingest_ses_events() -> State[Any]:
    """Take events from SQS (if there is a queue) and from the gateway's inbox to messages and subscribers.

    Killed anywhere, the next run goes on: nothing is lost and nothing counts twice.
    """
    taken = poll_queue()
    applied = apply_events()
    if not taken and not applied.events and not applied.problems:
        return Completed(message="Nothing waits.")
    return Completed(
        message=f"{applied.events} events applied, {applied.statuses} subscribers changed,"
        f" {applied.problems} could not be used."
    )
