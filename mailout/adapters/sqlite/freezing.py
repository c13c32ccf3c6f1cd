"""Freezing on SQLite: a mailout's audience written into the outbox, once, a chunk at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import cast

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.queue import SENDERS, get_mailout, only_row
from mailout.adapters.sqlite.segments import audience, take_filter
from mailout.base.ids import message_id
from mailout.letters.audience.segment_tree import Tree, whole
from mailout.outbox.queue.mailout import Mailout, Status
from mailout.outbox.queue.port import Freezing, Recipient

_VARIABLES = """CASE WHEN :attributes <> '[]' THEN nullif((SELECT json_group_object(a.key,
        CASE WHEN a.type IN ('true', 'false') THEN a.type ELSE a.value END)
    FROM json_each(attributes) a WHERE a.key IN (SELECT value FROM json_each(:attributes))), '{}') END"""
"""Only what the content uses: a million rows have to stay narrow. SQLite's `true` is 1."""


_PART = "CREATE TEMP TABLE IF NOT EXISTS frozen_part (email_norm TEXT, from_name TEXT, attributes TEXT)"
"""The next people, looked for once: a segment may take a while to find them."""

FREEZE_ROWS, FREEZE_ROWS_ALONE = 20_000, 100_000
"""Ids are hashes: a part writes almost every page of their index again, so a fifth of the parts is a third of
the bytes. A sender waits while one is written."""

_BEGIN = """UPDATE campaign_queue SET freeze_started_at = coalesce(
    freeze_started_at, max(:now, (SELECT coalesce(max(created_at), 0) FROM subscribers)))"""
"""Whoever is there when it begins, also if the clock has gone back since they came."""


class SqliteFreezing:
    """Fulfils the part of `Queue` that freezes."""

    db: Database

    def freeze_subscribers(
        self, id: str, *, chunk: int | None = None, attributes: Sequence[str] = ()
    ) -> int | None:
        """Without a `chunk`: as many as hold up nobody who sends."""
        with self.db.write() as tx:
            now = self.db.clock.now()
            chunk = chunk or (FREEZE_ROWS if tx.execute(SENDERS, (now,)).fetchone() else FREEZE_ROWS_ALONE)
            begin = f"{_BEGIN} WHERE id = :id RETURNING *"
            mailout = only_row(tx.execute(begin, {"now": now, "id": id}).fetchall(), id)
            if mailout["frozen_at"] is not None or mailout["status"] == Status.CANCELLED:
                return None
            tree = self._segment(tx, mailout)
            list_key, began, goes_at = mailout["list_key"], mailout["freeze_started_at"], _goes_at(mailout)
            where, parameters = audience(list_key, tree, goes_at, in_parts=True)
            parameters |= {
                "id": id,
                "company": mailout["company_id"],
                "cursor": mailout["freeze_cursor"],
                "began": began,
                "chunk": chunk,
                "attributes": json.dumps(list(attributes)),
                "written": now,
            }
            tx.execute(_PART)
            tx.execute("DELETE FROM frozen_part")
            tx.execute(
                "INSERT INTO frozen_part SELECT s.email_norm, s.from_name, s.attributes FROM subscribers s"  # noqa: S608
                f" WHERE {where} AND s.email_norm > :cursor AND s.created_at <= :began"
                " ORDER BY s.email_norm LIMIT :chunk",
                parameters,
            )
            last = tx.execute("SELECT max(email_norm) FROM frozen_part").fetchone()[0]
            if last is None:
                snoozed, _ = audience(list_key, tree, goes_at, in_parts=True, snoozed=True)
                tx.execute(
                    "UPDATE campaign_queue SET frozen_at = :written, snoozed = (SELECT count(*)"  # noqa: S608
                    f" FROM subscribers s INDEXED BY subscribers_snoozed WHERE {snoozed}"
                    " AND s.created_at <= :began) WHERE id = :id",
                    parameters,
                )
                return None
            added = tx.execute(
                "INSERT INTO email_outbox"  # noqa: S608
                " (id, campaign_id, company_id, email, from_name, variables, created_at)"
                " SELECT mailout_uuid(:id, email_norm), :id, :company, email_norm, from_name,"
                f" {_VARIABLES}, :written"
                f" FROM frozen_part WHERE true ORDER BY email_norm ON CONFLICT (id) DO NOTHING",
                parameters,
            ).rowcount
            _add_pending(tx, id, added, now, up_to=last)
            return added

    def _segment(self, tx: sqlite3.Connection, mailout: sqlite3.Row) -> Tree | None:
        """The filter of its segment, taken together with the first part of the audience."""
        if mailout["segment"] is None:
            return None
        if mailout["segment_filter"] is not None:
            return cast(Tree, json.loads(mailout["segment_filter"])["tree"])
        taken = take_filter(tx, mailout["segment"])
        where, parameters = audience(
            mailout["list_key"], whole(mailout["list_key"], taken["tree"]), _goes_at(mailout)
        )
        ((taken["of"],),) = tx.execute(f"SELECT count(*) FROM subscribers s WHERE {where}", parameters)  # noqa: S608
        tx.execute(
            "UPDATE campaign_queue SET segment_filter = ? WHERE id = ?",
            (json.dumps(taken, ensure_ascii=False), mailout["id"]),
        )
        return cast(Tree, taken["tree"])

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
            _add_pending(tx, id, added, now, up_to=up_to)
            return added


def _goes_at(mailout: sqlite3.Row) -> float:
    """A pause that is over by then keeps nobody out of a letter: claiming asks once more."""
    return float(max(mailout["freeze_started_at"], mailout["scheduled_at"] or 0.0))


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


def _add_pending(tx: sqlite3.Connection, id: str, added: int, now: float, *, up_to: str | None) -> None:
    """`up_to` None: that was the last part."""
    tx.execute(
        "UPDATE campaign_queue SET recipients = recipients + :added, pending = pending + :added,"
        " freeze_cursor = max(freeze_cursor, coalesce(:up_to, '')),"
        " frozen_at = CASE WHEN :up_to IS NULL THEN :now END WHERE id = :id",
        {"added": added, "up_to": up_to, "now": now, "id": id},
    )
