"""Archives as Parquet files: a folder for each mailout, which polars (or anything else) reads.

    <folder>/<mailout id>/mailout.parquet  messages-00000.parquet …  events-…  contents-…

What is being written has a hidden name until the store says that it is the truth.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import polars as pl

from mailout.adapters.parquet.draft import ParquetDraft, parts, readable, sync, tally_of
from mailout.adapters.parquet.erase import erase
from mailout.base.errors import SettingsError, UsageError
from mailout.insight.retention.port import Tally


class ParquetArchive:
    """Fulfils `archive.ArchiveFolder`. A lock in `home` keeps a second archiver of this machine away."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder.absolute()
        self._home = home.absolute()
        self._host = socket.gethostname()
        self.owner = f"{self._host}:{self._home}"
        self._mark = sha256(self.owner.encode()).hexdigest()[:8]

    @contextmanager
    def alone(self) -> Iterator[None]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = os.fdopen(os.open(self._home / "archive.lock", os.O_CREAT | os.O_RDWR, 0o600))
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
                    "Another `mailout archive` is at work on this machine.", remedy="Wait until it has ended."
                ) from None
            yield

    def clear_up(self, keep: Collection[str]) -> None:
        for hidden in self.folder.glob(f".*.*.{self._mark}"):
            if hidden.name.split(".")[2] not in keep:
                shutil.rmtree(hidden)

    def draft(self, id: str, token: str) -> ParquetDraft:
        return ParquetDraft(self.folder / f".{id}.{token}.{self._mark}")

    def discard(self, id: str, token: str) -> None:
        for hidden in self.folder.glob(f".{id}.{token}.*"):
            shutil.rmtree(hidden)

    def place_for(self, id: str) -> str:
        return f"{self._host}:{self._free(id)}"

    def put_in_place(self, id: str, token: str, place: str) -> None:
        path = path_of(place)
        for hidden in path.parent.glob(f".{id}.{token}.*"):
            hidden.rename(path)
            sync(path.parent)

    def tally(self, place: str, token: str) -> Tally | None:
        path = path_of(place)
        if not (path / "mailout.parquet").is_file():
            return None
        with readable(path):
            is_it = pl.read_parquet(path / "mailout.parquet", columns=["archive"]).item() == token
            return tally_of(path) if is_it else None

    def event_ids(self, place: str) -> Iterator[Sequence[str]]:
        for part in parts(path_of(place), "events"):
            yield pl.read_parquet(part, columns=["id"])["id"].to_list()

    def forget(self, place: str, email: str, instead: str) -> tuple[int, int] | None:
        """Erase a person from one archive: how many messages and events; None: it is not here."""
        path = path_of(place)
        return erase(path, email, instead) if (path / "mailout.parquet").is_file() else None

    def _free(self, id: str) -> Path:
        """Its id. It is taken only where the store was set back to before an earlier archiving."""
        path, number = self.folder / id, 1
        while path.exists():
            number += 1
            path = self.folder / f"{id}-{number}"
        return path


def path_of(place: str) -> Path:
    """Of `machine:/folder/name`."""
    return Path(place.partition(":")[2])
