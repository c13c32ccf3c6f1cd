"""`mailout publish` and `unpublish`: a letter into the archive on the web, and out of it."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.engine import open_engine
from cli.names import find_mailout
from cli.output import Json, answer
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
            "PUBLIC_URL: is missing.", remedy="Set it to the gateway's address, as people reach it."
        )
    mailout = web_archive.publish(engine.store, find_mailout(engine, id).id)
    address = f"{engine.settings.public_url.rstrip('/')}/archive/{mailout.slug}"
    when = "" if mailout.ledger.sent else " from its first message on"
    data = {"id": mailout.id, "public": mailout.public, "address": address}
    answer(json, data, f"{titled(mailout)} is public{when}: {address}")


@app.command(epilog="Example: mailout unpublish 1a2b3c4d")
def unpublish(id: Id, json: Json = False) -> None:
    """Take a letter out of the archive on the web. Within a minute its page says that it is gone."""
    engine = open_engine()
    mailout = web_archive.unpublish(engine.store, find_mailout(engine, id).id)
    text = f"{titled(mailout)} is not in the archive any more. Links in the letters themselves still work."
    answer(json, {"id": mailout.id, "public": mailout.public}, text)
