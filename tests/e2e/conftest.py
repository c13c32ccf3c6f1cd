"""The command line as people use it: a process, its exit code, and what it prints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mailout.adapters.sqlite import SqliteStore
from mailout.base.clock import SystemClock
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout
from tests.e2e.supabase_lite.server import Lite, running
from tests.new_sqlite import open_new
from tests.warm_commands import run_command

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def one_line(self) -> str:
        """What went wrong, which is one line and no traceback; above it, where the command was at work."""
        lines = [line for line in self.err.splitlines() if " · mailout up is" not in line]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("mailout: ")
        return lines[0]


@dataclass
class Commands:
    """`mailout …` in a folder of its own, with settings of its own."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return Path(self.settings["MAILOUT_HOME"])

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**kept, "PYTHONPATH": str(PROJECT), **self.settings}

    def __call__(self, *arguments: str | Path, **settings: str) -> Ended:
        ended = run_command([*map(str, arguments)], cwd=self.folder, env=self.environment | settings)
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def letter(self, name: str = "letter.md", *, subject: str = "Hello", body: str = "How are you?") -> Path:
        path = self.folder / name
        path.write_text(f"---\nid: {path.stem}\nsubject: {subject}\n---\n\n{body}\n", encoding="utf-8")
        return path

    def people(self, *emails: str) -> None:
        """Written to the store at once: every command is a process that takes a second to start."""
        with closing(self.store()) as store:
            store.import_subscribers([SubscriberRow(email, email.lower()) for email in emails])

    def queue(self) -> Sequence[Mailout]:
        with closing(self.store()) as store:
            return queue_rows.mailouts(store)

    def mails(self) -> list[Path]:
        return sorted(self.home.glob("outbox/*/*.eml"))

    def store(self) -> SqliteStore:
        return open_new(self.home / "mailout.db", SystemClock())


@pytest.fixture(scope="session")
def lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lite]:
    """One for the whole session; every test empties it."""
    with running(tmp_path_factory.mktemp("lite")) as server:
        yield server


@pytest.fixture
def mailout(tmp_path: Path) -> Commands:
    return Commands(
        tmp_path,
        {
            "MAILOUT_HOME": str(tmp_path / "home"),
            "FROM_EMAIL": "news@example.org",
            "ORG_NAME": "The Harbour",
            "ORG_ADDRESS": "1 Quay",
            "UNSUBSCRIBE_BASE_URL": "https://mail.example.org/unsubscribe",
            "UNSUBSCRIBE_SECRET": "a secret of some length",
            "TEST_EMAILS": "editor@example.org; boss@example.org",
            "SEND_RATE_PER_SEC": "0",
            "LOCK_SECONDS": "2",
        },
    )
