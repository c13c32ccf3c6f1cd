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
from typing import Any

import pytest

from mailout.adapters.sqlite import SqliteStore, database
from mailout.base.errors import HomeUnwritable, StoreMismatch, StoreUnavailable
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery import outbox_rows
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
    with pytest.raises(StoreUnavailable, match=r"mailout\.db"):
        SqliteStore(path, FakeClock())
    assert path.read_bytes().startswith(b"this is a letter")


def test_a_store_that_another_process_holds_is_worth_waiting_for(tmp_path: Path) -> None:
    path = tmp_path / "mailout.db"
    SqliteStore(path, FakeClock()).close()
    holder = sqlite3.connect(path, isolation_level=None)
    store = SqliteStore(path, FakeClock(), busy_seconds=0.01)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        store.pause_all(True)
    holder.execute("ROLLBACK")
    holder.close()
    store.pause_all(True)
    assert queue_rows.all_paused(store)
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        queue_rows.all_paused(store)


def test_whoever_only_looks_waits_for_nobody(tmp_path: Path) -> None:
    """A long import would hold up Prometheus and the dashboard, which only ask what the quota leaves."""
    store = SqliteStore(tmp_path / "mailout.db", FakeClock(), busy_seconds=0.05)
    other = sqlite3.connect(tmp_path / "mailout.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert outbox_rows.quota(store, "folder") is None
    other.close()
    store.close()


def test_a_full_disk_is_named_and_the_store_is_as_it_was(tmp_path: Path) -> None:
    """A person has to make room: waiting for it, as for a busy file, would only look like a hang."""
    store = SqliteStore(tmp_path / "mailout.db", FakeClock())
    (pages,) = store.db.read("PRAGMA page_count")[0]
    store.db.read(f"PRAGMA max_page_count = {pages}")
    rows = [SubscriberRow(email, email) for email in (f"p{n}@example.org" for n in range(5000))]
    with pytest.raises(HomeUnwritable, match="The disk is full") as told:
        store.import_subscribers(rows)
    assert "Free some space" in str(told.value)
    assert store.db.read("SELECT count(*) AS n FROM subscribers")[0]["n"] == 0
    store.db.read("PRAGMA max_page_count = 1000000")
    store.import_subscribers(rows)
    assert store.db.read("SELECT count(*) AS n FROM subscribers")[0]["n"] == 5000
    store.close()


def test_a_file_that_another_has_taken_the_place_of_is_not_written_to(tmp_path: Path) -> None:
    """SQLite would go on in the deleted file, and nobody would ever see what was written."""
    path = tmp_path / "mailout.db"
    store = SqliteStore(path, FakeClock())
    path.unlink()
    with pytest.raises(HomeUnwritable, match="deleted or moved"):
        store.pause_all(True)
    other = SqliteStore(path, FakeClock())
    with pytest.raises(HomeUnwritable, match="deleted or moved"):
        store.pause_all(True)
    other.pause_all(True)
    store.close()
    other.close()


def test_a_forgotten_address_is_in_no_file_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many builds of SQLite leave in the file what was deleted, for anybody who searches its bytes."""
    connect = sqlite3.connect

    def as_other_builds(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", as_other_builds)
    with closing(SqliteStore(tmp_path / "mailout.db", FakeClock())) as store:
        for n in range(0, 300, 100):
            people = (f"zed{one * 7 % 300}@example.net" for one in range(n, n + 100))
            store.import_subscribers([SubscriberRow(email, email) for email in people])
        assert store.forget("zed150@example.net", "forgotten:1").subscribers == 1
        held = {file.name for file in tmp_path.iterdir() if b"zed150@" in file.read_bytes()}
    assert held == set()
