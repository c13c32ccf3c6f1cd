"""Mails without a mailout on SQLite: companies, taken in, and due in turns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from mailout.adapters.sqlite.database import Database
from mailout.kinds.single_mails.companies import KnownRecipient, recipient_id
from mailout.outbox.delivery.port import REHEARSING
from mailout.outbox.delivery.protocol import REHEARSED
from mailout.outbox.delivery.single_mails import (
    HOLD_SWITCH,
    OURS,
    Acceptance,
    SingleMail,
    SingleMailsHeld,
    SingleMailsWaiting,
    Verdict,
)
from mailout.outbox.delivery.states import State

DUE = """FROM email_outbox i INDEXED BY email_outbox_single_due
    WHERE i.campaign_id IS NULL AND i.state IN ('PENDING', 'RETRY_SCHEDULED')"""

IN_TURN = f"""
WITH RECURSIVE company (id) AS (
    SELECT min(i.company_id) {DUE}
    UNION ALL
    SELECT (SELECT min(i.company_id) {DUE} AND i.company_id > company.id)
    FROM company WHERE company.id IS NOT NULL
)
SELECT o.seq, row_number() OVER (
    PARTITION BY o.company_id ORDER BY coalesce(o.next_attempt_at, 0), o.seq) AS turn
FROM company
JOIN email_outbox o ON o.seq IN (
    SELECT i.seq {DUE} AND i.company_id = company.id AND coalesce(i.next_attempt_at, 0) <= :now
      AND i.is_rehearsal = :rehearsal
    ORDER BY coalesce(i.next_attempt_at, 0), i.seq LIMIT :most)
LEFT JOIN single_turns t ON t.company_id = company.id
WHERE company.id NOT IN (SELECT value FROM json_each(:full))
ORDER BY turn, coalesce(t.last_at, 0), o.seq LIMIT :most"""  # noqa: S608 (constants)
"""One of each company, then the second of each; first whoever has waited longest for a turn."""


def due_in_turn(tx: sqlite3.Connection, now: float, rehearsal: bool, full: str, most: int) -> list[int]:
    """The due messages, by `seq`. `full`: companies that may begin none, as JSON."""
    rows = tx.execute(IN_TURN, {"now": now, "rehearsal": rehearsal, "full": full, "most": most})
    return [row["seq"] for row in rows]


def all_but_ours(tx: sqlite3.Connection) -> list[str]:
    """The companies that wait while everything is paused."""
    rows = tx.execute(f"SELECT DISTINCT i.company_id {DUE} AND i.company_id <> ?", (OURS,))
    return [company for (company,) in rows]


def had_turn(tx: sqlite3.Connection, companies: Iterable[str], now: float) -> None:
    tx.executemany(
        "INSERT INTO single_turns VALUES (?, ?) ON CONFLICT DO UPDATE SET last_at = excluded.last_at",
        [(company, now) for company in sorted(set(companies))],
    )


def is_served(tx: sqlite3.Connection, now: float, rehearsal: bool) -> bool:
    """Whether somebody alive sends them."""
    row = tx.execute(
        "SELECT 1 FROM sender_sessions WHERE campaign_id IS NULL AND closed_at IS NULL AND lease_until > ?"
        " AND (transport = ?) = ?",
        (now, REHEARSING, rehearsal),
    ).fetchone()
    return row is not None


class SqliteSingleMails:
    """Fulfils `SingleMails` and `Companies`."""

    db: Database

    def accept_single_mails(self, mails: Sequence[SingleMail]) -> Sequence[Acceptance]:
        with self.db.write() as tx:
            now = self.db.clock.now()
            return [accept(tx, mail, now) for mail in mails]

    def single_mails_waiting(self, *, rehearsal: bool) -> SingleMailsWaiting:
        with self.db.reading() as tx:
            now = self.db.clock.now()
            due, since = tx.execute(
                "SELECT count(*) FILTER (WHERE i.company_id <> ? OR i.variables IS NOT NULL),"
                f" min(coalesce(i.next_attempt_at, i.created_at)) {DUE}"
                " AND coalesce(i.next_attempt_at, 0) <= ? AND i.is_rehearsal = ?",
                (OURS, now, rehearsal),
            ).fetchone()
            tokens = tx.execute("SELECT 1 FROM api_tokens WHERE revoked_at IS NULL").fetchone()
            held = _held(tx, _switch(rehearsal))
            return SingleMailsWaiting(
                now, since, is_served(tx, now, rehearsal), tokens is not None, due, held
            )

    def hold_single_mails(self, held: SingleMailsHeld | None, *, rehearsal: bool) -> None:
        name = _switch(rehearsal)
        with self.db.write() as tx:
            before = _held(tx, name)
            tx.execute("DELETE FROM switches WHERE name = ?", (name,))
            if held is not None:
                kept = replace(held, since=before.since) if before else held
                tx.execute("INSERT INTO switches VALUES (?, ?)", (name, json.dumps(asdict(kept))))

    def has_single_mails(self, session: str) -> bool:
        rows = self.db.read(
            "SELECT s.closed_at IS NOT NULL OR s.stop_requested"  # noqa: S608 (constants)
            " OR EXISTS (SELECT 1 FROM switches WHERE name = 'all_paused') OR EXISTS ("
            f"SELECT 1 {DUE} AND coalesce(i.next_attempt_at, 0) <= ? AND i.is_rehearsal = (s.transport = ?))"
            " FROM sender_sessions s WHERE s.id = ?",
            (self.db.clock.now(), REHEARSING, session),
        )
        return not rows or bool(rows[0][0])

    def revoke_token(self, id: str) -> bool:
        revoked = self.db.change(
            "UPDATE api_tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
            (self.db.clock.now(), id),
        )
        return revoked > 0

    def put_recipient(self, recipient: KnownRecipient) -> bool:
        with self.db.write() as tx:
            before = tx.execute(
                "SELECT id, deleted_at FROM recipients WHERE company_id = ? AND external_id = ?",
                (recipient.company_id, recipient.external_id),
            ).fetchone()
            tx.execute(
                "INSERT INTO recipients (company_id, id, email, external_id, name, created_at, updated_at)"
                " VALUES (:company_id, :id, :email, :external_id, :name, :now, :now)"
                " ON CONFLICT (company_id, id) DO UPDATE SET"
                " email = excluded.email, name = excluded.name, updated_at = excluded.updated_at,"
                " created_at = CASE WHEN deleted_at IS NULL THEN created_at ELSE excluded.created_at END,"
                " deleted_at = NULL",
                asdict(recipient)
                | {"id": before["id"] if before else recipient.id, "now": self.db.clock.now()},
            )
            return before is None or before["deleted_at"] is not None

    def delete_recipient(self, company: str, external_id: str) -> bool:
        deleted = self.db.change(
            "UPDATE recipients SET deleted_at = ?"
            " WHERE company_id = ? AND external_id = ? AND deleted_at IS NULL",
            (self.db.clock.now(), company, external_id),
        )
        return deleted > 0


def _switch(rehearsal: bool) -> str:
    return HOLD_SWITCH + (REHEARSED if rehearsal else "")


def _held(tx: sqlite3.Connection, name: str) -> SingleMailsHeld | None:
    row = tx.execute("SELECT value FROM switches WHERE name = ?", (name,)).fetchone()
    return SingleMailsHeld(**json.loads(row["value"])) if row else None


def accept(tx: sqlite3.Connection, mail: SingleMail, now: float) -> Acceptance:
    """Into the outbox, within the caller's transaction."""
    known = tx.execute(
        "SELECT fingerprint, state, request_id FROM email_outbox WHERE id = ?", (mail.id,)
    ).fetchone()
    if known is not None:
        same = known["fingerprint"] == mail.fingerprint
        verdict = Verdict.REPEATED if same else Verdict.CONFLICT
        return Acceptance(verdict, mail.id, State(known["state"]), known["request_id"])
    found, recipient = _recipient(tx, mail, now)
    if not found:
        return Acceptance(Verdict.NO_RECIPIENT, mail.id)
    content = mail.content
    tx.execute(
        "INSERT INTO contents VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (content.hash, content.subject, content.html, content.text, now),
    )
    tx.execute(
        "INSERT INTO email_outbox (id, company_id, request_id, recipient_id, email, from_name, content_id,"
        " next_attempt_at, dedupe_key, created_at, category, reply_to, headers, variables, fingerprint,"
        " is_rehearsal, list_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(mail.id, mail.company_id, mail.request_id, recipient, mail.email, mail.from_name),
            *(content.hash, mail.send_at if mail.send_at and mail.send_at > now else None),
            *(mail.idempotency_key, now, mail.category, mail.reply_to),
            *(_json(mail.headers), _json(mail.variables), mail.fingerprint, mail.is_rehearsal),
            mail.list_key,
        ),
    )
    return Acceptance(Verdict.ACCEPTED, mail.id, State.PENDING, mail.request_id)


def _json(values: Mapping[str, str] | None) -> str | None:
    return json.dumps(dict(values)) if values else None


def _recipient(tx: sqlite3.Connection, mail: SingleMail, now: float) -> tuple[bool, str | None]:
    """Whether who is named is there with this address; somebody with a new name is written down."""
    if mail.recipient_id is None and mail.external_id is None:
        return True, None
    row = tx.execute(
        "SELECT id, external_id, email, deleted_at FROM recipients WHERE company_id = :company"
        " AND CASE WHEN :id IS NULL THEN external_id = :external ELSE id = :id END",
        {"company": mail.company_id, "id": mail.recipient_id, "external": mail.external_id},
    ).fetchone()
    if row is None and mail.recipient_id is None and mail.external_id is not None:
        id = recipient_id(mail.company_id, mail.external_id)
        tx.execute(
            "INSERT INTO recipients (company_id, id, email, external_id, name, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (mail.company_id, id, mail.email, mail.external_id, mail.recipient_name, now, now),
        )
        return True, id
    agrees = (
        row is not None
        and row["deleted_at"] is None
        and row["email"] == mail.email
        and mail.external_id in (None, row["external_id"])
    )
    return agrees, row["id"] if agrees else None
