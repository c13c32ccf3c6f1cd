"""Chooses the parts that send a producer's notifications, around an engine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import uuid4
from zoneinfo import ZoneInfo

from mailout.adapters.folder import safe_name
from mailout.adapters.producer.database import copy_database, read_producer_queue
from mailout.adapters.producer.queue import ProducerSqlite
from mailout.app.engine import Engine
from mailout.base.clock import SystemClock
from mailout.base.errors import SettingsError, SourceBusy
from mailout.base.private_files import make_home
from mailout.base.settings import Settings
from mailout.kinds.notifications.job import LOCK_SECONDS, TEMPLATE, WorkerOptions
from mailout.kinds.notifications.notifications import NotificationWorker
from mailout.kinds.notifications.port import NotificationCounts, ProducerQueue
from mailout.kinds.notifications.watch import dispatch
from mailout.kinds.single_mails.companies import why_they_wait
from mailout.letters.content.notification_templates import PARTS, NotificationTemplates
from mailout.outbox.delivery.options import Ended, RunReport
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.delivery.single_mails import DEFAULT_COMPANY


def notification_worker(
    engine: Engine, db: Path | None = None, *, in_place: bool = False
) -> NotificationWorker:
    """For one producer's database. A rehearsal works on a copy of it, unless it is told not to."""
    settings = engine.settings
    source, base_url = require_notify(settings)
    path = _database(settings, db)
    on_a_copy = engine.rehearses and not in_place
    if on_a_copy:
        path = copy_database(path, make_home(settings.mailout_home) / "notify" / f"{safe_name(source)}.db")
    rate, zone = engine.sending.rate(), ZoneInfo(settings.send_timezone)
    return NotificationWorker(
        producer=ProducerSqlite(
            path,
            worker=f"{engine.sending.worker}-{uuid4().hex[:8]}",
            clock=engine.clock,
            lock_seconds=LOCK_SECONDS,
            update_subscriptions=settings.notify_update_subscriptions,
            email_only=settings.notify_other_channels == "leave",
        ),
        store=engine.store,
        templates=_templates(settings),
        send=partial(_send, engine),
        clock=engine.clock,
        options=WorkerOptions(
            source=source,
            provider=settings.mailout_transport,
            zone=zone,
            base_url=base_url,
            locale=settings.notify_locale,
            template_version=settings.notify_template_version,
            batch=min(100, max(1, int(rate * 10))) if rate else 100,
            lost_after=Timing.of(settings.lock_seconds).settle_wait,
            rehearsal=engine.rehearses,
            on_a_copy=on_a_copy,
        ),
    )


def _send(engine: Engine, seconds: float) -> RunReport:
    """A run is done when the limit of their company is used up: they wait all the same."""
    report, store = engine.sending.send_single_mails(seconds, until_idle=True), engine.store
    if report.ended is Ended.DONE and (
        why := why_they_wait(store, DEFAULT_COMPANY, engine.limits, store.now(), rehearsal=engine.rehearses)
    ):
        return replace(report, ended=Ended.LIMITED, limited=why[1].rstrip("."))
    return report


def send_notifications(
    engine: Engine, db: Path | None, seconds: float, stop: threading.Event, *, in_place: bool
) -> NotificationCounts:
    """As they come, for so long; 0: those that are due now, once."""
    open_worker = partial(notification_worker, engine, db, in_place=in_place)
    if seconds:
        return dispatch(open_worker, engine.clock, stop, seconds)
    with _once(), closing(open_worker()) as worker:
        return worker.run(stop)


def requeue_notification(settings: Settings, id: int, db: Path | None = None) -> None:
    path = _database(settings, db)
    with _once(), closing(ProducerSqlite(path, worker="requeue", clock=SystemClock())) as producer:
        producer.requeue(id)


@contextmanager
def _once() -> Iterator[None]:
    """Nothing tries again what is done once: a person or their cron does."""
    try:
        yield
    except SourceBusy as error:
        raise SourceBusy(error.message, remedy="Try again in a minute.") from error


def require_notify(settings: Settings) -> tuple[str, str]:
    """The producer's name and site; without them, or without the template, no worker starts."""
    if not settings.notify_source:
        raise SettingsError(
            "NOTIFY_SOURCE: is missing.",
            remedy="Give the producer a name and keep it: by it, nothing is sent again when its file moves.",
        )
    if not settings.notify_base_url:
        raise SettingsError(
            "NOTIFY_BASE_URL: is missing.",
            remedy="Set it to the producer's site: mails link to /subscriptions/… and /unsubscribe there.",
        )
    _require_template(settings)
    return settings.notify_source, settings.notify_base_url


def _require_template(settings: Settings) -> None:
    """Else every row would end as failed, for one mistyped setting."""
    templates, version, locale = (
        _templates(settings),
        settings.notify_template_version,
        settings.notify_locale,
    )
    folder = settings.mailout_home.absolute() / "templates" / TEMPLATE / version
    if not (locales := template_locales(settings)):
        raise SettingsError(
            f"NOTIFY_TEMPLATE_VERSION: there is no {version} of the template {TEMPLATE}.",
            remedy=f"Set it to {' or '.join(templates.inside(TEMPLATE))}, or write yours in {folder}.",
        )
    if locale not in locales and "notify_locale" not in settings.model_fields_set:
        return  # nobody has chosen it: each subscription may name its own
    if locale not in locales:
        raise SettingsError(
            f"NOTIFY_LOCALE: the template {TEMPLATE} {version} has no {locale}.",
            remedy=f"Set it to {' or '.join(locales)}, or write yours in {folder / locale}.",
        )
    if missing := [name for name in PARTS if name not in templates.inside(TEMPLATE, version, locale)]:
        raise SettingsError(
            f"NOTIFY_LOCALE: the template {TEMPLATE} {version} {locale} has no {' and no '.join(missing)}.",
            remedy=f"Write what is missing, in {folder / locale}.",
        )


def template_locales(settings: Settings) -> list[str]:
    return _templates(settings).inside(TEMPLATE, settings.notify_template_version)


def _templates(settings: Settings) -> NotificationTemplates:
    return NotificationTemplates(
        settings.mailout_home.absolute() / "templates",
        ZoneInfo(settings.send_timezone),
        settings.org_name or settings.from_name or "",
    )


def _database(settings: Settings, db: Path | None) -> Path:
    path = db or settings.notify_db
    if path is None:
        raise SettingsError(
            "NOTIFY_DB: is missing.", remedy="Set it to the producer's SQLite file, or use --db."
        )
    return path


def producer_queue(settings: Settings, status: str | None = None, db: Path | None = None) -> ProducerQueue:
    """How the producer's queue stands; nothing is changed."""
    return read_producer_queue(_database(settings, db), status=status)
