"""The contract with a producer of notifications, line by line, over every store of ours."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mailout.adapters.producer.queue import ProducerSqlite
from mailout.app.single_mails_hold import SingleMailsHold
from mailout.base import ids
from mailout.base.errors import SourceUnavailable, UsageError
from mailout.insight.alerts.conditions import alerts
from mailout.insight.alerts.port import Facts, Signs
from mailout.insight.reporting.phrases import single_mails_wait
from mailout.kinds.notifications.notifications import NotificationWorker
from mailout.kinds.notifications.port import RowResult
from mailout.kinds.notifications.watch import dispatch
from mailout.outbox.delivery.options import Ended, RunReport
from mailout.outbox.delivery.outbox_rows import MESSAGES
from mailout.outbox.delivery.protocol import Attempt, Outcome, OutcomeKind
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received, StatusChange
from mailout.outbox.queue import actions
from tests.clocks import NOON
from tests.contract.scenes import subscribe
from tests.contract.stores import StoreFactory
from tests.producer.scene import REFUSED, TRANSIENT, UNKNOWN, Scene
from tests.ses_events import ses_event

ANA = "ana@example.org"
LOCKED = "2026-11-16T11:59:00.000Z"  # a minute ago
PAUSED = Outcome(
    OutcomeKind.STOP, code="SES_ACCOUNT_PAUSED", category="CONFIGURATION_ERROR", message="paused"
)
EXPIRED = "2026-11-16T11:57:59.000Z"  # two minutes and a second ago


@pytest.fixture
def scene(factory: StoreFactory, folder: Path) -> Iterator[Scene]:
    with closing(Scene(factory, folder)) as made:
        yield made


def outbox(factory: StoreFactory) -> list[Any]:
    return list(factory.raw("SELECT * FROM email_outbox ORDER BY seq"))


# ── locking ──


@pytest.mark.parametrize(
    ("locked_at", "picked"),
    [
        (None, True),
        (LOCKED, False),
        (EXPIRED, True),
        ("2026-11-16 11:59:00", False),
        ("2026-11-16 11:57:59", True),
        ("no time at all", True),
    ],
)
def test_a_row_is_picked_when_nobody_holds_it(scene: Scene, locked_at: str | None, picked: bool) -> None:
    id = scene.producer.one()
    scene.producer.sql("UPDATE open_event_notifications SET locked_by = 'x', locked_at = ?", locked_at)
    scene.run()
    assert scene.producer.row(id)["fanout_status"] == ("sent" if picked else "pending")


def test_locking_spends_no_attempt(scene: Scene) -> None:
    id = scene.producer.one()

    def send(seconds: float) -> Any:
        row = scene.producer.row(id)
        assert (row["fanout_attempts"], row["locked_by"]) == (0, "here-1")
        assert row["locked_at"] == "2026-11-16T12:00:00.000Z"
        return scene.send(seconds)

    scene.run(send=send)
    assert scene.producer.row(id)["fanout_attempts"] == 1


@pytest.mark.parametrize("status", ["sent", "skipped", "failed", "expired"])
def test_only_pending_rows_are_ours(scene: Scene, status: str) -> None:
    id = scene.producer.one()
    scene.producer.sql("UPDATE open_event_notifications SET fanout_status = ?", status)
    scene.run()
    assert scene.producer.row(id)["fanout_status"] == status
    assert not scene.accepted


# ── sent ──


def test_a_notification_does_not_come_from_the_address_of_newsletters(scene: Scene) -> None:
    """Complaints about letters would keep it from arriving."""
    scene.producer.one()
    scene.run()
    assert [mail.from_email for mail in scene.mails] == ["notices@example.org"]


def test_a_sent_one_is_told_whole(scene: Scene, factory: StoreFactory) -> None:
    id = scene.producer.one()
    counts = scene.run()
    row = scene.producer.row(id)
    (message,) = outbox(factory)
    assert (row["fanout_status"], row["fanout_attempts"]) == ("sent", 1)
    assert (row["locked_by"], row["locked_at"]) == (None, None)
    assert row["last_attempt_at"] == "2026-11-16T12:00:00.000Z"
    expected = {"provider": "ses", "providerMessageId": message["ses_message_id"], "status": "sent"}
    assert expected.items() <= row["error"].items()
    (event,) = scene.producer.events()
    assert (event["event_type"], event["section_status_snapshot"]) == ("notify_sent", "OPEN")
    (subscription,) = scene.producer.sql("SELECT * FROM subscriptions")
    assert subscription["last_known_section_status"] == "OPEN"
    assert subscription["last_notified_at"] == "2026-11-16T12:00:00.000Z"
    assert (counts.sent, scene.accepted) == (1, {"ana@example.org": 1})


def test_the_subscription_may_be_left_alone(scene: Scene) -> None:
    scene.producer.one()
    scene.run(update_subscriptions=False)
    (subscription,) = scene.producer.sql("SELECT * FROM subscriptions")
    assert (subscription["last_known_section_status"], subscription["last_notified_at"]) == (None, None)


def test_times_are_written_in_the_form_that_the_column_holds(scene: Scene) -> None:
    old = scene.producer.one()
    scene.producer.sql(
        "UPDATE open_event_notifications SET fanout_status = 'sent', last_attempt_at = datetime('now')"
    )
    scene.producer.sql(
        "INSERT INTO subscription_events (subscription_id, event_type, payload) VALUES (1, 'created', '{}')"
    )
    id = scene.producer.one("bo@example.org")
    scene.run()
    assert old != id
    assert scene.producer.row(id)["last_attempt_at"] == "2026-11-16 12:00:00"
    assert scene.producer.events()[-1]["created_at"] == "2026-11-16 12:00:00"
    (subscription,) = scene.producer.sql("SELECT * FROM subscriptions WHERE contact_value LIKE 'bo%'")
    assert subscription["last_notified_at"] == "2026-11-16T12:00:00.000Z"


def test_the_mail_carries_links_tags_and_no_promise_of_a_post(scene: Scene, factory: StoreFactory) -> None:
    scene.producer.one()
    scene.run()
    (mail,) = scene.mails
    assert mail.unsubscribe_url == "https://app.example.org/unsubscribe?token=token-ana%40example.org"
    assert not mail.one_click
    assert mail.values["manage_url"] == "https://app.example.org/subscriptions/1"
    metadata = {"subscriptionId": "1", "openEventId": "1", "term": "92026", "campus": "NB"}
    assert mail.tags == {"traceId": "trace-1", **metadata}
    (message,) = outbox(factory)
    assert (message["dedupe_key"], message["request_id"]) == ("dedupe", "trace-1")
    assert mail.content.subject == "A seat opened: Intro CS (12345)"
    assert "M 09:00–10:00, TIL 124" in mail.content.text
    assert "01:198:111, section 01" in mail.content.text  # the number noted with the event, not today's 07


# ── retryable ──


def test_a_transient_error_waits_as_the_schedule_says_and_the_third_is_the_last(scene: Scene) -> None:
    id = scene.producer.one()
    scene.answer(TRANSIENT)
    scene.run()  # the first two: the schedule's first delay is none
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"]) == ("pending", 2)
    assert row["locked_by"] is None
    assert row["locked_at"] == "2026-11-16T11:58:02.000Z"  # now − 120 s + 2 s
    assert row["last_attempt_at"] == "2026-11-16T12:00:00.000Z"
    expected = {"code": "SES_SERVICE_UNAVAILABLE", "message": "try later", "retryAfterSeconds": 2.0}
    assert expected.items() <= row["error"].items()
    assert scene.producer.events() == []
    scene.run()
    assert scene.transport.calls == 2
    scene.wait(2.1)
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"], scene.transport.calls) == ("failed", 3, 3)
    assert row["error"]["code"] == "SES_SERVICE_UNAVAILABLE"
    assert [event["event_type"] for event in scene.producer.events()] == ["notify_failed"]


def test_a_retry_that_is_due_does_not_wait_until_no_new_rows_come(scene: Scene) -> None:
    id = scene.producer.one()
    scene.answer(lambda mail, nth: TRANSIENT if nth < 3 else None)
    worker = scene.worker(batch=1)
    for n in range(6):
        scene.producer.one(f"p{n}@example.org", event={"dedupe_key": str(n)})
        worker.round()
        scene.wait(8)
    assert scene.producer.row(id)["fanout_status"] == "sent"


def test_each_row_is_counted_once_by_what_it_heard_last(scene: Scene) -> None:
    for n in range(3):
        scene.producer.one(f"p{n}@example.org", event={"dedupe_key": str(n)})
    scene.answer(lambda mail, nth: TRANSIENT if nth == 1 else None)
    assert scene.run().said() == "3 notifications sent, 0 skipped, 0 failed."
    scene.producer.one("later@example.org", metadata={"preferences": {"snoozeUntil": "2026-11-16T12:30:00Z"}})
    scene.producer.one("often@example.org", event={"dedupe_key": "often"})
    scene.answer(TRANSIENT)
    counts = dispatch(scene.worker, scene.clock, threading.Event(), 1)
    assert counts.said() == "0 notifications sent, 0 skipped, 0 failed, 1 to be tried again, 1 for later."
    counts = dispatch(scene.worker, scene.clock, threading.Event(), 600)
    assert counts.said() == "0 notifications sent, 0 skipped, 1 failed, 1 for later."


def test_what_held_mail_up_an_hour_ago_is_no_problem_now(scene: Scene) -> None:
    scene.producer.one()
    scene.answer(lambda mail, nth: PAUSED if scene.clock.now() < NOON + 100 else None)
    counts = dispatch(scene.worker, scene.clock, threading.Event(), 600)
    assert (counts.said(), counts.problems) == ("1 notification sent, 0 skipped, 0 failed.", [])


def test_people_are_told_that_notifications_wait_and_why_until_one_is_sent(scene: Scene) -> None:
    """The outbox has nothing that waits, so nobody would notice that SES takes no mail."""
    scene.producer.one()
    scene.answer(PAUSED)

    def send(seconds: float) -> RunReport:
        return SingleMailsHold(scene.store, scene.clock, rehearsal=False).ended(scene.send(seconds))

    def told() -> list[str]:
        signs = Signs(scene.clock.now())
        waiting = scene.store.single_mails_waiting(rehearsal=False)
        return [alert.subject for alert in alerts(Facts(signs, single_mails=waiting), scene.zone)]

    scene.run(send=send)
    waiting = scene.store.single_mails_waiting(rehearsal=False)
    said = single_mails_wait(waiting, scene.zone) or ""
    assert (waiting.due, told(), said[:26]) == (0, ["Notifications wait"], "Notifications wait, since ")
    scene.wait(61)
    scene.answer(None)
    scene.run(send=send)
    assert (scene.accepted, told()) == ({ANA: 1}, [])


def test_every_copy_has_the_same_rows_which_are_counted_once(scene: Scene) -> None:
    scene.producer.one()
    scene.producer.one("bo@example.org", status="paused")
    before = scene.producer.sql("SELECT * FROM open_event_notifications")

    def on_a_new_copy() -> NotificationWorker:
        for row in before:
            scene.producer.sql(
                "UPDATE open_event_notifications SET fanout_status = 'pending', fanout_attempts = 0,"
                " error = NULL, locked_by = NULL, locked_at = NULL WHERE notification_id = ?",
                row["notification_id"],
            )
        scene.producer.sql("DELETE FROM subscription_events")
        return scene.worker(on_a_copy=True)

    counts = dispatch(on_a_new_copy, scene.clock, threading.Event(), 300)
    assert counts.said() == "1 notification sent, 1 skipped, 0 failed."


def test_a_failed_notification_is_not_retried_behind_its_producers_back(
    scene: Scene, factory: StoreFactory
) -> None:
    """The producer's row says failed: a mail that is sent then is one that nobody counts."""
    scene.producer.one()
    scene.answer(REFUSED)
    scene.run()
    (row,) = outbox(factory)
    for act in (actions.retry_single_mail, actions.cancel_single_mail):
        with pytest.raises(UsageError, match="It is a notification"):
            act(scene.store, str(row["id"]))


def test_one_that_is_sent_on_the_last_attempt_stays_sent(scene: Scene) -> None:
    id = scene.producer.one()
    scene.answer(lambda mail, nth: TRANSIENT if nth < 3 else None)
    scene.run()
    scene.wait(2.1)
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"]) == ("sent", 3)


def test_a_pending_row_without_attempts_left_is_a_dead_letter(scene: Scene) -> None:
    id = scene.producer.one()
    scene.producer.sql("UPDATE open_event_notifications SET fanout_attempts = 3")
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"], row["error"]["code"]) == (
        "failed",
        3,
        "max_attempts",
    )


def test_a_dead_letter_keeps_its_last_attempt(scene: Scene) -> None:
    """Why nobody was notified is in it; that the attempts are spent can be seen anyway."""
    id = scene.producer.one()
    scene.answer(TRANSIENT)
    scene.run()
    before = scene.producer.row(id)["error"]
    scene.producer.sql("UPDATE open_event_notifications SET fanout_attempts = 3, locked_at = NULL")
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"], scene.transport.calls) == ("failed", 3, 2)
    assert row["error"] == {**before, "deadLetter": "It has been tried 3 times."}
    assert row["error"]["code"] == "SES_SERVICE_UNAVAILABLE"
    scene.answer(None)
    scene.requeue(id)
    scene.run()
    assert (scene.producer.row(id)["fanout_status"], scene.accepted) == ("sent", {ANA: 1})


@pytest.mark.parametrize("error", [r'{"code": "x", "message": "\ud83d"}', "[" * 100_000])
def test_an_odd_error_of_somebody_else_ends_no_worker(scene: Scene, error: str) -> None:
    odd, other = scene.producer.one(), scene.producer.one("bo@example.org", event={"dedupe_key": "other"})
    scene.producer.sql(
        "UPDATE open_event_notifications SET fanout_attempts = 3, error = ? WHERE notification_id = ?",
        error,
        odd,
    )
    scene.run()
    assert [scene.producer.row(id)["fanout_status"] for id in (odd, other)] == ["failed", "sent"]


# ── terminal ──

PREFERS = {"notifyOn": ["waitlist"]}


def window(start: int, end: int) -> dict[str, Any]:
    return {"metadata": {"preferences": {"deliveryWindow": {"startMinutes": start, "endMinutes": end}}}}


@pytest.mark.parametrize(
    ("columns", "event", "status", "code"),
    [
        ({"status": "unsubscribed"}, {}, "skipped", "unsubscribed"),
        ({"status": "SUPPRESSED"}, {}, "skipped", "suppressed"),
        ({"status": "paused"}, {}, "skipped", "paused"),
        ({"contact_type": "sms", "email": "+15550100"}, {}, "skipped", "non_email_contact"),
        ({}, {"status_after": "Closed"}, "skipped", "not_open"),
        ({"email": "nobody"}, {}, "skipped", "invalid_recipient"),
        ({"metadata": {"preferences": PREFERS}}, {}, "skipped", "not_wanted"),
        ({"metadata": {"preferences": {"maxNotifications": 0}}}, {}, "skipped", "max_notifications"),
        ({}, {"payload": "{"}, "failed", "broken_payload"),
        ({}, {"payload": "[]"}, "failed", "broken_payload"),
        ({}, {"payload": {"version": "2.0"}}, "failed", "broken_payload"),
        ({}, {"event_at": "yesterday"}, "failed", "broken_payload"),
        (window(1500, 1600), {}, "failed", "broken_payload"),  # never open: it would wait for ever
        (window(-60, 0), {}, "failed", "broken_payload"),
        (window(1440, -1), {}, "failed", "broken_payload"),
        ({"status": "strange"}, {}, "failed", "broken_payload"),
    ],
)
def test_a_row_that_no_mail_is_sent_for(
    scene: Scene, columns: dict[str, Any], event: dict[str, Any], status: str, code: str
) -> None:
    id = scene.producer.one(event=event, **{"email": "ana@example.org", **columns})
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"]) == (status, 1)
    assert (row["error"]["code"], row["locked_by"], row["locked_at"]) == (code, None, None)
    assert row["error"]["message"]
    assert [one["event_type"] for one in scene.producer.events()] == ["notify_failed"]
    assert not scene.accepted


def test_a_limit_below_one_is_told_as_what_it_is(scene: Scene) -> None:
    id = scene.producer.one(metadata={"preferences": {"maxNotifications": -1}})
    scene.run()
    told = scene.producer.row(id)["error"]["message"]
    assert told == "The subscription allows none: maxNotifications is -1."


@pytest.mark.parametrize("status", ["pending", "active", "ACTIVE"])
def test_pending_and_active_subscriptions_are_sent(scene: Scene, status: str) -> None:
    id = scene.producer.one(status=status, metadata={"preferences": {"notifyOn": ["Open"]}})
    scene.run()
    assert scene.producer.row(id)["fanout_status"] == "sent"


def test_a_locale_that_the_template_lacks_falls_back_to_ours(scene: Scene) -> None:
    """Somebody who reads French would otherwise never learn of the seat."""
    french = scene.producer.one(locale="fr-FR")
    spanish = scene.producer.one("bo@example.org", locale="fr-FR", event={"dedupe_key": "other"})
    scene.run()
    assert scene.producer.row(french)["fanout_status"] == "sent"
    scene.producer.sql(
        "UPDATE open_event_notifications SET fanout_status = 'pending', fanout_attempts = 0,"
        " error = NULL WHERE notification_id = ?",
        spanish,
    )
    scene.run(locale="es-US")
    assert ["Se acaba" in mail.content.text for mail in scene.mails] == [False, False, True]


def test_an_event_without_a_section_is_sent_with_what_is_known(scene: Scene) -> None:
    id = scene.producer.one(event={"section_id": None, "index_number": "99999", "payload": None})
    scene.run()
    assert scene.producer.row(id)["fanout_status"] == "sent"
    text = scene.mails[0].content.text
    assert all(word in text for word in ("Course update", "TBD", "TBA", "99999"))


def test_what_is_written_into_the_producer_s_rows_reads_as_its_own_worker_s(scene: Scene) -> None:
    id = scene.producer.one()
    scene.producer.sql("UPDATE subscriptions SET updated_at = '2020-01-01T00:00:00.000Z'")
    scene.run()
    (row,) = scene.producer.sql("SELECT error FROM open_event_notifications WHERE notification_id = ?", id)
    assert '"status":"sent"' in row["error"]
    (subscription,) = scene.producer.sql("SELECT updated_at, last_notified_at FROM subscriptions")
    assert subscription["updated_at"] == subscription["last_notified_at"]


def test_a_missing_template_and_a_missing_variable_are_named(scene: Scene) -> None:
    folder = scene.templates / "open-seat" / "v2" / "en-US"
    folder.mkdir(parents=True)
    for name in ("subject.txt.j2", "body.html.j2", "footer.html.j2"):
        (folder / name).write_text("Seats", encoding="utf-8")
    (folder / "body.txt.j2").write_text("{{ professor }}", encoding="utf-8")
    english = scene.producer.one("bo@example.org")
    scene.run(template_version="v2")
    error = scene.producer.row(english)["error"]
    assert error["code"] == "template_variable_missing"
    assert "professor" in error["message"]
    again = scene.producer.one("cy@example.org", event={"dedupe_key": "other"})
    scene.run(template_version="v9")
    assert scene.producer.row(again)["error"]["code"] == "template_locale_missing"


@pytest.mark.parametrize(
    ("columns", "event"),
    [
        ({}, {"payload": r'{"courseTitle": "A \ud83d"}'}),  # half of a character
        ({}, {"payload": r'{"courseTitle": "A \u0000"}'}),
        ({}, {"payload": "[" * 100_000}),
        ({}, {"event_at": "9999-12-31T23:59:59-12:00"}),
        ({}, {"event_at": "9999-12-31T23:59:59Z"}),  # next year's in the zone that the mail is written for
        ({}, {"trace_id": "a\0b"}),
        ({"metadata": b"\xff"}, {}),
        ({"locale": b"en"}, {}),
    ],
)
def test_an_odd_row_fails_alone(scene: Scene, columns: dict[str, Any], event: dict[str, Any]) -> None:
    """It would end the worker, which would pick it first when it starts again: nobody would be notified."""
    scene.zone = ZoneInfo("Asia/Tokyo")
    odd = scene.producer.one(event=event, **columns)
    others = [scene.producer.one(f"p{n}@example.org", event={"dedupe_key": str(n)}) for n in range(2)]
    counts = scene.run()
    row = scene.producer.row(odd)
    assert (row["fanout_status"], row["fanout_attempts"]) == ("failed", 1)
    assert (row["error"]["code"], bool(row["error"]["message"])) == ("broken_payload", True)
    assert [scene.producer.row(id)["fanout_status"] for id in others] == ["sent", "sent"]
    assert (counts.sent, counts.failed) == (2, 1)


@pytest.mark.parametrize("value", ["x'00ff'", "9e999"])
@pytest.mark.parametrize(
    ("column", "ended"),
    [
        ("open_event_notifications.open_event_id", "failed"),
        ("open_event_notifications.subscription_id", "failed"),
        ("open_events.section_id", "failed"),
        ("sections.course_id", "sent"),  # without what is only there to enrich it
    ],
)
def test_an_id_that_is_none_fails_its_row_alone(scene: Scene, column: str, value: str, ended: str) -> None:
    odd, other = scene.producer.one(), scene.producer.one("bo@example.org", event={"dedupe_key": "other"})
    table, name = column.split(".")
    scene.producer.sql(f"UPDATE {table} SET {name} = {value} WHERE rowid = 1")
    scene.run()
    row = scene.producer.row(odd)
    assert (row["fanout_status"], row["locked_by"]) == (ended, None)
    assert ended == "sent" or row["error"]["code"] == "broken_payload"
    assert scene.producer.row(other)["fanout_status"] == "sent"


def test_an_event_of_somebody_else_that_looks_like_ours_ends_no_worker(scene: Scene) -> None:
    """It is read when a row has a message already."""
    id = scene.producer.one()
    scene.answer(TRANSIENT)
    scene.run()
    scene.answer(None)
    scene.producer.sql(
        "INSERT INTO subscription_events (subscription_id, event_type, payload)"
        """ VALUES (1, 'notify_failed', '{"notificationId": [2], "outboxId": "x"}')"""
    )
    scene.wait(3)
    scene.run()
    assert scene.producer.row(id)["fanout_status"] == "sent"


def test_a_text_that_is_not_in_utf_8_fails_its_row_alone(scene: Scene) -> None:
    odd, other = scene.producer.one(), scene.producer.one("bo@example.org", event={"dedupe_key": "other"})
    scene.producer.sql("UPDATE open_events SET payload = CAST(x'7bff' AS TEXT) WHERE dedupe_key = 'dedupe'")
    scene.run()
    assert scene.producer.row(odd)["error"]["code"] == "broken_payload"
    assert scene.producer.row(other)["fanout_status"] == "sent"


@pytest.mark.parametrize("written", ["{% if %}", "{{ courseTitle | shout }}", "{{ courseTitle + 1 }}"])
def test_a_template_with_a_mistake_fails_its_rows_and_is_named(scene: Scene, written: str) -> None:
    folder = scene.templates / "open-seat" / "v2" / "en-US"
    folder.mkdir(parents=True)
    for name in ("subject.txt.j2", "body.html.j2", "footer.html.j2", "body.txt.j2"):
        (folder / name).write_text("Seats", encoding="utf-8")
    (folder / "body.txt.j2").write_text(written, encoding="utf-8")
    id = scene.producer.one()
    scene.run(template_version="v2")
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["error"]["code"]) == ("failed", "invalid_template")
    assert "open-seat/v2/en-US" in row["error"]["message"]


def test_so_many_notifications_and_no_more(scene: Scene) -> None:
    subscription = scene.producer.subscribe(metadata={"preferences": {"maxNotifications": 2}})
    rows = []
    for number in range(3):
        event = scene.producer.open_event(dedupe_key=str(number))
        rows.append(scene.producer.notify(subscription, event, str(number)))
        scene.run()
    assert [scene.producer.row(id)["fanout_status"] for id in rows] == ["sent", "sent", "skipped"]


def several(scene: Scene, most: int, rows: int) -> list[int]:
    """Rows of one subscription with a limit."""
    subscription = scene.producer.subscribe(metadata={"preferences": {"maxNotifications": most}})
    events = [scene.producer.open_event(dedupe_key=str(n)) for n in range(rows)]
    return [scene.producer.notify(subscription, event, str(n)) for n, event in enumerate(events)]


@pytest.mark.parametrize("most", [1, 2])
def test_a_limit_holds_also_for_rows_that_come_together(scene: Scene, most: int) -> None:
    rows = several(scene, most, rows=4)
    for _ in range(3):
        scene.run()
        scene.wait(1.1)
    assert [scene.producer.row(id)["fanout_status"] for id in rows] == ["sent"] * most + ["skipped"] * (
        4 - most
    )
    assert scene.accepted == {ANA: most}


def test_a_row_behind_one_that_fails_is_not_counted_out(scene: Scene) -> None:
    """Also while another worker holds the one before it."""
    rows = several(scene, 1, rows=2)
    scene.producer.sql(
        "UPDATE open_event_notifications SET locked_by = 'x', locked_at = ? WHERE dedupe_key = '0'", LOCKED
    )
    scene.run()
    assert not scene.accepted
    scene.wait(61)
    scene.answer(lambda mail, nth: REFUSED if nth == 1 else None)
    for _ in range(2):
        scene.run()
        scene.wait(1.1)
    assert [scene.producer.row(id)["fanout_status"] for id in rows] == ["failed", "sent"]


@pytest.mark.parametrize(
    ("heard", "status"),
    [
        (StatusChange("bounced", NOON), "skipped"),
        (StatusChange("unsubscribed", NOON, complained=True), "skipped"),
        (
            StatusChange("unsubscribed", NOON),
            "sent",
        ),  # from our letters; what it asked the producer for still comes
    ],
)
def test_a_dead_address_and_a_complainer_get_nothing(scene: Scene, heard: StatusChange, status: str) -> None:
    subscribe(scene.store, "ana@example.org")
    scene.store.change_statuses({"ana@example.org": heard})
    id = scene.producer.one()
    scene.run()
    row = scene.producer.row(id)
    assert row["fanout_status"] == status
    assert status == "sent" or row["error"]["code"] == "suppressed"


@pytest.mark.parametrize(
    ("outcome", "status", "code"),
    [
        (UNKNOWN, "failed", "outcome_unknown"),
        (REFUSED, "failed", "SES_MESSAGE_REJECTED"),
        (Outcome(OutcomeKind.INVALID, code="INVALID_EMAIL", message="no"), "skipped", "invalid_recipient"),
    ],
)
def test_what_the_transport_says_for_good(scene: Scene, outcome: Outcome, status: str, code: str) -> None:
    id = scene.producer.one()
    scene.answer(outcome)
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["error"]["code"], row["fanout_attempts"]) == (status, code, 1)
    scene.run()
    assert scene.transport.calls == 1


def test_other_channels_may_be_left_to_their_worker(scene: Scene) -> None:
    id = scene.producer.one("+15550100", contact_type="sms")
    theirs, ours = scene.producer.row(id), scene.producer.one()
    scene.run(email_only=True)
    assert scene.producer.row(id) == theirs  # locked_at, too: their worker can pick it at once
    assert scene.producer.row(ours)["fanout_status"] == "sent"


# ── not yet ──


@pytest.mark.parametrize(
    ("preferences", "sent"),
    [
        ({"snoozeUntil": "2026-11-16T12:01:00Z"}, False),
        ({"snoozeUntil": "2026-11-16T11:59:00Z"}, True),
        ({"deliveryWindow": {"startMinutes": 721, "endMinutes": 800}}, False),
        ({"deliveryWindow": {"startMinutes": 720, "endMinutes": 800}}, True),
        ({"deliveryWindow": {"startMinutes": 1320, "endMinutes": 420}}, False),
        ({"deliveryWindow": {"startMinutes": 700, "endMinutes": 60}}, True),
        ({"deliveryWindow": {"startMinutes": 700, "endMinutes": 1500}}, True),
    ],
)
def test_a_row_for_later_spends_no_attempt(scene: Scene, preferences: dict[str, Any], sent: bool) -> None:
    id = scene.producer.one(metadata={"preferences": preferences})
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"]) == (("sent", 1) if sent else ("pending", 0))
    if not sent and preferences.get("snoozeUntil"):
        scene.wait(61)
        scene.run()
        assert scene.producer.row(id)["fanout_status"] == "sent"


def test_what_cannot_be_sent_now_waits_without_an_attempt_and_is_sent_later(scene: Scene) -> None:
    """A setting is wrong: the rest of the run would hear the same."""
    ids = [scene.producer.one(f"p{n}@example.org", event={"dedupe_key": str(n)}) for n in range(3)]
    scene.answer(PAUSED)
    counts = scene.run()
    assert counts.waiting == 3
    assert "SES_ACCOUNT_PAUSED" in counts.problems[0]
    assert {(row["fanout_status"], row["fanout_attempts"]) for row in scene.producer.rows()} == {
        ("pending", 0)
    }
    scene.answer(None)
    scene.wait(61)
    scene.run()
    assert [scene.producer.row(id)["fanout_attempts"] for id in ids] == [1, 1, 1]
    assert set(scene.accepted.values()) == {1}


def test_who_unsubscribes_while_the_mail_waits_is_not_mailed(scene: Scene, factory: StoreFactory) -> None:
    id = scene.producer.one()
    scene.answer(PAUSED)
    scene.run()
    scene.producer.sql("UPDATE subscriptions SET status = 'unsubscribed'")
    scene.answer(None)
    scene.wait(61)
    scene.run()
    assert scene.producer.row(id)["error"]["code"] == "unsubscribed"
    scene.send(30)
    assert not scene.accepted
    assert outbox(factory)[0]["state"] == State.SUPPRESSED


def test_who_snoozes_while_the_mail_waits_gets_it_afterwards(scene: Scene) -> None:
    id = scene.producer.one()
    scene.answer(PAUSED)
    scene.run()
    snooze = '{"preferences": {"snoozeUntil": "2026-11-16T12:02:00Z"}}'
    scene.producer.sql("UPDATE subscriptions SET metadata = ?", snooze)
    scene.answer(None)
    scene.wait(61)
    scene.run()
    scene.send(30)
    assert not scene.accepted
    scene.wait(60)
    scene.run()
    assert (scene.producer.row(id)["fanout_status"], scene.accepted) == ("sent", {"ana@example.org": 1})


@pytest.mark.parametrize(
    "changed",
    [
        "UPDATE open_event_notifications SET fanout_status = 'expired'",
        "DELETE FROM open_event_notifications",
        "UPDATE subscriptions SET status = 'unsubscribed'",
        "UPDATE subscriptions SET contact_value = 'new@example.org'",
        """UPDATE subscriptions SET metadata = '{"preferences": {"deliveryWindow": {"endMinutes": 60}}}'""",
    ],
)
@pytest.mark.parametrize("ended", [Ended.LIMITED, Ended.STOPPED, Ended.REFUSED])
def test_what_is_held_up_is_sent_only_after_the_producer_was_asked_again(
    scene: Scene, factory: StoreFactory, changed: str, ended: Ended
) -> None:
    """Hours later nobody wants it any more, and whoever sends single mails cannot know that."""
    rows = [scene.producer.one(f"p{n}@example.org", event={"dedupe_key": str(n)}) for n in range(5)]
    scene.run(batch=2, send=lambda seconds: RunReport(ended, None))
    assert {row["state"] for row in outbox(factory)} == {State.SUPPRESSED}
    assert len(outbox(factory)) == 1  # the others were never put there
    scene.producer.sql(f"{changed} {'AND' if 'WHERE' in changed else 'WHERE'} subscription_id = 1")
    scene.send(30)
    assert not scene.accepted
    scene.wait(61)
    scene.run()
    assert scene.accepted.pop("p0@example.org", None) is None
    assert scene.accepted.items() >= {f"p{n}@example.org": 1 for n in range(1, 5)}.items()
    assert [scene.producer.row(id)["fanout_attempts"] for id in rows[1:]] == [1, 1, 1, 1]


def test_a_row_that_was_held_up_for_long_is_sent_once_and_soon_found(
    scene: Scene, factory: StoreFactory
) -> None:
    id = scene.producer.one()
    scene.answer(PAUSED)
    for _ in range(20):
        scene.run()
        scene.wait(61)
    scene.answer(None)
    select, looks = scene.store.select, list[int]()

    def counted(view: Any, *rest: Any, **more: Any) -> Any:
        looks.append(view is MESSAGES)
        return select(view, *rest, **more)

    scene.store.select = counted  # type: ignore[method-assign]
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"], scene.accepted) == ("sent", 1, {ANA: 1})
    assert [message["state"] for message in outbox(factory)] == [State.SUPPRESSED] * 20 + [State.SENT]
    assert sum(looks) == 5 + 1  # of 1, 2, 4, 8 and 16 messages, and once after it was sent


def test_while_mail_is_held_up_one_row_a_minute_asks_whether_it_still_is(
    scene: Scene, factory: StoreFactory
) -> None:
    for n in range(5):
        scene.producer.one(f"p{n}@example.org", event={"dedupe_key": str(n)})
    scene.answer(PAUSED)
    dispatch(lambda: scene.worker(batch=3), scene.clock, threading.Event(), 600)
    assert len(outbox(factory)) == scene.transport.calls == 10
    scene.answer(None)
    dispatch(scene.worker, scene.clock, threading.Event(), 100)
    assert scene.accepted == {f"p{n}@example.org": 1 for n in range(5)}


def test_a_limit_that_comes_while_a_batch_is_sent_leaves_none_of_it_in_the_outbox(
    scene: Scene, factory: StoreFactory
) -> None:
    ids = [scene.producer.one(f"p{n}@example.org", event={"dedupe_key": str(n)}) for n in range(5)]
    scene.answer(lambda mail, nth: PAUSED if mail.to > "p2" else None)
    scene.run()
    assert [row["state"] for row in outbox(factory)] == [State.SENT] * 2 + [State.SUPPRESSED] * 3
    assert [scene.producer.row(id)["fanout_status"] for id in ids] == ["sent"] * 2 + ["pending"] * 3
    scene.answer(None)
    scene.wait(61)
    scene.run()
    assert scene.accepted == {f"p{n}@example.org": 1 for n in range(5)}


# ── crashes, takeovers, requeues ──


class Died(BaseException):
    pass


class DiesBeforeWriting(ProducerSqlite):
    def write(self, results: Sequence[RowResult]) -> set[int]:
        raise Died


class DiesAfterWriting(ProducerSqlite):
    def write(self, results: Sequence[RowResult]) -> set[int]:
        super().write(results)
        raise Died


def die_before_reporting(scene: Scene) -> None:
    with pytest.raises(Died):
        scene.worker(producer=DiesBeforeWriting).run()
    scene.producer.free_locks()


@pytest.mark.parametrize(
    ("outcome", "status", "attempts", "calls"),
    [(None, "sent", 1, 1), (UNKNOWN, "failed", 1, 1), (TRANSIENT, "sent", 2, 2)],
)
def test_died_between_sending_and_reporting(
    scene: Scene, outcome: Outcome | None, status: str, attempts: int, calls: int
) -> None:
    """What is known is told, what is not is never sent again, and each attempt counts once."""
    id = scene.producer.one()
    scene.answer(outcome)
    die_before_reporting(scene)
    assert scene.producer.row(id)["fanout_attempts"] == 0
    scene.answer(None)
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"], scene.transport.calls) == (status, attempts, calls)


@pytest.mark.parametrize("unsubscribed", [False, True])
def test_died_between_putting_a_message_and_taking_it_back(
    scene: Scene, factory: StoreFactory, monkeypatch: pytest.MonkeyPatch, unsubscribed: bool
) -> None:
    """Whoever picks the row next puts it right, while mail is still held up or once it leaves."""
    id = scene.producer.one()
    scene.answer(PAUSED)

    def die(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(scene.store, "cancel_single_mails", die)
        with pytest.raises(Died):
            scene.run()
    assert [row["state"] for row in outbox(factory)] == [State.PENDING]
    scene.producer.free_locks()
    if unsubscribed:
        scene.producer.sql("UPDATE subscriptions SET status = 'unsubscribed'")
    scene.run()
    assert [row["state"] for row in outbox(factory)] == [State.SUPPRESSED]
    scene.answer(None)
    scene.wait(61)
    scene.run()
    assert scene.producer.row(id)["fanout_status"] == ("skipped" if unsubscribed else "sent")
    assert scene.accepted == ({} if unsubscribed else {ANA: 1})


def test_a_message_that_another_worker_takes_back_is_no_end_of_its_row(scene: Scene) -> None:
    """Two rows with one dedupe key, a worker each: one is held up, the other waits for the same message."""
    subscription = scene.producer.subscribe()
    rows = [scene.producer.notify(subscription, scene.producer.open_event()) for _ in range(2)]

    def send(seconds: float) -> RunReport:
        scene.run(name="other", send=lambda seconds: RunReport(Ended.LIMITED, None), batch=1)
        return scene.send(seconds)

    scene.run(send=send, batch=1)
    assert [scene.producer.row(id)["fanout_status"] for id in rows] == ["pending", "pending"]
    scene.wait(61)
    scene.run()
    assert [scene.producer.row(id)["fanout_status"] for id in rows] == ["sent", "sent"]
    assert scene.accepted == {ANA: 1}


def test_known_to_be_sent_goes_before_what_happened_since(scene: Scene) -> None:
    id = scene.producer.one()
    die_before_reporting(scene)
    scene.producer.sql("UPDATE subscriptions SET status = 'unsubscribed'")
    scene.run()
    assert scene.producer.row(id)["fanout_status"] == "sent"


@pytest.mark.parametrize("outcome", [None, UNKNOWN, REFUSED])
def test_a_requeued_row_is_sent_again_once(scene: Scene, outcome: Outcome | None) -> None:
    id = scene.producer.one()
    scene.answer(outcome)
    scene.run()
    scene.answer(None)
    for sent in (1, 2):
        scene.requeue(id)
        scene.run()
        scene.run()
        row = scene.producer.row(id)
        assert (row["fanout_status"], row["fanout_attempts"]) == ("sent", 1)
        assert scene.accepted == {"ana@example.org": sent + (outcome is None)}


@pytest.mark.parametrize("outcome", [None, TRANSIENT])
def test_died_after_reporting(scene: Scene, outcome: Outcome | None) -> None:
    """What was reported is in the producer's rows: requeued, it is sent again; tried, it is counted once."""
    id = scene.producer.one()
    scene.answer(outcome)
    with pytest.raises(Died):
        scene.worker(producer=DiesAfterWriting).run()
    assert scene.producer.row(id)["fanout_attempts"] == 1
    scene.answer(None)
    if outcome is None:
        scene.requeue(id)
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], scene.transport.calls) == ("sent", 2)
    assert row["fanout_attempts"] == (1 if outcome is None else 2)


def test_an_operator_who_resets_a_row_between_two_attempts_gives_it_three_more(scene: Scene) -> None:
    """An attempt that was counted before is not counted again."""
    id = scene.producer.one()
    scene.answer(TRANSIENT)
    scene.run()
    scene.requeue(id)
    for _ in range(3):
        scene.run()
        scene.wait(10)
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"], scene.transport.calls) == ("failed", 3, 2 + 3)


def test_a_producer_restored_from_a_backup_is_told_again_and_nobody_gets_a_second_mail(scene: Scene) -> None:
    """Its row is pending as if it had been requeued, but nothing in its tables says that it ever ended."""
    id = scene.producer.one()
    scene.run()
    scene.producer.sql("DELETE FROM subscription_events")
    scene.producer.sql(
        "UPDATE open_event_notifications SET fanout_status = 'pending', fanout_attempts = 0, error = NULL,"
        " last_attempt_at = NULL"
    )
    scene.run()
    assert (scene.producer.row(id)["fanout_status"], scene.accepted) == ("sent", {"ana@example.org": 1})


def test_a_worker_that_lost_its_lock_tells_nothing(scene: Scene) -> None:
    id = scene.producer.one()

    def send(seconds: float) -> Any:
        report = scene.send(seconds)
        scene.producer.sql("UPDATE open_event_notifications SET locked_by = 'other'")
        return report

    scene.run(send=send)
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"], row["locked_by"]) == ("pending", 0, "other")
    scene.producer.free_locks()
    scene.run()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"], scene.transport.calls) == ("sent", 1, 1)


def test_a_slow_worker_does_not_take_anothers_end_for_a_requeue(scene: Scene) -> None:
    """It locked the row, slept past its lock, and wakes when another has done everything."""
    id = scene.producer.one()
    slow = scene.worker("slow")
    lock = slow._producer.lock

    def lock_and_sleep(limit: int) -> Any:
        rows = lock(limit)
        if rows:
            scene.producer.free_locks()
            scene.run(name="quick")
        return rows

    slow._producer.lock = lock_and_sleep  # type: ignore[method-assign]
    slow.run()
    assert (scene.producer.row(id)["fanout_attempts"], scene.accepted) == (1, {"ana@example.org": 1})


def test_a_moved_file_sends_nothing_again(scene: Scene) -> None:
    id = scene.producer.one()
    die_before_reporting(scene)
    scene.producer.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    moved = scene.producer.path.with_name("moved.db")
    scene.producer.path.rename(moved)
    scene.producer.path = moved
    scene.run()
    assert (scene.producer.row(id)["fanout_status"], scene.transport.calls) == ("sent", 1)


def test_another_producer_with_the_same_ids_is_another(scene: Scene) -> None:
    scene.producer.one()
    scene.run()
    scene.producer.sql("UPDATE open_event_notifications SET fanout_status = 'pending'")
    scene.run(source="another")
    assert scene.accepted == {"ana@example.org": 2}


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_two_rows_with_one_dedupe_key_are_one_mail(scene: Scene, together: bool, dies: bool) -> None:
    """The poller saw the section open twice within its window: that is no requeue."""
    subscription = scene.producer.subscribe()
    rows = [scene.producer.notify(subscription, scene.producer.open_event())]
    if not together:
        scene.run()
    rows.append(scene.producer.notify(subscription, scene.producer.open_event()))
    if dies:
        die_before_reporting(scene)
    for _ in range(2):
        scene.run()
        scene.wait(121)
    told = [scene.producer.row(id) for id in rows]
    assert [(row["fanout_status"], row["fanout_attempts"]) for row in told] == [("sent", 1), ("sent", 1)]
    assert told[0]["error"]["providerMessageId"] == told[1]["error"]["providerMessageId"]
    assert scene.accepted == {"ana@example.org": 1}
    scene.requeue(rows[1])
    scene.run()
    assert scene.accepted == {"ana@example.org": 2}


@pytest.mark.parametrize("outcome", [TRANSIENT, REFUSED])
def test_two_rows_with_one_dedupe_key_end_alike(scene: Scene, outcome: Outcome) -> None:
    subscription = scene.producer.subscribe()
    rows = [scene.producer.notify(subscription, scene.producer.open_event()) for _ in range(2)]
    scene.answer(outcome)
    for _ in range(4):
        scene.run()
        scene.wait(10)
    attempts = 3 if outcome is TRANSIENT else 1
    for id in rows:
        row = scene.producer.row(id)
        assert (row["fanout_status"], row["fanout_attempts"]) == ("failed", attempts)
    assert scene.transport.calls == attempts


@pytest.mark.parametrize(
    ("event", "later_is"),
    [
        ("Bounce", ("skipped", "suppressed")),
        ("Complaint", ("skipped", "suppressed")),
        ("Delivery", ("sent", None)),
    ],
)
def test_what_comes_back_ends_notifications_here_and_changes_nothing_at_the_producer(
    scene: Scene, factory: StoreFactory, event: str, later_is: tuple[str, str | None]
) -> None:
    """Whoever a producer writes to need not be a subscriber of ours."""
    scene.producer.one()
    scene.run()
    before = scene.producer.rows(), scene.producer.events(), scene.producer.sql("SELECT * FROM subscriptions")
    (message,) = outbox(factory)
    attempt = Attempt(message["id"], message["epoch"])
    payload = ses_event(event, "ana@example.org", attempt=attempt)
    scene.store.receive_events([Received(ids.uuid_of("event"), "sns", payload)])
    assert ingest(scene.store, "any").events == 1
    assert before == (
        scene.producer.rows(),
        scene.producer.events(),
        scene.producer.sql("SELECT * FROM subscriptions"),
    )
    later = scene.producer.one(event={"dedupe_key": "later"})
    scene.run()
    row = scene.producer.row(later)
    assert (row["fanout_status"], row["error"].get("code")) == later_is


# ── a producer's database that is not as it should be ──


def test_a_database_that_cannot_be_used_is_named_in_one_line(scene: Scene, folder: Path) -> None:
    scene.producer.path = folder / "missing.db"
    with pytest.raises(SourceUnavailable, match="There is no file"):
        scene.worker()
    scene.producer.path.write_text(
        "not a database at all, only some text that is long enough", encoding="utf-8"
    )
    with pytest.raises(SourceUnavailable, match="not a sound SQLite database"):
        scene.worker()
    scene.producer.path.unlink()
    with sqlite3.connect(scene.producer.path) as db:
        db.execute("CREATE TABLE things (id)")
    with pytest.raises(SourceUnavailable, match="has no table open_event_notifications"):
        scene.worker()


def test_an_older_schema_is_named_and_left_as_it_is(scene: Scene) -> None:
    scene.producer.sql("ALTER TABLE open_event_notifications DROP COLUMN locked_at")
    with pytest.raises(SourceUnavailable, match="open_event_notifications has no locked_at"):
        scene.worker()


def test_a_locked_database_delays_and_loses_nothing(scene: Scene) -> None:
    id = scene.producer.one()
    other = sqlite3.connect(scene.producer.path, isolation_level=None)

    def send(seconds: float) -> Any:
        report = scene.send(seconds)
        other.execute("BEGIN IMMEDIATE")
        return report

    worker = scene.worker(send=send)
    sleep = scene.clock.sleep

    def sleep_and_unlock(seconds: float) -> None:
        sleep(seconds)
        if other.in_transaction and scene.clock.now() > NOON + 5:
            other.execute("ROLLBACK")

    scene.clock.sleep = sleep_and_unlock  # type: ignore[method-assign]
    worker.run()
    other.close()
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"], scene.transport.calls) == ("sent", 1, 1)


def test_sections_and_courses_may_be_missing(scene: Scene) -> None:
    for table in ("section_meetings", "courses"):
        scene.producer.sql("PRAGMA foreign_keys = OFF")
        scene.producer.sql(f"DROP TABLE {table}")
    payload = {"courseTitle": "CS", "sectionNumber": "01", "courseString": "01:198:111"}
    id = scene.producer.one(event={"payload": payload, "section_id": None})
    scene.run()
    assert scene.producer.row(id)["fanout_status"] == "sent"
