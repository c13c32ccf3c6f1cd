"""Reading what is to be sent."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from mailout import wiring


@task(name="take up", cache_policy=NO_CACHE)
def take_up(ref: str, test: bool | None) -> str:
    """Read the manuscript, check it, and write the mailout into the queue; its id."""
    mailout = wiring.engine().take_up(ref, test)
    get_run_logger().info(
        "%s “%s” is mailout %s", "test of" if mailout.is_test else "mailout", mailout.subject, mailout.id
    )
    return mailout.id
