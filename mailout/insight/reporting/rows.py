"""CSV: of a mailout, one line a recipient; and of people, in the form that `import` reads.

While a mailout is sent, each worker appends what is final to a part of its own; afterwards the whole file is
made again from the store, because unknown messages are settled later and only the store knows.

The file is safe to open in a spreadsheet: a value that begins like a formula (`=`, `+`, `-`, `@`, a tab or a
carriage return, also behind `'`) gets a `'` in front. Addresses may begin with `+`, `-` or `=` too; a program
that reads the file back takes that `'` away again, as the import of subscribers does.
"""

from __future__ import annotations

import csv
import io
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from mailout.base.clock import Clock
from mailout.base.select import Reads
from mailout.base.time_format import iso
from mailout.insight.reporting.files import parts_directory, replacing
from mailout.letters.audience.port import Subscriber
from mailout.letters.audience.subscriber_rows import Wanted, matching, with_left_lists
from mailout.outbox.delivery.outbox_rows import outcomes
from mailout.outbox.delivery.port import MessageOutcome, Outbox
from mailout.outbox.delivery.protocol import Claimed, Ledger, Result
from mailout.outbox.delivery.states import COLUMN_OF, Column, State
from mailout.outbox.queue.port import QueueStore

log = logging.getLogger("mailout.reporting")

COLUMNS = ("email", "status", "error_message", "message_id", "sent_at")
PEOPLE_COLUMNS = (
    "email",
    "status",
    "from_name",
    "bounce_type",
    "bounce_subtype",
    "lists",
    "ocd_ids",
    "snoozed_until",
    "left_lists",
    "complained_at",
)
CHUNK_CHARACTERS = 64 * 1024

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_FINAL = frozenset({Column.SENT, Column.FAILED, Column.UNKNOWN})


def write_csv(store: QueueStore, mailout_id: str, path: Path) -> None:
    """Make `reports/<mailout id>.csv` again from the store.

    Once nothing is pending or in flight it says everything that the workers' parts said: they go.
    """
    over = store.mailout(mailout_id).ledger.settled
    with replacing(path) as file:
        file.writelines(csv_lines(store, mailout_id))
    if over:
        _remove_parts(parts_directory(path.parent, mailout_id))


def csv_lines(store: Outbox, mailout_id: str) -> Iterator[str]:
    """The same file as text, for whoever waits for it."""
    return as_csv(chain([COLUMNS], map(_line_of, outcomes(store, mailout_id))))


def as_csv(rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Some lines at a time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(row)
        if text.tell() > CHUNK_CHARACTERS:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


class CsvPart:
    """Told of every result once it is durable (an `Observer`): one worker's part of the CSV.

    The part is opened again for each call, so that one which was cleared away meanwhile begins again, and so
    that all of it is in the file when the call returns. A full disk costs the part, never the mailout.
    """

    def __init__(self, directory: Path, worker: str, clock: Clock) -> None:
        self._directory = directory
        self._name = f"{_as_file_name(worker)}.part.csv"
        self._clock = clock

    def recorded(self, results: Sequence[tuple[Claimed, Result]], ledger: Ledger | None) -> None:
        moment = self._clock.now()
        lines: dict[str, list[Sequence[str]]] = {}
        for claimed, result in results:
            if claimed.mailout_id is not None and COLUMN_OF[result.state] in _FINAL:
                lines.setdefault(claimed.mailout_id, []).append(_line_now(claimed, result, moment))
        for mailout_id, new in lines.items():
            try:
                self._append(parts_directory(self._directory, mailout_id) / self._name, new)
            except OSError as error:
                log.warning("the CSV part of mailout %s misses %d lines: %s", mailout_id, len(new), error)

    def _append(self, path: Path, lines: Sequence[Sequence[str]]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", newline="") as file:
            file.writelines(as_csv(lines if file.tell() else [COLUMNS, *lines]))


def status_of(state: State) -> str:
    """The ledger's word for it; what is in flight is still pending to whoever reads a file."""
    column = COLUMN_OF[state]
    return Column.PENDING.value if column is Column.IN_FLIGHT else column.value


def safe(value: str | None) -> str:
    """A value that no spreadsheet takes for a formula."""
    if not value:
        return ""
    return f"'{value}" if value.lstrip("'").startswith(_FORMULA) else value


def _line_of(row: MessageOutcome) -> Sequence[str]:
    state = State(row["state"])
    sent_at = row["sent_at"] if state is State.SENT else None
    return _line(row["email"], state, row["error_message"], row["ses_message_id"], sent_at)


def _line_now(claimed: Claimed, result: Result, moment: float) -> Sequence[str]:
    sent_at = moment - result.age if result.state is State.SENT else None
    return _line(claimed.email, result.state, result.message, result.provider_message_id, sent_at)


def _line(
    email: str, state: State, error: str | None, provider_message_id: str | None, sent_at: float | None
) -> Sequence[str]:
    error = None if state is State.SENT else error
    return safe(email), status_of(state), safe(error), safe(provider_message_id), iso(sent_at) or ""


def _remove_parts(directory: Path) -> None:
    if not directory.is_dir():
        return
    for part in directory.glob("*.part.csv"):
        part.unlink(missing_ok=True)
    with suppress(OSError):  # a sender has begun another part, or another run was faster
        directory.rmdir()


def _as_file_name(worker: str) -> str:
    """A worker's name (`host:4711`) as a file name: nothing in it can leave the directory."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", worker).strip("-") or "worker"


# ── People ──


def people_lines(store: Reads, wanted: Wanted) -> Iterator[str]:
    """Some lines at a time. They are read twice: the first time for the attributes that any of them has."""
    attributes = sorted({name for row in matching(store, wanted) for name in row["attributes"]})
    yield from as_csv([(*PEOPLE_COLUMNS, *map(safe, attributes))])
    people = with_left_lists(store, matching(store, wanted))
    yield from as_csv(_line_of_person(row, left, attributes) for row, left in people)


def _line_of_person(row: Subscriber, left: Sequence[str], attributes: Sequence[str]) -> Iterator[str]:
    known = row | {
        "snoozed_until": iso(row["snoozed_until"]),
        "status": row["status"] or "unknown",  # nothing would be read as active
        "left_lists": left,
        "complained_at": iso(row["complained_at"]),
    }
    values = (row["attributes"].get(name) for name in attributes)
    return map(_cell, (*(known.get(name) for name in PEOPLE_COLUMNS), *values))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return safe("|".join(value) if isinstance(value, list | tuple) else str(value))
