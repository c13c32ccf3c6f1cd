"""Single mails, sent as they come."""

from __future__ import annotations

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from mailout.app.engine import Engine
from mailout.app.single_mail_run import SingleMailRun
from tasks.logs import with_engine


@task(name="send single mails", cache_policy=NO_CACHE, retries=0)
@with_engine
def send_single_mails(engine: Engine, run: SingleMailRun, seconds: float) -> bool:
    """For so long; False: it was asked to stop. Never retried: its retries are the outbox's own."""
    went_on = run.run(seconds)
    get_run_logger().info("%s", ", ".join(f"{n} {state}" for state, n in run.ended.items()) or "none came")
    return went_on
