"""What a Prefect server that was down still believes, put right before the first worker starts.

Runs of schedules that are long past would all begin at once, to find nothing to do; runs that a worker had
taken and not begun would stay `Submitting` for ever; and slots of runs that ended without a word stay taken,
so that every new run is cancelled ("concurrency limit reached").
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from cli.processes.prefect_api import ask, client, found, request

MOST_RUNS = 200  # in one answer of Prefect's
BEGIN_SECONDS = 120.0
"""In which a run begins that a worker has taken, also on a busy machine."""
OVER: Mapping[str, Mapping[str, str]] = {
    "PENDING": {"type": "SCHEDULED", "message": "The worker that had taken it was stopped."},
    "RUNNING": {
        "type": "CRASHED",
        "message": "mailout was stopped while it ran. The queue goes on with its mailout.",
    },
    "CANCELLING": {"type": "CANCELLED", "message": "mailout was stopped."},
}
"""What becomes of a run that nobody looks after any more, by its state."""
KILLED = {"type": "CRASHED", "message": "Its process was killed. The queue goes on with its mailout."}
ENDS_WITHIN_SECONDS = 60.0
"""What a run has said last may arrive after it."""


def clear_stale_runs(env: Mapping[str, str]) -> None:
    """For a server of our own while no worker runs: before the first starts, after the last has ended."""
    with client(env) as api:
        while _drop_late_runs(api) == MOST_RUNS:
            continue
        for state, now in OVER.items():
            for run in _unattended(api, state):
                ask(api, "POST", f"flow_runs/{run['id']}/set_state", {"state": now, "force": True})
        for limit in found(api, "v2/concurrency_limits"):
            if limit["active_slots"] and limit["name"].startswith("deployment:"):
                ask(api, "PATCH", f"v2/concurrency_limits/{limit['id']}", {"active_slots": 0})


def _drop_late_runs(api: httpx.Client) -> int:
    """Those that a schedule made, begun by nobody; the next one is a minute away. What somebody asked for
    stays. How many."""
    late = {
        "state": {"type": {"any_": ["SCHEDULED", "PENDING"]}},
        "expected_start_time": {"before_": datetime.now(UTC).isoformat()},
    }
    runs = ask(api, "POST", "flow_runs/filter", {"flow_runs": late, "limit": MOST_RUNS})
    ours = [one["id"] for one in runs if one["auto_scheduled"]]
    return sum(request(api, "DELETE", f"flow_runs/{id}").is_success for id in ours)


def put_runs_right(env: Mapping[str, str]) -> tuple[int, int]:
    """While workers run: how many runs were given back, and how many were ended.

    Given back are those that a worker took and did not begin in all this time: it may have died. Any worker
    takes them again. Two of one run at once do no harm: the store is the brake.
    Ended are letters' runs within a run that is over: they were killed together. That their hearts have
    stopped says so, too, unless Prefect's server could not read a beat (its database is locked now and then).
    """
    long_ago = datetime.now(UTC) - timedelta(seconds=BEGIN_SECONDS)
    with client(env) as api:
        runs = _unattended(api, "PENDING", "RUNNING")
        taken = [run for run in runs if run["state_type"] == "PENDING" and run.get("deployment_id")]
        given_back = [one for one in taken if datetime.fromisoformat(one["state"]["timestamp"]) < long_ago]
        within = [run for run in runs if run["state_type"] == "RUNNING" and run.get("parent_task_run_id")]
        orphans = [run for run in within if _is_over(api, run["parent_task_run_id"])]
        for state, those in ((OVER["PENDING"], given_back), (KILLED, orphans)):
            for run in those:
                ask(api, "POST", f"flow_runs/{run['id']}/set_state", {"state": state, "force": True})
    return len(given_back), len(orphans)


def _is_over(api: httpx.Client, task_run: str) -> bool:
    """The run that this one was begun in; also if it was deleted meanwhile."""
    around = {"task_runs": {"id": {"any_": [task_run]}}, "limit": 1}
    ended = [one["end_time"] for one in ask(api, "POST", "flow_runs/filter", around)]
    long_ago = datetime.now(UTC) - timedelta(seconds=ENDS_WITHIN_SECONDS)
    return all(one is not None and datetime.fromisoformat(one) < long_ago for one in ended)


def _unattended(api: httpx.Client, *states: str) -> list[dict[str, Any]]:
    """Runs that a worker started, and those below them. A command's own run is the command's."""
    body = {"flow_runs": {"state": {"type": {"any_": states}}}, "limit": MOST_RUNS}
    rows = ask(api, "POST", "flow_runs/filter", body)
    return [one for one in rows if one.get("deployment_id") or one.get("parent_task_run_id")]
