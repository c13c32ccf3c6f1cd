"""The string that lets somebody in to Prefect's server: who has it, and who is never told."""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest

from cli.prefect_auth import AUTH_FILE, auth_string, for_own_server
from cli.processes.prefect_api import environment, headers
from cli.processes.prefect_home import prepare
from tests.e2e.conftest import Commands
from tests.e2e.processes import needs_proc, processes_of
from tests.ports import free_port
from tests.prefect_server import DATABASE, patiently, prepare_database, running, wait_for

SET = "PREFECT_API_AUTH_STRING"


def test_it_is_made_once_and_for_this_user_alone(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        (made,) = set(pool.map(auth_string, [tmp_path] * 8))
    assert len(made) > 40
    assert (tmp_path / AUTH_FILE).stat().st_mode & 0o777 == 0o600
    assert auth_string(tmp_path) == made


def test_what_somebody_has_set_stands_for_both_sides(tmp_path: Path) -> None:
    for name in (SET, "PREFECT_SERVER_API_AUTH_STRING"):
        assert set(for_own_server(tmp_path, {name: "a:b"}).values()) == {"a:b"}
    assert not (tmp_path / AUTH_FILE).exists()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:4200/api", True),
        ("http://localhost:4200/api", True),
        ("http://prefect.internal:4200/api", False),
        ("https://127.0.0.1.example.org/api", False),
        ("https://api.prefect.cloud/api/accounts/1/workspaces/2", False),
    ],
)
def test_only_a_server_of_this_machine_is_told_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, told: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_API_URL", url)
    assert headers(environment(tmp_path)) == {}
    made = auth_string(tmp_path)
    assert environment(tmp_path).get(SET) == (made if told else None)
    monkeypatch.setenv("PREFECT_API_KEY", "pnu_1")
    assert SET not in environment(tmp_path)


def test_a_server_started_by_hand_asks_for_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo tells people to do so; a profile of an earlier version did not have it."""
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    profile = tmp_path / "prefect" / "profiles.toml"
    prepare(tmp_path)
    assert auth_string(tmp_path) in profile.read_text("utf-8")
    assert profile.stat().st_mode & 0o777 == 0o600
    (first, *_) = profile.read_text("utf-8").split(",")
    profile.write_text(f"{first}.\n", "utf-8")
    prepare(tmp_path)
    assert auth_string(tmp_path) in profile.read_text("utf-8")
    profile.write_text("active = 'mine'\n", "utf-8")
    prepare(tmp_path)
    assert profile.read_text("utf-8") == "active = 'mine'\n"


def test_a_server_that_does_not_let_us_in_is_named(mailout: Commands) -> None:
    mailout.people("ana@example.org")
    port = free_port()
    command = [sys.executable, "-c", REFUSES, str(port)]
    with running(command, cwd=mailout.folder, env=mailout.environment, log=mailout.folder / "log"):
        wait_for(lambda: "ready" in (mailout.folder / "log").read_text(), "the server starts")
        ended = mailout("send", mailout.letter(), PREFECT_API_URL=f"http://127.0.0.1:{port}/api")
    assert ended.code == 2
    said = ended.err.splitlines()[-1]
    assert "does not let us in" in said
    assert "prefect-auth" in said


REFUSES = """\
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
"""


def server_of(mailout: Commands) -> str:
    return next((words for words in processes_of(mailout.home).values() if "uvicorn" in words), "")


@needs_proc
def test_the_server_of_a_send_asks_for_it_and_ends_with_it_even_when_that_is_killed(
    mailout: Commands,
) -> None:
    """It is in a session of its own, so that Ctrl-C does not reach it: it would listen for ever."""
    mailout.people(*[f"{name}@example.org" for name in "abcdefgh"])
    mailout.settings["SEND_RATE_PER_SEC"] = "0.05"
    prepare_database(mailout.home / "prefect" / DATABASE)
    command = [sys.executable, "-m", "cli", "send", str(mailout.letter())]
    log = mailout.folder / "send.log"
    with running(command, cwd=mailout.folder, env=mailout.environment, log=log) as process:
        server = wait_for(lambda: server_of(mailout) or process.poll() is not None, "its server starts")
        assert process.poll() is None, log.read_text()
        url = f"http://127.0.0.1:{server.split('--port ')[1].split()[0]}/api/flow_runs/filter"
        told = headers({SET: auth_string(mailout.home)})
        sent = [
            patiently(
                partial(httpx.post, url, json={}, headers=by, trust_env=False, timeout=60), "it answers"
            )
            for by in ({}, told)
        ]
        assert [answer.status_code for answer in sent] == [401, 200]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        wait_for(lambda: not processes_of(mailout.home), "its server ends")
