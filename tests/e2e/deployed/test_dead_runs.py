"""The automation of `deployments/unresponsive-runs.yaml`, seen at work on a real server."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from flows.runs import ENDED, HEARTBEAT
from tests.prefect_server import ROOT, PrefectServer, patiently, running, wait_for

AUTOMATION = yaml.safe_load((ROOT / "deployments" / "unresponsive-runs.yaml").read_text(encoding="utf-8"))
EVERY, WITHIN = 2.0, 40.0
"""Hearts beat faster than usual here: a busy machine may be late by many beats and nobody is buried alive."""
SLEEPERS = """\
import time
from prefect import flow
from flows import runs

runs.HEARTBEAT_SECONDS = {every}

def sleep(name, seconds, first):
    runs.FIRST_HEARTBEAT_SECONDS = first

    @flow(name="sleeper", flow_run_name=name)
    @runs.whole_process()
    def sleeper():
        time.sleep(seconds)

    sleeper()

for one in {sleepers}:
    sleep(*one)
"""


@contextmanager
def fires_within(server: PrefectServer, seconds: float) -> Iterator[None]:
    """What was deployed, with this one number changed for a while."""
    (deployed,) = [one for one in server.find("automations") if one["name"] == AUTOMATION["name"]]
    core = {name: deployed[name] for name in ("name", "description", "enabled", "trigger", "actions")}
    shorter = core | {"trigger": deployed["trigger"] | {"within": seconds}}
    try:
        _put(server, deployed["id"], shorter)
        yield
    finally:
        _put(server, deployed["id"], core)


def _put(server: PrefectServer, id: str, automation: dict[str, Any]) -> None:
    url = f"{server.url}/automations/{id}"
    patiently(
        lambda: httpx.put(url, json=automation, trust_env=False, timeout=60), "Prefect takes it"
    ).raise_for_status()


@contextmanager
def sleeping(server: PrefectServer, folder: Path, *sleepers: tuple[str, float, float]) -> Iterator[Any]:
    """Flow runs one after the other, in a process of their own, as a worker would have started it. Of each
    its name, how long it lasts, and when its heart first beats."""
    name = sleepers[-1][0]
    script = folder / f"{name}.py"
    script.write_text(SLEEPERS.format(every=EVERY, sleepers=sleepers), encoding="utf-8")
    env = server.env | {"PREFECT__RUNTIME__DEPLOYMENT__ID": "some-worker-s"}
    command = [sys.executable, str(script)]
    with running(command, cwd=folder, env=env, log=folder / f"{name}.log") as process:
        yield process


def run_named(server: PrefectServer, name: str) -> dict[str, Any] | None:
    return next((run for run in server.find("flow_runs") if run["name"] == name), None)


def state_of(server: PrefectServer, name: str) -> str | None:
    run = run_named(server, name)
    return run["state_type"] if run else None


def heartbeats(server: PrefectServer, name: str, event: str = HEARTBEAT) -> int:
    run = run_named(server, name)
    if run is None:
        return 0
    asked = {
        "filter": {
            "event": {"name": [event]},
            "resource": {"id": [f"prefect.flow-run.{run['id']}"]},
        }
    }
    return len(server.ask("events/filter", asked)["events"])


def vain_attempts(server: PrefectServer, name: str) -> list[Any]:
    """What the automation tried with a run, and could not do: each is a warning in the server's log."""
    run = run_named(server, name)
    assert run is not None
    asked = {
        "filter": {
            "event": {"name": ["prefect.automation.action.failed"]},
            "any_resource": {"id": [f"prefect.flow-run.{run['id']}"]},
        }
    }
    events: list[Any] = server.ask("events/filter", asked)["events"]
    return events


def test_a_run_that_died_with_its_worker_is_shown_as_crashed_and_a_living_one_is_not(
    deployed: PrefectServer, tmp_path: Path
) -> None:
    """Otherwise it stays `Running` for ever; and nobody trusts pages that bury the living.

    Runs that have ended are left alone. Most of ours last less than a second, and send no heartbeat.
    """
    lasting = (("short", 0.0, 3600.0), ("longer", 10.0, 0.0), ("living", 600.0, 0.0))
    with fires_within(deployed, WITHIN), sleeping(deployed, tmp_path, *lasting):
        wait_for(lambda: heartbeats(deployed, "living"), "the first heart beats")
        with sleeping(deployed, tmp_path, ("dying", 600.0, 0.0)) as dying:
            wait_for(lambda: heartbeats(deployed, "dying"), "the second heart beats")
            os.kill(dying.pid, signal.SIGKILL)
            dying.wait()
        wait_for(lambda: state_of(deployed, "dying") == "CRASHED", "the dead run is found")
        # It began earlier: had its heart stopped, too, it would have been found first.
        assert state_of(deployed, "living") == "RUNNING"
        assert heartbeats(deployed, "living") >= 2
        # They ended before it began: their time was over first.
        assert [state_of(deployed, name) for name in ("short", "longer")] == ["COMPLETED"] * 2
        assert [heartbeats(deployed, "short", event) for event in (HEARTBEAT, ENDED)] == [0, 0]
        assert heartbeats(deployed, "longer", ENDED) == 1
        assert [vain_attempts(deployed, name) for name in ("short", "longer")] == [[], []]
    dead = run_named(deployed, "dying")
    assert dead is not None
    assert dead["state"]["message"] == AUTOMATION["actions"][0]["message"]
