"""Reading what is to be sent."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from mailout import wiring
from mailout.intake.requests import answer
from mailout.queue.port import Request
from mailout.reporting.phrases import mode
from tasks.logs import redacted

NAMED = {"test": "test of", "rehearsal": "rehearsal of", "real": "mailout"}


@task(name="enqueue", cache_policy=NO_CACHE)
@redacted
def enqueue(ref: str, test: bool | None, if_ready: bool = False) -> str | None:
    """Read the source, check it, and write the mailout into the queue; its id. None: it is not Ready."""
    mailout = answer(wiring.engine().intake, Request.of(ref, test, if_ready))
    if mailout is None:
        return None
    get_run_logger().info("%s “%s” is mailout %s", NAMED[mode(mailout)], mailout.subject, mailout.id)
    return mailout.id
