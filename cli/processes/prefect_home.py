"""Prefect's home under `MAILOUT_HOME`, its environment, and the server that a command brings along.

Everything is in the environment before `prefect` is imported for the first time: it reads its settings once.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import httpx

from cli.output import note
from cli.prefect_auth import AUTH_FILE, auth_string, for_own_server, for_server_at
from cli.processes.listening import answers
from cli.processes.prefect_api import LETS_IN, UP_LOCK, client, environment
from cli.processes.supervisor import Supervisor
from flows.orphans import LOCK
from mailout.base.errors import MailoutError, SettingsError

INSTEAD = "To send without Prefect: --direct."
SERVER = "prefect.server.api.server:create_app"
START_SECONDS, STOP_SECONDS = 300.0, 20.0
LEFTOVER_SECONDS = 900.0
"""Of files that nobody reads: one may just be written."""

PROFILE_MARK = "# Read by every prefect command with this PREFECT_HOME: nothing reports home"
PROFILE = """\
{ours}, and no server
# that is started here answers without the string in {file}.
active = "mailout"

[profiles.mailout]
PREFECT_SERVER_ANALYTICS_ENABLED = "false"
PREFECT_SERVER_API_AUTH_STRING = {auth}
"""
PROJECT = Path(__file__).resolve().parents[2]
SELDOM = {
    "PREFECT_SERVER_SERVICES_LATE_RUNS_LOOP_SECONDS": "30",
    "PREFECT_SERVER_SERVICES_FOREMAN_LOOP_SECONDS": "30",
    "PREFECT_SERVER_SERVICES_PAUSE_EXPIRATIONS_LOOP_SECONDS": "60",
    "PREFECT_SERVER_SERVICES_CLEANUP_RECONCILER_LOOP_SECONDS": "60",
    "PREFECT_SERVER_SERVICES_SCHEDULER_RECENT_DEPLOYMENTS_LOOP_SECONDS": "60",
    "PREFECT_SERVER_EVENTS_PROACTIVE_GRANULARITY": "PT30S",
}
"""What the server looks for every five or fifteen seconds, and nobody here waits for: runs that are late or
paused, workers that are gone, schedules changed on its pages, runs whose heart has stopped for minutes."""


def server_in_use(home: Path) -> str | None:
    """The API of PREFECT_API_URL's server, or of a running `mailout up`; from now on this process's, too."""
    url = environment(home).get("PREFECT_API_URL") or None
    if url is not None:
        os.environ["PREFECT_API_URL"] = url
    return url


def prepare(home: Path) -> Path:
    """Set Prefect up before it is imported; what the environment says already stands."""
    chosen = Path(os.environ.setdefault("PREFECT_HOME", str(home / "prefect")))
    chosen.mkdir(parents=True, exist_ok=True)
    if not environment().get("PREFECT_API_URL"):
        _write_profile(chosen / "profiles.toml", home)
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_LOGGING_EXTRA_LOGGERS", "mailout")  # our own log, in the run's
    # The server keeps the run's log; what the terminal shows of it is for our own handler to say.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    return chosen


def parts_environment(home: Path, *, port: int, own_server: bool) -> dict[str, str]:
    """Of all parts of `mailout up`. What somebody has set stays. `port`: of Prefect's server."""
    prepare(home)
    for name in ("NO_PROXY", "no_proxy"):  # the parts speak to each other, whatever the way out is
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1", "::1"]))
    paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
    ours = {
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_UI_API_URL": "/api",
        # Schedules make some hundred runs a day: without this their history would grow for ever.
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": str(14 * 86_400),  # not Prefect's 90 days
        # In its memory, a holder of a slot would be forgotten at a restart, and the slot stay taken for ever.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        # What somebody asks for waits two seconds on average. Asked twice as often, an idle server works half
        # as much again: it writes down every question.
        "PREFECT_WORKER_QUERY_SECONDS": "4",
    } | SELDOM
    known = {name: value for name, value in environment(home).items() if value}
    if own_server:
        known |= for_own_server(home, known)
        # Of the pages that it serves itself; a page from elsewhere must not even read an answer.
        origins = [f"http://{host}:{port}" for host in ("127.0.0.1", "localhost")]
        ours["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] = ",".join(origins)
    known[LOCK] = str(home / UP_LOCK)
    named = {"MAILOUT_HOME": str(home), "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    logged = {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO"}  # into the parts' log files
    return ours | known | named | logged


def _write_profile(path: Path, home: Path) -> None:
    """For `prefect server start` by hand. What somebody has changed stays as it is."""
    if path.exists() and not path.read_text(encoding="utf-8").startswith(PROFILE_MARK):
        return
    wanted = PROFILE.format(ours=PROFILE_MARK, file=home / AUTH_FILE, auth=json.dumps(auth_string(home)))
    if not path.exists() or path.read_text(encoding="utf-8") != wanted:
        beside = path.with_name(f".profiles-{os.getpid()}.toml")  # somebody may be reading it
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(wanted)
        beside.replace(path)


def isolate() -> None:
    """Forget what the environment wants of Prefect: the demo is the same on every machine."""
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        del os.environ[name]


def drop_leftovers(env: Mapping[str, str], now: float) -> None:
    """What Prefect keeps in files for ever and nobody reads: events that its automations failed to read, and
    the exception of each run that failed. Only in our own folder: elsewhere, results may be somebody's."""
    prefect_home = Path(env["PREFECT_HOME"])
    if prefect_home.parent != Path(env["MAILOUT_HOME"]):
        return
    for folder in ("dlq", "storage"):
        for file in (prefect_home / folder).glob("*"):
            with suppress(OSError):
                if file.is_file() and file.stat().st_mtime < now - LEFTOVER_SECONDS:
                    file.unlink()


def build_database(env: Mapping[str, str], log: Path) -> bool:
    """A new server's, in a process of its own. A server that builds it holds 30 MB more until it ends.

    Not for a database elsewhere, which is somebody's own. What fails here (False) fails again, with its
    reason in the log, when the server starts.
    """
    new = not (Path(env["PREFECT_HOME"]) / "prefect.db").exists()
    if not new or env.get("PREFECT_SERVER_DATABASE_CONNECTION_URL"):
        return True
    command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "-y"]
    with log.open("ab") as said:
        ended = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False
        )
    return ended.returncode == 0


def starting(home: Path) -> str:
    if not (home / "prefect" / "prefect.db").exists():
        return "Building Prefect's database, once: about 20 seconds"
    return "Starting Prefect, about 10 seconds"


def start_server(home: Path) -> None:
    """A Prefect server for this process, unless `PREFECT_API_URL` names one. It ends with this process.

    Not before: what the flow had to say is still on its way to the server when the flow is over.
    """
    from prefect.context import refresh_global_settings_context
    from prefect.settings import get_current_settings

    url, env = get_current_settings().api.url, environment()
    os.environ.update(for_server_at(url, home, env) if url else for_own_server(home, env))
    refresh_global_settings_context()
    if url:
        _require_answer(environment() | {"PREFECT_API_URL": url})
        return
    settings = get_current_settings().to_environment_variables(exclude_unset=True)
    os.environ["PREFECT_API_URL"] = _start_own(home, settings)
    refresh_global_settings_context()


def _start_own(home: Path, settings: Mapping[str, str]) -> str:
    """Its API. Prefect would start one by itself, but in our session: Ctrl-C in a terminal reaches every
    process of the session, and a flow that ends needs its server to say so."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    options = f"--host 127.0.0.1 --port {port} --log-level error --lifespan on"
    ours = {
        "PREFECT_SERVER_UI_ENABLED": "0",
        "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "0",  # only its pages use them
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": address,
        # As Prefect starts its own: of its services only those that a run needs.
        "PREFECT__SERVER_EPHEMERAL": "1",
        "PREFECT__SERVER_FINAL": "1",
    }
    supervisor = Supervisor(home / "logs", {**os.environ, **settings, **ours}, note)
    command = [sys.executable, "-m", "uvicorn", "--factory", SERVER, *options.split()]
    server = supervisor.start("prefect-embedded", command)
    atexit.register(supervisor.stop, [server], STOP_SECONDS)
    until = time.monotonic() + START_SECONDS
    while not answers(f"{address}/api/health", trust_env=False):
        if not server.runs or time.monotonic() > until:
            raise MailoutError("Prefect's server did not start.", remedy=f"See {server.log}. {INSTEAD}")
        time.sleep(0.1)
    return f"{address}/api"


def _require_answer(env: Mapping[str, str]) -> None:
    """Any answer but a refusal will do; Prefect itself would end in a hundred lines of traceback."""
    url = env["PREFECT_API_URL"]
    try:
        with client(env) as api:
            if api.get("admin/version").status_code == httpx.codes.UNAUTHORIZED:
                raise SettingsError(
                    f"The Prefect server at {url} does not let us in.", remedy=f"Set {LETS_IN}."
                )
    except httpx.HTTPError as error:
        raise SettingsError(
            f"PREFECT_API_URL: the Prefect server at {url} does not answer ({error}).",
            remedy=f"Start it, or unset PREFECT_API_URL. {INSTEAD}",
        ) from error
