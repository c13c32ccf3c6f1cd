"""A home of an earlier version is brought up to date when it is opened, or stays exactly as it was."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mailout.adapters.sqlite import SqliteStore, database
from mailout.base.errors import StoreMismatch, StoreUnavailable
from tests.clocks import FakeClock
from tests.contract.scenes import Sender, mailout, result

KNOWN = sorted(database.MIGRATIONS.glob("*.sql"))
NEXT = "CREATE TABLE brand_new (id TEXT);\nALTER TABLE campaign_queue ADD COLUMN colour TEXT;\n"
BROKEN = "CREATE TABLE brand_new (id TEXT);\nINSERT INTO nowhere VALUES (1);\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What today's program leaves behind in the middle of a mailout."""
    path = tmp_path / "mailout.db"
    store = SqliteStore(path, FakeClock())
    id = mailout(store, "ann@example.org", "bob@example.org")
    sender = Sender(store, id)
    (first,) = sender.step(want=1).rows
    sender.step(results=[result(first)])
    store.close()
    return path


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, added: Mapping[str, str]) -> None:
    """From here on the program is a later one that has these migrations as well."""
    scripts = folder / "later"
    scripts.mkdir()
    for known in KNOWN:
        shutil.copy(known, scripts)
    for name, script in added.items():
        (scripts / name).write_text(script)
    monkeypatch.setattr(database, "MIGRATIONS", scripts)


def content(path: Path) -> dict[str, Any]:
    connection = sqlite3.connect(path)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        outbox = connection.execute("SELECT email, state FROM email_outbox ORDER BY seq").fetchall()
        return {"version": version, "brand_new": "brand_new" in names, "outbox": outbox}
    finally:
        connection.close()


def test_it_is_brought_up_to_date_and_a_copy_of_how_it_was_is_kept(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(home)
    home.chmod(0o600)
    program(tmp_path, monkeypatch, {"0998_next.sql": NEXT, "0999_last.sql": "CREATE TABLE last (id TEXT);\n"})
    store = SqliteStore(home, FakeClock())
    assert store.check() == len(KNOWN) + 2
    store.close()
    after = content(home)
    assert (after["outbox"], after["brand_new"]) == (before["outbox"], True)
    assert [state for _, state in before["outbox"]] == ["SENT", "PENDING"]
    copy = home.with_name(f"mailout.db.v{len(KNOWN)}")
    assert content(copy) == before
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_the_copy_can_be_put_back_and_upgraded_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, {"0999_next.sql": NEXT})
    SqliteStore(home, FakeClock()).close()
    copy = home.with_name(f"mailout.db.v{len(KNOWN)}")
    for leftover in home.parent.glob("mailout.db-*"):
        leftover.unlink()
    copy.replace(home)
    SqliteStore(home, FakeClock()).close()
    assert content(home)["version"] == len(KNOWN) + 1
    assert content(copy)["version"] == len(KNOWN)


def test_an_upgrade_that_fails_half_way_leaves_it_as_it_was(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(home)
    program(tmp_path, monkeypatch, {"0998_next.sql": "CREATE TABLE other (id);\n", "0999_bad.sql": BROKEN})
    with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
        SqliteStore(home, FakeClock())
    assert content(home) == before
    monkeypatch.undo()
    SqliteStore(home, FakeClock()).close()


def test_without_room_for_the_copy_nothing_is_changed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(home)
    program(tmp_path, monkeypatch, {"0999_next.sql": NEXT})
    home.with_name(f"mailout.db.v{len(KNOWN)}").mkdir()  # nothing can take its name
    with pytest.raises(StoreUnavailable, match="no copy") as caught:
        SqliteStore(home, FakeClock())
    assert "space" in (caught.value.remedy or "")
    assert content(home) == before
    assert not list(home.parent.glob("*.part"))


def test_an_earlier_program_refuses_it_with_words_and_makes_no_copy(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, {"0999_next.sql": NEXT})
    SqliteStore(home, FakeClock()).close()
    monkeypatch.undo()
    before = (content(home), sorted(tmp_path.iterdir()))
    with pytest.raises(StoreMismatch, match=f"schema version {len(KNOWN) + 1}") as caught:
        SqliteStore(home, FakeClock())
    assert "newer mailout" in (caught.value.remedy or "")
    assert (content(home), sorted(tmp_path.iterdir())) == before


def test_a_new_home_needs_no_copy(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "mailout.db", FakeClock()).close()
    assert list(tmp_path.glob("*.v*")) == []
