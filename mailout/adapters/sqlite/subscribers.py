"""Subscribers and their lists on SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.forgetting import feedback_among, forgotten_among, release_forgotten
from mailout.adapters.sqlite.segments import audience, on_list
from mailout.adapters.sqlite.transitions import Transitions
from mailout.base.errors import NotFound, StoreError
from mailout.base.ids import uuid_of
from mailout.letters.audience.port import (
    Choice,
    ImportCounts,
    Lacking,
    SubscriberRow,
    Undone,
    stronger,
)
from mailout.letters.audience.segment_tree import Tree
from mailout.letters.content.model import MARK_CLOSE, MARK_OPEN

_WRITE = """INSERT INTO subscribers (id, email, email_norm, status, bounce_type, bounce_subtype,
        status_updated_at, from_name, ocd_ids, attributes, created_at, complained_at)
    VALUES (:id, :email, :email_norm, :status, :bounce_type, :bounce_subtype,
        :status_updated_at, :from_name, :ocd_ids, :attributes, :created_at, :complained_at)
    ON CONFLICT (email_norm) DO UPDATE SET status = excluded.status, bounce_type = excluded.bounce_type,
        bounce_subtype = excluded.bounce_subtype, status_updated_at = excluded.status_updated_at,
        from_name = excluded.from_name, ocd_ids = excluded.ocd_ids, attributes = excluded.attributes,
        complained_at = excluded.complained_at"""

_json = json.JSONEncoder(ensure_ascii=False).encode
"""Made once: `json.dumps` with an option makes an encoder for each call."""


_SHOWN = (
    f"*[^\u0001-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000{MARK_OPEN}{MARK_CLOSE}]*"
)
"""A value with a character that a letter would show: not white space, a control character or a mark."""

_RAISE_HARD_STATUS = """UPDATE subscribers SET hard_status = nullif(?2, 'bounced'), hard_status_at = ?3
    WHERE email_norm = ?1 AND ?2 <> 'active' AND hard_status IS NOT NULL
      AND (hard_status = 'active' OR ?2 = 'bounced')"""
"""Soft bounces may be taken back; what a file or a person says besides is not lost with them."""


_JOIN_LIST = """INSERT INTO subscriptions (email, list_key, joined_at) VALUES (?, ?, ?)
    ON CONFLICT (email, list_key) DO UPDATE SET unsubscribed_at = NULL, joined_at = excluded.joined_at
    WHERE unsubscribed_at IS NOT NULL"""
"""By a person's own act. Nothing changes for who is on it."""

_SIGN_UP_AGAIN = """UPDATE subscribers SET status = 'active', status_updated_at = ?, left_at = NULL
    WHERE email_norm = ? AND status = 'unsubscribed' AND complained_at IS NULL"""
_NO_PAUSE = "UPDATE subscribers SET snoozed_until = NULL WHERE email_norm = ?"
_LIST_AGAIN = "UPDATE subscriptions SET unsubscribed_at = NULL WHERE email = ? AND list_key = ?"

RENEWED = "DELETE FROM desk_unsubscribes WHERE email = ? AND list_key = ?"
"""What the dashboard ended, by a person's own act; '' is everything."""

_MAY_CHOOSE = """SELECT attributes FROM subscribers
    WHERE email_norm = ? AND status = 'active' AND complained_at IS NULL"""

_READERS = """('', q.list_key)
    OR {0} IN (SELECT value FROM json_each(q.segment_filter, '$.lists') WHERE q.list_key IS NULL)"""
"""Who gets a mailout: everybody, a list, or the lists that its segment asks for."""

_MAILED = f"""SELECT 1 FROM campaign_queue q
    WHERE NOT q.is_rehearsal AND NOT q.is_test
      AND coalesce(q.completed_at, q.locked_at, q.started_at, q.created_at) >= :at
      AND (q.archived_at IS NOT NULL AND q.sent > 0  -- its messages are elsewhere: nobody can tell to whom
           OR EXISTS (SELECT 1 FROM email_outbox o JOIN import_people p ON p.email = o.email
                      WHERE o.campaign_id = q.id AND o.state IN ('SENT', 'SENT_ATTEMPT', 'UNKNOWN')
                        AND p.import_id = :id AND (p.list_key IN {_READERS.format("p.list_key")})))
    LIMIT 1"""  # noqa: S608 (constants)

_TAKEN_BACK = """CREATE TEMP TABLE taken_back AS SELECT p.email, p.list_key FROM import_people p
    LEFT JOIN subscribers s ON s.email_norm = p.email
    WHERE p.import_id = :id AND CASE WHEN p.list_key <> '' THEN EXISTS (
            SELECT 1 FROM subscriptions l
            WHERE l.email = p.email AND l.list_key = p.list_key AND l.unsubscribed_at IS NULL)
        -- Who has said something since stays: also that they want no mail must not be lost.
        ELSE s.status = 'active' AND s.status_updated_at = s.created_at AND NOT EXISTS (
            SELECT 1 FROM subscriptions l WHERE l.email = p.email
              AND (l.unsubscribed_at <> s.created_at OR NOT EXISTS (
                  SELECT 1 FROM import_people i WHERE i.import_id = p.import_id
                    AND i.email = l.email AND i.list_key = l.list_key))) END"""

_WAITING = f"""SELECT o.* FROM campaign_queue q JOIN email_outbox o ON o.campaign_id = q.id
    JOIN taken_back t ON t.email = o.email AND (t.list_key IN {_READERS.format("t.list_key")})
    WHERE q.status IN ('PENDING', 'PROCESSING') AND o.state IN ('PENDING', 'RETRY_SCHEDULED')
      -- Who is on another list of the segment, and not by this import, still gets it.
      AND (t.list_key IN ('', q.list_key) OR NOT EXISTS (
          SELECT 1 FROM json_each(q.segment_filter, '$.lists') asked
          WHERE {on_list("o.email", "asked.value")}
            AND (asked.value = 'general'
                 OR (o.email, asked.value) NOT IN (SELECT email, list_key FROM taken_back))))
    GROUP BY o.seq"""  # noqa: S608 (constants)


class SqliteSubscribers:
    """Fulfils `Subscribers`."""

    db: Database

    def import_subscribers(
        self, rows: Sequence[SubscriberRow], *, own_sign_up: bool = False, import_id: str | None = None
    ) -> ImportCounts:
        with self.db.write() as tx:
            now = self.db.clock.now()
            stay_away = set() if own_sign_up else forgotten_among(tx, (row.email_norm for row in rows))
            if own_sign_up:
                release_forgotten(tx, (row.email_norm for row in rows))
                tx.executemany(_SIGN_UP_AGAIN, [(now, row.email_norm) for row in rows])
                tx.executemany(_NO_PAUSE, [(row.email_norm,) for row in rows])
                tx.executemany(_LIST_AGAIN, [(row.email_norm, key) for row in rows for key in row.lists])
                renewed = [(row.email_norm, key) for row in rows for key in ("", *row.lists)]
                tx.executemany(RENEWED, renewed)
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
            for key, what in feedback_among(tx, merged.keys() - known.keys()):
                one, is_bounce = merged[key], what == "bounce"
                one["status"] = stronger(one["status"], "bounced" if is_bounce else "unsubscribed")
                if is_bounce:
                    one["bounce_type"] = one["bounce_type"] or "Permanent"
                else:
                    one["complained_at"] = now
            changed = {key for key, row in merged.items() if row != known.get(key)}
            tx.executemany(_WRITE, [merged[key] for key in merged if key in changed])
            told = [(row.email_norm, row.status, now) for row in rows if row.status != "active"]
            tx.executemany(_RAISE_HARD_STATUS, told)
            tx.executemany("DELETE FROM desk_unsubscribes WHERE email = ?", [(one[0],) for one in told])
            places, left, stayed_off = _join_lists(tx, rows, keys, now)
            added, joined = merged.keys() - known.keys(), {email for email, _ in places | left}
            counts = ImportCounts(
                added=len(added),
                updated=len((changed | joined) - added),
                unchanged=len(merged.keys() - changed - joined),
                kept_status=sum(1 for row in rows if merged[row.email_norm]["status"] != row.status),
                stayed_off=stayed_off,
                forgotten=len(stay_away),
            )
            _note_added(tx, import_id, rows, added, places)
            if import_id is not None:
                _count_changes(tx, import_id, counts)
            return counts

    def undo_import(self, id: str) -> Undone:
        with self.db.write() as tx:
            row = tx.execute("SELECT * FROM imports WHERE id = ?", (id,)).fetchone()
            if row is None:
                raise NotFound(
                    f"There is no import {id}.", remedy="`mailout subscribers undo-import` lists them."
                )
            if row["undone_at"] is not None:
                raise StoreError("This import was undone already.")
            asked = {"id": id, "at": row["at"]}
            if tx.execute(_MAILED, asked).fetchone():
                raise StoreError(
                    "People of this import were mailed since.",
                    remedy="Unsubscribe who should get no more: `mailout subscribers unsubscribe EMAIL`.",
                )
            tx.execute("DROP TABLE IF EXISTS temp.taken_back")
            tx.execute(_TAKEN_BACK, asked)
            move = Transitions(tx, self.db.clock.now())
            if waiting := tx.execute(_WAITING).fetchall():
                move.suppress(waiting, "import undone")
                move.write()
            known = "list_key <> '' AND email NOT IN (SELECT email FROM taken_back WHERE list_key = '')"
            lists = tx.execute(f"SELECT count(*) FROM taken_back WHERE {known}").fetchone()[0]  # noqa: S608
            persons = "SELECT email FROM taken_back WHERE list_key = ''"
            people = tx.execute(f"DELETE FROM subscribers WHERE email_norm IN ({persons})").rowcount  # noqa: S608
            tx.execute("DELETE FROM subscriptions WHERE (email, list_key) IN (SELECT * FROM taken_back)")
            added = json.loads(row["counts"]).get("added", 0)
            tx.execute("DELETE FROM import_people WHERE import_id = ?", (id,))
            tx.execute("UPDATE imports SET undone_at = ? WHERE id = ?", (self.db.clock.now(), id))
            tx.execute("DROP TABLE temp.taken_back")
            return Undone(people, lists, added - people)

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
            " AND coalesce((SELECT a.value FROM json_each(s.attributes) a WHERE a.key = :attribute), '')"
            "  NOT GLOB :shown"
        )
        asked = parameters | {"attribute": attribute, "shown": _SHOWN}
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
                joined = tx.execute(_JOIN_LIST, (email_norm, key, now)).rowcount
                tx.execute(RENEWED, (email_norm, key))
                if joined:
                    consent = (email_norm, key, now, wording, choice.source)
                    tx.execute("INSERT OR REPLACE INTO consents VALUES (?, ?, ?, ?, ?)", consent)
            # They have spoken for themselves: no import has them to take back any more.
            tx.execute("DELETE FROM import_people WHERE email = ?", (email_norm,))
            return True

    def normalise_addresses(self) -> int:
        """Nothing to do: every row has come through an import."""
        return 0


def _join_lists(
    tx: sqlite3.Connection, rows: Sequence[SubscriberRow], keys: str, now: float
) -> tuple[set[tuple[str, str]], set[tuple[str, str]], int]:
    """Who came onto a list, or is known to have left it; who was on it, not by their own act, and left. Who
    unsubscribed from one stays off it: only they themselves may come back. How many those are."""
    known = {
        (row["email"], row["list_key"]): (row["unsubscribed_at"], row["joined_at"])
        for row in tx.execute(
            "SELECT * FROM subscriptions WHERE email IN (SELECT value FROM json_each(?))",
            (keys,),
        )
    }
    asked = {(row.email_norm, key) for row in rows for key in row.lists}
    said = {(row.email_norm, key) for row in rows for key in row.left_lists}
    gone = said - known.keys()
    left = {one for one in said - gone if known[one] == (None, None)}
    tx.executemany(
        "UPDATE subscriptions SET unsubscribed_at = ? WHERE email = ? AND list_key = ?",
        [(now, *one) for one in sorted(left)],
    )
    new = asked - known.keys() | gone
    tx.executemany(
        "INSERT INTO subscriptions (email, list_key, unsubscribed_at) VALUES (?, ?, ?)",
        [(*one, now if one in gone else None) for one in sorted(new)],
    )
    return new, left, len({one[0] for one in asked if one in known and known[one][0] is not None})


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
            "complained_at": now if row.complained else None,
        }
    merged = dict(known)
    if row.complained:
        merged["complained_at"] = known["complained_at"] or now
    if row.from_name:
        merged["from_name"] = row.from_name
    if row.ocd_ids:
        merged["ocd_ids"] = _rewritten(known["ocd_ids"], list(row.ocd_ids))
    if row.attributes:
        had = known["attributes"]
        merged["attributes"] = _rewritten(had, json.loads(had) | dict(row.attributes))
    if stronger(known["status"], row.status) == row.status:
        merged["bounce_type"] = row.bounce_type or known["bounce_type"]
        merged["bounce_subtype"] = row.bounce_subtype or known["bounce_subtype"]
        if known["status"] != row.status:
            merged |= {"status": row.status, "status_updated_at": now}
    return merged


def _rewritten(known: str, value: object) -> str:
    """As it stands if that says the same: SQLite itself writes JSON without blanks, and that is no change."""
    new = _json(value)
    return known if new != known and new == _json(json.loads(known)) else new


def _note_added(
    tx: sqlite3.Connection,
    import_id: str | None,
    rows: Sequence[SubscriberRow],
    added: Collection[str],
    joined: Collection[tuple[str, str]],
) -> None:
    """What is new is this import's. Who was another's and comes again is nobody's to take back."""
    others = "FROM import_people WHERE import_id IS NOT ?"
    if tx.execute(f"SELECT 1 {others} LIMIT 1", (import_id,)).fetchone():
        again = [(import_id, row.email_norm, key) for row in rows for key in ("", *row.lists)]
        tx.executemany(f"DELETE {others} AND email = ? AND list_key = ?", again)
    if import_id is not None:
        new = sorted([*((email, "") for email in added), *joined])
        tx.executemany(
            "INSERT OR REPLACE INTO import_people VALUES (?, ?, ?)", [(*one, import_id) for one in new]
        )


def _count_changes(tx: sqlite3.Connection, import_id: str, counts: ImportCounts) -> None:
    """A large file comes in several parts."""
    (before,) = tx.execute("SELECT counts FROM imports WHERE id = ?", (import_id,)).fetchone()
    known = json.loads(before)
    known |= {name: known.get(name, 0) + n for name, n in asdict(counts).items()}
    tx.execute("UPDATE imports SET counts = ? WHERE id = ?", (json.dumps(known), import_id))
