"""How rooms read the store: views with typed rows, and one `select` for all of them. And how they write what
is plain: tables, and one `put`. All else that a store does is an act with a rule, and has a name.

A room names a view, the type of its rows and the columns that make a row unique. The store does the rest, in
both stores the same: it refuses unknown views and columns, takes values as parameters, orders by what was
asked for and then by the unique columns, and gives at most `SELECT_LIMIT` rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from functools import partial
from types import NoneType, UnionType
from typing import Any, Generic, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from mailout.base.errors import StoreError

SELECT_LIMIT = 1000
"""Rows in one answer; `every` goes on from page to page."""
OPERATORS = frozenset({"=", "!=", "<", "<=", ">", ">=", "in", "has"})
"""`has`: the text contains it. `=` and `!=` also take None."""

Row = TypeVar("Row")
Filters = Mapping[str, object]
"""By column, or by column and operator: `{"campaign_id": id, "seq >": 7, "state in": ["SENT"]}`."""


@dataclass(frozen=True, slots=True)
class View(Generic[Row]):
    """A view of the store. The fields of `row` (a dataclass or a TypedDict) are the columns that are read."""

    name: str
    row: type[Row]
    key: tuple[str, ...]  # unique, and never null: completes every order
    of: Callable[[dict[str, Any]], Row] | None = None  # makes a row of its columns, if it is not plain
    hints: Mapping[str, Any] = field(init=False, compare=False)  # the columns and their types
    kinds: Mapping[type, Sequence[str]] = field(init=False, compare=False)  # and those of each kind
    read: Callable[[dict[str, Any]], Row] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        columns = getattr(self.row, "columns", None)
        hints = columns() if columns else get_type_hints(self.row)
        object.__setattr__(self, "hints", {name: _plain(hint) for name, hint in hints.items()})
        kinds: dict[type, list[str]] = {kind: [] for kind in (bool, float, int, str, dict)}
        for name, hint in self.hints.items():
            kinds[_kind(hint)].append(name)
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "read", self.of or _reader(self.row, self.hints))


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """A table of the store whose rows are written as they are: no rule has to hold between them."""

    name: str
    row: type[Row]  # a dataclass or a TypedDict
    columns: tuple[str, ...]  # of its fields and properties
    at: str | None = None  # the column that gets the store's time if the row has none
    key: tuple[str, ...] = ()  # what a row is known by; without a key all rows are new ones
    once: bool = False  # a row that is known stays as it is; otherwise it is written anew

    @property
    def anew(self) -> Sequence[str]:
        """What is written into a row that is known."""
        return [] if self.once else [name for name in self.columns if name not in self.key]

    def values(self, row: Row) -> dict[str, Any]:
        """By column. The time is None unless the row has one."""
        get = row.get if isinstance(row, Mapping) else partial(getattr, row)
        return {name: get(name, None) or None if name == self.at else get(name) for name in self.columns}


@dataclass(frozen=True, slots=True)
class Condition:
    column: str
    operator: str
    value: Any


@dataclass(frozen=True, slots=True)
class Selection:
    """What is asked of a view, checked as far as that is possible without the store."""

    conditions: Sequence[Condition]
    order: Sequence[str]  # columns; the last ones make it unique
    descending: bool
    after: Sequence[Any] | None  # the order's values in the last row that is known
    limit: int

    @classmethod
    def of(
        cls, view: View[Any], filters: Filters, order: Sequence[str], after: Sequence[Any] | None, limit: int
    ) -> Selection:
        if not 1 <= limit <= SELECT_LIMIT:
            raise StoreError(f"{limit} rows of {view.name}: it is between 1 and {SELECT_LIMIT} at a time.")
        ways = {column.startswith("-") for column in order} or {False}
        if len(ways) > 1:
            raise StoreError(f"{view.name} is ordered upwards or downwards, not both.")
        columns = [column.removeprefix("-") for column in order]
        columns += [column for column in view.key if column not in columns]
        if after is not None and len(after) != len(columns):
            raise StoreError(f"After which row of {view.name}? The order has {', '.join(columns)}.")
        return cls([_condition(*one) for one in filters.items()], columns, ways.pop(), after, limit)


class Reads(Protocol):
    """The part of the store that all rooms read by."""

    def now(self) -> float:
        """The store's time: the one that slots, leases and limits go by."""

    def select(
        self,
        view: View[Row],
        filters: Filters = ...,
        *,
        order: Sequence[str] = ...,
        after: Sequence[Any] | None = ...,
        limit: int = ...,
    ) -> list[Row]:
        """Rows of one view. `order`: columns that are never null, all downwards (`-at`) or none; then its
        key. `after`: the values of all these in the last row that is known."""


class Writes(Reads, Protocol):
    """And write plain rows by."""

    def put(self, table: Table[Row], rows: Sequence[Row]) -> None:
        """All of them or none."""


def first(store: Reads, view: View[Row], filters: Filters, *, order: Sequence[str] = ()) -> Row | None:
    """None: there is none."""
    rows = store.select(view, filters, order=order, limit=1)
    return rows[0] if rows else None


def every(
    store: Reads,
    view: View[Row],
    filters: Filters | None = None,
    *,
    order: Sequence[str] = (),
    after: Sequence[Any] | None = None,
    limit: int | None = None,
) -> Iterator[Row]:
    """All rows or the first `limit`, a page at a time. The rows have the columns that they are ordered by."""
    columns = [column.removeprefix("-") for column in order]
    columns += [column for column in view.key if column not in columns]
    while limit != 0:
        most = SELECT_LIMIT if limit is None else min(limit, SELECT_LIMIT)
        page = store.select(view, filters or {}, order=order, after=after, limit=most)
        yield from page
        if len(page) < most or most == limit:
            return
        limit = None if limit is None else limit - most
        last: Any = page[-1]
        after = [last[name] if isinstance(last, Mapping) else getattr(last, name) for name in columns]


def among(store: Reads, view: View[Row], column: str, values: Sequence[str]) -> Iterator[Row]:
    """The rows with one of these values, which is unique in the view, however many they are."""
    for start in range(0, len(values), SELECT_LIMIT):
        yield from store.select(view, {f"{column} in": list(values[start : start + SELECT_LIMIT])})


def _condition(name: str, value: object) -> Condition:
    column, _, operator = name.partition(" ")
    operator = operator or "="
    if operator not in OPERATORS:
        raise StoreError(f"There is no filter {operator!r}.")
    if value is None and operator not in ("=", "!="):
        raise StoreError(f"{column} cannot be {operator} nothing.")
    return Condition(column, operator, list(value) if operator == "in" else value)  # type: ignore[call-overload]


def _plain(hint: Any) -> Any:
    """Without `| None`."""
    if get_origin(hint) in (Union, UnionType):
        kinds = [one for one in get_args(hint) if one is not NoneType]
        return kinds[0] if len(kinds) == 1 else object
    return hint


def _kind(hint: Any) -> Any:
    """`dict` for all that is JSON in a store."""
    if isinstance(hint, type) and issubclass(hint, bool | float | int | str):
        return next(kind for kind in (bool, float, int, str) if issubclass(hint, kind))
    return dict


def _reader(row: type[Row], hints: Mapping[str, Any]) -> Callable[[dict[str, Any]], Row]:
    """A TypedDict is what a store has read; a dataclass is made of it."""
    if not is_dataclass(row):
        return lambda values: values  # type: ignore[return-value]
    made: dict[str, Callable[[Any], Any]] = {
        name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Enum)
    }
    made |= {name: _tuple_of(get_args(hint)[0]) for name, hint in hints.items() if get_origin(hint) is tuple}

    def read(values: dict[str, Any]) -> Row:
        for name, make in made.items():
            if values[name] is not None:
                values[name] = make(values[name])
        return row(**values)

    return read


def _tuple_of(kind: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda values: tuple(kind(value) for value in values)
