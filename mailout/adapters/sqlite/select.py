"""`select` and `put` on SQLite: one view or table, checked names, values as parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mailout.adapters.sqlite.database import Database
from mailout.base.errors import StoreError
from mailout.base.select import SELECT_LIMIT, Condition, Filters, Row, Selection, Table, View

_COLUMNS = """SELECT c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'view' AND m.name = ? AND m.name LIKE 'read\\_%' ESCAPE '\\'"""


class SqliteRows:
    """Fulfils `Reads` and `Writes`."""

    db: Database

    def select(
        self,
        view: View[Row],
        filters: Filters | None = None,
        *,
        order: Sequence[str] = (),
        after: Sequence[Any] | None = None,
        limit: int = SELECT_LIMIT,
    ) -> list[Row]:
        asked = Selection.of(view, filters or {}, order, after, limit)
        self._check(view, [*(one.column for one in asked.conditions), *asked.order])
        way, beyond = ("DESC", "<") if asked.descending else ("ASC", ">")
        names = [_quoted(name) for name in view.hints]
        order_by = [_quoted(name) for name in asked.order]
        conditions = [_condition(one) for one in asked.conditions]
        parameters = [_parameter(one) for one in asked.conditions if one.value is not None]
        if asked.after is not None:
            conditions.append(f"({', '.join(order_by)}) {beyond} ({', '.join('?' * len(asked.order))})")
            parameters += asked.after
        rows = self.db.read(
            f"SELECT {', '.join(names)} FROM {view.name} WHERE {' AND '.join(conditions) or 'true'}"  # noqa: S608 (checked)
            f" ORDER BY {', '.join(f'{name} {way}' for name in order_by)} LIMIT ?",
            [*parameters, asked.limit],
        )
        columns, decoders = list(view.hints), _decoders(view)
        found = []
        for row in rows:
            values = dict(zip(columns, row, strict=True))
            for name, decode in decoders.items():
                if values[name] is not None:
                    values[name] = decode(values[name])
            found.append(view.read(values))
        return found

    def put(self, table: Table[Row], rows: Sequence[Row]) -> None:
        changes = ", ".join(f"{name} = excluded.{name}" for name in map(_quoted, table.anew))
        known = f"ON CONFLICT DO {f'UPDATE SET {changes}' if changes else 'NOTHING'}" if table.key else ""
        sql = (
            f"INSERT INTO {table.name} ({', '.join(map(_quoted, table.columns))})"  # noqa: S608 (a room's constants)
            f" VALUES ({', '.join(f':{name}' for name in table.columns)}) {known}"
        )
        with self.db.write() as tx:
            now = self.db.clock.now()
            for row in rows:
                values = {name: _stored(value) for name, value in table.values(row).items()}
                if table.at and values[table.at] is None:
                    values[table.at] = now
                tx.execute(sql, values)

    def _check(self, view: View[Any], used: Sequence[str]) -> None:
        known = self.db.views.get(view.name)
        if known is None:
            known = frozenset(name for (name,) in self.db.read(_COLUMNS, (view.name,)))
            if not known:
                raise StoreError(f"There is no view {view.name} to select from.")
            self.db.views[view.name] = known
        for column in (*view.hints, *used):
            if column not in known:
                raise StoreError(f"The view {view.name} has no column {column}.")


def _quoted(name: str) -> str:
    """A column that is known: its name may be a word of SQL."""
    return f'"{name}"'


def _condition(one: Condition) -> str:
    name = _quoted(one.column)
    if one.value is None:
        return f"{name} IS {'NOT ' if one.operator == '!=' else ''}NULL"
    if one.operator == "in":
        return f"{name} IN (SELECT value FROM json_each(?))"  # noqa: S608 (checked)
    if one.operator == "has":
        return f"instr({name}, ?)"
    return f"{name} {one.operator} ?"


def _parameter(one: Condition) -> Any:
    return json.dumps(one.value) if one.operator == "in" else one.value


def _stored(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list | tuple) else value


def _decoders(view: View[Any]) -> Mapping[str, Callable[[Any], Any]]:
    return dict.fromkeys(view.kinds[bool], bool) | dict.fromkeys(view.kinds[dict], json.loads)
