"""The outbox on SQLite: sessions, `step`, and everything else that moves a message."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Sequence
from math import ceil

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.queue import get_mailout
from mailout.adapters.sqlite.step import take_step
from mailout.adapters.sqlite.transitions import Transitions
from mailout.base.errors import NotFound, StoreError
from mailout.outbox.delivery.port import QUOTA_OVERLAP_SECONDS
from mailout.outbox.delivery.protocol import Step, StepReply
from mailout.outbox.delivery.single_mails import CANCELLED
from mailout.outbox.delivery.states import State


class SqliteOutbox:
    """Fulfils `Outbox`."""

    db: Database

    def open_session(self, mailout_id: str | None, *, worker: str, transport: str, lease: float) -> str:
        session = str(uuid.uuid4())
        with self.db.write() as tx:
            now = self.db.clock.now()
            if mailout_id is not None:
                get_mailout(tx, mailout_id)
            tx.execute(
                "INSERT INTO sender_sessions (id, campaign_id, worker, transport, lease_until, opened_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (session, mailout_id, worker, transport, now + lease, now),
            )
        return session

    def step(self, step: Step) -> StepReply:
        with self.db.write() as tx:
            return take_step(tx, self.db.clock.now(), step)

    def stop_machine(self, machine: str) -> int:
        return self.db.change(
            "UPDATE sender_sessions SET stop_requested = 1"
            " WHERE closed_at IS NULL AND lease_until > ? AND rtrim(worker, '0123456789') = ? || '-'",
            (self.db.clock.now(), machine),
        )

    def reap(self, grace: float) -> int:
        with self.db.write() as tx:
            now = self.db.clock.now()
            dead = tx.execute(
                "UPDATE sender_sessions SET closed_at = ?"
                " WHERE closed_at IS NULL AND lease_until < ? RETURNING id",
                (now, now - grace),
            ).fetchall()
            if not dead:
                return 0
            rows = tx.execute(
                "SELECT * FROM email_outbox WHERE state = 'SENT_ATTEMPT'"
                " AND state IN ('SENT_ATTEMPT', 'UNKNOWN')"  # names the index
                " AND session_id IN (SELECT value FROM json_each(?)) ORDER BY seq",
                (json.dumps([row["id"] for row in dead]),),
            ).fetchall()
            move = Transitions(tx, now)
            for row in rows:
                move.unknown(row, "its sender disappeared")
            move.write()
            return len(rows)

    def settle(
        self, mailout_id: str | None, to: State, *, wait: float, ids: Sequence[str] | None = None
    ) -> int:
        if to not in (State.SENT, State.FAILED, State.PENDING):
            raise StoreError(f"An unknown message can be settled as SENT, FAILED or PENDING, not {to}.")
        with self.db.write() as tx:
            now = self.db.clock.now()
            rows = _chosen(tx, mailout_id, State.UNKNOWN, ids)
            early = [row for row in rows if to is State.PENDING and row["unknown_at"] > now - wait]
            if early:
                remaining = round(max(row["unknown_at"] for row in early) + wait - now, 6)
                raise StoreError(
                    f"{len(early)} messages became unknown too recently to be sent again.",
                    remedy=f"Their outcome may still arrive: wait {ceil(remaining / 60)} minutes more.",
                )
            move = Transitions(tx, now)
            for row in rows:
                move.settle(row, to)
            move.write()
            return len(rows)

    def retry_failed(self, mailout_id: str | None, *, ids: Sequence[str] | None = None) -> int:
        with self.db.write() as tx:
            move = Transitions(tx, self.db.clock.now())
            cancelled = tx.execute(
                "SELECT 1 FROM campaign_queue WHERE id = ? AND status = 'CANCELLED'", (mailout_id,)
            ).fetchone()
            rows = [] if cancelled else _chosen(tx, mailout_id, State.FAILED, ids)
            for row in rows:
                move.retry(row)
            move.write()
            return len(rows)

    def cancel_single_mails(self, ids: Sequence[str], why: str = CANCELLED) -> int:
        with self.db.write() as tx:
            rows = tx.execute(
                "SELECT * FROM email_outbox WHERE id IN (SELECT value FROM json_each(?))"
                " AND campaign_id IS NULL AND state IN ('PENDING', 'RETRY_SCHEDULED')",
                (json.dumps(list(ids)),),
            ).fetchall()
            move = Transitions(tx, self.db.clock.now())
            move.suppress(rows, why)
            move.write()
            return len(rows)

    def set_quota(
        self, scope: str, available: int | None, asked_at: float, *, most: int | None = None
    ) -> None:
        self.db.change(
            "INSERT OR REPLACE INTO provider_quota (scope, available, asked_at, most) VALUES (?, ?, ?, ?)",
            (scope, available, asked_at - QUOTA_OVERLAP_SECONDS, most),
        )


def _chosen(
    tx: sqlite3.Connection, mailout_id: str | None, state: State, ids: Sequence[str] | None
) -> list[sqlite3.Row]:
    if ids is None:
        return tx.execute(
            "SELECT * FROM email_outbox INDEXED BY email_outbox_failed WHERE campaign_id = ? AND state = ?"
            " AND state IN ('FAILED', 'VALIDATION_FAILED', 'UNKNOWN') ORDER BY seq",
            (mailout_id, state),
        ).fetchall()
    rows = tx.execute(
        "SELECT * FROM email_outbox WHERE id IN (SELECT value FROM json_each(?)) AND campaign_id IS ?"
        " AND state = ?",
        (json.dumps(list(ids)), mailout_id, state),
    )
    found = {row["id"]: row for row in rows}
    strangers = [id for id in ids if id not in found]
    if strangers:
        whose = "of this mailout" if mailout_id else "without a mailout"
        raise NotFound(f"Not a message in state {state} {whose}: {', '.join(strangers[:5])}.")
    return [found[id] for id in dict.fromkeys(ids)]
