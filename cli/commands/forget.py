"""`mailout subscribers forget`: a person asks to be erased."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cli.confirm import Yes, confirm
from cli.engine import open_engine
from cli.output import Json, note, print_json, say
from mailout.app import forgetting
from mailout.base.addresses import address_of
from mailout.base.errors import UsageError
from mailout.insight.reporting.phrases import count

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
    erased = forgetting.forget(engine, address)
    done, files = erased.done, erased.mail_files
    if json:
        print_json(
            {
                **asdict(done),
                "mail_files": [str(file) for file in files],
                "archives": erased.archives,
                "archives_out_of_reach": erased.missing,
            }
        )
        return
    say(
        f"{address} is forgotten: {count(done.subscribers, 'subscriber')}, {count(done.messages, 'message')},"
        f" {count(done.events, 'event')}, {count(done.errors, 'error')};"
        f" {count(len(done.mailouts), 'report')} written again."
    )
    if erased.archives:
        say(f"Erased from {count(len(erased.archives), 'archive')} as well.")
    if erased.missing:
        note(erased.out_of_reach)
    if files:
        carry = "still carries" if len(files) == 1 else "still carry"
        note(f"{count(len(files), 'mail file')} in {files[0].parent.parent} {carry} the address.")
    note("Imports leave the address out from now on; the person may sign up again.")
