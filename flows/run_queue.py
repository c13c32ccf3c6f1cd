"""Send what is due: when the gateway finds something, every ten minutes, and by hand.

Two at once do no harm: the store is the brake.
"""

from __future__ import annotations

from typing import Any

from prefect import State, get_run_logger
from prefect.states import Completed

from flows.alerts import alerts_around
from flows.delivery import let_go_if_ended
from flows.runs import mailout_flow, outcome_of
from flows.send_queued import QueuedMailouts
from mailout.app.engine import Engine
from mailout.app.queue_run import QueueRun
from mailout.app.single_mail_run import send_what_waits
from mailout.kinds.mailouts.early_checks import check_early
from mailout.kinds.mailouts.requests import Waited, enqueue_ready, enqueue_requested, show_all_is_paused
from mailout.outbox.queue import queue_rows


@mailout_flow(flow_run_name="the queue")
def run_queue(engine: Engine) -> State[Any]:
    """Send every mailout whose time has come, one time slice at a time, those of a crashed run included.

    Pages in Notion that are `Ready` are enqueued first. Urgent ones go before bulk, companies take turns.
    Afterwards, alerts for what needs a person are sent.
    """
    with alerts_around(engine):
        return _take_turns(engine)


def _take_turns(engine: Engine) -> State[Any]:
    if queue_rows.all_paused(engine.store):
        show_all_is_paused(engine.intake)
        return Completed(message="Everything is paused.", name="Paused")
    engine.welcomes.write()
    send_what_waits(engine.sending)
    intake, waited = engine.intake, Waited()
    with QueuedMailouts(engine) as steps:

        def look() -> None:
            engine.welcomes.write()
            enqueue_ready(intake, steps.enqueue, waited)
            enqueue_requested(intake, steps.enqueue, waited)

        turns = QueueRun(engine.sending, steps, look)
        with let_go_if_ended(engine, turns.in_hand):
            ended = turns.run()
    check_early(intake)
    if not ended:
        return Completed(message="Nothing is due.")
    states = {id: outcome_of(engine, id) for id in ended}
    for id, state in states.items():
        get_run_logger().info("%s: %s %s", id, state.name, state.message)
    return Completed(message="; ".join(f"{id}: {state.name}" for id, state in states.items()))
