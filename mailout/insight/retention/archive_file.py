"""Archives as Parquet files: one for each mailout, which polars (or anything else) reads.

A row is a message; what came back for it is JSON in its column `events`. Moments are UTC timestamps, JSON is
text, whichever store they come from. What is being written has a hidden name until the store says that it is
the truth.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from mailout.base.errors import SettingsError, StoreError, UsageError
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.delivery.states import COLUMN_OF, State

ROWS_A_PART = 50_000
"""So many are in memory at once, however long the mailout is."""
NOTHING_LOST = "Look at the disk, then run it again: the store still has what is not in an archive."
_MOMENT = pl.Datetime("us", "UTC")
_KINDS: Mapping[Any, str] = {
    pl.Int64: "seq attempts epoch duration_ms",
    pl.String: "id campaign_id company_id request_id recipient_id email from_name content_id variables state"
    " session_id transport ses_message_id error_code error_category error_message original_code dedupe_key"
    " category charged_hour charged_day history reply_to headers fingerprint events",
    pl.Boolean: "is_rehearsal",
    _MOMENT: "created_at attempt_at next_attempt_at sent_at failed_at unknown_at",
}
_SCHEMA = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_ERASED = ("request_id", "from_name", "variables", "recipient_id", "reply_to", "headers", "dedupe_key")


@dataclass(frozen=True, slots=True)
class ArchiveCounts:
    """What an archive holds, counted in its file."""

    ledger: Ledger
    events: int
    size: int  # bytes


class ArchiveFolder:
    """Where archives lie."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else archives into this folder meanwhile; UsageError: somebody does."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = os.fdopen(os.open(self.folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise SettingsError(
                f"The archive cannot be written to {self.folder}: {error.strerror}.",
                remedy="Name another folder: --out DIR.",
            ) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # goes with the process, however that ends
            except BlockingIOError:
                raise UsageError(
                    f"Another `mailout retention` is at work in {self.folder}.",
                    remedy="Wait until it has ended.",
                ) from None
            yield

    def clear_up(self, place_of: Callable[[str], str | None]) -> None:
        """What is still hidden gets its name if it is the truth, and goes if it is not.

        `place_of`: where the store says that a mailout's archive lies.
        """
        for hidden in self.folder.glob(".*.parquet*"):
            place = place_of(hidden.name.split(".")[1])
            path = self.folder / hidden.name.removeprefix(".")
            if place and path_of(place).name == path.name:
                hidden.rename(path)
                _sync(self.folder)
            else:
                hidden.unlink()

    def write(self, id: str, pages: Iterable[Sequence[Mapping[str, Any]]]) -> tuple[str, ArchiveCounts]:
        """Messages with their events, hidden, on the disk for good and read back; where it will lie."""
        path = self.folder / f"{id}.{uuid.uuid4().hex[:8]}.parquet"
        _write(map(_frame, pages), _hidden(path))
        return f"{socket.gethostname()}:{path}", _counts(_hidden(path))

    def counts(self, place: str) -> ArchiveCounts | None:
        """None: it is not here."""
        path = self._find(place)
        return _counts(path) if path is not None else None

    def event_ids(self, place: str) -> Iterator[Sequence[str]]:
        return _event_ids(self._find(place) or path_of(place))

    def forget(self, place: str, email: str, instead: str) -> bool | None:
        """Erase a person from one archive. False: they are not in it; None: it is not here.

        As the store does it (`Feedback.forget`). The file is replaced at once: interrupted, it is done again.
        """
        path = self._find(place)
        if path is None:
            return None
        theirs = (pl.col("email") == email) | pl.col("events").str.contains(_as_json(email), literal=True)
        with _readable(path):
            if not pl.scan_parquet(path).filter(theirs).select(pl.len()).collect().item():
                return False
        beside = _hidden(path).with_suffix(".parquet.new")
        _write((_erased(frame, email, instead) for frame in _parts(path)), beside)
        beside.replace(path)
        _sync(path.parent)
        return True

    def _find(self, place: str) -> Path | None:
        """Here first: MAILOUT_HOME may have been moved or copied since. What lies beside another store is
        that store's, and not ours to change."""
        there = path_of(place)
        here = self.folder / there.name
        if here.is_file():
            return here
        anothers = (there.parent.parent / "mailout.db").exists() and there.parent != self.folder
        return there if there.is_file() and not anothers else None


def path_of(place: str) -> Path:
    """Of `machine:/folder/name`."""
    return Path(place.partition(":")[2])


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}")


# ── files ──


def _write(frames: Iterable[pl.DataFrame], path: Path) -> None:
    """On the disk for good, and read back: nothing is deleted for a file that is not what it should be."""
    given, failed = 0, None

    def source(*_: Any) -> Iterator[pl.DataFrame]:
        nonlocal given, failed
        try:
            for frame in frames:
                given += _checksum(frame)
                yield frame
        except BaseException as error:  # noqa: BLE001 - raised below, when polars has closed the file
            failed = error

    try:
        with _readable(path):
            rows = register_io_source(source, schema=_SCHEMA)
            rows.sink_parquet(path, compression="zstd", row_group_size=ROWS_A_PART)
            if failed is not None:
                raise failed
            with path.open("rb+") as file:
                os.fsync(file.fileno())
            _sync(path.parent)
            if (sum(map(_checksum, _parts(path))) - given) % 2**64:
                raise StoreError(f"{path} does not read as it was written.", remedy=NOTHING_LOST)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _checksum(frame: pl.DataFrame) -> int:
    return int(frame.hash_rows().sum())


def _parts(path: Path, *columns: str) -> Iterator[pl.DataFrame]:
    with _readable(path):
        rows = pl.scan_parquet(path).select(columns or pl.all())
        for start in range(0, pl.scan_parquet(path).select(pl.len()).collect().item(), ROWS_A_PART):
            yield rows.slice(start, ROWS_A_PART).collect()


def _event_ids(path: Path) -> Iterator[Sequence[str]]:
    for part in _parts(path, "events"):
        yield [event["id"] for events in part["events"] for event in json.loads(events)]


def _counts(path: Path) -> ArchiveCounts:
    """An id that is there twice counts once."""
    with _readable(path):
        states = pl.read_parquet(path, columns=["id", "state"]).unique("id")["state"].value_counts()
    return ArchiveCounts(
        ledger_of(dict(states.iter_rows())), sum(map(len, _event_ids(path))), path.stat().st_size
    )


def ledger_of(states: Mapping[str, int]) -> Ledger:
    columns = Counter[str]()
    for state, n in states.items():
        columns[COLUMN_OF[State(state)].value] += n
    return Ledger(columns.total(), **columns)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """A full disk, a file that is none: in one clear error."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        raise StoreError(
            f"The archive {path} cannot be written or read: {error}.", remedy=NOTHING_LOST
        ) from error


def _sync(folder: Path) -> None:
    """The names in it are on the disk, too."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# ── rows ──


def _frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Column by column: five times as fast as row by row."""
    rows = [{**row, "events": [_event(event) for event in row["events"]]} for row in rows]
    return pl.DataFrame([_series(name, [row[name] for row in rows], kind) for name, kind in _SCHEMA.items()])


def _event(event: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: event[name] for name in ("id", "event_type", "email", "provider_message_id", "detail")}
    return kept | {"event_at": datetime.fromtimestamp(event["event_at"], UTC).isoformat()}


def _series(name: str, values: list[Any], kind: Any) -> pl.Series:
    if kind == _MOMENT:
        seconds = pl.Series(name, values, dtype=pl.Float64)
        return (seconds * 1e6).round().cast(pl.Int64).cast(_MOMENT)
    if kind == pl.String:
        values = [value if value is None or isinstance(value, str) else _as_json(value) for value in values]
    if kind == pl.Boolean:  # SQLite has none
        values = [None if value is None else bool(value) for value in values]
    return pl.Series(name, values, dtype=kind)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _erased(frame: pl.DataFrame, email: str, instead: str) -> pl.DataFrame:
    """The rows without this person."""
    mine, quoted = pl.col("email") == email, _as_json(email)
    told = frame["events"].to_list()
    for place, text in enumerate(told):
        if quoted in text:
            kept = json.loads(text)
            told[place] = _as_json(
                [
                    event | {"email": instead, "detail": {}} if event["email"] == email else event
                    for event in kept
                ]
            )
    changes = [
        pl.lit(instead).alias("email"),
        *(pl.lit(None, pl.String).alias(name) for name in _ERASED),
        *(
            pl.col(name).str.replace_all(email, instead, literal=True)
            for name in ("error_message", "history")
        ),
    ]
    return frame.with_columns(
        pl.Series("events", told, dtype=pl.String),
        *(pl.when(mine).then(new).otherwise(new.meta.output_name()) for new in changes),
    )
