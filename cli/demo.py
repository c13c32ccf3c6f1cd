"""`mailout demo`: the whole of it on one machine, without any account, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli import prefect_home
from cli.output import note, say
from cli.progress import showing
from cli.send import Stop, exit_code, run_flow, starting
from cli.show import near
from cli.subscribers import import_into, show_import
from mailout import wiring
from mailout.audience.csv_import import read_subscribers
from mailout.engine import Engine, Reports
from mailout.errors import UsageError
from mailout.reporting.plain import summary_lines
from mailout.settings import Settings, load_settings

app = typer.Typer()

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
HOME = Path(".mailout-demo")
MARK = "THIS-IS-A-DEMO.txt"
OURS = frozenset({MARK, "mailout.db", "mailout.db-wal", "mailout.db-shm", "prefect"}) | {
    "journal",
    "media",
    "outbox",
    "reports",
}
UI = "http://127.0.0.1:4200"


@app.command(epilog="Example: mailout demo --fresh")
def demo(
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the last demo and begin anew.")] = False,
    home: Annotated[Path, typer.Option("--home", help="Where the demo keeps everything.")] = HOME,
) -> None:
    """See it work: a newsletter to about 260 made-up people, into a folder. No account, nothing leaves.

    It reads no settings and no .env: whatever they say, the demo writes .eml files into its own folder.
    """
    where = Path.cwd()
    home = home.absolute()
    _make_home(home, fresh)
    engine = wiring.build(_settings(home))
    letter = str(EXAMPLES / "newsletter.md")
    found = read_subscribers(EXAMPLES / "subscribers.csv")
    counts = import_into(engine, found)
    id = engine.look_over(letter)
    say(f"The list, {near(EXAMPLES / 'subscribers.csv')}: ", style="bold")
    show_import(found, counts)
    say()
    prefect_home.isolate()
    stop = Stop(engine)
    os.chdir(home)  # Prefect reads .env, prefect.toml and pyproject.toml where it starts
    try:
        with showing(engine.settings, id, first=starting(home)), stop.on_signals():
            run = run_flow(engine, letter, False)
    finally:
        os.chdir(where)
    _tell(engine, engine.report(id), run)
    if stop.signal is not None:
        note("Stopped. Nothing is lost and nothing goes out twice: `mailout demo` goes on with the rest.")
        raise typer.Exit(128 + stop.signal)
    raise typer.Exit(exit_code(engine.store.mailout(id)))


def _settings(home: Path) -> Settings:
    """Made up, and nothing else is read."""
    return load_settings(
        env={
            "MAILOUT_HOME": str(home),
            "MAILOUT_TRANSPORT": "folder",
            "FROM_EMAIL": "letters@example.org",
            "FROM_NAME": "Birch Hill Observatory",
            "ORG_NAME": "Birch Hill Observatory",
            "ORG_ADDRESS": "1 Hill Lane, Birch Hill",
            "UNSUBSCRIBE_BASE_URL": "https://mail.example.org/unsubscribe",
            "UNSUBSCRIBE_SECRET": "a demo has no secrets",
            "TEST_EMAILS": "you@example.org",
            "SEND_RATE_PER_SEC": "26",
        }
    )


def _make_home(home: Path, fresh: bool) -> None:
    """A folder that is a demo's, or becomes one: somebody's own folder is neither used nor removed."""
    there = {entry.name for entry in home.iterdir()} if home.is_dir() else set()
    if there and (MARK not in there or home.is_symlink()):
        raise UsageError(f"{home} is not a demo's folder.", remedy="Choose another with --home.")
    if fresh and there:
        if strangers := sorted(there - OURS):
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


def _tell(engine: Engine, reports: Reports, run: str | None) -> None:
    say("\n".join(summary_lines(reports.summary, engine.limits.timezone)))
    say()
    say("To look at", style="bold")
    outbox = engine.settings.mailout_home / "outbox" / reports.summary.mailout.id
    mails = sorted(outbox.glob("*.eml"))
    if mails:
        say(f"  a mail, in any mail program   {near(mails[0])}")
    say(f"  one line a recipient          {near(reports.csv)}")
    say(f"  the report, in a browser      {near(reports.html)}")
    say()
    say("The same run in Prefect's own pages: start its server, wait for its greeting, open the address.")
    prefect = near(Path(sys.executable).with_name("prefect"))
    say(f"  PREFECT_HOME={near(engine.settings.mailout_home / 'prefect')} {prefect} server start")
    say(f"  {UI}/runs/flow-run/{run}")
    say()
    say("Run the demo again: it sends nothing, because a mailout goes out once. Anew: mailout demo --fresh")
