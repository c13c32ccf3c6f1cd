"""A notification whose sender stood still: what its producer is told, when, and that nobody gets it twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mailout.outbox.delivery.options import RunReport
from mailout.outbox.delivery.protocol import Attempt, Claimed, Pace, Step
from mailout.outbox.delivery.states import State
from tests.contract.scenes import ACCOUNT, LEASE, result
from tests.contract.stores import StoreFactory
from tests.producer.scene import Scene

ANA = "ana@example.org"
LOST_AFTER = 900.0


@pytest.fixture
def scene(factory: StoreFactory, folder: Path) -> Iterator[Scene]:
    with closing(Scene(factory, folder)) as made:
        yield made


class StoodStillError(BaseException):
    pass


class FrozenSender:
    """It has begun a notification, and stands still before the call. `after`: runs that go well before."""

    def __init__(self, scene: Scene, after: int = 0) -> None:
        self._store, self._scene = scene.store, scene
        self._goes_well = after
        self.begun: Attempt | None = None
        with pytest.raises(StoodStillError):
            scene.run(name="there-1", send=self._send)
        scene.producer.free_locks()

    def _send(self, seconds: float) -> RunReport:
        if self._goes_well:
            self._goes_well -= 1
            return self._scene.send(seconds)
        self._session = self._store.open_session(None, worker="there-1", transport="ses", lease=LEASE)
        (claimed,) = self._step(1, want=1)
        self.begun = claimed.attempt
        raise StoodStillError

    def _step(self, n: int, **rest: Any) -> Sequence[Claimed]:
        return self._store.step(Step(self._session, n, LEASE, Pace(ACCOUNT, 0.0), **rest)).rows

    def wakes(self, *, called: bool) -> None:
        """It was accepted after all, or nothing has left: it says so, although it was given up."""
        assert self.begun is not None
        if called:
            self._scene.transport.accepted[ANA] += 1
        said = {"results": [result(self.begun)]} if called else {"withdraw": [self.begun]}
        self._step(2, **said)


def given_up(scene: Scene) -> None:
    """Another worker takes over: the sender's lease and the time after it are long over."""
    scene.wait(LEASE + 46)
    scene.run()


@pytest.mark.parametrize("called", [True, False])
def test_one_that_comes_back_is_waited_for_and_what_it_says_is_reported(scene: Scene, called: bool) -> None:
    id = scene.producer.one()
    sender = FrozenSender(scene)
    given_up(scene)
    scene.wait(LOST_AFTER - 10)
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"], row["error"]) == ("pending", 0, None)
    sender.wakes(called=called)
    scene.wait(6)
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"]) == ("sent", 1)
    assert scene.accepted == {ANA: 1}
    assert len(scene.producer.events()) == 1


@pytest.mark.parametrize("passed", [LOST_AFTER, -3600.0])
def test_one_that_does_not_come_back_leaves_a_notification_that_people_look_at(
    scene: Scene, passed: float
) -> None:
    """Also if the clock went back meanwhile: nobody waits an hour more for that."""
    id = scene.producer.one()
    FrozenSender(scene)
    given_up(scene)
    scene.producer.sql("UPDATE open_event_notifications SET locked_at = NULL")
    scene.clock.wall += passed
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["error"]["code"]) == ("failed", "outcome_unknown")
    assert not scene.accepted


def test_a_requeued_notification_is_sent_once_whenever_its_old_sender_wakes(
    scene: Scene, factory: StoreFactory
) -> None:
    id = scene.producer.one()
    sender = FrozenSender(scene)
    given_up(scene)
    scene.wait(LOST_AFTER)
    scene.run()
    scene.requeue(id)
    scene.run()
    sender.wakes(called=False)
    scene.run()
    scene.send(30)
    assert scene.accepted == {ANA: 1}
    assert scene.producer.row(id)["fanout_status"] == "sent"
    found = factory.raw("SELECT state FROM email_outbox ORDER BY seq")
    assert [row["state"] for row in found] == [State.FAILED, State.SENT]


def test_a_requeued_notification_is_sent_once_although_its_old_sender_woke_before(
    scene: Scene, factory: StoreFactory
) -> None:
    """What it never called waits in the outbox: the requeued one takes its place."""
    id = scene.producer.one()
    sender = FrozenSender(scene)
    given_up(scene)
    scene.wait(LOST_AFTER)
    scene.run()
    sender.wakes(called=False)
    scene.requeue(id)
    scene.run()
    scene.send(30)
    assert scene.accepted == {ANA: 1}
    found = factory.raw("SELECT state FROM email_outbox ORDER BY seq")
    assert [row["state"] for row in found] == [State.SUPPRESSED, State.SENT]


def test_whoever_looks_for_news_of_it_does_not_send_what_waits_beside_it_unasked(scene: Scene) -> None:
    """The worker died with it: one message begun, another one waiting."""
    people = [ANA, "bo@example.org", "cy@example.org"]
    scene.producer.many(people)
    FrozenSender(scene, after=1)
    scene.producer.sql("UPDATE subscriptions SET status = 'unsubscribed' WHERE contact_value LIKE 'cy%'")
    given_up(scene)
    assert scene.accepted == {ANA: 1}
    assert [row["fanout_status"] for row in scene.producer.rows()] == ["sent", "pending", "skipped"]
