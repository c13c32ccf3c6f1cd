"""Send one mailout, from the manuscript to the report."""

from __future__ import annotations

from typing import Annotated, Any

from prefect import flow
from prefect.states import State
from pydantic import Field

from flows.delivery import Delivery, paused_if_cancelled
from flows.outcome import outcome_of
from tasks.content import take_up

Ref = Annotated[str, Field(description="A Notion page (id or URL), or the path of a Markdown file")]
Test = Annotated[
    bool | None,
    Field(description="True: only to TEST_EMAILS. False: for real. Empty: as the page or file says"),
]


@flow(name="send_mailout", retries=0, log_prints=False)
def send_mailout(ref: Ref, test: Test = None) -> State[Any]:
    """Send one mailout to everyone who should have it, once.

    Run again after a crash, it goes on where it stopped. A mailout that has to wait ends this run as
    `Deferred`, with the reason; `run_queue` takes it up again.
    """
    return deliver(take_up(ref, test))


def deliver(mailout_id: str) -> State[Any]:
    """The rest of the story, for whoever has a mailout's id."""
    story = Delivery()
    with paused_if_cancelled([mailout_id]):
        if story.begin(mailout_id):
            while story.stretch(mailout_id):
                continue
        story.end(mailout_id)
    return outcome_of(mailout_id)
