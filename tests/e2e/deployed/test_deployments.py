"""`prefect.yaml`, held against the flows and against a real server: what does not fit would fail at night."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.client.schemas.objects import StateType
from prefect.events.schemas.automations import AutomationCore
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.server.events.schemas.automations import EventTrigger

from cli.deploy import automate, deploy
from cli.processes.prefect_api import ask, client
from flows.heartbeats import HEARTBEAT
from gateway.looks import looks
from mailout.base.settings import Settings
from tests.prefect_server import ROOT, PrefectServer

PREFECT = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))
DEPLOYMENTS: list[dict[str, Any]] = PREFECT["deployments"]
NAMES = [one["name"] for one in DEPLOYMENTS]
AUTOMATION = ROOT / "deployments" / "unresponsive-runs.yaml"


def flow_of(deployment: Mapping[str, Any]) -> Flow[..., Any]:
    return load_flow_from_entrypoint(deployment["entrypoint"])


def flows_there_are() -> set[str]:
    """Every flow in `flows/`, by its entrypoint."""
    found = set()
    for path in (ROOT / "flows").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [getattr(getattr(one, "func", one), "id", "") for one in node.decorator_list]
                if "flow" in names:
                    found.add(f"flows.{path.stem}.{node.name}")
    return found


def test_every_flow_can_be_started_from_prefects_pages() -> None:
    below_the_queue = {"flows.send_queued.send_queued"}
    assert {one["entrypoint"] for one in DEPLOYMENTS} == flows_there_are() - below_the_queue
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_what_is_handed_to_a_flow_fits_its_signature(deployment: Mapping[str, Any]) -> None:
    """A parameter that the flow does not know fails the run when it is started, not when it is deployed."""
    flow = flow_of(deployment)
    signature = inspect.signature(flow.fn)
    assert flow.name == deployment["name"]
    required = {name for name, one in signature.parameters.items() if one.default is one.empty}
    signature.bind_partial(**(deployment.get("parameters") or {}))
    for trigger in deployment.get("triggers", []):
        signature.bind(**(deployment.get("parameters") or {}) | trigger.get("parameters", {}))
    if deployment.get("schedules"):
        assert required <= set(deployment.get("parameters") or {})


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_whoever_starts_it_by_hand_reads_what_each_parameter_means(deployment: Mapping[str, Any]) -> None:
    flow = flow_of(deployment)
    described = flow.parameters.properties
    assert all(one.get("description") for one in described.values()), described
    assert deployment["description"]


@pytest.mark.parametrize(
    "name", ["Completed", "Failed", "Crashed", "Deferred", "Paused", "Drift", "Cancelled"]
)
def test_a_run_that_ended_is_not_taken_for_a_dead_one(name: str) -> None:
    """Its end is an event by its own name, `Deferred` for one; unexpected, it would be marked as crashed."""
    automation = AutomationCore.model_validate(yaml.safe_load(AUTOMATION.read_text(encoding="utf-8")))
    trigger = EventTrigger.model_validate(automation.trigger.model_dump())
    assert trigger.expects(f"prefect.flow-run.{name}")
    assert trigger.starts_after(HEARTBEAT)
    assert not trigger.starts_after("prefect.flow-run.heartbeat")  # that of a short run comes after its end
    assert not trigger.starts_after(f"prefect.flow-run.{name}")
    assert [action.state for action in automation.actions] == [StateType.CRASHED]  # type: ignore[union-attr]


def test_idle_schedules_do_not_bury_the_letters_in_the_run_list() -> None:
    """They are the net; what is to be done at once starts by an event."""
    schedules = [schedule for one in DEPLOYMENTS for schedule in one.get("schedules", [])]
    intervals = [one["interval"] for one in schedules if "interval" in one and one.get("active", True)]
    assert sum(86_400 / interval for interval in intervals) <= 300


def test_every_event_of_the_watch_has_its_trigger() -> None:
    expected = {
        event for one in DEPLOYMENTS for trigger in one.get("triggers", []) for event in trigger["expect"]
    }
    assert {look.event for look in looks(Settings(), Any, None, None)} <= expected  # type: ignore[arg-type]


def test_everything_is_deployed_with_its_schedule_and_its_trigger(deployed: PrefectServer) -> None:
    there = {one["name"]: one for one in deployed.find("deployments")}
    assert set(there) == set(NAMES)
    for one in DEPLOYMENTS:
        schedules = [(it["schedule"]["interval"], it["active"]) for it in there[one["name"]]["schedules"]]
        assert schedules == [(it["interval"], it.get("active", True)) for it in one.get("schedules", [])]
        assert there[one["name"]]["work_pool_name"] == "mailout"
        limit = there[one["name"]]["global_concurrency_limit"]
        assert (limit and limit["limit"]) == one.get("concurrency_limit", {}).get("limit")
    automations = {one["name"]: one for one in deployed.find("automations")}
    wanted = {
        trigger["name"]: (trigger["expect"], there[one["name"]]["id"])
        for one in DEPLOYMENTS
        for trigger in one.get("triggers", [])
    }
    for name, (expect, deployment) in wanted.items():
        automation = automations.pop(name)
        assert automation["enabled"]
        assert automation["trigger"]["expect"] == expect
        assert automation["actions"][0]["deployment_id"] == deployment
    assert [one["trigger"]["posture"] for one in automations.values()] == ["Proactive"]


def test_deploying_again_changes_nothing(deployed: PrefectServer) -> None:
    """After every upgrade: two triggers for one event would be two runs."""
    before = {one["name"] for one in deployed.find("automations")}

    def archive() -> dict[str, Any]:
        (found,) = [one for one in deployed.find("deployments") if one["name"] == "archive"]
        return found

    schedules = f"deployments/{archive()['id']}/schedules"
    with client(deployed.env) as api:
        ask(api, "POST", schedules, [{"schedule": {"cron": "30 4 1 * *"}, "active": True}]).raise_for_status()
        deploy(deployed.env)
        (own,) = archive()["schedules"]  # a person's
        assert own["active"]
        ask(api, "DELETE", f"{schedules}/{own['id']}").raise_for_status()
    assert sorted(one["name"] for one in deployed.find("automations")) == sorted(before)
    assert sorted(one["name"] for one in deployed.find("deployments")) == sorted(NAMES)
    assert Path(deployed.home).exists()


def test_an_automation_of_an_earlier_version_is_brought_up_to_date(deployed: PrefectServer) -> None:
    """One that waits for other signs of life would mark living runs. Switched off, it stays so."""
    wanted = yaml.safe_load(AUTOMATION.read_text(encoding="utf-8"))
    earlier = {"after": ["prefect.flow-run.heartbeat"], "expect": ["prefect.flow-run.*"]}

    def there() -> dict[str, Any]:
        (found,) = [one for one in deployed.find("automations") if one["name"] == wanted["name"]]
        return found

    with client(deployed.env) as api:
        for enabled in (False, True):
            before = wanted | {"trigger": wanted["trigger"] | earlier, "enabled": enabled}
            ask(api, "PUT", f"automations/{there()['id']}", before).raise_for_status()
            assert there()["trigger"]["after"] == earlier["after"]
            automate(api)
            assert there()["trigger"]["after"] == [HEARTBEAT]
            assert there()["enabled"] is enabled
