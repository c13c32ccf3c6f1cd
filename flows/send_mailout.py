"""Send one mailout, from the source to the report."""

from __future__ import annotations

from typing import Any

from prefect import State
from prefect.runtime import flow_run
from prefect.states import Completed
from pydantic.json_schema import SkipJsonSchema

from flows.delivery import Delivery, deliver, deliver_again
from flows.runs import first_name, mailout_flow
from mailout.app.engine import Engine
from mailout.kinds.mailouts.readiness import AlreadySent, MarkedAsSent, TakenBack
from mailout.kinds.mailouts.requests import answer, still_asked
from mailout.outbox.queue.port import Request


@mailout_flow(flow_run_name=first_name)
def send_mailout(
    engine: Engine,
    ref: str,
    test: bool | None = None,
    # For the trigger alone, so the run form does not show them.
    if_ready: SkipJsonSchema[bool] = False,  # only if the Notion page is Ready and its time has come
    asked: SkipJsonSchema[bool] = False,  # a request from outside: if the queue was faster, nothing happens
) -> State[Any]:
    """Send one mailout to everyone who should have it, once.

    Run again after a crash, it goes on where it stopped. A mailout that has to wait ends this run as
    `Deferred`, with the reason; `run_queue` continues it.

    Args:
        ref: A Notion page (its id or address), or the path of a Markdown file.
        test: Yes: only to TEST_EMAILS. No: for real, now. Empty: as the page or file says.
    """
    if again := deliver_again(engine):
        return again
    intake, steps = engine.intake, Delivery(engine)
    request = Request.of(ref, test, if_ready)
    if asked and flow_run.run_count <= 1 and not still_asked(intake, request):
        return Completed(message="The queue was faster: it has answered this request.", name="Answered")
    try:
        # Who presses Retry means it, whatever became of the request.
        mailout = answer(intake, request, steps.enqueue, by_hand=not asked or flow_run.run_count > 1)
    except TakenBack as taken_back:
        return Completed(message=str(taken_back), name="Taken back")
    except AlreadySent as sent:
        if asked and not isinstance(sent, MarkedAsSent):
            return Completed(message=str(sent), name="Already sent")
        raise
    if mailout is None:
        return Completed(message="The page does not ask to be sent.", name="Not ready")
    return deliver(steps, mailout.id)
