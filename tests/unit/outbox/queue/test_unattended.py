"""When a second machine helps with what another one is sending."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mailout.app.queue_run import QueueRun
from mailout.base.errors import StoreError, StoreUnavailable
from mailout.outbox.queue.mailout import MailoutOutcome, Status
from mailout.outbox.queue.unattended import would_help
from tests.clocks import FakeClock
from tests.unit.outbox.delivery.sending import ListTransport
from tests.unit.outbox.queue.driving import Drive, Quiet, drive

RATE = 10


@pytest.mark.parametrize(
    ("speed", "rate", "pending", "helps"),
    [
        (4.0, 10.0, 1000, True),
        (9.9, 10.0, 1000, False),  # the pace is kept: a second one could only wait
        (4.0, 0.0, 1000, True),  # no pace to keep
        (4.0, 10.0, 79, False),  # done before a second one has begun
        (0.0, 10.0, 1000, False),  # waits for a retry, or is dead: that is for the lock to say
    ],
)
def test_who_could_go_faster_is_helped(speed: float, rate: float, pending: int, helps: bool) -> None:
    assert would_help(speed, rate, pending) is helps


@dataclass
class Slow(ListTransport):
    """Answers so late that one lane cannot keep the pace."""

    def send(self, mails: Any) -> Any:
        self.clock.sleep(0.25)
        return super().send(mails)


class Elsewhere(FakeClock):
    """Whenever the second machine waits, the first one goes on sending, until it is killed."""

    first: Drive | None = None
    id: str = ""

    def sleep(self, seconds: float) -> None:
        first, self.first = self.first, None
        if first is not None and seconds >= 1:
            until = self.now() + seconds
            first.engine.sending.conclude(self.id, first.engine.sending.send_for(self.id, seconds))
            seconds = until - self.now()
        self.first = first
        super().sleep(seconds)


@pytest.fixture
def clock() -> Elsewhere:
    return Elsewhere()


def begun(folder: Path, clock: Elsewhere, transport: type[ListTransport], people: int = 400) -> Drive:
    """A mailout that the first machine is in the middle of."""
    first = drive(folder, clock, transport, worker="first-1", SEND_RATE_PER_SEC=str(RATE))
    clock.id = first.add("letter", people)
    first.engine.sending.start(clock.id)
    first.engine.sending.send_for(clock.id, 5)
    clock.first = first
    return first


def test_a_second_machine_takes_its_share_of_what_is_too_slow(folder: Path, clock: Elsewhere) -> None:
    """Otherwise the second machine would watch for hours how the first one sends."""
    first = begun(folder, clock, Slow)
    second = drive(folder, clock, Slow, worker="second-1", SEND_RATE_PER_SEC=str(RATE))
    assert second.run().ended == [clock.id]
    done = second.store.mailout(clock.id)
    assert (done.status, done.outcome) == (Status.COMPLETED, MailoutOutcome.SENT)
    accepted = first.transport.accepted + second.transport.accepted
    assert (len(accepted), set(accepted.values())) == (400, {1})
    assert min(len(one.transport.accepted) for one in (first, second)) > 0


def test_what_goes_as_fast_as_it_may_is_left_alone(folder: Path, clock: Elsewhere) -> None:
    """A second process would cost memory and win nothing."""
    first = begun(folder, clock, ListTransport)
    second = drive(folder, clock, worker="second-1", SEND_RATE_PER_SEC=str(RATE))
    assert second.run().ended == []
    assert second.transport.accepted == {}
    assert first.store.mailout(clock.id).status is Status.PROCESSING


@pytest.mark.parametrize("error", [StoreError("refused"), StoreUnavailable("cannot do it just now")])
def test_the_trouble_of_one_who_joins_holds_up_nobody_else(
    folder: Path, clock: Elsewhere, error: StoreError
) -> None:
    first = begun(folder, clock, Slow)
    second = drive(folder, clock, Slow, worker="second-1", SEND_RATE_PER_SEC=str(RATE))

    class Breaks(Quiet):
        def begin(self, id: str) -> bool:
            raise error

    with pytest.raises(type(error)):
        QueueRun(second.engine.sending, Breaks(second.engine)).run()
    assert first.store.mailout(clock.id).status is Status.PROCESSING


def test_nobody_joins_while_everything_is_paused(folder: Path, clock: Elsewhere) -> None:
    begun(folder, clock, Slow).store.pause_all(True)
    second = drive(folder, clock, Slow, worker="second-1", SEND_RATE_PER_SEC=str(RATE))
    assert second.run().ended == []


def test_what_is_asked_for_meanwhile_is_found_between_two_time_slices(folder: Path, clock: Elsewhere) -> None:
    """A run may send for hours; a page that is Ready must not wait for its end."""
    made = drive(folder, clock, SEND_RATE_PER_SEC=str(RATE))
    long = made.add("long", 2000)
    looks: list[str] = []

    def look() -> None:
        looks.append("look")
        if len(looks) == 2:
            looks.append(made.add("urgent", 5, priority=9))

    ended = QueueRun(made.engine.sending, Quiet(made.engine), look).run()
    assert ended == [looks[2], long]
