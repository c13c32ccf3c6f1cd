"""Brings a Prefect server up to date: work pool, deployments, automation. Part of `mailout up`; or alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import yaml

from cli.output import say, say_error
from cli.processes import prefect_api
from deployments import PREFECT_YAML, UNRESPONSIVE_RUNS
from mailout.base.errors import MailoutError, SettingsError
from mailout.base.private_files import keep_private
from mailout.base.settings import load_settings

POOL = "mailout"
PATIENCE = 300.0
"""Seconds for one command of Prefect's: a dozen deployments take one minute on a slow machine."""


def deploy(env: Mapping[str, str], log: Path | None = None) -> None:
    """As deployments/README.md does by hand. What is there already is brought up to date, not doubled."""
    if not env.get("PREFECT_API_URL"):
        raise SettingsError(
            "PREFECT_API_URL: is missing.", remedy="Set it to the server's, http://…:4200/api."
        )
    with prefect_api.client(env) as api:
        add_pool(api)
        automate(api)
    _prefect(env, log, "--no-prompt", "deploy", "--all", "--prefect-file", str(PREFECT_YAML))


def add_pool(api: httpx.Client) -> None:
    """The work pool, unless it is there. Its first worker writes what a process worker's runs may be told."""
    if POOL not in {one["name"] for one in prefect_api.found(api, "work_pools")}:
        _must(lambda: prefect_api.ask(api, "POST", "work_pools/", {"name": POOL, "type": "process"}), "pool")


def automate(api: httpx.Client) -> None:
    """The automation for dead runs. Whether it is switched on is for people to say."""
    wanted = yaml.safe_load(UNRESPONSIVE_RUNS.read_text(encoding="utf-8"))
    there = {one["name"]: one for one in prefect_api.found(api, "automations")}.get(wanted["name"])
    if there is None:
        _must(lambda: prefect_api.ask(api, "POST", "automations/", wanted), "automation")
    else:
        body = wanted | {"enabled": there["enabled"]}
        _must(lambda: prefect_api.ask(api, "PUT", f"automations/{there['id']}", body), "automation")


def _must(send: Callable[[], httpx.Response], what: str) -> None:
    try:
        send().raise_for_status()
    except httpx.HTTPError as error:
        remedy = "See whether Prefect's server answers, then try again."
        first = str(error).splitlines()[0]
        raise MailoutError(f"Prefect did not take the {what}: {first}.", remedy=remedy) from error


def _prefect(env: Mapping[str, str], log: Path | None, *arguments: str) -> None:
    """In a session of its own: Ctrl-C must not leave half a deployment."""
    command = f"`prefect {' '.join(arguments)}`"
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "prefect", *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        remedy = "See whether Prefect's server answers, then try again."
        raise MailoutError(f"{command} did not end within {PATIENCE:.0f} seconds.", remedy=remedy) from error
    if log is not None:
        with log.open("a", encoding="utf-8") as file:
            file.write(ended.stdout)
    if ended.returncode:
        said = f"See {log}." if log else f"It said:\n{ended.stdout}"
        raise MailoutError(f"{command} failed.", remedy=said)


if __name__ == "__main__":
    keep_private()
    try:
        deploy(prefect_api.environment(load_settings().mailout_home))
    except MailoutError as error:
        say_error(str(error), error.code, error.exit_code)
        sys.exit(error.exit_code)
    say("Work pool, deployments and automation are up to date.")
