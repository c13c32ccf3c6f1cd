"""`mailout doctor` on Prefect: what would keep a letter from being sent is said, with the remedy."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from cli.processes.prefect_api import environment, headers
from cli.processes.prefect_checks import prefect_checks
from mailout.insight.doctor.checks import checked
from tests.ports import free_port
from tests.prefect_server import PrefectServer


def levels(url: str | None, **env: str) -> dict[str, str]:
    named = env if url is None else {"PREFECT_API_URL": url, **env}
    return {check.name: check.level for check in checked("server", lambda: prefect_checks(named))}


def test_a_server_with_everything_deployed_is_well(deployed: PrefectServer) -> None:
    found = levels(deployed.url)
    del found["workers"]  # another test's worker may have been there a moment ago
    assert found == dict.fromkeys(["server", "deployments", "triggers", "dead runs", "work pool"], "ok")


def test_without_a_server_nothing_is_wrong() -> None:
    assert levels(None) == {"server": "ok"}


def test_a_server_that_is_away_is_named() -> None:
    (check,) = checked(
        "server", lambda: prefect_checks({"PREFECT_API_URL": f"http://127.0.0.1:{free_port()}"})
    )
    assert check.level == "fail"
    assert "PREFECT_API_URL" in check.remedy


def test_a_server_that_dotenv_names_is_meant_by_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefect's own commands read `.env`; a gateway that did not would tell no server what it is asked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    url = f"http://127.0.0.1:{free_port()}/api"
    Path(".env").write_text(f"PREFECT_API_URL={url}\nPREFECT_API_KEY=pnu_1\nOTHER=1\n")
    assert environment()["PREFECT_API_URL"] == url
    assert "OTHER" not in environment()
    assert headers(environment()) == {"Authorization": "Bearer pnu_1"}
    (check,) = checked("server", prefect_checks)
    assert (check.level, url in check.message) == ("fail", True)
    monkeypatch.setenv("PREFECT_API_URL", "http://elsewhere:4200/api")
    assert environment()["PREFECT_API_URL"] == "http://elsewhere:4200/api"


@contextmanager
def api(answers: dict[str, Any], status: int = 200) -> Iterator[str]:
    """Prefect's API with these answers, by path."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path, [])).encode())

        def do_GET(self) -> None:
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path)).encode())

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_an_empty_server_lacks_everything() -> None:
    with api({}) as url:
        assert levels(url) == {
            "server": "ok",
            "deployments": "warn",
            "triggers": "warn",
            "dead runs": "warn",
            "work pool": "fail",
        }


POOL = {"name": "mailout", "is_paused": False, "concurrency_limit": None, "default_queue_id": "q"}
QUEUE = {"id": "q", "name": "default", "is_paused": False, "concurrency_limit": 3}
ONLINE = {"name": "w", "status": "ONLINE"}


def answers_of(server: PrefectServer) -> dict[str, Any]:
    """What a server that is well says, for a test to change."""
    return {
        "/deployments/filter": server.find("deployments"),
        "/automations/filter": server.find("automations"),
        "/work_pools/filter": [POOL],
        "/work_pools/mailout/queues/filter": [QUEUE | {"id": "other", "is_paused": True}, QUEUE],
        "/work_pools/mailout/workers/filter": [ONLINE],
    }


def test_a_paused_queue_and_automations_that_are_off_are_seen(deployed: PrefectServer) -> None:
    answers = answers_of(deployed)
    for one in answers["/deployments/filter"]:
        one["paused"] = one["name"] == "run_queue"
    for one in answers["/automations/filter"]:
        one["enabled"] = False
    with api(answers) as url:
        found = levels(url)
    told = dict.fromkeys(["deployments", "triggers", "dead runs"], "warn")
    assert found == {"server": "ok", **told, "work pool": "ok", "workers": "ok"}


def test_a_schedule_that_somebody_switched_off_is_seen(deployed: PrefectServer) -> None:
    """Prefect's pages do it with one click, and `run_queue` never runs again."""
    answers = answers_of(deployed)
    for one in answers["/deployments/filter"]:
        for schedule in one["schedules"]:
            schedule["active"] = one["name"] != "run_queue"
    with api(answers) as url:
        (told,) = [one for one in prefect_checks({"PREFECT_API_URL": url}) if one.level != "ok"]
    assert (told.name, told.level, told.message) == ("schedules", "warn", "switched off: run_queue")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"/work_pools/filter": [POOL | {"is_paused": True}]}, "work pool"),
        ({"/work_pools/filter": [POOL | {"name": "other"}]}, "work pool"),
        ({"/work_pools/filter": [POOL | {"concurrency_limit": 0}]}, "work pool"),
        ({"/work_pools/mailout/queues/filter": [QUEUE | {"is_paused": True}]}, "work pool"),
        ({"/work_pools/mailout/queues/filter": [QUEUE | {"concurrency_limit": 0}]}, "work pool"),
        ({"/work_pools/mailout/workers/filter": [ONLINE | {"status": "OFFLINE"}]}, "workers"),
    ],
)
def test_a_pool_in_which_nobody_works_is_a_failure(
    deployed: PrefectServer, changes: dict[str, Any], name: str
) -> None:
    with api(answers_of(deployed) | changes) as url:
        assert [which for which, level in levels(url).items() if level == "fail"] == [name]


@pytest.mark.parametrize(("version", "level"), [(metadata.version("prefect"), "ok"), ("3.0.0", "warn")])
def test_a_server_of_another_version_is_pointed_at(deployed: PrefectServer, version: str, level: str) -> None:
    with api(answers_of(deployed) | {"/admin/version": version}) as url:
        assert levels(url)["server"] == level


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_server_that_refuses_is_named(status: int) -> None:
    with api({}, status) as url:
        assert levels(url) == {"server": "fail"}
