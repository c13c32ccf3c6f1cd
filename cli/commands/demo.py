"""`mailout demo`: the whole of it on one machine, without any account, in a folder of its own."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import chdir, closing
from pathlib import Path
from typing import Annotated, NoReturn
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

import typer

from cli.commands.article import send_batch
from cli.commands.send import Stop, exit_code, finish, run_flow, starting
from cli.output import say
from cli.prefect_auth import AUTH_FILE
from cli.processes import prefect_home
from cli.progress import showing
from cli.show import near
from cli.subscriber_import import import_into, show_counts
from deployments import EXAMPLES
from mailout.app import notification_wiring, wiring
from mailout.app.engine import Engine
from mailout.base.errors import Abort, AbortCode, UsageError
from mailout.base.settings import Settings, load_settings
from mailout.insight.reporting.details import census_lines
from mailout.insight.reporting.plain import summary_lines
from mailout.insight.reporting.reports import Reports
from mailout.kinds.articles.order import ArticleOrder
from mailout.kinds.articles.slice_import import read_slices
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.people_import import read_people

app = typer.Typer(rich_markup_mode=None, add_completion=False)

HOME = Path(".mailout-demo")
MARK = "THIS-IS-A-DEMO.txt"
PRODUCER = "producer.db"
DEMO_FILES = frozenset(
    {MARK, AUTH_FILE, "prefect", "journal", "logs", "media", "outbox", "reports"}
    | {f"{database}{end}" for database in ("mailout.db", PRODUCER) for end in ("", "-wal", "-shm")}
)
UI = "http://127.0.0.1:4200"
START_AGAIN = "make demo ARGS='{}'" if Path("Makefile").is_file() else "mailout demo {}"


@app.command(epilog="Example: mailout demo --fresh")
def demo(
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the last demo and begin again.")] = False,
    home: Annotated[Path, typer.Option(help="Where the demo keeps everything.")] = HOME,
    ses: Annotated[
        str | None, typer.Option(metavar="URL", help="A stand-in for SES on this machine.")
    ] = None,
    article: Annotated[
        bool, typer.Option("--article", help="An article that is put together for each reader.")
    ] = False,
    notify: Annotated[
        bool, typer.Option("--notify", help="Notifications of a producer's queue instead of a newsletter.")
    ] = False,
) -> None:
    """See it work: a newsletter to about 260 made-up people, into a folder. No account, nothing leaves.

    It reads no settings and no .env: whatever they say, the demo writes .eml files into its own folder.
    """
    if article and notify:
        raise UsageError("--article and --notify are two demos.", remedy="Choose one of them.")
    home = home.absolute()
    _make_home(home, fresh)
    engine = wiring.build(_settings(home, ses))
    if article:
        _article(engine)
    if notify:
        _notify(engine)
        return
    letter = str(EXAMPLES / "newsletter.md")
    found = read_people(EXAMPLES / "subscribers.csv")
    _, counts = import_into(engine, found)
    id = _not_sent_yet(engine, letter)
    say(f"The list, {near(EXAMPLES / 'subscribers.csv')}", style="bold")
    show_counts(found, counts)
    people = subscriber_rows.subscriber_counts(engine.store)
    say(
        f"{people['active']:,} of them want mail; {people['unsubscribed']:,} have unsubscribed and"
        f" {people['bounced']:,} cannot be reached, so they get none.\n"
    )
    _send(engine, id, lambda: run_flow(engine, letter, False), "--fresh")


def _send(engine: Engine, id: str, run: Callable[[], str], again: str) -> NoReturn:
    prefect_home.isolate()
    stop, home = Stop(engine), engine.settings.mailout_home
    # Prefect reads .env, prefect.toml and pyproject.toml where it starts.
    with chdir(home), showing(engine.settings, id, first=starting(home)), stop.on_signals(id):
        run_id = run()
    if stop.signal is not None:
        finish(engine, id, json=False, stopped_by=stop.signal)
    _tell(engine, engine.report(id), run_id, again)
    raise typer.Exit(exit_code(engine.store.mailout(id)))


def _article(engine: Engine) -> NoReturn:
    """Slices and people of our own making: who lives where decides what they read."""
    folder = EXAMPLES / "article"
    found = read_people(folder / "people.csv")
    import_into(engine, found)
    engine.store.import_slices(read_slices(folder / "slices.csv").slices)
    order = ArticleOrder.checked("demo", "where-the-rain-goes", str(uuid5(NAMESPACE_URL, "demo")))
    articles = engine.intake.articles
    census = articles.census(order.article_key, {}).to_dict()
    say(f"The census of {near(folder / 'slices.csv')} for {near(folder / 'people.csv')}", style="bold")
    say("\n".join(census_lines(census)) + "\n")
    _send(engine, articles.id_of(order), lambda: send_batch(engine, order) or "", "--article --fresh")


def _notify(engine: Engine) -> None:
    """A producer's queue with a few rows of every kind, and what becomes of them.

    The rows are the demo's own, so they are marked in place; run again, it finds nothing pending.
    """
    home = engine.settings.mailout_home
    path = home / PRODUCER
    if not path.exists():
        with closing(sqlite3.connect(path)) as db:
            for file in ("producer_schema.sql", "producer.sql"):
                db.executescript((EXAMPLES / file).read_text(encoding="utf-8"))
    say(f"A producer's queue, {near(path)}", style="bold")
    with closing(notification_wiring.notification_worker(engine, path, in_place=True)) as worker:
        say(f"{worker.run().said()}\n")
    for row in reversed(notification_wiring.producer_queue(engine.settings, db=path).rows):
        why = "not yet: it is snoozed" if row.status == "pending" else row.said
        say(f"  {row.id:>3}  {row.status:<8} attempts {row.attempts}  {row.contact:<22} {why}")
    say()
    for mail in sorted((home / "outbox" / "single").glob("*.eml"))[:1]:
        _place("One of the mails, for any mail program", near(mail))
    _tell_start_over(engine, "--notify --fresh")


def _not_sent_yet(engine: Engine, letter: str) -> str:
    try:
        return engine.intake.validate(letter)
    except Abort as abort:
        if abort.code is AbortCode.MAILOUT_ALREADY_SENT:
            abort.remedy = f"To start over: {START_AGAIN.format('--fresh')}"
        raise


def _settings(home: Path, ses: str | None) -> Settings:
    """Made up, and nothing else is read."""
    through: dict[str, str] = {"MAILOUT_TRANSPORT": "folder"}
    if ses is not None:
        if urlsplit(ses).hostname not in ("127.0.0.1", "localhost", "::1"):
            raise UsageError(f"--ses {ses} is not on this machine.", remedy="A demo mails nobody.")
        through = {
            "MAILOUT_TRANSPORT": "ses",
            "AWS_ENDPOINT_URL_SESV2": ses,
            "AWS_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "demo",
            "AWS_SECRET_ACCESS_KEY": "demo",
            "PUBLIC_URL": "https://mail.example.org",  # where readers would find the letter's picture
        }
    return load_settings(
        env={
            **through,
            "MAILOUT_HOME": str(home),
            "FROM_EMAIL": "letters@example.org",
            "FROM_NAME": "Birch Hill Observatory",
            "ORG_NAME": "Birch Hill Observatory",
            "ORG_ADDRESS": "1 Hill Lane, Birch Hill",
            "UNSUBSCRIBE_BASE_URL": "https://mail.example.org/unsubscribe",
            "UNSUBSCRIBE_SECRET": "a demo has no secrets",
            "TEST_EMAILS": "you@example.org",
            "SEND_RATE_PER_SEC": "26",
            "NOTIFY_SOURCE": "demo",
            "NOTIFY_BASE_URL": "https://seats.example.org",
        }
    )


def _make_home(home: Path, fresh: bool) -> None:
    """A folder that is a demo's, or becomes one: somebody's own folder is neither used nor removed."""
    there = {entry.name for entry in home.iterdir()} if home.is_dir() else set()
    if there and (MARK not in there or home.is_symlink()):
        raise UsageError(f"{home} is not a demo's folder.", remedy="Choose another with --home.")
    if fresh and there:
        if strangers := sorted(there - DEMO_FILES):
            raise UsageError(
                f"{home} also holds what no demo put there: {', '.join(strangers[:5])}.",
                remedy="Move it away, or choose another folder with --home.",
            )
        shutil.rmtree(home)
    try:
        home.mkdir(parents=True, exist_ok=True)
        (home / MARK).write_text(
            "`mailout demo` keeps its things here; `mailout demo --fresh` removes this folder.\n", "utf-8"
        )
    except OSError as error:
        raise UsageError(
            f"{home} cannot be made: {error.strerror}.", remedy="Choose another folder with --home."
        ) from error


def _tell(engine: Engine, reports: Reports, run: str, again: str) -> None:
    say("\n".join(summary_lines(reports.summary, engine.limits.timezone)))
    say()
    outbox = engine.settings.mailout_home / "outbox" / reports.summary.mailout.id
    for mail in sorted(outbox.glob("*.eml"))[:1]:
        _place("One of the mails, for any mail program", near(mail))
    _place("What became of each recipient, for a spreadsheet", near(reports.csv))
    _place("The report, for a browser", near(reports.html))
    prefect = near(Path(sys.executable).with_name("prefect"))
    _place(
        "The same run in Prefect's own pages: start its server, and once it has greeted you open the address."
        f" It asks for a password: the line in {near(engine.settings.mailout_home / AUTH_FILE)}",
        f"PREFECT_HOME={near(engine.settings.mailout_home / 'prefect')} {prefect} server start",
        f"{UI}/runs/flow-run/{run}",
    )
    if engine.settings.mailout_transport == "folder":  # `make demo-ses` begins again by itself
        say("This was a rehearsal. Run the demo again and it writes nothing: nothing has changed.")
        _tell_start_over(engine, again)


def _tell_start_over(engine: Engine, options: str) -> None:
    home = engine.settings.mailout_home
    elsewhere = "" if home == HOME.absolute() else f" --home {shlex.quote(str(home))}"
    say("To start over:")
    say(f"  {START_AGAIN.format(options + elsewhere)}")


def _place(what: str, *lines: str) -> None:
    say(what, style="bold")
    for line in lines:
        say(f"  {line}")
    say()
