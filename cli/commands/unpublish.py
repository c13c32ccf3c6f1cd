"""`mailout unpublish`: a letter out of the archive on the web."""

from __future__ import annotations

import typer

from cli.commands.publish import Id
from cli.engine import open_engine
from cli.names import find_mailout
from cli.output import Json, print_json, say
from mailout.insight.reporting.phrases import titled
from mailout.readers import web_archive

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog="Example: mailout unpublish 1a2b3c4d")
def unpublish(id: Id, json: Json = False) -> None:
    """Take a letter out of the archive on the web. Within a minute its page says that it is gone."""
    engine = open_engine()
    mailout = web_archive.unpublish(engine.store, find_mailout(engine, id).id)
    if json:
        print_json({"id": mailout.id, "public": mailout.public})
    else:
        say(f"{titled(mailout)} is not in the archive any more. Links in the letters themselves still work.")
