"""Mail never waits for Prefect's server: not for a name, not for a picture of the progress, not for a run."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId

from flows.drain_outbox import drain_outbox
from flows.run_queue import run_queue
from flows.send_mailout import send_mailout
from mailout.app.engine import Engine
from mailout.app.single_mail_run import SingleMailRun
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Outcome
from tasks.display import Display
from tests.flows.test_steps import below, letter_file, name_of
from tests.prefect_server import wait_for
from tests.transports import Delivering

Build = Callable[..., Engine]


def server_gets(number: signal.Signals) -> None:
    from prefect.server.api.server import SubprocessASGIServer

    process = SubprocessASGIServer().server_process
    assert process is not None
    os.kill(process.pid, number)


class HangingServer(Delivering):
    """With the first mail Prefect's server stops to answer; once all are out, it goes on."""

    max_batch = 1
    letters = 1
    sent = 0

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        outcomes = super().send(mails)
        type(self).sent += 1
        if self.sent == 1:
            server_gets(signal.SIGSTOP)
        if self.sent == 3 * self.letters:
            server_gets(signal.SIGCONT)
        return outcomes


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("tasks.display.SERVER_SECONDS", 1.0)
    monkeypatch.setattr("flows.send_queued.SERVER_SECONDS", 1.0)
    monkeypatch.setattr("flows.send_queued.SERVER_RETRIES", 0)
    yield
    HangingServer.sent, HangingServer.letters = 0, 1
    server_gets(signal.SIGCONT)


@pytest.mark.usefixtures("hanging")
def test_a_letter_goes_out_while_prefect_hangs_and_everything_is_shown_in_the_end(
    engine_with: Build, letter: str
) -> None:
    engine_with(transport=HangingServer)
    state = send_mailout(letter, return_state=True)
    assert (state.name, HangingServer.sent) == ("Completed", 3)
    id = state.state_details.flow_run_id
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(
            artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[id]))
        )
    shown = {str(one.key).partition("-")[0]: one.data for one in found}
    assert (set(shown), shown["progress"]) == ({"progress", "ledger", "report"}, 100.0)
    assert name_of(id) == "Hello"


@pytest.mark.usefixtures("hanging")
def test_the_queue_sends_its_next_letter_though_prefect_cannot_show_a_run_for_it(
    engine_with: Build, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    HangingServer.letters = 2
    engine = engine_with(transport=HangingServer)
    for subject in ("First", "Second"):
        engine.intake.enqueue(letter_file(tmp_path, subject))
    state = run_queue(return_state=True)
    assert (state.name, HangingServer.sent) == ("Completed", 6)
    id = state.state_details.flow_run_id
    assert name_of(id) == "the queue"
    # An overloaded server may have refused the run of the first one already: nobody waits for it here.
    shown = [] if "503 Service Unavailable" in caplog.text else [("First", "Completed")]
    wait_for(
        lambda: [(one.name, one.state_name) for one in below(id)] == shown,
        "how the first one ended is shown later",
    )


# ── the display alone ──


def test_the_run_for_single_mails_ends_once_prefect_has_heard_that_the_next_is_needed(
    engine_with: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_with()
    told, tries = list[str](), list[str]()

    def emit(client: object, event: str, resource: str) -> None:
        tries.append(event)
        if len(tries) == 1:
            raise httpx.ConnectError("it is away")
        told.append(event)

    def run(self: SingleMailRun, seconds: float) -> bool:
        assert not self._was_heard()
        self._ask_for_next()
        return bool(wait_for(self._was_heard, "Prefect has not heard it"))

    monkeypatch.setattr("flows.drain_outbox.emit", emit)
    monkeypatch.setattr(SingleMailRun, "run", run)
    assert drain_outbox(return_state=True).message == "none came."
    assert told == ["mailout.single_mails.waiting"]


def test_what_the_server_did_not_take_is_told_again_and_only_the_newest_of_its_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tasks.display.FIRST_RETRY_SECONDS", 0.001)
    display, is_back, told = Display(), threading.Event(), []

    def act(what: str) -> Callable[[object], None]:
        def tell(client: object) -> None:
            if not is_back.is_set():
                raise httpx.ConnectError("nobody there")
            told.append(what)

        return tell

    display.show("name", act("name"))
    for percent in range(3):
        display.show("progress", act(f"{percent} %"))
    wait_for(lambda: not display.server_answers, "it was tried")
    monkeypatch.setattr("tasks.display.FINISH_SECONDS", 0.05)
    assert not display.finish(), "an end does not wait for ever"
    is_back.set()
    monkeypatch.setattr("tasks.display.FINISH_SECONDS", 300.0)
    assert display.finish()
    assert (told, display.server_answers) == (["name", "2 %"], True)


def test_what_cannot_be_shown_at_all_keeps_nothing_else_from_being_shown() -> None:
    """An error in an artifact once failed the step that sends."""
    display, told = Display(), []

    def broken(client: object) -> None:
        raise ValueError("no such colour")

    display.show("broken", broken)
    display.show("name", lambda client: told.append("name"))
    assert display.finish()
    assert told == ["name"]


def test_a_heart_whose_time_has_not_come_has_not_begun() -> None:
    display = Display()
    display.repeat("heartbeat", lambda client: None, first=3600, every=1)
    assert not display.end_repeat("heartbeat")


def test_a_heart_beats_until_it_is_ended() -> None:
    display, beats = Display(), threading.Semaphore(0)
    display.repeat("heartbeat", lambda client: beats.release(), first=0.001, every=0.001)
    for _ in range(3):
        assert beats.acquire(timeout=300)
    assert display.end_repeat("heartbeat")
    display.show("ended", lambda client: None)
    assert display.finish()
