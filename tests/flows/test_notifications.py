"""`dispatch_notifications` as Prefect runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from flows.dispatch_notifications import dispatch_notifications
from mailout.app.engine import Engine
from tests.producer.database import ProducerDatabase


def test_what_is_due_is_sent_once_and_the_run_says_how_many(
    engine_with: Callable[..., Engine], tmp_path: Path
) -> None:
    engine_with(NOTIFY_SOURCE="seats", NOTIFY_BASE_URL="https://app.example.org")
    producer = ProducerDatabase(tmp_path / "producer.db")
    producer.many(f"p{n}@example.org" for n in range(3))
    producer.one("eve@example.org", event={"dedupe_key": "another", "payload": "{"})
    state = dispatch_notifications(str(producer.path), return_state=True)
    assert state.message == "3 notifications sent, 0 skipped, 1 failed."
    assert (
        dispatch_notifications(str(producer.path), return_state=True).message
        == "0 notifications sent, 0 skipped, 0 failed."
    )
    assert len(list((tmp_path / "home" / "outbox").glob("*/*.eml"))) == 3
    assert [row["fanout_status"] for row in producer.rows()] == ["sent", "sent", "sent", "failed"]
    assert dispatch_notifications(str(tmp_path / "missing.db"), return_state=True).is_failed()
