"""What the tests of archives play out: a mailout that is long over, and archivers that can be killed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from mailout.insight.retention.archive_file import ArchiveFolder, path_of
from mailout.insight.retention.archiving import Archived, Archiving, Kept
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.port import Recipient
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import Sender, handed_mailout, result, subscribe
from tests.contract.stores import StoreFactory
from tests.contract.test_events import hear
from tests.ses_events import ses_event

DAY = 86_400.0
LATER = NOON + 100 * DAY
ENDS = {
    "ann@example.org": State.SENT,
    "bob@example.org": State.FAILED,
    "cat@example.org": State.SENT,
    "dan@example.org": State.VALIDATION_FAILED,
    "eve@example.org": State.SUPPRESSED,
}


def over(store: Store, factory: StoreFactory, *, ref: str = "page") -> str:
    """A mailout with every kind of end and some events, completed a hundred days ago."""
    subscribe(store, *ENDS)
    id = handed_mailout(store, *(Recipient(email, "Us", variables={"name": "ö"}) for email in ENDS), ref=ref)
    store.unsubscribe("eve@example.org", None)
    sender = Sender(store, id)
    rows = {row.email: row for row in sender.begin(len(ENDS))}
    sender.step(results=[result(rows["ann@example.org"], State.RETRY_SCHEDULED, code="SES_THROTTLED")])
    rows |= {row.email: row for row in sender.begin(1)}
    ends = {email: end for email, end in ENDS.items() if end is not State.SUPPRESSED}
    sender.step(results=[result(rows[email], end, code=None) for email, end in ends.items()], close=True)
    ann = rows["ann@example.org"].attempt
    events = [ses_event(name, attempt=ann, campaign=id, ses_id=f"ses-{ref}") for name in ("Delivery", "Open")]
    assert hear(store, *events).events == 2
    assert store.complete(id).completed_at == NOON
    factory.set_now(LATER)
    return id


def archiving(
    store: Any, folder: Path, *, into: str = "archive", wrap: Any = None, waits: Iterable[str] = ()
) -> Archiving:
    files: Any = ArchiveFolder(folder / into)
    return Archiving(
        store, wrap(files) if wrap else files, report=lambda id: None, waits_for_page=lambda: set(waits)
    )


def archive(store: Any, folder: Path, **options: Any) -> list[Archived | Kept]:
    return list(archiving(store, folder, **options).run(90))


def read(place: Path | str) -> pl.DataFrame:
    """The messages of an archive."""
    return pl.read_parquet(place if isinstance(place, Path) else path_of(place))


def events_in(place: Path | str) -> list[dict[str, Any]]:
    return [event for events in read(place)["events"] for event in json.loads(events)]


def visible(folder: Path) -> list[Path]:
    return sorted(folder.glob("archive/[!.]*"))


def hidden(folder: Path) -> list[Path]:
    return sorted(folder.glob("archive/.*.parquet*"))


class Killed(BaseException):
    """The process is gone: nothing that it would still have done is done."""


@dataclass
class Death:
    """Strikes at one call, before it is made or before its answer is seen; from then on nothing works."""

    at: int
    after: bool
    calls: list[str] = field(default_factory=list)

    @property
    def struck(self) -> bool:
        return len(self.calls) >= self.at

    def call(self, name: str, function: Any, *arguments: Any, **options: Any) -> Any:
        if self.struck:
            raise Killed
        self.calls.append(name)
        if self.struck and not self.after:
            raise Killed
        answer = function(*arguments, **options)
        if self.struck:
            raise Killed
        return answer


class Mortal:
    """A part whose every call may be the process's last."""

    def __init__(self, part: Any, death: Death) -> None:
        self._part, self._death = part, death

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if not callable(found) or name == "alone":
            return found
        return lambda *arguments, **options: self._death.call(name, found, *arguments, **options)
