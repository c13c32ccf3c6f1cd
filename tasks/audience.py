"""Who receives it."""

from __future__ import annotations

from prefect import get_run_logger, task

from mailout.app.engine import Engine
from tasks.letter import REPEATABLE, LetterRef
from tasks.logs import with_engine


@task(name="resolve recipients", task_run_name="resolve recipients: {letter}", **REPEATABLE)
@with_engine
def resolve_recipients(engine: Engine, letter: LetterRef) -> LetterRef:
    """Write the audience into the outbox. Safe to repeat: it goes on where it was and adds nobody twice."""
    mailout = engine.sending.freeze(letter.id)
    get_run_logger().info("%d recipients", mailout.ledger.recipients)
    return letter
