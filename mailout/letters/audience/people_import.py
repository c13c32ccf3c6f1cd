"""People from a file as other products export it: read, asked about, checked, nothing written yet.

The whole file is checked before the first row is handed on, so duplicates merge wherever they stand.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl

from mailout.base.addresses import TRIM, Dropped
from mailout.base.errors import UsageError
from mailout.base.ids import uuid_of
from mailout.base.select import Reads, first
from mailout.letters.audience.columns import EMAIL_HEADERS
from mailout.letters.audience.frame import FRAME_ROWS, STATUSES, merge
from mailout.letters.audience.list_rows import lists
from mailout.letters.audience.people_rows import ATTRIBUTE_PREFIX, BAD_PLACE, Reject, checked, without_doubt
from mailout.letters.audience.people_table import PeopleTable, people_table, questions_about
from mailout.letters.audience.plan import ImportPlan
from mailout.letters.audience.port import ImportCounts, ImportRecord, SubscriberRow, Subscribers
from mailout.letters.audience.subscriber_rows import IMPORT_TABLE, IMPORTS, active_among
from mailout.letters.audience.table_file import open_tables
from mailout.letters.audience.tables import key
from mailout.letters.audience.wishes import EVERYBODY, Answers, ImportQuestion

MOST_LIST_CHARACTERS = 200
"""A list stands in every link to leave it by."""
SAME_IMPORT_SECONDS = 86_400.0
"""For so long the same file with the same answers continues its import: it was stopped, or given twice."""

_A_DAY = re.compile(r"\d{4}-\d\d-\d\d")
"""So begins what our own export writes of a complaint. Others may mean anything by the same column."""


@dataclass(frozen=True, slots=True)
class PeopleImport:
    """A file that has been read: who is in it, and who was dropped and why."""

    plan: ImportPlan
    people: int  # how many `batches` yields
    dropped: Mapping[Dropped, int]  # duplicates too: they are merged, not rejected
    rejects: Sequence[Reject]  # in the order of the file
    _people: pl.DataFrame
    digest: str  # of the file

    def lists(self) -> set[str]:
        """The names of all lists in it."""
        named = [name for name in ("lists", "left_lists") if name in self._people.columns]
        return {key for name in named for one in self._people[name].unique() for key in _values(one)}

    def stopped(self, store: Reads) -> str:
        """What undoing the import would not bring back: who gets mail now, and in this file does not."""
        refused = self._people.filter(pl.col("status").cast(pl.String) != "active")["email_norm"].to_list()
        people = active_among(store, refused)
        who = "person who gets mail now stops" if people == 1 else "people who get mail now stop"
        return f"{people:,} {who} getting it, and undoing the import will not change that." if people else ""

    def batches(self, size: int = 5_000) -> Iterator[list[SubscriberRow]]:
        """Everybody, by `email_norm`, in rows as a store imports them. Refused while a question is open."""
        self.plan.require_answered()
        attributes = [name for name in self._people.columns if name.startswith(ATTRIBUTE_PREFIX)]
        for part in self._people.iter_slices(size):
            yield [_subscriber(row, attributes) for row in part.iter_rows(named=True)]


def import_people(
    store: Subscribers,
    found: PeopleImport,
    *,
    by: str,
    agreed: str = "",
    list_key: str | None = None,
    began: Callable[[str], object] = lambda id: None,
    progress: Callable[[int], object] = lambda done: None,
) -> tuple[str, ImportCounts]:
    """Written down first with what was decided, so that it can be taken back. `agreed`: who said so."""
    found.plan.require_answered()
    keys = _keys_of(store, found)
    decisions = found.plan.decisions() | ({"list": list_key} if list_key else {})
    id = _id_of(store, found, decisions)  # whoever says that they agreed
    decisions |= {"agreed": agreed} if agreed else {}
    record = ImportRecord(id, by, found.plan.file, decisions, found.plan.counts())
    store.put(IMPORT_TABLE, [record])
    began(id)
    totals = ImportCounts()
    for batch in found.batches():
        if keys or list_key is not None:
            batch = [
                replace(
                    row,
                    lists=_listed(row.lists, keys, list_key),
                    left_lists=_listed(row.left_lists, keys, None),
                )
                for row in batch
            ]
        totals += store.import_subscribers(batch, import_id=id)
        progress(len(batch))
    return id, totals


def _id_of(store: Subscribers, found: PeopleImport, decisions: Mapping[str, Any]) -> str:
    """That of the import which this one continues, so that both are undone as one; else a new one."""
    decided, now = json.dumps(decisions, sort_keys=True), store.now()
    for n in count(1):
        id = uuid_of("import", found.digest, decided, str(n))
        known = first(store, IMPORTS, {"id": id})
        if known is None or (known.undone_at is None and now - known.at < SAME_IMPORT_SECONDS):
            break
    return id


def _keys_of(store: Subscribers, found: PeopleImport) -> dict[str, str]:
    """Of lists that the file calls by their names, or in another case. Others it makes, as it writes them."""
    known = {name.casefold(): one.key for one in lists(store) for name in (one.name, one.key)}
    keys = {}
    for name in found.lists():
        if len(name) > MOST_LIST_CHARACTERS or not name.isprintable():
            raise UsageError(
                f"Nothing was imported: {name[:40]!r}… is not a list's name.",
                remedy=f"A name has at most {MOST_LIST_CHARACTERS} characters, on one line.",
            )
        if (key := known.get(name.casefold(), name)) != name:
            keys[name] = key
    return keys


def _listed(names: Sequence[str], keys: Mapping[str, str], also: str | None) -> tuple[str, ...]:
    listed = [keys.get(name, name) for name in names]
    return tuple(dict.fromkeys(listed if also is None else [*listed, also]))


def read_people(path: Path, answers: Answers | None = None) -> PeopleImport:
    """Read and check a file; a UsageError says what to do about one that cannot be read."""
    answers = answers or Answers()
    asked = {key(header) for header, to in answers.fields.items() if to == "email"}
    tables = open_tables(path, EMAIL_HEADERS | asked, encoding=answers.encoding, sheet=answers.sheet)
    sources, others = [], list[str]()
    for table in tables:
        if (source := people_table(path, table, answers)) is not None:
            sources.append(source)
        others += table.header
    if not sources:
        raise UsageError(
            f"{path} has no column `email`. It has: {', '.join(others)}.",
            remedy='Say which one holds the addresses: --map "COLUMN=email".',
        )
    headers = tuple(dict.fromkeys(name for one in sources for name in one.headers))
    answers = answers.of_columns(headers)
    questions = questions_about(sources)
    batches, rejects = _all_checked(sources, questions, answers)
    several = sum(batch.height for batch in batches) - sum(source.raw.height for source in sources)
    audience = merge(batch.drop("line") for batch in batches)
    statuses = dict(audience.frame["status"].cast(pl.String).value_counts().iter_rows())
    readings = tuple(next((one.table.readings for one in sources if one.table.readings), ()))
    plan = ImportPlan(
        file=path.name,
        rows=audience.frame.height + sum(audience.dropped.values()) - several,
        sources=tuple((one.title, one.export.name if one.export else "", one.raw.height) for one in sources),
        headers=headers,
        columns=tuple(dict.fromkeys(pair for one in sources for pair in one.recognised())),
        attributes=tuple(
            name.removeprefix(ATTRIBUTE_PREFIX)
            for name in audience.frame.columns
            if name.startswith(ATTRIBUTE_PREFIX)
        ),
        people={status: statuses[status] for status in STATUSES if status in statuses},
        left_out={why: n for why, n in audience.dropped.items() if why is not Dropped.DUPLICATE},
        merged=audience.dropped.get(Dropped.DUPLICATE, 0),
        several=several,
        bad_places=tuple((one.line, one.value) for one in rejects if one.reason == BAD_PLACE),
        questions=tuple(questions.values()),
        answers=answers,
        encoding=sources[0].table.encoding,
        readings=readings,
        says_so=all(one.says_so(questions, answers) for one in sources),
    )
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return PeopleImport(plan, audience.frame.height, audience.dropped, rejects, audience.frame, digest)


def _all_checked(
    sources: Sequence[PeopleTable], questions: Mapping[str, ImportQuestion], answers: Answers
) -> tuple[list[pl.DataFrame], list[Reject]]:
    """Every row with its status or the reason why it goes no further; and what is not imported, by line."""
    decided = {one for one in questions if answers.columns.get(one, EVERYBODY) != EVERYBODY}
    rejects: list[Reject] = []
    batches = []
    for source in sources:
        for part in (source.raw.clear(), *source.raw.iter_slices(FRAME_ROWS)):
            rows = source.frame(part, source.meanings(part, questions, answers), decided)
            batches.append(checked(rows, rejects))
    batches = without_doubt(batches)
    for batch in batches:
        dropped = batch.filter(pl.col("reason").is_not_null()).select("line", "email", "reason")
        rejects.extend(Reject(*row) for row in dropped.iter_rows())
    return batches, sorted(rejects, key=lambda one: one.line)


def _subscriber(row: Mapping[str, Any], attributes: Sequence[str]) -> SubscriberRow:
    return SubscriberRow(
        email=row["email"],
        email_norm=row["email_norm"],
        status=row["status"],
        from_name=_one_line(row.get("from_name")),
        bounce_type=row.get("bounce_type") or None,
        bounce_subtype=row.get("bounce_subtype") or None,
        ocd_ids=_values(row.get("ocd_ids")),
        lists=_values(row.get("lists")),
        left_lists=_values(row.get("left_lists")),
        complained=bool(_A_DAY.match(row.get("complained_at") or "")) and row["status"] != "active",
        attributes={name.removeprefix(ATTRIBUTE_PREFIX): row[name] for name in attributes if row[name]},
    )


def _one_line(text: str | None) -> str | None:
    """A sender's name becomes a header, and no header carries a line break."""
    return (text and " ".join(text.split())) or None


@lru_cache(maxsize=1024)
def _values(joined: str | None) -> tuple[str, ...]:
    """`a | b;a` → ("a", "b"). Remembered, since many people have the same lists."""
    parts = (part.strip(TRIM) for part in re.split(r"[|;]", joined or ""))
    return tuple(dict.fromkeys(part for part in parts if part))
