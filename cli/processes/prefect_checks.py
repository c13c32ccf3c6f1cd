"""What `doctor` asks of Prefect: would a mailout that is asked for be sent, and the queue looked after?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx
import yaml

from cli.processes.prefect_api import client, environment, found
from cli.processes.shipped import Server, Shipped
from deployments import PREFECT_YAML, UNRESPONSIVE_RUNS
from mailout.insight.doctor.checks import Check

DEPLOY = "Run: python -m cli.deploy (`mailout up` does)."
RESUME = "Resume them on Prefect's pages."
SWITCH_ON = "Switch them on on Prefect's pages, or restore ours: python -m cli.deploy --reset"
KEEP_OR_RESET = "It stays so. To restore ours: python -m cli.deploy --reset"

Rows = Mapping[str, Mapping[str, Any]]


def prefect_checks(env: Mapping[str, str] | None = None, home: Path | None = None) -> Iterator[Check]:
    env = environment(home) if env is None else env
    url = env.get("PREFECT_API_URL", "").rstrip("/")
    if not url:
        yield Check("server", "ok", "none is set: `mailout send` starts its own, so does `mailout up`")
        return
    file = yaml.safe_load(PREFECT_YAML.read_text(encoding="utf-8"))
    with client(env) as api:
        server = Server.read(api)
        yield _server(api, url)
        yield from _deployments(file["deployments"], server.deployments)
        yield from _automations(file["deployments"], server.automations)
        if changed := list(Shipped.read(api).differences(server)):
            yield Check("changed", "warn", f"on Prefect's pages: {'; '.join(changed)}", KEEP_OR_RESET)
        yield from _work_pool(api, file["definitions"]["here"]["name"])


def _server(api: httpx.Client, url: str) -> Check:
    """A server of another version than the workers' is known to misunderstand them. Cloud tells none."""
    try:
        answer = api.get("admin/version")
        version = str(answer.raise_for_status().json())
    except (httpx.HTTPError, ValueError):
        return Check("server", "ok", f"{url} answers")
    ours = metadata.version("prefect")
    if version == ours:
        return Check("server", "ok", f"{url} answers, version {version}")
    remedy = f"Bring both to {ours}: pip install prefect=={ours} where the server runs."
    return Check("server", "warn", f"{url} has version {version}, and {ours} is installed here", remedy)


def _deployments(wanted: list[dict[str, Any]], there: Rows) -> Iterator[Check]:
    names = [one["name"] for one in wanted]
    missing = [name for name in names if name not in there]
    paused = [name for name in names if there.get(name, {}).get("paused")]
    unscheduled = [
        one["name"]
        for one in wanted
        if _is_scheduled(one) and one["name"] in there and not _is_scheduled(there[one["name"]])
    ]
    homeless = [
        one["name"]
        for one in wanted
        if one["name"] in there and there[one["name"]].get("work_pool_name") is None
    ]
    if homeless:
        message = f"in no work pool, so they never run: {', '.join(homeless)}"
        yield Check("deployments", "fail", message, DEPLOY)
    if missing:
        yield Check("deployments", "warn", f"not deployed: {', '.join(missing)}", DEPLOY)
    if paused:
        yield Check("deployments", "warn", f"paused: {', '.join(paused)}", RESUME)
    if asleep := [name for name in unscheduled if name not in paused]:
        yield Check("schedules", "warn", f"switched off: {', '.join(asleep)}", RESUME)
    if not (missing or paused or asleep or homeless):
        yield Check("deployments", "ok", f"all {len(wanted)} are there")


def _is_scheduled(deployment: Mapping[str, Any]) -> bool:
    """A schedule that is not said to be off is on."""
    return any(one.get("active", True) for one in deployment.get("schedules") or ())


def _automations(wanted: list[dict[str, Any]], there: Rows) -> Iterator[Check]:
    triggers = [trigger["name"] for one in wanted for trigger in one.get("triggers", [])]
    off = [name for name in triggers if not there.get(name, {}).get("enabled")]
    if off:
        message = f"missing or switched off: {', '.join(off)}; what they start waits for its schedule"
        yield Check("triggers", "warn", message, SWITCH_ON if there else DEPLOY)
    else:
        yield Check("triggers", "ok", f"all {len(triggers)} are on")
    marks_the_dead = yaml.safe_load(UNRESPONSIVE_RUNS.read_text(encoding="utf-8"))["name"]
    if there.get(marks_the_dead, {}).get("enabled"):
        yield Check("dead runs", "ok", "a run that died with its worker is marked")
    else:
        message = (
            "a run that died with its worker stays `Running` on the pages: its automation is missing or off"
        )
        yield Check("dead runs", "warn", message, DEPLOY)


def _work_pool(api: httpx.Client, pool: str) -> Iterator[Check]:
    there = next((one for one in found(api, "work_pools") if one["name"] == pool), None)
    if there is None:
        yield Check("work pool", "fail", f"there is no pool {pool}: no flow will run", DEPLOY)
        return
    queues = found(api, f"work_pools/{pool}/queues")
    queue = next((one for one in queues if one["id"] == there.get("default_queue_id")), {})
    closed = [*_closed(pool, there), *_closed(f"the queue of {pool}", queue)]
    yield from closed
    if not closed:
        yield Check("work pool", "ok", f"{pool} is open")
    online = [one for one in found(api, f"work_pools/{pool}/workers") if one.get("status") == "ONLINE"]
    if online:
        yield Check("workers", "ok", f"{len(online)} in the pool {pool}")
    else:
        remedy = f"Start one: prefect worker start --pool {pool} (or `mailout up`)."
        yield Check("workers", "fail", f"nobody works in the pool {pool}: no flow will run", remedy)


def _closed(what: str, row: Mapping[str, Any]) -> Iterator[Check]:
    """A pool or a queue from which no worker gets anything."""
    if row.get("is_paused"):
        yield Check(
            "work pool", "fail", f"{what} is paused: no flow will run", "Resume it on Prefect's pages."
        )
    elif row.get("concurrency_limit") == 0:
        remedy = "Remove or raise the limit on Prefect's pages."
        yield Check("work pool", "fail", f"{what} has the concurrency limit 0: no flow will run", remedy)
