"""`mailout retention`: mailouts that have long been over leave the store for Parquet files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.engine import open_engine
from cli.names import SHORT_ID_CHARS
from cli.output import Json, note, print_json, say
from cli.show import near
from cli.tables import TextTable
from mailout.app import wiring
from mailout.insight.reporting.phrases import count, titled
from mailout.insight.retention.archiving import DEFAULT_DAYS, Archived, Kept
from mailout.outbox.queue.mailout import Mailout

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog="Example: mailout retention --older-than 180 --dry-run")
def retention(
    older_than: Annotated[
        int,
        typer.Option("--older-than", metavar="DAYS", help="Those that ended so many days ago; 30 at least."),
    ] = DEFAULT_DAYS,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", file_okay=False, help="Where to. Else: MAILOUT_HOME/archive."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be archived.")] = False,
    json: Json = False,
) -> None:
    """Move the messages and events of old mailouts to Parquet files, and free the store.

    Only of mailouts that are over, with nothing in doubt. The mailouts and their counts stay. It can be
    stopped at any time and run again.
    """
    engine = open_engine()
    archiving = wiring.archiving(engine, out)
    if dry_run:
        ready, kept = archiving.plan(older_than)
        _show_plan(ready, kept, json)
        return
    done: list[Archived] = []
    stays: list[Kept] = []
    for one in archiving.run(older_than):
        if isinstance(one, Archived):
            done.append(one)
            if not json:
                _say_archived(one)
        else:
            stays.append(one)
    freed = archiving.give_space_back() if done else 0
    if json:
        print_json({"archived": [_archived(one) for one in done], **_kept(stays), "freed_bytes": freed})
    else:
        _sum_up(done, freed, wiring.archive_folder(engine.settings, out).folder)
        _explain(stays)
    if any(one.trouble for one in stays):
        raise typer.Exit(1)


def _say_archived(one: Archived) -> None:
    held = f"{count(one.messages, 'message')}, {count(one.events, 'event')}, {_size(one.size)}"
    say(f"{one.mailout.id[:SHORT_ID_CHARS]} {titled(one.mailout)}: {held}")


def _sum_up(done: list[Archived], freed: int, folder: Path) -> None:
    if not done:
        say("Nothing to archive.")
        return
    messages, size = sum(one.messages for one in done), sum(one.size for one in done)
    say(
        f"Archived {count(len(done), 'mailout')} with {count(messages, 'message')}:"
        f" {_size(size)} in {near(folder)}."
    )
    if freed:
        say(f"The store's file is {_size(freed)} smaller.")


def _explain(stays: Iterable[Kept]) -> None:
    for one in stays:
        note(f"{one.mailout.id[:SHORT_ID_CHARS]} “{one.mailout.subject}” stays: {one.why}.")


def _show_plan(ready: list[Mailout], kept: list[Kept], json: bool) -> None:
    if json:
        plan = [{**_named(one), "messages": one.ledger.recipients} for one in ready]
        print_json({"would_archive": plan, **_kept(kept)})
        return
    table = TextTable(("id", "messages", "subject"), right=frozenset({"messages"}))
    for one in ready:
        table.add(one.id[:SHORT_ID_CHARS], f"{one.ledger.recipients:,}", titled(one))
    if ready:
        table.show()
    messages = count(sum(one.ledger.recipients for one in ready), "message")
    say(f"Would archive {count(len(ready), 'mailout')} with {messages}." if ready else "Nothing to archive.")
    _explain(kept)


def _named(mailout: Mailout) -> dict[str, Any]:
    return {"id": mailout.id, "subject": mailout.subject}


def _archived(one: Archived) -> dict[str, Any]:
    sizes = {"messages": one.messages, "events": one.events, "bytes": one.size}
    return {**_named(one.mailout), **sizes, "archived_to": one.place}


def _kept(stays: Iterable[Kept]) -> dict[str, Any]:
    return {"kept": [{**_named(one.mailout), "why": one.why} for one in stays]}


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} KB"
