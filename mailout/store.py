"""`Store`, composed of the rooms' ports: for wiring and adapters. No room imports it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from mailout.alerts.port import Alerts
from mailout.archive.port import Archives
from mailout.audience.port import Subscribers
from mailout.content.port import Contents
from mailout.delivery.port import Outbox
from mailout.delivery.single_mails import SingleMails
from mailout.doctor.checks import Check
from mailout.error_log import ErrorLog
from mailout.feedback.port import Feedback
from mailout.history.port import History, Noticed
from mailout.intake.companies import Companies
from mailout.intake.notification_port import Notifications
from mailout.intake.port import Articles
from mailout.metrics.port import Counts
from mailout.page_status.port import DueReports
from mailout.queue.port import Queue, Requests


class Store(
    Outbox,
    Queue,
    Subscribers,
    Contents,
    ErrorLog,
    DueReports,
    Feedback,
    Requests,
    Alerts,
    Counts,
    Archives,
    History,
    Noticed,
    Notifications,
    Articles,
    SingleMails,
    Companies,
    Protocol,
):
    """Where everything is kept. Every method is one transaction; every time is the store's."""

    name: str

    def check(self) -> None:
        """Reachable, the right key, the right schema: else one clear error."""
        ...

    def schema_version(self) -> int: ...
    def examine(self) -> Iterator[Check]:
        """What only this store can tell `doctor`."""
        ...

    def close(self) -> None: ...
