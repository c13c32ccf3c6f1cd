"""`prefect.yaml`, held against the flows and against a real server: what does not fit would fail at night."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prefect.client.schemas.objects import StateType
from prefect.events.schemas.automations import AutomationCore
from prefect.flows import Flow, load_flow_from_entrypoint

from cli.deploy import Deploying, deploy
from cli.processes.prefect_api import ask, client
from cli.processes.prefect_checks import prefect_checks
from flows.runs import ENDED, HEARTBEAT
from gateway.looks import looks
from mailout.base.settings import Settings
from tests.prefect_server import ROOT, PrefectServer

PREFECT = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))
DEPLOYMENTS: list[dict[str, Any]] = PREFECT["deployments"]
NAMES = [one["name"] for one in DEPLOYMENTS]
AUTOMATION = ROOT / "deployments" / "unresponsive-runs.yaml"
KEPT = ("automations", "variables")


def flow_of(deployment: Mapping[str, Any]) -> Flow[..., Any]:
    return load_flow_from_entrypoint(deployment["entrypoint"])


def flows_there_are() -> set[str]:
    """Every flow in `flows/`, by its entrypoint."""
    found = set()
    for path in (ROOT / "flows").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [getattr(getattr(one, "func", one), "id", "") for one in node.decorator_list]
                if {"flow", "mailout_flow"} & set(names):
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


def test_a_run_that_ended_is_not_taken_for_a_dead_one_and_no_other_event_is_written_down() -> None:
    """On every event of every flow run, Prefect's SQLite answers "database is locked" under load."""
    from prefect.server.events.schemas.automations import EventTrigger

    automation = AutomationCore.model_validate(yaml.safe_load(AUTOMATION.read_text(encoding="utf-8")))
    trigger = EventTrigger.model_validate(automation.trigger.model_dump())
    assert trigger.expects(ENDED)
    assert trigger.expects(HEARTBEAT)
    assert trigger.starts_after(HEARTBEAT)
    assert not trigger.starts_after(ENDED)
    assert not any(trigger.expects(f"prefect.flow-run.{name}") for name in ("heartbeat", "Completed"))
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


def test_every_schedule_has_an_anchor() -> None:
    """Without one it begins anew at every start: whoever restarts often enough never reconciles."""
    schedules = [schedule for one in DEPLOYMENTS for schedule in one.get("schedules", [])]
    assert all(one["anchor_date"].endswith("+00:00") for one in schedules)


class Operator:
    """What a person does on Prefect's pages, and sees there."""

    def __init__(self, server: PrefectServer, api: httpx.Client) -> None:
        self._server = server
        self._api = api

    def does(self, method: str, path: str, body: Any = None) -> None:
        ask(self._api, method, path, body)

    def deployment(self, name: str) -> dict[str, Any]:
        return next(one for one in self._server.find("deployments") if one["name"] == name)

    def schedules(self, name: str) -> str:
        return f"deployments/{self.deployment(name)['id']}/schedules"

    def automation(self, name: str) -> dict[str, Any] | None:
        return next((one for one in self._server.find("automations") if one["name"] == name), None)

    def changes_everything(self) -> None:
        self.does("POST", f"deployments/{self.deployment('run_queue')['id']}/pause_deployment")
        due, ses = self.automation("Something is due"), self.automation("SES has reported something")
        assert due is not None
        assert ses is not None
        self.does("PATCH", f"automations/{due['id']}", {"enabled": False})
        self.does("DELETE", f"automations/{ses['id']}")
        (hourly,) = self.deployment("ingest_ses_events")["schedules"]
        slower = {"schedule": hourly["schedule"] | {"interval": 7200.0}}
        self.does("PATCH", f"{self.schedules('ingest_ses_events')}/{hourly['id']}", slower)
        own = [{"schedule": {"cron": "30 4 1 * *"}, "active": True}]
        self.does("POST", self.schedules("retention"), own)
        self.does("PATCH", f"deployments/{self.deployment('reconcile')['id']}", {"tags": ["mine"]})

    def sees(self) -> dict[str, Any]:
        due = self.automation("Something is due")
        return {
            "paused": self.deployment("run_queue")["paused"],
            "trigger": due and due["enabled"],
            "deleted": self.automation("SES has reported something") is None,
            "interval": self.deployment("ingest_ses_events")["schedules"][0]["schedule"]["interval"],
            "own schedules": len(self.deployment("retention")["schedules"]),
            "tags": self.deployment("reconcile")["tags"],
        }


def test_what_an_operator_has_changed_stays_until_it_is_taken_back(deployed: PrefectServer) -> None:
    """`mailout up` deploys at every start; and two triggers for one event would be two runs."""
    names = sorted(one["name"] for one in deployed.find("automations"))
    with client(deployed.env) as api:
        operator = Operator(deployed, api)
        ours = operator.sees()
        try:
            operator.changes_everything()
            theirs = operator.sees()
            assert [name for name in ours if ours[name] == theirs[name]] == []
            deploy(deployed.env)
            assert operator.sees() == theirs
            (told,) = [one for one in prefect_checks(deployed.env) if one.name == "changed"]
            assert set(told.message.removeprefix("on Prefect's pages: ").split("; ")) == {
                "ingest_ses_events: schedule every-hour",
                "ingest_ses_events: trigger SES has reported something (deleted)",
                "reconcile: settings",
            }
            assert "--reset" in told.remedy
        finally:
            deploy(deployed.env, reset=True)
        assert operator.sees() == ours | {"own schedules": 1}, "a person's own is not ours to take"
        (own,) = operator.deployment("retention")["schedules"]
        operator.does("DELETE", f"{operator.schedules('retention')}/{own['id']}")
    assert [one for one in prefect_checks(deployed.env) if one.name == "changed"] == []
    assert sorted(one["name"] for one in deployed.find("automations")) == names
    assert sorted(one["name"] for one in deployed.find("deployments")) == sorted(NAMES)


def test_what_nobody_has_changed_is_brought_up_to_date(
    deployed: PrefectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An automation that waits for other signs of life would mark living runs. Switched off, it stays so."""
    wanted = yaml.safe_load(AUTOMATION.read_text(encoding="utf-8"))
    trigger = wanted["trigger"] | {"expect": ["prefect.flow-run.*"]}
    earlier = tmp_path / "earlier.yaml"
    earlier.write_text(yaml.safe_dump(wanted | {"trigger": trigger}), encoding="utf-8")
    with client(deployed.env) as api:
        operator = Operator(deployed, api)
        monkeypatch.setattr("cli.deploy.UNRESPONSIVE_RUNS", earlier)
        Deploying(api).run()
        there = operator.automation(wanted["name"])
        assert there is not None
        assert there["trigger"]["expect"] == ["prefect.flow-run.*"]
        operator.does("PATCH", f"automations/{there['id']}", {"enabled": False})
        monkeypatch.undo()
        Deploying(api).run()
        there = operator.automation(wanted["name"])
        assert there is not None
        assert set(there["trigger"]["expect"]) == {HEARTBEAT, ENDED}
        assert not there["enabled"]
        operator.does("PATCH", f"automations/{there['id']}", {"enabled": True})


def test_a_work_pool_that_was_deleted_gets_its_deployments_back(deployed: PrefectServer) -> None:
    """Prefect takes the pool away from each of them: all would look well, and nothing would ever be sent."""
    with client(deployed.env) as api:
        ask(api, "DELETE", "work_pools/mailout")
        ask(api, "POST", "work_pools/", {"name": "mailout", "type": "process"})
        failed = [one for one in prefect_checks(deployed.env) if one.name == "deployments"]
        assert [(one.level, "cli.deploy" in one.remedy) for one in failed] == [("fail", True)]
        Deploying(api).run()
    there = {(one["work_pool_name"], one["work_queue_name"]) for one in deployed.find("deployments")}
    assert there == {("mailout", "default")}
    assert [one.level for one in prefect_checks(deployed.env) if one.name == "deployments"] == ["ok"]


def test_deploying_again_writes_nothing(deployed: PrefectServer) -> None:
    """Each write would delete and make anew the runs that are planned."""
    with client(deployed.env) as api:
        Deploying(api).run()
        before = [{one["id"]: one["updated"] for one in deployed.find(what)} for what in KEPT]
        Deploying(api).run()
        assert [{one["id"]: one["updated"] for one in deployed.find(what)} for what in KEPT] == before
