"""`Store`, composed of the rooms' ports: for wiring and adapters. No room imports it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from mailout.base.error_log import ErrorLog
from mailout.insight.alerts.port import Alerts
from mailout.insight.doctor.checks import Check
from mailout.insight.history.port import History, Noticed
from mailout.insight.metrics.port import Counts
from mailout.insight.page_status.port import DueReports
from mailout.insight.retention.port import Archives
from mailout.kinds.articles.port import Articles
from mailout.kinds.single_mails.companies import Companies
from mailout.letters.audience.port import Subscribers
from mailout.letters.content.port import Contents
from mailout.outbox.delivery.port import Outbox
from mailout.outbox.delivery.single_mails import SingleMails
from mailout.outbox.feedback.port import Feedback
from mailout.outbox.queue.port import Queue, Requests
from mailout.readers.port import SignUps


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
    Articles,
    SingleMails,
    Companies,
    SignUps,
    Protocol,
):
    """Where everything is kept. Every method is one transaction; every time is the store's."""

    name: str

    def check(self) -> int:
        """The version of its schema. Reachable, the right key, the right schema: else one clear error."""
        ...

    def examine(self) -> Iterator[Check]:
        """What only this store can tell `doctor`."""
        ...

    def close(self) -> None: ...
