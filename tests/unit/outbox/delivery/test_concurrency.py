"""How many calls are in flight without anybody having set it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from mailout.base.clock import SystemClock
from mailout.outbox.delivery.concurrency import CallsInFlight
from mailout.outbox.delivery.options import Ended
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind
from tests.unit.outbox.delivery.sending import MAILOUT, ListTransport, scene

SENT = [Outcome(OutcomeKind.SENT, provider_message_id="1")]
LOST = [Outcome(OutcomeKind.UNKNOWN)]
REFUSED = [Outcome(OutcomeKind.TRANSIENT)]
THROTTLED = [Outcome(OutcomeKind.THROTTLED)]


def after(calls: CallsInFlight, *told: tuple[Sequence[Outcome], float]) -> int:
    for outcomes, took in told:
        calls.learn(outcomes, took)
    return calls.allowed


@pytest.mark.parametrize(
    ("rate", "group", "latency", "allowed"),
    [
        (5, 1, 2.0, 1),  # one at a time, as seed 000 says
        (14, 1, 0.1, 3),  # two answers are waited for while a third call waits for its slot
        (50, 1, 0.1, 6),
        (200, 1, 0.1, 21),
        (200, 1, 3.0, 50),
        (1000, 50, 0.1, 3),
        (0, 1, 0.0005, 2),
        (0, 1, 0.0195, 21),
        (0, 50, 0.0795, 9),
    ],
)
def test_as_many_calls_as_rate_and_latency_need(rate, group, latency, allowed):
    calls = CallsInFlight(None, rate, group)
    assert calls.allowed == 1  # nothing is known yet
    assert after(calls, *[(SENT, latency)] * 20) == allowed


def test_latencies_that_differ_get_room():
    """Counted by the mean alone, slots would be lost whenever a few answers are slow."""
    steady, uneven = CallsInFlight(None, 50, 1), CallsInFlight(None, 50, 1)
    assert after(uneven, *[(SENT, 0.05), (SENT, 0.15)] * 20) > after(steady, *[(SENT, 0.1)] * 40)


@pytest.mark.parametrize("setting", [None, 8, 200])
def test_after_a_call_without_an_answer_there_is_one_at_a_time_until_an_answer_comes(setting):
    """A provider that hangs must not put fifty messages in doubt."""
    calls = CallsInFlight(setting, 200, 1)
    before = after(calls, *[(SENT, 0.1)] * 5)
    assert before == (setting or 21)
    assert after(calls, (LOST, 30.0)) == 1
    assert after(calls, (REFUSED, 5.0)) == 1  # it never got there
    assert after(calls, (THROTTLED, 0.1)) == before  # an answer, though no good one


def test_only_answered_calls_count_as_latency():
    """Thirty seconds of waiting in vain would ask for fifty calls at a time."""
    calls = CallsInFlight(None, 50, 1)
    after(calls, (SENT, 0.1), (LOST, 30.0), (REFUSED, 5.0), (THROTTLED, 0.001))
    assert calls.latency == 0.1


class Hanging(ListTransport):
    """Answers a few, each after a moment, then loses every answer; notes what is in flight."""

    def __init__(self, answered: int) -> None:
        super().__init__(clock=SystemClock())  # type: ignore[arg-type]
        self._answered = answered
        self._lock = threading.Lock()
        self._in_flight: set[str] = set()
        self.most = 0
        self.order: list[str] = []
        self.after_a_loss: list[set[str]] = []  # what was in flight already when a call began
        self._lost: set[str] | None = None  # in flight when the first answer was lost

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        (mail,) = mails
        with self._lock:
            self.order.append(mail.to)
            if self._lost is not None:
                self.after_a_loss.append(self._in_flight - self._lost)
            self._in_flight.add(mail.to)
            self.most = max(self.most, len(self._in_flight))
            is_lost = len(self.order) > self._answered
        time.sleep(0.03)
        with self._lock:
            self._in_flight.discard(mail.to)
            if is_lost and self._lost is None:
                self._lost = {*self._in_flight}
        self.accepted[mail.to] += 1
        return LOST if is_lost else [Outcome(OutcomeKind.SENT, provider_message_id=mail.to)]


def test_a_run_finds_out_by_itself_and_stops_at_once_when_answers_are_lost(tmp_path: Path) -> None:
    it = scene(tmp_path, 400)
    transport = it.transport = Hanging(answered=60)
    sender = it.sender(concurrency=None, inline=False, circuit_failures=60)
    sender.clock = SystemClock()
    report = sender.run(MAILOUT)
    assert report.ended is Ended.CIRCUIT
    assert transport.most > 3  # with one call at a time it would take 30 ms a message
    assert not any(transport.after_a_loss[-10:])  # one at a time, once those in flight have ended
    assert transport.order == sorted(transport.order)
    assert Counter(transport.order).most_common(1)[0][1] == 1
