"""A store as a small organisation has it after some weeks: letters in every state, people, decisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from mailout.adapters.markdown_file import read_markdown, read_picture
from mailout.adapters.media_folder import MediaFolder
from mailout.adapters.sqlite import SqliteStore
from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.base.ids import mailout_id, test_run_id
from mailout.insight.history.history_rows import ACT_TABLE
from mailout.insight.history.port import Act, day_of
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render
from mailout.letters.content.media import keep_media
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Pace, Result, Step
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.limits import Limits
from mailout.outbox.queue.mailout import DeferReason, NewMailout
from mailout.outbox.queue.snapshot import QueueForecast
from tests.contract.scenes import dead_event

SCRIPT = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>\"'"
"""What somebody might write into a subject, a name, a list, or what a provider might answer."""
EXAMPLE = Path(__file__).parents[2] / "examples" / "newsletter.md"
PAGE = "1429989f-e8ac-4eff-bc8f-57f56486db54"
PACE = Pace("ses:eu-west-1", 0)
ZONE = ZoneInfo("Europe/Lisbon")


class Scene:
    def __init__(self, store: SqliteStore, home: Path) -> None:
        self.store = store
        self.hash = keep_content(store, _example(home))

    def people(self, n: int, listed: str = "newsletter") -> None:
        rows = [
            SubscriberRow(
                f"person{i:03}@example.org",
                f"person{i:03}@example.org",
                attributes={"name": f"Person {i}"},
                lists=(listed,),
                status="unsubscribed" if i % 29 == 5 else "bounced" if i % 61 == 7 else "active",
            )
            for i in range(n)
        ]
        self.store.import_subscribers(rows)

    def letter(self, ref: str, subject: str, *, test: bool = False, listed: str | None = "newsletter") -> str:
        id = test_run_id(ref, 1) if test else mailout_id(ref)
        store = self.store
        store.enqueue(
            NewMailout(id=id, kind=Kind.NOTION, ref=ref, subject=subject, list_key=listed, is_test=test)
        )
        store.set_content(id, self.hash, subject)
        return id

    def freeze(self, id: str) -> None:
        while self.store.freeze_subscribers(id) is not None:
            continue

    def send(self, id: str, states: Sequence[State], error: str = "The mailbox is full.") -> None:
        """So many messages end so; a sender that goes on with the rest is not closed."""
        self.store.start(id, "worker-1")
        session = self.store.open_session(id, worker="worker-1", transport="ses", lease=600)
        rows = self.store.step(Step(session, 1, 600, PACE, want=len(states))).rows
        results = [
            Result(
                row.attempt,
                state,
                provider_message_id=f"ses-{row.attempt.id}" if state is State.SENT else None,
                code=None if state is State.SENT else "MAILBOX_FULL",
                message=None if state is State.SENT else error,
            )
            for row, state in zip(rows, states, strict=True)
        ]
        self.store.step(Step(session, 2, 600, PACE, results=results, close=True))

    def metrics(self, id: str, **counts: int) -> None:
        with self.store.db.write() as tx:
            tx.execute("UPDATE campaign_queue SET metrics = ? WHERE id = ?", (json.dumps(counts), id))

    def days(self, n: int, last: int) -> None:
        today = day_of(self.store.now(), ZONE)
        with self.store.db.write() as tx:
            for i in range(n):
                active = last - (n - 1 - i) * 2 + (i * 7) % 5
                counts = {"active": active, "unsubscribed": 4 + i // 12, "bounced": 2 + i // 20}
                day = (today - timedelta(days=n - 1 - i)).isoformat()
                tx.execute(
                    "INSERT OR REPLACE INTO people_counts VALUES (?, ?)",
                    (day, json.dumps(counts | {"list:newsletter": active})),
                )


def fill(store: SqliteStore, home: Path) -> dict[str, str]:
    """Everything at once; the ids by what they are."""
    scene = Scene(store, home)
    scene.people(300)
    active = subscriber_rows.subscriber_counts(store)["active"]
    ids = {"sent": scene.letter("sent", "Autumn at the harbour")}
    scene.freeze(ids["sent"])
    scene.send(ids["sent"], [State.SENT] * active)
    store.complete(ids["sent"])
    scene.metrics(ids["sent"], delivered=active - 5, bounced=4, unsubscribed=3, opened=140, clicked=37)
    ids["failed"] = scene.letter("failed", "The pier is open again")
    scene.freeze(ids["failed"])
    scene.send(ids["failed"], [State.FAILED] * 3 + [State.UNKNOWN] + [State.SENT] * (active - 4), SCRIPT)
    store.complete(ids["failed"])
    ids["going"] = scene.letter("going", "News from the harbour, November")
    scene.freeze(ids["going"])
    scene.send(ids["going"], [State.SENT] * (active // 2))
    store.start(ids["going"], "worker-1")
    ids["planned"] = scene.letter("planned", "Winter opening hours")
    ids["held"] = scene.letter("held", "Come to the lantern walk")
    store.defer(ids["held"], DeferReason.DUPLICATE_CONTENT, None, "It went out as sent.")
    ids["odd"] = scene.letter("odd", SCRIPT, listed=SCRIPT)
    store.defer(ids["odd"], DeferReason.PAUSED, None, SCRIPT)
    ids["test"] = scene.letter(PAGE, "A letter that was tested", test=True)
    store.import_subscribers(
        [SubscriberRow("odd@example.org", "odd@example.org", attributes={"name": SCRIPT}, lists=(SCRIPT,))]
    )
    store.put(ERROR_TABLE, [ErrorRecord("content_block_unsupported", SCRIPT, "content", mailout=ids["test"])])
    dead_event(store, SCRIPT, SCRIPT)
    store.put(ACT_TABLE, [Act("admin (127.0.0.1)", "paused a letter", ids["odd"])])
    scene.days(60, active)
    return ids


def real_forecast(store: SqliteStore) -> QueueForecast:
    return QueueForecast(store, Limits(timezone=ZONE), rate=5, scope=PACE.scope)


def _example(home: Path) -> Content:
    media = MediaFolder(home / "media", media_base_url=None, public_url="https://mail.example.org")
    document = keep_media(read_markdown(EXAMPLE).document, read_picture, media)
    return render(document, Footer("The Gardeners", "1 Garden Lane", "https://example.org"))
