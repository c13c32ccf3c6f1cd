"""`mailout up` after a crash or a long night: the queue runs within a minute, whatever Prefect remembers."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import httpx
import pytest

from cli.processes import stale_runs
from tests.prefect_server import PrefectServer, patiently


def test_slots_of_runs_that_died_are_free_again(deployed: PrefectServer) -> None:
    """Held for ever, they would have every run of the queue cancelled: nothing is sent any more."""
    limits = deployed.find("v2/concurrency_limits")
    assert limits
    for one in limits:
        address, full = f"{deployed.url}/v2/concurrency_limits/{one['id']}", {"active_slots": one["limit"]}
        taken = partial(httpx.patch, address, json=full, trust_env=False, timeout=60)
        patiently(taken, "Prefect takes it").raise_for_status()
    stale_runs.clear_stale_runs(deployed.env)
    assert {one["active_slots"] for one in deployed.find("v2/concurrency_limits")} == {0}


@pytest.fixture
def late() -> list[dict[str, Any]]:
    """A night of missed schedules, more than one answer holds, and one that somebody asked for."""
    missed = [{"id": f"missed-{number}", "auto_scheduled": True} for number in range(250)]
    return [*missed, {"id": "asked for", "auto_scheduled": False}]


def test_missed_runs_of_schedules_are_dropped_and_what_was_asked_for_stays(
    late: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE":
            late[:] = [one for one in late if not request.url.path.endswith(f"/{one['id']}")]
            return httpx.Response(204)
        if request.url.path.endswith("/flow_runs/filter"):
            return httpx.Response(200, json=late[: json.loads(request.content)["limit"]])
        return httpx.Response(200, json=[])

    def client(env: object) -> httpx.Client:
        return httpx.Client(base_url="http://prefect/api/", transport=httpx.MockTransport(answer))

    monkeypatch.setattr(stale_runs, "client", client)
    stale_runs.clear_stale_runs({})
    assert [one["id"] for one in late] == ["asked for"]
