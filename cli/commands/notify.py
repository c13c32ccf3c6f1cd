"""`mailout notify`: a producer's queue of notifications, sent, and its rows updated."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer

from cli.engine import open_engine, read_settings
from cli.output import Json, note, print_json, say
from cli.processes import prefect_home
from cli.show import near
from cli.signals import stopping
from mailout.app import notification_wiring, wiring
from mailout.app.engine import Engine
from mailout.base.errors import UsageError

app = typer.Typer(rich_markup_mode=None, add_completion=False)

AN_HOUR = 3600.0
DONE, FAILED, DEFERRED = 0, 1, 75
Db = Annotated[
    Path | None,
    typer.Option("--db", metavar="FILE", dir_okay=False, help="The producer's SQLite file; else NOTIFY_DB."),
]


@app.callback(invoke_without_command=True, epilog="Example: mailout notify --db seats.db --once")
def notify(
    context: typer.Context,
    db: Db = None,
    once: Annotated[bool, typer.Option("--once", help="Send what is due now, then stop.")] = False,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Rehearse on the producer's own rows, not on a copy.")
    ] = False,
    prefect: Annotated[
        bool, typer.Option("--prefect", help="As runs of the flow, an hour each; `mailout up` does it so.")
    ] = False,
    json: Json = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the log.")] = False,
) -> None:
    """Send what a producer's SQLite queue of notifications asks for.

    As they come, until Ctrl-C; with --once, those that are due now. With MAILOUT_TRANSPORT=folder it is a
    rehearsal: mails are written to a folder, and a copy of the database is marked. Exit codes: 0 done,
    1 some failed, 2 wrong usage or settings, 75 some have to wait, or the database is locked.
    """
    if context.invoked_subcommand is not None:
        return
    engine = open_engine(verbose=verbose)
    with stopping(engine.sending.stop) as stop:
        if prefect:
            _as_flows(engine, db, in_place, stop)
            return
        if not once:
            note("Sending notifications as they come. Ctrl-C ends it.")
        seconds = 0 if once else float("inf")
        counts = notification_wiring.send_notifications(engine, db, seconds, stop, in_place=in_place)
    if json:
        print_json(counts.as_json())
    else:
        say(counts.said(f" into {near(engine.settings.mailout_home / 'outbox')}" if engine.rehearses else ""))
        for problem in counts.problems:
            note(problem)
    if counts.waiting or counts.retried:
        raise typer.Exit(DEFERRED)
    raise typer.Exit(FAILED if counts.failed else DONE)


def _as_flows(engine: Engine, db: Path | None, in_place: bool, stop: threading.Event) -> None:
    home = engine.settings.mailout_home.absolute()
    prefect_home.prepare(home)
    prefect_home.start_server(home)
    from flows import dispatch_notifications as flow

    flow.STOP = stop
    wiring.use(engine)
    while not stop.is_set():
        flow.dispatch_notifications(str(db) if db else None, AN_HOUR, in_place)


@app.command("requeue", epilog="Example: mailout notify requeue 42 --db seats.db")
def requeue(
    id: Annotated[int, typer.Argument(metavar="ID", help="Of the row in open_event_notifications.")],
    db: Db = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Also while MAILOUT_TRANSPORT=folder: the producer's own row.")
    ] = False,
) -> None:
    """Send one again, whatever its result was. It becomes pending, with no attempts and no error."""
    settings = read_settings()
    if settings.rehearses and not in_place:
        raise UsageError(
            "MAILOUT_TRANSPORT=folder is a rehearsal, and this would change the producer's own row.",
            remedy="Set MAILOUT_TRANSPORT=ses, or use --in-place.",
        )
    notification_wiring.requeue_notification(settings, id, db)
    say(f"Notification {id} is pending again.")
