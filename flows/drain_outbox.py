"""Single mails: one long-lived run sends them as they come, for an hour; then the next takes over."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from prefect import State
from prefect.client.orchestration import SyncPrefectClient
from prefect.states import Completed

from flows.runs import emit, mailout_flow
from mailout.app.engine import Engine
from mailout.app.single_mail_run import SingleMailRun
from tasks.display import DISPLAY
from tasks.single_mails import send_single_mails

WAITING = "mailout.single_mails.waiting"
"""The event that starts a run; the gateway emits it, too, when it finds that nobody sends."""


@mailout_flow()
def drain_outbox(engine: Engine, seconds: float = 3600.0) -> State[Any]:
    """Send what programs hand in at POST /v1/email/send, as it comes. Two at once do no harm.

    Args:
        seconds: How long this run goes on; shortly before its end it asks for the next one. If Prefect does
            not hear it, for up to as long again.
    """
    heard = threading.Event()

    def tell(client: SyncPrefectClient) -> None:
        emit(client, WAITING, "mailout.gateway")
        heard.set()

    ask_for_next = partial(DISPLAY.show, "the next run for single mails", tell)
    run = SingleMailRun(engine.sending, ask_for_next, heard.is_set)
    if not run.take_over():
        return Completed(message="Another run sends them.", name="Not needed")
    went_on = send_single_mails(run, seconds)
    counts = ", ".join(f"{n} {state.lower()}" for state, n in run.ended.items()) or "none came"
    return Completed(message=f"{counts}{'' if went_on else '; it was asked to stop'}.")
