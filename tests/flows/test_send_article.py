"""`send_article` as Prefect runs it: by hand, for a request, and by the queue if its event was lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from flows.run_queue import run_queue
from flows.send_article import send_article
from mailout.app.engine import Engine
from mailout.kinds.articles.order import ArticleOrder
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.port import Request, RequestKind
from tests.clocks import FakeClock, FromNoon
from tests.contract.articles import CLEO, SLICES, UNA, order, settle_in
from tests.flows.test_steps import STEPS, kinds, name_of, needed_by, steps_of

Build = Callable[..., Engine]


def run(wanted: ArticleOrder, **more: Any) -> Any:
    return send_article(**asdict(wanted), **more, return_state=True)


def history(engine: Engine) -> list[str]:
    (mailout,) = queue_rows.mailouts(engine.store)
    return sorted(
        row["email"] for row in outbox_rows.messages(engine.store, mailout.id) if row["state"] == "SENT"
    )


def test_a_batch_goes_out_once_and_its_census_is_an_artifact(engine_with: Build) -> None:
    engine = engine_with()
    settle_in(engine.store)
    empty = run(order(audience_filter={"state": "TX"}))
    assert (empty.name, queue_rows.mailouts(engine.store)) == ("No recipients", [])
    state = run(order())
    assert (state.name, state.message) == ("Completed", "2 sent, 0 failed, 0 unknown, 0 pending")
    (mailout,) = queue_rows.mailouts(engine.store)
    with get_client(sync_client=True) as client:
        key = ArtifactFilterKey(any_=[f"census-{mailout.id}"])
        assert len(client.read_artifacts(artifact_filter=ArtifactFilter(key=key))) == 1
    assert run(order()).message == state.message
    assert history(engine) == [CLEO, UNA]


def test_a_batch_goes_on_after_its_slices_have_expired(engine_with: Build) -> None:
    """It was stopped before its first message, and the rest of its readers were never written to."""
    clock = FromNoon()
    engine = engine_with(clock)
    settle_in(engine.store, [replace(one, expires_at=clock.now() + 60) for one in SLICES])
    assert engine.intake.articles.enqueue(order()) is not None
    engine_with(FakeClock(clock.now() + 120))
    assert run(order()).name == "Completed"
    assert history(engine) == [CLEO, UNA]


def test_it_shows_its_subject_and_its_steps_and_each_leads_to_the_next(engine_with: Build) -> None:
    settle_in(engine_with().store)
    id = run(order()).state_details.flow_run_id
    steps = steps_of(id)
    assert kinds(steps) == ["load slices", "assemble variants", *STEPS[2:]]
    assert name_of(id) == "The budget"
    for before, after in pairwise(steps[1:]):
        assert before.id in needed_by(after), after.name


def test_a_request_is_answered_by_its_event_or_else_by_the_queue(engine_with: Build) -> None:
    clock = FromNoon()
    engine = engine_with(clock)
    settle_in(engine.store)
    request = Request(order().to_ref(), RequestKind.ARTICLE)
    assert run(order(), asked=True).name == "Answered"  # nobody asks
    engine.store.ask(request, repeat=60)
    later = FakeClock(clock.now() + 120)
    engine_with(later)  # its event was lost
    run_queue()
    assert history(engine) == [CLEO, UNA]
    assert queue_rows.asked(engine.store, 0) == []
