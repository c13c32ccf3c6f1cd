"""Erasing a person everywhere on this machine: the store, the reports, the archives. Counts stay."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.errors import NotFound
from mailout.base.select import every
from mailout.base.settings import Settings
from mailout.outbox.feedback.port import Forgotten
from mailout.outbox.queue import queue_rows


@dataclass
class Erased:
    """What was touched, and what is still out of reach."""

    done: Forgotten
    reports: set[str] = field(default_factory=set)  # mailouts whose files are written again
    mail_files: list[Path] = field(default_factory=list)  # of the folder transport: they are left alone
    archives: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # archives on other machines, or deleted
    copies: list[Path] = field(default_factory=list)  # of the store, which upgrades have kept

    @property
    def out_of_reach(self) -> str:
        said = []
        if self.missing:
            said.append(
                f"These archives were not found here, and not looked into: {', '.join(self.missing)}."
            )
        if self.copies:
            said.append(
                "What an upgrade kept of the store may still hold the address:"
                f" {', '.join(map(str, self.copies))}. Delete it once all is well."
            )
        return " ".join(said)


def forget(engine: Engine, address: str) -> Erased:
    """NotFound: nothing was known of this (normalised) address."""
    engine.store.normalise_addresses()  # theirs may be one that only the next mailout would understand
    instead = f"forgotten:{token_hex(16)}"  # random: a hash could be tried out
    erased = Erased(engine.store.forget(address, instead), copies=wiring.store_copies(engine.settings))
    _in_archives(engine, erased, address, instead)
    done = erased.done
    erased.reports = engine.reporting.forget(address, instead)
    found = (done.subscribers, done.messages, done.events, done.errors, erased.archives, erased.reports)
    if not any(found):
        raise NotFound(f"Nothing is known of {address}.", remedy=erased.out_of_reach or None)
    for mailout in done.mailouts:
        engine.report(mailout)
    erased.reports.update(done.mailouts)
    erased.mail_files = wiring.mail_files(engine.settings, address)
    return erased


def forget_here(settings: Settings, address: str) -> Erased:
    """The same for a process that has no engine: the gateway."""
    engine = wiring.build(settings)
    with closing(engine.store):
        return forget(engine, address)


def _in_archives(engine: Engine, erased: Erased, address: str, instead: str) -> None:
    """After the store: what is archived from now on has nothing of them any more."""
    folder = wiring.archive_folder(engine.settings)
    for mailout in every(engine.store, queue_rows.MAILOUTS, {"archived_to !=": None}):
        place = mailout.archived_to or ""
        changed = folder.forget(place, address, instead)
        if changed is None:
            erased.missing.append(place)
        elif changed:
            erased.archives.append(place)
