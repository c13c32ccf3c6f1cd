"""The sender: nobody twice, nobody left out, the pace kept, and every ending clean."""

from __future__ import annotations

import bisect
import random
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count, cycle, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailout.adapters.journals.files import FileJournals
from mailout.adapters.sqlite import SqliteStore
from mailout.base.errors import NotFound, StoreError, StoreMismatch, StoreRolledBack, StoreUnavailable
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.calls import JOURNAL_AHEAD_SECONDS
from mailout.outbox.delivery.options import Ended
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import (
    Attempt,
    Claimed,
    Halt,
    Outcome,
    OutcomeKind,
    Pace,
    RetryPlan,
    Step,
    StepReply,
    Timing,
)
from mailout.outbox.delivery.recovery import reap, require_known
from mailout.outbox.delivery.states import State
from mailout.outbox.delivery.throttling import Throttling
from mailout.outbox.queue.mailout import DeferReason
from tests.clocks import FakeClock
from tests.contract import scenes
from tests.unit.outbox.delivery.sending import (
    BUCKETS,
    MAILOUT,
    ListTransport,
    MemoryJournal,
    MemoryJournals,
    Scene,
    mail_of,
    scene,
)


@pytest.fixture
def directory() -> Iterator[Path]:
    with TemporaryDirectory() as path:
        yield Path(path)


def transient(code: str = "SES_SERVICE_UNAVAILABLE") -> Outcome:
    return Outcome(OutcomeKind.TRANSIENT, code=code, category="TRANSIENT_ERROR", message="try again")


def test_everybody_receives_it_once_in_the_order_of_addresses(directory: Path) -> None:
    it = scene(directory, 120)
    report = it.sender().run(MAILOUT)
    assert report.ended is Ended.DONE
    assert list(it.transport.accepted.items()) == [(email, 1) for email in it.people]
    assert report.ledger is not None
    assert report.ledger.sent == 120


@pytest.mark.parametrize("rate", [0.5, 1, 5, 14, 50, 200])
def test_starts_are_never_closer_than_the_rate_allows(directory: Path, rate: float) -> None:
    it = scene(directory, min(400, max(6, int(rate * 3))), latency=0.001)
    it.sender(rate=rate).run(MAILOUT)
    starts = it.transport.starts
    gaps = [after - before for before, after in pairwise(starts)]
    assert min(gaps) >= 1 / rate - 1e-9
    # A virtual clock loses no time: the pace is the setting's, less its half percent of slack.
    assert (len(starts) - 1) / (starts[-1] - starts[0]) == pytest.approx(rate / 1.005, rel=0.01)


@pytest.mark.parametrize("rate", [14, 50, 200, 1000])
def test_a_bulk_call_reserves_a_slot_for_each_of_its_messages(directory: Path, rate: float) -> None:
    it = scene(directory, int(rate * 3), latency=0.0, max_batch=50)
    it.sender(rate=rate).run(MAILOUT)
    messages = [
        start
        for start, size in zip(it.transport.starts, it.transport.sizes, strict=True)
        for _ in range(size)
    ]
    fullest = max(bisect.bisect_left(messages, start + 1) - i for i, start in enumerate(messages))
    assert max(it.transport.sizes) > 1
    assert fullest <= rate + max(1, rate / 100)


def test_a_slow_transport_is_late_and_never_catches_up_in_a_burst(directory: Path) -> None:
    it = scene(directory, 60, latency=0.3)
    it.sender(rate=14).run(MAILOUT)
    gaps = [b - a for a, b in pairwise(it.transport.starts)]
    assert min(gaps) >= 1 / 14
    assert it.transport.accepted.total() == 60


def test_a_message_was_sent_when_it_was_answered_not_when_that_was_written_down(directory: Path) -> None:
    it = scene(directory, 30, latency=0.01)
    it.sender(rate=14).run(MAILOUT)
    difference = it.clock.wall - it.clock.steady
    answered = [start + 0.01 + difference for start in it.transport.starts]
    sent = [row["sent_at"] for row in outbox_rows.messages(it.store, MAILOUT, limit=100)]
    assert sent == pytest.approx(answered, abs=1e-6)


class Drowsy(FakeClock):
    """As machines are: it wakes late, now and then by much. A last moment is spent awake."""

    def __init__(self, late: Sequence[float]) -> None:
        super().__init__()
        self._late = cycle(late)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds + next(self._late) if seconds > JOURNAL_AHEAD_SECONDS else max(0.0, seconds))


@pytest.mark.parametrize("rate", [50, 200])
def test_waking_late_costs_no_slot(directory: Path, rate: float) -> None:
    """If each start put off all that follow, the lateness would add up until slots are lost; and if nothing
    did, those that are late would start in a burst."""
    clock = Drowsy([0.0001] * 40 + [0.003])
    it = scene(directory, int(rate * 4), clock)
    it.sender(rate=rate).run(MAILOUT)
    starts = it.transport.starts
    assert (len(starts) - 1) / (starts[-1] - starts[0]) == pytest.approx(rate, rel=0.01)
    closest = 1.0 if rate <= 50 else 0.9
    assert min(after - before for before, after in pairwise(starts)) >= closest / rate - 1e-9


class Uneven(ListTransport):
    """Its answers take as long as the script says, in turn."""

    def script(self, latencies: Sequence[float]) -> Uneven:
        self.latencies = cycle(latencies)
        return self

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        self.latency = next(self.latencies)
        self.order = [*getattr(self, "order", []), *(mail.to for mail in mails)]
        return super().send(mails)


BUSY = [0.0] * 7 + [0.03] + [0.0] * 5 + [0.35] + [0.0] * 30 + [1.6]
"""A machine that has something else to do: most calls are quick, some take longer than several slots."""


@pytest.mark.parametrize("rate", [5, 14, 50, 200, 1000])
def test_one_lane_keeps_the_order_of_addresses_also_when_slots_are_lost(directory: Path, rate: float) -> None:
    """Somebody watches the mailout go by: whoever lost a slot must not be the last of all."""
    it = scene(directory, 300, Drowsy([0.0] * 20 + [0.004, 0.0, 0.2]))
    it.transport = transport = Uneven(it.clock).script(BUSY)
    assert it.sender(rate=rate).run(MAILOUT).ended is Ended.DONE
    assert transport.order == it.people
    gaps = [after - before for before, after in pairwise(transport.starts)]
    assert min(gaps) >= (1.0 if rate <= 50 else 0.9) / rate - 1e-9
    starts = transport.starts
    fullest = max(bisect.bisect_left(starts, start + 1 - 1e-9) - i for i, start in enumerate(starts))
    assert fullest <= rate + max(1, rate / 100)


@pytest.mark.parametrize("kind", ["hour", "day"])
@pytest.mark.parametrize("rate", [0, 5, 50, 500, 1000])
def test_a_limit_is_reached_exactly_also_when_slots_are_lost(directory: Path, rate: float, kind: str) -> None:
    """A busy machine withdraws many: what they give back is used, and not left over."""
    it = scene(directory, 150, Drowsy([0.0] * 9 + [0.05]))
    it.transport = Uneven(it.clock).script([0.0] * 89 + [0.05] + [0.0] * 60)  # the last ten lose theirs
    limit = tuple(replace(bucket, limit=100 if bucket.kind == kind else None) for bucket in BUCKETS)
    report = it.sender(rate=rate, buckets=lambda now: limit).run(MAILOUT)
    assert (report.ended, report.limited) == (Ended.LIMITED, kind)
    assert it.states() == {State.SENT: 100, State.PENDING: 50}
    assert outbox_rows.usage(it.store, "all", "hour", "h") == 100


@pytest.mark.parametrize("kind", ["hour", "day"])
def test_a_letter_that_just_fits_into_a_limit_is_done(directory: Path, kind: str) -> None:
    """Everybody had it, and it waited for the next hour, or the next day, to say so."""
    it = scene(directory, 20)
    limit = tuple(replace(bucket, limit=20 if bucket.kind == kind else None) for bucket in BUCKETS)
    assert it.sender(buckets=lambda now: limit).run(MAILOUT).ended is Ended.DONE
    assert it.states() == {State.SENT: 20}


def test_a_limit_waits_for_what_other_senders_may_give_back(directory: Path) -> None:
    """Two senders share the last of the hour; one withdraws: the other takes its place before it gives up."""
    it = scene(directory, 20)
    limit = tuple(replace(bucket, limit=10) for bucket in BUCKETS)
    other = it.store.open_session(MAILOUT, worker="other", transport="list", lease=60.0)
    pace = Pace("list", 0.0)
    held = it.store.step(Step(other, 1, 60.0, pace, want=4, buckets=limit)).rows
    waits = 0

    class Withdrawing(Flaky):
        def step(self, step: Step) -> StepReply:
            nonlocal waits
            reply = super().step(step)
            waits += bool(reply.limited)
            if waits == 8:
                withdraw = [row.attempt for row in held]
                it.store.step(Step(other, 2, 60.0, pace, withdraw=withdraw, close=True))
            return reply

    report = it.sender(Withdrawing(it.store, {}), buckets=lambda now: limit).run(MAILOUT)
    assert (report.ended, report.limited) == (Ended.LIMITED, "hour")
    assert it.states() == {State.SENT: 10, State.PENDING: 10}


@pytest.mark.parametrize("rate", [100, 1000])
def test_a_late_bulk_call_makes_no_second_too_full(directory: Path, rate: float) -> None:
    """Only half a percent lies between the last call of one second and the first of the next."""
    it = scene(directory, int(rate * 4), Drowsy([0.0, 0.008, 0.0, 0.0]), max_batch=50)
    it.sender(rate=rate).run(MAILOUT)
    sizes = dict(zip(it.transport.starts, it.transport.sizes, strict=True))
    fullest = max(sum(n for at, n in sizes.items() if start <= at < start + 1) for start in sizes)
    assert fullest <= rate + max(1, rate / 100)


@pytest.mark.parametrize("variants", [1, 3, 50])
def test_a_bulk_call_holds_one_content_and_the_pace_is_kept(directory: Path, variants: int) -> None:
    """50 variants in one step as 50 calls within one call's time limit: the last would have none left."""
    it = scene(directory, 600, latency=0.0005, max_batch=50)
    with it.store.db.write() as tx:
        for n in range(variants):
            tx.execute(
                "UPDATE email_outbox SET from_name = ? WHERE seq % ? = ?", (f"sender {n}", variants, n)
            )
    calls: list[set[str]] = []

    class Named(ListTransport):
        def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
            calls.append({mail.from_name for mail in mails})
            return super().send(mails)

    it.transport = Named(it.clock, latency=0.0005, max_batch=50)
    assert (
        it.sender(rate=200, compose=lambda row: replace(mail_of(row), from_name=row.from_name))
        .run(MAILOUT)
        .ended
        is Ended.DONE
    )
    assert all(len(names) == 1 for names in calls)
    assert it.transport.accepted == dict.fromkeys(it.people, 1)
    sizes = list(zip(it.transport.starts, it.transport.sizes, strict=True))
    fullest = max(sum(n for at, n in sizes if start <= at < start + 1 - 1e-9) for start, _ in sizes)
    assert fullest <= 200 + 2
    took = it.transport.starts[-1] - it.transport.starts[0]
    assert took < 600 / 200 * 1.25


def test_one_bad_address_does_not_keep_the_letter_from_the_others(directory: Path) -> None:
    def answer(mail: Mail, nth: int) -> Outcome | None:
        bad = mail.to.startswith("p00003")
        return Outcome(OutcomeKind.PERMANENT, code="SES_MESSAGE_REJECTED") if bad else None

    it = scene(directory, 20, answer=answer)
    report = it.sender().run(MAILOUT)
    assert report.ended is Ended.DONE
    assert it.states() == {State.SENT: 19, State.FAILED: 1}


def test_a_transient_error_is_retried_after_its_delay_and_the_fifth_is_the_last(directory: Path) -> None:
    it = scene(directory, 1, answer=lambda mail, nth: transient())
    it.sender(circuit_failures=100).run(MAILOUT)
    assert it.states() == {State.FAILED: 1}
    gaps = [b - a for a, b in pairwise(it.transport.starts)]
    for gap, delay in zip(gaps, (1, 5, 30, 120), strict=True):
        assert 0.75 * delay <= gap <= 1.25 * delay + 0.6


def test_the_jitter_is_the_same_every_time(directory: Path) -> None:
    runs = []
    for name in ("one", "two"):
        (directory / name).mkdir()
        it = scene(directory / name, 1, answer=lambda mail, nth: transient())
        it.sender(circuit_failures=100).run(MAILOUT)
        runs.append(it.transport.starts)
    assert runs[0] == runs[1]


def test_an_unknown_outcome_is_never_sent_again_by_itself(directory: Path) -> None:
    lost = Outcome(OutcomeKind.UNKNOWN, code="SES_TIMEOUT", category="TIMEOUT_ERROR", message="no answer")
    it = scene(directory, 10, answer=lambda mail, nth: lost if nth == 4 else None)
    report = it.sender().run(MAILOUT)
    assert report.ended is Ended.DONE
    assert it.states() == {State.SENT: 9, State.UNKNOWN: 1}
    assert it.transport.calls == 10
    assert it.store.complete(MAILOUT).outcome == "failed"


def test_throttling_slows_the_pace_and_costs_no_attempt(directory: Path) -> None:
    throttled = Outcome(OutcomeKind.THROTTLED, code="SES_THROTTLING", category="QUOTA_ERROR")
    it = scene(directory, 60, answer=lambda mail, nth: throttled if nth in (10, 11, 12) else None)
    report = it.sender(rate=20).run(MAILOUT)
    assert report.ended is Ended.DONE
    assert it.transport.accepted.total() == 60
    assert {row["attempts"] for row in outbox_rows.messages(it.store, MAILOUT)} == {1}
    starts = it.transport.starts
    assert min(b - a for a, b in pairwise(starts[20:])) > 1 / 20 / 0.9


THROTTLED = Outcome(OutcomeKind.THROTTLED, code="SES_THROTTLING", category="QUOTA_ERROR", message="Slow down")


@pytest.mark.parametrize(("rate", "recipients"), [(5, 200), (200, 2000), (0, 2000), (14, 3)])
def test_a_minute_of_nothing_but_throttling_ends_the_run(
    directory: Path, rate: float, recipients: int
) -> None:
    """Also over several runs of the same process; nobody has spent an attempt or counts for a limit."""
    it = scene(directory, recipients, answer=lambda mail, nth: THROTTLED)
    throttling, begin = Throttling(), it.clock.steady
    ended = Ended.DEADLINE
    while ended is Ended.DEADLINE:
        report = it.sender(throttling=throttling, rate=rate).run(MAILOUT, deadline=it.clock.steady + 20)
        ended = report.ended
    assert (ended, report.outcome) == (Ended.THROTTLED, THROTTLED)
    assert 60 <= it.clock.steady - begin < 130
    assert it.transport.calls < max(60, 15 * (rate or 1000))  # a third of the rate's, at the most
    assert it.states() == {State.PENDING: recipients}
    assert {row["attempts"] for row in outbox_rows.messages(it.store, MAILOUT)} == {0}
    assert outbox_rows.usage(it.store, "all", "hour", "h") == 0
    # It has waited; the next time it is tried again, and not given up for what was.
    it.transport.answer = lambda mail, nth: None
    assert it.sender(throttling=throttling).run(MAILOUT).ended is Ended.DONE


def test_a_message_that_alone_is_throttled_spends_an_attempt_every_fifth_time(directory: Path) -> None:
    """Else it is tried for ever, and the mailout never ends."""
    it = scene(directory, 400, answer=lambda mail, nth: THROTTLED if mail.to.startswith("p00003") else None)
    throttling = Throttling()
    while it.sender(throttling=throttling, rate=5).run(MAILOUT).ended is Ended.THROTTLED:
        it.clock.sleep(60.0)  # the queue's pause: nobody else is left
    assert it.states() == {State.SENT: 399, State.FAILED: 1}
    (failed,) = outbox_rows.messages(it.store, MAILOUT, states=[State.FAILED])
    assert (failed["attempts"], failed["error_code"]) == (5, "SES_THROTTLING")
    assert it.transport.calls == 399 + 5 * 5


def test_the_last_message_of_all_is_not_throttled_for_ever(directory: Path) -> None:
    """Nobody else is left to tell whether it is the account: it spends its attempts, but over minutes."""
    it = scene(directory, 1, answer=lambda mail, nth: THROTTLED)
    throttling, begin, pauses = Throttling(), it.clock.steady, 0
    while it.sender(throttling=throttling, rate=5).run(MAILOUT).ended is Ended.THROTTLED:
        it.clock.sleep(60.0)  # the queue's pause
        pauses += 1
    assert it.states() == {State.FAILED: 1}
    assert pauses >= 1
    assert it.clock.steady - begin > 240


@pytest.mark.parametrize(
    ("kind", "ended"), [(OutcomeKind.STOP, Ended.REFUSED), (OutcomeKind.QUOTA, Ended.LIMITED)]
)
def test_a_refused_account_ends_the_run_and_leaves_the_rest_pending(
    directory: Path, kind: OutcomeKind, ended: Ended
) -> None:
    it = scene(directory, 50, answer=lambda mail, nth: Outcome(kind, code="X") if nth > 5 else None)
    report = it.sender(rate=50).run(MAILOUT)
    assert report.ended is ended
    assert report.outcome is not None
    assert it.states() == {State.SENT: 5, State.PENDING: 45}
    assert outbox_rows.usage(it.store, "all", "hour", "h") == 5


UNVERIFIED = Outcome(OutcomeKind.PERMANENT, code="RECIPIENT_NOT_VERIFIED", category="PERMANENT_ERROR")


@pytest.mark.parametrize("batch", [1, 20])
def test_in_the_sandbox_three_messages_fail_and_the_others_wait(directory: Path, batch: int) -> None:
    """Each of a million would fail for good, and a call with fifty entries would fail fifty."""
    it = scene(directory, 60, answer=lambda mail, nth: UNVERIFIED if nth > 5 else None)
    it.transport.max_batch = batch
    report = it.sender(rate=50).run(MAILOUT)
    assert report.ended is Ended.REFUSED
    assert report.outcome is not None
    assert report.outcome.code == "SES_ACCOUNT_IN_SANDBOX"
    assert "still in the sandbox" in (report.outcome.message or "")
    assert it.states() == {State.SENT: 5, State.FAILED: 3, State.PENDING: 52}


def test_a_few_unverified_recipients_among_others_hold_up_nobody(directory: Path) -> None:
    it = scene(directory, 30, answer=lambda mail, nth: UNVERIFIED if nth % 3 else None)
    assert it.sender(rate=50).run(MAILOUT).ended is Ended.DONE
    assert it.states() == {State.SENT: 10, State.FAILED: 20}


def test_a_mailout_to_three_unverified_people_is_done_and_waits_for_nobody(directory: Path) -> None:
    it = scene(directory, 3, answer=lambda mail, nth: UNVERIFIED)
    assert it.sender(rate=50).run(MAILOUT).ended is Ended.DONE
    assert it.states() == {State.FAILED: 3}


def test_too_many_transient_errors_in_a_row_open_the_circuit(directory: Path) -> None:
    it = scene(directory, 100, answer=lambda mail, nth: transient() if nth > 10 else None)
    report = it.sender(rate=50, circuit_failures=20).run(MAILOUT)
    assert report.ended is Ended.CIRCUIT
    assert it.transport.calls < 60
    assert it.states()[State.PENDING] + it.states()[State.RETRY_SCHEDULED] == 90


def test_a_paused_mailout_ends_its_run_and_goes_on_where_it_was(directory: Path) -> None:
    def answer(mail: Mail, nth: int) -> None:
        if nth == 7:
            it.store.defer(MAILOUT, DeferReason.PAUSED, None)

    it = scene(directory, 40, answer=answer)
    report = it.sender(rate=10).run(MAILOUT)
    assert (report.ended, report.halt) == (Ended.HALTED, Halt.PAUSED)
    it.store.resume(MAILOUT)
    it.store.start(MAILOUT, "test")
    assert it.sender(rate=10).run(MAILOUT).ended is Ended.DONE
    assert set(it.transport.accepted.values()) == {1}
    assert it.transport.accepted.total() == 40


def test_a_stop_releases_what_is_held(directory: Path) -> None:
    def answer(mail: Mail, nth: int) -> None:
        if nth == 5:
            sender.stop()

    it = scene(directory, 40, answer=answer)
    sender = it.sender(rate=20)
    assert sender.run(MAILOUT).ended is Ended.STOPPED
    states = it.states()
    assert State.SENT_ATTEMPT not in states
    assert State.UNKNOWN not in states
    assert states[State.SENT] == it.transport.accepted.total()
    assert outbox_rows.usage(it.store, "all", "hour", "h") == states[State.SENT]


def test_a_signal_raised_in_the_middle_leaves_nothing_in_the_air(directory: Path) -> None:
    """Prefect ends a flow by raising in its thread; the messages in hand must not stay in flight."""

    class Interrupting:
        def __init__(self, store: Any) -> None:
            self.steps, self.store = 0, store

        def __getattr__(self, name: str) -> Any:
            return getattr(self.store, name)

        def step(self, step: Step) -> StepReply:
            reply = self.store.step(step)
            self.steps += 1
            if self.steps == 3:
                raise KeyboardInterrupt  # after the commit: what it began is unknown to the sender
            return reply

    it = scene(directory, 60)
    with pytest.raises(KeyboardInterrupt):
        it.sender(Interrupting(it.store), rate=10).run(MAILOUT)
    states = it.states()
    assert set(states) <= {State.SENT, State.PENDING}
    assert states[State.SENT] == it.transport.accepted.total()


class Flaky:
    """A store that fails by script: before it acts, or after it has committed and before it answers."""

    def __init__(self, store: Any, faults: dict[int, str]) -> None:
        self.store, self.faults, self.steps = store, faults, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def step(self, step: Step) -> StepReply:
        self.steps += 1
        fault = self.faults.get(self.steps)
        if fault == "before":
            raise StoreUnavailable("away")
        reply = self.store.step(step)
        if fault == "after":
            raise StoreUnavailable("the answer was lost")
        return reply


class LostEnd(Flaky):
    """Loses the first closing step, or the answer to it."""

    def __init__(self, store: Any, fault: str | None) -> None:
        super().__init__(store, {})
        self.fault = fault

    def step(self, step: Step) -> StepReply:
        if step.close and self.fault:
            self.faults, self.fault = {self.steps + 1: self.fault}, None
        return super().step(step)


@settings(max_examples=40, deadline=None)
@given(
    faults=st.dictionaries(st.integers(1, 40), st.sampled_from(["before", "after"]), max_size=25),
    rate=st.sampled_from([0, 5, 50]),
    latency=st.sampled_from([0.0, 0.05]),
)
def test_a_store_that_fails_for_a_while_delays_and_never_doubles_or_loses(
    faults: dict[int, str], rate: float, latency: float
) -> None:
    with TemporaryDirectory() as path:
        it = scene(Path(path), 60, latency=latency)
        report = it.sender(Flaky(it.store, faults), rate=rate).run(MAILOUT)
        assert report.ended is Ended.DONE
        assert it.transport.accepted == dict.fromkeys(it.people, 1)
        assert it.states() == {State.SENT: 60}
        assert outbox_rows.usage(it.store, "all", "hour", "h") == 60
        it.store.close()


@pytest.mark.parametrize("error", [StoreMismatch(), StoreError("403"), NotFound("no content")])
@pytest.mark.parametrize("nth", [1, 7])
def test_a_wrong_answer_while_a_content_is_read_fails_nobody(
    directory: Path, error: StoreError, nth: int
) -> None:
    """It ends the run, which says so; the next one sends to everybody who is left."""
    it = scene(directory, 12)
    composed = count(1)

    def compose(row: Claimed) -> Mail:
        if next(composed) == nth:
            raise error
        return mail_of(row)

    with pytest.raises(type(error)):
        it.sender(compose=compose, rate=5).run(MAILOUT)
    assert set(it.states()) <= {State.SENT, State.PENDING}
    assert it.sender().run(MAILOUT).ended is Ended.DONE
    assert it.transport.accepted == dict.fromkeys(it.people, 1)


def test_an_end_whose_answer_is_lost_is_an_end_and_nobody_was_given_up(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    it = scene(directory, 10)
    assert it.sender(LostEnd(it.store, "after")).run(MAILOUT).ended is Ended.DONE
    assert len(it.journals.journals) == 1
    assert "given up" not in caplog.text


def test_a_frozen_sender_that_wakes_after_it_was_given_up_sends_nothing_stale(directory: Path) -> None:
    """SIGSTOP on a virtual clock: a call lasts longer than lease and grace, and somebody reaps."""
    timing = Timing.of(12)

    def answer(mail: Mail, nth: int) -> None:
        if nth == 3:
            it.clock.sleep(timing.lease + timing.reap_grace + 1)
            assert it.store.reap(timing.reap_grace) > 0

    it = scene(directory, 40, answer=answer)
    report = it.sender(rate=10, timing=timing).run(MAILOUT)
    assert report.ended is Ended.DONE
    assert it.transport.accepted == dict.fromkeys(it.people, 1)
    assert it.states() == {State.SENT: 40}  # late results and withdrawals count by epoch


def test_a_stop_ends_a_sender_that_was_given_up_also_while_the_store_is_away(directory: Path) -> None:
    class Away(Flaky):
        """Goes once it has given the sender up."""

        def step(self, step: Step) -> StepReply:
            if self.faults:
                self.steps += 1
                assert self.steps < 100, "it never ends"
                sender.stop()
                raise StoreUnavailable("away")
            reply = self.store.step(step)
            self.faults = {1: "before"} if reply.fenced else {}
            return reply

    def answer(mail: Mail, nth: int) -> None:
        if nth == 3:
            it.store.reap(-1000.0)  # while it holds others

    it = scene(directory, 40, answer=answer)
    sender = it.sender(Away(it.store, {}), rate=10)
    with pytest.raises(StoreUnavailable, match="journal"):
        sender.run(MAILOUT)
    assert [journal.closed for journal in it.journals.journals.values()] == [None]


@pytest.mark.parametrize("counts_sleep", [True, False])
def test_a_machine_that_slept_sends_nothing_that_others_have_sent(
    directory: Path, counts_sleep: bool
) -> None:
    """Between journal and call. The clock of a paused virtual machine stands still; only its time is set."""
    timing = Timing.of(12)
    slept: list[str] = []

    class Sleepy(MemoryJournal):
        def call(self, attempts: Sequence[Attempt]) -> None:
            super().call(attempts)
            if len(self.called) == 3 and not slept:
                slept.extend(attempt.id for attempt in attempts)
                for seconds in (timing.lease + timing.reap_grace + 1, timing.settle_wait):
                    it.clock.wall += seconds
                    it.clock.steady += seconds if counts_sleep else 0.0
                    it.store.reap(timing.reap_grace)
                messages = outbox_rows.messages(it.store, MAILOUT, states=[State.UNKNOWN])
                unsent = [
                    message["id"] for message in messages if not it.transport.accepted[message["email"]]
                ]
                it.store.settle(MAILOUT, State.PENDING, wait=timing.settle_wait, ids=unsent)
                replace(it.sender(timing=timing), journals=MemoryJournals()).run(MAILOUT)

    it = scene(directory, 40)
    journals: Any = it.journals
    journals.open = lambda session: journals.journals.setdefault(session, Sleepy())
    it.sender(rate=10, timing=timing).run(MAILOUT)
    assert it.transport.accepted == dict.fromkeys(it.people, 1)
    assert it.states() == {State.SENT: 40}
    first = next(iter(it.journals.journals.values()))
    assert {attempt.id for attempt in first.voided} == set(slept)  # the journal knows that it did not leave


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), kills=st.integers(1, 8))
def test_a_killed_process_is_taken_over_by_its_journal(seed: int, kills: int) -> None:
    """A kill inside a call: at most that call is unknown; all else is sent or waits again."""

    class Killed(BaseException):
        pass

    chance = random.Random(seed)
    with TemporaryDirectory() as path:
        it = scene(Path(path), 50)
        left = kills
        moments = chance.sample(range(1, 50), kills)

        def answer(mail: Mail, nth: int) -> None:
            nonlocal left
            if nth in moments:
                left -= 1
                if chance.random() < 0.5:
                    it.transport.accepted[mail.to] += 1  # it was accepted, and nobody heard
                raise Killed

        it.transport.answer = answer
        for _ in range(kills + 1):
            sender = it.sender(Killable(it.store, Killed), rate=chance.choice([0, 20]))
            try:
                report = sender.run(MAILOUT)
            except Killed:
                it.journals.die()
                continue
            break
        assert report.ended is Ended.DONE
        assert max(it.transport.accepted.values()) == 1
        states = it.states()
        assert states[State.SENT] + states[State.UNKNOWN] == 50
        assert states[State.UNKNOWN] <= kills
        it.store.close()


class Killable:
    """After the kill, the dead process touches the store no more."""

    def __init__(self, store: Any, killed: type[BaseException]) -> None:
        self.store, self.killed = store, killed
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def step(self, step: Step) -> StepReply:
        if isinstance(sys.exc_info()[1], self.killed) or self.dead:
            self.dead = True
            raise RuntimeError("dead")
        return self.store.step(step)


def test_a_store_set_back_to_an_earlier_day_is_refused(directory: Path) -> None:
    """A restored backup does not know what went out since: sending on would send it again."""
    it = scene(directory, 10)
    it.sender().run(MAILOUT)
    it.journals.die()
    (directory / "restored").mkdir()
    restored = scene(directory / "restored", 10)
    restored.journals = it.journals
    with pytest.raises(StoreRolledBack):
        restored.sender().run(MAILOUT)
    assert not restored.transport.accepted


@pytest.mark.parametrize("lost", [None, "before", "after"])
def test_a_backup_from_the_middle_of_the_last_session_is_refused_and_the_newest_store_is_not(
    directory: Path, lost: str | None
) -> None:
    """The backup knows the session, and not what it sent afterwards; the answer to its end may be lost."""

    def answer(mail: Mail, nth: int) -> None:
        if nth == 20:
            with closing(sqlite3.connect(directory / "mailout.db")) as store:
                store.execute("VACUUM INTO ?", (str(directory / "backup.db"),))

    it = scene(directory, 40, answer=answer)
    journals = FileJournals(directory / "journal")
    assert (
        replace(it.sender(LostEnd(it.store, lost), rate=10), journals=journals).run(MAILOUT).ended
        is Ended.DONE
    )
    assert reap(it.store, journals, 0.0, check_closed=True) == 0
    restored = SqliteStore(directory / "backup.db", it.clock)
    with pytest.raises(StoreRolledBack):
        replace(it.sender(restored), journals=journals).run(MAILOUT)
    with pytest.raises(StoreRolledBack):  # as `doctor` asks
        require_known(restored, journals.look())
    assert it.transport.accepted == dict.fromkeys(it.people, 1)
    restored.close()


def test_a_dead_sender_that_another_machine_gave_up_first_is_no_backup(directory: Path) -> None:
    """Its journal is cleared by a step that the store refuses, and that must not count as one it has had."""
    it = scene(directory, 10)
    dead = scenes.Sender(it.store, MAILOUT)
    it.journals.open(dead.session).call([dead.begin_one().attempt])
    it.journals.die()
    assert it.store.reap(-1000.0) == 1
    for _ in range(2):
        assert reap(it.store, it.journals, 0.0, check_closed=True) == 0
    assert it.journals.journals[dead.session].closed == 1


def test_it_is_refused_also_while_another_process_looks_at_the_journals(directory: Path) -> None:
    """Two that begin together, as under `mailout up`: what the first one holds is no living sender's."""
    it = scene(directory, 10)
    journals = FileJournals(directory / "journal")
    replace(it.sender(), journals=journals).run(MAILOUT)
    (directory / "restored").mkdir()
    restored = scene(directory / "restored", 10)
    with journals.dead(), pytest.raises(StoreRolledBack):
        replace(restored.sender(), journals=journals).run(MAILOUT)
    assert not restored.transport.accepted


def test_articles_try_four_times(directory: Path) -> None:
    it = scene(directory, 1, answer=lambda mail, nth: transient())
    it.sender(retry=RetryPlan(4, (1, 4, 10)), circuit_failures=100).run(MAILOUT)
    assert it.transport.calls == 4


def test_the_scene_itself_is_sound(directory: Path) -> None:
    it: Scene = scene(directory, 3)
    assert it.states() == {State.PENDING: 3}


@pytest.mark.parametrize(("rate", "latency"), [(14, 0.12), (200, 0.08)])
def test_calls_slower_than_the_rate_are_kept_busy(directory: Path, rate: float, latency: float) -> None:
    """One call at a time and a generous account: the letter must not take twice as long as its calls."""
    it = scene(directory, 60, latency=latency)
    it.sender(rate=rate).run(MAILOUT)
    starts = it.transport.starts
    assert (len(starts) - 1) / (starts[-1] - starts[0]) > 0.6 / latency
