"""Feedback on SQLite: the inbox of events, and what they change, a batch in one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.forgetting import forgotten_among, keep_complaint
from mailout.adapters.sqlite.subscriber_state import change_status, count_soft_bounces
from mailout.adapters.sqlite.transitions import Transitions
from mailout.base.ids import uuid_of
from mailout.outbox.delivery.states import DOUBTFUL, WAITING, State
from mailout.outbox.feedback.port import Applied, Effect, EventReading, EventType, Received, StatusChange

NOT_YET_SENT = (*WAITING, *DOUBTFUL)
"""States in which an event may know more than we do."""

_MESSAGE = "SELECT seq, id, campaign_id, email, epoch, state, ses_message_id FROM email_outbox"


_RECORD = (
    "INSERT INTO delivery_events (id, message_id, campaign_id, email, event_type, provider_message_id,"
    " detail, event_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
)


def _recorded(message: sqlite3.Row | Mapping[str, Any] | None, effect: Effect) -> tuple[Any, ...]:
    return (
        effect.id,
        message["id"] if message else None,
        message["campaign_id"] if message else None,
        # What the message was sent to: a bounce may name the address that it was forwarded to.
        message["email"] if message else effect.email,
        effect.type,
        effect.provider_message_id,
        json.dumps(dict(effect.detail), ensure_ascii=False),
        effect.at,
    )


def count(tx: sqlite3.Connection, mailout_id: str | None, metric: str | None, n: int) -> None:
    """A mailout's metric; an archived one's are final. None of the names needs quoting in a JSON path."""
    if metric is not None and mailout_id is not None:
        tx.execute(
            "UPDATE campaign_queue SET metrics = json_set(metrics, :path,"
            " max(0, coalesce(json_extract(metrics, :path), 0) + :n)) WHERE id = :id"
            " AND archived_at IS NULL",
            {"path": f"$.{metric}", "n": n, "id": mailout_id},
        )


class EventBatch:
    """A batch of readings within one transaction. What is known of them is asked for at once, not one by one:
    nobody else writes meanwhile, so it stays true."""

    def __init__(self, tx: sqlite3.Connection, now: float, readings: Sequence[EventReading]) -> None:
        self._tx = tx
        self._now = now
        self._move = Transitions(tx, now)
        self._done: Counter[str] = Counter()
        self._counted: Counter[tuple[str | None, str | None]] = Counter()
        self._recount: set[tuple[str, bool]] = set()  # addresses, and whether one bounced softly
        self._new: list[tuple[Any, ...]] = []
        self._applied: list[tuple[str | None, str]] = []
        self._look(readings)
        for reading in readings:
            if reading.inbox_id in self._waiting:
                self._waiting.remove(reading.inbox_id)
                self._apply(reading)

    def _look(self, readings: Sequence[EventReading]) -> None:
        self._waiting = {
            row["id"]
            for row in self._among(
                "SELECT id FROM events_inbox WHERE applied_at IS NULL AND id IN",
                (reading.inbox_id for reading in readings),
            )
        }
        effects = [effect for reading in readings for effect in reading.effects]
        ids = {effect.attempt.id for effect in effects if effect.attempt is not None}
        self._messages = {row["id"]: row for row in self._among(f"{_MESSAGE} WHERE id IN", ids)}
        self._known = {
            row["id"]
            for row in self._among(
                "SELECT id FROM delivery_events WHERE id IN", (effect.id for effect in effects)
            )
        }
        self._types: dict[str, set[str]] = {id: set() for id in ids}
        types = "SELECT message_id, event_type FROM delivery_events WHERE message_id IN"
        for row in self._among(types, ids):
            self._types[row["message_id"]].add(row["event_type"])
        self._archives: dict[str, bool] = {}
        self._forgotten = forgotten_among(self._tx, {effect.email for effect in effects if effect.email})

    def _among(self, select: str, ids: Iterable[str]) -> Iterable[sqlite3.Row]:
        query = f"{select} (SELECT value FROM json_each(?))"  # noqa: S608
        return self._tx.execute(query, (json.dumps(list(ids)),))

    def _apply(self, reading: EventReading) -> None:
        if reading.problem is not None:
            self._note(reading)
        for effect in reading.effects:
            self._effect(effect)
        self._applied.append((": ".join(reading.problem) if reading.problem else None, reading.inbox_id))

    def write(self) -> Applied:
        self._tx.executemany(_RECORD, self._new)
        self._tx.executemany(
            f"UPDATE events_inbox SET payload = NULL, applied_at = {self._now!r}, error = ? WHERE id = ?",  # noqa: S608
            self._applied,
        )
        for (mailout_id, metric), n in self._counted.items():
            count(self._tx, mailout_id, metric, n)
        self._move.write()
        self._done["statuses"] += count_soft_bounces(self._tx, self._recount)
        return Applied(**self._done)

    def _note(self, reading: EventReading) -> None:
        code, message = reading.problem or ("", "")
        self._done["problems"] += 1
        self._tx.execute(
            "INSERT INTO error_records (at, stage, provider, code, message)"
            " VALUES (?, 'feedback', 'ses', ?, ?)",
            (self._now, code, message),
        )
        if reading.dead:
            self._done["dead"] += 1
            self._tx.execute(
                "INSERT INTO dead_letters SELECT ?, 'ses-events',"
                " json_object('inbox_id', id, 'source', source, 'body', payload), ?, ?"
                " FROM events_inbox WHERE id = ? ON CONFLICT DO NOTHING",
                (uuid_of("dead letter", reading.inbox_id), message, self._now, reading.inbox_id),
            )

    def _effect(self, effect: Effect) -> None:
        if effect.email in self._forgotten:
            if effect.type is EventType.SPAMREPORT:
                keep_complaint(self._tx, effect.email)
            effect = replace(effect, email=None, detail={})  # nothing writes their address down again
        message = self._message(effect)
        archived = self._archived(message, effect)
        if archived is not None:
            message = None
        known = archived or message
        if not self.record(known, effect):
            self._done["repeated"] += 1
            return
        self._done["events"] += 1
        if message is not None:
            self._move_message(message, effect)
        elif archived is None:
            self._done["strangers"] += 1
        email = known["email"] if known else effect.email
        if effect.change is not None and email is not None:
            self._done["statuses"] += change_status(self._tx, email, effect.change)
        if effect.recount and email is not None:
            self._recount.add((email, effect.type is EventType.BOUNCE))

    def record(self, message: sqlite3.Row | Mapping[str, Any] | None, effect: Effect) -> bool:
        """A row of `delivery_events`, written at the end; a message's first of its type is counted, too.
        False: it was there."""
        if effect.id in self._known:
            return False
        self._known.add(effect.id)
        self._new.append(_recorded(message, effect))
        if message is not None and message["id"] is not None:
            types = self._types_of(message["id"])
            if effect.type not in types:
                types.add(effect.type)
                self._counted[message["campaign_id"], effect.metric] += 1
        return True

    def _types_of(self, message_id: str) -> set[str]:
        if message_id not in self._types:  # one that SES's own id has led to
            rows = self._tx.execute(
                "SELECT event_type FROM delivery_events WHERE message_id = ?", (message_id,)
            )
            self._types[message_id] = {row["event_type"] for row in rows}
        return self._types[message_id]

    def _message(self, effect: Effect) -> sqlite3.Row | None:
        row: sqlite3.Row | None = None
        if effect.attempt is not None:
            row = self._messages.get(effect.attempt.id)
        if row is None and effect.provider_message_id is not None:
            row = self._tx.execute(
                f"{_MESSAGE} WHERE ses_message_id = ?", (effect.provider_message_id,)
            ).fetchone()
        return row

    def _archived(self, message: sqlite3.Row | None, effect: Effect) -> Mapping[str, Any] | None:
        """The name of a message that lies in an archive: the event is kept with it, and nothing moves."""
        mailout_id = message["campaign_id"] if message else effect.mailout_id
        if mailout_id is None or not self._in_an_archive(mailout_id):
            return None
        if message is not None:
            return {name: message[name] for name in ("id", "campaign_id", "email")}
        id = effect.attempt.id if effect.attempt else None
        return {"id": id, "campaign_id": mailout_id, "email": effect.email}

    def _in_an_archive(self, mailout_id: str) -> bool:
        if mailout_id not in self._archives:
            row = self._tx.execute(
                "SELECT 1 FROM campaign_queue WHERE id = ? AND archived_at IS NOT NULL", (mailout_id,)
            ).fetchone()
            self._archives[mailout_id] = row is not None
        return self._archives[mailout_id]

    def _move_message(self, row: sqlite3.Row, effect: Effect) -> None:
        """Only the attempt that the event is about may move: an older one says nothing of the newer."""
        tagged = effect.attempt is not None and effect.attempt.epoch == row["epoch"]
        if tagged and row["state"] in NOT_YET_SENT:
            self._move.confirm(self._whole(row), effect.provider_message_id)
            self._done["confirmed"] += 1
            row = self._whole(row)
            self._messages[row["id"]] = row
        same = tagged or (effect.attempt is None and row["ses_message_id"] == effect.provider_message_id)
        if same and effect.revokes is not None and row["state"] == State.SENT:
            self._move.revoke(self._whole(row), *effect.revokes)
            self._done["revoked"] += 1
            self._messages[row["id"]] = self._whole(row)

    def _whole(self, row: sqlite3.Row) -> sqlite3.Row:
        found: sqlite3.Row = self._tx.execute(
            "SELECT * FROM email_outbox WHERE seq = ?", (row["seq"],)
        ).fetchone()
        return found


class SqliteFeedback:
    """Fulfils the part of `Feedback` that is about events."""

    db: Database

    def receive_events(self, received: Sequence[Received]) -> int:
        with self.db.write() as tx:
            now = self.db.clock.now()
            before = tx.total_changes
            tx.executemany(
                "INSERT INTO events_inbox (id, source, payload, received_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (id) DO NOTHING",
                [(one.id, one.source, one.payload, now) for one in received],
            )
            return tx.total_changes - before

    def apply_events(self, readings: Sequence[EventReading]) -> Applied:
        with self.db.write() as tx:
            return EventBatch(tx, self.db.clock.now(), readings).write()

    def change_statuses(self, changes: Mapping[str, StatusChange]) -> int:
        with self.db.write() as tx:
            return sum(change_status(tx, email, one) for email, one in sorted(changes.items()))
