"""Notes about a producer's rows, on SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.transitions import Transitions
from mailout.kinds.notifications.port import KnownMessage, KnownNotification, NewNotification, Reported
from mailout.outbox.delivery.states import WAITING, State

_KEYS = "key IN (SELECT value FROM json_each(?))"


class SqliteNotifications:
    """Fulfils `Notifications`."""

    db: Database

    def recall_notifications(self, keys: Sequence[str], *, requeue: bool) -> Mapping[str, KnownNotification]:
        wanted = json.dumps(list(keys))
        with self.db.write() as tx:
            now = self.db.clock.now()
            if requeue:
                self._drop_requeued(tx, wanted, now)
                tx.execute(
                    "UPDATE notifications SET requeues = requeues + 1, message_id = NULL, told_epoch = -1,"  # noqa: S608
                    f" ended = 0, noted_at = ? WHERE {_KEYS} AND ended",
                    (now, wanted),
                )
            rows = tx.execute(
                "SELECT n.key, n.requeues, n.told_epoch, o.id, o.state, o.epoch, o.ses_message_id,"  # noqa: S608
                " o.error_code, o.error_category, o.error_message,"
                " o.next_attempt_at - o.failed_at AS retry_after, CASE WHEN o.state = 'UNKNOWN'"
                " AND o.error_code IS NULL THEN ? - o.unknown_at END AS given_up_for"
                " FROM notifications n LEFT JOIN email_outbox o ON o.id = n.message_id"
                f" WHERE n.{_KEYS}",
                (now, wanted),
            ).fetchall()
        return {
            row["key"]: KnownNotification(row["requeues"], row["told_epoch"], KnownMessage.of(dict(row)))
            for row in rows
        }

    def _drop_requeued(self, tx: sqlite3.Connection, wanted: str, now: float) -> None:
        """Another message takes their place: what is in doubt counts as not sent, what waits is not sent."""
        rows = tx.execute(
            "SELECT o.* FROM notifications n JOIN email_outbox o ON o.id = n.message_id"  # noqa: S608
            f" WHERE n.{_KEYS} AND n.ended AND o.state IN ('UNKNOWN', 'PENDING', 'RETRY_SCHEDULED')",
            (wanted,),
        ).fetchall()
        move = Transitions(tx, now)
        for row in rows:
            if row["state"] == State.UNKNOWN:
                move.settle(row, State.FAILED)
        move.suppress([row for row in rows if row["state"] in WAITING], "its notification was requeued")
        move.write()

    def put_notifications(self, new: Sequence[NewNotification]) -> None:
        with self.db.write() as tx:
            now = self.db.clock.now()
            tx.executemany(
                "INSERT INTO email_outbox (id, email, content_id, variables, category, dedupe_key,"
                " request_id, created_at, is_rehearsal) VALUES (?, ?, ?, ?, 'transactional', ?, ?, ?, ?)"
                " ON CONFLICT (id) DO NOTHING",
                [
                    (
                        *(one.id, one.email, one.content_hash, json.dumps(dict(one.variables))),
                        *(one.dedupe_key, one.request_id, now, one.is_rehearsal),
                    )
                    for one in new
                ],
            )
            tx.executemany(
                "INSERT INTO notifications (key, message_id, noted_at) VALUES (?, ?, ?) ON CONFLICT (key) DO"
                " UPDATE SET message_id = excluded.message_id, told_epoch = -1, ended = 0,"
                " noted_at = excluded.noted_at WHERE message_id IS NOT excluded.message_id",
                [(one.key, one.id, now) for one in new],
            )
            told = tx.execute(
                "SELECT o.* FROM notifications n JOIN email_outbox o ON o.id = n.message_id"  # noqa: S608
                f" WHERE n.{_KEYS} AND o.state = 'FAILED' AND o.epoch = n.told_epoch AND NOT n.ended",
                (json.dumps([one.key for one in new]),),
            ).fetchall()
            move = Transitions(tx, now)
            for row in told:
                move.retry(row)
            move.write()

    def take_back_notifications(self, messages: Mapping[str, str]) -> Mapping[str, State]:
        ids, keys = list(messages.values()), list(messages)
        with self.db.write() as tx:
            rows = tx.execute(
                "SELECT * FROM email_outbox WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(ids),),
            ).fetchall()
            waiting = [row for row in rows if row["state"] in WAITING]
            if waiting:
                move = Transitions(tx, self.db.clock.now())
                move.suppress(waiting, "its subscription does not want it now")
                move.write()
                tx.executemany(
                    "UPDATE notifications SET ended = 1 WHERE key IN (SELECT value FROM json_each(?))"
                    " AND message_id = ?",
                    [(json.dumps(list(keys)), row["id"]) for row in waiting],
                )
        taken = {row["id"] for row in waiting}
        return {row["id"]: State.SUPPRESSED if row["id"] in taken else State(row["state"]) for row in rows}

    def note_reported(self, reported: Sequence[Reported]) -> None:
        with self.db.write() as tx:
            now = self.db.clock.now()
            tx.executemany(
                "UPDATE notifications SET told_epoch = ?, ended = ?, noted_at = ? WHERE key = ?",
                [(one.epoch, one.ended, now, one.key) for one in reported],
            )
