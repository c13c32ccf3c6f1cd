"""What `mailout up` runs where, and the environment of its parts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cli.prefect_auth import for_own_server
from cli.processes import prefect_home
from cli.processes.prefect_api import UP_LOCK, environment
from flows.orphans import LOCK

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


def parts_environment(home: Path, plan: ProcessPlan) -> dict[str, str]:
    """The environment of all parts. What somebody has set stays."""
    prefect_home.prepare(home)
    for name in ("NO_PROXY", "no_proxy"):  # the parts speak to each other, whatever the way out is
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1", "::1"]))
    paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
    ours = {
        "PREFECT_API_URL": f"http://127.0.0.1:{plan.prefect_port}/api",
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
    if plan.own_server:
        known |= for_own_server(home, known)
        # Of the pages that it serves itself; a page from elsewhere must not even read an answer.
        origins = [f"http://{host}:{plan.prefect_port}" for host in ("127.0.0.1", "localhost")]
        ours["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] = ",".join(origins)
    known[LOCK] = str(home / UP_LOCK)
    named = {"MAILOUT_HOME": str(home), "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    logged = {"PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO"}  # into the parts' log files
    return ours | known | named | logged
