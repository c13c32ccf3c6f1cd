"""What comes back: from the queue into the inbox, from the inbox into the store."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.insight.history.port import days_ago
from mailout.outbox.feedback import ingest
from mailout.outbox.feedback.port import Applied
from mailout.outbox.feedback.reconcile import Reconciled
from mailout.outbox.feedback.reconcile import reconcile as put_right
from mailout.readers.confirmations import erase_unconfirmed
from tasks.logs import with_engine


@task(name="poll the queue", cache_policy=NO_CACHE, retries=3, retry_delay_seconds=5)
@with_engine
def poll_queue(engine: Engine) -> int:
    """Take what SQS holds into the inbox. Safe to repeat: a message leaves the queue after our commit."""
    settings = engine.settings
    queue = wiring.event_queue(settings)
    if queue is None:
        return 0
    taken = ingest.poll(engine.store, queue, settings.sns_topic_arns)
    get_run_logger().info("%d messages from the queue", taken)
    return taken


@task(name="apply events", cache_policy=NO_CACHE, retries=3, retry_delay_seconds=5)
@with_engine
def apply_events(engine: Engine) -> Applied:
    """Apply everything that waits. Safe to repeat: what is applied is marked in the same commit."""
    applied = engine.sending.apply_events()
    logger = get_run_logger()
    logger.info(
        "%d events, %d subscribers changed, %d messages confirmed, %d revoked",
        applied.events,
        applied.statuses,
        applied.confirmed,
        applied.revoked,
    )
    if applied.problems:
        logger.warning("%d could not be used, %d of them are dead letters", applied.problems, applied.dead)
    return applied


@task(name="reconcile", cache_policy=NO_CACHE, retries=3, retry_delay_seconds=5)
@with_engine
def reconcile(engine: Engine) -> Reconciled:
    """Reap, look for doubts, ask for the quota, check and keep counts, erase sign-ups that nobody confirmed,
    tell rates to pages. Repeatable."""
    erase_unconfirmed(engine.store)  # first: it is a promise, and what follows may fail
    engine.store.keep_counts(days_ago(engine.store.now(), engine.limits.timezone, 0))
    found = put_right(engine.store, engine.sending.reap, engine.sending.provider.ask)
    logger = get_run_logger()
    for drift in found.drift:
        logger.error("%s", drift)
    engine.pages.refresh()
    return found
