"""What a flow run leaves behind for others to read: its log, its states, its artifacts.

More people can open Prefect's pages than the subscriber list. With `LOG_REDACT` they find no address there,
and no secret in any case.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prefect import Flow, Task
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterParentFlowRunId,
    LogFilter,
    LogFilterFlowRunId,
)
from prefect.logging.handlers import APILogHandler
from prefect.settings import PREFECT_API_URL
from pydantic import SecretStr

import flows
import tasks
from flows.queue_actions import pause_mailout
from flows.run_queue import run_queue
from flows.send_mailout import send_mailout
from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base import ids
from mailout.base.errors import NotFound
from mailout.outbox.delivery.port import Allowance, Mail
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind
from tests.prefect_server import wait_for
from tests.transports import Delivering

Build = Callable[..., Engine]

PEOPLE = ("ana@example.org", "bo@example.org", "cy@example.org")
SECRETS = {
    "UNSUBSCRIBE_SECRET": "sealed-with-seven-seals",
    "API_TOKEN": "token-of-the-gateway-that-is-long",
    "NOTION_TOKEN": "ntn_never_to_be_shown",
    "AWS_SECRET_ACCESS_KEY": "aws/secret+access",
}
SERVICE_KEY = "sb_secret_of_the_service"
LETTER = ids.mailout_id("letter")
PROJECT = Path(__file__).resolve().parents[2]


class Chatty(Delivering):
    """Its refusals name the address, as SES's do, and more than they should."""

    max_batch = 1

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        (mail,) = mails
        if mail.to == "ana@example.org":
            return super().send(mails)
        kind = OutcomeKind.PERMANENT if mail.to == "bo@example.org" else OutcomeKind.UNKNOWN
        secrets = " ".join((*SECRETS.values(), SERVICE_KEY))
        return [Outcome(kind, code="MESSAGE_REJECTED", message=f"No mail to <{mail.to}>. {secrets}")]


def everything(state: Any) -> str:
    """All that Prefect's server keeps of a run and of those below it: what its pages are made of."""
    id = state.state_details.flow_run_id
    chosen = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[id]))
    with get_client(sync_client=True) as client:
        ids = [id, *(one.id for one in client.read_flow_runs(flow_run_filter=chosen))]
        return "\n".join(kept_of(client, one) for one in ids)


def kept_of(client: Any, id: Any) -> str:
    run = client.read_flow_run(id)
    tasks = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[id])))
    states = [*client.read_flow_run_states(id)]
    of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[id]))
    artifacts = client.read_artifacts(artifact_filter=of_run)
    lines = wait_for(lambda: said_last(client, id), "the last line of the run's log")
    kept = [run, *tasks, *states, *artifacts, *lines]
    return "\n".join(one.model_dump_json() for one in kept)


def said_last(client: Any, id: Any) -> Any:
    """The log is on its way for a while after the run has ended."""
    for handler in logging.getLogger("prefect.flow_runs").handlers:
        if isinstance(handler, APILogHandler):
            handler.flush()
    lines = client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[id])), limit=200)
    return lines if any("Finished in state" in line.message for line in lines) else None


def shown(text: str) -> list[str]:
    """What should not be there."""
    return [one for one in (*PEOPLE, *SECRETS.values(), SERVICE_KEY) if one in text]


@pytest.fixture
def chatty(engine_with: Build) -> Callable[..., Engine]:
    def build(transport: type[Chatty] = Chatty, **settings: Any) -> Engine:
        engine = engine_with(transport=transport, **SECRETS | settings)
        key = {"supabase_service_role_key": SecretStr(SERVICE_KEY)}
        engine = replace(engine, settings=engine.settings.model_copy(update=key))
        wiring.use(engine)
        return engine

    return build


def test_every_flow_and_task_is_redacted() -> None:
    """A new one that is not would show on Prefect's pages what the others hide."""
    modules = [
        importlib.import_module(f"{package.__name__}.{found.name}")
        for package in (flows, tasks)
        for found in pkgutil.iter_modules(package.__path__)
    ]
    runs = [one for module in modules for one in vars(module).values() if isinstance(one, Flow | Task)]
    assert len(runs) > 20
    assert [one.name for one in runs if not inspect.getclosurevars(one.fn).nonlocals.get("function")] == []


def test_a_run_shows_no_address_and_no_secret(chatty: Build, letter: str) -> None:
    engine = chatty()
    told = everything(send_mailout(letter, return_state=True))
    assert engine.store.mailout(LETTER).ledger.failed == 1  # there was something to show
    assert "b***@example.org" in told
    assert shown(told) == []


def test_each_failure_is_a_line_that_finds_its_message(chatty: Build, letter: str) -> None:
    engine = chatty()
    told = everything(send_mailout(letter, return_state=True))
    failed = ids.message_id(LETTER, "bo@example.org")
    doubtful = ids.message_id(LETTER, "cy@example.org")
    line = rf"FAILED MESSAGE_REJECTED: .* outboxId={failed} requestId={LETTER} companyId=default attempt=1"
    assert re.search(line + r" state=FAILED durationMs=\d+", told)
    assert re.search(rf"outboxId={doubtful} .* state=UNKNOWN", told)
    assert ids.message_id(LETTER, "ana@example.org") not in told  # sent: at DEBUG, and not to Prefect
    assert engine.store.mailout(LETTER).ledger.sent == 1


def test_an_error_shows_neither_in_its_words_nor_in_its_traceback(
    chatty: Build, letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        try:
            raise ValueError(f"bo@example.org with {SECRETS['API_TOKEN']}")
        except ValueError as error:
            raise FileNotFoundError(2, "No such file", "/outbox/ana@example.org--1.eml") from error

    monkeypatch.setattr(chatty().sending, "freeze", broken)
    monkeypatch.setattr("tasks.steps.resolve_recipients.retries", 0)
    state = send_mailout(letter, return_state=True)
    told = everything(state)
    assert state.is_failed()
    assert "FileNotFoundError" in state.message
    assert "a***@example.org--1.eml" in told
    assert "Traceback" in told
    assert shown(told) == []


def test_a_wait_shows_neither(chatty: Build, letter: str) -> None:
    """SES names the address that it does not know: it becomes the note of the defer, and of the state."""

    class Refuses(Chatty):
        def allowance(self) -> Allowance:  # type: ignore[override]
            said = f"Not verified: ana@example.org {SECRETS['NOTION_TOKEN']}"
            return Allowance(None, None, Outcome(OutcomeKind.STOP, code="NOT_VERIFIED", message=said))

    engine = chatty(transport=Refuses)
    state = send_mailout(letter, return_state=True)
    assert state.name == "Deferred"
    assert "Not verified: a***@example.org ***" in state.message
    assert shown(everything(state)) == []
    assert "ana@example.org" in (engine.store.mailout(LETTER).defer_note or "")


def test_the_queue_shows_neither(chatty: Build, letter: str) -> None:
    engine = chatty()
    engine.intake.enqueue(letter)
    told = everything(run_queue(return_state=True))
    assert "b***@example.org" in told
    assert shown(told) == []


def test_who_wants_to_see_addresses_sees_them_and_still_no_secret(chatty: Build, letter: str) -> None:
    chatty(LOG_REDACT="false")
    assert shown(everything(send_mailout(letter, return_state=True))) == ["bo@example.org", "cy@example.org"]


def test_an_error_keeps_its_type_and_its_remedy(chatty: Build) -> None:
    """The command line goes by them: the exit code, what to do next."""
    chatty()
    state: Any = pause_mailout("nobody@example.org", return_state=True)
    error = state.result(raise_on_failure=False)
    assert isinstance(error, NotFound)
    assert error.message == "There is no mailout n***@example.org."
    assert error.remedy


RUN = """
import sys
from mailout.app import wiring
from tests.transports import Delivering, delivering
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind
from flows.send_mailout import send_mailout

accept = Delivering.send
def send(self, mails):
    if mails[0].to != "bo@example.org":
        return accept(self, mails)
    return [Outcome(OutcomeKind.PERMANENT, code="REJECTED", message=mails[0].to)]
Delivering.send, Delivering.max_batch = send, 1
wiring.make_transport = delivering
send_mailout(sys.argv[1], return_state=True)
"""


def test_a_worker_s_own_process_logs_as_set(engine_with: Build, letter: str, tmp_path: Path) -> None:
    """Its lines go to whatever collects logs there: one JSON object each, or that is blind for flow runs."""
    home = engine_with().settings.mailout_home
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    env |= {
        "PREFECT_API_URL": PREFECT_API_URL.value() or "",
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PYTHONPATH": str(PROJECT),
        "MAILOUT_HOME": str(home),
        "FROM_EMAIL": "news@example.org",
        "ORG_NAME": "The Harbour",
        "ORG_ADDRESS": "1 Quay",
        "UNSUBSCRIBE_BASE_URL": "https://mail.example.org/unsubscribe",
        "SEND_RATE_PER_SEC": "0",
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "debug",
        **SECRETS,
    }
    ended = subprocess.run(
        [sys.executable, "-c", RUN, letter], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]
    of_messages = {line["outboxId"]: line for line in lines if "outboxId" in line}
    states = {line["state"] for line in of_messages.values()}
    assert set(of_messages) == {ids.message_id(LETTER, email) for email in PEOPLE}
    assert states == {"SENT", "FAILED"}
    for line in of_messages.values():
        assert {"requestId", "companyId", "attempt", "durationMs"} <= set(line)
    assert any("flowRun" in line for line in lines)
    assert shown(ended.stderr) == []
