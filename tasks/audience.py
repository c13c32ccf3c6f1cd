"""Freezing who receives it."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from mailout import wiring
from tasks.logs import redacted


@task(name="freeze audience", cache_policy=NO_CACHE, retries=3, retry_delay_seconds=5)
@redacted
def freeze(mailout_id: str) -> int:
    """Write the audience into the outbox. Safe to repeat: it goes on where it was and adds nobody twice."""
    mailout = wiring.engine().sending.freeze(mailout_id)
    get_run_logger().info("%d recipients", mailout.ledger.recipients)
    return mailout.ledger.recipients
