"""A row becomes a job as the contract describes it, and what departs from the contract is named."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mailout.kinds.notifications.job import (
    BrokenJob,
    WorkerOptions,
    as_date_time,
    build_job,
    language_tag,
    meeting_summary,
    require_valid,
    retry_delay,
)
from mailout.kinds.notifications.port import ProducerRow
from mailout.kinds.notifications.rules import minutes_until

OPTIONS = WorkerOptions(
    source="seats", provider="ses", zone=ZoneInfo("UTC"), base_url="https://app.example.org/", locale="en-US"
)
NOTED = {
    "courseTitle": "Intro",
    "sectionNumber": "01",
    "snapshotHash": "a1",
    "detectedAt": "2026-11-15T11:58:00Z",
}


def row(event: Mapping[str, Any] | None = None, subscription: Mapping[str, Any] | None = None) -> ProducerRow:
    return ProducerRow(
        notification_id=7,
        attempts=0,
        notification={"open_event_id": 3, "subscription_id": 5, "dedupe_key": "key"},
        event={
            **{"section_id": 1, "term_id": "92026", "campus_code": "NB", "index_number": "12345"},
            **{"status_after": "OPEN", "event_at": "2026-11-15 11:59:00", "trace_id": "t"},
            **{"payload": json.dumps(NOTED), **(event or {})},
        },
        subscription={
            **{"subscription_id": 5, "contact_type": "email", "contact_value": "ana@example.org"},
            **{"status": "Active", "unsubscribe_token": "a/b", **(subscription or {})},
        },
        section={"section_id": 1, "section_number": "99", "subject_code": "198"},
        course={"title": "Today's title", "course_string": "01:198:111"},
        meetings=[{"meeting_day": "M", "start_minutes": 540, "end_minutes": 600, "building_code": "TIL"}],
    )


def test_a_job_is_valid_and_what_was_noted_goes_before_the_tables() -> None:
    job = build_job(row(), OPTIONS)
    require_valid(job)
    assert job["event"]["courseTitle"] == "Intro"
    assert job["event"]["snapshotHash"] == "a1"
    assert job["event"]["eventAt"] == "2026-11-15T11:59:00Z"
    assert job["template"]["variables"]["sectionNumber"] == "01"
    assert job["template"]["variables"]["eventDetectedAt"] == "2026-11-15T11:58:00Z"
    assert job["links"] == {
        "manageUrl": "https://app.example.org/subscriptions/5",
        "unsubscribeUrl": "https://app.example.org/unsubscribe?token=a%2Fb",
    }
    assert job["deliveryPolicy"] == {
        "maxAttempts": 3,
        "lockTtlSeconds": 120,
        "retryScheduleMs": [0, 2000, 7000],
    }
    assert (job["traceId"], job["dedupeKey"], job["subscriptionId"], job["openEventId"]) == ("t", "key", 5, 3)


def test_without_a_note_the_tables_speak() -> None:
    job = build_job(row({"payload": None}), OPTIONS)
    assert job["template"]["variables"]["courseTitle"] == "Today's title"
    assert job["template"]["variables"]["sectionNumber"] == "99"
    assert job["template"]["variables"]["meetingSummary"] == "M 09:00–10:00, TIL"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["version"], "1.1", "version '1.1' is not 1.0"),
        (["dedupeKey"], 5, "dedupeKey"),
        (["recipient", "email"], "nobody", "recipient.email"),
        (["template", "id"], "other", "template.id"),
        (["template", "variables", "manageUrl"], "not a link", "manageUrl"),
        (["event", "eventAt"], "2026-11-15 12:00:00", "event.eventAt"),
        (["deliveryPolicy", "lockTtlSeconds"], 29, "lockTtlSeconds"),
        (["surprise"], 1, "surprise"),
    ],
)
def test_what_departs_from_the_contract_is_named(path: list[str], value: Any, said: str) -> None:
    job = copy.deepcopy(build_job(row(), OPTIONS))
    place = job
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(BrokenJob, match=said):
        require_valid(job)


def test_a_missing_variable_has_its_own_code() -> None:
    job = build_job(row(), OPTIONS)
    del job["template"]["variables"]["sectionIndex"]
    with pytest.raises(BrokenJob, match="sectionIndex") as broken:
        require_valid(job)
    assert broken.value.code == "template_variable_missing"
    del job["dedupeKey"]
    with pytest.raises(BrokenJob) as broken:
        require_valid(job)
    assert broken.value.code == "broken_payload"


def test_an_address_is_never_repeated_in_what_is_said() -> None:
    job = build_job(row(subscription={"contact_value": "secret name"}), OPTIONS)
    with pytest.raises(BrokenJob) as broken:
        require_valid(job)
    assert "secret" not in str(broken.value)


@pytest.mark.parametrize(
    ("written", "meant"), [("en_us", "en-US"), ("ZH-cn", "zh-CN"), ("es", "es"), ("zh-hans-cn", "zh-Hans-CN")]
)
def test_a_locale_is_read_however_it_is_written(written: str, meant: str) -> None:
    assert language_tag(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-11-15T12:00:00.000Z", "2026-11-15T12:00:00Z"),
        ("2026-11-15 12:00:00", "2026-11-15T12:00:00Z"),
        ("2026-11-15T14:00:00+02:00", "2026-11-15T12:00:00Z"),
        ("soon", "soon"),
        (None, None),
    ],
)
def test_both_forms_of_a_time_are_read(written: str | None, meant: str | None) -> None:
    assert as_date_time(written) == meant


def test_meetings_read_as_people_say_them() -> None:
    monday = {
        "meeting_day": "M",
        "start_minutes": 540,
        "end_minutes": 600,
        "building_code": "TIL",
        "room_number": "124",
    }
    online = {"meeting_day": None, "campus_location_desc": "Online"}
    assert meeting_summary([monday, monday, online], {}) == "M 09:00–10:00, TIL 124; Online"
    assert meeting_summary([], {"meeting_mode_summary": "By arrangement"}) == "By arrangement"


def test_the_next_pick_is_the_later_of_schedule_and_provider_within_the_lock() -> None:
    assert [retry_delay(n) for n in (1, 2, 3, 9)] == [0.0, 2.0, 7.0, 7.0]
    assert retry_delay(1, retry_after=30) == 30.0
    assert retry_delay(1, retry_after=500) == 120.0


@pytest.mark.parametrize(
    ("start", "end", "clock", "minutes"),
    [
        (540, 1080, "08:59", 1),
        (540, 1080, "09:00", 0),
        (540, 1080, "18:00", 900),
        (1320, 360, "23:00", 0),
        (1320, 360, "05:59", 0),
        (1320, 360, "06:00", 960),
        (600, 600, "03:00", 0),
    ],
)
def test_a_window_may_cross_midnight(start: int, end: int, clock: str, minutes: int) -> None:
    assert minutes_until(start, end, datetime.fromisoformat(f"2026-11-15T{clock}:00+00:00")) == minutes
