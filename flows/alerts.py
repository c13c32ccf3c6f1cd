"""Alerts around a run: by mail, and as Prefect events that an automation can pass on to Slack and others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prefect import get_run_logger
from prefect.events import emit_event

from mailout.app.engine import Engine
from mailout.app.single_mail_run import send_what_waits
from mailout.base.errors import MailoutError
from mailout.insight.alerts.port import Alert
from tasks.logs import hidden


@contextmanager
def alerts_around(engine: Engine) -> Iterator[None]:
    """Before a run, what has ended is noted: if it comes back it is sent again. After it, what is due.

    Not when the process is asked to end: then there is no time for mail.
    """
    _never_in_the_way(lambda: engine.alert_sender.look())
    try:
        yield
    except Exception:
        raise_alerts(engine)
        raise
    raise_alerts(engine)


def raise_alerts(engine: Engine) -> None:
    """Tell what needs a person."""
    _never_in_the_way(lambda: _tell(engine))


def _tell(engine: Engine) -> None:
    engine.alert_sender.send_alerts(emit)
    send_what_waits(engine.sending)


def emit(alert: Alert) -> None:
    """`mailout.alert.<kind>`. The resource is the mailout, or what else it is about."""
    emit_event(
        f"mailout.alert.{alert.kind}",
        resource={
            "prefect.resource.id": f"mailout.{alert.about}",
            "prefect.resource.name": hidden(alert.name),
        },
        payload={
            "subject": hidden(alert.subject),
            "text": hidden(alert.text),
            "mailout": alert.mailout,
            "reason": alert.reason,
        },
    )


def _never_in_the_way(work: Callable[[], object]) -> None:
    """Whatever goes wrong with an alert is seen in the log; mailouts go on."""
    logger = get_run_logger()
    try:
        work()
    except MailoutError as error:
        logger.warning("alerts could not be looked after; the next run tries again: %s", error)
    except Exception:
        logger.exception("alerts could not be looked after; they are tried again in the next run")
