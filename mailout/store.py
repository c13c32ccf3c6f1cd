"""`Store`, composed of the rooms' ports: for wiring and adapters. No room imports it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from mailout.insight.alerts.port import AlertStore
from mailout.insight.doctor.checks import Check
from mailout.insight.history.port import History
from mailout.insight.metrics.port import MetricsStore
from mailout.insight.retention.port import ArchiveStore
from mailout.kinds.articles.port import IntakeStore
from mailout.kinds.single_mails.companies import Companies
from mailout.readers.port import SignUps


class Store(IntakeStore, AlertStore, ArchiveStore, MetricsStore, History, Companies, SignUps, Protocol):
    """Where everything is kept: these ports bring along those that they build on. Every method is one
    transaction; every time is the store's."""

    name: str

    def check(self) -> int:
        """The version of its schema. Reachable, the right key, the right schema: else one clear error."""

    def examine(self) -> Iterator[Check]:
        """What only this store can tell `doctor`."""

    def close(self) -> None: ...
