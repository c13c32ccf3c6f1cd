"""`send_mailout` and `run_queue` as Prefect runs them: what its pages say must be what happened."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from cli.commands.send import run_flow
from cli.processes import prefect_home
from flows.run_queue import run_queue
from flows.send_mailout import send_mailout
from mailout.app.engine import Engine
from mailout.base import ids
from mailout.base.errors import Abort, AbortCode
from mailout.insight.history import history_rows
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import DeferReason, Status
from tests.clocks import FromNoon
from tests.transports import Delivering

LETTER = ids.mailout_id("letter")
PROJECT = Path(__file__).resolve().parents[2]

Build = Callable[..., Engine]


def mails(engine: Engine) -> list[Path]:
    return list(engine.settings.mailout_home.glob("outbox/*/*.eml"))


def run(flow: Any, *arguments: Any) -> Any:
    return flow(*arguments, return_state=True)


def test_everybody_gets_it_once_and_the_run_says_so(engine_with: Build, letter: str) -> None:
    engine = engine_with()
    state = run(send_mailout, letter)
    assert (state.name, state.message) == ("Completed", "3 sent, 0 failed, 0 unknown, 0 pending")
    assert len(mails(engine)) == 3
    with get_client(sync_client=True) as client:
        keys = [f"{kind}-hello-{LETTER[:8]}" for kind in ("progress", "ledger", "report")]
        found = client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=keys)))
    assert {artifact.key for artifact in found} == set(keys)
    assert history_rows.run_of(engine.store, LETTER) == str(state.state_details.flow_run_id)
    again = run(send_mailout, letter)
    error = again.result(raise_on_failure=False)
    assert isinstance(error, Abort)
    assert error.code is AbortCode.MAILOUT_ALREADY_SENT
    assert len(mails(engine)) == 3


def test_a_run_without_a_subject_is_named_after_what_was_asked_for(
    engine_with: Build, tmp_path: Path
) -> None:
    """Prefect would give it a random one."""
    engine_with()
    path = tmp_path / "none.md"
    path.write_text("---\nid: none\n---\n\nHow are you?\n", encoding="utf-8")
    states = [run(send_mailout, ref) for ref in (str(path), "")]
    with get_client(sync_client=True) as client:
        names = [client.read_flow_run(state.state_details.flow_run_id).name for state in states]
    assert names == [str(path), "send_mailout"]


def test_a_test_run_leaves_the_real_one_to_come(engine_with: Build, letter: str) -> None:
    engine = engine_with()
    assert run(send_mailout, letter, True).is_completed()
    assert [mail.name.split("--")[0] for mail in mails(engine)] == ["editor@example.org"]
    assert run(send_mailout, letter, False).is_completed()
    assert len(mails(engine)) == 4


def test_a_limit_ends_the_run_as_deferred_not_as_failed(engine_with: Build, letter: str) -> None:
    engine = engine_with(FromNoon(), LIMIT_PER_HOUR=2)
    state = run(send_mailout, letter)
    assert (state.is_completed(), state.name) == (True, "Deferred")
    assert "rate_per_hour" in state.message
    assert engine.store.mailout(LETTER).defer_reason is DeferReason.RATE_PER_HOUR
    assert run(run_queue).message == "Nothing is due."
    assert len(mails(engine)) == 2


class RefusesBo(Delivering):
    """A transport that refuses one address for good."""

    max_batch = 1

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        if mails[0].to == "bo@example.org":
            return [Outcome(OutcomeKind.PERMANENT, code="MESSAGE_REJECTED", message="No.")]
        return super().send(mails)


def test_failures_left_make_the_run_failed_with_the_counts(engine_with: Build, letter: str) -> None:
    engine_with(transport=RefusesBo)
    state = run(send_mailout, letter)
    assert (state.is_failed(), state.message) == (
        True,
        "Not everybody was reached: 2 sent, 1 failed, 0 unknown, 0 pending.",
    )


def test_after_a_kill_the_queue_goes_on_and_nobody_gets_it_twice(engine_with: Build, letter: str) -> None:
    engine = engine_with(SEND_RATE_PER_SEC=1, LOCK_SECONDS=1)
    command = [sys.executable, "-c", SENDER, str(engine.settings.mailout_home), letter]
    with subprocess.Popen(command, cwd=PROJECT) as sender:
        while not mails(engine):
            assert sender.poll() is None
            time.sleep(0.02)
        sender.kill()
    assert engine.store.mailout(LETTER).status is Status.PROCESSING
    while not queue_rows.due_mailouts(engine.store, stale=1):
        time.sleep(0.1)
    state = run(run_queue)
    ledger = engine.store.mailout(LETTER).ledger
    assert state.message in (f"{LETTER}: Completed", f"{LETTER}: Failed")  # Failed: one is in doubt
    assert (ledger.pending, ledger.in_flight, ledger.sent + ledger.unknown) == (0, 0, 3)
    names = [mail.name.split("--")[0] for mail in mails(engine)]
    assert len(names) == len(set(names)) >= ledger.sent


SENDER = """
import sys
from mailout.app import wiring
from mailout.base.clock import SystemClock
from mailout.base.settings import load_settings
from tests.transports import delivering
home, letter = sys.argv[1:]
env = {"MAILOUT_HOME": home, "FROM_EMAIL": "news@example.org", "ORG_NAME": "Org", "ORG_ADDRESS": "1 Quay"}
env |= {"UNSUBSCRIBE_BASE_URL": "https://mail.example.org/unsubscribe", "UNSUBSCRIBE_SECRET": "a secret"}
settings, clock = load_settings(env=env | {"SEND_RATE_PER_SEC": "1", "LOCK_SECONDS": "1"}), SystemClock()
engine = wiring.build(settings, clock, transport=delivering(settings, clock))
engine.deliver(engine.intake.enqueue(letter).id)
"""


@pytest.fixture
def in_the_harness(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line's way into the flow, with the tests' server instead of its own."""
    monkeypatch.setattr(prefect_home, "prepare", lambda home: home)
    monkeypatch.setattr(prefect_home, "start_server", lambda home: None)


@pytest.mark.usefixtures("in_the_harness")
def test_the_command_line_leaves_failures_to_the_ledger(engine_with: Build, letter: str) -> None:
    engine = engine_with(transport=RefusesBo)
    assert run_flow(engine, letter, None)
    assert engine.store.mailout(LETTER).ledger.failed == 1


@pytest.mark.usefixtures("in_the_harness")
def test_the_command_line_hides_nothing_unforeseen(
    engine_with: Build, letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    engine = engine_with()
    monkeypatch.setattr(engine.intake, "load", broken)
    with pytest.raises(ZeroDivisionError):
        run_flow(engine, letter, None)
