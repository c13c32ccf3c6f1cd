from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.insight.reporting.summary import BUCKETS, IDLE_GAP_SECONDS, rate_of, summarise, timeline_of
from mailout.outbox.delivery.protocol import Attempt, Result
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.mailout import DeferReason
from tests.unit.insight.reporting.conftest import START, Office


def refused(code: str | None, message: str) -> Result:
    return Result(Attempt("", 0), State.FAILED, code=code, message=message)


def test_failures_are_grouped_the_most_frequent_first_with_the_first_addresses(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a thousand equal failures hide the one that needs a person."""
    monkeypatch.setattr("mailout.base.select.SELECT_LIMIT", 3)  # groups reach over pages
    emails = [f"p{i}@example.org" for i in range(9)]
    mailout = office.mailout(emails)
    endings: dict[str, Result | State] = {email: refused("REJECTED", f"no {email}") for email in emails[2:]}
    endings["p1@example.org"] = refused(None, "settled by hand")
    office.send(mailout.id, endings)
    summary = summarise(office.store, mailout.id)
    assert [(group.code, group.count) for group in summary.failures] == [("REJECTED", 7), ("NO_CODE", 1)]
    assert summary.failures[0].addresses == tuple(emails[2:7])
    assert summary.failures[0].message == "no p2@example.org"


def test_it_knows_who_is_in_doubt_and_why_others_got_nothing(office: Office) -> None:
    mailout = office.mailout([f"{name}@example.org" for name in "abc"])
    office.send(mailout.id, {"a@example.org": State.UNKNOWN, "b@example.org": State.RETRY_SCHEDULED})
    office.store.cancel(mailout.id)
    summary = summarise(office.store, mailout.id, transport="folder")
    assert summary.unknown_addresses == ("a@example.org",)
    assert summary.suppressed == {"the mailout was cancelled": 1}
    assert any("settle" in step["command"] for step in summary.to_dict()["next_steps"])


def test_the_dictionary_is_json_and_says_when_in_utc(office: Office) -> None:
    """`--json` and whoever reads it rely on it."""
    mailout = office.mailout(["a@example.org", "b@example.org"])
    office.send(mailout.id, batch=1)
    office.store.complete(mailout.id)
    told = json.loads(json.dumps(summarise(office.store, mailout.id, transport="folder").to_dict()))
    assert told["ledger"]["sent"] == told["ledger"]["recipients"] == 2
    assert (told["mode"], told["status"], told["outcome"]) == ("test", "COMPLETED", "sent")
    assert (told["first_sent_at"], told["last_sent_at"]) == (
        "2026-11-15T09:00:01.000Z",
        "2026-11-15T09:00:02.000Z",
    )
    assert told["duration_seconds"] == 2
    assert told["content_hash"] == mailout.content_hash


def test_a_mailout_that_waits_is_told_with_its_reason(office: Office) -> None:
    mailout = office.mailout(["a@example.org"])
    office.store.defer(mailout.id, DeferReason.DAILY_LIMIT, START + 3600)
    summary = summarise(office.store, mailout.id)
    assert summary.timeline is None
    assert summary.rate is None
    assert summary.to_dict()["defer_reason"] == "daily_limit"
    assert summary.to_dict()["deferred_until"] == "2026-11-15T10:00:00.000Z"


def test_redacted_it_holds_no_address(office: Office) -> None:
    """Else LOG_REDACT hides addresses from the log and shows them in the artifact."""
    emails = ["anna@example.org", "bert@example.org"]
    mailout = office.mailout(emails)
    office.send(
        mailout.id, {emails[0]: refused("REJECTED", "<anna@example.org> said no"), emails[1]: State.UNKNOWN}
    )
    told = json.dumps(summarise(office.store, mailout.id).redacted().to_dict())
    assert "anna" not in told
    assert "bert" not in told
    assert "b***@example.org" in told


@given(st.lists(st.floats(START, START + 1e6), min_size=1, max_size=200))
def test_no_message_is_lost_between_the_buckets(values: list[float]) -> None:
    timeline = timeline_of([(at, 1) for at in values], min(values), max(values))
    assert timeline.total == len(values)
    assert len(timeline.counts) in (1, BUCKETS)
    edges = list(timeline.edges())
    assert edges[0] == (min(values), 0)
    assert edges[-1] == (pytest.approx(max(values)), len(values))
    assert [sent for _, sent in edges] == sorted(sent for _, sent in edges)


def test_the_rate_is_that_of_the_sender_whatever_the_batches() -> None:
    """Ten recorded each second are ten a second, also when there are only two seconds."""
    assert rate_of([START] * 10 + [START + 1] * 10) == 10
    assert rate_of([START + second for second in range(100) for _ in range(5)]) == 5


def test_a_night_between_two_halves_does_not_count_against_the_rate() -> None:
    evening = [START + second for second in range(100)]
    morning = [moment + 10 * IDLE_GAP_SECONDS for moment in evening]
    assert rate_of(evening + morning) == 1


def test_of_one_moment_no_rate_is_told() -> None:
    assert rate_of([START] * 50) is None
    assert rate_of([]) is None
