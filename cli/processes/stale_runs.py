"""What a Prefect server that was down still believes, put right before the first worker starts.

Runs of schedules that are long past would all begin at once, to find nothing to do; and slots of runs that
ended without a word stay taken, so that every new run is cancelled ("concurrency limit reached").
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import httpx

from cli.processes.prefect_api import ask, client, found
from mailout.base.errors import MailoutError

MOST = 200  # in one answer of Prefect's


def clear_stale_runs(env: Mapping[str, str]) -> None:
    """For a server of our own, whose workers all ended before it: nobody can be running."""
    try:
        with client(env) as api:
            while _drop_late_runs(api) == MOST:
                continue
            for limit in found(api, "v2/concurrency_limits"):
                if limit["active_slots"] and limit["name"].startswith("deployment:"):
                    freed = ask(api, "PATCH", f"v2/concurrency_limits/{limit['id']}", {"active_slots": 0})
                    freed.raise_for_status()
    except httpx.HTTPError as error:
        raise MailoutError(f"Prefect's server could not be made ready: {error}.") from error


def _drop_late_runs(api: httpx.Client) -> int:
    """Those that a schedule made; the next one is a minute away. What somebody asked for stays. How many."""
    late = {
        "state": {"type": {"any_": ["SCHEDULED"]}},
        "expected_start_time": {"before_": datetime.now(UTC).isoformat()},
    }
    answer = ask(api, "POST", "flow_runs/filter", {"flow_runs": late, "limit": MOST}).raise_for_status()
    runs = [one["id"] for one in answer.json() if one["auto_scheduled"]]
    return sum(ask(api, "DELETE", f"flow_runs/{id}").is_success for id in runs)
