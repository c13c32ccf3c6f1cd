"""Reading what is to be sent."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from mailout import wiring
from mailout.queue.request import Request
from mailout.reporting.words import mode
from mailout.requests import answer
from tasks.logs import discreet

NAMED = {"test": "test of", "rehearsal": "rehearsal of", "real": "mailout"}


@task(name="take up", cache_policy=NO_CACHE)
@discreet
def take_up(ref: str, test: bool | None, if_ready: bool = False) -> str | None:
    """Read the manuscript, check it, and write the mailout into the queue; its id. None: it is not Ready."""
    mailout = answer(wiring.engine(), Request.of(ref, test, if_ready))
    if mailout is None:
        return None
    get_run_logger().info("%s “%s” is mailout %s", NAMED[mode(mailout)], mailout.subject, mailout.id)
    return mailout.id
