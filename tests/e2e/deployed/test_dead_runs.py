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
from tests.prefect_server import PATIENCE, ROOT, PrefectServer, patiently, running, wait_for

AUTOMATION = yaml.safe_load((ROOT / "deployments" / "unresponsive-runs.yaml").read_text(encoding="utf-8"))
EVERY, WITHIN = 2.0, 40.0
"""Hearts beat faster than usual here: a busy machine may be late by many beats and nobody is buried alive."""
SLEEPER = """\
import time
from prefect import flow
from flows import runs

runs.FIRST_HEARTBEAT_SECONDS, runs.HEARTBEAT_SECONDS = {first}, {every}

@flow(name="sleeper", flow_run_name="{name}")
@runs.whole_process()
def sleeper():
    time.sleep({seconds})

sleeper()
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
def sleeper(
    server: PrefectServer, folder: Path, name: str, seconds: float = 600, first: float = 0.0
) -> Iterator[Any]:
    """A flow run that lasts, in a process of its own, as a worker would have started it."""
    script = folder / f"{name}.py"
    text = SLEEPER.format(name=name, seconds=seconds, first=first, every=EVERY)
    script.write_text(text, encoding="utf-8")
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
    with fires_within(deployed, WITHIN), sleeper(deployed, tmp_path, "living"):
        with (
            sleeper(deployed, tmp_path, "short", seconds=0, first=3600) as short,
            sleeper(deployed, tmp_path, "longer", seconds=10) as longer,
        ):
            assert short.wait(PATIENCE) == longer.wait(PATIENCE) == 0
        wait_for(lambda: heartbeats(deployed, "living"), "the first heart beats")
        with sleeper(deployed, tmp_path, "dying") as dying:
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
