"""Who gets a mailout, on SQLite: lists, pauses, and a segment's tree, as conditions over parameters."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from mailout.adapters.sqlite.database import Database
from mailout.base.errors import NotFound, StoreError
from mailout.letters.audience.segment_tree import (
    EMAIL,
    JOINED,
    WHITE_SPACE,
    Tree,
    leaves,
    lists_of,
    number_of,
    removed_letter,
)

DAY_SECONDS = 86_400.0
_BLANK = f"char({', '.join(str(ord(one)) for one in WHITE_SPACE)})"
_ATTRIBUTE = f"""FROM (SELECT CASE a.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'
        ELSE trim(a.atom, {_BLANK}) END AS v
    FROM json_each(s.attributes) a WHERE a.key = %s LIMIT 1) WHERE v <> ''"""  # noqa: S608 (constants)
_READ = {
    "text": "CASE WHEN {v} GLOB '*[^ -~]*' THEN mailout_fold({v}) ELSE lower({v}) END",
    "number": "CASE WHEN {v} GLOB '*[^0-9]*' OR length({v}) > 15 THEN mailout_number({v})"
    " ELSE CAST({v} AS REAL) END",
    "day": "mailout_day({v})",
}
"""How a value is read. SQLite's own functions do what is plain, since ours take three times as long."""
_REAL = "NOT q.is_test AND NOT q.is_rehearsal AND q.sent > 0"
_OF_LETTER = "o.id = mailout_uuid(%s, s.email_norm)"
_MAILED = f"""EXISTS (SELECT 1 FROM campaign_queue q WHERE {_REAL}
    AND coalesce(q.freeze_started_at, q.frozen_at) >= s.created_at
    AND (q.archived_at IS NOT NULL OR EXISTS (
        SELECT 1 FROM email_outbox o WHERE {_OF_LETTER % "q.id"} AND o.state = 'SENT')))"""  # noqa: S608 (constants)
"""Who was there when a letter went out that retention has removed counts as mailed."""
_CLICKED = """EXISTS (SELECT 1 FROM delivery_events e
    WHERE e.message_id = o.id AND e.event_type = 'click')"""
_IN_PLACE = """EXISTS (SELECT 1 FROM json_each(s.ocd_ids) p WHERE (p.value = {place}
    OR substr(p.value, 1, length({place}) + 1) = {place} || '/')
    AND ({ending} = '' OR substr(p.value, -length({ending})) = {ending}
        OR instr(p.value, {ending} || '/')))"""


class SegmentCondition:
    """One tree, as SQL over `subscribers s` and the parameters it needs.

    `in_parts`: for a few people at a time, where a look at each one's message is less work than to collect
    all messages of a letter first.
    """

    def __init__(self, tree: Tree, *, in_parts: bool = False) -> None:
        self.parameters: dict[str, Any] = {}
        self._in_parts = in_parts
        self.sql = self._of(tree)

    def _parameter(self, value: Any) -> str:
        name = f"segment_{len(self.parameters)}"
        self.parameters[name] = value
        return f":{name}"

    def _of(self, tree: Tree) -> str:
        match tree:
            case [("and" | "or") as word, *parts]:
                return f"({f' {word.upper()} '.join(self._of(part) for part in parts)})"
            case ["not", part]:
                return f"NOT ({self._of(part)})"
            case ["has", name]:
                return "true" if name in (JOINED, EMAIL) else f"EXISTS (SELECT 1 {self._attribute(name)})"
            case ["compare", name, operator, values]:
                return self._compared(name, operator, values)
            case ["list", key]:
                return on_list("s.email_norm", self._parameter(key))
            case ["place", place, ending]:
                return _IN_PLACE.format(place=self._parameter(place), ending=self._parameter(ending))
            case ["got", id]:
                return self._sent(self._parameter(id), "o.state = 'SENT'")
            case ["clicked", id]:
                return self._sent(self._parameter(id), _CLICKED)
            case ["mailed"]:
                return _MAILED
        raise StoreError(f"This is no part of a segment: {tree!r}.")

    def _sent(self, id: str, condition: str) -> str:
        if self._in_parts:
            return f"EXISTS (SELECT 1 FROM email_outbox o WHERE {_OF_LETTER % id} AND {condition})"  # noqa: S608 (constants)
        return (
            f"s.email_norm IN (SELECT o.email FROM email_outbox o WHERE o.campaign_id = {id} AND {condition})"  # noqa: S608
        )

    def _attribute(self, name: str) -> str:
        return _ATTRIBUTE % self._parameter(name)

    def _compared(self, name: str, operator: str, values: Sequence[Sequence[str]]) -> str:
        if name == JOINED:
            return self._joined(operator, [day for _, day in values])
        test = self._test("s.email_norm" if name == EMAIL else "v", operator, values)
        return f"({test})" if name == EMAIL else f"(SELECT {test} {self._attribute(name)})"

    def _test(self, v: str, operator: str, values: Sequence[Sequence[str]]) -> str:
        if operator == "contains":
            return f"instr({_read('text', v)}, {self._parameter(values[0][1])}) > 0"
        meant = [(kind, number_of(value) if kind == "number" else value) for kind, value in values]
        if operator != "in":
            ((kind, value),) = meant
            return f"{_read(kind, v)} {_known(operator)} {self._parameter(value)}"
        kinds = {kind: [self._parameter(value) for of, value in meant if of == kind] for kind in dict(meant)}
        return " OR ".join(
            f"coalesce({_read(kind, v)} IN ({', '.join(found)}), 0)" for kind, found in kinds.items()
        )

    def _joined(self, operator: str, days: Sequence[str]) -> str:
        """By the moments at which days begin in UTC."""
        if operator == "in":
            return f"({' OR '.join(self._within(day) for day in days)})"
        begins = _begins(days[0])
        bound = begins + DAY_SECONDS if operator in ("<=", ">") else begins
        return f"s.created_at {'<' if _known(operator) in ('<', '<=') else '>='} {self._parameter(bound)}"

    def _within(self, day: str) -> str:
        begins = _begins(day)
        return (
            f"(s.created_at >= {self._parameter(begins)}"
            f" AND s.created_at < {self._parameter(begins + DAY_SECONDS)})"
        )


def _read(kind: str, v: str) -> str:
    if kind not in _READ:
        raise StoreError(f"There is no value {kind!r} in a segment.")
    return _READ[kind].format(v=v)


def _known(operator: str) -> str:
    if operator not in ("<", "<=", ">", ">="):
        raise StoreError(f"There is no comparison {operator!r} in a segment.")
    return operator


def _begins(day: str) -> float:
    return datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC).timestamp()


def awake(person: str, *, snoozed: bool = False) -> str:
    """A condition: this subscriber has asked for no pause that lasts at `:now`; or (`snoozed`) for one."""
    asleep = f"{person}.snoozed_until > :now"
    return asleep if snoozed else f"({person}.snoozed_until IS NULL OR NOT {asleep})"


def on_list(person: str, key: str = ":list_key", also: str | None = None) -> str:
    """A condition: the address in this column is on the list of this parameter, or on one of `also` (a
    parameter with JSON). No list at all is `general`."""
    found = f"""CASE WHEN coalesce({key}, 'general') = 'general'
    THEN NOT EXISTS (SELECT 1 FROM subscriptions l WHERE l.email = {person} AND l.list_key = 'general'
                     AND l.unsubscribed_at IS NOT NULL)
    ELSE EXISTS (SELECT 1 FROM subscriptions l WHERE l.email = {person} AND l.list_key = {key}
                 AND l.unsubscribed_at IS NULL) END"""  # noqa: S608 (a column's name, written in our own code)
    if also is None:
        return found
    return f"""({found} OR ({also} <> '[]' AND EXISTS (SELECT 1 FROM subscriptions l WHERE l.email = {person}
        AND l.unsubscribed_at IS NULL AND l.list_key IN (SELECT value FROM json_each({also})))))"""  # noqa: S608


def audience(
    list_key: str | None, tree: Tree | None, now: float, *, in_parts: bool = False, snoozed: bool = False
) -> tuple[str, dict[str, Any]]:
    """A condition over `subscribers s`, with its parameters: who would get a mailout.

    Without a list it is for those on `general`, and for those on a list that the segment asks for. `snoozed`:
    those who do not get it, because of a pause.
    """
    on = on_list("s.email_norm", also=":segment_lists")
    where = f"s.status = 'active' AND {awake('s', snoozed=snoozed)} AND {on}"
    parameters = {"list_key": list_key, "now": now, "segment_lists": "[]"}
    if tree is None:
        return where, parameters
    condition = SegmentCondition(tree, in_parts=in_parts)
    parameters["segment_lists"] = segment_lists(list_key, lists_of(tree))
    return f"{where} AND {condition.sql}", parameters | condition.parameters


def segment_lists(list_key: str | None, lists: Sequence[str]) -> str:
    """The other lists that people may be on to get a mailout, as a parameter."""
    return json.dumps(list(lists) if list_key is None else [])


def take_filter(tx: sqlite3.Connection, name: str) -> dict[str, Any]:
    """The filter of a segment as it is now."""
    row = tx.execute("SELECT filter, tree, hash FROM segments WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise NotFound(f"There is no segment {name}.", remedy="`mailout segments list` shows them.")
    tree = json.loads(row["tree"])
    for leaf in leaves(tree):
        if leaf[0] in ("got", "clicked"):
            _require_messages(tx, leaf[1])
    return {"text": row["filter"], "hash": row["hash"], "tree": tree, "lists": lists_of(tree)}


def _require_messages(tx: sqlite3.Connection, id: str) -> None:
    row = tx.execute("SELECT subject, archived_at FROM campaign_queue WHERE id = ?", (id,)).fetchone()
    if row is None or row["archived_at"] is not None:
        raise removed_letter(row["subject"] if row else id, StoreError)


class SqliteSegments:
    """Fulfils the part of `Subscribers` that is about segments."""

    db: Database

    def delete_segment(self, name: str) -> bool:
        with self.db.write() as tx:
            waiting = tx.execute(
                "SELECT 1 FROM campaign_queue WHERE segment = ? AND segment_filter IS NULL AND NOT is_test"
                " AND status IN ('PENDING', 'PROCESSING')",
                (name,),
            ).fetchone()
            return (
                waiting is None and tx.execute("DELETE FROM segments WHERE name = ?", (name,)).rowcount == 1
            )

    def audience_sample(self, list_key: str | None, segment: Tree | None, limit: int) -> Sequence[str]:
        where, parameters = audience(list_key, segment, self.db.clock.now(), in_parts=limit == 1)
        rows = self.db.read(
            f"SELECT s.email_norm FROM subscribers s WHERE {where} ORDER BY s.email_norm LIMIT :limit",  # noqa: S608
            parameters | {"limit": limit},
        )
        return [email for (email,) in rows]
