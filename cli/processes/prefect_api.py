"""Prefect's API, spoken to over HTTP: where it is, and who we are."""

from __future__ import annotations

import os
import re
import time
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from cli.prefect_auth import AUTH_FILE, for_server_at
from cli.processes.listening import certificates
from flows.orphans import is_up
from mailout.base.dotenv_file import dotenv
from mailout.base.errors import MailoutError

UP_LOCK = "up.lock"
PREFECT_RETRY_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)
LETS_IN = (
    "PREFECT_API_KEY (Prefect Cloud), or PREFECT_API_AUTH_STRING to what its server asks for"
    f" (for `mailout up`: see {AUTH_FILE} in its MAILOUT_HOME)"
)


def environment(home: Path | None = None) -> dict[str, str]:
    """The environment, and what `.env` says of Prefect: its own commands read that file, so we do, too.

    With `home`, also where the server of a running `mailout up` is, and what lets us in to it.
    """
    in_file = {name: value for name, value in dotenv().items() if name.startswith("PREFECT_") and value}
    env = in_file | {name: value for name, value in os.environ.items() if value or name not in in_file}
    if home is None:
        return env
    url = env.get("PREFECT_API_URL") or _of_running_up(home)
    return env | {"PREFECT_API_URL": url} | for_server_at(url, home, env) if url else env


def show_running(home: Path, url: str) -> None:
    """In the file that `mailout up` holds a lock on: who finds it locked finds the server. Empty: not yet."""
    (home / UP_LOCK).write_text(url, encoding="utf-8")


def _of_running_up(home: Path) -> str:
    lock = home / UP_LOCK
    return lock.read_text(encoding="utf-8").strip() if lock.exists() and is_up(lock) else ""


def headers(env: Mapping[str, str]) -> dict[str, str]:
    """From the variables that Prefect itself reads, in its order."""
    key, auth = env.get("PREFECT_API_KEY"), env.get("PREFECT_API_AUTH_STRING")
    if auth:
        return {"Authorization": f"Basic {b64encode(auth.encode()).decode()}"}
    if key:
        return {"Authorization": f"Bearer {key}"}
    return {}


def run_address(env: Mapping[str, str], run: str) -> str | None:
    """Where a person sees a flow run; None: no server is known."""
    pages = (env.get("PREFECT_UI_URL") or _pages_of(env.get("PREFECT_API_URL", ""))).rstrip("/")
    return f"{pages}/runs/flow-run/{run}" if pages.startswith(("http://", "https://")) else None


def _pages_of(api: str) -> str:
    """A server has its pages beside its API; Prefect Cloud has them on another host, by other words."""
    cloud = re.fullmatch(r"https://api\.prefect\.cloud/api/accounts/([^/]+)/workspaces/([^/]+)/?", api)
    if cloud:
        return f"https://app.prefect.cloud/account/{cloud[1]}/workspace/{cloud[2]}"
    return api.rstrip("/").removesuffix("/api")


def client(env: Mapping[str, str]) -> httpx.Client:
    url = f"{env['PREFECT_API_URL'].rstrip('/')}/"
    return httpx.Client(base_url=url, headers=headers(env), timeout=60, verify=certificates())


def request(api: httpx.Client, method: str, path: str, body: Any = None) -> httpx.Response:
    """Its database may be SQLite: 503 means that somebody else is writing just now."""
    for wait in PREFECT_RETRY_SECONDS:
        answer = api.request(method, path, json=body)
        if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
            return answer
        time.sleep(wait)
    return api.request(method, path, json=body)


def ask(api: httpx.Client, method: str, path: str, body: Any = None) -> Any:
    """What the server answers; MailoutError if it refuses, or does not answer."""
    try:
        answer = request(api, method, path, body).raise_for_status()
        return answer.json() if answer.content else None
    except httpx.HTTPStatusError as error:
        code, said = error.response.status_code, error.response.text[:500]
        if code in (401, 403):
            remedy = f"Set {LETS_IN}."
            raise MailoutError(f"{api.base_url} does not let us in ({code}).", remedy=remedy) from error
        remedy = "See that PREFECT_API_URL ends with /api, and what the server's log says."
        raise MailoutError(f"{api.base_url} answers {code} to {path}: {said}", remedy=remedy) from error
    except (httpx.HTTPError, ValueError) as error:
        remedy = "Start it, or correct PREFECT_API_URL."
        raise MailoutError(f"{api.base_url} does not answer ({error}).", remedy=remedy) from error


def found(api: httpx.Client, what: str) -> list[dict[str, Any]]:
    """What the server has of it."""
    rows: list[dict[str, Any]] = ask(api, "POST", f"{what}/filter", {})
    return rows
