"""Prefect's API, spoken to over HTTP: where it is, who we are, and whether it has what it needs for us."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import yaml

from deployments import PREFECT_YAML, UNRESPONSIVE_RUNS
from mailout.doctor import Check
from mailout.errors import MailoutError

DEPLOY = "Run: prefect --no-prompt deploy --all (or `mailout up`, which does)."


def headers(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """From the variables that Prefect itself reads."""
    key, auth = env.get("PREFECT_API_KEY"), env.get("PREFECT_API_AUTH_STRING")
    if key:
        return {"Authorization": f"Bearer {key}"}
    if auth:
        return {"Authorization": f"Basic {b64encode(auth.encode()).decode()}"}
    return {}


def client(env: Mapping[str, str] = os.environ) -> httpx.Client:
    return httpx.Client(base_url=f"{env['PREFECT_API_URL'].rstrip('/')}/", headers=headers(env), timeout=15)


def found(api: httpx.Client, what: str) -> list[dict[str, Any]]:
    """What the server has of it; MailoutError if it does not say."""
    try:
        answer = api.post(f"{what}/filter", json={})
        answer.raise_for_status()
        rows: list[dict[str, Any]] = answer.json()
    except httpx.HTTPStatusError as error:
        code = error.response.status_code
        if code in (401, 403):
            remedy = "Set PREFECT_API_KEY (Prefect Cloud) or PREFECT_API_AUTH_STRING."
            raise MailoutError(f"{api.base_url} does not let us in ({code}).", remedy=remedy) from error
        raise MailoutError(f"{api.base_url} answers {code} when asked for {what}.") from error
    except (httpx.HTTPError, ValueError) as error:
        remedy = "Start it, or correct PREFECT_API_URL."
        raise MailoutError(f"{api.base_url} does not answer ({error}).", remedy=remedy) from error
    return rows


def prefect_checks(env: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """Would a mailout that is asked for be sent, and the queue looked after?"""
    url = env.get("PREFECT_API_URL", "").rstrip("/")
    if not url:
        yield Check("Prefect", "ok", "none is named: `mailout send` brings its own, `mailout up` starts one")
        return
    with client(env) as api:
        there = {one["name"]: one for one in found(api, "deployments")}
        yield Check("Prefect", "ok", f"{url} answers")
        yield from _deployments(there)
        yield from _automations({one["name"]: one for one in found(api, "automations")})
        yield from _workers(api)


def _deployments(there: Mapping[str, Mapping[str, Any]]) -> Iterator[Check]:
    wanted = yaml.safe_load(PREFECT_YAML.read_text(encoding="utf-8"))["deployments"]
    missing = [one["name"] for one in wanted if one["name"] not in there]
    asleep = [one["name"] for one in wanted if there.get(one["name"], {}).get("paused")]
    if missing:
        yield Check("deployments", "warn", f"not deployed: {', '.join(missing)}", DEPLOY)
    if asleep:
        yield Check("deployments", "warn", f"paused: {', '.join(asleep)}", "Resume them on Prefect's pages.")
    if not missing and not asleep:
        yield Check("deployments", "ok", f"all {len(wanted)} are there")


def _automations(there: Mapping[str, Mapping[str, Any]]) -> Iterator[Check]:
    wanted = yaml.safe_load(PREFECT_YAML.read_text(encoding="utf-8"))["deployments"]
    triggers = [trigger["name"] for one in wanted for trigger in one.get("triggers", [])]
    off = [name for name in triggers if not there.get(name, {}).get("enabled")]
    if off:
        message = f"missing or switched off: {', '.join(off)}; what they start waits for the next minute"
        yield Check("triggers", "warn", message, DEPLOY)
    else:
        yield Check("triggers", "ok", f"all {len(triggers)} are on")
    zombies = yaml.safe_load(UNRESPONSIVE_RUNS.read_text(encoding="utf-8"))["name"]
    if zombies not in there:
        remedy = "Run: prefect automation create --from-file deployments/unresponsive-runs.yaml"
        yield Check(
            "dead runs", "warn", "a run that died with its worker stays `Running` on the pages", remedy
        )


def _workers(api: httpx.Client) -> Iterator[Check]:
    pool = yaml.safe_load(PREFECT_YAML.read_text(encoding="utf-8"))["definitions"]["here"]["name"]
    online = [one for one in found(api, f"work_pools/{pool}/workers") if one.get("status") == "ONLINE"]
    if online:
        yield Check("workers", "ok", f"{len(online)} in the pool {pool}")
    else:
        remedy = f"Start one: prefect worker start --pool {pool} (or `mailout up`)."
        yield Check("workers", "fail", f"nobody works in the pool {pool}: no flow will run", remedy)
