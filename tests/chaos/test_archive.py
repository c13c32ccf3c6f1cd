"""What leaves the store must arrive: an archiver killed again and again loses nobody."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl

from mailout.adapters.sqlite import SqliteStore
from mailout.base.clock import SystemClock
from mailout.insight.retention import archiving
from mailout.outbox.delivery import outbox_rows
from tests.contract.scenes import Sender, mailout, result

ARCHIVE = """
import os, signal, sys
from pathlib import Path
from mailout.insight.retention import archiving as archive
from mailout.insight.retention.archive_file import ArchiveFolder
from mailout.adapters.sqlite import SqliteStore
from mailout.base.clock import SystemClock

home, left = Path(sys.argv[1]), int(sys.argv[2])


class Fatal:
    # Whoever has called the store or the folder so often does not live to hear the answer.
    def __init__(self, real):
        self._real = real

    def __getattr__(self, name):
        value = getattr(self._real, name)
        return self._deadly(value) if callable(value) else value

    def _deadly(self, call):
        def answer(*args, **kwargs):
            global left
            left -= 1
            result = call(*args, **kwargs)
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return answer


archive.CHUNK = 20  # many parts: many moments to be killed at
store = Fatal(SqliteStore(home / "mailout.db", SystemClock()))
folder = Fatal(ArchiveFolder(home / "archive"))
for one in archive.Archiving(store, folder, report=lambda id: None, waits_for_page=set).run(90):
    print(one)
"""
ROOT = Path(__file__).resolve().parents[2]
PEOPLE = [f"reader{number:03d}@example.org" for number in range(500)]
LETTERS = [f"letter {number}" for number in range(4)]


def sent_long_ago(store: SqliteStore, ref: str) -> str:
    id = mailout(store, *PEOPLE, ref=ref)
    sender = Sender(store, id)
    sender.step(results=[result(one) for one in sender.begin(len(PEOPLE))], close=True)
    store.complete(id)
    with store.db.write() as tx:
        tx.execute("UPDATE campaign_queue SET completed_at = completed_at - 100 * 86400 WHERE id = ?", (id,))
    return id


def test_archiving_killed_again_and_again_comes_to_the_same(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "mailout.db", SystemClock())
    sent = [sent_long_ago(store, ref) for ref in LETTERS]
    before = {
        id: {row["id"]: row["ses_message_id"] for row in outbox_rows.messages(store, id, limit=1000)}
        for id in sent
    }
    kills = 0
    while archiving.over_before(store, time.time()) or archiving.archives_to_empty(store):
        calls = 3 + 5 * kills  # each lives a little longer than the one before
        command = [sys.executable, "-c", ARCHIVE, str(tmp_path), str(calls)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
        kills += 1
    assert kills > 5
    files = [path for path in (tmp_path / "archive").iterdir() if not path.name.startswith(".")]
    assert {path.name.split(".")[0] for path in files} == set(sent)
    assert len(files) == len(sent)
    for id in sent:
        assert outbox_rows.messages(store, id, limit=10) == []
        assert store.mailout(id).ledger.sent == len(PEOPLE)
        kept = pl.read_parquet(tmp_path / "archive" / f"{id}.*.parquet")
        assert dict(kept.select("id", "ses_message_id").iter_rows()) == before[id]
        assert kept.height == len(PEOPLE)
    store.close()
