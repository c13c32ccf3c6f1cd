"""Apply what SES has reported: soon after the gateway has heard of something, and every hour."""

from __future__ import annotations

from typing import Any

from prefect import State
from prefect.states import Completed

from flows.runs import mailout_flow
from mailout.app.engine import Engine
from tasks.feedback import apply_events, poll_queue

ROUNDS = 20
"""Of the queue in one run; what is left then waits for the next."""


@mailout_flow()
def ingest_ses_events(engine: Engine) -> State[Any]:
    """Take events from SQS (if there is a queue) and from the gateway's inbox to messages and subscribers.

    Killed anywhere, the next run goes on: nothing is lost and nothing counts twice.
    """
    applied = apply_events()  # first: asking an empty queue takes its time
    for _ in range(ROUNDS):
        if not poll_queue():
            break
        applied += apply_events()
    if not applied.events and not applied.problems:
        return Completed(message="Nothing waits.")
    return Completed(
        message=f"{applied.events} events applied, {applied.statuses} subscribers changed,"
        f" {applied.problems} could not be used."
    )
