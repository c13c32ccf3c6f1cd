"""Subscribers and their lists on SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.sqlite import forgotten, imports
from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.lists import JOIN_LIST, SAVE_LIST
from mailout.adapters.sqlite.segments import audience
from mailout.base.ids import uuid_of
from mailout.letters.audience.list_rows import List
from mailout.letters.audience.port import Choice, ImportCounts, Lacking, SubscriberRow, stronger
from mailout.letters.audience.segment_tree import Tree

_WRITE = """INSERT INTO subscribers (id, email, email_norm, status, bounce_type, bounce_subtype,
        status_updated_at, from_name, ocd_ids, attributes, created_at)
    VALUES (:id, :email, :email_norm, :status, :bounce_type, :bounce_subtype,
        :status_updated_at, :from_name, :ocd_ids, :attributes, :created_at)
    ON CONFLICT (email_norm) DO UPDATE SET status = excluded.status, bounce_type = excluded.bounce_type,
        bounce_subtype = excluded.bounce_subtype, status_updated_at = excluded.status_updated_at,
        from_name = excluded.from_name, ocd_ids = excluded.ocd_ids, attributes = excluded.attributes"""

_json = json.JSONEncoder(ensure_ascii=False).encode
"""Made once: `json.dumps` with an option makes an encoder for each call."""


_RAISE_HARD_STATUS = """UPDATE subscribers SET hard_status = nullif(?2, 'bounced'), hard_status_at = ?3
    WHERE email_norm = ?1 AND ?2 <> 'active' AND hard_status IS NOT NULL
      AND (hard_status = 'active' OR ?2 = 'bounced')"""
"""Soft bounces may be taken back; what a file or a person says besides is not lost with them."""


_MAY_CHOOSE = """SELECT attributes FROM subscribers
    WHERE email_norm = ? AND status = 'active' AND complained_at IS NULL"""


class SqliteSubscribers:
    """Fulfils `Subscribers`."""

    db: Database

    def import_subscribers(
        self, rows: Sequence[SubscriberRow], *, own_sign_up: bool = False, import_id: str | None = None
    ) -> ImportCounts:
        with self.db.write() as tx:
            now = self.db.clock.now()
            stay_away = set() if own_sign_up else forgotten.among(tx, (row.email_norm for row in rows))
            if own_sign_up:
                forgotten.release(tx, (row.email_norm for row in rows))
            if stay_away:
                rows = [row for row in rows if row.email_norm not in stay_away]
            keys = json.dumps([row.email_norm for row in rows])
            known = {
                row["email_norm"]: dict(row)
                for row in tx.execute(
                    "SELECT * FROM subscribers WHERE email_norm IN (SELECT value FROM json_each(?))", (keys,)
                )
            }
            merged: dict[str, dict[str, Any]] = {}
            for row in rows:  # one by one: an address that comes twice keeps its stronger status
                key = row.email_norm
                merged[key] = _merge(merged.get(key) or known.get(key), row, now)
            changed = {key for key, row in merged.items() if row != known.get(key)}
            tx.executemany(_WRITE, [merged[key] for key in merged if key in changed])
            told = [(row.email_norm, row.status, now) for row in rows if row.status != "active"]
            tx.executemany(_RAISE_HARD_STATUS, told)
            tx.executemany("DELETE FROM desk_unsubscribes WHERE email = ?", [(one[0],) for one in told])
            places = _join_lists(tx, rows, keys)
            added, joined = merged.keys() - known.keys(), {email for email, _ in places}
            counts = ImportCounts(
                added=len(added),
                updated=len((changed | joined) - added),
                unchanged=len(merged.keys() - changed - joined),
                kept_status=sum(1 for row in rows if merged[row.email_norm]["status"] != row.status),
                forgotten=len(stay_away),
            )
            imports.note_added(tx, import_id, rows, added, places)
            if import_id is not None:
                imports.count_changes(tx, import_id, counts)
            return counts

    def edit_subscriber(self, email_norm: str, attributes: Mapping[str, object]) -> bool:
        sql = "UPDATE subscribers SET attributes = ? WHERE email_norm = ?"
        return self.db.change(sql, (_json(dict(attributes)), email_norm)) == 1

    def audience_size(
        self, list_key: str | None, segment: Tree | None = None, *, snoozed: bool = False
    ) -> int:
        where, parameters = audience(list_key, segment, self.db.clock.now(), snoozed=snoozed)
        rows = self.db.read(f"SELECT count(*) AS n FROM subscribers s WHERE {where}", parameters)  # noqa: S608
        return int(rows[0]["n"])

    def lacking(self, attribute: str, list_key: str | None, segment: Tree | None = None) -> Lacking:
        where, parameters = audience(list_key, segment, self.db.clock.now())
        lacking = (
            f"FROM subscribers s WHERE {where}"  # noqa: S608 (constants)
            " AND trim(coalesce("
            "  (SELECT a.value FROM json_each(s.attributes) a WHERE a.key = :attribute), ''),"
            "  ' ' || char(9, 10, 13)) = ''"
        )
        asked = parameters | {"attribute": attribute}
        examples = self.db.read(f"SELECT s.email_norm {lacking} ORDER BY s.email_norm LIMIT 3", asked)
        people = self.db.read(f"SELECT count(*) AS n {lacking}", asked) if examples else [{"n": 0}]
        return Lacking(attribute, int(people[0]["n"]), tuple(row["email_norm"] for row in examples))

    def choose(self, email_norm: str, choice: Choice) -> bool:
        with self.db.write() as tx:
            now = self.db.clock.now()
            row = tx.execute(_MAY_CHOOSE, (email_norm,)).fetchone()
            if row is None:
                return False
            if choice.snooze_seconds is not None:
                until = now + choice.snooze_seconds if choice.snooze_seconds else None
                tx.execute(
                    "UPDATE subscribers SET snoozed_until = ? WHERE email_norm = ?", (until, email_norm)
                )
            if choice.language is not None:
                known = {**json.loads(row["attributes"]), "language": choice.language}
                kept = {name: value for name, value in known.items() if name != "language" or value}
                tx.execute(
                    "UPDATE subscribers SET attributes = ? WHERE email_norm = ?", (_json(kept), email_norm)
                )
            for key, wording in sorted(choice.joins.items()):
                joined = tx.execute(JOIN_LIST, (email_norm, key, now)).rowcount
                if joined:
                    consent = (email_norm, key, now, wording, choice.source)
                    tx.execute("INSERT OR REPLACE INTO consents VALUES (?, ?, ?, ?, ?)", consent)
            # They have spoken for themselves: no import has them to take back any more.
            tx.execute("DELETE FROM import_people WHERE email = ?", (email_norm,))
            return True

    def save_list(self, one: List) -> None:
        with self.db.write() as tx:
            tx.execute(SAVE_LIST, {**asdict(one), "brand": _json(one.brand)})

    def normalise_addresses(self) -> int:
        """Nothing to do: every row has come through an import."""
        return 0


def _join_lists(tx: sqlite3.Connection, rows: Sequence[SubscriberRow], keys: str) -> set[tuple[str, str]]:
    """Who came onto a list. Who unsubscribed from one stays off it: only they themselves may come back."""
    known = {
        (row["email"], row["list_key"])
        for row in tx.execute(
            "SELECT email, list_key FROM subscriptions WHERE email IN (SELECT value FROM json_each(?))",
            (keys,),
        )
    }
    new = {(row.email_norm, key) for row in rows for key in row.lists} - known
    tx.executemany("INSERT INTO subscriptions (email, list_key) VALUES (?, ?)", sorted(new))
    return new


def _merge(known: dict[str, Any] | None, row: SubscriberRow, now: float) -> dict[str, Any]:
    """What is known, and what the file adds to it. Status follows its priority."""
    if known is None:
        return {
            "id": uuid_of("subscriber", row.email_norm),
            "email": row.email,
            "email_norm": row.email_norm,
            "status": row.status,
            "bounce_type": row.bounce_type,
            "bounce_subtype": row.bounce_subtype,
            "status_updated_at": now,
            "from_name": row.from_name,
            "ocd_ids": _json(list(row.ocd_ids)) if row.ocd_ids else "[]",
            "attributes": _json(row.attributes) if row.attributes else "{}",
            "created_at": now,
        }
    merged = dict(known)
    if row.from_name:
        merged["from_name"] = row.from_name
    if row.ocd_ids:
        merged["ocd_ids"] = _json(list(row.ocd_ids))
    if row.attributes:
        merged["attributes"] = _json(json.loads(known["attributes"]) | dict(row.attributes))
    if stronger(known["status"], row.status) == row.status:
        merged["bounce_type"] = row.bounce_type or known["bounce_type"]
        merged["bounce_subtype"] = row.bounce_subtype or known["bounce_subtype"]
        if known["status"] != row.status:
            merged |= {"status": row.status, "status_updated_at": now}
    return merged
