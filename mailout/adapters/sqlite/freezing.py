"""Freezing on SQLite: a mailout's audience written into the outbox, once, a chunk at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.lists import on_list
from mailout.adapters.sqlite.queue import get_mailout, only_row
from mailout.base.ids import message_id
from mailout.outbox.queue.mailout import Mailout, Status
from mailout.outbox.queue.port import Freezing, Recipient

_CHUNK = f"""SELECT s.email_norm, s.from_name, s.attributes FROM subscribers s
    WHERE s.status = 'active' AND s.email_norm > :cursor AND s.created_at <= :began
      AND (s.snoozed_until IS NULL OR s.snoozed_until <= :began) AND {on_list("s.email_norm")}
    ORDER BY s.email_norm LIMIT :chunk"""  # noqa: S608 (constants)

_SNOOZED = f"""SELECT count(*) FROM subscribers s INDEXED BY subscribers_snoozed
    WHERE s.status = 'active' AND s.created_at <= :began
      AND s.snoozed_until > :began AND {on_list("s.email_norm")}"""  # noqa: S608 (constants)
"""Who would be in the audience, had they not asked for a pause."""

_VARIABLES = """CASE WHEN :attributes <> '[]' THEN nullif((SELECT json_group_object(a.key, a.value)
    FROM json_each(attributes) a WHERE a.key IN (SELECT value FROM json_each(:attributes))), '{}') END"""
"""Only what the content uses: a million rows have to stay narrow."""


_BEGIN = """UPDATE campaign_queue SET freeze_started_at = coalesce(
    freeze_started_at, max(:now, (SELECT coalesce(max(created_at), 0) FROM subscribers)))"""
"""Whoever is there when it begins, also if the clock has gone back since they came."""


class SqliteFreezing:
    """Fulfils the part of `Queue` that freezes."""

    db: Database

    def freeze_subscribers(
        self, id: str, *, chunk: int = 20_000, attributes: Sequence[str] = ()
    ) -> int | None:
        with self.db.write() as tx:
            now = self.db.clock.now()
            begin = f"{_BEGIN} WHERE id = :id RETURNING *"
            mailout = tx.execute(begin, {"now": now, "id": id}).fetchone()
            mailout = only_row([mailout] if mailout else [], id)
            if mailout["frozen_at"] is not None or mailout["status"] == Status.CANCELLED:
                return None
            parameters = {
                "id": id,
                "company": mailout["company_id"],
                "list_key": mailout["list_key"],
                "cursor": mailout["freeze_cursor"],
                "began": mailout["freeze_started_at"],
                "chunk": chunk,
                "attributes": json.dumps(list(attributes)),
                "now": now,
            }
            last = tx.execute(f"SELECT max(email_norm) FROM ({_CHUNK})", parameters).fetchone()[0]  # noqa: S608
            if last is None:
                tx.execute(
                    f"UPDATE campaign_queue SET frozen_at = :now, snoozed = ({_SNOOZED}) WHERE id = :id",  # noqa: S608
                    parameters,
                )
                return None
            added = tx.execute(
                "INSERT INTO email_outbox"  # noqa: S608
                " (id, campaign_id, company_id, email, from_name, variables, created_at)"
                " SELECT mailout_uuid(:id, email_norm), :id, :company, email_norm, from_name,"
                f" {_VARIABLES}, :now"
                f" FROM ({_CHUNK}) WHERE true ORDER BY email_norm ON CONFLICT (id) DO NOTHING",
                parameters,
            ).rowcount
            _add_pending(tx, id, added, cursor=last)
            return added

    def begin_freezing(self, id: str) -> Freezing | None:
        with self.db.write() as tx:
            get_mailout(tx, id)
            row = tx.execute(
                f"{_BEGIN} WHERE id = :id AND frozen_at IS NULL AND status <> 'CANCELLED'"
                " RETURNING freeze_cursor, freeze_started_at",
                {"now": self.db.clock.now(), "id": id},
            ).fetchone()
            return None if row is None else Freezing(*row)

    def freeze_recipients(self, id: str, recipients: Sequence[Recipient], up_to: str | None = None) -> int:
        with self.db.write() as tx:
            now = self.db.clock.now()
            mailout = get_mailout(tx, id)
            if mailout.frozen_at is not None or mailout.status is Status.CANCELLED:
                return 0
            added = _insert(tx, mailout, recipients, now)
            tx.execute(
                "UPDATE campaign_queue SET recipients = recipients + :added, pending = pending + :added,"
                " freeze_cursor = max(freeze_cursor, coalesce(:up_to, '')),"
                " frozen_at = CASE WHEN :up_to IS NULL THEN :now END WHERE id = :id",
                {"added": added, "up_to": up_to, "now": now, "id": id},
            )
            return added


def _together(recipient: Recipient) -> tuple[str, str]:
    """Those with the same content stand together: neighbours fill one bulk call."""
    return recipient.content_hash or "", recipient.email


def _insert(tx: sqlite3.Connection, mailout: Mailout, recipients: Sequence[Recipient], now: float) -> int:
    before = tx.total_changes
    tx.executemany(
        "INSERT INTO email_outbox (id, campaign_id, company_id, recipient_id, email, from_name,"
        " content_id, variables, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO NOTHING",
        [
            (
                message_id(mailout.id, r.email),
                mailout.id,
                mailout.company_id,
                r.recipient_id,
                r.email,
                r.from_name,
                r.content_hash,
                json.dumps(dict(r.variables)) if r.variables else None,
                now,
            )
            for r in sorted(recipients, key=_together)
        ],
    )
    return tx.total_changes - before


def _add_pending(tx: sqlite3.Connection, id: str, added: int, *, cursor: str) -> None:
    tx.execute(
        "UPDATE campaign_queue SET recipients = recipients + ?, pending = pending + ?, freeze_cursor = ?"
        " WHERE id = ?",
        (added, added, cursor, id),
    )
