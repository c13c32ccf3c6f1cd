"""`mailout demo --notify`: a producer's queue with a few rows of every kind, and what becomes of them."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from cli.output import say
from cli.show import near
from deployments import EXAMPLES
from mailout.app import notification_wiring
from mailout.app.engine import Engine

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
    with closing(notification_wiring.notification_worker(engine, path, in_place=True)) as worker:
        say(f"{worker.run().said()}\n")
    for row in reversed(notification_wiring.producer_queue(engine.settings, db=path).rows):
        why = "not yet: it is snoozed" if row.status == "pending" else row.said
        say(f"  {row.id:>3}  {row.status:<8} attempts {row.attempts}  {row.contact:<22} {why}")
    say()
    for mail in sorted((home / "outbox" / "single").glob("*.eml"))[:1]:
        say("One of the mails, for any mail program", style="bold")
        say(f"  {near(mail)}\n")
    say("To start over:")
    say(f"  {start_again}")
