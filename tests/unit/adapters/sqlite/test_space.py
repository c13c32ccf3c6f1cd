"""Room on the disk, after messages have left the SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mailout.adapters.sqlite import SqliteStore
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.port import Recipient
from tests.clocks import NOON, FakeClock
from tests.contract.scenes import LEASE, enqueue


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """One whose messages have been archived: most of its pages are free."""
    made = SqliteStore(tmp_path / "mailout.db", FakeClock())
    id = enqueue(made)
    made.freeze_recipients(id, [Recipient(f"p{n:05}@example.org") for n in range(5_000)])
    made.cancel(id)
    assert made.mark_archived(id, made.archive_state(id) or "", "here:/archive")
    while made.delete_archived_messages(id):
        pass
    yield made
    made.close()


def size(store: SqliteStore) -> int:
    return sum(path.stat().st_size for path in store.db.path.parent.glob("mailout.db*"))


def test_the_disk_gets_back_what_was_freed(store: SqliteStore) -> None:
    """A store that never shrinks fills the disk of a small machine, archive or not."""
    before = size(store)
    freed = store.give_space_back()
    assert freed > 1_000_000
    assert size(store) < before / 2
    assert store.give_space_back() == 0  # nothing left that would be worth it
    assert len(queue_rows.mailouts(store)) == 1


def test_nobody_is_held_up_while_mail_leaves(store: SqliteStore) -> None:
    """Nothing can be written while the file is made again: a sender would miss its slots."""
    store.open_session(None, worker="w", transport="folder", lease=LEASE)
    assert store.give_space_back() == 0
    assert isinstance(store.db.clock, FakeClock)
    store.db.clock.wall = NOON + LEASE + 1  # it is gone
    assert store.give_space_back() > 0
