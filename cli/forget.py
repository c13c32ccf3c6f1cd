"""`mailout subscribers forget`: a person asks to be erased."""

from __future__ import annotations

from dataclasses import asdict
from hashlib import sha256
from typing import Annotated

import typer

from cli.engine import open_engine
from cli.output import Json, note, print_json, say
from mailout.errors import NotFound, UsageError
from mailout.feedback.events import address_of
from mailout.reporting.words import count

EXAMPLE = "Example: mailout subscribers forget ana@example.org"


def forget(
    email: Annotated[str, typer.Argument(help="The address, in capitals or not.")],
    json: Json = False,
) -> None:
    """Erase a person: from the list, the messages, the events and the reports. The counts stay."""
    address = address_of(email)
    if address is None:
        raise UsageError(f"{email} is no address.")
    engine = open_engine()
    done = engine.store.forget(address, f"forgotten:{sha256(address.encode()).hexdigest()[:32]}")
    if not (done.subscribers or done.messages or done.events or done.errors):
        raise NotFound(f"Nothing is known of {address}.")
    for mailout in done.mailouts:
        engine.report(mailout)
    files = list((engine.settings.mailout_home / "outbox").glob(f"*/{address}--*.eml"))
    if json:
        print_json({**asdict(done), "mail_files": [str(file) for file in files]})
        return
    say(
        f"{address} is forgotten: {count(done.subscribers, 'subscriber')}, {count(done.messages, 'message')},"
        f" {count(done.events, 'event')}, {count(done.errors, 'error')};"
        f" {count(len(done.mailouts), 'report')} written anew."
    )
    if files:
        note(f"{count(len(files), 'mail file')} in {files[0].parent.parent} still carry the address.")
    note("An import that has the address would bring it back: take it out of your files, too.")
