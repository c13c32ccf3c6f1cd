"""`mailout send`: one mailout, from the source to the report."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.engine import open_engine
from cli.output import Json, Yes, confirm, note, print_json
from cli.processes import prefect_home
from cli.progress import showing
from cli.show import show_reports
from cli.signals import Stopped, handling
from mailout.app import examination, wiring
from mailout.app.engine import Engine
from mailout.base.errors import MailoutError, NotFound, ProviderUnreachable, UsageError
from mailout.insight.reporting.phrases import count
from mailout.kinds.mailouts.reading import Announcement
from mailout.letters.content.document import problem_line
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout, MailoutOutcome, Status

app = typer.Typer(rich_markup_mode=None, add_completion=False)

PROVIDER_SECONDS = 8.0
"""For SES to say anything at all before a test is begun."""
DONE, FAILED, DEFERRED = 0, 1, 75
GO_ON = "Nothing is lost and nothing is sent twice. Run the same command again to send the rest."


@app.command(epilog="Example: mailout send examples/newsletter.md --test")
def send(
    ref: Annotated[
        str, typer.Argument(metavar="REF", help="A Markdown file, or a Notion page (its id or address).")
    ],
    test: Annotated[
        bool | None,
        typer.Option(
            "--test/--real",
            help="Only to TEST_EMAILS, or for real and now. Without it: as the page or file says.",
        ),
    ] = None,
    direct: Annotated[
        bool,
        typer.Option("--direct", help="Without Prefect: starts at once, and leaves no run to look at."),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Rehearse it once more, although it has not changed.")
    ] = False,
    yes: Annotated[bool, Yes] = False,
    json: Json = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the log, and Prefect's.")] = False,
) -> None:
    """Send one mailout to everyone who should have it, once.

    Its run shows on the pages of PREFECT_API_URL's server, or of a running `mailout up`. Without either,
    Prefect is started for it, except for --test. You can stop it with Ctrl-C at any time: messages that are
    being sent are finished, and the same command continues with the rest. Exit codes: 0 sent, 1 failed,
    2 wrong usage or settings, 75 it has to wait (it says for what).
    """
    engine = open_engine(verbose=verbose)
    if again and not engine.rehearses:
        raise UsageError(
            "A mailout to people goes out once; --again is for rehearsals.",
            remedy="To send to those that failed: mailout queue retry. For a trial: --test.",
        )
    id = engine.intake.validate(ref, test, again=again)
    for finding in engine.intake.findings(ref):
        note(f"Check: {problem_line(finding)}")
    about = engine.intake.announcement(ref, test)
    if about is not None:
        ask_first(engine, about, yes)
    elif not engine.rehearses:
        require_provider(engine)
    stop = Stop(engine)
    server = prefect_home.server_in_use(engine.settings.mailout_home.absolute())
    # A test is for one or two people: Prefect would cost more than all the rest of it.
    direct = direct or (test is True and server is None)
    first = "Preparing" if direct else starting(engine.settings.mailout_home, server)
    with showing(engine.settings, id, first=first, quiet=json), stop.on_signals(id):
        if direct:
            engine.deliver(engine.intake.enqueue(ref, test).id)
        else:
            run_flow(engine, ref, test)
    finish(engine, id, json=json, stopped_by=stop.signal)


def ask_first(engine: Engine, about: Announcement, yes: bool) -> None:
    """What would stop it now is said first: nobody should agree to what cannot be."""
    for check in examination.what_stops_sending(engine.settings):
        said = f"{check.name}: {check.message.rstrip('.')}."
        if check.level == "fail":
            raise UsageError(said, remedy=check.remedy or None)
        note(f"{said} {check.remedy}".rstrip())
    sender = f"{about.from_name} <{about.from_email}>" if about.from_name else about.from_email
    if about.edited:
        note(about.edited)
    if about.snoozed:
        note(f"{count(about.snoozed, 'person', 'people')} asked for a pause and will not get it.")
    confirm(f"“{about.subject}” goes to {about.reach} through Amazon SES, from {sender}. Send it?", yes)


def require_provider(engine: Engine) -> None:
    """Of a test. Without a network it would be tried for minutes, and who watches would not know why."""
    failed: list[MailoutError] = []

    def ask() -> None:
        try:
            engine.sending.provider.ask(must_reach=True)
        except MailoutError as error:
            failed.append(error)

    asking = threading.Thread(target=ask, name="ask the provider", daemon=True)
    asking.start()
    asking.join(PROVIDER_SECONDS)  # looking up a name can take longer than connecting may
    if asking.is_alive():
        raise ProviderUnreachable.named("SES", f"no answer for {PROVIDER_SECONDS:g} seconds")
    if failed:
        raise failed[0]


def starting(home: Path, server: str | None = None) -> str:
    if server is not None:
        return f"Preparing; its run shows on {server.removesuffix('/api')}/runs"
    return prefect_home.starting(home)


def run_flow(engine: Engine, ref: str, test: bool | None) -> str:
    """The flow `send_mailout` in this process; the id of its run. An error inside it is raised here."""

    def send_mailout() -> Any:
        from flows.send_mailout import send_mailout

        return send_mailout(ref, test, return_state=True)

    return run_here(engine, send_mailout)


def run_here(engine: Engine, run: Callable[[], Any]) -> str:
    """A flow in this process, with a Prefect of its own; the id of its run."""
    home = engine.settings.mailout_home.absolute()
    prefect_home.prepare(home)
    prefect_home.start_server(home)
    from prefect.exceptions import CancelledRun, FailedRun

    wiring.use(engine)
    state = run()
    ended = state.result(raise_on_failure=False)
    # What a run that failed or was cancelled has to say, the store tells better.
    if isinstance(ended, BaseException) and not isinstance(ended, FailedRun | CancelledRun):
        raise ended
    return str(state.state_details.flow_run_id)


class Stop:
    """Ctrl-C and SIGTERM: the first finishes what is in hand, the second ends it there and then."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.signal: int | None = None

    def __call__(self, number: int, frame: object) -> None:
        again, self.signal = self.signal is not None, number
        if again or not self._engine.sending.stop():
            raise Stopped(number)
        note("\nStopping: messages that are being sent are finished first.")

    @contextmanager
    def on_signals(self, id: str) -> Iterator[None]:
        try:
            with handling(self):
                yield
        except Stopped:
            with suppress(NotFound):  # not written down yet
                self._engine.store.release(id)
            note(f"\nStopped. {GO_ON}")
            raise


def finish(engine: Engine, id: str, *, json: bool, stopped_by: int | None = None) -> None:
    """Say how it stands, and end with the exit code for it."""
    reports = engine.report(id)
    mailout = reports.summary.mailout
    if json:
        print_json(reports.summary.to_dict() | {"csv": str(reports.csv), "html": str(reports.html)})
    elif not _is_on_its_way(mailout):
        show_reports(engine, reports)
    if _is_on_its_way(mailout):
        so_far = f"{mailout.ledger.sent:,} of {mailout.ledger.recipients:,} sent"
        if queue_rows.all_paused(engine.store):
            note(f"Everything is paused ({so_far}). To go on: mailout queue resume --all, then send again.")
        else:
            note(f"Stopped ({so_far}). {GO_ON}")
        if not reports.written:
            note(f"The report is written by the next run, or now: mailout status {id} --report")
        if stopped_by is not None:
            raise typer.Exit(128 + stopped_by)
    raise typer.Exit(exit_code(mailout))


def _is_on_its_way(mailout: Mailout) -> bool:
    """Begun, not over, and waiting for nothing: somebody stopped it, or another process sends it."""
    open_ = mailout.status in (Status.PROCESSING, Status.PENDING)
    return open_ and mailout.started_at is not None and mailout.defer_reason is None


def exit_code(mailout: Mailout) -> int:
    if mailout.status is Status.COMPLETED:
        return DONE if mailout.outcome is MailoutOutcome.SENT else FAILED
    return FAILED if mailout.status is Status.CANCELLED else DEFERRED
