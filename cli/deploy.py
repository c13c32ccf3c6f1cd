"""Brings a Prefect server up to date: work pool, deployments, automation. Part of `mailout up`; or alone:

    python -m cli.deploy            what an operator has changed on Prefect's pages stays
    python -m cli.deploy --reset    everything of ours is as we ship it, and switched on

Not `prefect deploy`: it unpauses deployments, switches triggers on, and deletes schedules that people made.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import yaml

from cli.output import say, say_error
from cli.processes import prefect_api
from cli.processes.shipped import NO_DEPLOYMENT, Server, Shipped, schedule_of
from deployments import PREFECT_YAML, UNRESPONSIVE_RUNS
from mailout.base.errors import MailoutError, SettingsError
from mailout.base.private_files import keep_private
from mailout.base.settings import load_settings

POOL = "mailout"
DEPLOY_SECONDS = 300.0
RESET = "--reset"


def deploy(env: Mapping[str, str], log: Path | None = None, *, reset: bool = False) -> None:
    """In a process of its own, which imports Prefect and every flow. Ctrl-C does not reach it: it must not
    end with half of it done."""
    command = [sys.executable, "-m", "cli.deploy", *([RESET] if reset else [])]
    try:
        ended = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEPLOY_SECONDS,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = f"Nothing was deployed within {DEPLOY_SECONDS:.0f} seconds."
        raise MailoutError(message, remedy="See whether Prefect's server answers, then try again.") from error
    if log is not None:
        with suppress(OSError), log.open("a", encoding="utf-8") as file:
            file.write(ended.stdout)
    if ended.returncode:
        remedy = f"See {log}." if log else f"It said:\n{ended.stdout}"
        raise MailoutError("The flows could not be deployed.", remedy=remedy)


class Deploying:
    """One go: everything that `prefect.yaml` and the automation's file say, piece by piece."""

    def __init__(self, api: httpx.Client, *, reset: bool = False) -> None:
        self._api = api
        self._send = partial(prefect_api.ask, api)
        self._reset = reset
        self._server = Server.read(api)
        self._shipped = Shipped.read(api)
        self._written: dict[tuple[str, str], Any] = {}  # (deployment, piece) → what we ship
        self.stays: list[str] = []  # what an operator has changed

    def run(self) -> None:
        file = yaml.safe_load(PREFECT_YAML.read_text(encoding="utf-8"))
        self._add_pool()
        self._shipped.forget(lambda id: id != NO_DEPLOYMENT and self._server.by_id(id) is None)
        for one in file["deployments"]:
            self._deploy(one)
        # Last, so that whoever finds it finds everything.
        automation = yaml.safe_load(UNRESPONSIVE_RUNS.read_text(encoding="utf-8"))
        self._automate(NO_DEPLOYMENT, automation)
        if self._written:
            self._note()

    def _note(self) -> None:
        """What the server shows now of what was written; by that it is known again."""
        server = Server.read(self._api)
        for (id, piece), wanted in self._written.items():
            self._shipped.note(id, piece, wanted, server.shows(id, piece))
        self._shipped.write(self._api)

    def _add_pool(self) -> None:
        """Unless it is there. Its first worker writes what a process worker's runs may be told."""
        if POOL not in {one["name"] for one in prefect_api.found(self._api, "work_pools")}:
            self._send("POST", "work_pools/", {"name": POOL, "type": "process"})

    def _deploy(self, wanted: Mapping[str, Any]) -> None:
        code, settings, limit = _code(wanted), _settings(wanted), _limit(wanted)
        there = self._server.deployments.get(wanted["name"])
        if there is None:
            flow = self._send("POST", "flows/", {"name": wanted["name"]})
            new = {"name": wanted["name"], "flow_id": flow["id"], **code, **settings, **limit}
            there = self._send("POST", "deployments/", new)
            id = str(there["id"])
            self._written |= {(id, "code"): code, (id, "settings"): settings, (id, "limit"): limit}
        else:
            id = str(there["id"])
            address = f"deployments/{id}"
            # Nobody but us changes which code runs. Who deletes the pool takes it from every deployment.
            has_pool = there["work_pool_name"] is not None
            if self._reset or not has_pool or not self._shipped.is_current(id, "code", code):
                self._send("PATCH", address, code)
                self._written[id, "code"] = code
            self._ship(id, "settings", settings, lambda: self._send("PATCH", address, settings))
            self._ship(id, "limit", limit, lambda: self._send("PATCH", address, limit))
            if self._reset and there["paused"]:
                self._send("POST", f"{address}/resume_deployment")
        for schedule in wanted.get("schedules", ()):
            self._schedule(there, schedule)
        for trigger in wanted.get("triggers", ()):
            self._automate(id, _automation(trigger, id))

    def _schedule(self, deployment: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        address, slug = f"deployments/{deployment['id']}/schedules", wanted["slug"]
        schedule = {"interval": wanted["interval"], "anchor_date": wanted["anchor_date"], "timezone": "UTC"}
        is_on = {"active": wanted.get("active", True)}
        there = schedule_of(deployment, slug)

        def write() -> None:
            if there is None:
                self._send("POST", address, [{"schedule": schedule, "slug": slug, **is_on}])
            else:
                changed = {"schedule": schedule, **(is_on if self._reset else {})}
                self._send("PATCH", f"{address}/{there['id']}", changed)

        self._ship(str(deployment["id"]), f"schedule {slug}", schedule, write)

    def _automate(self, deployment: str, wanted: Mapping[str, Any]) -> None:
        there = self._server.automations.get(wanted["name"])

        def write() -> None:
            if there is None:
                self._send("POST", "automations/", wanted)
            else:
                is_on = wanted["enabled"] if self._reset else there["enabled"]
                changed = {name: value for name, value in wanted.items() if name != "owner_resource"}
                self._send("PUT", f"automations/{there['id']}", {**changed, "enabled": is_on})

        self._ship(deployment, f"trigger {wanted['name']}", wanted, write)

    def _ship(self, id: str, piece: str, wanted: Any, write: Callable[[], object]) -> None:
        """Unless it is as we ship it, or an operator has changed or deleted it."""
        shown, shipped = self._server.shows(id, piece), self._shipped
        if not self._reset:
            if not shipped.is_untouched(id, piece, shown):
                self.stays.append(piece)
                return
            if shipped.is_current(id, piece, wanted):
                return
        write()
        self._written[id, piece] = wanted


def _code(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What runs, and what its form asks for."""
    from prefect.flows import load_flow_from_entrypoint
    from prefect.utilities.callables import parameter_schema

    schema = parameter_schema(load_flow_from_entrypoint(wanted["entrypoint"]))
    return {
        "entrypoint": wanted["entrypoint"],
        "path": None,
        "pull_steps": [],
        "work_pool_name": wanted["work_pool"]["name"],
        "enforce_parameter_schema": True,
        "parameter_openapi_schema": schema.model_dump_for_openapi(),
    }


def _settings(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "description": wanted["description"],
        "tags": wanted["tags"],
        "parameters": wanted.get("parameters", {}),
        "job_variables": wanted["work_pool"].get("job_variables", {}),
    }


def _limit(wanted: Mapping[str, Any]) -> dict[str, Any]:
    limit = dict(wanted.get("concurrency_limit", {}))
    return {"concurrency_limit": limit.pop("limit", None), "concurrency_options": limit or None}


AUTOMATION_FIELDS = ("name", "description", "parameters")


def _automation(trigger: Mapping[str, Any], deployment: str) -> dict[str, Any]:
    """As `prefect deploy` makes it of a deployment's trigger."""
    action = {
        "type": "run-deployment",
        "source": "selected",
        "deployment_id": deployment,
        "parameters": trigger.get("parameters"),
    }
    criteria = {name: value for name, value in trigger.items() if name not in AUTOMATION_FIELDS}
    return {
        "name": trigger["name"],
        "description": trigger["description"],
        "enabled": True,
        "trigger": {"threshold": 1, "within": 0, **criteria},
        "actions": [action],
        "owner_resource": f"prefect.deployment.{deployment}",
    }


def _main(arguments: list[str]) -> Iterator[str]:
    if set(arguments) - {RESET}:
        raise SettingsError(f"Unknown: {' '.join(arguments)}.", remedy=f"The only option is {RESET}.")
    env = prefect_api.environment(load_settings().mailout_home)
    if not env.get("PREFECT_API_URL"):
        remedy = "Set it to the server's, http://…:4200/api."
        raise SettingsError("PREFECT_API_URL: is missing.", remedy=remedy)
    with prefect_api.client(env) as api:
        deploying = Deploying(api, reset=RESET in arguments)
        deploying.run()
    for piece in deploying.stays:
        yield f"Changed on Prefect's pages, and stays: {piece}. For ours: python -m cli.deploy {RESET}"
    yield "Work pool, deployments and automation are up to date."


if __name__ == "__main__":
    keep_private()
    try:
        for line in _main(sys.argv[1:]):
            say(line)
    except MailoutError as error:
        say_error(str(error), error.code, error.exit_code)
        sys.exit(error.exit_code)
