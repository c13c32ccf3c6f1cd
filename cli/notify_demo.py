"""`mailout demo --notify`: a producer's queue with a few rows of every kind, and what becomes of them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from cli.output import say
from cli.show import near
from deployments import EXAMPLES
from mailout.app import notification_wiring
from mailout.app.engine import Engine
from mailout.insight.reporting.phrases import count

EXAMPLE = (EXAMPLES / "producer_schema.sql", EXAMPLES / "producer.sql")
PRODUCER = "producer.db"


def notify_demo(engine: Engine, start_again: str) -> None:
    """The rows are the demo's own, so they are marked in place; run again, it finds nothing pending."""
    home = engine.settings.mailout_home
    path = home / PRODUCER
    if not path.exists():
        with closing(sqlite3.connect(path)) as db:
            for file in EXAMPLE:
                db.executescript(file.read_text(encoding="utf-8"))
    say(f"A producer's queue, {near(path)}", style="bold")
    worker = notification_wiring.notification_worker(engine, path, in_place=True)
    try:
        counts = worker.run()
    finally:
        worker.close()
    say(
        f"{count(counts.sent, 'notification')} sent, {counts.skipped} skipped, {counts.failed} failed,"
        f" {counts.waiting} for later.\n"
    )
    for line in _lines(path):
        say(line)
    say()
    for mail in sorted((home / "outbox" / "single").glob("*.eml"))[:1]:
        say("One of the mails, for any mail program", style="bold")
        say(f"  {near(mail)}\n")
    say("To start over:")
    say(f"  {start_again}")


def _lines(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute(
            "SELECT n.notification_id, n.fanout_status, n.fanout_attempts, n.error, s.contact_value"
            " FROM open_event_notifications n JOIN subscriptions s USING (subscription_id)"
            " ORDER BY n.notification_id"
        ).fetchall()
    lines = []
    for id, status, attempts, error, contact in rows:
        known = json.loads(error or "{}")
        why = known.get("message") or known.get("providerMessageId", "not yet: it is snoozed")[:24]
        lines.append(f"  {id:>3}  {status:<8} attempts {attempts}  {contact:<22} {why}")
    return lines
