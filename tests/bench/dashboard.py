"""The dashboard over a million messages: how long each page takes, and how large it is.

A page may take 200 ms and have 150 KB.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from gateway.app import create_app
from mailout.adapters.sqlite import SqliteStore
from mailout.base.clock import SystemClock
from mailout.base.ids import mailout_id
from mailout.base.settings import Settings
from mailout.insight.history.port import day_of
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.port import Kind
from mailout.outbox.queue.mailout import NewMailout
from tests.dashboard.conftest import NoCertificates
from tests.dashboard.scene import ZONE, Scene, fill, real_forecast
from tests.gateway.serving import served

MESSAGES = 1_000_000
LETTERS = 300
PASSWORD = "the administrator's words"
TIMES = 5
LISTED = "readers"


def run(messages: int = MESSAGES) -> dict[str, Any]:
    """Milliseconds (median of five) and KB by page, and the largest of each."""
    with tempfile.TemporaryDirectory(prefix="mailout-bench-") as made:
        home = Path(made)
        store = SqliteStore(home / "mailout.db", SystemClock())
        ids = filled(store, home, messages)
        with signed_in(store, home) as client:
            found = {page: measured(client, page) for page in pages(ids)}
            counted, _ = measured(client, f"/letters/{ids['tried']}/before")
        store.close()
    return {
        "messages": messages,
        "who gets a letter, counted after its page, ms": counted,
        "slowest page, ms": max(ms for ms, _ in found.values()),
        "largest page, KB": max(kb for _, kb in found.values()),
        **{f"{name(page, ids)}, ms / KB": f"{ms:.0f} / {kb:.0f}" for page, (ms, kb) in found.items()},
    }


def pages(ids: dict[str, str]) -> Sequence[str]:
    someone = "reader-0000100@example.org"
    letters = [f"/letters/{ids[one]}" for one in ("large", "going", "tried", "failed")]
    return [
        *(
            "/",
            "/home/live",
            "/letters",
            "/letters?show=drafts",
            "/letters?show=waiting",
            "/letters?show=sent",
        ),
        *("/letters?show=trials", *letters, f"{letters[1]}/live", f"{letters[0]}/mail"),
        *(
            "/people",
            f"/people?q={someone}",
            "/people?status=bounced",
            "/people?status=unsubscribed",
            "/people?after=reader-0400000@example.org",
        ),
        *(
            "/people/import",
            f"/person?email={someone}",
            "/articles",
            "/notifications",
            "/problems",
            "/system",
        ),
    ]


def name(page: str, ids: dict[str, str]) -> str:
    for word, id in ids.items():
        page = page.replace(id, word)
    return page


def measured(client: httpx.Client, page: str) -> tuple[float, float]:
    """The first one is not counted: it reads what the others find in memory."""
    took = []
    for _ in range(TIMES + 1):
        started = time.perf_counter()
        answer = client.get(page)
        took.append(time.perf_counter() - started)
        answer.raise_for_status()
    return statistics.median(took[1:]) * 1000, len(answer.content) / 1000


@contextmanager
def signed_in(store: SqliteStore, home: Path) -> Iterator[httpx.Client]:
    settings = Settings(
        mailout_home=home,
        admin_password=PASSWORD,
        send_timezone="Europe/Lisbon",
        org_name="Harbour Association",
    )
    app = create_app(
        settings,
        store,
        real_forecast(store),
        certificates=NoCertificates(),
        confirm=lambda topic, token: None,
    )
    with served(app) as client:
        client.timeout = httpx.Timeout(120.0)
        client.post("/login", data={"password": PASSWORD})
        yield client


def filled(store: SqliteStore, home: Path, messages: int) -> dict[str, str]:
    """The small scene; beside it many readers, two letters to all of them (one over, one half
    sent), hundreds of older letters, and what came back."""
    ids = fill(store, home)
    for start in range(0, messages // 2, 20_000):
        people = (f"reader-{n:07}@example.org" for n in range(start, min(messages // 2, start + 20_000)))
        store.import_subscribers(
            [
                SubscriberRow(one, one, lists=(LISTED,), status="bounced" if n % 97 == 0 else "active")
                for n, one in enumerate(people)
            ]
        )
    scene = Scene(store, home)
    for one in ("large", "going"):
        ids[one] = scene.letter(f"bench {one}", f"To everybody: {one}", listed=LISTED)
        scene.freeze(ids[one])
    ids["tried"] = scene.letter("bench tried", "A letter that was tried", test=True, listed=LISTED)
    for n in range(LETTERS):
        new = NewMailout(id=mailout_id(f"old {n}"), kind=Kind.NOTION, ref=f"old {n}", subject=f"Letter {n}")
        store.cancel(store.enqueue(new).id)
    store.start(ids["going"], "worker-1")
    with store.db.write() as tx:
        _sent(tx, ids["large"], failed=50)
        _sent(tx, ids["going"], every=2)
        _noise(tx, ids["large"], store.now())
    store.complete(ids["large"])
    store.keep_counts(day_of(store.now(), ZONE).isoformat())
    scene.days(90, messages // 2)
    with store.db.write() as tx:
        tx.execute("ANALYZE")
    return ids


def _sent(tx: sqlite3.Connection, id: str, *, failed: int = 1_000_000, every: int = 1) -> None:
    """All of them, or every second one; of which some failed, some are in doubt."""
    tx.execute(
        "UPDATE email_outbox SET state = 'SENT', sent_at = created_at + seq / 500.0, attempts = 1, epoch = 1,"
        " ses_message_id = 'ses-' || seq WHERE campaign_id = ? AND seq % ? = 0",
        (id, every),
    )
    tx.execute(
        "UPDATE email_outbox SET state = 'FAILED', sent_at = NULL, failed_at = created_at,"
        " error_code = 'MAILBOX_FULL',"
        " error_message = 'The mailbox is full.' WHERE campaign_id = ? AND seq % ? = 0 AND state = 'SENT'",
        (id, failed),
    )
    tx.execute(
        "UPDATE campaign_queue SET started_at = created_at, (sent, failed, pending) = (SELECT"
        " sum(state = 'SENT'), sum(state = 'FAILED'), sum(state = 'PENDING')"
        " FROM email_outbox WHERE campaign_id = :id) WHERE id = :id",
        {"id": id},
    )


def _noise(tx: sqlite3.Connection, id: str, now: float) -> None:
    tx.execute(
        "INSERT INTO delivery_events (id, message_id, campaign_id, email, event_type, event_at)"
        " SELECT 'e' || seq, id, campaign_id, email, 'delivered', ? FROM email_outbox WHERE campaign_id = ?",
        (now, id),
    )
    numbers = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)"
    tx.execute(
        f"{numbers} INSERT INTO error_records (at, mailout, stage, code, message)"
        " SELECT :now, :id, 'delivery', 'MAILBOX_FULL', 'Message ' || n FROM n",
        {"now": now, "id": id},
    )
    tx.execute(
        f"{numbers} INSERT INTO dashboard_acts (at, who, what) SELECT :now, 'admin', 'signed in' FROM n",
        {"now": now},
    )


if __name__ == "__main__":
    print(json.dumps(run(*(int(argument) for argument in sys.argv[1:2])), indent=2))
