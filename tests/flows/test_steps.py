"""What Prefect's pages show of a letter: a run with its subject as the name, and five steps by name."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from prefect import Flow, Task, flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterParentFlowRunId,
)
from prefect.client.schemas.objects import FlowRun, TaskRun

import tasks
from flows.run_queue import run_queue
from flows.send_mailout import send_mailout
from flows.send_queued import QueuedMailouts
from mailout.app.engine import Engine
from mailout.base.errors import SettingsError, SourceUnavailable
from mailout.kinds.mailouts import requests
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.port import Request
from tests.clocks import FromNoon
from tests.prefect_server import wait_for

Build = Callable[..., Engine]
STEPS = ["load mailout", "render content", "resolve recipients", "send", "report"]


def run(flow: Any, *arguments: Any) -> Any:
    return flow(*arguments, return_state=True).state_details.flow_run_id


def steps_of(run_id: Any, most: int = len(STEPS)) -> Sequence[TaskRun]:
    """In the order in which they began. Prefect writes task runs from events, a moment later."""
    found: list[TaskRun] = []

    def all_there() -> bool:
        with get_client(sync_client=True) as client:
            chosen = FlowRunFilter(id=FlowRunFilterId(any_=[run_id]))
            found[:] = client.read_task_runs(flow_run_filter=chosen)
        return len(found) >= most and all(one.start_time for one in found)

    wait_for(all_there, "the steps are written down")
    return sorted(found, key=lambda one: one.start_time)


def below(run_id: Any) -> list[FlowRun]:
    """The runs that a run of the queue has made, in the order in which they began."""
    chosen = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run_id]))
    with get_client(sync_client=True) as client:
        found = client.read_flow_runs(flow_run_filter=chosen)
    return sorted(found, key=lambda one: one.start_time)


def name_of(run_id: Any) -> str:
    with get_client(sync_client=True) as client:
        return str(client.read_flow_run(run_id).name)


def kinds(steps: Sequence[TaskRun]) -> list[str]:
    return [one.name.partition(":")[0] for one in steps]


def needed_by(step: TaskRun) -> set[Any]:
    """What its arrows come from."""
    return {one.id for inputs in step.task_inputs.values() for one in inputs if hasattr(one, "id")}


def letter_file(folder: Path, subject: str) -> str:
    path = folder / f"{subject}.md"
    path.write_text(f"---\nid: {subject}\nsubject: {subject}\n---\n\nHow are you?\n", encoding="utf-8")
    return str(path)


def test_a_letter_asked_for_by_hand_shows_its_subject_and_five_steps(engine_with: Build, letter: str) -> None:
    engine_with()
    id = run(send_mailout, letter)
    steps = steps_of(id)
    assert (name_of(id), kinds(steps)) == ("Hello", STEPS)
    assert [one.name for one in steps[1:]] == [f"{step}: Hello" for step in STEPS[1:]]
    assert steps[0].name == "load mailout: letter.md"
    for before, after in pairwise(steps):  # the arrows of the graph
        assert before.id in needed_by(after), after.name


def test_each_letter_that_the_queue_sends_shows_the_same(
    engine_with: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the queue's run: one that was in the queue, and one whose request nobody had answered."""
    monkeypatch.setattr(requests, "EVENT_SECONDS", 0.0)
    engine = engine_with()
    engine.intake.enqueue(letter_file(tmp_path, "First"))
    engine.store.ask(Request(letter_file(tmp_path, "Second")), repeat=60)
    id = run(run_queue)
    found = {one.name: one for one in below(id)}
    assert (name_of(id), set(found)) == ("the queue", {"First", "Second"})
    for subject, one in found.items():
        steps = steps_of(one.id)
        assert kinds(steps) == STEPS
        assert [step.name for step in steps[1:]] == [f"{step}: {subject}" for step in STEPS[1:]]
        assert one.state is not None
        assert one.state.message == "3 sent, 0 failed, 0 unknown, 0 pending"
    assert run(run_queue)
    assert len(queue_rows.mailouts(engine.store)) == 2


def test_letters_that_take_turns_have_a_run_each(engine_with: Build, tmp_path: Path) -> None:
    """One waits while another is sent: its run stays its own, and so do the arrows."""
    engine = engine_with()
    first, second = (engine.intake.enqueue(letter_file(tmp_path, name)).id for name in ("First", "Second"))

    @flow
    def in_turn() -> None:
        with QueuedMailouts(engine) as steps:
            assert steps.begin(first)
            assert steps.begin(second)
            steps.enqueue(letter_file(tmp_path, "Third"))
            for id in (first, second):
                steps.send(id, lambda: False)
            for id in (second, first):
                steps.end(id)

    id = run(in_turn)
    runs = {one.name: one for one in below(id)}
    third = runs.pop("Third")
    assert (kinds(steps_of(third.id, most=2)), third.state_name) == (STEPS[:2], "Deferred")
    assert set(runs) == {"First", "Second"}
    for one in runs.values():
        steps = steps_of(one.id)
        assert kinds(steps) == STEPS
        assert {name.partition(": ")[2] for name in [step.name for step in steps[1:]]} == {one.name}
        for before, after in pairwise(steps):
            assert before.id in needed_by(after), after.name


def test_a_letter_of_the_queue_that_breaks_is_a_failed_run_of_its_own(
    engine_with: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others go out, and each run says how its own letter stands."""
    engine = engine_with()
    for subject in ("Broken", "Refused", "Sent"):
        engine.intake.enqueue(letter_file(tmp_path, subject))
    freeze = engine.sending.freeze

    def breaks(id: str) -> Any:
        subject = engine.store.mailout(id).subject
        if subject == "Broken":
            raise ZeroDivisionError
        if subject == "Refused":
            raise SettingsError("FROM_EMAIL: is missing.")
        return freeze(id)

    monkeypatch.setattr(engine.sending, "freeze", breaks)
    monkeypatch.setattr("tasks.steps.resolve_recipients.retries", 0)
    id = run(run_queue)
    assert {one.name: one.state_name for one in below(id)} == {
        "Broken": "Failed",
        "Refused": "Deferred",
        "Sent": "Completed",
    }
    with get_client(sync_client=True) as client:
        state = client.read_flow_run(id).state
    assert state is not None
    assert state.is_failed()  # somebody has to look


def test_a_run_that_sends_nothing_says_what_it_looked_at(engine_with: Build) -> None:
    engine_with()
    id = run(run_queue)
    assert (name_of(id), below(id)) == ("the queue", [])


def test_letters_of_later_are_checked_at_the_end_of_each_run(
    engine_with: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, checked = engine_with(), list[object]()
    monkeypatch.setattr("flows.run_queue.check_early", checked.append)
    run(run_queue)
    assert checked == [engine.intake]


def test_a_letter_that_has_to_wait_has_no_send(engine_with: Build, letter: str) -> None:
    engine_with(FromNoon(), SEND_WINDOW="01:00-02:00")
    id = run(send_mailout, letter)
    assert kinds(steps_of(id, most=4)) == [step for step in STEPS if step != "send"]


def test_a_source_that_is_away_for_a_moment_costs_a_retry_and_no_letter(
    engine_with: Build, letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_with()
    read, tries = engine.intake.letters.read, []

    def away_at_first(ref: str) -> Any:
        tries.append(ref)
        if len(tries) == 1:
            raise SourceUnavailable("Notion is away.")
        return read(ref)

    monkeypatch.setattr(engine.intake.letters, "read", away_at_first)
    monkeypatch.setattr("tasks.steps.load_mailout.retry_delay_seconds", 0)
    assert send_mailout(letter, return_state=True).name == "Completed"
    assert len(tries) == 2


def test_a_file_that_does_not_answer_is_not_rendered_again_from_what_was_read(
    engine_with: Build, letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address may have expired, and everybody's letters would wait."""
    engine = engine_with()
    tries = []

    def away(loaded: Any) -> Any:
        tries.append(loaded)
        raise SourceUnavailable("The file's host is away.")

    monkeypatch.setattr(engine.intake, "enqueue_loaded", away)
    monkeypatch.setattr("tasks.steps.render_content.retry_delay_seconds", 0)
    send_mailout(letter, return_state=True)
    assert len(tries) == 1


def test_what_must_not_be_sent_is_refused_at_once(engine_with: Build, tmp_path: Path) -> None:
    """A retry would only make whoever waits wait longer."""
    engine_with()
    state = send_mailout(letter_file(tmp_path, " "), return_state=True)  # no subject
    assert state.is_failed()
    steps = steps_of(state.state_details.flow_run_id, most=2)
    assert [(one.name.partition(":")[0], one.run_count) for one in steps] == [
        ("load mailout", 1),
        ("render content", 1),
    ]


def every_task() -> dict[str, list[Task[..., Any]]]:
    found: dict[str, list[Task[..., Any]]] = {}
    for module in pkgutil.iter_modules(tasks.__path__, "tasks."):
        for _, one in inspect.getmembers(
            importlib.import_module(module.name), lambda member: isinstance(member, Task)
        ):
            found.setdefault(one.name, []).append(one)
    return found


def test_all_steps_but_send_are_retried() -> None:
    retried = {name: {one.retries for one in every_task()[name]} for name in STEPS}
    assert retried == {step: {0} if step == "send" else {3} for step in STEPS}


def test_artifacts_have_keys_and_descriptions_that_people_can_read(engine_with: Build, letter: str) -> None:
    engine_with()
    id = run(send_mailout, letter, True)
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(
            artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[id]))
        )
    assert {str(one.key).rpartition("-")[0] for one in found} == {
        "progress-hello",
        "ledger-hello",
        "report-hello",
    }
    assert all(str(one.description).startswith("“Hello (test)”: ") for one in found)


def test_the_run_form_asks_only_what_a_person_can_answer() -> None:
    chosen: Flow[..., Any] = send_mailout
    assert set(chosen.parameters.properties) == {"ref", "test"}
    assert chosen.validate_parameters({"ref": "a.md", "if_ready": True, "asked": True})["asked"] is True
