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


def test_runs_that_nobody_looks_after_do_not_stay_on_the_pages_for_ever(deployed: PrefectServer) -> None:
    """One that a worker had taken and not begun is begun after all: somebody has asked for it."""
    flow = next(one["id"] for one in deployed.find("deployments") if one["name"] == "pause_everything")
    ids = {}
    for state in ("PENDING", "RUNNING", "CANCELLING"):
        asked = {"state": {"type": "SCHEDULED"}, "idempotency_key": f"stale {state}"}
        ids[state] = deployed.ask(f"deployments/{flow}/create_flow_run", asked)["id"]
        change = {"state": {"type": state, "name": "Submitting"}, "force": True}
        deployed.ask(f"flow_runs/{ids[state]}/set_state", change)
    stale_runs.clear_stale_runs(deployed.env)
    now = {one["id"]: one["state_type"] for one in deployed.find("flow_runs")}
    assert [now[id] for id in ids.values()] == ["SCHEDULED", "CRASHED", "CANCELLED"]
    for id in ids.values():
        address = f"{deployed.url}/flow_runs/{id}"
        patiently(partial(httpx.delete, address, trust_env=False, timeout=60), "it is deleted")


def test_a_run_that_a_killed_worker_took_with_it_begins_after_all(
    deployed: PrefectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the gateway counts on it for ten minutes, in which nothing is sent."""
    flow = next(one["id"] for one in deployed.find("deployments") if one["name"] == "pause_everything")
    id = deployed.ask(f"deployments/{flow}/create_flow_run", {"state": {"type": "SCHEDULED"}})["id"]
    taken = {"state": {"type": "PENDING", "name": "Submitting"}, "force": True}
    deployed.ask(f"flow_runs/{id}/set_state", taken)
    assert stale_runs.put_runs_right(deployed.env) == (0, 0), "its worker may be about to begin it"
    monkeypatch.setattr(stale_runs, "BEGIN_SECONDS", 0.0)
    assert stale_runs.put_runs_right(deployed.env) == (1, 0)
    assert {one["id"]: one["state_type"] for one in deployed.find("flow_runs")}[id] == "SCHEDULED"
    address = f"{deployed.url}/flow_runs/{id}"
    patiently(partial(httpx.delete, address, trust_env=False, timeout=60), "it is deleted")


def test_a_letters_run_ends_with_the_run_that_it_was_begun_in(
    deployed: PrefectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed together, only the outer one is reported by its worker; the letter's would run for ever."""
    flow = deployed.find("flows")[0]["id"]
    running, over = {"type": "RUNNING"}, {"type": "CRASHED"}
    around = deployed.ask("flow_runs/", {"flow_id": flow, "state": running})["id"]
    task = {"flow_run_id": around, "task_key": "letter", "dynamic_key": "1"}
    within = {"flow_id": flow, "state": running, "parent_task_run_id": deployed.ask("task_runs/", task)["id"]}
    letter = deployed.ask("flow_runs/", within)["id"]
    monkeypatch.setattr(stale_runs, "ENDS_WITHIN_SECONDS", 0.0)
    assert stale_runs.put_runs_right(deployed.env) == (0, 0), "it is running"
    deployed.ask(f"flow_runs/{around}/set_state", {"state": over, "force": True})
    assert stale_runs.put_runs_right(deployed.env) == (0, 1)
    assert {one["id"]: one["state_type"] for one in deployed.find("flow_runs")}[letter] == "CRASHED"
    for id in (letter, around):
        address = f"{deployed.url}/flow_runs/{id}"
        patiently(partial(httpx.delete, address, trust_env=False, timeout=60), "it is deleted")


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
