"""`mailout subscribers forget`: a person asks to be erased."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Annotated

import typer

from cli.confirm import Yes, confirm
from cli.engine import open_engine
from cli.names import ALL
from cli.output import Json, note, print_json, say
from mailout import wiring
from mailout.audience.addresses import address_of
from mailout.engine import Engine
from mailout.errors import NotFound, UsageError
from mailout.queue.mailout import Status
from mailout.reporting.phrases import count

EXAMPLE = "Example: mailout subscribers forget ana@example.org"


def forget(
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="The address, in capitals or not.")],
    yes: Annotated[bool, Yes] = False,
    json: Json = False,
) -> None:
    """Erase a person, and keep the counts.

    From the list, the messages, the events, the reports, and the archives on this machine.
    """
    address = address_of(email)
    if address is None:
        raise UsageError(f"{email} is no address.", remedy="Give it as it stands in the list.")
    engine = open_engine()
    confirm(f"Erase {address} from the list, the messages, the reports and the archives?", yes)
    instead = f"forgotten:{sha256(address.encode()).hexdigest()[:32]}"
    done = engine.store.forget(address, instead)
    archives = _forget_in_archives(engine, address, instead)
    if not (done.subscribers or done.messages or done.events or done.errors or archives.changed):
        raise NotFound(f"Nothing is known of {address}.", remedy=archives.out_of_reach or None)
    for mailout in done.mailouts:
        engine.report(mailout)
    files = wiring.mail_files(engine.settings, address)
    if json:
        print_json(
            {
                **asdict(done),
                "mail_files": [str(file) for file in files],
                "archives": archives.changed,
                "archives_out_of_reach": archives.missing,
            }
        )
        return
    say(
        f"{address} is forgotten: {count(done.subscribers, 'subscriber')}, {count(done.messages, 'message')},"
        f" {count(done.events, 'event')}, {count(done.errors, 'error')};"
        f" {count(len(done.mailouts), 'report')} written again."
    )
    if archives.changed:
        say(f"Erased from {count(len(archives.changed), 'archive')} as well.")
    if archives.missing:
        note(archives.out_of_reach)
    if files:
        carry = "still carries" if len(files) == 1 else "still carry"
        note(f"{count(len(files), 'mail file')} in {files[0].parent.parent} {carry} the address.")
    note("Imports leave the address out from now on; the person may sign up again.")


@dataclass
class _Archives:
    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def out_of_reach(self) -> str:
        if not self.missing:
            return ""
        return f"Archives that are not on this machine were not looked into: {', '.join(self.missing)}."


def _forget_in_archives(engine: Engine, address: str, instead: str) -> _Archives:
    """After the store: what is archived from now on has nothing of them any more."""
    found = _Archives()
    folder = wiring.archive_folder(engine.settings)
    for mailout in engine.store.mailouts(statuses=(Status.COMPLETED, Status.CANCELLED), limit=ALL):
        if mailout.archived_to is None:
            continue
        erased = folder.forget(mailout.archived_to, address, instead)
        if erased is None:
            found.missing.append(mailout.archived_to)
        elif any(erased):
            found.changed.append(mailout.archived_to)
            engine.reporting.forget(mailout.id, address, instead)
    return found
