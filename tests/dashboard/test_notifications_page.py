"""The page of notifications, and single mails on a person's page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mailout.insight.history import history_rows
from mailout.letters.content.model import Content
from mailout.outbox.delivery.protocol import TRIED_ONCE
from mailout.outbox.delivery.states import State
from tests.contract.test_history import notification
from tests.contract.test_single_mails import mail
from tests.dashboard.conftest import ADMIN, EDITOR, Site, site
from tests.dashboard.scene import SCRIPT
from tests.producer.database import ProducerDatabase

ANA = "person000@example.org"


@pytest.fixture
def producer(tmp_path: Path) -> ProducerDatabase:
    producer = ProducerDatabase(tmp_path / "seats.db")
    event = producer.open_event()
    failed = json.dumps({"code": "SES_MESSAGE_REJECTED", "message": SCRIPT})
    for n, (status, error) in enumerate((("pending", None), ("failed", failed), ("sent", None))):
        subscription = producer.subscribe(f"seat{n}@example.org")
        producer.notify(subscription, event, fanout_status=status, error=error, fanout_attempts=n)
    return producer


@pytest.fixture
def seats(filled: Path, tmp_path: Path, producer: ProducerDatabase) -> Iterator[Site]:
    with site(filled, tmp_path / "home", notify_db=producer.path) as opened:
        opened.store.accept_single_mails(
            [replace(notification(0), values={TRIED_ONCE: "yes", "requeues": "2"})]
        )
        yield opened


def test_our_messages_and_the_producers_rows_are_shown(seats: Site) -> None:
    seats.sign_in()
    assert 'href="/notifications"' in seats.client.get("/").text
    page = seats.client.get("/notifications").text
    assert "<dt>pending</dt><dd>1</dd>" in page
    assert "A seat is free" in page
    assert "requeued 2 ×" in page
    for shown in ("Pending 1", "Failed 1", "Sent 1", "seat1@example.org", "&lt;script&gt;"):
        assert shown in page
    assert "<script>window" not in page
    failed = seats.client.get("/notifications", params={"status": "failed"}).text
    assert "seat1@example.org" in failed
    assert "seat2@example.org" not in failed


def test_a_row_is_requeued_by_the_administrator_alone(seats: Site, producer: ProducerDatabase) -> None:
    seats.sign_in(EDITOR)
    assert seats.act("/notifications/requeue", id="2").status_code == 403
    assert seats.client.post("/notifications/requeue", data={"id": "2"}).status_code == 403
    seats.sign_in(ADMIN)
    assert seats.client.post("/notifications/requeue", data={"id": "2"}).status_code == 403  # no token
    assert producer.row(2)["fanout_status"] == "failed"
    assert "Notification 2 is pending again." in seats.act("/notifications/requeue", id="2").text
    row = producer.row(2)
    assert (row["fanout_status"], row["fanout_attempts"], row["error"]) == ("pending", 0, None)
    assert [act.what for act in history_rows.acts(seats.store, limit=1)] == ["requeued a notification"]


@pytest.mark.parametrize(
    "id",
    ["", "two", "-1", "9" * 19, "9" * 5000, "\u0663"],
    ids=["nothing", "word", "negative", "too big", "far too long", "another script"],
)
def test_what_is_no_rows_number_is_refused(seats: Site, id: str) -> None:
    seats.sign_in()
    assert "not named by its number" in seats.act("/notifications/requeue", id=id).text


def test_a_row_that_is_not_there_is_not_requeued(seats: Site) -> None:
    seats.sign_in()
    acts = len(history_rows.acts(seats.store))
    assert "There is no notification 77" in seats.act("/notifications/requeue", id="77").text
    assert len(history_rows.acts(seats.store)) == acts


def test_an_editor_sees_counts_and_nobody(seats: Site) -> None:
    assert seats.client.get("/notifications").headers["location"].startswith("/login")
    seats.sign_in(EDITOR)
    page = seats.client.get("/notifications").text
    assert "Failed 1" in page
    assert "@example.org" not in page
    assert "Requeue" not in page


def test_a_file_that_cannot_be_read_is_said(seats: Site, producer: ProducerDatabase) -> None:
    seats.sign_in()
    producer.path.write_bytes(b"no database" * 100)
    page = seats.client.get("/notifications")
    assert page.status_code == 200
    assert "is not a sound SQLite database" in page.text
    producer.path.unlink()
    assert "There is no file" in seats.client.get("/notifications").text
    assert "There is no file" in seats.act("/notifications/requeue", id="1").text
    assert not producer.path.exists()


def test_looking_changes_nothing_at_the_producer(seats: Site, producer: ProducerDatabase) -> None:
    before = producer.rows()
    producer.path.chmod(0o400)
    seats.sign_in()
    assert "seat1@example.org" in seats.client.get("/notifications").text
    producer.path.chmod(0o600)
    assert producer.rows() == before


def test_without_a_producer_the_page_shows_our_messages_alone(dashboard: Site) -> None:
    dashboard.sign_in()
    page = dashboard.client.get("/notifications").text
    assert "None yet." in page
    assert "The producer" not in page


def test_single_mails_are_on_the_persons_page(dashboard: Site) -> None:
    dashboard.store.accept_single_mails(
        [
            mail("a", email=ANA, content=Content(SCRIPT, "<p>Thank you</p>", "Thank you")),
            mail("b", email="person001@example.org"),
        ]
    )
    dashboard.sign_in()
    page = dashboard.client.get("/person", params={"email": ANA}).text
    assert "Single mails" in page
    assert "&lt;script&gt;window" in page
    assert "<script>window" not in page
    assert "Your receipt" not in page
    (row,) = history_rows.single_mails_to(dashboard.store, ANA)
    assert row["state"] == State.PENDING
    story = dashboard.client.get("/person", params={"email": ANA, "message": str(row["id"])}).text
    assert 'class="story"' in story
    other = dashboard.client.get("/person", params={"email": "odd@example.org"}).text
    assert "Handed in one at a time" not in other
