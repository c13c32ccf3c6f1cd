"""The forecast: by its own law, and against the real engine on a virtual clock."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailout.base.ids import mailout_id
from mailout.base.setting_values import SendWindow, parse_days
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import SLACK
from mailout.outbox.queue.forecast import Forecast, ForecastInput, Job, forecast_queue
from mailout.outbox.queue.limits import Limits, Usage
from mailout.outbox.queue.mailout import DeferReason, NewMailout, Status
from tests.clocks import NOON, FakeClock
from tests.unit.outbox.queue.driving import QuotaTransport, drive

ZONE = ZoneInfo("UTC")
FRIDAY = datetime(2026, 11, 13, 17, 30, tzinfo=UTC).timestamp()


def said(moment: float | None) -> str | None:
    return None if moment is None else f"{datetime.fromtimestamp(moment, UTC):%a %H:%M:%S}"


def forecast(limits: Limits, forecast_input: ForecastInput, job: Job) -> Forecast:
    """Of one mailout that is alone."""
    return forecast_queue(limits, forecast_input, [job])[0]


# ── the law ──


def test_without_limits_it_is_the_rate() -> None:
    found = forecast(Limits(ZONE), ForecastInput(NOON, 5.0), Job(300))
    assert found == Forecast(NOON, NOON + 60, today=300, later=0)


def test_150_at_100_an_hour() -> None:
    found = forecast(Limits(ZONE, per_hour=100), ForecastInput(NOON, 5.0), Job(150))
    assert (said(found.begins_at), said(found.ends_at)) == ("Mon 12:00:00", "Mon 13:00:10")
    assert (found.later, found.limited_by) == (0, DeferReason.RATE_PER_HOUR)


def test_what_has_been_used_is_not_there_any_more() -> None:
    forecast_input = ForecastInput(NOON, 5.0, Usage(hour=90, day=90))
    assert said(forecast(Limits(ZONE, per_hour=100), forecast_input, Job(150)).ends_at) == "Mon 14:00:08"


def test_what_spills_to_tomorrow_is_counted() -> None:
    found = forecast(Limits(ZONE, per_day=100), ForecastInput(NOON, 5.0, Usage(day=40)), Job(150))
    assert (found.today, found.later, said(found.ends_at)) == (60, 90, "Tue 09:00:18")


def test_a_window_over_a_weekend() -> None:
    office = Limits(ZONE, window=SendWindow.parse("09:00-18:00"), days=parse_days("mon-fri"))
    found = forecast(office, ForecastInput(FRIDAY, 1.0), Job(1860))
    assert (found.today, found.later, said(found.ends_at)) == (1800, 60, "Mon 09:01:00")
    assert found.limited_by is DeferReason.OUTSIDE_HOURS


def test_a_warm_up_takes_its_days() -> None:
    limits = Limits(ZONE, warmup=(50, 100))
    assert said(forecast(limits, ForecastInput(NOON, 5.0), Job(200)).ends_at) == "Wed 09:00:10"
    begun = ForecastInput(NOON, 5.0, first_day="2026-11-15")
    assert said(forecast(limits, begun, Job(200)).ends_at) == "Tue 09:00:20"


def test_what_stands_ahead_leaves_first_and_takes_from_the_same_limits() -> None:
    jobs = [Job(50), Job(80)]
    _, found = forecast_queue(Limits(ZONE, per_hour=100), ForecastInput(NOON, 5.0), jobs)
    assert (said(found.begins_at), said(found.ends_at)) == ("Mon 12:00:10", "Mon 13:00:06")


def test_it_does_not_begin_before_its_time() -> None:
    found = forecast(Limits(ZONE), ForecastInput(NOON, 5.0), Job(5, due=NOON + 600))
    assert (found.begins_at, found.ends_at) == (NOON + 600, NOON + 601)


def test_what_is_due_goes_while_the_first_in_turn_still_waits() -> None:
    late, now = forecast_queue(Limits(ZONE), ForecastInput(NOON, 5.0), [Job(50, due=NOON + 60), Job(50)])
    assert (now.begins_at, now.ends_at) == (NOON, NOON + 10)
    assert (late.begins_at, late.ends_at) == (NOON + 60, NOON + 70)


def test_what_nobody_can_foresee_is_not_guessed() -> None:
    """A poll must answer at once, also for a million at one an hour."""
    first, second = forecast_queue(Limits(ZONE, per_hour=1), ForecastInput(NOON, 5.0), [Job(10**6), Job(1)])
    assert (first.begins_at, first.ends_at) == (NOON, None)
    assert (second.begins_at, second.ends_at) == (None, None)


def test_a_quota_frees_what_left_a_day_ago() -> None:
    begun = [(NOON - 82_800, 100)]  # 23 hours ago
    found = forecast(Limits(ZONE), ForecastInput(NOON, 5.0, Usage(quota=50), begun=begun), Job(150))
    assert (said(found.ends_at), found.limited_by) == ("Mon 13:01:20", DeferReason.QUOTA_EXHAUSTED)


def test_nobody_knows_when_a_quota_frees_that_others_have_spent() -> None:
    found = forecast(Limits(ZONE), ForecastInput(NOON, 5.0, Usage(quota=0)), Job(150))
    assert found == Forecast(None, None, 0, 150, DeferReason.QUOTA_EXHAUSTED)


limits = st.builds(
    Limits,
    st.sampled_from([ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZONE]),
    per_hour=st.none() | st.integers(5, 500),
    per_day=st.none() | st.integers(5, 2000),
    window=st.none() | st.just(SendWindow(540, 1080)) | st.just(SendWindow(1320, 360)),
    days=st.frozensets(st.integers(0, 6), min_size=1),
    warmup=st.lists(st.integers(1, 200), max_size=4).map(tuple),
)


@settings(deadline=None)
@given(limits, st.integers(0, 300), st.integers(0, 100), st.floats(0.5, 50))
def test_more_never_ends_sooner_and_everybody_is_counted(
    limits: Limits, pending: int, more: int, rate: float
) -> None:
    forecast_input = ForecastInput(NOON, rate)
    less, longer = (forecast(limits, forecast_input, Job(n)) for n in (pending, pending + more))
    assert less.ends_at is not None
    assert longer.ends_at is not None
    assert NOON <= less.ends_at <= longer.ends_at + 1e-6
    assert less.ends_at >= NOON + pending / rate - 1e-6
    assert (less.today + less.later, longer.today + longer.later) == (pending, pending + more)
    assert less.begins_at is not None
    assert less.begins_at <= less.ends_at


# ── against the engine ──


def agrees(predicted: float | None, now: float, happened: float | None) -> None:
    """Within 2 %."""
    assert predicted is not None
    assert happened is not None
    assert happened - now == pytest.approx(predicted - now, rel=0.02, abs=2.0)


@pytest.mark.parametrize(
    ("people", "start", "values"),
    [
        (1500, NOON, {"SEND_RATE_PER_SEC": "5"}),
        (150, NOON + 600, {"LIMIT_PER_HOUR": "100"}),
        (250, NOON, {"LIMIT_PER_HOUR": "60", "LIMIT_PER_DAY": "100"}),
        (260, FRIDAY, {"LIMIT_PER_HOUR": "30", "SEND_WINDOW": "09:00-18:00", "SEND_DAYS": "mon-fri"}),
        (300, NOON, {"WARMUP": "50,100", "SEND_TIMEZONE": "America/New_York"}),
        (1000, NOON + 36_000 - 60, {"SEND_RATE_PER_SEC": "10", "SEND_WINDOW": "20:00-22:00"}),
    ],
)
def test_the_engine_does_what_was_foretold(
    folder: Path, people: int, start: float, values: dict[str, Any]
) -> None:
    made = drive(folder, FakeClock(wall=start), **values)
    id = made.add("letter", people)
    predicted = made.engine.queue_forecast.forecast(id)
    assert predicted is not None
    done = made.run_to_the_end(id)
    assert (done.status, done.ledger.sent) == (Status.COMPLETED, people)
    agrees(predicted.ends_at, start, done.completed_at)
    tonight = start - start % 86_400 + 86_400
    sent = [row["sent_at"] for row in outbox_rows.messages(made.store, id, limit=10_000)]
    if "SEND_TIMEZONE" not in values:
        assert predicted.today == pytest.approx(sum(moment < tonight for moment in sent), abs=1)


def test_a_provider_that_counts_a_day_does_what_was_foretold(folder: Path) -> None:
    made = drive(folder, make_transport=lambda clock: QuotaTransport(clock, max_24_hours=200))
    made.store.set_quota("list", 200, NOON)
    made.clock.sleep(301)
    first, second = made.add("first", 150), made.add("second", 150)
    begun = made.clock.now()
    predicted = made.engine.queue_forecast.snapshot().forecasts[second]
    assert made.run_to_the_end(first).ledger.sent == 150
    agrees(predicted.ends_at, begun, made.run_to_the_end(second).completed_at)


def test_while_it_is_sent_the_forecast_learns_the_real_speed(folder: Path) -> None:
    """One lane and a slow provider cannot keep the rate; the forecast must not go on promising it."""

    def slow(clock: FakeClock) -> Any:
        return QuotaTransport(clock, latency=0.5)

    made = drive(folder, make_transport=slow, SEND_RATE_PER_SEC="10")
    id = made.add("letter", 1000)
    made.engine.sending.start(id)
    for _ in range(5):
        made.engine.sending.send_for(id, 60.0)
    now = made.clock.now()
    predicted = made.engine.queue_forecast.forecast(id)
    assert predicted is not None
    made.store.release(id)
    agrees(predicted.ends_at, now, made.run_to_the_end(id).completed_at)


def test_mailouts_wait_for_those_ahead_of_them(folder: Path) -> None:
    made = drive(folder, SEND_RATE_PER_SEC="5")
    bulk, urgent = made.add("bulk", 500), made.add("urgent", 250, priority=5)
    forecasts = made.engine.queue_forecast.snapshot().forecasts
    for id in (urgent, bulk):
        agrees(forecasts[id].ends_at, NOON, made.run_to_the_end(id).completed_at)
    assert forecasts[bulk].begins_at == pytest.approx(NOON + 250 / 5 * SLACK)


def test_behind_one_whose_recipients_nobody_has_counted_nothing_is_foretold(folder: Path) -> None:
    """It may be a letter to a million, which begins when its turn comes."""
    made = drive(folder, SEND_RATE_PER_SEC="5")
    first = made.add("first", 500, priority=9)
    unfrozen = mailout_id("second")
    made.store.enqueue(NewMailout(id=unfrozen, kind=Kind.MARKDOWN, ref="second", priority=5))
    made.store.set_content(unfrozen, keep_content(made.store, Content("s", "<p>s</p>", "s")), "s")
    last = made.add("last", 10)
    forecasts = made.engine.queue_forecast.snapshot().forecasts
    assert forecasts[first].ends_at == pytest.approx(NOON + 500 / 5 * SLACK, abs=1)
    assert forecasts[unfrozen] == Forecast(None, None, 0, 0, None)
    assert forecasts[last] == Forecast(None, None, 0, 10, None)


def test_what_is_due_and_nobody_takes_up_has_no_end(folder: Path) -> None:
    """No worker runs: a time would be a promise that nobody keeps."""
    made = drive(folder, SEND_RATE_PER_SEC="5")
    planned, late = made.add("planned", 10, scheduled_at=NOON + 9000), made.add("late", 10)
    made.store.defer(late, DeferReason.RATE_PER_HOUR, NOON + 60)
    made.clock.sleep(600)
    forecasts = made.engine.queue_forecast.snapshot().forecasts
    assert forecasts[late] == Forecast(None, None, 0, 10, None)
    assert forecasts[planned].ends_at is not None
    made.engine.sending.start(made.add("other", 10))  # it may wait for its turn
    assert made.engine.queue_forecast.snapshot().forecasts[late].ends_at is not None


def test_one_that_is_planned_for_the_end_of_time_breaks_no_page(folder: Path) -> None:
    """Its row may be in the store already: `status`, Home and every report showed an error."""
    made = drive(folder, SEND_TIMEZONE="Pacific/Kiritimati")
    never, other = made.add("never", 3, scheduled_at=253_402_300_799.0), made.add("other", 3)
    forecasts = made.engine.queue_forecast.snapshot().forecasts
    assert forecasts[never] == Forecast(None, None, 0, 3, None)
    assert forecasts[other].ends_at is not None
    made.run()
    for id in (never, other):
        assert made.engine.report(id).html.exists()


def test_what_waits_for_a_person_has_no_end(folder: Path) -> None:
    made = drive(folder)
    id = made.add("letter", 10)
    made.store.defer(id, DeferReason.PAUSED, None)
    assert made.engine.queue_forecast.forecast(id) == Forecast(None, None, 0, 10, DeferReason.PAUSED)
    made.store.resume(id)
    made.store.pause_all(True)
    assert made.engine.queue_forecast.forecast(id) == Forecast(None, None, 0, 10, None)
