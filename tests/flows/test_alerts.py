"""Alerts as the flows raise them: a mail for a person, and an event for an automation."""

from __future__ import annotations

from collections.abc import Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client

from flows.queue_actions import pause_everything, pause_mailout
from flows.reconcile import reconcile
from flows.run_queue import run_queue
from flows.send_mailout import send_mailout
from mailout.app.engine import Engine
from mailout.base import ids
from mailout.base.errors import StoreUnavailable
from mailout.insight.alerts.sender import AlertSender
from mailout.outbox.queue.mailout import DeferReason
from tests.flows.test_send_mailout import Build, run
from tests.prefect_server import wait_for

COPY = ids.mailout_id("copy")
ADMIN = "admin@example.org"


def letters(engine: Engine) -> list[EmailMessage]:
    files = sorted(engine.settings.mailout_home.glob("outbox/single/*.eml"))
    read = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in files]
    return [message for message in read if isinstance(message, EmailMessage)]


def events(name: str, id: str) -> Sequence[Any]:
    """Those that Prefect's server has; it takes a moment to write them down."""
    wanted = {"filter": {"event": {"name": [name]}, "resource": {"id": [f"mailout.{id}"]}}}

    def there(client: Any) -> Any:
        return client.request("POST", "/events/filter", json=wanted).json()["events"]

    with get_client(sync_client=True) as client:
        found: Sequence[Any] = wait_for(lambda: there(client), f"{name} is written down")
    return found


@pytest.fixture
def copied(letter: str) -> str:
    """The same letter from another file: it waits for a person."""
    path = Path(letter).with_name("copy.md")
    path.write_text("---\nid: copy\nsubject: Hello\n---\n\nHow are you?\n", encoding="utf-8")
    return str(path)


def test_what_waits_for_a_person_is_a_mail_and_an_event_once(
    engine_with: Build, letter: str, copied: str
) -> None:
    engine = engine_with(ADMIN_EMAIL=ADMIN, FROM_NAME="The Harbour")
    run(send_mailout, letter)
    assert run(send_mailout, copied).name == "Deferred"
    for flow in (run_queue, run_queue, reconcile, run_queue):
        assert run(flow).is_completed()
    (mail,) = letters(engine)
    assert (mail["To"], mail["From"]) == (ADMIN, "mailout <news@example.org>")
    assert mail["Subject"] == "Waits for you: “Hello”"
    assert mail["List-Unsubscribe"] is None
    plain, html = (part.get_content() for part in mail.iter_parts())
    assert f"mailout queue resume {COPY}" in plain
    assert "the same content went to the same list within the last 7 days" in plain
    assert f"mailout queue resume {COPY}" in html
    for address in ("ana@example.org", "bo@example.org", "cy@example.org"):
        assert address not in plain + html
    (event,) = events("mailout.alert.deferred", f"mailout.{COPY}")
    assert event["payload"]["subject"] == "Waits for you: “Hello”"
    assert event["payload"]["reason"] == "duplicate_content"
    assert event["payload"]["mailout"] == COPY
    assert f"mailout queue resume {COPY}" in event["payload"]["text"]


def test_whoever_pauses_by_hand_gets_no_mail(engine_with: Build, letter: str) -> None:
    engine = engine_with(ADMIN_EMAIL=ADMIN, SEND_DELAY=3600)
    run(send_mailout, letter)
    run(pause_mailout, ids.mailout_id("letter"))
    run(run_queue)
    assert letters(engine) == []


def test_everything_paused_is_no_reason_to_keep_silent(engine_with: Build, letter: str, copied: str) -> None:
    engine = engine_with(ADMIN_EMAIL=ADMIN)
    run(send_mailout, letter)
    run(send_mailout, copied)
    run(pause_everything)
    assert run(run_queue).name == "Paused"
    assert len(letters(engine)) == 1


def test_resumed_and_refused_again_by_the_next_run_is_told_again(
    engine_with: Build, letter: str, copied: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person has fixed the wrong thing, and would wait for a letter that never goes."""
    engine = engine_with(ADMIN_EMAIL=ADMIN)
    run(send_mailout, letter)
    run(send_mailout, copied)
    run(run_queue)
    engine.store.resume(COPY)
    monkeypatch.setattr("mailout.outbox.queue.deferrals.may_be_a_duplicate", lambda mailout: True)
    run(run_queue)
    assert engine.store.mailout(COPY).defer_reason is DeferReason.DUPLICATE_CONTENT
    assert len(letters(engine)) == 2


def test_an_alarm_that_breaks_neither_stops_a_mailout_nor_fails_the_run(
    engine_with: Build, letter: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engine_with(ADMIN_EMAIL=ADMIN)
    engine.intake.enqueue(letter)

    def broken(*_: Any) -> Any:
        raise StoreUnavailable

    monkeypatch.setattr(AlertSender, "look", broken)
    state = run(run_queue)
    assert (state.name, engine.store.mailout(ids.mailout_id("letter")).ledger.sent) == ("Completed", 3)
    assert "alerts could not be looked after" in caplog.text
    assert run(reconcile).is_completed()
