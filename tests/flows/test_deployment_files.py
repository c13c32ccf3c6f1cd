"""What the files in `deployments/` mention exists; a wrong option in a unit is found at the worst time."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer
import yaml

from cli.commands.up import SENDERS_SECONDS, STOP_SECONDS
from cli.main import app
from mailout.base.settings import Settings
from tests.prefect_server import ROOT

FOLDER = ROOT / "deployments"
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
UNITS = sorted((FOLDER / "systemd").glob("*.service"))
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
PORTS = {"gateway": "8080", "prefect": "4200"}


def check_mailout(arguments: list[str]) -> None:
    """A command of ours, parsed as it would be, and not run."""
    command: Any = typer.main.get_command(app)
    context = typer.Context(command)
    chosen = command.get_command(context, arguments[0])
    assert chosen is not None, arguments
    chosen.make_context(arguments[0], list(arguments[1:]), parent=context)


def check_module(words: list[str]) -> None:
    """What `python -m` is given."""
    module, *arguments = words
    if module == "cli":
        check_mailout(arguments)
    elif module == "prefect":
        assert arguments[:2] in (["server", "start"], ["worker", "start"])
    else:
        assert find_spec(module) is not None, module


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_every_container_starts_something_that_exists(name: str) -> None:
    service = COMPOSE["services"][name]
    check_module(service["command"])
    assert (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    for needed in service.get("depends_on", {}):
        assert needed in COMPOSE["services"]
    for volume in service["volumes"]:
        assert volume.partition(":")[0] in COMPOSE["volumes"]


@pytest.mark.parametrize("name", PORTS)
def test_a_container_listens_where_it_is_reached(name: str) -> None:
    service = COMPOSE["services"][name]
    command = service["command"]
    assert command[command.index("--port") + 1] == PORTS[name]
    assert [port.rpartition(":")[2] for port in service["ports"]] == [PORTS[name]]
    assert f":{PORTS[name]}/" in service["healthcheck"]["test"][-1]
    assert PORTS[name] in re.findall(r"^EXPOSE (.+)$", DOCKERFILE, re.M)[0].split()


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_container_is_reached_from_this_machine_only_and_its_log_is_rotated(name: str) -> None:
    service = COMPOSE["services"][name]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}


def test_prefect_in_compose_asks_for_what_the_others_say_and_does_not_start_without() -> None:
    services = COMPOSE["services"]
    asked = services["prefect"]["environment"]["PREFECT_SERVER_API_AUTH_STRING"]
    said = {
        services[name]["environment"]["PREFECT_API_AUTH_STRING"] for name in ("deploy", "worker", "gateway")
    }
    assert said == {asked}
    assert asked.startswith("${PREFECT_API_AUTH_STRING:?")
    origins = services["prefect"]["environment"]["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"].split(",")
    assert {urlsplit(origin).hostname for origin in origins} == {"127.0.0.1", "localhost"}


SENDING = {
    *("UNSUBSCRIBE_SECRET", "UNSUBSCRIBE_SECRETS_OLD", "SUPABASE_SERVICE_ROLE_KEY", "NOTION_TOKEN"),
    *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
}
DOORS = {
    *("API_TOKEN", "ADMIN_PASSWORD", "EDITOR_PASSWORD"),
    *("NOTION_WEBHOOK_TOKEN", "NOTION_AUTOMATION_SECRET"),
}
NEEDED = {"prefect": set(), "deploy": set(), "worker": SENDING, "gateway": SENDING | DOORS}
"""Which secrets of ours a container works with."""


def _secrets() -> set[str]:
    """Every setting that is one: those whose value Settings hides."""
    return {
        name.upper() for name, field in Settings.model_fields.items() if "Secret" in str(field.annotation)
    }


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_container_gets_the_secrets_it_needs_and_no_others(name: str) -> None:
    """Whoever breaks into one of them must not find the keys of the next."""
    service = COMPOSE["services"][name]
    assert _secrets() == SENDING | DOORS
    given = _secrets() if service.get("env_file") else set()
    emptied = {key for key, value in service["environment"].items() if value == ""}
    assert given - emptied == NEEDED[name]


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_container_can_neither_change_itself_nor_gain_rights(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["tmpfs"] == ["/tmp"]
    written = [value for value in service["environment"].values() if value.startswith("/")]
    assert all(value.startswith(("/data", "/tmp", "/api")) for value in written)


def test_everybody_in_compose_speaks_to_the_same_prefect() -> None:
    services = COMPOSE["services"]
    told = {services[name]["environment"]["PREFECT_API_URL"] for name in ("deploy", "worker", "gateway")}
    assert told == {f"http://prefect:{PORTS['prefect']}/api"}


@pytest.mark.parametrize("name", ["deploy", "worker", "gateway"])
def test_what_a_container_keeps_is_in_its_volume_whatever_dotenv_says(name: str) -> None:
    """`env_file` goes before the image's ENV: a MAILOUT_HOME in .env would be lost with the container."""
    service = COMPOSE["services"][name]
    (volume,) = service["volumes"]
    for where in ("MAILOUT_HOME", "PREFECT_HOME"):
        assert service["environment"][where].startswith(volume.partition(":")[2])


def test_a_container_that_sends_ends_politely_and_has_the_time() -> None:
    worker = COMPOSE["services"]["worker"]
    assert worker["command"] == ["cli", "up", "--only-workers"]
    patience = SENDERS_SECONDS + 2 * STOP_SECONDS
    assert int(worker["stop_grace_period"].removesuffix("s")) >= patience


def test_what_installs_the_packages_comes_from_the_lock_too() -> None:
    """Those of Python's venv are years old."""
    locked = re.findall(r"^([a-z]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.M)
    assert {"pip", "setuptools"} <= set(locked)


def test_the_image_holds_everything_that_is_imported() -> None:
    """Every package that the wheel holds, the lock, and the file that is deployed."""
    copied = {word for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.M) for word in line.split()[:-1]}
    assert all((ROOT / path).exists() for path in copied)
    assert {"mailout", "flows", "tasks", "gateway", "cli", "deployments", "prefect.yaml"} <= copied
    command = re.findall(r"^CMD (.+)$", DOCKERFILE, re.M)[0]
    check_module(yaml.safe_load(command))


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists_and_has_time_to_end(unit: Path) -> None:
    parsed = ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(unit.read_text(encoding="utf-8"))
    service = parsed["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert program.startswith(service["WorkingDirectory"])
    if Path(program).name == "mailout":
        check_mailout(arguments)
    else:
        assert (Path(program).name, arguments[:2]) == ("prefect", ["worker", "start"])
    assert service["KillMode"] == "mixed"  # the signal to the parent alone, as `mailout up` needs it
    assert int(service["TimeoutStopSec"]) >= 60


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_can_do_little_to_the_machine(unit: Path) -> None:
    analysed = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=29", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Overall exposure level" in analysed.stdout, analysed.stderr
    assert analysed.returncode == 0, analysed.stdout


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_writes_where_it_may(unit: Path) -> None:
    """All else is read-only for it."""
    lines = unit.read_text(encoding="utf-8").splitlines()
    assert {"ProtectSystem=strict", "StateDirectory=mailout", "UMask=0077"} <= set(lines)
    assert "Environment=MAILOUT_HOME=/var/lib/mailout" in lines


def commands_in(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"```\n(.*?)```", text, re.S):
        yield from (line.strip() for line in block.splitlines() if line.strip())
    yield from re.findall(r"`((?:mailout|prefect|python -m) [^`]+)`", text)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.md")), ids=lambda path: path.name)
def test_what_the_pages_tell_people_to_do_can_be_done(path: Path) -> None:
    commands = list(commands_in(path))
    assert commands
    for command in commands:
        words = shlex.split(command)
        if words[0] == "mailout":
            check_mailout(words[1:])
        elif words[:2] == ["python", "-m"]:
            check_module(words[2:])
        for word in words:
            if word.startswith("deployments/"):
                assert (ROOT / word).is_file(), word


def test_what_is_named_in_capitals_is_a_setting() -> None:
    """A setting that nobody reads is a trap in a file that people copy."""
    known = {name.upper() for name in Settings.model_fields}
    foreign = re.compile(r"PREFECT_|PIP_|PYTHON|DO_NOT_TRACK|AF_")
    for path in (FOLDER / "Dockerfile", FOLDER / "compose.yaml", *UNITS):
        named = re.findall(r"\b([A-Z]{2,}(?:_[A-Z]+)+)\b", path.read_text(encoding="utf-8"))
        strange = {name for name in named if name not in known and not foreign.match(name)}
        assert strange == set(), path.name
