"""The SQLite file itself: its schema, who may open it, and what its errors say."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mailout.adapters.sqlite import SqliteStore, database
from mailout.base.errors import StoreError, StoreMismatch, StoreUnavailable
from mailout.outbox.queue import queue_rows
from tests.clocks import FakeClock

ROOT = Path(__file__).parents[4]
NOBODY = 65534


def tables(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
    finally:
        connection.close()


def test_a_file_from_a_newer_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    """An older program that writes to it would spoil it for the newer one."""
    path = tmp_path / "mailout.db"
    SqliteStore(path, FakeClock()).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreMismatch, match="schema version 99"):
        SqliteStore(path, FakeClock())


def test_a_migration_that_fails_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a schema could neither be used nor brought up to date again."""
    scripts = tmp_path / "migrations"
    scripts.mkdir()
    (scripts / "0001_good.sql").write_text("CREATE TABLE good (id TEXT);\n")
    (scripts / "0002_bad.sql").write_text("CREATE TABLE half (id TEXT);\nINSERT INTO nowhere VALUES (1);\n")
    monkeypatch.setattr(database, "MIGRATIONS", scripts)
    path = tmp_path / "mailout.db"
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        SqliteStore(path, FakeClock())
    assert tables(path) == []
    monkeypatch.undo()
    SqliteStore(path, FakeClock()).close()
    assert "campaign_queue" in tables(path)


def test_opening_again_applies_nothing_again(tmp_path: Path) -> None:
    path = tmp_path / "mailout.db"
    SqliteStore(path, FakeClock()).close()
    before = tables(path)
    SqliteStore(path, FakeClock()).close()
    assert tables(path) == before


def test_processes_that_open_a_fresh_file_at_once_all_succeed(tmp_path: Path) -> None:
    """`mailout up` starts the gateway and a sender together, on a machine that has no store yet."""
    script = (
        "import sys; from pathlib import Path; from mailout.adapters.sqlite import SqliteStore;"
        "from mailout.base.clock import SystemClock; print('ready', flush=True); sys.stdin.readline();"
        "[SqliteStore(Path(name), SystemClock()).check() for name in sys.argv[1:]]"
    )
    paths = [str(tmp_path / f"{number}" / "mailout.db") for number in range(15)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, *paths],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    ends = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], [errors for _, errors in ends]


@pytest.fixture
def as_nobody() -> Iterator[None]:
    """Root may write everywhere: be somebody else for as long as the test lasts."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def read_only() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)


@pytest.mark.usefixtures("as_nobody")
@pytest.mark.parametrize("where", ["mailout.db", "home/mailout.db"])
def test_a_folder_that_cannot_be_written_to_is_said_so(read_only: Path, where: str) -> None:
    with pytest.raises(StoreUnavailable, match="MAILOUT_HOME") as caught:
        SqliteStore(read_only / where, FakeClock())
    assert str(read_only) in str(caught.value)


def test_a_file_that_is_no_store_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "mailout.db"
    path.write_bytes(b"this is a letter, not a database. " * 40)
    with pytest.raises(StoreError, match=r"mailout\.db") as caught:
        SqliteStore(path, FakeClock())
    assert "restore a backup" in str(caught.value)
    assert "MAILOUT_HOME" not in str(caught.value), "a new home has no journals: letters would go out twice"


def test_a_store_that_is_damaged_while_it_is_open_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "mailout.db"
    SqliteStore(path, FakeClock()).close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with (
        pytest.raises(StoreError, match="damaged") as caught,
        closing(SqliteStore(path, FakeClock())) as store,
    ):
        queue_rows.mailouts(store)
    assert "restore a backup" in str(caught.value)


@pytest.mark.parametrize(("folder", "file"), [(0o555, 0o644), (0o777, 0o444)])
def test_a_store_that_may_no_longer_be_written_is_not_left_for_an_empty_one(folder: int, file: int) -> None:
    """It has been sent from: another home would send everything again."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "mailout.db"
        SqliteStore(path, FakeClock()).close()
        path.chmod(file)
        Path(name).chmod(folder)
        if os.geteuid() == 0:
            os.seteuid(NOBODY)
        try:
            with pytest.raises(StoreUnavailable) as caught, closing(SqliteStore(path, FakeClock())) as store:
                store.pause_all(True)
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
            Path(name).chmod(0o755)
    assert "writable again" in str(caught.value)
    assert "Set MAILOUT_HOME" not in str(caught.value)
