"""`mailout doctor` on Prefect: what would keep a letter from being sent is said, with the remedy."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cli.prefect_checks import prefect_checks
from mailout.doctor import checked
from tests.prefect_server import PrefectServer, free_port


def levels(url: str | None, **env: str) -> dict[str, str]:
    named = env if url is None else {"PREFECT_API_URL": url, **env}
    return {check.name: check.level for check in checked("Prefect", lambda: prefect_checks(named))}


def test_a_server_with_everything_deployed_is_well(deployed: PrefectServer) -> None:
    found = levels(deployed.url)
    del found["workers"]  # another test's worker may have been there a moment ago
    assert found == {"Prefect": "ok", "deployments": "ok", "triggers": "ok"}


def test_without_a_server_nothing_is_wrong() -> None:
    assert levels(None) == {"Prefect": "ok"}


def test_a_server_that_is_away_is_named() -> None:
    (check,) = checked(
        "Prefect", lambda: prefect_checks({"PREFECT_API_URL": f"http://127.0.0.1:{free_port()}"})
    )
    assert check.level == "fail"
    assert "PREFECT_API_URL" in check.remedy


@contextmanager
def api(answers: dict[str, Any], status: int = 200) -> Iterator[str]:
    """Prefect's API with these answers, by path."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path, [])).encode())

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
            "Prefect": "ok",
            "deployments": "warn",
            "triggers": "warn",
            "dead runs": "warn",
            "workers": "fail",
        }


def test_a_paused_queue_and_a_trigger_that_is_off_are_seen(deployed: PrefectServer) -> None:
    deployments = [one | {"paused": one["name"] == "run_queue"} for one in deployed.find("deployments")]
    automations = [one | {"enabled": False} for one in deployed.find("automations")]
    workers = [{"name": "w", "status": "ONLINE"}]
    answers = {
        "/deployments/filter": deployments,
        "/automations/filter": automations,
        "/work_pools/mailout/workers/filter": workers,
    }
    with api(answers) as url:
        found = levels(url)
    assert found == {"Prefect": "ok", "deployments": "warn", "triggers": "warn", "workers": "ok"}


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_server_that_refuses_is_named(status: int) -> None:
    with api({}, status) as url:
        assert levels(url) == {"Prefect": "fail"}
