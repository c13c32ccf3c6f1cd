"""`mailout publish`: a letter into the archive on the web."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.engine import open_engine
from cli.names import find_mailout
from cli.output import Json, print_json, say
from mailout.base.errors import SettingsError
from mailout.insight.reporting.phrases import titled
from mailout.readers import web_archive

app = typer.Typer(rich_markup_mode=None, add_completion=False)

Id = Annotated[str, typer.Argument(metavar="ID", help="Its id or the id's beginning, its file or its page.")]


@app.command(epilog="Example: mailout publish 1a2b3c4d")
def publish(id: Id, json: Json = False) -> None:
    """Put a letter into the archive on the web, from its first message on."""
    engine = open_engine()
    if not engine.settings.public_url:
        raise SettingsError(
            "PUBLIC_URL: is missing.", remedy="Set it to the gateway's address, as the world reaches it."
        )
    mailout = web_archive.publish(engine.store, find_mailout(engine, id).id)
    address = f"{engine.settings.public_url.rstrip('/')}/archive/{mailout.slug}"
    if json:
        print_json({"id": mailout.id, "public": mailout.public, "address": address})
    else:
        when = "" if mailout.ledger.sent else " from its first message on"
        say(f"{titled(mailout)} is public{when}: {address}")
