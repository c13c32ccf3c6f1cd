"""Single mails and a producer's notifications, sent as they come."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from mailout.app import notification_wiring
from mailout.app.engine import Engine
from mailout.app.single_mail_run import SingleMailRun
from mailout.kinds.notifications.port import NotificationCounts
from tasks.logs import with_engine


@task(name="send single mails", cache_policy=NO_CACHE, retries=0)
@with_engine
def send_single_mails(engine: Engine, run: SingleMailRun, seconds: float) -> bool:
    """For so long; False: it was asked to stop. Never retried: its retries are the outbox's own."""
    went_on = run.run(seconds)
    get_run_logger().info("%s", ", ".join(f"{n} {state}" for state, n in run.ended.items()) or "none came")
    return went_on


@contextmanager
def _finishing_on_sigterm(engine: Engine, stop: threading.Event) -> Iterator[None]:
    """SIGTERM: what is in hand is finished and reported. Prefect would raise an exception, anywhere."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, frame: object) -> None:
        stop.set()
        engine.sending.stop()

    before = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@task(name="dispatch notifications", cache_policy=NO_CACHE)
@with_engine
def send_notifications(
    engine: Engine, db: str | None, seconds: float, in_place: bool, stop: threading.Event
) -> NotificationCounts:
    """So long, or (0) once. Repeatable: what was sent and not reported is reported, and not sent again."""
    path = Path(db) if db else None
    with _finishing_on_sigterm(engine, stop):
        counts = notification_wiring.send_notifications(engine, path, seconds, stop, in_place=in_place)
    get_run_logger().info(counts.said())
    return counts
