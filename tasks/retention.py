"""Old mailouts, out of the store."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.errors import StoreError
from mailout.insight.reporting.phrases import count
from mailout.insight.retention.archiving import Archived
from tasks.logs import with_engine


@task(name="archive old mailouts", cache_policy=NO_CACHE)
@with_engine
def archive_old_mailouts(engine: Engine, older_than: int) -> str:
    """How many. Repeatable: what was begun is ended first."""
    logger = get_run_logger()
    archiving = wiring.archiving(engine)
    archived = troubles = 0
    for one in archiving.run(older_than):
        if isinstance(one, Archived):
            archived += 1
            logger.info("%s: %d messages are in %s", one.mailout.id, one.messages, one.place)
        else:
            troubles += one.trouble
            logger.warning("%s “%s” stays: %s", one.mailout.id, one.mailout.subject, one.why)
    if archived:
        archiving.give_space_back()
    if troubles:
        raise StoreError(
            f"{count(troubles, 'mailout')} could not be archived.", remedy="The log of this run says why."
        )
    return f"{count(archived, 'mailout')} archived."
