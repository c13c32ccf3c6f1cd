"""`mailout up`: everything on one machine: Prefect's server, deployments, workers, the gateway."""

from __future__ import annotations

import fcntl
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated

import typer

from cli.deploy import POOL, deploy
from cli.engine import read_settings
from cli.interrupted import interrupted_mailouts
from cli.output import note, say
from cli.prefect_auth import AUTH_FILE, OF_CLIENT, OF_SERVER, auth_string
from cli.processes.listening import answers, require_free
from cli.processes.prefect_api import UP_LOCK, environment, show_running
from cli.processes.prefect_home import (
    PROJECT,
    build_database,
    drop_leftovers,
    parts_environment,
    starting,
)
from cli.processes.stale_runs import clear_stale_runs, put_runs_right
from cli.processes.supervisor import Supervisor, clear_after_prefect
from cli.show import near
from cli.signals import stopping
from mailout.app import notification_wiring, wiring
from mailout.base.errors import MailoutError, SettingsError, UsageError
from mailout.base.settings import Settings
from mailout.store import Store

app = typer.Typer(rich_markup_mode=None, add_completion=False)

OWN_PACKAGES = ("cli", "deployments", "flows", "gateway", "mailout", "tasks")
SUPERVISE_SECONDS, TIDY_UP_SECONDS = 0.5, 30.0
START_SECONDS, SENDERS_SECONDS, STOP_SECONDS = 300.0, 60.0, 20.0


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """What runs where."""

    workers: int
    host: str
    port: int
    prefect_port: int
    own_server: bool
    only_workers: bool

    @property
    def gateway(self) -> str:
        """Its address, seen from this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


@app.command(epilog="Example: mailout up --workers 2 --host 0.0.0.0 --port 8080")
def up(
    workers: Annotated[int, typer.Option(metavar="N", min=1, max=32, help="How many workers.")] = 1,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address that the gateway listens on.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65535, help="The gateway's port.")] = 8080,
    prefect_port: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=65535, help="The port of Prefect's pages and API."),
    ] = 4200,
    only_workers: Annotated[
        bool,
        typer.Option("--only-workers", help="One more machine that sends: no gateway, nothing is deployed."),
    ] = False,
) -> None:
    """Run everything on this machine: Prefect with its pages, the flows on their schedules, the gateway.

    With PREFECT_API_URL set, that server (or Prefect Cloud) is used and none is started. Ctrl-C ends it all:
    messages that are being sent are finished first.
    """
    settings = read_settings(says_where=False)  # it says so itself, once all is up
    own_server = not environment().get("PREFECT_API_URL")
    plan = ProcessPlan(workers, host, port, prefect_port, own_server, only_workers)
    home = settings.mailout_home.absolute()
    if settings.notify_db is not None:
        notification_wiring.require_notify(settings)
    store = wiring.open_store(settings)
    try:
        with _alone(home):
            _require_possible(plan)
            for line in interrupted_mailouts(store, socket.gethostname(), settings.lock_seconds):
                note(line)
            _run(settings, home, plan, store)
    finally:
        store.close()
    note("Stopped.")


def _run(settings: Settings, home: Path, plan: ProcessPlan, store: Store) -> None:
    """Until somebody ends it."""
    env = parts_environment(home, port=plan.prefect_port, own_server=plan.own_server)
    for folder in (home / "tmp").glob("worker-*"):
        clear_after_prefect(folder)
    supervisor = Supervisor(home / "logs", env, note)
    with stopping() as stop:
        try:
            _start(supervisor, plan, stop, home, notify=settings.notify_db is not None)
            if not stop.is_set():
                show_running(home, supervisor.env["PREFECT_API_URL"])
                with suppress(OSError):  # nobody reads stdout, or its disk is full: what runs is worth more
                    _show(settings, supervisor, plan)
            threading.Thread(target=_tidy_up, args=(supervisor.env, stop, plan), daemon=True).start()
            while not stop.wait(SUPERVISE_SECONDS):
                supervisor.look_after()
            note("\nStopping: messages that are being sent are finished first.")
        finally:
            _stop(supervisor, store, plan)


def _tidy_up(env: Mapping[str, str], stop: threading.Event, plan: ProcessPlan) -> None:
    """A worker that was killed has taken runs with it: they would be waited for, and never begin or end."""
    while not stop.wait(TIDY_UP_SECONDS):
        drop_leftovers(env, time.time())
        if not plan.own_server:
            continue
        try:
            given_back, _ = put_runs_right(env)
            if given_back:
                note(f"{given_back} runs that a worker had taken and not begun are given to the next one.")
        except MailoutError:
            continue  # its server may just be starting again: at the next look


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One a home: a second one would share the first one's database of Prefect, and stop its senders when it
    ends. The lock goes with the process, however that ends."""
    with (home / UP_LOCK).open("a+") as file:
        if not _locked(file):
            time.sleep(
                SUPERVISE_SECONDS
            )  # a run of an earlier one may just be looking whether it is still up
            if not _locked(file):
                raise UsageError(
                    f"mailout is up already, with {near(home)} as its home.",
                    remedy="End that one first, or give this one a MAILOUT_HOME of its own.",
                )
        show_running(home, "")  # what an earlier one wrote
        yield


def _is_a_stranger(package: Path) -> bool:
    """Prefect imports flows from the folder in which its worker was started before it looks elsewhere."""
    there = (package / "__init__.py").exists() or package.with_suffix(".py").exists()
    return there and package.resolve() != PROJECT / package


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _require_possible(plan: ProcessPlan) -> None:
    if strangers := [name for name in OWN_PACKAGES if _is_a_stranger(Path(name))]:
        raise UsageError(
            f"Python packages here have the name of mailout's and are not: {', '.join(strangers)}.",
            remedy="Prefect would import them. Start mailout in another folder, with its .env there.",
        )
    if plan.only_workers and plan.own_server:
        raise SettingsError(
            "PREFECT_API_URL: is missing.", remedy="--only-workers needs the server that it works for."
        )
    if not plan.only_workers:
        require_free("--host, --port", plan.host, plan.port)
    if plan.own_server:
        require_free("--prefect-port", "127.0.0.1", plan.prefect_port)


# ── starting ──


def _start(
    supervisor: Supervisor, plan: ProcessPlan, stop: threading.Event, home: Path, *, notify: bool
) -> None:
    """The gateway at once, since people wait for it; then the server, to which all the others speak."""
    python = [sys.executable, "-m"]
    url = supervisor.env["PREFECT_API_URL"].rstrip("/")
    if not plan.only_workers:
        gateway = ["cli", "gateway", "--host", plan.host, "--port", str(plan.port)]
        supervisor.start("gateway", [*python, *gateway])
    if plan.own_server:
        note(f"{starting(home)}.")
        build_database(supervisor.env, supervisor.logs / "prefect.log")
        command = ["prefect", "server", "start", "--port", str(plan.prefect_port)]
        supervisor.start("prefect", [*python, *command], health=f"{url}/health")
    if not plan.own_server and not answers(f"{url}/health"):
        note(f"Waiting for Prefect's server at {url}, which does not answer yet.")
    _wait(supervisor, stop, f"{url} does not answer", lambda: answers(f"{url}/health"))
    if not plan.only_workers and not stop.is_set():
        deploy(supervisor.env, supervisor.logs / "deploy.log")
    if plan.own_server and not stop.is_set():
        clear_stale_runs(supervisor.env)
    for number in range(1, plan.workers + 1):
        if not stop.is_set():
            name = f"{socket.gethostname()}-{number}"
            options = ["--pool", POOL, "--type", "process", "--name", name]
            command = ["cli.processes.worker", "worker", "start", *options]
            part, temporary = f"worker-{number}", home / "tmp" / f"worker-{number}"
            supervisor.start(part, [*python, *command], ends_first=True, temporary=temporary)
    if notify and not plan.only_workers and not stop.is_set():
        supervisor.start("notifications", [*python, "cli", "notify", "--prefect"], ends_first=True)
    if not plan.only_workers:
        _wait(supervisor, stop, "The gateway does not answer", lambda: answers(f"{plan.gateway}/health"))


def _wait(supervisor: Supervisor, stop: threading.Event, otherwise: str, ready: Callable[[], bool]) -> None:
    until = time.monotonic() + START_SECONDS
    while not ready():
        if time.monotonic() > until:
            raise MailoutError(f"{otherwise}.", remedy=f"Its log is in {supervisor.logs}.")
        supervisor.look_after()
        if stop.wait(SUPERVISE_SECONDS):
            return


def _show(settings: Settings, supervisor: Supervisor, plan: ProcessPlan) -> None:
    prefect = supervisor.env["PREFECT_API_URL"].removesuffix("/api")
    folder = near(settings.mailout_home / "outbox")
    mail = "Amazon SES" if settings.mailout_transport == "ses" else folder
    say("mailout is up.", style="bold")
    if not plan.only_workers:
        closed = "" if settings.has_dashboard else "   closed: set ADMIN_PASSWORD"
        say(f"  dashboard {plan.gateway}/{closed}")
    say(f"  Prefect   {prefect}   runs and schedules; start a flow by hand there")
    if plan.own_server:
        say(f"            {_password(supervisor.env)}")
    if not plan.only_workers:
        say(f"  gateway   {plan.gateway}   /send-mailout, /webhooks/notion, /ses-events, /unsubscribe")
    say(f"  workers   {plan.workers}, each flow run in a process of its own")
    say(f"  mail      goes to {mail}")
    if settings.notify_db is not None and not plan.only_workers:
        say(f"  notify    {near(settings.notify_db)}, as they come")
    say(f"  logs      {near(supervisor.logs)}")
    say("Ctrl-C ends it all.")
    sys.stdout.flush()


def _password(env: Mapping[str, str]) -> str:
    """How to open Prefect's pages. Not the string itself: what is said here may end in a log."""
    home = Path(env["MAILOUT_HOME"])
    if env[OF_SERVER] == auth_string(home):
        return f"its pages ask for a password: the line in {near(home / AUTH_FILE)}"
    return f"its pages ask for a password: what {OF_SERVER} or {OF_CLIENT} says"


# ── stopping ──


def _stop(supervisor: Supervisor, store: Store, plan: ProcessPlan) -> None:
    """Senders through the store, for a worker that is ended gives its flow no time; then workers, then the
    server, which must hear how the runs ended; those that no worker has begun are told to it for them."""
    try:
        _stop_senders(store)
    except MailoutError as error:
        note(str(error))  # what ended `up` is worth more
    finally:
        workers = [part for part in supervisor.parts if part.ends_first]
        supervisor.stop(workers, STOP_SECONDS)
        if plan.own_server and workers and answers(f"{supervisor.env['PREFECT_API_URL']}/health"):
            try:
                clear_stale_runs(supervisor.env)
            except MailoutError as error:
                note(f"{error} The next start puts it right.")
        supervisor.stop(list(supervisor.parts), STOP_SECONDS)


def _stop_senders(store: Store) -> None:
    """Those of this machine: others may share the store, and even the mailout."""
    until = time.monotonic() + SENDERS_SECONDS
    while time.monotonic() < until and store.stop_machine(socket.gethostname()):
        time.sleep(SUPERVISE_SECONDS)
