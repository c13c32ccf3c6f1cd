"""The queue under Prefect: what its pages say of waits, who cancels what, and a person's actions as flows."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect import State
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, ArtifactFilterKey
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import TerminationSignal
from prefect.flow_engine import run_flow
from prefect.flows import Flow
from prefect.runtime import flow_run
from prefect.states import AwaitingRetry, Cancelling, Paused

from flows import queue_actions
from flows.run_queue import run_queue
from flows.send_mailout import send_mailout
from mailout.app.engine import Engine
from mailout.base import error_log, ids
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind
from mailout.outbox.queue.actions import SettleVerdict
from mailout.outbox.queue.mailout import DeferReason, Status
from tests.clocks import FromNoon
from tests.transports import Delivering

LETTER = ids.mailout_id("letter")
Build = Callable[..., Engine]


def run(flow: Any, *arguments: Any) -> Any:
    return flow(*arguments, return_state=True)


# ── what is said of a wait ──


def test_a_deferred_run_says_why_and_until_when_and_the_report_predicts_the_end(
    engine_with: Build, letter: str
) -> None:
    engine = engine_with(FromNoon(), LIMIT_PER_DAY=2, SEND_TIMEZONE="Europe/Berlin")
    state = run(send_mailout, letter)
    assert state.name == "Deferred"
    assert state.message.startswith("daily_limit: until 20")
    assert state.message.endswith(" 0 failed, 0 unknown, 1 pending.")
    assert " 09:00 CE" in state.message
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(
            artifact_filter=ArtifactFilter(
                key=ArtifactFilterKey(any_=[f"report-hello-{LETTER[:8]}"]),
                flow_run_id=ArtifactFilterFlowRunId(any_=[state.state_details.flow_run_id]),
            )
        )
    assert "| forecast | done by" in str(found[0].data)
    assert engine.store.mailout(LETTER).status is Status.PENDING


def test_a_delay_is_time_to_take_it_back(engine_with: Build, letter: str) -> None:
    engine = engine_with(SEND_DELAY=3600)
    state = run(send_mailout, letter)
    assert (state.name, state.message.startswith("Planned for 20")) == ("Deferred", True)
    assert engine.store.mailout(LETTER).ledger.recipients == 3
    assert run(run_queue).message == "Nothing is due."
    run(queue_actions.cancel_mailout, LETTER)
    assert engine.store.mailout(LETTER).status is Status.CANCELLED


@pytest.mark.parametrize("written", [LETTER[:8], f" {LETTER} ", LETTER.upper()])
def test_a_form_takes_an_id_as_the_queue_list_shows_it(engine_with: Build, letter: str, written: str) -> None:
    engine = engine_with(SEND_DELAY=3600)
    run(send_mailout, letter)
    assert run(queue_actions.pause_mailout, written).name == "Completed"
    assert engine.store.mailout(LETTER).defer_reason is DeferReason.PAUSED
    assert run(queue_actions.resume_mailout, written).name == "Completed"
    assert run(queue_actions.cancel_mailout, written).name == "Completed"
    assert engine.store.mailout(LETTER).status is Status.CANCELLED


def test_a_test_run_has_no_delay(engine_with: Build, letter: str) -> None:
    engine_with(SEND_DELAY=3600)
    assert run(send_mailout, letter, True).name == "Completed"


# ── cancelled, or only ended ──


class Terminated(Delivering):
    """After the first mail that it accepts, its process is asked to end."""

    max_batch = 1
    asked = False

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        outcomes = super().send(mails)
        if not self.asked:
            self.asked = True
            os.kill(os.getpid(), signal.SIGTERM)
        return outcomes


@pytest.fixture
def outlives_sigterm() -> Iterator[None]:
    """Prefect hands the signal on to whoever had it before: here it ends a run, not the tests."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("outlives_sigterm")
@pytest.mark.parametrize(("by_a_person", "by_the_queue"), [(True, False), (False, False), (True, True)])
def test_a_run_that_is_cancelled_leaves_its_mailout_paused_and_one_that_is_ended_lets_it_go(
    engine_with: Build, letter: str, by_a_person: bool, by_the_queue: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silently PROCESSING, it would look as if somebody were sending; paused by a restart, nobody would."""
    # A worker hands the button on as a signal; nobody else looks.
    monkeypatch.setattr("flows.delivery.watch_for_cancel", lambda *_: ("nobody", "looks"))
    engine = engine_with(transport=Terminated, SEND_RATE_PER_SEC=2)
    freeze = engine.sending.freeze

    def cancel_first(id: str) -> Any:
        if by_a_person:
            with get_client(sync_client=True) as client:
                cancelled = flow_run.parent_flow_run_id or flow_run.id
                client.set_flow_run_state(UUID(str(cancelled)), Cancelling(), force=True)
        return freeze(id)

    monkeypatch.setattr(engine.sending, "freeze", cancel_first)
    if by_the_queue:
        engine.intake.enqueue(letter)
    with pytest.raises(TerminationSignal):
        run(*[run_queue] if by_the_queue else [send_mailout, letter])
    if by_the_queue:
        with get_client(sync_client=True) as client:
            (ended, *_) = client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=1)
        assert (ended.name, ended.state_name) == ("Hello", "Crashed")  # and not Running for ever
    left = engine.store.mailout(LETTER)
    assert left.status is Status.PENDING
    assert (left.ledger.sent in (1, 2), left.ledger.in_flight, left.ledger.unknown) == (True, 0, 0)
    if by_a_person:
        assert (left.defer_reason, left.defer_note) == (DeferReason.PAUSED, "It was cancelled in Prefect.")
        assert run(run_queue).message == "Nothing is due."
        run(queue_actions.resume_mailout, LETTER)
    engine_with(SEND_RATE_PER_SEC=2)
    assert run(run_queue).message == f"{LETTER}: Completed"
    assert engine.store.mailout(LETTER).ledger.sent == 3


@pytest.mark.parametrize(
    ("by_the_queue", "by_a_worker", "button"),
    [
        (True, False, Cancelling),
        (False, False, Cancelling),
        (True, False, Paused),
        (False, True, Paused),
    ],
)
def test_cancelling_or_pausing_a_letter_s_own_run_pauses_that_letter_and_ends_as_cancelled(
    engine_with: Build,
    letter: str,
    by_the_queue: bool,
    by_a_worker: bool,
    button: Callable[[], State[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Below the queue, or started by a command, no worker hands the signal on; for a pause none does."""
    monkeypatch.setattr("flows.delivery.CANCEL_SECONDS", 0.2)
    if by_a_worker:
        monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", str(uuid4()))
    engine = engine_with(SEND_RATE_PER_SEC=0.05)
    freeze = engine.sending.freeze

    def cancel_first(id: str) -> Any:
        with get_client(sync_client=True) as client:
            client.set_flow_run_state(UUID(str(flow_run.id)), button(), force=True)
        return freeze(id)

    monkeypatch.setattr(engine.sending, "freeze", cancel_first)
    if by_the_queue:
        engine.intake.enqueue(letter)
    state = run(*[run_queue] if by_the_queue else [send_mailout, letter])
    paused = engine.store.mailout(LETTER)
    assert paused.ledger.sent < 3
    note = f"It was {'cancelled' if button is Cancelling else 'paused'} in Prefect."
    assert (paused.defer_reason, paused.defer_note) == (DeferReason.PAUSED, note)
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=2)
    (own,) = [one for one in runs if one.name == "Hello"][:1]
    assert (own.state_name, own.state.message) == (
        "Cancelled",
        f"The mailout is paused: {paused.ledger.sent} sent, 0 failed, 0 unknown,"
        f" {paused.ledger.pending} pending. To go on: resume_mailout.",
    )
    assert state.name == ("Completed" if by_the_queue else "Cancelled")


# ── Prefect's Retry button ──


class RefusesBoAtFirst(Delivering):
    """One address is refused for good, as long as `refuses` says so."""

    max_batch = 1
    refuses = True

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        if self.refuses and mails[0].to == "bo@example.org":
            return [Outcome(OutcomeKind.PERMANENT, code="MESSAGE_REJECTED", message="No.")]
        return super().send(mails)


def press_retry(id: UUID, **parameters: Any) -> Any:
    """What the button asks for, and what a worker then does."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(id, AwaitingRetry(), force=True)
        again = client.read_flow_run(id)
    return run_flow(send_mailout, flow_run=again, parameters=parameters, return_type="state")


def test_retry_on_a_run_in_which_one_failed_sends_to_that_one(
    engine_with: Build, letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_with(transport=RefusesBoAtFirst)
    first = run(send_mailout, letter)
    id = first.state_details.flow_run_id
    assert first.is_failed()
    monkeypatch.setattr(RefusesBoAtFirst, "refuses", False)
    again = press_retry(id, ref=letter)
    assert (again.name, again.message) == ("Completed", "3 sent, 0 failed, 0 unknown, 0 pending")
    assert len(list(engine.settings.mailout_home.glob("outbox/*/*.eml"))) == 3
    well = press_retry(id, ref=letter)
    assert (well.name, well.is_completed()) == ("Nothing to retry", True)
    assert "there is nothing to try again" in well.message
    with get_client(sync_client=True) as client:
        kept = client.read_flow_run(id)
    assert (kept.name, LETTER in kept.tags, kept.run_count) == ("Hello", True, 3)
    assert {error.code for error in error_log.errors(engine.store)} <= {"MESSAGE_REJECTED"}, (
        "nobody asked twice"
    )


def test_a_run_that_fails_is_named_after_its_letter_where_the_subject_is_known(
    engine_with: Build, letter: str
) -> None:
    """A list of UUIDs says nothing to whoever looks for what went wrong."""
    engine_with()
    assert run(send_mailout, letter).is_completed()
    again = run(send_mailout, letter)
    assert again.is_failed()
    with get_client(sync_client=True) as client:
        assert client.read_flow_run(again.state_details.flow_run_id).name == "Hello"


# ── a person's actions ──


def test_pause_resume_and_pause_everything(engine_with: Build, letter: str) -> None:
    engine = engine_with()
    engine.intake.enqueue(letter)
    paused = run(queue_actions.pause_mailout, LETTER, "The date is wrong.")
    assert "somebody paused it. The date is wrong." in paused.message, "a person reads it on Prefect's pages"
    assert run(run_queue).message == "Nothing is due."
    run(queue_actions.resume_mailout, LETTER)
    run(queue_actions.pause_everything)
    assert run(run_queue).name == "Paused"
    run(queue_actions.pause_everything, False)
    assert run(run_queue).message == f"{LETTER}: Completed"


def test_what_cannot_be_done_is_a_failed_run_that_says_why(engine_with: Build, letter: str) -> None:
    engine = engine_with()
    engine.intake.enqueue(letter)
    for act in (queue_actions.resume_mailout, queue_actions.retry_mailout):
        state = run(act, LETTER)
        assert state.is_failed()
        assert "there is nothing to" in state.message
    state = run(queue_actions.settle_mailout, LETTER, SettleVerdict.SENT)
    assert "there is nothing to settle" in state.message


def test_every_parameter_is_described() -> None:
    """A person who starts it from Prefect's pages reads nothing else."""
    flows = [thing for thing in vars(queue_actions).values() if isinstance(thing, Flow)]
    assert len(flows) == 6
    for flow in [*flows, send_mailout]:
        assert flow.description
        for name, described in flow.parameters.properties.items():
            assert described.get("description"), (flow.name, name)
