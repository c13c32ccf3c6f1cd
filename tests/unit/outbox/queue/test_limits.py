"""When mail may leave, and until when it waits: in Berlin and New York, over summer time and weekends."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.base.setting_values import DAY_MINUTES, SendWindow, parse_days
from mailout.outbox.delivery.error_codes import remedy_for
from mailout.outbox.delivery.options import Ended, RunReport
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind
from mailout.outbox.queue.limits import (
    Defer,
    Limits,
    Usage,
    buckets,
    next_day,
    next_hour,
    quota_frees,
    why_it_ended,
    why_not_now,
    window_closes,
    window_opens,
)
from mailout.outbox.queue.mailout import DeferReason

BERLIN, NEW_YORK, UTC = (ZoneInfo(name) for name in ("Europe/Berlin", "America/New_York", "UTC"))
OFFICE = SendWindow.parse("09:00-18:00")
NIGHT = SendWindow.parse("22:00-06:00")
SHORT = SendWindow.parse("10:30-12:00")
EARLY = SendWindow.parse("02:30-05:00")
WEEKDAYS = parse_days("mon-fri")
# 2026: Berlin changes on 29 March and 25 October, New York on 8 March and 1 November.


def at(zone: ZoneInfo, text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()


def said(zone: ZoneInfo, moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, zone).strftime("%Y-%m-%d %H:%M %Z")


# ── hours ──


@pytest.mark.parametrize(
    ("zone", "now", "until"),
    [
        (BERLIN, at(BERLIN, "2026-03-29T01:20"), "2026-03-29 03:00 CEST"),
        (BERLIN, at(BERLIN, "2026-10-25T02:20"), "2026-10-25 02:00 CET"),
        (BERLIN, at(BERLIN, "2026-10-25T02:20", fold=1), "2026-10-25 03:00 CET"),
        (NEW_YORK, at(NEW_YORK, "2026-03-08T01:59"), "2026-03-08 03:00 EDT"),
        (NEW_YORK, at(NEW_YORK, "2026-11-01T01:00"), "2026-11-01 01:00 EST"),
        (UTC, at(UTC, "2026-11-16T12:00"), "2026-11-16 13:00 UTC"),
    ],
)
def test_the_hourly_limit_waits_for_the_next_full_hour(zone: ZoneInfo, now: float, until: str) -> None:
    limits = Limits(zone, per_hour=100)
    assert said(zone, next_hour(limits, now)) == until
    assert why_it_ended(limits, limited("hour"), now) == Defer(
        DeferReason.RATE_PER_HOUR, next_hour(limits, now)
    )


def limited(by: str) -> RunReport:
    return RunReport(Ended.LIMITED, None, limited=by)


@given(st.floats(1.7e9, 2.0e9), st.sampled_from([BERLIN, NEW_YORK, UTC, ZoneInfo("Asia/Kolkata")]))
def test_hours_and_days_leave_no_gap_and_share_no_moment(now: float, zone: ZoneInfo) -> None:
    """A moment in no bucket would be sent uncounted; one in two would be counted twice."""
    made = buckets(Limits(zone, per_hour=5, per_day=9), now)
    for kind in ("hour", "day"):
        this, following = (bucket for bucket in made if bucket.kind == kind)
        assert this.starts_at <= now < this.ends_at == following.starts_at < following.ends_at
        assert this.key != following.key
    days = [bucket for bucket in made if bucket.kind == "day"]
    assert all((b.ends_at - b.starts_at) / 3600 in (23, 24, 25) for b in days)


def test_the_hour_that_comes_twice_is_counted_twice() -> None:
    """Else the second would find the first one's counter full and send nothing."""
    first, second = (
        buckets(Limits(BERLIN, per_hour=5), at(BERLIN, "2026-10-25T02:30", fold)) for fold in (0, 1)
    )
    assert first[0].key != second[0].key
    assert first[1] == second[0]


# ── days ──


@pytest.mark.parametrize(
    ("limits", "now", "until"),
    [
        (Limits(UTC), at(UTC, "2026-11-16T12:00"), "2026-11-17 09:00 UTC"),
        (Limits(UTC, window=OFFICE), at(UTC, "2026-11-16T12:00"), "2026-11-17 09:00 UTC"),
        (Limits(UTC, window=SHORT), at(UTC, "2026-11-16T11:00"), "2026-11-17 10:30 UTC"),
        (Limits(UTC, window=OFFICE, days=WEEKDAYS), at(UTC, "2026-11-13T12:00"), "2026-11-16 09:00 UTC"),
        (Limits(BERLIN), at(BERLIN, "2026-10-24T23:30"), "2026-10-25 09:00 CET"),
        (Limits(BERLIN), at(BERLIN, "2026-03-28T23:30"), "2026-03-29 09:00 CEST"),
        (Limits(NEW_YORK, window=NIGHT), at(NEW_YORK, "2026-11-16T23:00"), "2026-11-17 00:00 EST"),
    ],
)  # fmt: skip
def test_the_daily_limit_waits_for_the_next_days_window(limits: Limits, now: float, until: str) -> None:
    assert said(limits.timezone, next_day(limits, now)) == until
    wait = why_it_ended(limits, limited("day"), now)
    assert wait == Defer(DeferReason.DAILY_LIMIT, next_day(limits, now))


def test_a_warm_up_grows_by_the_day_and_then_ends() -> None:
    """A new domain that sends all at once ends in the spam folder."""
    limits = Limits(BERLIN, per_day=120, warmup=(50, 100, 200))
    now = at(BERLIN, "2026-10-24T12:00")

    def ceilings(first_day: str | None) -> list[int | None]:
        return [bucket.limit for bucket in buckets(limits, now, first_day) if bucket.kind == "day"]

    assert ceilings(None) == ceilings("2026-10-24") == [50, 100]
    assert ceilings("2026-10-23") == [100, 120]  # the daily limit is the lower one
    assert ceilings("2026-10-01") == [120, 120]
    open_ended = Limits(BERLIN, warmup=(50,))
    assert [b.limit for b in buckets(open_ended, now, "2026-10-23")] == [None] * 4


def test_a_first_day_that_a_clock_ahead_has_written_is_no_end_of_the_warm_up() -> None:
    """SES refused what was signed then; with the clock right, 500 went out on the first day instead of 10."""
    limits = Limits(BERLIN, per_day=500, warmup=(10, 20))
    assert limits.most_on(date(2026, 11, 16), first_day=date(2026, 11, 18)) == 10


# ── the window ──


@pytest.mark.parametrize(
    ("limits", "now", "until"),
    [
        (Limits(UTC), at(UTC, "2026-11-16T03:00"), None),
        (Limits(UTC, window=OFFICE), at(UTC, "2026-11-16T08:59"), "2026-11-16 09:00 UTC"),
        (Limits(UTC, window=OFFICE), at(UTC, "2026-11-16T09:00"), None),
        (Limits(UTC, window=OFFICE), at(UTC, "2026-11-16T18:00"), "2026-11-17 09:00 UTC"),
        (Limits(UTC, window=OFFICE, days=WEEKDAYS), at(UTC, "2026-11-13T18:00"), "2026-11-16 09:00 UTC"),
        (Limits(UTC, window=OFFICE, days=WEEKDAYS), at(UTC, "2026-11-15T12:00"), "2026-11-16 09:00 UTC"),
        (Limits(UTC, days=WEEKDAYS), at(UTC, "2026-11-14T12:00"), "2026-11-16 09:00 UTC"),
        # Over midnight: Friday's night goes on into Saturday, Saturday's own does not begin.
        (Limits(UTC, window=NIGHT, days=WEEKDAYS), at(UTC, "2026-11-14T05:59"), None),
        (Limits(UTC, window=NIGHT, days=WEEKDAYS), at(UTC, "2026-11-14T06:00"), "2026-11-16 22:00 UTC"),
        (Limits(UTC, window=NIGHT, days=WEEKDAYS), at(UTC, "2026-11-16T01:00"), "2026-11-16 22:00 UTC"),
        # Summer time: the hour is left out, or comes twice.
        (Limits(BERLIN, window=EARLY), at(BERLIN, "2026-03-29T01:59"), "2026-03-29 03:00 CEST"),
        (Limits(BERLIN, window=EARLY), at(BERLIN, "2026-10-25T02:10", fold=1), None),
        (Limits(BERLIN, window=OFFICE), at(BERLIN, "2026-03-28T18:30"), "2026-03-29 09:00 CEST"),
        (Limits(NEW_YORK, window=OFFICE), at(NEW_YORK, "2026-10-31T18:30"), "2026-11-01 09:00 EST"),
    ],
)  # fmt: skip
def test_outside_its_hours_a_mailout_waits_for_the_opening(
    limits: Limits, now: float, until: str | None
) -> None:
    assert said(limits.timezone, window_opens(limits, now)) == until
    wait = why_not_now(limits, now)
    assert (
        wait is None if until is None else wait == Defer(DeferReason.OUTSIDE_HOURS, window_opens(limits, now))
    )


windows = st.tuples(st.integers(0, DAY_MINUTES - 1), st.integers(1, DAY_MINUTES)).filter(
    lambda t: t[0] != t[1]
)
some_limits = st.builds(
    Limits,
    st.sampled_from([BERLIN, NEW_YORK, UTC]),
    window=windows.map(lambda t: SendWindow(*t)),
    days=st.frozensets(st.integers(0, 6), min_size=1),
)
moments = st.one_of(
    st.floats(1.77e9, 1.82e9),
    *(
        st.floats(-90_000, 90_000).map(change.__add__)
        for change in (
            at(BERLIN, "2026-03-29T01:00"),
            at(BERLIN, "2026-10-25T01:00"),
            at(NEW_YORK, "2026-11-01T00:00"),
        )
    ),
)


@given(some_limits, moments)
def test_a_wait_ends_later_and_within_days_that_may_send(limits: Limits, now: float) -> None:
    """A wait that ended in the past would start every minute and be deferred again."""
    opens = window_opens(limits, now)
    if opens is None:
        return
    assert now < opens < now + timedelta(days=9).total_seconds()
    assert datetime.fromtimestamp(opens, limits.timezone).weekday() in limits.days


@given(some_limits, moments)
def test_what_is_open_closes_and_is_shut_then(limits: Limits, now: float) -> None:
    """Mail that leaves after closing time is what the window was set against."""
    if window_opens(limits, now) is not None:
        return
    closes = window_closes(limits, now)
    if closes < now + timedelta(days=30).total_seconds():
        assert now < closes
        assert window_opens(limits, closes) is not None
        assert window_opens(limits, closes - 1e-3) is None


def test_what_is_always_open_never_closes() -> None:
    for limits in (Limits(UTC), Limits(UTC, window=SendWindow(0, DAY_MINUTES))):
        assert window_closes(limits, at(UTC, "2026-11-16T12:00")) == float("inf")


# ── usage ──


@pytest.mark.parametrize(
    ("usage", "reason"),
    [
        (Usage(99, 499, 1), None),
        (Usage(100, 100), DeferReason.RATE_PER_HOUR),
        (Usage(0, 500), DeferReason.DAILY_LIMIT),
        (Usage(0, 0, 0), DeferReason.QUOTA_EXHAUSTED),
    ],
)
def test_what_has_left_decides_whether_more_may(usage: Usage, reason: DeferReason | None) -> None:
    wait = why_not_now(Limits(UTC, per_hour=100, per_day=500), at(UTC, "2026-11-16T12:30"), usage)
    assert (wait.reason if wait else None) == reason


# ── quota and errors ──

NOW = at(UTC, "2026-11-16T12:30")


def test_a_spent_quota_waits_an_hour_or_until_the_window_frees_enough() -> None:
    limits = Limits(UTC)
    assert why_it_ended(limits, limited("quota"), NOW) == Defer(DeferReason.QUOTA_EXHAUSTED, NOW + 3600)
    known = why_it_ended(limits, limited("quota"), NOW, quota_frees_at=NOW + 120)
    assert known == Defer(DeferReason.QUOTA_EXHAUSTED, NOW + 120)


def test_a_quota_that_others_have_spent_is_asked_for_again_after_an_hour() -> None:
    """One message from here does not make it wait until that one is a day old."""
    frees_at = quota_frees([(NOW - 60, 1)], 50, NOW)
    wait = why_it_ended(Limits(UTC), limited("quota"), NOW, quota_frees_at=frees_at)
    assert wait == Defer(DeferReason.QUOTA_EXHAUSTED, NOW + 3600)


def test_the_window_frees_what_left_a_day_ago() -> None:
    day = 86_400
    begun = [(NOW - day + 600, 10), (NOW - day + 1200, 10), (NOW - 60, 180)]
    assert quota_frees(begun, 1000, NOW) == NOW + 1260  # a tenth of the 200
    assert quota_frees(begun, 5, NOW) == NOW + 660  # all that is pending
    assert quota_frees([(NOW - day - 30, 9)], 5, NOW) == NOW + 60
    assert quota_frees([], 5, NOW) is None


def test_pauses_after_transient_errors_grow() -> None:
    broken = RunReport(Ended.CIRCUIT, None, outcome=Outcome(OutcomeKind.TRANSIENT, code="X", message="down"))
    waits = [why_it_ended(Limits(UTC), broken, NOW, pauses_in_a_row=n) for n in range(6)]
    assert [round(wait.until - NOW) for wait in waits if wait and wait.until] == [
        60,
        300,
        900,
        3600,
        3600,
        3600,
    ]
    assert {wait.note for wait in waits if wait} == {"X: down"}


def test_a_minute_of_throttling_waits_as_after_transient_errors_and_says_why() -> None:
    throttle = Outcome(OutcomeKind.THROTTLED, code="SES_THROTTLING", message="Maximum sending rate exceeded.")
    wait = why_it_ended(
        Limits(UTC), RunReport(Ended.THROTTLED, None, outcome=throttle), NOW, pauses_in_a_row=1
    )
    assert wait is not None
    assert (wait.reason, wait.until) == (DeferReason.TRANSIENT_ERRORS, NOW + 300)
    assert wait.note == (
        "The provider throttled every call for a minute; if it happens often, lower SEND_RATE_PER_SEC"
        " (SES_THROTTLING: Maximum sending rate exceeded)."
    )


def test_a_refusal_waits_for_a_person() -> None:
    refused = RunReport(Ended.REFUSED, None, outcome=Outcome(OutcomeKind.STOP, code="PAUSED", message="no"))
    assert why_it_ended(Limits(UTC), refused, NOW) == Defer(
        DeferReason.CONFIGURATION_ERROR, None, "PAUSED: no"
    )


@pytest.mark.parametrize("message", ["Sending paused for this account.", None])
def test_whoever_is_waited_for_reads_what_to_do(message: str | None) -> None:
    """A code alone sends people to the manual while the mailout waits; and "None" is no reason."""
    outcome = Outcome(OutcomeKind.STOP, code="SES_ACCOUNT_SENDING_PAUSED", message=message)
    wait = why_it_ended(Limits(UTC), RunReport(Ended.REFUSED, None, outcome=outcome), NOW)
    assert wait is not None
    assert wait.note is not None
    assert wait.note.startswith("SES_ACCOUNT_SENDING_PAUSED")
    assert wait.note.endswith(remedy_for("SES_ACCOUNT_SENDING_PAUSED"))
    assert "None" not in wait.note


@pytest.mark.parametrize("ended", [Ended.DONE, Ended.STOPPED, Ended.HALTED, Ended.DEADLINE])
def test_nothing_else_puts_a_mailout_off(ended: Ended) -> None:
    assert why_it_ended(Limits(UTC), RunReport(ended, None), NOW) is None


def test_a_time_slice_that_ended_with_the_window_waits_for_the_next() -> None:
    limits = Limits(UTC, window=OFFICE)
    wait = why_it_ended(limits, RunReport(Ended.DEADLINE, None), at(UTC, "2026-11-16T18:00"))
    assert wait == Defer(DeferReason.OUTSIDE_HOURS, at(UTC, "2026-11-17T09:00"))
