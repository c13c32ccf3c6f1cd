"""Asks every part for `mailout doctor`. Nothing is sent, and who does not answer is not waited for long."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from mailout.app import notification_wiring, wiring
from mailout.base.clock import Clock, SystemClock
from mailout.base.private_files import close_to_others, open_to_others
from mailout.base.settings import Settings
from mailout.insight.doctor.checks import Check, CheckGroup, checked
from mailout.insight.doctor.event_path import (
    EventPath,
    listening_checks,
    policy_checks,
    queue_checks,
    topic_check,
)
from mailout.insight.doctor.mail_domain import Names
from mailout.insight.doctor.setup_checks import (
    clock_check,
    disk_check,
    people_checks,
    python_check,
    reach_checks,
    settings_checks,
)
from mailout.kinds.notifications.job import TEMPLATE
from mailout.letters.audience import subscriber_rows
from mailout.outbox.delivery.recovery import require_known
from mailout.store import Store

STOPPING = frozenset({"quota"})
"""For `doctor` this is a warning: it passes by itself."""
STOPPING_IF_FAILED = frozenset({"access", "account", "sandbox", "identity"})


def examine(settings: Settings, clock: Clock | None = None, dns: Names | None = None) -> Iterator[CheckGroup]:
    """Would a mailout go through?"""
    clock = clock or SystemClock()
    yield CheckGroup("Settings", chain([python_check(sys.version_info[:3])], settings_checks(settings)))
    yield CheckGroup("Store", checked("store", partial(_store, settings, clock)))
    if settings.mailout_transport == "ses":
        yield CheckGroup("Amazon SES", checked("access", partial(_ses, settings, dns)))
    else:
        folder = Check("folder", "ok", "mails become files, and nothing leaves this machine")
        yield CheckGroup("Transport", [folder])
    if settings.mailout_transport == "ses" or settings.sns_topic_arns or settings.sqs_queue_url:
        yield CheckGroup("SNS and SQS", _event_path(settings))
    yield CheckGroup("Notion", checked("NOTION_TOKEN", partial(_notion, settings, clock)))
    if settings.notify_db or settings.notify_source:
        yield CheckGroup("Notifications", checked("notifications", partial(_notifications, settings)))


def what_stops_sending(settings: Settings) -> Iterator[Check]:
    """Of Amazon SES: what would stop a letter to people fails; whatever else it finds is a warning."""
    for check in checked("access", partial(_ses, settings, None, with_dns=False)):
        if check.level == "ok":
            continue
        stops = check.name in STOPPING or (check.name in STOPPING_IF_FAILED and check.level == "fail")
        yield check._replace(level="fail" if stops else "warn")


def _store(settings: Settings, clock: Clock) -> Iterator[Check]:
    yield _home(settings)
    yield from _privacy(settings.mailout_home.absolute())
    store = wiring.open_store(settings, clock)
    try:
        store.check()
        asked_at = clock.now()
        difference = store.now() - (asked_at + clock.now()) / 2
        yield Check("store", "ok", f"{store.name} answers, schema version {store.check()}")
        yield from store.examine()
        yield clock_check(difference)
        yield from checked("journals", partial(_journals, settings, store))
        yield from reach_checks(settings, store)
        people = subscriber_rows.subscriber_counts(store)
        unknown = subscriber_rows.unknown_statuses(people)
        yield from people_checks(people["active"], subscriber_rows.unreachable(store), unknown)
    finally:
        store.close()


def _journals(settings: Settings, store: Store) -> Iterator[Check]:
    require_known(store, wiring.journals_of(settings, store).look())
    yield Check("journals", "ok", "the store knows all that this machine has sent")


def _home(settings: Settings) -> Check:
    """The folder, or what is there of its path: the rest can be made."""
    home = settings.mailout_home.absolute()
    there = next(place for place in (home, *home.parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        remedy = "Set MAILOUT_HOME to a folder that you may write to."
        if os.access(home / "mailout.db", os.F_OK):  # what was sent is recorded in it
            remedy = "Make it writable again for this user: in another home, letters would go out twice."
        return Check("MAILOUT_HOME", "fail", f"{there} cannot be written to", remedy)
    return disk_check(shutil.disk_usage(there).free)


def _privacy(home: Path) -> Iterator[Check]:
    """Before the store is opened, which closes what is open, too."""
    if not home.is_dir():
        return
    before = open_to_others(home)
    close_to_others(home)
    if still := open_to_others(home):
        message = f"others on this machine can read {', '.join(path.name for path in still)} in MAILOUT_HOME"
        yield Check("privacy", "warn", message, f"As the user who owns them: chmod -R go= {home}")
    elif before:
        names = ", ".join(path.name for path in before)
        yield Check("privacy", "ok", f"others on this machine could read {names}; now they cannot")
    else:
        yield Check("privacy", "ok", "nobody else on this machine can read what is in MAILOUT_HOME")


def _ses(settings: Settings, dns: Names | None, *, with_dns: bool = True) -> Iterator[Check]:
    """With a client of its own, which asks again: SES answers one question a second."""
    from mailout.adapters.aws import AwsAccess
    from mailout.adapters.dns_records import DnsRecords
    from mailout.adapters.ses import checks

    client = AwsAccess.of(settings).client("sesv2", endpoint_url=settings.aws_endpoint_url_sesv2)
    try:
        yield from checks.examine(
            client,
            settings.from_email or "",
            settings.ses_configuration_set,
            settings.sns_topic_arns,
            (dns or DnsRecords()) if with_dns else None,
            settings.transactional_from_email,
        )
    finally:
        client.close()


def _event_path(settings: Settings) -> Iterator[Check]:
    yield from listening_checks(settings.sns_topic_arns, settings.sqs_queue_url)
    for topic in settings.sns_topic_arns:
        yield from checked(f"topic {topic.rpartition(':')[2]}", partial(_topic, settings, topic))
    if settings.sqs_queue_url:
        yield from checked("SQS_QUEUE_URL", partial(_queue, settings))


def _topic(settings: Settings, topic: str) -> Iterator[Check]:
    event_path = EventPath(settings.public_url, settings.sqs_queue_url)
    topics = wiring.sns_topics(settings)
    yield topic_check(topic, topics.subscriptions(topic), event_path)
    yield from policy_checks(topic, topics.policy(topic))


def _queue(settings: Settings) -> Iterator[Check]:
    queue = wiring.event_queue(settings)
    if queue is not None:
        yield from queue_checks(queue.look(), settings.sns_topic_arns)


def _notion(settings: Settings, clock: Clock) -> Iterator[Check]:
    notion = wiring.notion_pages(settings, clock)
    if notion is None:
        yield Check("NOTION_TOKEN", "ok", "is not set: mailouts are Markdown files")
        return
    try:
        yield from notion.check()
    finally:
        notion.close()


def _notifications(settings: Settings) -> Iterator[Check]:
    notification_wiring.require_notify(settings)
    version, locale = settings.notify_template_version, settings.notify_locale
    if locale in (locales := notification_wiring.template_locales(settings)):
        yield Check("template", "ok", f"{TEMPLATE} {version} {locale} is there")
    else:
        lacks = f"{TEMPLATE} {version} has no {locale}: subscriptions that name no locale get nothing"
        yield Check("template", "warn", lacks, f"Set NOTIFY_LOCALE to {' or '.join(locales)}.")
    if settings.notify_db:
        waiting = notification_wiring.producer_queue(settings).counts.get("pending", 0)
        yield Check("NOTIFY_DB", "ok", f"can be read; {waiting} pending")
