"""When an alert is told: neither every minute nor never."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mailout.insight.alerts.port import Alert, AlertKind, KnownAlert
from mailout.insight.alerts.sender import REMIND_EVERY, REMIND_FOR, RETRY_AFTER, is_due

HOUR, DAY = 3600.0, 86_400.0


def alert(grace: float = 0.0, remind: bool = True) -> Alert:
    return Alert(
        key="a",
        kind=AlertKind.EVENTS,
        subject="s",
        text="t",
        about="x",
        name="x",
        grace=grace,
        remind=remind,
    )


def told_at(one: Alert, until: float, *, fails: int = 0, step: float = 60.0) -> list[float]:
    """The moments at which it was told, looked at every minute; the first `fails` mails do not leave."""
    known, told, now = KnownAlert("a", 0.0), [], 0.0
    while now <= until:
        if is_due(one, known, now):
            known = replace(known, tries=known.tries + 1, failed=known.failed + 1, tried_at=now)
            if known.tries > fails:
                known = replace(known, failed=0, told_at=now)
                told.append(now)
        now += step
    return told


def test_it_is_told_at_once_and_again_each_day_for_a_week() -> None:
    assert told_at(alert(), 30 * DAY, step=HOUR) == [n * DAY for n in range(7)]


def test_what_may_pass_by_itself_is_told_when_it_has_lasted() -> None:
    assert told_at(alert(grace=900.0), DAY) == [900.0]


def test_what_is_told_once_is_told_once() -> None:
    assert told_at(alert(grace=DAY, remind=False), 30 * DAY, step=HOUR) == [DAY]


def test_a_mail_that_could_not_leave_is_tried_again_soon_and_then_each_hour() -> None:
    waits = [*RETRY_AFTER, RETRY_AFTER[-1]]
    assert told_at(alert(), DAY, fails=len(waits))[0] == sum(waits)


@given(fails=st.integers(0, 400), grace=st.sampled_from([0.0, 900.0, DAY]))
def test_nobody_is_called_more_often_than_a_person_can_bear(fails: int, grace: float) -> None:
    """However often the mail fails: at most once a day when it leaves, at most once an hour in the end."""
    told = told_at(alert(grace), 2 * REMIND_FOR, fails=fails, step=HOUR / 4)
    assert all(later - earlier >= REMIND_EVERY for earlier, later in pairwise(told))
    assert len(told) <= 8
