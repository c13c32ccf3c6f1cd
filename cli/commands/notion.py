"""`mailout notion`: the databases to write in."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from pydantic import SecretStr

from cli.engine import command_group, read_settings
from cli.output import Json, note, print_json, say, stop_at_ctrl_c
from mailout.app import wiring
from mailout.base.dotenv_file import DOTENV, write_settings
from mailout.base.errors import SettingsError
from mailout.base.settings import Settings

app = command_group("Make the databases to write in, in Notion.")

HEADING = "# Notion: where letters are written, and where errors are listed (docs/notion.md)"
MAILOUTS, ERRORS = "NOTION_DB_MAILOUTS", "NOTION_DB_ERRORS"
DONE, SENT = "NOTION_STATUS_SEND", "Sent"
"""What a database that is made here calls done; for others `Send` stays the default."""


@app.command("init", epilog="Example: mailout notion init https://www.notion.so/Newsletter-1a2b…")
def init(
    page: Annotated[
        str,
        typer.Argument(
            metavar="PAGE", help="A page that is shared with your integration: its id or address."
        ),
    ],
    json: Json = False,
) -> None:
    """Make the two databases under a page, and write their ids into .env.

    First make an integration (notion.so/my-integrations) that may read, update and insert content
    and comment, and share the page with it: ••• → Connections. A database that .env names already stays.
    """
    settings, asked_for = _with_token(read_settings())
    made: dict[str, str] = {}
    named: dict[str, str] = {}
    if settings.notion_db_mailouts is None and "notion_status_send" not in settings.model_fields_set:
        settings, named = settings.model_copy(update={"notion_status_send": SENT}), {DONE: SENT}
    databases = wiring.notion_databases(settings)
    try:
        parent = databases.parent(page)
        write_settings(DOTENV, asked_for, heading=HEADING)  # a token that does not work is asked for again
        mailouts = settings.notion_db_mailouts
        if mailouts is None:
            mailouts = made[MAILOUTS] = databases.make_mailouts(parent)
            write_settings(DOTENV, {MAILOUTS: mailouts} | named)  # at once: the next call may fail
        if settings.notion_db_errors is None:
            made[ERRORS] = databases.make_errors(parent, mailouts)
            write_settings(DOTENV, {ERRORS: made[ERRORS]})
    finally:
        databases.close()
    if json:
        print_json(
            {"made": made, "mailouts": mailouts, "errors": made.get(ERRORS, settings.notion_db_errors)}
        )
    else:
        _tell(made)


def _with_token(settings: Settings) -> tuple[Settings, dict[str, str]]:
    """Asked for on a terminal, and then to be kept; never an option, which a shell would remember."""
    if settings.notion_token is not None:
        return settings, {}
    if not sys.stdin.isatty():
        raise SettingsError(
            "NOTION_TOKEN: is missing.",
            remedy="Make an integration at notion.so/my-integrations and set its token.",
        )
    stop_at_ctrl_c()
    token = typer.prompt("The integration's token (it is not shown)", hide_input=True, err=True).strip()
    return settings.model_copy(update={"notion_token": SecretStr(token)}), {"NOTION_TOKEN": token}


def _tell(made: dict[str, str]) -> None:
    for name, words in ((MAILOUTS, "the mailouts"), (ERRORS, "what went wrong")):
        if name in made:
            say(f"Made a database for {words}: {name} is written to {DOTENV}.")
        else:
            note(f"{name} is set already; nothing was made for {words}.")
    say("\nNext: write a page in “Mailouts”, tick is_test and set its status to Ready.", style="bold")
    say("With `mailout up` running it is sent within a minute.")
    say("For writers: docs/writing-in-notion.md")
