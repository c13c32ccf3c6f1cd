"""The queue as people meet it, on a virtual clock: limits, turns, holds, a person's hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from mailout.adapters.sqlite import SqliteStore
from mailout.app.queue_run import QueueRun
from mailout.base.errors import NotFound, StoreDamaged, StoreError, StoreUnavailable, UsageError
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content import content_rows
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.options import Ended
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind
from mailout.outbox.queue import actions, queue_rows
from mailout.outbox.queue.mailout import DeferReason, Mailout, MailoutOutcome, NewMailout, Status
from tests.clocks import NOON, FakeClock
from tests.unit.outbox.delivery.sending import ListTransport
from tests.unit.outbox.queue.driving import Drive, Quiet, QuotaTransport, drive

MONDAY = 1_794_787_200.0  # 2026-11-16T00:00:00Z


def clock_time(mailout: Mailout) -> str:
    assert mailout.deferred_until is not None
    return f"{datetime.fromtimestamp(mailout.deferred_until, UTC):%a %H:%M}"


def set_metrics(made: Drive, id: str, **metrics: int) -> None:
    with made.store.db.write() as tx:
        tx.execute("UPDATE campaign_queue SET metrics = ? WHERE id = ?", (json.dumps(metrics), id))


# ── limits ──


def test_150_at_100_an_hour_are_100_now_and_50_at_the_next_full_hour(folder: Path) -> None:
    made = drive(folder, FakeClock(wall=NOON + 900), LIMIT_PER_HOUR="100")
    id = made.add("letter", 150)
    made.run()
    waits = made.store.mailout(id)
    assert (waits.status, waits.ledger.sent) == (Status.PENDING, 100)
    assert (waits.defer_reason, clock_time(waits)) == (DeferReason.RATE_PER_HOUR, "Mon 13:00")
    made.clock.wall = NOON + 3599
    assert made.run().ended == []
    made.clock.wall = NOON + 3600
    made.run()
    done = made.store.mailout(id)
    assert (done.status, done.outcome, done.ledger.sent) == (Status.COMPLETED, MailoutOutcome.SENT, 150)
    assert set(made.transport.accepted.values()) == {1}


def test_a_provider_that_only_throttles_makes_the_mailout_wait_with_a_reason(folder: Path) -> None:
    throttle = Outcome(
        OutcomeKind.THROTTLED, code="SES_THROTTLING", category="QUOTA_ERROR", message="Slow down"
    )
    made = drive(
        folder,
        FakeClock(wall=NOON),
        lambda clock: ListTransport(
            clock, answer=lambda mail, nth: throttle if clock.wall < NOON + 240 else None
        ),
    )
    id = made.add("letter", 500)
    made.run()
    waits = made.store.mailout(id)
    assert (waits.status, waits.defer_reason) == (Status.PENDING, DeferReason.TRANSIENT_ERRORS)
    assert waits.defer_note is not None
    assert "throttled every call for a minute" in waits.defer_note
    assert made.transport.calls < 100
    done = made.run_to_the_end(id)
    assert (done.outcome, done.ledger.sent) == (MailoutOutcome.SENT, 500)


@pytest.mark.parametrize(("people", "said"), [(10, False), (200, True)])
def test_too_few_lanes_are_told_of_after_a_minute_of_sending(folder: Path, people: int, said: bool) -> None:
    """A first call takes long because it connects: what is said from it alone would be wrong."""
    made = drive(folder, None, lambda clock: ListTransport(clock, latency=0.5), SEND_RATE_PER_SEC="5")
    id = made.add("letter", people)
    made.run_to_the_end(id)
    note = made.engine.report(id).summary.note
    assert (note is not None) is said
    if note:
        assert "takes 0.50 s to answer, so 3 calls at a time" in note


@pytest.mark.parametrize(
    ("settings", "opens"), [({}, "Tue 09:00"), ({"SEND_WINDOW": "10:00-23:59"}, "Tue 10:00")]
)
def test_a_daily_limit_waits_for_the_next_days_window(
    folder: Path, settings: dict[str, Any], opens: str
) -> None:
    made = drive(folder, FakeClock(wall=MONDAY + 23 * 3600), LIMIT_PER_DAY="100", **settings)
    id = made.add("letter", 120)
    made.run()
    waits = made.store.mailout(id)
    assert (waits.defer_reason, waits.ledger.sent) == (DeferReason.DAILY_LIMIT, 100)
    assert clock_time(waits) == opens
    made.clock.wall = MONDAY + 86_400 + 60  # past midnight is not yet its window
    assert made.run().ended == []
    assert made.run_to_the_end(id).ledger.sent == 120


def test_a_mailout_that_crosses_midnight_is_charged_to_the_day_it_leaves_on(folder: Path) -> None:
    made = drive(folder, FakeClock(wall=MONDAY + 86_400 - 10), LIMIT_PER_DAY="100", SEND_WINDOW="22:00-06:00")
    id = made.add("letter", 130)
    assert made.run_to_the_end(id).ledger.sent == 130
    days = [outbox_rows.usage(made.store, "all", "day", f"2026-11-{day}") for day in (16, 17, 18)]
    assert sum(days) == 130
    assert max(days) <= 100
    assert 0 < days[0] < 60


def test_a_window_over_a_weekend_stops_on_friday_and_goes_on_on_monday(folder: Path) -> None:
    friday = MONDAY - 3 * 86_400
    made = drive(
        folder,
        FakeClock(wall=friday + 18 * 3600 - 20),
        SEND_WINDOW="09:00-18:00",
        SEND_DAYS="mon-fri",
    )
    id = made.add("letter", 200)
    made.run()
    waits = made.store.mailout(id)
    assert (waits.defer_reason, clock_time(waits)) == (DeferReason.OUTSIDE_HOURS, "Mon 09:00")
    assert 90 <= waits.ledger.sent <= 101
    assert made.run_to_the_end(id).ledger.sent == 200
    closed = [
        moment
        for row in outbox_rows.messages(made.store, id)
        if not 9 <= (moment := datetime.fromtimestamp(row["sent_at"], UTC)).hour < 18
        and moment.strftime("%H:%M:%S") > "18:00:02"
    ]
    assert closed == []


def test_a_quota_of_0_defers_and_costs_nobody_an_attempt(folder: Path) -> None:
    made = drive(folder, make_transport=lambda clock: QuotaTransport(clock, max_24_hours=0))
    id = made.add("letter", 5)
    made.run()
    waits = made.store.mailout(id)
    assert (waits.defer_reason, waits.deferred_until) == (DeferReason.QUOTA_EXHAUSTED, NOON + 3600)
    assert made.transport.calls == 0
    assert {row["attempts"] for row in outbox_rows.messages(made.store, id)} == {0}


def test_a_warm_up_sends_its_ceiling_each_day(folder: Path) -> None:
    made = drive(folder, WARMUP="10,20,30")
    id = made.add("letter", 100)
    made.run_to_the_end(id)
    days = [outbox_rows.usage(made.store, "all", "day", f"2026-11-{day}") for day in (16, 17, 18, 19)]
    assert days == [10, 20, 30, 40]


def test_a_provider_that_is_down_is_left_alone_for_longer_and_longer(folder: Path) -> None:
    up = iter(())

    def answer(mail: Mail, nth: int) -> Outcome | None:
        down = Outcome(OutcomeKind.TRANSIENT, code="CONNECT", message="refused")
        return next(up, down)

    made = drive(
        folder,
        make_transport=lambda clock: ListTransport(clock, answer=answer),
        CIRCUIT_FAILURES="5",
        MAX_ATTEMPTS="20",
        RETRY_DELAYS=",".join(["1"] * 20),
    )
    id = made.add("letter", 50)
    pauses = []
    for nth in range(8):
        up = iter([None, None] if nth == 6 else [])
        made.run()
        waits = made.store.mailout(id)
        assert waits.defer_reason is DeferReason.TRANSIENT_ERRORS
        assert waits.deferred_until is not None
        pauses.append(round((waits.deferred_until - made.clock.now()) / 60))
        made.clock.sleep(waits.deferred_until - made.clock.now())
    assert pauses == [1, 5, 15, 60, 60, 60, 1, 5]  # two got through in the seventh


# ── what needs a person ──


def test_bounces_over_the_line_stop_it_and_resuming_holds(folder: Path) -> None:
    made = drive(folder, LIMIT_PER_HOUR="150")
    id = made.add("letter", 500)
    made.run()
    set_metrics(made, id, bounced=12, delivered=138)
    made.clock.sleep(3600)
    made.run()
    held = made.store.mailout(id)
    assert (held.defer_reason, held.deferred_until, held.ledger.sent) == (DeferReason.REPUTATION, None, 150)
    made.clock.sleep(30 * 86_400)
    assert made.run().ended == []
    actions.resume(made.store, id)
    made.run()
    assert made.store.mailout(id).ledger.sent == 300
    set_metrics(made, id, bounced=12 + 20)
    made.clock.sleep(3600)
    made.run()
    assert made.store.mailout(id).defer_reason is DeferReason.REPUTATION


def test_bounces_stop_it_while_it_is_being_sent(folder: Path) -> None:
    """Not only at the next start: a million messages may be under way."""
    made = drive(folder)
    id = made.add("letter", 2000)

    class Watches(Quiet):
        def send_time_slice(self, id: str) -> bool:
            set_metrics(made, id, complained=50)
            return super().send_time_slice(id)

    QueueRun(made.engine.sending, Watches(made.engine)).run()
    held = made.store.mailout(id)
    assert held.defer_reason is DeferReason.REPUTATION
    assert 250 < held.ledger.sent < 350  # one time slice


def test_the_same_content_to_the_same_list_waits_for_a_person_who_may_let_it_go(folder: Path) -> None:
    made = drive(folder)
    made.add("first", 3, list_key="first")
    made.run()
    first = queue_rows.mailouts(made.store)[0]
    made.clock.sleep(86_400)
    copy = made.add("copy", 0, list_key="first")
    with made.store.db.write() as tx:  # the same letter on another page
        tx.execute("UPDATE campaign_queue SET content_hash = ? WHERE id = ?", (first.content_hash, copy))
    made.run()
    held = made.store.mailout(copy)
    assert (held.defer_reason, held.ledger.sent) == (DeferReason.DUPLICATE_CONTENT, 0)
    assert first.id in (held.defer_note or "")
    actions.resume(made.store, copy)
    made.run()
    assert made.store.mailout(copy).ledger.sent == 3


def test_a_setting_that_is_missing_holds_one_mailout_and_not_the_queue(folder: Path) -> None:
    made = drive(folder)
    broken, fine = made.add("broken", 3, priority=1), made.add("fine", 3)

    class Breaks(Quiet):
        def send_time_slice(self, id: str) -> bool:
            if id == broken:
                raise UsageError("ORG_NAME: is missing.")
            return super().send_time_slice(id)

    assert QueueRun(made.engine.sending, Breaks(made.engine)).run() == [broken, fine]
    assert made.store.mailout(broken).defer_reason is DeferReason.CONFIGURATION_ERROR
    assert made.store.mailout(fine).status is Status.COMPLETED


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StoreError("Supabase refused: numeric field overflow (22003)."), DeferReason.CONFIGURATION_ERROR),
        (StoreUnavailable("Supabase cannot do it just now: timeout."), DeferReason.TRANSIENT_ERRORS),
    ],
)
@pytest.mark.parametrize("step", ["begin", "send_time_slice"])
def test_what_the_store_refuses_of_one_mailout_holds_that_one_and_not_the_queue(
    folder: Path, step: str, error: StoreError, reason: DeferReason
) -> None:
    """A segment that takes the database too long, every minute again: nobody else would ever be sent."""
    made = drive(folder)
    broken, fine = made.add("broken", 3, priority=1), made.add("fine", 3)

    class Breaks(Quiet):
        def begin(self, id: str) -> bool:
            self.fail(id, "begin")
            return super().begin(id)

        def send_time_slice(self, id: str) -> bool:
            self.fail(id, "send_time_slice")
            return super().send_time_slice(id)

        def fail(self, id: str, here: str) -> None:
            if (id, here) == (broken, step):
                raise error

    assert QueueRun(made.engine.sending, Breaks(made.engine)).run() == [broken, fine]
    held = made.store.mailout(broken)
    assert (held.status, held.defer_reason, held.defer_note) == (Status.PENDING, reason, str(error))
    assert made.store.mailout(fine).status is Status.COMPLETED


def test_a_damaged_store_ends_the_run_and_holds_nothing(folder: Path) -> None:
    made = drive(folder)
    ids = [made.add(name, 3) for name in ("one", "two")]

    class Breaks(Quiet):
        def begin(self, id: str) -> bool:
            raise StoreDamaged("The store is damaged.")

    with pytest.raises(StoreDamaged):
        QueueRun(made.engine.sending, Breaks(made.engine)).run()
    assert [made.store.mailout(id).defer_reason for id in ids] == [None, None]


def test_a_mailout_that_does_not_move_for_an_hour_is_told(folder: Path) -> None:
    made = drive(folder)
    id = made.add("letter", 3)

    class Breaks(Quiet):
        def begin(self, id: str) -> bool:
            raise StoreUnavailable("Supabase cannot do it just now: timeout.")

    told = []
    for _ in range(62):
        QueueRun(made.engine.sending, Breaks(made.engine)).run()
        told.append([alert.subject for alert, _ in made.engine.alert_sender.look()])
        made.clock.sleep(60)
    assert (told[0], told[-1]) == ([], ["Does not move: “letter”"])
    made.run_to_the_end(id)
    assert made.engine.alert_sender.look() == []


def test_one_that_was_paused_after_errors_is_not_called_stuck(folder: Path) -> None:
    """It moves when whoever paused it says so."""
    made = drive(folder)
    id = made.add("letter", 3)

    class Breaks(Quiet):
        def send_time_slice(self, id: str) -> bool:
            raise StoreUnavailable

    QueueRun(made.engine.sending, Breaks(made.engine)).run()
    assert made.store.mailout(id).pauses_in_a_row == 1
    actions.pause(made.store, id)
    for _ in range(2):
        assert made.engine.alert_sender.look() == []
        made.clock.sleep(2 * 3600)


def test_the_unforeseen_is_told_after_the_others_had_their_turn(folder: Path) -> None:
    made = drive(folder)
    broken, fine = made.add("broken", 3, priority=1), made.add("fine", 3)

    class Breaks(Quiet):
        def send_time_slice(self, id: str) -> bool:
            return super().send_time_slice(id) if id == fine else bool(1 // 0)

    with pytest.raises(ZeroDivisionError):
        QueueRun(made.engine.sending, Breaks(made.engine)).run()
    assert made.store.mailout(fine).status is Status.COMPLETED
    assert made.store.mailout(broken).status is Status.PENDING


def test_a_report_that_cannot_be_written_costs_no_other_mailout_its_turn(folder: Path) -> None:
    """A full disk under one report, every minute again: nobody else would ever be sent."""
    made = drive(folder)
    first, second = made.add("first", 3, priority=1), made.add("second", 3)

    class Breaks(Quiet):
        def end(self, id: str) -> None:
            if id == first:
                raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        QueueRun(made.engine.sending, Breaks(made.engine)).run()
    assert {made.store.mailout(id).status for id in (first, second)} == {Status.COMPLETED}


@pytest.mark.parametrize("error", [RuntimeError, StoreError, StoreUnavailable])
def test_an_audience_that_cannot_be_frozen_ahead_costs_no_other_mailout_its_turn(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    made = drive(folder)
    fine = made.add("fine", 3)
    planned = NewMailout(id="planned", kind=Kind.MARKDOWN, ref="planned", scheduled_at=NOON + 9999)
    made.store.enqueue(planned)
    made.store.set_content("planned", keep_content(made.store, Content("s", "<p>b</p>", "b")), "s")
    frozen = freeze_unless("planned", made.engine.sending.freeze, error)
    monkeypatch.setattr(made.engine.sending, "freeze", frozen)
    with pytest.raises(error, match="planned"):
        made.run()
    assert made.store.mailout(fine).status is Status.COMPLETED


def freeze_unless(broken: str, freeze: Callable[[str], Any], error: type[Exception]) -> Callable[[str], Any]:
    def frozen(id: str) -> Any:
        if id == broken:
            raise error(id)
        return freeze(id)

    return frozen


def test_failures_left_are_a_failed_mailout_and_retry_sends_to_those_alone(folder: Path) -> None:
    refuse = True

    def answer(mail: Mail, nth: int) -> Outcome | None:
        refused = refuse and mail.to.endswith("1@example.org")
        return Outcome(OutcomeKind.PERMANENT, code="MESSAGE_REJECTED") if refused else None

    made = drive(folder, make_transport=lambda clock: ListTransport(clock, answer=answer))
    id = made.add("letter", 20)
    failed = made.run_to_the_end(id)
    assert (failed.outcome, failed.ledger.failed) == (MailoutOutcome.FAILED, 2)
    refuse = False
    assert actions.retry(made.store, id) == 2
    with pytest.raises(UsageError, match=r"nothing to try again\. 2 wait already\."):  # asked twice
        actions.retry(made.store, id)
    done = made.run_to_the_end(id)
    assert (done.outcome, done.ledger.sent) == (MailoutOutcome.SENT, 20)
    assert set(made.transport.accepted.values()) == {1}


# ── turns ──


def test_an_urgent_mailout_does_not_wait_for_the_end_of_a_long_one(folder: Path) -> None:
    made = drive(folder)
    bulk = made.add("bulk", 3000)  # ten minutes
    urgent = made.add("urgent", 20, priority=5, scheduled_at=NOON + 130)
    made.run()
    first, last = made.store.mailout(urgent), made.store.mailout(bulk)
    assert first.completed_at is not None
    assert last.completed_at is not None
    assert first.completed_at < NOON + 130 + 60 + 10  # a time slice, and its own sending
    assert last.completed_at > NOON + 600
    assert set(made.transport.accepted.values()) == {1}


def test_companies_take_turns_within_one_run(folder: Path) -> None:
    made = drive(folder)
    long = made.add("long", 1500, company_id="acme")
    short = made.add("short", 300, company_id="zoo", scheduled_at=NOON + 10)
    made.run()
    assert (made.store.mailout(short).completed_at or 0) < NOON + 250
    assert (made.store.mailout(long).completed_at or 0) > NOON + 350


def test_two_workers_and_two_companies_send_everything_once(folder: Path) -> None:
    """Two runs at once, a time slice of one after a time slice of the other, over the same store."""
    clock = FakeClock()
    one = drive(folder, clock, worker="one")
    ids = [one.add(ref, 400, company_id=ref) for ref in ("acme", "zoo")]
    other = drive(folder, clock, worker="two")
    runs = 0

    class Nested(Quiet):
        """While one run is between two time slices, the other has a whole run."""

        def send_time_slice(self, id: str) -> bool:
            nonlocal runs
            runs += 1
            if runs == 1:
                other.run()
            return super().send_time_slice(id)

    QueueRun(one.engine.sending, Nested(one.engine)).run()
    accepted = one.transport.accepted + other.transport.accepted
    assert (len(accepted), set(accepted.values())) == (800, {1})
    assert other.transport.calls == 400  # what the first had begun was not due for the second
    for id in ids:
        assert one.store.mailout(id).status is Status.COMPLETED
    used = [outbox_rows.usage(one.store, scope, "day", "2026-11-16") for scope in ("all", "acme", "zoo")]
    assert used == [800, 400, 400]


def test_a_mailout_whose_sender_was_killed_is_taken_up_again(folder: Path) -> None:
    made = drive(folder)
    id = made.add("letter", 10)
    made.store.start(id, "dead")
    assert made.run().ended == []
    made.clock.sleep(121)
    assert made.run().ended == [id]
    assert made.store.mailout(id).ledger.sent == 10


# ── killed in the middle of a defer ──


class Killed(BaseException):
    """As a SIGKILL would: nothing of ours runs after it."""


@dataclass
class Fuse:
    """Dies in `defer`, before or after its commit."""

    when: str | None = None


class MortalStore(SqliteStore):
    fuse = Fuse()

    def defer(self, *args: Any, **kwargs: Any) -> Mailout:
        if self.fuse.when == "before":
            raise Killed
        deferred = super().defer(*args, **kwargs)
        if self.fuse.when == "after":
            raise Killed
        return deferred


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_in_the_middle_of_a_defer_it_goes_on_and_nobody_gets_it_twice(folder: Path, when: str) -> None:
    clock = FakeClock()
    mortal = MortalStore(folder / "mailout.db", clock)
    made = drive(folder, clock, store=mortal, LIMIT_PER_HOUR="100")
    id = made.add("letter", 150)
    mortal.fuse = Fuse(when)
    with pytest.raises(Killed):
        made.run()
    left = made.store.mailout(id)
    assert left.status is (Status.PROCESSING if when == "before" else Status.PENDING)
    mortal.fuse = Fuse()
    while made.store.mailout(id).status is not Status.COMPLETED:
        made.clock.sleep(60)
        made.run()
        assert made.store.mailout(id).ledger.balances
    assert (len(made.transport.accepted), set(made.transport.accepted.values())) == (150, {1})
    hours = [outbox_rows.usage(made.store, "all", "hour", f"2026-11-16T{hour}+0000") for hour in (12, 13)]
    assert hours == [100, 50]


def test_a_store_that_is_away_ends_the_run_and_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = drive(folder)
    id = made.add("letter", 5)

    class Away(Quiet):
        def send_time_slice(self, id: str) -> bool:
            monkeypatch.setattr(made.store, "now", Mock(side_effect=StoreUnavailable))
            raise StoreUnavailable

    with pytest.raises(StoreUnavailable):
        QueueRun(made.engine.sending, Away(made.engine)).run()
    monkeypatch.undo()
    assert made.store.mailout(id).defer_reason is None
    made.clock.sleep(121)
    made.run()
    assert made.store.mailout(id).ledger.sent == 5


def test_a_letter_whose_content_cannot_be_read_fails_nobody_and_goes_on_with_the_next_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(store: SqliteStore, hash: str) -> Content:
        raise NotFound

    made = drive(folder)
    id = made.add("letter", 5)
    made.engine.sending.start(id)
    with monkeypatch.context() as patched:
        patched.setattr(content_rows, "content", gone)
        with pytest.raises(NotFound):
            made.engine.sending.send_time_slice(id)
    waits = made.store.mailout(id)
    assert (waits.status, waits.ledger.pending) == (Status.PENDING, 5)  # nobody sends it, and it says so
    made.run()
    assert made.store.mailout(id).ledger.sent == 5


# ── a person's hand ──


def test_a_delay_leaves_time_to_take_it_back(folder: Path) -> None:
    made = drive(folder, SEND_DELAY="600")
    letter = folder / "letter.md"
    letter.write_text("---\nsubject: Hello\n---\nHow are you?\n", encoding="utf-8")
    made.store.import_subscribers([SubscriberRow("ana@example.org", "ana@example.org")])
    id = made.engine.intake.enqueue(str(letter)).id
    assert made.run().ended == []
    waits = made.store.mailout(id)
    assert (waits.scheduled_at, waits.ledger.recipients) == (NOON + 600, 1)
    made.clock.sleep(599)
    actions.cancel(made.store, id)
    made.clock.sleep(10)
    assert made.run().ended == []
    assert made.transport.calls == 0


def test_whoever_waits_out_a_delay_sees_the_size_of_the_audience(folder: Path) -> None:
    """A page that was asked for from Notion is not frozen yet when it comes into the queue."""
    made = drive(folder)
    id = made.add("letter", 5, scheduled_at=NOON + 600)
    with made.store.db.write() as tx:
        tx.execute("DELETE FROM email_outbox")
        tx.execute(
            "UPDATE campaign_queue SET frozen_at = NULL, freeze_cursor = '', recipients = 0, pending = 0"
        )
    made.run()
    assert made.store.mailout(id).ledger.recipients == 5


def test_everything_paused_stops_between_time_slices_and_is_nobodys(folder: Path) -> None:
    made = drive(folder)
    id = made.add("letter", 2000)

    class Pauses(Quiet):
        def send_time_slice(self, id: str) -> bool:
            more = super().send_time_slice(id)
            made.store.pause_all(True)
            return more

    QueueRun(made.engine.sending, Pauses(made.engine)).run()
    stopped = made.store.mailout(id)
    assert (stopped.status, stopped.locked_by) == (Status.PENDING, None)
    assert stopped.ledger.sent < 400
    assert made.run().ended == []
    made.store.pause_all(False)
    assert made.run_to_the_end(id).ledger.sent == 2000


def test_a_stop_lets_the_mailout_go(folder: Path) -> None:
    """Ctrl-C: `status` must not say that it is being sent."""

    made = drive(folder)
    id = made.add("letter", 50)

    def answer(mail: Mail, nth: int) -> None:
        if nth == 10:
            made.engine.sending.stop()

    made.transport.answer = answer
    made.engine.sending.start(id)
    report = made.engine.sending.send_for(id)
    assert report.ended is Ended.STOPPED
    stopped = made.engine.sending.conclude(id, report)
    assert (stopped.status, stopped.locked_by, stopped.defer_reason) == (Status.PENDING, None, None)
    assert stopped.ledger.in_flight == 0


# ── the lanes ──


@pytest.mark.parametrize(("latency", "warned"), [(0.1, False), (0.5, True)])
def test_too_little_concurrency_for_the_rate_is_told_once(
    folder: Path, caplog: pytest.LogCaptureFixture, latency: float, warned: bool
) -> None:
    made = drive(folder, make_transport=lambda clock: ListTransport(clock, latency=latency))
    id = made.add("letter", 400)
    made.run()
    said = Counter(record.message for record in caplog.records if "SEND_CONCURRENCY" in record.message)
    assert list(said.values()) == ([1] if warned else [])
    note = made.engine.report(id).summary.note
    assert (note is not None) is warned
    if note:
        assert "3 calls at a time are needed" in note
