"""`mailout messages`: single mails that failed, are in doubt or wait, and what a person can do about one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import typer

from cli.engine import command_group, open_engine
from cli.names import find_message
from cli.output import Json, Yes, confirm, print_json, say
from cli.show import message_dict
from cli.tables import TextTable
from mailout.app.engine import Engine
from mailout.base.select import SELECT_LIMIT
from mailout.base.time_format import day
from mailout.insight.reporting.phrases import count
from mailout.kinds.single_mails.companies import company as company_of
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.outbox_rows import SINGLE_MAIL_STATES
from mailout.outbox.delivery.single_mails import DEFAULT_COMPANY
from mailout.outbox.queue import actions

app = command_group("Single mails that failed, are in doubt or wait: list, retry, cancel.")

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Its id, its request's, or SES's.")]


Shown = Literal["failed", "unknown", "pending"]


@app.command("list", epilog="Example: mailout messages list --state failed --company shop")
def list_(
    state: Annotated[Shown, typer.Option(help="Which of them.")] = "failed",
    company: Annotated[str | None, typer.Option(help="Only this company's.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=SELECT_LIMIT, help="How many, the latest first.")] = 100,
    json: Json = False,
) -> None:
    """Single mails in one state, the latest first."""
    engine = open_engine()
    rows = outbox_rows.single_mails(engine.store, SINGLE_MAIL_STATES[state], company, limit)
    if not rows and company not in (None, DEFAULT_COMPANY):
        company_of(engine.store, company)
    if json:
        print_json([message_dict(row, ()) for row in rows])
        return
    if not rows:
        whose = "No single mail" if company is None else f"No single mail of {company}"
        say(f"{whose} {NONE[state]}.")
        return
    table = TextTable(("id", "date", "state", "company", "to", "subject"), indent=4)
    for row in rows:
        said = ": ".join(filter(None, (row["error_code"], row["error_message"])))
        when = day(row["created_at"], engine.limits.timezone)
        table.add(
            *(row["id"], when, row["state"], row["company_id"], row["email"], row["subject"] or ""), more=said
        )
    table.show()
    say(f"\n{NEXT[state]}")


NONE: Mapping[Shown, str] = {"failed": "has failed", "unknown": "is in doubt", "pending": "waits"}
NEXT: Mapping[Shown, str] = {
    "failed": "When the cause is gone: mailout messages retry ID",
    "unknown": "When you know whether it arrived: mailout queue settle --message ID --as …",
    "pending": "To cancel one: mailout messages cancel ID",
}


@app.command(epilog="Example: mailout messages retry 0f6a2c1e-…")
def retry(ids: Ids, json: Json = False) -> None:
    """Try failed single mails again.

    Each has all its attempts before it.
    """
    engine = open_engine()
    retry_single_mails(engine, [find_message(engine, None, id) for id in ids], json)


@app.command(epilog="Example: mailout messages cancel 0f6a2c1e-…")
def cancel(ids: Ids, yes: Annotated[bool, Yes] = False, json: Json = False) -> None:
    """Cancel single mails that wait.

    They are not sent, and cannot be resumed.
    """
    engine = open_engine()
    found = [find_message(engine, None, id) for id in ids]
    confirm(f"Cancel {count(len(found), 'single mail')}?", yes)
    for id in found:
        actions.cancel_single_mail(engine.store, id)
    show_single_mails(engine, found, json)


def retry_single_mails(engine: Engine, ids: Sequence[str], json: bool) -> None:
    for id in ids:
        actions.retry_single_mail(engine.store, id)
    show_single_mails(engine, ids, json)
    if not json:
        say("Where mailout runs, it is sent within a minute.")


def show_single_mails(engine: Engine, ids: Sequence[str], json: bool) -> None:
    rows = [outbox_rows.message(engine.store, id) for id in ids]
    if json:
        print_json([message_dict(row, outbox_rows.message_events(engine.store, row["id"])) for row in rows])
        return
    for row in rows:
        say(f"Message {row['id']} to {row['email']}: {row['state']}")
