"""Whoever asks what became of one message finds it in the log by its ids."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from mailout.base.logs import FIELDS, NOTIFICATION_FIELDS
from mailout.outbox.delivery.outcome_log import SAME_LINES_A_RUN, OutcomeLog
from mailout.outbox.delivery.protocol import TAGGED_WITH, TRIED_ONCE, Attempt, Claimed, Result
from mailout.outbox.delivery.states import State


def pair(
    state: State, n: int = 1, *, request: str | None = None, code: str | None = None
) -> tuple[Claimed, Result]:
    attempt = Attempt(f"message-{n}", 1)
    claimed = Claimed(
        attempt=attempt,
        seq=n,
        number=2,
        email=f"anna{n}@example.org",
        content_hash="c",
        mailout_id="mailout",
        company_id="company",
        from_name=None,
        variables={},
        slot=None,
        request_id=request,
    )
    return claimed, Result(attempt, state, code=code, message="so it was", duration_ms=7)


@pytest.mark.parametrize(
    ("state", "level"),
    [
        (State.SENT, logging.DEBUG),
        (State.PENDING, logging.INFO),
        (State.RETRY_SCHEDULED, logging.INFO),
        (State.FAILED, logging.INFO),
        (State.VALIDATION_FAILED, logging.INFO),
        (State.UNKNOWN, logging.WARNING),
    ],
)
def test_every_outcome_is_a_line_with_all_its_fields(
    caplog: pytest.LogCaptureFixture, state: State, level: int
) -> None:
    caplog.set_level(logging.DEBUG, "mailout.sender")
    OutcomeLog().recorded([pair(state, request="asked")], None)
    (line,) = caplog.records
    assert line.levelno == level
    assert [getattr(line, name) for name in FIELDS] == ["message-1", "asked", "company", 2, state, 7]
    assert "anna" not in line.getMessage()


def test_a_mailout_s_message_is_found_by_the_mailout(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mailout.sender")
    OutcomeLog().recorded([pair(State.FAILED)], None)
    assert vars(caplog.records[0])["requestId"] == "mailout"


def test_a_notification_is_found_by_what_its_producer_calls_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mailout.sender")
    claimed, result = pair(State.FAILED, request="trace")
    called = {"traceId": "trace", "subscriptionId": "7", "openEventId": "3", "term": "92026", "campus": "NB"}
    variables = called | {
        TAGGED_WITH: " ".join(called),
        "manage_url": "https://app.example.org/subscriptions/7",
    }
    OutcomeLog().recorded([(replace(claimed, mailout_id=None, variables=variables), result)], None)
    assert {name: getattr(caplog.records[0], name) for name in NOTIFICATION_FIELDS} == called


def test_at_info_a_million_sent_ones_are_no_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mailout.sender")
    OutcomeLog().recorded([pair(State.SENT, n) for n in range(1000)], None)
    assert caplog.records == []


def test_a_list_of_wrong_addresses_does_not_drown_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """At INFO the first of each kind; at DEBUG all of them."""
    caplog.set_level(logging.INFO, "mailout.sender")
    observer = OutcomeLog()
    observer.recorded([pair(State.FAILED, n, code="REJECTED") for n in range(SAME_LINES_A_RUN * 3)], None)
    observer.recorded([pair(State.FAILED, 1, code="OTHER")], None)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == SAME_LINES_A_RUN + 2
    assert (
        told[SAME_LINES_A_RUN]
        == f"more than {SAME_LINES_A_RUN} messages are FAILED REJECTED; the rest at DEBUG"
    )
    caplog.clear()
    caplog.set_level(logging.DEBUG, "mailout.sender")
    observer.recorded([pair(State.FAILED, n, code="REJECTED") for n in range(5)], None)
    assert [record.levelno for record in caplog.records] == [logging.DEBUG] * 5


def test_a_provider_id_that_comes_twice_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """Its events may tell of the wrong message; both results count all the same."""
    log = OutcomeLog()
    with caplog.at_level(logging.INFO, logger="mailout.sender"):
        for n, id in ((1, "ses-1"), (2, "ses-2"), (3, "ses-1")):
            claimed, result = pair(State.SENT, n)
            log.recorded([(claimed, replace(result, provider_message_id=id))], None)
    assert [record.getMessage() for record in caplog.records] == [
        "the provider gave the same id twice: ses-1"
    ]


def test_what_a_reader_is_called_changes_nothing_of_a_mailout_s_message() -> None:
    """A column of somebody's import may have any name: their mail must be tried again like all others."""
    claimed, _ = pair(State.FAILED)
    variables = {TRIED_ONCE: "yes", TAGGED_WITH: "name", "name": "Ann"}
    single = replace(claimed, mailout_id=None, variables=variables)
    of_mailout = replace(single, mailout_id="mailout")
    assert (single.is_tried_once, single.tags) == (True, {"name": "Ann"})
    assert (of_mailout.is_tried_once, of_mailout.tags) == (False, {})
