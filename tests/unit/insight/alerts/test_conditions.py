"""What deserves an alert, and what it says: whoever reads it at night has to know what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.insight.alerts.conditions import (
    DAY_SECONDS,
    DOUBT_GRACE_SECONDS,
    EVENTS_UNHEARD_SECONDS,
    EVENTS_WAIT_SECONDS,
    QUOTA_OVER,
    QUOTA_TELL,
    alerts,
)
from mailout.insight.alerts.port import Alert, AlertKind, Facts, Signs
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, DeferReason, Mailout, MailoutOutcome, Status
from tests.clocks import NOON
from tests.unit.insight.reporting.scenes import mailout

ACCOUNT = "ses:eu-west-1"


def found(*mailouts: Mailout, signs: dict[str, Any] | None = None, **facts: Any) -> list[Alert]:
    return list(alerts(Facts(Signs(NOON, **signs or {}), mailouts, ACCOUNT, **facts), UTC))


def held(reason: DeferReason, **fields: Any) -> Mailout:
    fields = {"ledger": Ledger(9, pending=9), "subject": "The garden opens"} | fields
    return mailout(status=Status.PENDING, defer_reason=reason, **fields)


def test_nothing_wrong_is_nothing_said() -> None:
    assert found() == []


@pytest.mark.parametrize("reason", sorted(WAITS_FOR_A_PERSON))
def test_a_mailout_that_waits_for_a_person_says_which_why_and_what_to_do(reason: DeferReason) -> None:
    one = held(reason, defer_note="The note says more.", ledger=Ledger(9, pending=5, sent=4))
    (alert,) = found(one)
    assert (alert.kind, alert.mailout, alert.reason) == (AlertKind.DEFERRED, one.id, reason)
    assert "The garden opens" in alert.subject
    for said in ("“The garden opens”", one.id, one.ref, "The note says more.", "4 of 9 messages sent"):
        assert said in alert.text
    for command in ("resume", "cancel", "show"):
        assert f"\n  mailout queue {command} {one.id}" in alert.text


@pytest.mark.parametrize("reason", sorted(set(DeferReason) - WAITS_FOR_A_PERSON))
def test_what_goes_on_by_itself_is_nobodys_business(reason: DeferReason) -> None:
    assert found(held(reason, deferred_until=NOON + 60)) == []


def test_whoever_paused_it_knows_and_is_reminded_once_after_a_day() -> None:
    (paused,), (refused,) = found(held(DeferReason.PAUSED)), found(held(DeferReason.REPUTATION))
    assert (paused.grace, paused.remind) == (DAY_SECONDS, False)
    assert (refused.grace, refused.remind) == (0.0, True)


def test_another_reason_is_another_alert() -> None:
    """Resumed, and held at once for something else: that has not been told."""
    keys = {found(held(reason))[0].key for reason in WAITS_FOR_A_PERSON}
    assert len(keys) == len(WAITS_FOR_A_PERSON)


@pytest.mark.parametrize(
    ("status", "outcome"), [(Status.PROCESSING, None), (Status.COMPLETED, MailoutOutcome.FAILED)]
)
def test_messages_in_doubt_are_told_with_both_ways_to_settle_them(
    status: Status, outcome: MailoutOutcome | None
) -> None:
    one = mailout(status=status, outcome=outcome, ledger=Ledger(9, sent=6, unknown=3))
    (alert,) = found(one)
    assert (alert.kind, alert.subject) == (AlertKind.UNKNOWN, f"3 messages in doubt: “{one.subject}”")
    assert f"\n  mailout queue settle {one.id} --as sent" in alert.text
    assert f"\n  mailout queue settle {one.id} --as pending" in alert.text
    assert alert.grace == DOUBT_GRACE_SECONDS
    assert "An event from SES would settle them" not in alert.text
    assert "An event from SES would settle them" in found(one, expects_events=True)[0].text


def test_in_doubt_and_held_are_two_things_each_with_its_own_way_on() -> None:
    both = found(held(DeferReason.REPUTATION, ledger=Ledger(9, pending=5, sent=3, unknown=1)))
    assert [alert.kind for alert in both] == [AlertKind.DEFERRED, AlertKind.UNKNOWN]
    assert "settle" not in both[0].text
    assert "resume" not in both[1].text


def test_a_mailout_without_a_subject_is_called_by_its_file() -> None:
    one = held(DeferReason.REPUTATION, subject="", ref="spring.md")
    assert found(one)[0].subject == "Waits for you: the mailout from spring.md"


# ── the quota ──


@given(most=st.integers(1, 10**7), left=st.integers(-5, 10**7), holding=st.booleans())
def test_the_quota_is_told_from_a_tenth_on_and_over_at_a_fifth(most: int, left: int, holding: bool) -> None:
    """Between the two nothing changes: the window slides, and the line is crossed all day."""
    key = f"quota {ACCOUNT}"
    told = found(signs={"quota_most": most, "holding": frozenset({key} if holding else ())}, quota_left=left)
    assert [alert.key for alert in told] == [key] * (left <= (QUOTA_OVER if holding else QUOTA_TELL) * most)


def test_the_quota_says_how_much_is_left_of_what() -> None:
    (alert,) = found(signs={"quota_most": 50_000}, quota_left=2_100)
    assert alert.subject == "The provider's quota is nearly spent"
    assert "2,100 of the 50,000 messages" in alert.text
    assert "\n  mailout status" in alert.text
    assert found(signs={"quota_most": 50_000}, quota_left=0)[0].subject == "The provider's quota is spent"


def test_without_a_limit_nothing_can_be_spent() -> None:
    assert found(quota_left=None) == []
    assert found(quota_left=0) == []  # nobody has said of how many
    assert found(signs={"quota_most": 50_000}, quota_left=None) == []


# ── events ──


def test_events_that_wait_too_long_are_told_with_the_command_that_applies_them() -> None:
    late = {"events_waiting": 12, "events_waiting_since": NOON - EVENTS_WAIT_SECONDS}
    (alert,) = found(signs=late)
    assert (alert.kind, alert.key) == (AlertKind.EVENTS, "events waiting")
    assert "12 SES events wait in the inbox, the oldest for 10 min." in alert.text
    assert "\n  mailout events" in alert.text
    assert found(signs=late | {"events_waiting_since": NOON - EVENTS_WAIT_SECONDS + 1}) == []


def test_mail_of_which_nothing_comes_back_is_told_only_where_something_should() -> None:
    silent = {"unheard_since": NOON - EVENTS_UNHEARD_SECONDS}
    (alert,) = found(signs=silent, expects_events=True)
    assert (alert.kind, alert.key) == (AlertKind.EVENTS, "events unheard")
    assert "since 16 Nov 2026 11:30 UTC" in alert.text
    assert "\n  mailout doctor" in alert.text
    assert found(signs=silent, expects_events=False) == []
    assert found(signs={"unheard_since": NOON - EVENTS_UNHEARD_SECONDS + 1}, expects_events=True) == []


# ── addresses ──


@given(
    st.sampled_from(["defer_note", "subject", "ref"]),
    st.from_regex(r"[a-z][a-z0-9.+_-]{0,8}[a-z0-9]@[a-z]{2,8}\.(org|рф)", fullmatch=True),
)
def test_no_address_gets_into_an_alert(field: str, email: str) -> None:
    """SES names the recipient whom it refused, and a mail to an administrator is forwarded and kept."""
    words = f"Refused for <{email}>, says SES."
    told = found(held(DeferReason.CONFIGURATION_ERROR, ledger=Ledger(3, unknown=3), **{field: words}))
    assert len(told) == 2
    for alert in told:
        for words in (alert.subject, alert.text, alert.name, alert.about, alert.key):
            assert email not in words


@pytest.mark.parametrize(("complained", "told"), [(1, False), (2, True)])
def test_complaints_are_told_before_they_stop_a_mailout(complained: int, told: bool) -> None:
    """Gmail and Yahoo ask for less than 0.1 %; at 0.3 % it is too late."""
    one = mailout(
        status=Status.COMPLETED,
        ledger=Ledger(1000, sent=1000),
        metrics={"complained": complained},
        completed_at=NOON,
    )
    kinds = [alert.kind for alert in found(recent=[one])]
    assert kinds == ([AlertKind.COMPLAINTS] if told else [])
    assert found(recent=[replace(one, completed_at=NOON - 15 * DAY_SECONDS)]) == []
    assert found(recent=[replace(one, is_test=True)]) == []
